"""Rows that the shredding specification calls INVALID: one rule over all operations (docs/reliability.md)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv

_FIELD = pa.struct([("value", pa.binary()), ("typed_value", pa.int64())])
_ELEMENT = pa.struct([("value", pa.binary()), ("typed_value", pa.string())])
_LIST = pa.struct([("value", pa.binary()), ("typed_value", pa.list_(_ELEMENT))])
_STORAGE = pa.struct(
    [("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.struct([("a", _FIELD), ("b", _LIST)]))]
)
_METADATA = {"metadata": bytes.fromhex("11020001026162")}
_SEVEN = b"\x0c\x07"
_OBJECT, _ARRAY = b"\x02\x01\x00\x00\x02" + _SEVEN, b"\x03\x01\x00\x02" + _SEVEN  # {"a": 7} and [7]
_GOOD = _METADATA | {"typed_value": {"a": {"typed_value": 1}, "b": {}}}

# Reason, row, and what the typed columns say: all of it, $.a and $.b.
INVALID: dict[str, tuple[str, dict[str, Any], str, int | None, list[str] | None]] = {
    "field set twice": (
        "both-set", {"typed_value": {"a": {"value": _SEVEN, "typed_value": 1}, "b": {}}}, '{"a":1}', 1, None,
    ),
    "list set twice": (
        "both-set", {"typed_value": {"a": {}, "b": {"value": _ARRAY, "typed_value": [{"typed_value": "x"}]}}},
        '{"b":["x"]}', None, ["x"],
    ),
    "element set twice": (
        "both-set", {"typed_value": {"a": {}, "b": {"typed_value": [{"value": _SEVEN, "typed_value": "x"}]}}},
        '{"b":["x"]}', None, ["x"],
    ),
    "a value that is not an object next to fields": (
        "non-object-value", {"value": _SEVEN, "typed_value": {"a": {"typed_value": 1}, "b": {}}}, '{"a":1}', 1, None,
    ),
    "field in both": (
        "shredded-field-in-value", {"value": _OBJECT, "typed_value": {"a": {"typed_value": 1}, "b": {}}}, '{"a":1}', 1,
        None,
    ),
    "field in the wrong one": (
        "shredded-field-in-value", {"value": _OBJECT, "typed_value": {"a": {}, "b": {}}}, "{}", None, None,
    ),
    "object in value": ("object-in-value", {"value": _OBJECT}, '{"a":7}', None, None),
    "array in value": (
        "array-in-value", {"typed_value": {"a": {}, "b": {"value": _ARRAY}}}, '{"b":[7]}', None, ["7"],
    ),
}  # fmt: skip

WHOLE: dict[str, Callable[[pv.VariantArray], Any]] = {
    "to_json": pv.to_json,
    "unshred_variant": pv.unshred_variant,
    "to_python": pv.to_python,
    "cast": lambda array: pv.variant_get(array, "$", "string"),
    "schema_of_variant": pv.schema_of_variant,
    "variant_explode": pv.variant_explode,
    "equals": lambda array: pv.equals(array, array),
    "variant_set": lambda array: pv.variant_set(array, "$.c", 1),
    "infer": pv.infer_shredding_schema,
    "shred_variant": lambda array: pv.shred_variant(array, "c bigint"),
    "element": lambda array: array[1],
}


def _array(row: dict[str, Any]) -> pv.VariantArray:
    return pv.VariantArray(pa.array([_GOOD, _METADATA | row], _STORAGE))


@pytest.fixture(params=INVALID)
def case(request: pytest.FixtureRequest) -> Any:
    return INVALID[request.param]


@pytest.mark.parametrize("name", WHOLE)
def test_whole_values_are_refused(name: str, case: Any) -> None:
    with pytest.raises(pv.ConflictError) as caught:
        WHOLE[name](_array(case[1]))
    assert caught.value.reason == case[0]


def test_the_typed_columns_are_right_where_asked(case: Any) -> None:
    array = _array(case[1])
    assert pv.to_json(array, on_conflict="typed").to_pylist() == ['{"a":1}', case[2]]
    assert pv.unshred_variant(array, on_conflict="typed")[1].to_json() == case[2]
    assert pv.to_json(array, errors="null").to_pylist() == ['{"a":1}', None]
    assert [fault["reason"] for fault in pv.validate(array).to_pylist()] == [case[0]]


def test_paths_follow_the_typed_columns(case: Any, tmp_path: Path) -> None:
    _, row, _, a, b = case
    array = _array(row)
    assert pv.variant_get(array, "$.a", "int").to_pylist() == [1, a]
    assert pv.variant_get(array, "$.b", "array<string>").to_pylist() == [None, b]
    assert pv.variant_type(array).to_pylist() == ["object", "object"]
    pq.write_table(pa.table({"v": array.storage}), tmp_path / "x.parquet")
    columns = {"a": "$.a:int", "b": "$.b:array<string>"}
    found = pv.open(tmp_path / "x.parquet").scan(columns).to_arrow()
    assert found.to_pylist() == [{"a": 1, "b": None}, {"a": a, "b": b}]
    for value in (1, 7):
        for skipping in (True, False):
            rows = pv.open(tmp_path / "x.parquet").scan(columns, f"a = {value}", skipping=skipping).to_arrow()
            assert rows.num_rows == [1, a].count(value)
    with pytest.raises(pv.ConflictError):
        pv.to_json(pv.open(tmp_path / "x.parquet").read())


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"typed_value": {"a": {}, "b": {"typed_value": [{}, {"typed_value": "x"}]}}}, '{"b":[null,"x"]}'),
        ({"typed_value": {"a": None, "b": None}}, "{}"),
        ({}, "null"),
    ],
)
def test_what_is_missing_where_it_may_not_be(row: dict[str, Any], text: str) -> None:
    array = _array(row)
    assert pv.to_json(array).to_pylist()[1] == pv.unshred_variant(array)[1].to_json() == text
    assert pv.variant_get(array, "$", "variant")[1].to_json() == text
    assert pv.variant_get(array, "$.a", "int").to_pylist() == [1, None]
