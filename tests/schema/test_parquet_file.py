"""The schema of a column of a Parquet file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from parquet_variant.errors import SchemaError
from parquet_variant.layouts.reference.rows import array_of_rows
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.storages import storage_type

DDL = ShreddingSchema.from_ddl
SCHEMA = DDL("a bigint, t array<struct<u: uuid, n: timestamp_nanos>>, v variant")


def write(path: Path, **columns: pa.DataType) -> Path:
    pq.write_table(pa.table({name: array_of_rows([], arrow) for name, arrow in columns.items()}), path)
    return path


@pytest.mark.parametrize("layout", ["final", "draft-paths", "draft-object"])
def test_the_only_variant_column_is_found_in_every_layout(layout: Any, tmp_path: Path) -> None:
    file = write(
        tmp_path / "f.parquet", id=pa.int64(), s=pa.struct({"x": pa.int8()}), v=storage_type(SCHEMA.type_tree(), layout)
    )
    assert ShreddingSchema.from_parquet(file) == SCHEMA
    assert ShreddingSchema.from_parquet(str(file), "v") == SCHEMA


def test_a_column_inside_of_structs_is_named_with_dots(tmp_path: Path) -> None:
    inner = storage_type(DDL("int").type_tree(), "final")
    file = write(tmp_path / "f.parquet", v=storage_type(SCHEMA.type_tree(), "final"), s=pa.struct({"w": inner}))
    assert ShreddingSchema.from_parquet(file, "s.w") == DDL("int")
    with pytest.raises(SchemaError, match=r"2 Variant columns \(v, s.w\)"):
        ShreddingSchema.from_parquet(file)


def test_no_variant_column_and_unknown_names_are_errors(tmp_path: Path) -> None:
    file = write(tmp_path / "f.parquet", id=pa.int64(), s=pa.struct({"x": pa.int8()}))
    for column in (None, "id", "v", "s"):
        with pytest.raises(SchemaError):
            ShreddingSchema.from_parquet(file, column)


def test_what_the_specification_forbids_is_reported_for_a_named_column(tmp_path: Path) -> None:
    storage = pa.struct({"metadata": pa.binary(), "value": pa.binary(), "typed_value": pa.uint32()})
    with pytest.raises(SchemaError) as caught:
        ShreddingSchema.from_parquet(write(tmp_path / "f.parquet", v=storage), "v")
    assert caught.value.reason == "unsupported-type"
