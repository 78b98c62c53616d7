"""Columns that have no Arrow form are refused by every function, with an error that says what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import parquet_variant as pv

OBJECTS = pl.Series("o", [{1}, 2], dtype=pl.Object)
WIDE = pl.Series("i", [1, 2**100], dtype=pl.Int128)
MIXED = pd.Series([1, "x", {"a": [1]}, None, 2.5], dtype=object)


@pytest.mark.parametrize("column", [OBJECTS, WIDE, MIXED], ids=["objects", "int128", "mixed"])
@pytest.mark.parametrize(
    "function",
    [
        pv.cast_to_variant,
        pv.VariantArray.from_arrow,
        pv.to_json,
        lambda column: pv.sql("FROM t", t={"c": column}),
    ],
)
def test_columns_without_an_arrow_form_are_refused(function: Callable[[Any], Any], column: Any) -> None:
    with pytest.raises(pv.VariantError):
        function(column)


def test_polars_objects_are_not_written_as_memory_addresses(tmp_path: Path) -> None:
    for data in (pl.DataFrame({"a": [1, 2], "o": OBJECTS}), {"o": OBJECTS}):
        with pytest.raises(pv.SchemaError, match="Python objects"):
            pv.write(tmp_path / "o.parquet", data)
    assert not list(tmp_path.iterdir())


def test_python_objects_of_such_columns_are_converted() -> None:
    assert pv.from_python(WIDE).to_pylist() == [1, 2**100]
    assert pv.from_python(MIXED).to_pylist() == [1, "x", {"a": [1]}, None, 2.5]
    assert pv.VariantArray.from_pandas(MIXED).to_pylist() == [1, "x", {"a": [1]}, None, 2.5]
    assert pv.parse_json(pd.Series(["1", b"2", None], dtype=object)).to_pylist() == [1, 2, None]
    with pytest.raises(pv.SchemaError, match=r"found int: use from_python .*row 0"):
        pv.parse_json(MIXED)


@pytest.mark.parametrize("field", ["metadata", "value"])
@pytest.mark.parametrize("rows", [0, 2])
def test_columns_of_nulls_instead_of_bytes_are_refused(field: str, rows: int) -> None:
    children = {name: pa.array([b"\1\0\0"] * rows, pa.binary()) for name in ("metadata", "value")} | {
        field: pa.nulls(rows)
    }
    storage = pa.StructArray.from_arrays(list(children.values()), names=list(children))
    for make in (pv.VariantArray, pv.VariantArray.from_arrow):
        with pytest.raises(pv.SchemaError):
            make(storage)
    with pytest.raises(pv.SchemaError):
        pv.VariantArray.from_arrow(pa.table({"v": storage}), "v")
