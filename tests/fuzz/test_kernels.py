"""One target for each kernel that takes bytes from outside: it ends in a value or in our error, as the reference does.

What is looked at, and so refused, is the same for both: docs/reliability.md, "What each operation looks at". Bounded by
the profile ``ci``; ``HYPOTHESIS_PROFILE=fuzz`` (`make fuzz`) runs each for longer.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st

import parquet_variant as pv
from fuzz.hostile import AFTER, BEFORE, documents, hostile, outcome, surrounded
from fuzz.seeds import given_new
from parquet_variant.encoding.edits import Edit, EditKind, apply_edit
from parquet_variant.encoding.header import array_bytes, read_container, value_size
from parquet_variant.encoding.json_reader import JsonOptions
from parquet_variant.encoding.json_reader import parse_json as parse_one
from parquet_variant.encoding.metadata import dictionary_of
from parquet_variant.encoding.validate import find_faults
from parquet_variant.encoding.variant import check_disjoint
from parquet_variant.inference.profile import Profile
from parquet_variant.layouts.reference import rows as reference
from parquet_variant.layouts.reference.rows import bytes_of, rows_of_array
from parquet_variant.ops.value_edits import apply_edits

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


def _count_values(value: pv.Variant) -> int:
    """The values in a value, itself included, whatever its scalars and texts say: all that a profile depends on."""
    data = value.value
    count, pending = 0, [(0, len(data))]
    while pending:
        at, stop = pending.pop()
        value_size(data, at, stop)
        container = read_container(data, at, stop)
        count += 1
        if container is None:
            continue
        children = [container.value_at(data, index) for index in range(container.size)]
        if sum(value_size(data, child, container.stop) for child in children) > container.stop - container.values_at:
            raise pv.MalformedVariantError("values overlap", reason="overlap")
        pending += [(child, container.stop) for child in children]
        ids = container.ids(data) if container.is_object else []
        if ids:
            _check_names(value.metadata)
        names = [dictionary_of(value.metadata).name(field_id) for field_id in ids]
        if len(set(names)) < len(names):
            raise pv.MalformedVariantError("a name comes twice", reason="duplicate-key")
    return count


def _check_names(metadata: bytes) -> None:
    """A column of values reads the names of a dictionary together: all must end inside it and be UTF-8, used or not."""
    width = (metadata[0] >> 6) + 1 if metadata else 1
    count = int.from_bytes(metadata[1 : 1 + width], "little")
    names_at = 1 + width + (count + 1) * width
    end = int.from_bytes(metadata[names_at - width : names_at], "little")
    if names_at + end > len(metadata):
        raise pv.MalformedVariantError("the names end after the metadata", reason="offset-out-of-range")
    for field_id in range(count):
        dictionary_of(metadata).name(field_id)


def _reasons(value: pv.Variant) -> set[str]:
    return {fault.reason for fault in find_faults(value.metadata, value.value)}


def _agree(found: Any, expected: Any, value: pv.Variant) -> bool:
    """Whether both are the same; of a value with several faults, a column may tell another one, and at once."""
    refused = _refusal(found)
    if refused is not None and _refusal(expected) is not None:
        return found == expected or (refused[0] is pv.MalformedVariantError and refused[1] in _reasons(value))
    return bool(found == expected)


def _refusal(found: Any) -> tuple[type, str] | None:
    """The error that came out, or that the first element of a list came to which is read in its turn."""
    errors = [item for item in (found if isinstance(found, list) else [found]) if isinstance(item, tuple)]
    return errors[0] if errors and isinstance(errors[0][0], type) else None


def _plain(found: Any) -> Any:
    """Variants, also in lists and as Arrow's structs, as what becomes of them as text."""
    if isinstance(found, list):
        return [_plain(item) for item in found]
    if isinstance(found, dict) and found.keys() == {"metadata", "value"}:
        found = pv.Variant(**found)
    return outcome(found.to_json) if isinstance(found, pv.Variant) else found


def _own(array: pa.Array) -> Any:
    """The hostile row of a result, after its neighbours were looked at."""
    assert not array[2].is_valid
    try:
        return array[1].as_py()
    except OverflowError:  # an Arrow timestamp that Python has no object for
        return pv.CastError, "out-of-python"


