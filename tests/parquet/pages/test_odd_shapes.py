"""Columns that writers get wrong: every encoding and codec, as pyarrow, DuckDB and polars read them."""

from __future__ import annotations

import random
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parquet_variant.files.parquet.pages.file_writer import PageFileWriter


def _nested(depth: int, wrap: Any, kind: pa.DataType, value: Any) -> tuple[pa.DataType, Any]:
    for _ in range(depth):
        kind, value = (pa.list_(kind), [value]) if wrap is list else (pa.struct([("f", kind)]), {"f": value})
    return kind, value


def _tables() -> dict[str, pa.Table]:
    chance = random.Random(1)
    lists, in_lists = _nested(20, list, pa.int32(), 1)
    structs, in_structs = _nested(30, dict, pa.int32(), 5)
    pairs = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.struct([("c", pa.string())])))])
    cells: list[Any] = [
        None,
        {"a": None, "b": []},
        {"a": 1, "b": None},
        {"a": None, "b": [{"c": None}, None, {"c": "x"}]},
    ]
    wide = {f"c{n}": pa.array([n, None, n + 1] if n % 2 else [str(n), "", None]) for n in range(1_000)}
    return {
        "nulls at both ends": pa.table({"a": [None] * 400 + [*range(200)] + [None] * 400, "s": [None] * 999 + ["x"]}),
        "nothing": pa.table({"a": pa.nulls(900, pa.int64()), "l": pa.nulls(900, pa.list_(pa.string()))}),
        "one row": pa.table({"a": [1], "s": ["x"], "l": [[1, None]], "n": pa.array([None], pa.int8())}),
        "huge texts": pa.table({"s": ["a" * 3_000_000, None, "", "b" * 2_000_001], "i": [1, 2, 3, None]}),
        "long lists": pa.table(
            {"l": [[*range(100_000)], None, [], [None]], "s": [["a", "b"] * 50_000, [], [""], None]}
        ),
        "deep lists": pa.table({"d": pa.array([in_lists, None, [], [[]], [None]], lists)}),
        "deep structs": pa.table({"d": pa.array([in_structs, None, {"f": None}], structs)}),
        "wide": pa.table(wide),
        "no rows": pa.table({"a": pa.array([], pa.int64()), "s": pa.array([], pa.string())}),
        "dictionary overflows": pa.table({"s": [uuid.UUID(int=chance.getrandbits(128)).hex for _ in range(3_000)]}),
        "structs and nulls": pa.table({"s": pa.array(cells * 50, pairs)}),
        "limits": pa.table(
            {
                "u64": pa.array([0, None, 2**64 - 1] * 50, pa.uint64()),
                "i64": [-(2**63), 2**63 - 1, None] * 50,
                "dec": pa.array([Decimal("-1.23"), None, Decimal("9" * 36 + ".99")] * 50, pa.decimal128(38, 2)),
                "bin": [b"", None, b"\xff\x00"] * 50,
                "bool": [True, None, False] * 50,
                "double": [float("inf"), None, -1.5] * 50,
            }
        ),
    }


TABLES = _tables()
FITTING = {
    "PLAIN": lambda kind: True,
    "DELTA_BINARY_PACKED": pa.types.is_integer,
    "DELTA_LENGTH_BYTE_ARRAY": lambda kind: pa.types.is_string(kind) or pa.types.is_binary(kind),
    "DELTA_BYTE_ARRAY": lambda kind: pa.types.is_string(kind) or pa.types.is_binary(kind),
}


def _leaves(field: pa.Field, path: str) -> list[tuple[str, pa.DataType]]:
    if pa.types.is_struct(field.type):
        return [leaf for child in field.type for leaf in _leaves(child, f"{path}.{child.name}")]
    if pa.types.is_list(field.type):
        return _leaves(field.type.value_field, f"{path}.list.element")
    return [(path, field.type)]


def _write(table: pa.Table, path: Path, **options: Any) -> None:
    """Row groups of no rows, of one, of half, and of the rest, in batches."""
    half = len(table) // 2
    with path.open("wb") as file:
        writer = PageFileWriter(file, table.schema, **options)
        for start, stop in ((0, 0), (0, 1), (1, half), (max(half, 1), len(table))):
            for at in range(start, stop, 400):
                writer.write_batch(table.slice(at, min(400, stop - at)))
            writer.end_row_group()
        writer.close({})


@pytest.mark.parametrize("encoding", [None, *FITTING])
@pytest.mark.parametrize("name", TABLES)
def test_every_reader_gets_the_values_back(name: str, encoding: str | None, tmp_path: Path) -> None:
    table, path = TABLES[name], tmp_path / "a.parquet"
    leaves = [leaf for field in table.schema for leaf in _leaves(field, field.name)]
    if encoding is None:
        options: dict[str, Any] = {"use_dictionary": True, "dictionary_bytes": 10_000}
    else:
        chosen = {leaf: encoding for leaf, kind in leaves if FITTING[encoding](kind)}
        options = {"use_dictionary": False, "column_encoding": chosen}
    for codec, page_bytes in (("zstd", 200), ("snappy", 200), ("none", 2 << 20), ("zstd", 2 << 20)):
        if name in ("wide", "long lists") and (page_bytes < 1_000 or encoding not in (None, "PLAIN")):
            continue
        _write(table, path, compression=codec, page_bytes=page_bytes, **options)
        assert pq.read_table(path).equals(table)
    if encoding in (None, "DELTA_BYTE_ARRAY", "DELTA_BINARY_PACKED") and path.exists():
        wanted = table.to_pydict()
        assert duckdb.sql(f"SELECT * FROM '{path}'").to_arrow_table().to_pydict() == wanted
        if not name.startswith("deep"):
            assert pl.read_parquet(path).to_dict(as_series=False) == wanted


@pytest.mark.parametrize("codec", ["gzip", "brotli", "lz4", "snappy", "zstd", "none"])
def test_every_codec(codec: str, tmp_path: Path) -> None:
    _write(TABLES["structs and nulls"], tmp_path / "a.parquet", compression=codec)
    assert pq.read_table(tmp_path / "a.parquet").equals(TABLES["structs and nulls"])
