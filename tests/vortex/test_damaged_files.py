"""A Vortex file that was cut or changed is a `VariantFileError`: no wrong value, no traceback, no dead process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import parquet_variant as pv
from parquet_variant.errors import VariantFileError
from parquet_variant.files.vortex.library import BLOCK_BYTES, vortex_errors

pytest.importorskip("vortex.expr", reason="vortex-data is not installed")

# In a process of its own, which vortex-data may end. Every file is damaged in one place, then asked for everything.
CHILD = """
import random, sys
from pathlib import Path
import parquet_variant as pv
from parquet_variant.errors import VariantFileError
whole = Path(sys.argv[1]).read_bytes()
seed, count, target = int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
wanted = pv.to_json(pv.open(sys.argv[1]).read()).to_pylist()
ids = pv.open(sys.argv[1]).scan({"n": "$.n:bigint"}, "n >= 0").to_arrow()
chance = random.Random(seed)
refused = 0
for number in range(count):
    data = bytearray(whole)
    way = number % 4
    at = chance.randrange(len(data)) if number % 8 < 4 else len(data) - 1 - chance.randrange(min(4000, len(data)))
    if way == 0:
        del data[at:]
    elif way == 1:
        data[at] ^= 1 << chance.randrange(8)
    elif way == 2:
        data[at : at + 64] = chance.randbytes(len(data[at : at + 64]))
    else:
        del data[at : at + chance.randrange(1, 100)]
    if data == whole:
        continue
    target.write_bytes(data)
    print(number, way, at, flush=True)
    for ask in (
        lambda: pv.to_json(pv.open(target).read()).to_pylist() == wanted,
        lambda: pv.open(target).scan({"n": "$.n:bigint"}, "n >= 0").to_arrow().equals(ids),
        lambda: sum(len(each) for each in pv.open(target).scan().batches()) == len(wanted),
        lambda: pv.open(target).inspect().rows == len(wanted),
    ):
        try:
            assert ask(), "a wrong answer"
        except VariantFileError as error:
            assert "\\n" not in str(error) and str(target) in str(error), error
            refused += 1
assert refused > count, refused
print("done")
"""


@pytest.mark.parametrize("layout", ["variant", "struct"])
def test_damaged_files_end_in_an_error(layout: str, tmp_path: Path) -> None:
    rows = [
        f'{{"n": {number}, "s": "row {number}", "l": [{number}, "x"]}}' if number % 9 else None
        for number in range(9000)
    ]
    pv.write(tmp_path / "a.vortex", pv.parse_json(rows), schema="n bigint, s string", layout=layout)
    words = [sys.executable, "-c", CHILD, tmp_path / "a.vortex", "7", "120", tmp_path / "b.vortex"]
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.stdout[-200:], done.stderr[-2000:])
    assert done.stdout.endswith("done\n")


def test_every_changed_block_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.vortex"
    rows = pv.parse_json([f'{{"n": {number}, "s": "{number * 7919:040x}"}}' for number in range(30_000)])
    pv.write(path, rows, format="vortex", compact=False)
    whole = path.read_bytes()
    assert len(whole) > 4 * BLOCK_BYTES
    for at in range(100, len(whole) - 4000, BLOCK_BYTES):
        data = bytearray(whole)
        data[at] ^= 1
        path.write_bytes(data)
        with pytest.raises(VariantFileError) as refused:
            pv.open(path).read()
        assert refused.value.reason == "damaged-file"
        assert refused.value.offset == at // BLOCK_BYTES * BLOCK_BYTES


def test_a_file_without_a_trailer_is_read(tmp_path: Path) -> None:
    vortex = pytest.importorskip("vortex")
    array = pv.parse_json(['{"a": 1}', None])
    vortex.io.write(pv.vortex.variant_table({"v": array}, plain=True), str(tmp_path / "a.vortex"))
    assert pv.open(tmp_path / "a.vortex").read().equals(array)
    assert pv.open(tmp_path / "a.vortex").inspect().checked == 0


def test_other_readers_do_not_see_the_trailer(tmp_path: Path) -> None:
    vortex = pytest.importorskip("vortex")
    array = pv.parse_json(['{"a": 1}', None, "[2]"])
    for layout in ("variant", "struct"):
        pv.write(tmp_path / f"{layout}.vortex", {"v": array, "id": [1, 2, 3]}, layout=layout)
        table = vortex.open(str(tmp_path / f"{layout}.vortex")).to_arrow().read_all()
        assert table.column_names == ["v", "id"]
        assert table["id"].to_pylist() == [1, 2, 3]
        mapped = vortex.open(str(tmp_path / f"{layout}.vortex"), memory_map=True)
        assert len(mapped) == 3


def test_a_panic_is_an_error() -> None:
    class PanicException(BaseException):
        """Raised by pyo3 for a panic in Rust."""

        __module__ = "pyo3_runtime"

    with pytest.raises(VariantFileError, match="index out of bounds"), vortex_errors("a.vortex"):
        raise PanicException("index out of bounds\nbacktrace")
    with pytest.raises(KeyboardInterrupt), vortex_errors("a.vortex"):
        raise KeyboardInterrupt
