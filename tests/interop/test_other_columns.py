"""Columns of any type next to a Variant are read as they were written."""

from __future__ import annotations

import tempfile

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.errors import SchemaError
from random_tables import PRIMITIVES, tables

FORMATS = pytest.mark.parametrize("files", ["parquet", pytest.param("vortex", id="vortex")])
KINDS = tuple(kind for kind in PRIMITIVES if kind != pa.binary(3))  # which Vortex has not


def rows_written(files: str, table: pa.Table) -> pa.Table:
    with tempfile.TemporaryDirectory() as folder:
        variants = pv.VariantArray.from_pylist([{"a": row} for row in range(len(table))])
        columns = {name: table[name] for name in table.column_names} | {"v": variants}
        pv.write(f"{folder}/a", columns, format=files)
        read = pv.open(f"{folder}/a", format=files).to_arrow()
    read.validate(full=True)
    assert pv.VariantArray.from_arrow(read, "v").equals(variants)
    return read.select(table.column_names)


@FORMATS
@settings(max_examples=30)
@given(data=st.data())
def test_any_columns_come_back(files: str, data: st.DataObject) -> None:
    table = data.draw(tables(KINDS))
    assert repr(rows_written(files, table).to_pylist()) == repr(table.to_pylist())


@FORMATS
@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([[None], [None] * 3, None], pa.list_(pa.null())),
        ([[("a", None)], [], [("b", None), ("c", None)]], pa.map_(pa.string(), pa.null())),
        ([{"n": [None, None]}, None], pa.struct({"n": pa.list_(pa.null())})),
    ],
)
def test_lists_of_nulls_come_back(files: str, values: list, kind: pa.DataType) -> None:
    table = pa.table({"x": pa.array(values, kind)})
    assert rows_written(files, table).to_pylist() == table.to_pylist()


@pytest.mark.parametrize("kind", [pa.duration("s"), pa.binary(2), pa.list_(pa.struct({"a": pa.duration("s")}))])
def test_types_that_vortex_has_not_are_reported(kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match="which Vortex does not support"):
        rows_written("vortex", pa.table({"x": pa.nulls(2, kind)}))
