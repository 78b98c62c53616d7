"""The functions that change values: the kernel does what the reference does, and both do what Spark documents."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.encoding.edits import Edit, EditKind, apply_edit
from parquet_variant.ops.value_edits import NO_VALUE, apply_edits
from variant_strategies import mutated_variants, shredding_schemas, variants

WITHOUT_PATH = (EditKind.NORMALIZE, EditKind.STRIP_NULLS, EditKind.STRIP_FIELDS)
NULL = pv.Variant.from_python(None)


@st.composite
def paths(draw: Callable[[Any], Any], values: list[pv.Variant | None], at_least: int) -> pv.VariantPath:
    """Paths that mostly lead somewhere in one of the values, and then a step further."""
    here = [value for value in values if value is not None]
    value: pv.Variant | None = here[draw(st.integers(0, len(here) - 1))] if here else None
    segments: list[str | int] = []
    while len(segments) < at_least or draw(st.integers(0, 3)):
        segment: str | int = draw(st.sampled_from(["a", "", "absent", 0, 1, 3]))
        try:
            if value is not None and value.type == "object" and value.keys() and draw(st.integers(0, 5)):
                segment = draw(st.sampled_from(value.keys()))
            elif value is not None and value.type == "array" and draw(st.integers(0, 5)):
                segment = draw(st.integers(0, len(value) + 2))
            value = None if value is None else value.get(pv.VariantPath((segment,)))
        except pv.MalformedVariantError:
            value = None
        segments.append(segment)
    return pv.VariantPath(tuple(segments))


def _by_reference(values: list[Any], edits: list[Edit], operands: list[Any]) -> list[Any]:
    """What becomes of each row: a value, None, or the error."""
    found: list[Any] = []
    for value, operand in zip(values, operands, strict=True):
        if value is None or (operand is None and EditKind.INSERT <= edits[0].kind <= EditKind.APPEND):
            found.append(None)
            continue
        try:
            for edit in edits:
                value = apply_edit(value, edit, operand)
            found.append(value)
        except pv.VariantError as error:
            found.append(error)
    return found


@given(st.data())
def test_the_kernel_changes_what_the_reference_changes(data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | variants() | mutated_variants(max_changes=1), min_size=1, max_size=3))
    kind = data.draw(st.sampled_from(EditKind))
    edits = [Edit(kind)]
    if kind not in WITHOUT_PATH:
        count = 2 if kind == EditKind.DELETE and data.draw(st.booleans()) else 1
        edits = [Edit(kind, data.draw(paths(values, int(kind != EditKind.APPEND)))) for _ in range(count)]
    operands: list[Any] = [None] * len(values)
    given_value: Any = NO_VALUE
    if EditKind.INSERT <= edits[0].kind <= EditKind.APPEND:
        operands = [data.draw(variants(max_leaves=4))] * len(values)
        given_value = operands[0]
        if data.draw(st.booleans()):
            more = st.none() | variants(max_leaves=4) | mutated_variants(max_leaves=4, max_changes=1)
            operands = data.draw(st.lists(more, min_size=len(values), max_size=len(values)))
            given_value = pv.VariantArray.from_variants(operands)
    expected = _by_reference(values, edits, operands)
    array = pv.VariantArray.from_variants(values)
    found = list(apply_edits(array, edits, given_value, "null"))
    for ours, theirs in zip(found, expected, strict=True):
        if ours is None or isinstance(theirs, pv.VariantError):
            assert ours is None and (theirs is None or isinstance(theirs, pv.VariantError))
        else:
            assert (ours.metadata, ours.value) == (theirs.metadata, theirs.value)
    errors = [(row, error) for row, error in enumerate(expected) if isinstance(error, pv.VariantError)]
    if errors:
        row, first = errors[0]
        with pytest.raises(type(first)) as caught:
            apply_edits(array, edits, given_value)
        assert (caught.value.row, caught.value.reason, caught.value.path) == (row, first.reason, first.path)


@given(variants())
def test_canonical_bytes_are_those_of_the_builder(value: pv.Variant) -> None:
    found = pv.variant_normalize(value)
    assert found == value and found.validate().to_json() == pv.variant_normalize(value).to_json()
    again = pv.Variant.from_python(value)
    assert (found.metadata, found.value) == (again.metadata, again.value)


@given(st.data())
def test_a_shredded_array_is_changed_as_an_unshredded_one(data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | variants(max_leaves=6), min_size=1, max_size=3))
    array = pv.VariantArray.from_variants(values)
    shredded = pv.shred_variant(array, data.draw(shredding_schemas(values)))
    assert pv.strip_nulls(shredded) == pv.strip_nulls(array)
    assert pv.variant_delete(shredded, "$.a", "$[0]") == pv.variant_delete(array, "$.a", "$[0]")


# Input, function, arguments, result as JSON; None for an error. Measured on Spark 4.3.
CASES: list[tuple[str, str, tuple[Any, ...], str | None]] = [
    ('{"a":1}', "variant_insert", ("$.a", 2), None),
    ('{"a":null}', "variant_insert", ("$.a.b", 2), None),
    ("null", "variant_insert", ("$.a", 2), None),
    ('{"a":1}', "variant_insert", ("$[0]", 2), None),
    ("[1]", "variant_insert", ("$[1]", 2), "[1,2]"),
    ("[1]", "variant_insert", ("$[0]", 2), "[2,1]"),
    ("[1]", "variant_insert", ("$[2][1].x", 2), '[1,null,[null,{"x":2}]]'),
    ("[null]", "variant_insert", ("$[0].x", 2), None),
    ("{}", "variant_insert", ("$.a[2].b", 2), '{"a":[null,null,{"b":2}]}'),
    ('{"b":1,"a":2}', "variant_insert", ("$.aa", 2), '{"a":2,"aa":2,"b":1}'),
    ("5", "variant_set", ("$.a", 2), None),
    ("null", "variant_set", ("$.a", 2, False), None),
    ("[1]", "variant_set", ("$.a", 2, False), None),
    ('{"a":1}', "variant_set", ("$.b.b", 2, False), '{"a":1}'),
    ("[1,2]", "variant_set", ("$[2]", 3), "[1,2,3]"),
    ("[1,2]", "variant_set", ("$[2]", 3, False), "[1,2]"),
    ("[1,2]", "variant_set", ("$[4][1]", 3), "[1,2,null,null,[null,3]]"),
    ('{"a":[1,{"b":2}]}', "variant_set", ("$.a[1].b", None), '{"a":[1,{"b":null}]}'),
    ('{"a":1}', "variant_set", ("$['b.c'].d[1]", 3), '{"a":1,"b.c":{"d":[null,3]}}'),
    ("5", "variant_delete", ("$.a",), "5"),
    ("[1,2,3]", "variant_delete", ("$[0]", None, "$[0]", "$[7]", "$.a"), "[3]"),
    ('{"a":{"b":1}}', "variant_delete", ("$.a.b",), '{"a":{}}'),
    ('{"a":1,"b":2}', "variant_delete", ("$.a", "$.a.b", "$.b"), "{}"),
    ("null", "variant_array_append", ("$", 1), None),
    ('{"a":null}', "variant_array_append", ("$.a", 1), None),
    ("[1]", "variant_array_append", ("$[0]", 1), None),
    ("[1]", "variant_array_append", ("$[3]", 1), "[1]"),
    ("[[]]", "variant_array_append", ("$[0]", [1]), "[[[1]]]"),
    ("{}", "variant_array_append", ("$.a.b", 1), "{}"),
    ('[null,[null],{"a":null}]', "strip_nulls", (), "[[],{}]"),
    ('[null,[null],{"a":null}]', "strip_nulls", (False,), "[null,[null],{}]"),
    ("null", "strip_nulls", (), "null"),
]


@pytest.mark.parametrize(("text", "function", "arguments", "expected"), CASES)
def test_cases_measured_on_spark(text: str, function: str, arguments: tuple[Any, ...], expected: str | None) -> None:
    call = getattr(pv, function)
    attempt = partial(call, errors="null")
    value, column = pv.parse_json(text), pv.parse_json([text, None])
    if expected is None:
        with pytest.raises(pv.PathError) as caught:
            call(value, *arguments)
        assert caught.value.reason in ("path-mismatch", "duplicate-key")
        with pytest.raises(pv.PathError, match=r"row 0"):
            call(column, *arguments)
        assert attempt(value, *arguments) is None
        assert list(attempt(column, *arguments)) == [None, None]
    else:
        for found in (call(value, *arguments), call(column, *arguments)[0], attempt(column, *arguments)[0]):
            assert found.to_json() == expected
            assert found.validate() == pv.parse_json(expected)
        assert call(column, *arguments)[1] is None


@pytest.mark.parametrize("path", ["$", "a", "$[-1]", "$[*]", "$.a[*].b", ["\ud800"]])
@pytest.mark.parametrize("function", ["variant_insert", "variant_set", "variant_delete"])
def test_paths_that_name_no_place_are_refused(path: Any, function: str) -> None:
    arguments = () if function == "variant_delete" else (1,)
    with pytest.raises(pv.PathError):
        getattr(pv, function)(pv.parse_json(["[]"]), path, *arguments, errors="null")


def test_what_goes_in_can_be_one_value_or_a_column() -> None:
    rows = pv.parse_json(["{}", "{}", None])
    assert pv.variant_set(rows, "$.x", None)[0] == pv.parse_json('{"x":null}')
    assert pv.variant_set(rows, "$.x", [1, "y"]).to_pylist() == [{"x": [1, "y"]}] * 2 + [None]
    assert pv.variant_set(rows, "$.x", pv.parse_json('{"z":1}')).to_pylist()[1] == {"x": {"z": 1}}
    assert pv.variant_set(rows, "$.x", pa.array([1, None, 3])).to_pylist() == [{"x": 1}, None, None]
    assert pv.variant_set(rows, "$.x", pa.chunked_array([[1], [2, 3]])).to_pylist() == [{"x": 1}, {"x": 2}, None]
    column = pv.shred_variant(pv.parse_json(['{"q":1}', None, "3"]), "struct<q int>")
    assert pv.variant_set(rows, "$.x", column).to_pylist() == [{"x": {"q": 1}}, None, None]
    assert pv.variant_set(rows, "$.x", pa.scalar("s")).to_pylist() == [{"x": "s"}, {"x": "s"}, None]
    assert pv.variant_set(rows, "$.x", pa.scalar(None, pa.int8())).to_pylist() == [None, None, None]
    assert pv.variant_set(rows[0], "$.x", pa.scalar(None, pa.int8())) is None
    with pytest.raises(pv.SchemaError, match="2 values for 3 rows"):
        pv.variant_set(rows, "$.x", pa.array([1, 2]))
    with pytest.raises(pv.SchemaError):
        pv.variant_set(rows[0], "$.x", pa.array([1]))
    with pytest.raises(pv.CastError):
        pv.variant_set(rows, "$.x", {1}, errors="null")


def test_rows_that_do_not_change_keep_their_bytes() -> None:
    wide = pv.Variant(bytes.fromhex("0101000178"), bytes.fromhex("0f0100000000020000000c01"))  # [1] in four-byte widths
    rows = pv.VariantArray.from_variants([wide, pv.parse_json('{"a":1}'), None])
    found = pv.variant_delete(rows, "$.a")
    assert found[0].value == wide.value and found[0].metadata == wide.metadata and found[1].to_json() == "{}"


@pytest.mark.parametrize("index", [2**53 - 1, 40_000_000])
def test_an_index_far_beyond_the_end_is_refused_before_memory_is_taken(index: int) -> None:
    for path in (f"$[{index}]", f"$.a[{index}][{index}].b", "$" + f"[{index}]" * 300):
        with pytest.raises(pv.VariantError, match="max_size"):
            pv.variant_insert(pv.parse_json(["[]", "{}"])[int("a" in path) :][:1], path, 1)


def test_a_value_that_outgrows_max_size_is_refused() -> None:
    rows = pv.parse_json(['{"a":1}', "{}"])
    for array in (rows, rows[0]):
        with pytest.raises(pv.VariantError) as caught:
            pv.variant_set(array, "$.b", "x" * 100, max_size=100)
        assert caught.value.reason == "too-large"
    assert list(pv.variant_set(rows, "$.b", "x" * 100, max_size=100, errors="null")) == [None, None]
    assert pv.variant_set(rows, "$.b", "x" * 10, max_size=100).to_pylist()[1] == {"b": "x" * 10}


def test_large_and_deep_values() -> None:
    wide = {f"k{index:05}": index for index in range(70_000)}
    [found] = pv.variant_set(pv.parse_json([json.dumps(wide)]), "$.k00001", "new").to_pylist()
    assert found == wide | {"k00001": "new"}
    deep = pv.Variant.from_python(0)
    for _ in range(1500):
        deep = pv.Variant(
            b"\x11\x00\x00", b"\x0f\x01\x00\x00\x00\x00" + len(deep.value).to_bytes(4, "little") + deep.value
        )
    array = pv.VariantArray.from_variants([deep])
    assert pv.variant_array_append(array, "$", 1)[0][1].to_python() == 1
    assert pv.variant_normalize(array)[0] == deep


def test_storages_of_other_arrow_types() -> None:
    rows = pv.parse_json(['{"b":null,"a":[null]}', "1", None])
    storage = rows.storage
    for metadata in (storage.field("metadata").dictionary_decode(), storage.field("metadata")):
        for kind in (pa.large_binary(), pa.binary_view()):
            children = [storage.field("value").cast(kind), metadata]
            other = pa.StructArray.from_arrays(children, ["value", "metadata"], mask=storage.is_null())
            found = pv.strip_nulls(other)
            assert pv.to_json(found).to_pylist() == ['{"a":[]}', "1", None]
            assert pv.to_json(pv.strip_nulls(other[1:])).to_pylist() == ["1", None]
    assert len(pv.strip_nulls(rows[:0])) == 0


def test_a_column_that_is_worked_on_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parquet_variant.arrays.value_positions.CHUNK_BYTES", 1)
    rows = pv.parse_json(['{"a":1}', None, "[1]", '{"b":2}', "5"])
    assert pv.variant_set(rows, "$.a", pa.array([7, 8, 9, 10, 11]), errors="null").to_pylist() == [
        {"a": 7},
        None,
        None,
        {"a": 10, "b": 2},
        None,
    ]
    with pytest.raises(pv.PathError, match=r"row 2"):
        pv.variant_set(rows, "$.a", 1)
    assert pv.variant_delete(rows, "$.b").to_pylist() == [{"a": 1}, None, [1], {}, 5]
