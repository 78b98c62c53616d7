"""arrow-rs (parquet-variant, parquet-variant-compute, parquet-variant-json): parse, shred, get, unshred, to_json.

Owns the peer's process and the comparison, one thread each. The crate is in ``benchmarks/arrow_rs``; without cargo
there is nothing to measure. Results that differ in size are reported below the table.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import parquet_variant as pv
from benchmarks.data import ROOT, DataSet, data_sets, scratch
from benchmarks.files import schema_of
from benchmarks.harness import OURS, Work

PEER = "arrow-rs"
_CRATE = ROOT / "benchmarks/arrow_rs"


@cache
def _process() -> subprocess.Popen[str]:
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=_CRATE, check=True)
    metadata = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--no-deps"],
        cwd=_CRATE, check=True, capture_output=True, text=True,
    )  # fmt: skip
    program = Path(json.loads(metadata.stdout)["target_directory"]) / "release/arrow_rs_peer"
    return subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(command: str) -> int:
    """Send a command and return the count; raises `RuntimeError` with arrow-rs's error."""
    process = _process()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(command + "\n")
    process.stdin.flush()
    answer = process.stdout.readline().strip()
    if not answer.isdigit():
        raise RuntimeError(f"{command}: {answer}")
    return int(answer)


def works() -> Iterator[Work]:
    if shutil.which("cargo") is None:
        return
    for data in data_sets():
        schema = schema_of(data)
        ask(f"load {_exchange_file(data, schema)}")
        plain = pv.parse_json(data.lines, dictionary="batch")
        shredded = pv.shred_variant(plain, schema)
        for name, ours in (
            ("parse_json", partial(_length, pv.parse_json, data.lines, threads=1)),
            ("shred_variant", partial(_length, pv.shred_variant, plain, schema, threads=1)),
            ("unshred_variant", partial(_length, pv.unshred_variant, shredded, threads=1)),
            ("to_json", partial(_text_bytes, plain)),
        ):
            yield _work(name, data, ours, partial(ask, name))
        for form, array in (("shredded", shredded), ("unshredded", plain)):
            yield _work(
                f"variant_get of ten paths, {form}", data, partial(_ours_get, array, data.paths),
                partial(_theirs_get, form, len(data.paths)),
            )  # fmt: skip
        yield _work(
            "variant_get of ten paths, shredded, read for the first time", data,
            partial(_first_get, shredded, data.paths), partial(_theirs_get, "shredded", len(data.paths)),
        )  # fmt: skip


def _work(name: str, data: DataSet, ours: Any, theirs: Any) -> Work:
    return Work(
        f"arrow-rs: {name}, 1 thread, {data.name}", {OURS: ours, PEER: theirs}, {PEER: 1.0}, _compared, data.size
    )


def _compared(who: str, ours: int, theirs: int) -> str:
    return f"{who}: {'equal counts' if ours == theirs else f'{theirs:,} instead of {ours:,}'}."


def _length(operation: Any, *arguments: Any, **options: Any) -> int:
    return len(operation(*arguments, **options))


def _text_bytes(array: Any) -> int:
    return int(pc.sum(pc.binary_length(pv.to_json(array, threads=1))).as_py())


def _ours_get(array: Any, paths: list[tuple[str, str]]) -> int:
    return sum(len(array) - pv.variant_get(array, path, kind, errors="null").null_count for path, kind in paths)


def _first_get(array: Any, paths: list[tuple[str, str]]) -> int:
    """Read paths from a slice, which remembers nothing of earlier reads of the array."""
    return _ours_get(array[:], paths)


def _theirs_get(form: str, count: int) -> int:
    return sum(ask(f"get_{form} {number}") for number in range(count))


def _exchange_file(data: DataSet, schema: pv.ShreddingSchema) -> Path:
    """Write the lines, the shape and the paths as an Arrow file."""
    lines = data.lines.cast(pa.string())
    shape = pa.nulls(len(lines), _arrow_type(schema))
    paths = "\n".join(f"{path.removeprefix('$.')}\t{kind}" for path, kind in data.paths)
    table = pa.table({"json": lines, "shape": shape}).replace_schema_metadata({"paths": paths})
    file = scratch() / f"{data.name}.arrow"
    with pa.OSFile(str(file), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return file


def _arrow_type(schema: pv.ShreddingSchema) -> pa.DataType:
    """Return the type that `shred_variant` of arrow-rs takes; it has no columns without a type."""
    if schema.type is not None:
        return schema.type
    if schema.element is not None:
        return pa.list_(_arrow_type(schema.element))
    return pa.struct([(name, _arrow_type(child)) for name, child in schema.fields if _has_type(child)])


def _has_type(schema: pv.ShreddingSchema) -> bool:
    if schema.type is not None:
        return True
    children = [schema.element] if schema.element is not None else [child for _, child in schema.fields]
    return any(map(_has_type, children))
