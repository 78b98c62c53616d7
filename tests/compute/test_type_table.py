"""Every row of the type table names the same type in each format."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.tables.iceberg.metadata.schema import parse_type, type_of_arrow
from parquet_variant.tables.schema import arrow_type, from_ddl
from parquet_variant.types import TYPE_OF_ARROW, TypeInfo

ROWS = [(arrow, row) for arrow, row in TYPE_OF_ARROW.items()]


@pytest.mark.parametrize(("arrow", "row"), ROWS, ids=lambda part: str(getattr(part, "type", "")))
def test_the_names_of_a_type(arrow: pa.DataType, row: TypeInfo) -> None:
    for name in row.ddl:
        assert pv.ShreddingSchema.of(f"x {name}").to_arrow().field("x").type == arrow
        assert pv.variant_get(pv.parse_json(["null"]), "$", name).type == arrow
    if row.iceberg is not None:
        assert type_of_arrow(arrow) == parse_type(row.iceberg)
        narrow = row.type in ("int8", "int16")
        assert arrow_type(parse_type(row.iceberg)) == (pa.int32() if narrow else arrow)
    if row.delta is not None:
        assert arrow_type(from_ddl(f"x {row.ddl[0]}").fields[0].type) == arrow


@pytest.mark.parametrize(("arrow", "row"), ROWS, ids=lambda part: str(getattr(part, "type", "")))
def test_the_parquet_type_of_a_type(arrow: pa.DataType, row: TypeInfo, tmp_path) -> None:
    pv.write(tmp_path / "x.parquet", {"x": pa.nulls(1, arrow)})
    leaf = pq.read_schema(tmp_path / "x.parquet").field("x").type
    column = pq.ParquetFile(tmp_path / "x.parquet").schema.column(0)
    if isinstance(arrow, pa.UuidType) and leaf == arrow.storage_type:
        pytest.skip("this version of pyarrow reads UUIDs as bytes")
    assert leaf == arrow
    assert row.parquet.startswith(column.physical_type.replace("FIXED_LEN_BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY(16)"))
