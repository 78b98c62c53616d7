"""Files that shred deeper than pyarrow's default limit on schemas are read by everything that reads files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.errors import VariantFileError
from parquet_variant.layouts.parquet_reader import MAX_SCHEMA_DEPTH

# Levels of nesting, each deeper than the 100 levels of a schema that pyarrow 26 reads by default.
LEVELS = {"objects": [49, 199], "arrays": [33, 199], "both": [20, 100]}


def nested_value(kind: str, levels: int, leaf: object) -> object:
    value = leaf
    for level in range(levels):
        in_object = kind == "objects" or (kind == "both" and level % 2)
        value = {"a": value} if in_object else [value]
    return value


def deep_storage(kind: str, levels: int, numbers: list[int]) -> pa.StructArray:
    """Shredded storage, built by hand: writers of this library do not shred as deep."""
    unset = pa.nulls(len(numbers), pa.binary())
    group = pa.StructArray.from_arrays([unset, pa.array(numbers)], ["value", "typed_value"])
    for level in range(levels):
        if kind == "objects" or (kind == "both" and level % 2):
            typed = pa.StructArray.from_arrays([group], fields=[pa.field("a", group.type, nullable=False)])
        else:
            offsets = pa.array(range(len(numbers) + 1), pa.int32())
            element = pa.field("element", group.type, nullable=False)
            typed = pa.ListArray.from_arrays(offsets, group, type=pa.list_(element))
        group = pa.StructArray.from_arrays([unset, typed], ["value", "typed_value"])
    metadata = pv.parse_json([json.dumps(nested_value(kind, levels, 1))]).storage.field("metadata")
    name = metadata.cast(pa.binary())[0].as_py()
    return pa.StructArray.from_arrays(
        [pa.array([name] * len(numbers)), group.field("value"), group.field("typed_value")],
        fields=[pa.field("metadata", pa.binary(), False), *group.type],
    )


def write_deep(path: Path, kind: str, levels: int, rows: int = 5) -> list[object]:
    """Write a deep file with pyarrow, and return its values."""
    path.parent.mkdir(exist_ok=True)
    table = pa.table({"id": pa.array(range(rows)), "v": deep_storage(kind, levels, list(range(rows)))})
    pq.write_table(table, path, store_schema=False)
    return [nested_value(kind, levels, number) for number in range(rows)]


DEEP = [(kind, levels) for kind, many in LEVELS.items() for levels in many]


@pytest.mark.parametrize(("kind", "levels"), DEEP)
def test_every_reader_of_files_reads_deep_ones(tmp_path, kind, levels):
    path = tmp_path / "deep.parquet"
    values = write_deep(path, kind, levels)
    assert pv.open(path).read().to_pylist() == values
    assert pv.open(path).to_arrow().column("id").to_pylist() == list(range(5))
    in_objects = [kind == "objects" or (kind == "both" and level % 2) for level in reversed(range(levels))]
    steps = "".join(".a" if in_object else "[0]" for in_object in in_objects)
    found = pv.open(path).scan({"n": f"${steps}:bigint"}, where="id >= 2").to_arrow()
    assert found.column("n").to_pylist() == [2, 3, 4]
    pv.open(path).annotate()
    report = pv.open(path).validate()
    assert report.ok, str(report)
    assert str(pv.open(path).inspect())
    assert pv.ShreddingSchema.from_parquet(path).depth >= levels


@pytest.mark.parametrize(("kind", "levels"), DEEP)
def test_deep_files_are_rewritten(tmp_path, kind, levels):
    path, copy = tmp_path / "deep.parquet", tmp_path / "copy.parquet"
    values = write_deep(path, kind, levels)
    for options in ({"schema": "infer"}, {"layout": "unshredded"}, {"schema": "a bigint"}):
        pv.open(path).rewrite(copy, mode="overwrite", **options)
        assert pv.open(copy).read().to_pylist() == values
    pv.open(path).annotate()
    assert pv.open(path).read().to_pylist() == values


def test_deep_rows_are_read_next_to_rows_that_are_appended(tmp_path):
    values = write_deep(tmp_path / "table" / "deep.parquet", "objects", 60)
    lines = tmp_path / "lines.ndjson"
    lines.write_text("".join(json.dumps(value) + "\n" for value in values))
    pv.ingest(lines, tmp_path / "table", mode="append")
    assert pv.open(tmp_path / "table").read().to_pylist() == values + values


@pytest.mark.parametrize("command", ["cat", "inspect", "validate", "query"])
def test_commands_read_deep_files(tmp_path, command):
    path = tmp_path / "deep.parquet"
    write_deep(path, "objects", 60)
    pv.open(path).annotate()
    arguments = [f"SELECT v:{'.'.join('a' * 60)}::int AS n FROM '{path}'"] if command == "query" else [str(path)]
    program = [sys.executable, "-m", "parquet_variant.cli", command]
    done = subprocess.run([*program, *arguments], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_a_deep_schema_that_a_writer_kept_for_arrow_does_not_hide_the_rows(tmp_path):
    """pyarrow refuses its own description of a schema, which is no part of the format, where it is this deep."""
    path = tmp_path / "deep.parquet"
    pq.write_table(pa.table({"v": deep_storage("objects", 80, [1, 2])}), path)
    assert pv.open(path).read().to_pylist() == [nested_value("objects", 80, number) for number in (1, 2)]


def test_a_schema_too_deep_to_read_is_not_called_damaged(tmp_path):
    path = tmp_path / "deep.parquet"
    column = pa.array([1])
    for _ in range(MAX_SCHEMA_DEPTH):
        column = pa.StructArray.from_arrays([column], ["a"])
    pq.write_table(pa.table({"a": column}), path, store_schema=False)
    for read in (
        (lambda path: pv.open(path).read()),
        (lambda path: pv.open(path).to_arrow()),
        (lambda path: pv.open(path).inspect()),
        pv.ShreddingSchema.from_parquet,
    ):
        with pytest.raises(VariantFileError) as caught:
            read(path)
        assert caught.value.reason == "too-deep" and "damaged" not in str(caught.value)
