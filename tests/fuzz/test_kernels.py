"""One target for each kernel that takes bytes from outside: it ends in a value or in our error, as the reference does.

Bounded by the profile ``ci``; ``HYPOTHESIS_PROFILE=fuzz`` (`make fuzz`) runs each for longer.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from fuzz.hostile import AFTER, BEFORE, documents, hostile, outcome, surrounded
from parquet_variant.encoding.edits import Edit, EditKind, apply_edit
from parquet_variant.encoding.json_reader import parse_json as parse_one
from parquet_variant.encoding.validate import find_faults
from parquet_variant.encoding.walk import walk
from parquet_variant.functions.editing import edited
from parquet_variant.layouts import storages as reference
from parquet_variant.layouts.rows import rows_of_array
from parquet_variant.shredding.profile import Profile

SCHEMAS = [
    "struct<a bigint, b string>",
    "struct<a array<int>, c struct<a variant, b decimal(9, 2)>>",
    "array<string>",
    "array<struct<a int, b array<variant>>>",
    "bigint",
    "decimal(38, 10)",
    "string",
    "timestamp",
]
PATHS = ["$", "$.a", "$.b[1]", "$[0]", "$.a.b.c", "$[*]", "$.a[*].b", "$['']"]
TYPES = [
    "variant",
    "int",
    "string",
    "double",
    "decimal(20, 3)",
    "boolean",
    "timestamp",
    "array<int>",
    "struct<a: int>",
    "map<string, string>",
]


def _is_readable(value: pv.Variant) -> bool:
    try:
        for _ in walk(value.metadata, value.value, 0, len(value.value)):
            pass
    except pv.MalformedVariantError:
        return False
    return True


def _reasons(value: pv.Variant) -> set[str]:
    return {fault.reason for fault in find_faults(value.metadata, value.value)}


def _own(array: pa.Array) -> Any:
    """The hostile row of a result, after its neighbours were looked at."""
    assert not array[2].is_valid
    try:
        return array[1].as_py()
    except OverflowError:  # an Arrow timestamp that Python has no object for
        return pv.CastError, "out-of-python"


@given(
    documents(),
    st.sampled_from(["decimal", "double"]),
    st.sampled_from(["error", "replace"]),
    st.sampled_from([3, 1000]),
)
def test_parse_json(text: bytes, floats: Any, on_lone_surrogate: Any, max_depth: int) -> None:
    options = {"floats": floats, "on_lone_surrogate": on_lone_surrogate, "max_depth": max_depth}
    texts = pa.array([b"[1]", text, None, b"2"], pa.binary())
    found = pv.try_parse_json(texts, **options)
    assert [found[0].to_json(), found[2], found[3].to_json()] == ["[1]", None, "2"]
    expected = outcome(lambda: parse_one(text, **options))
    if isinstance(expected, pv.Variant):
        assert (found[1].metadata, found[1].value) == (expected.metadata, expected.value)
        return
    assert found[1] is None
    with pytest.raises(pv.JsonError) as caught:
        pv.parse_json(texts, **options)
    with pytest.raises(pv.JsonError) as by_reference:
        parse_one(text, **options)
    assert (caught.value.row, caught.value.reason, caught.value.offset) == (1, expected[1], by_reference.value.offset)


@given(hostile())
def test_to_json(value: pv.Variant) -> None:
    found = outcome(lambda: pv.to_json(surrounded(value)))
    expected = outcome(value.to_json)
    if isinstance(found, pa.Array):
        assert [found[0].as_py(), found[3].as_py()] == [BEFORE.to_json(), AFTER.to_json()]
        found = _own(found)
    # The kernel writes times outside the day.
    assert found == expected or "bad-time" in _reasons(value)


@given(hostile(), st.sampled_from(SCHEMAS))
def test_shred(value: pv.Variant, ddl: str) -> None:
    schema = pv.ShreddingSchema.from_ddl(ddl)
    values = [BEFORE, value, None, AFTER]
    found = outcome(lambda: pv.shred_variant(surrounded(value), schema).storage)
    expected = outcome(lambda: reference.shredded_storage(values, schema, "final"))
    if isinstance(expected, tuple) and not isinstance(found, tuple):  # names and bytes that it only copies
        assert _reasons(value) & {"bad-utf8", "overlap"}
    elif isinstance(found, tuple) or isinstance(expected, tuple):
        assert found == expected
    elif "trailing-bytes" in _reasons(value):  # which it may drop
        assert _values(found) == _values(expected) or "overlap" in _reasons(value)
    else:
        assert rows_of_array(found) == rows_of_array(expected)


@given(hostile(), hostile(), st.sampled_from(["error", "typed"]))
def test_unshred(value: pv.Variant, residual: pv.Variant, on_conflict: Any) -> None:
    field = pa.struct([("value", pa.binary()), ("typed_value", pa.int64())])
    element = pa.struct([("value", pa.binary()), ("typed_value", pa.string())])
    fields = pa.struct([("a", field), ("b", pa.struct([("value", pa.binary()), ("typed_value", pa.list_(element))]))])
    storage = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", fields)])
    good = {"metadata": bytes.fromhex("11020001026162"), "typed_value": {"a": {"typed_value": 1}, "b": {}}}
    whole, metadata, part = (
        {"metadata": value.metadata, "value": value.value},
        {"metadata": value.metadata},
        residual.value,
    )
    shapes = [
        whole,
        whole | {"typed_value": {"a": {"value": part}, "b": {}}},
        whole | {"typed_value": {"a": {"typed_value": 1}, "b": {"value": part}}},
        metadata | {"typed_value": {"a": {}, "b": {"typed_value": [{"value": value.value}, {"typed_value": "x"}]}}},
    ]
    for shape in shapes:
        array = pa.array([good, shape, None, good], storage)
        found = outcome(lambda array=array: list(pv.unshred_variant(pv.VariantArray(array), on_conflict=on_conflict)))
        expected = outcome(lambda array=array: reference.variants_of_storage(array, on_conflict))
        if isinstance(expected, tuple) and isinstance(found, list):  # a name that no field uses may be malformed
            assert found[0].to_json() == found[3].to_json() == '{"a":1}' and found[2] is None
            assert find_faults(value.metadata, value.value) or find_faults(value.metadata, residual.value)
        else:
            assert _read(found) == _read(expected)


def _values(storage: pa.StructArray) -> Any:
    return outcome(lambda: _read(reference.variants_of_storage(storage)))


def _read(values: Any) -> Any:
    """Values by meaning, malformed ones as such."""
    if isinstance(values, tuple):
        return values
    return [None if value is None else outcome(value.to_json) for value in values]


@given(hostile(), st.sampled_from(PATHS), st.sampled_from(TYPES))
def test_variant_get(value: pv.Variant, path: str, kind: str) -> None:
    def by_reference() -> Any:
        return pv.variant_get(value, path, kind)

    def by_kernel() -> Any:
        found = pv.variant_get(array, path, kind)
        return found[1] if isinstance(found, pv.VariantArray) else _own(found)

    array = pv.VariantArray.from_variants([None, value, None])
    found, expected = outcome(by_kernel), outcome(by_reference)
    if isinstance(expected, tuple):  # bytes that do not matter to the answer are not looked at
        assert isinstance(found, tuple) or expected[0] is pv.MalformedVariantError
    elif isinstance(found, tuple):
        assert found[0] is pv.MalformedVariantError and find_faults(value.metadata, value.value)
    elif isinstance(expected, pv.Variant):
        assert outcome(found.to_json) == outcome(expected.to_json)
    elif kind != "variant":
        assert found == expected or (found != found and expected != expected)
    pv.try_variant_get(pv.VariantArray.from_variants([BEFORE, AFTER]), path, kind)


@given(hostile())
def test_profile(value: pv.Variant) -> None:
    found = outcome(lambda: Profile.of_array(surrounded(value)).rows)
    assert found == 4 or found[0] is pv.MalformedVariantError
    if found == 4:  # it counts the bytes of strings and looks at none of them
        assert _is_readable(value) or _reasons(value) & {"bad-utf8", "bad-time", "bad-decimal", "overlap"}
    else:
        assert _reasons(value)


@given(hostile(), st.sampled_from([0, 1, 2, 1000]))
def test_validate(value: pv.Variant, max_depth: int) -> None:
    report = pv.validate(surrounded(value), max_depth)
    found = [(fault["part"], fault["offset"], fault["reason"]) for fault in report.to_pylist() if fault["row"] == 1]
    faults = find_faults(value.metadata, value.value, max_depth)
    assert found == [(fault.part, fault.offset, fault.reason) for fault in faults]
    pv.validate(pv.shred_variant(surrounded(BEFORE), "struct<a bigint>"), max_depth)


@given(hostile())
def test_explode(value: pv.Variant) -> None:
    def children() -> list[Any]:
        if value.type == "object":
            return [(key, outcome(child.to_json)) for key, child in value.items()]
        return [(None, outcome(child.to_json)) for child in value] if value.type == "array" else []

    def by_kernel() -> list[Any]:
        table = pv.variant_explode(surrounded(value))
        rows, keys = table["row"].to_pylist(), table["key"].to_pylist()
        values = [outcome(child.to_json) for child in pv.VariantArray(table["value"])]
        return [(key, text) for row, key, text in zip(rows, keys, values, strict=True) if row == 1]

    found, expected = outcome(by_kernel), outcome(children)
    if isinstance(found, tuple):  # every child must have an end, which the reference sees when it reads the child
        assert isinstance(expected, tuple) or _reasons(value)
    elif isinstance(expected, tuple):  # an object without fields needs no dictionary
        assert not found and value.type == "object" and len(value) == 0
    else:
        assert found == expected


@given(
    hostile(), hostile(), st.sampled_from(EditKind), st.sampled_from([(), ("a",), (0,), ("b", 1), ("a", "c"), (0, 0)])
)
def test_edits(value: pv.Variant, operand: pv.Variant, kind: EditKind, segments: tuple[Any, ...]) -> None:
    if not segments and kind in (EditKind.INSERT, EditKind.SET, EditKind.REPLACE, EditKind.DELETE):
        segments = ("a",)
    edit = Edit(kind, pv.VariantPath(segments))
    arguments = (operand,) if edit.takes_value else ()
    expected = outcome(lambda: apply_edit(value, edit, operand))
    found = list(edited(surrounded(value), [edit], *arguments, null_on_error=True))
    assert found[2] is None
    if isinstance(expected, tuple):
        assert found[1] is None
    else:
        assert (found[1].metadata, found[1].value) == (expected.metadata, expected.value)


@given(hostile(), hostile())
def test_equals(left: pv.Variant, right: pv.Variant) -> None:
    for other in (right, pv.Variant(left.metadata, right.value), left):
        expected = outcome(lambda other=other: left == other)
        found = pv.try_equals(surrounded(left), surrounded(other)).to_pylist()
        assert found == [True, None if isinstance(expected, tuple) else expected, None, True]


@given(hostile())
def test_types_and_nulls(value: pv.Variant) -> None:
    array = surrounded(value)
    kinds = outcome(lambda: pv.variant_type(array).to_pylist())
    if isinstance(kinds, list):
        assert kinds == ["object", outcome(lambda: str(value.type)), None, "array"]
    else:
        assert find_faults(value.metadata, value.value)
    nulls = outcome(lambda: pv.is_variant_null(array).to_pylist())
    assert nulls == [False, value.value[:1] == b"\0", False, False] or find_faults(value.metadata, value.value)
    assert outcome(lambda: pv.schema_of_variant(array).to_pylist()[1]) == outcome(lambda: pv.schema_of_variant(value))
