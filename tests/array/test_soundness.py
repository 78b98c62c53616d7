"""Arrow data whose buffers point outside of one another is refused where it comes in, not followed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import parquet_variant as pv

_METADATA = pv.Variant.from_python({"a": 1}).metadata
_SIZE = 1 << 16
_BINARY = pa.binary()


def _binary(offsets: list[int], kind: pa.DataType = _BINARY, size: int = _SIZE) -> pa.Array:
    width = np.int64 if "large" in str(kind) else np.int32
    buffers = [None, pa.py_buffer(np.array(offsets, width)), pa.py_buffer(b"\x0c\x01" * (size // 2))]
    return pa.Array.from_buffers(kind, len(offsets) - 1, buffers)


def _list(offsets: list[int], elements: pa.Array) -> pa.Array:
    element = pa.field("element", elements.type)
    buffers = [None, pa.py_buffer(np.array(offsets, np.int32))]
    return pa.Array.from_buffers(pa.list_(element), len(offsets) - 1, buffers, children=[elements])


def _storage(**columns: pa.Array) -> pa.StructArray:
    rows = len(next(iter(columns.values())))
    columns = {"metadata": pa.array([_METADATA] * rows), **columns}
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))


def _metadata(index: int) -> pa.Array:
    indices = pa.array([0, index], pa.int32())
    return pa.DictionaryArray.from_arrays(indices, pa.array([_METADATA]), safe=False)


_NONE = pa.nulls(2, pa.binary())
_PAIR = pa.StructArray.from_arrays([_NONE, pa.array([1, 2])], ["value", "typed_value"])
_UNSOUND: dict[str, Callable[[], pa.StructArray]] = {
    "value offsets go back": lambda: _storage(value=_binary([0, _SIZE, 0])),
    "value offsets go back, large": lambda: _storage(value=_binary([0, _SIZE, 0], pa.large_binary())),
    "text offsets go back": lambda: _storage(value=_NONE, typed_value=_binary([0, _SIZE, 0], pa.string())),
    "list offsets go back": lambda: _storage(value=_NONE, typed_value=_list([0, 2, 0], _PAIR)),
    "offsets inside of a list go back": lambda: _storage(
        value=_NONE, typed_value=_list([0, 1, 2], pa.StructArray.from_arrays([_binary([0, _SIZE, 0])], ["value"]))
    ),
    "index outside of the dictionary": lambda: _storage(metadata=_metadata(1), value=_binary([0, 2, 4])),
    "index below zero": lambda: _storage(metadata=_metadata(-1), value=_binary([0, 2, 4])),
}  # fmt: skip


@pytest.mark.parametrize("name", _UNSOUND)
def test_unsound_storage_is_refused(name: str) -> None:
    storage = _UNSOUND[name]()
    operations: list[Callable[[Any], Any]] = [pv.VariantArray, pv.to_json, pv.infer_shredding_schema, pv.validate]
    for operation in operations:
        with pytest.raises(pv.SchemaError) as caught:
            operation(storage)
        assert caught.value.reason == "bad-arrow"
    table = pa.table({"v": storage})
    with pytest.raises(pv.SchemaError, match="damaged"):
        pv.VariantArray.from_arrow(table)


def test_an_offset_without_rows_is_not_followed() -> None:
    """The only offset of an empty list in an empty list leads far away; pyarrow's `nbytes` would follow it."""
    inner = _list([2**31 - 1], pa.StructArray.from_arrays([pa.nulls(0, pa.binary())], ["value"]))
    element = pa.StructArray.from_arrays([pa.nulls(0, pa.binary()), inner], ["value", "typed_value"])
    with pytest.raises(pv.SchemaError) as caught:
        pv.VariantArray(_storage(value=pa.nulls(0, pa.binary()), typed_value=_list([0], element)))
    assert caught.value.reason == "bad-arrow"


def test_a_sound_part_of_an_unsound_buffer_is_read() -> None:
    values = _binary([0, 2, 4, 2])
    assert pv.VariantArray(_storage(value=values.slice(0, 2))).to_pylist() == [1, 1]


def test_unsound_text_is_refused() -> None:
    with pytest.raises(pv.SchemaError, match="damaged"):
        pv.parse_json(_binary([0, _SIZE, 0], pa.string()))
    with pytest.raises(pv.SchemaError, match="damaged"):
        pv.cast_to_variant(_binary([0, _SIZE, 0], pa.string()))


def test_text_that_is_not_utf8_is_a_fault_of_its_row_only() -> None:
    texts = pa.Array.from_buffers(
        pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"x\xff")]
    )
    array = pv.VariantArray(_storage(value=_NONE, typed_value=texts))
    assert array[0] is not None and array[0].to_python() == "x"
    assert pv.validate(array)["row"].to_pylist() == [1]


def null_rows_over_an_empty_dictionary() -> pa.StructArray:
    indices = pa.array([0, 0, 0], pa.int32())
    metadata = pa.DictionaryArray.from_arrays(indices, pa.array([], pa.binary()), safe=False)
    return pa.StructArray.from_arrays([metadata, pa.array([b""] * 3)], ["metadata", "value"], mask=pa.array([True] * 3))


@pytest.mark.parametrize(
    "operation",
    [
        pv.to_json, pv.to_python, pv.variant_type, pv.schema_of_variant, pv.variant_normalize, pv.validate,
        pv.infer_shredding_schema, pv.strip_nulls, lambda array: pv.variant_get(array, "$.a", "int"),
        lambda array: pv.shred_variant(array, "a int"), lambda array: pv.variant_set(array, "$.a", 1),
    ],
)  # fmt: skip
def test_null_rows_may_index_an_empty_dictionary(operation):
    """DuckDB writes a column of SQL NULLs so."""
    array = pv.VariantArray(null_rows_over_an_empty_dictionary())
    assert array.null_count == 3
    operation(array)


@pytest.mark.skipif(int(duckdb.__version__.split(".")[0]) < 2, reason="DuckDB 1.5 writes a NULL as a Variant null")
def test_files_of_null_rows_of_duckdb_are_read(tmp_path):
    for version in ("V1", "V2"):
        file = tmp_path / f"{version}.parquet"
        select = "SELECT NULL::VARIANT AS v FROM range(5)"
        duckdb.sql(f"COPY ({select}) TO '{file}' (FORMAT parquet, PARQUET_VERSION {version})")
        assert pv.open(file).read().null_count == 5
        assert pv.open(file).scan({"a": "$.a:int"}).to_arrow()["a"].null_count == 5


@pytest.mark.parametrize("index", [7, -(2**31), 2**40])
@pytest.mark.parametrize("shredded", [False, True])
def test_under_a_null_row_an_index_may_be_any_number(index: int, shredded: bool) -> None:
    indices = pa.array([0, index], pa.int32() if abs(index) <= 2**31 else pa.int64())
    metadata = pa.DictionaryArray.from_arrays(indices, pa.array([_METADATA]), safe=False)
    columns = {"metadata": metadata, "value": pa.array([b"\x0c\x01", b""])}
    if shredded:
        columns |= {"value": _NONE, "typed_value": pa.array([1, None])}
    storage = pa.StructArray.from_arrays(list(columns.values()), list(columns), mask=pa.array([False, True]))
    array = pv.VariantArray(storage)
    assert pv.to_json(array).to_pylist() == ["1", None]
    assert pv.variant_type(array).null_count == 1
    assert pv.variant_get(array, "$", "bigint").to_pylist() == [1, None]
    assert pv.shred_variant(array, "bigint").to_pylist() == [1, None]
    assert pv.validate(array).num_rows == 0