@given_new(
    documents(),
    st.sampled_from(["decimal", "double"]),
    st.sampled_from(["error", "replace"]),
    st.sampled_from([3, 1000]),
)
def test_parse_json(text: bytes, floats: Any, on_lone_surrogate: Any, max_depth: int) -> None:
    options = {"floats": floats, "on_lone_surrogate": on_lone_surrogate, "max_depth": max_depth}
    texts = pa.array([b"[1]", text, None, b"2"], pa.binary())
    found = pv.parse_json(texts, **options, errors="null")
    assert [found[0].to_json(), found[2], found[3].to_json()] == ["[1]", None, "2"]
    expected = outcome(lambda: parse_one(text, JsonOptions(**options)))
    if isinstance(expected, pv.Variant):
        assert (found[1].metadata, found[1].value) == (expected.metadata, expected.value)
        return
    assert found[1] is None
    with pytest.raises(pv.JsonError) as caught:
        pv.parse_json(texts, **options)
    with pytest.raises(pv.JsonError) as by_reference:
        parse_one(text, JsonOptions(**options))
    assert (caught.value.row, caught.value.reason, caught.value.offset) == (1, expected[1], by_reference.value.offset)


@given_new(hostile())
def test_to_json(value: pv.Variant) -> None:
    found = outcome(lambda: pv.to_json(surrounded(value)))
    expected = outcome(value.to_json)
    if isinstance(found, pa.Array):
        assert [found[0].as_py(), found[3].as_py()] == [BEFORE.to_json(), AFTER.to_json()]
        found = _own(found)
    assert found == expected


@given_new(hostile(), st.sampled_from(SCHEMAS))
def test_shred(value: pv.Variant, ddl: str) -> None:
    schema = pv.ShreddingSchema.from_ddl(ddl)
    values = [BEFORE, value, None, AFTER]
    found = outcome(lambda: pv.shred_variant(surrounded(value), schema).storage)
    expected = outcome(lambda: reference.shredded_storage(values, schema, "final"))
    if isinstance(found, tuple) or isinstance(expected, tuple):
        assert found == expected
    else:
        assert rows_of_array(found) == rows_of_array(expected)


@given_new(hostile(), hostile(), st.sampled_from(["error", "typed"]))
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
        assert _read(found) == _read(expected)


def _read(values: Any) -> Any:
    """Values by meaning, malformed ones as such."""
    if isinstance(values, tuple):
        return values
    return [None if value is None else outcome(lambda value=value: _by_name(value.to_json())) for value in values]


def _by_name(text: str) -> Any:
    """What a JSON text means, whatever the order of its fields."""
    return json.loads(text, object_pairs_hook=lambda pairs: sorted(pairs, key=str), parse_float=str, parse_int=str)


@given_new(hostile(), st.sampled_from(PATHS), st.sampled_from(TYPES))
def test_variant_get(value: pv.Variant, path: str, kind: str) -> None:
    def by_reference() -> Any:
        return pv.variant_get(value, path, kind)

    def by_kernel() -> Any:
        found = pv.variant_get(array, path, kind)
        return found[1] if isinstance(found, pv.VariantArray) else _own(found)

    array = pv.VariantArray.from_variants([None, value, None])
    found, expected = outcome(by_kernel), outcome(by_reference)
    found, expected = _plain(found), _plain(expected)
    assert _agree(found, expected, value) or (found != found and expected != expected)
    pv.variant_get(pv.VariantArray.from_variants([BEFORE, AFTER]), path, kind, errors="null")


@given_new(hostile())
def test_profile(value: pv.Variant) -> None:
    neighbours = Profile.of_array(pv.VariantArray.from_variants([BEFORE, AFTER])).values
    found = outcome(lambda: Profile.of_array(surrounded(value)).values - neighbours)
    assert _agree(found, outcome(lambda: _count_values(value)), value)


@given_new(hostile(), st.sampled_from([0, 1, 2, 1000]))
def test_validate(value: pv.Variant, max_depth: int) -> None:
    report = pv.validate(surrounded(value), max_depth)
    found = [(fault["part"], fault["offset"], fault["reason"]) for fault in report.to_pylist() if fault["row"] == 1]
    faults = find_faults(value.metadata, value.value, max_depth)
    assert found == [(fault.part, fault.offset, fault.reason) for fault in faults]
    pv.validate(pv.shred_variant(surrounded(BEFORE), "struct<a bigint>"), max_depth)


