"""Checked kernels: the same results as other machine code, and a report of every access outside of a buffer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from parquet_variant.kernels.machine_code.checks import LOAD, LOAD_BLOCK, STORE, RegisteredMemory

_OPERATIONS = r"""
import datetime as dt, decimal, json, uuid
import pyarrow as pa
import parquet_variant as pv

rows = [
    '{"a":[1,2.5,1e300,"x\\n\u00e9\\ud83d\\ude00"],"b":{"c":123456789012345678901234567890,"t":"2024-01-02T03:04:05Z"}}',
    None, "true", json.dumps({"z": 1, "a": [[], {}], "b": "y" * 100}), '{"b":1,"b":2,"a":[1.5,null]}',
    "-12.345678901234567890123", '[{"n":1},{"n":2}]', "-9223372036854775808", '""',
]
array = pv.parse_json(rows)
schema = "struct<a: array<double>, b: struct<c: decimal(38,0)>>"
shredded = pv.shred_variant(array, schema)
values = pv.from_python([
    uuid.UUID(int=7), b"ab", dt.date(2020, 1, 1), dt.time(1, 2, 3), 1.5, decimal.Decimal("3.40"), 2**63 - 1,
    dt.datetime(2020, 1, 1, 1, 2, 3, 4), dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None, {"d": decimal.Decimal(1 << 90)},
])
table = {"v": pv.shred_variant(pv.parse_json([json.dumps({"i": i, "s": f"t{i % 3}", "l": list(range(i % 3))})
         for i in range(40)]), "struct<i: bigint, s: string, l: array<bigint>>"),
         "t": pa.array([None if i % 5 == 0 else f"prefix-{i}" for i in range(40)])}
pv.write(path, table, mode="overwrite")
print(pv.to_json(array).to_pylist())
print(pv.to_json(shredded).to_pylist(), pv.to_json(pv.unshred_variant(shredded)).to_pylist())
print(pv.parse_json(rows, dictionary="batch").to_pylist())
print(pv.parse_json([*rows, "{bad", "[1,]"], errors="null").to_pylist())
print(pv.to_json(values).to_pylist(), pv.schema_of_variant(values).to_pylist(), pv.equals(values, values).to_pylist())
print(pv.infer_shredding_schema(array), pv.validate(values).num_rows, pv.schema_of_variant(array).to_pylist())
print(pv.to_json(pv.variant_set(array, "$.q[2].r", 5, errors="null")).to_pylist())
print(pv.to_json(pv.strip_nulls(array)).to_pylist())
print(pv.variant_get(array, "$.b.t", "timestamp", errors="null").to_pylist())
print(pv.variant_get(array, "$.b.c", "decimal(38,1)", errors="null").to_pylist())
print(pv.to_json(pv.open(path).read()).to_pylist())
"""


def _run(script: str, mode: str, path: Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    file = path / "script.py"
    file.write_text(script)
    env = {**os.environ, "PARQUET_VARIANT_KERNELS": mode}
    run = subprocess.run([sys.executable, str(file)], env=env, capture_output=True, text=True, check=False, timeout=240)
    assert not check or run.returncode == 0, run.stderr
    return run


@pytest.mark.machine_code
def test_checked_kernels_do_the_same_as_machine_code_and_leave_no_memory_behind(tmp_path: Path) -> None:
    script = f"path = {str(tmp_path / 'x.parquet')!r}\n{_OPERATIONS}"
    script += "from parquet_variant.kernels.machine_code.checks import OWNED_BLOCKS\nprint(OWNED_BLOCKS)"
    checked = _run(script, "checked", tmp_path).stdout
    assert checked == _run(script, "", tmp_path).stdout
    assert checked.endswith("set()\n")


_BAD_KERNELS = """
import numpy as np
from parquet_variant.errors import KernelsError
from parquet_variant.kernels.machine_code.functions import helper, kernel
from parquet_variant.kernels.memory import address_of, load_u8, store_u64
from parquet_variant.kernels.machine_code.signatures import Int64s

@helper
def read(address):
    return load_u8(address)

@kernel
def read_at(address: int, offset: int) -> int:
    return read(address + offset)

@kernel
def write_at(address: int, offset: int) -> None:
    store_u64(address + offset, 1)

@kernel
def item(values: Int64s, index: int) -> int:
    return values[index]

data = np.arange(100, dtype=np.uint8)
address = address_of(data)
assert read_at(address, 99) == 99
write_at(address, 92)

def report(call):
    try:
        call()
    except KernelsError as error:
        print(error.reason, str(error).replace(hex(address + 100), "END"))

report(lambda: read_at(address, 100))
report(lambda: write_at(address, 93))
report(lambda: item(np.arange(3), 3))
view = data[10:20].copy()
del data
report(lambda: read_at(address, 0))
"""


def test_an_access_outside_of_a_buffer_is_reported_with_kernel_line_and_address(tmp_path: Path) -> None:
    read, write, item, freed = _run(_BAD_KERNELS, "checked", tmp_path).stdout.splitlines()
    assert all(line.startswith("bad-address kernel __main__.") for line in (read, write, item, freed))
    assert "read_at: load of 1 bytes at address END" in read
    assert "script.py:10;" in read
    assert "write_at: store of 8 bytes" in write
    assert "script.py:18;" in write
    assert "IndexError, in" in item
    assert "script.py:22;" in item
    assert "load of 1 bytes" in freed


def test_an_unknown_mode_is_refused(tmp_path: Path) -> None:
    run = _run("import parquet_variant as pv\npv.parse_json(['1'])", "slow", tmp_path, check=False)
    assert "PARQUET_VARIANT_KERNELS='slow'" in run.stderr


def test_nested_buffers_are_found_by_the_outer_one() -> None:
    memory = RegisteredMemory()
    memory.add("outer", 1000, 100)
    memory.add("inner", 1010, 10)
    assert memory.holds(LOAD, 1050, 50)
    assert not memory.holds(LOAD, 1078, 23)
    memory.remove("outer")
    assert memory.holds(STORE, 1010, 10)
    assert not memory.holds(LOAD, 1050, 1)


def test_only_a_block_may_be_loaded_past_the_end_of_a_buffer_and_only_in_its_page() -> None:
    memory = RegisteredMemory()
    memory.add("buffer", 4096, 4096 - 8)
    assert memory.holds(LOAD_BLOCK, 8192 - 32, 32)
    assert not memory.holds(LOAD, 8192 - 32, 32)
    assert not memory.holds(LOAD_BLOCK, 8192 - 31, 32)