@given_new(hostile())
def test_explode(value: pv.Variant) -> None:
    def children() -> list[Any]:
        bytes_of(value)
        pairs = (
            value.items()
            if value.type == "object"
            else [(None, child) for child in (value if value.type == "array" else ())]
        )
        if pairs:
            check_disjoint(value, [child for _, child in pairs])
        # Each is a value of its own then: what follows it in its parent is not there.
        own = [(key, pv.Variant(child.metadata, child.value)) for key, child in pairs]
        return [(key, outcome(child.to_json)) for key, child in own]

    def by_kernel() -> list[Any]:
        table = pv.variant_explode(surrounded(value))
        rows, keys = table["row"].to_pylist(), table["key"].to_pylist()
        values = [outcome(child.to_json) for child in pv.VariantArray(table["value"])]
        return [(key, text) for row, key, text in zip(rows, keys, values, strict=True) if row == 1]

    found, expected = outcome(by_kernel), outcome(children)
    assert _agree(found, expected, value)


@given_new(
    hostile(), hostile(), st.sampled_from(EditKind), st.sampled_from([(), ("a",), (0,), ("b", 1), ("a", "c"), (0, 0)])
)
def test_edits(value: pv.Variant, operand: pv.Variant, kind: EditKind, segments: tuple[Any, ...]) -> None:
    if not segments and kind in (EditKind.INSERT, EditKind.SET, EditKind.REPLACE, EditKind.DELETE):
        segments = ("a",)
    edit = Edit(kind, pv.VariantPath(segments))
    arguments = (operand,) if EditKind.INSERT <= edit.kind <= EditKind.APPEND else ()
    expected = outcome(lambda: apply_edit(value, edit, operand))
    found = list(apply_edits(surrounded(value), [edit], *arguments, errors="null"))
    assert found[2] is None
    if isinstance(expected, tuple):
        assert found[1] is None
    else:
        assert (found[1].metadata, found[1].value) == (expected.metadata, expected.value)


@given_new(hostile(), hostile())
def test_equals(left: pv.Variant, right: pv.Variant) -> None:
    for other in (right, pv.Variant(left.metadata, right.value), left):
        expected = outcome(lambda other=other: left == other)
        found = pv.equals(surrounded(left), surrounded(other), errors="null").to_pylist()
        assert found == [True, None if isinstance(expected, tuple) else expected, None, True]


@given_new(hostile())
def test_types_and_nulls(value: pv.Variant) -> None:
    array = surrounded(value)
    kinds = outcome(lambda: pv.variant_type(array).to_pylist())
    kind = outcome(lambda: str(pv.variant_type(value)))
    assert _agree(kinds, kind if isinstance(kind, tuple) else ["object", kind, None, "array"], value)
    nulls = outcome(lambda: pv.is_variant_null(array).to_pylist())
    null = outcome(lambda: pv.is_variant_null(value))
    assert _agree(nulls, null if isinstance(null, tuple) else [False, null, False, False], value)
    assert outcome(lambda: pv.schema_of_variant(array).to_pylist()[1]) == outcome(lambda: pv.schema_of_variant(value))


def test_names_that_metadata_lacks_are_not_names_of_residuals() -> None:
    field = pa.struct([("value", pa.binary()), ("typed_value", pa.int64())])
    storage = pa.struct([("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", pa.struct([("a", field)]))])
    residual = bytes.fromhex("02 01 01 00 01 00")  # an object whose one field has id 1
    row = {"metadata": bytes.fromhex("11 01 00 01 62"), "typed_value": {"a": {"value": residual}}}
    with pytest.raises(pv.MalformedVariantError) as caught:
        pv.unshred_variant(pv.VariantArray(pa.array([row], storage)))
    assert (caught.value.reason, caught.value.row) == ("id-out-of-range", 0)


@pytest.mark.parametrize("slack", [0, 2, 9])
def test_bytes_after_a_value_make_no_room_for_children_that_share(slack: int) -> None:
    """Alone, in a column, as an element with others behind it, and next to a container that has bytes to spare."""
    shared = bytes.fromhex("03 02 00 00 02 0c01")  # two elements, both at offset 0
    spare = b"\x03\x01\x00" + bytes([2 + slack]) + b"\x0c\x01" + bytes(slack)
    outer = array_bytes([shared, spare, b"\x0c\x02"])
    metadata = bytes.fromhex("110000")
    for value in (
        pv.Variant(metadata, shared + bytes(slack)),
        pv.Variant(metadata, outer),
        pv.Variant(metadata, outer)[0],
    ):
        array = pv.VariantArray.from_variants([value])
        for refusing in (
            value.to_python, value.to_json, lambda value=value: pv.schema_of_variant(value),
            lambda array=array: pv.to_json(array), lambda array=array: pv.schema_of_variant(array),
            lambda array=array: pv.schema_of_variant_agg(array), lambda array=array: Profile.of_array(array),
        ):  # fmt: skip
            assert outcome(refusing) == (pv.MalformedVariantError, "overlap")
