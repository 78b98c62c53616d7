"""`variant_get`: one answer whatever the layout and the errors option, and the reference's."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
import variant_strategies as testing
from parquet_variant.encoding.cast.values import cast_variant
from parquet_variant.types.targets import VARIANT_STORAGE
from variant_strategies import Layout, lay_out

TARGETS = [
    pa.bool_(),
    pa.int8(),
    pa.uint16(),
    pa.int64(),
    pa.uint64(),
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(10, 2),
    pa.decimal128(38, 10),
    pa.decimal256(60, 20),
    pa.decimal32(5, 1),
    pa.string(),
    pa.string_view(),
    pa.large_binary(),
    pa.binary(3),
    pa.uuid(),
    pa.date32(),
    pa.date64(),
    pa.time32("s"),
    pa.time64("us"),
    pa.time64("ns"),
    pa.timestamp("s"),
    pa.timestamp("us", "UTC"),
    pa.timestamp("ns", "UTC"),
    pa.timestamp("ns"),
    pa.list_(pa.int32()),
    pa.list_view(pa.string()),
    pa.list_(pa.float64(), 2),
    pa.struct({"a": pa.int64(), "b": pa.string()}),
    pa.struct({"a": pa.struct({"a": pa.string()}), "k": pa.list_(pa.int8())}),
    pa.map_(pa.string(), pa.string()),
    pa.map_(pa.string(), pa.list_(pa.int64())),
    pa.dictionary(pa.int32(), pa.string()),
    pa.null(),
    pa.struct({"a": pa.null(), "b": pa.list_(pa.null())}),
    VARIANT_STORAGE,
    pa.list_(VARIANT_STORAGE),
    pa.struct({"a": VARIANT_STORAGE, "b": pa.list_(VARIANT_STORAGE)}),
    pa.map_(pa.string(), VARIANT_STORAGE),
]
PATHS = ["$", "$.a", "$.a.b", "$['k y']", "$[0]", "$[1].a", "$.a[0]", "$[*]", "$.a[*]", "$[*].a", "$[*][*]"]


def result_target(path: str, target: pa.DataType) -> tuple[str, pa.DataType]:
    """Nest a list type until it has one level for each wildcard of the path."""
    while pa.types.is_list(target) and path.count("*") == 2 and not pa.types.is_list(target.value_type):
        target = pa.list_(pa.field("element", target))
    if pa.types.is_list_view(target) and path.count("*") == 2:
        target = pa.list_view(pa.field("element", target))
    return path, target


paths = st.sampled_from(PATHS)
targets = st.sampled_from(TARGETS)
paths_and_targets = st.builds(result_target, paths, targets)
zones = st.sampled_from(["UTC", "America/Los_Angeles", "+05:30"])
columns = st.lists(st.none() | testing.variants(max_leaves=8), min_size=1, max_size=6)


def as_rows(array: pa.Array) -> list[str]:
    """The entries as Arrow writes them: some dates and times are beyond Python's."""
    array.validate(full=True)
    return [
        array[row : row + 1].to_string(window=100, container_window=100) if array[row].is_valid else "null"
        for row in range(len(array))
    ]


def by_reference(column: list[pv.Variant | None], path: str, target: pa.DataType, zone: str) -> pa.Array | None:
    """What casting value by value gives; None if Python cannot hold it."""
    try:
        return [
            None if value is None else pv.variant_get(value, path, target, zone=zone, errors="null") for value in column
        ]
    except pv.VariantError as error:
        assert error.reason == "out-of-python"
        return None


@given(column=columns, path_and_target=paths_and_targets, zone=zones)
def test_the_kernels_answer_as_the_reference(
    column: list[pv.Variant | None], path_and_target: tuple[str, pa.DataType], zone: str
) -> None:
    path, target = path_and_target
    expected = by_reference(column, path, target, zone)
    found = pv.variant_get(pv.VariantArray.from_variants(column), path, target, zone=zone, errors="null")
    assert found.validate(full=True) is None
    if expected is not None:
        assert repr(found.to_pylist()) == repr(expected)


def _between_two_floats(low: float, kind: type[np.floating[Any]], scale: int, ulps: int) -> Decimal:
    """A decimal that lies, but for some units of its last digit, in the middle of a float and the next."""
    first = kind(low)
    middle = (Fraction(float(first)) + Fraction(float(np.nextafter(first, kind(np.inf))))) / 2
    return Decimal(int(middle * 10**scale) + ulps).scaleb(-scale, Context(80))


decimals = st.builds(
    _between_two_floats,
    st.floats(-1e6, 1e6, allow_subnormal=False),
    st.sampled_from([np.float32, np.float64]),
    st.integers(0, 38),
    st.integers(-2, 2),
) | st.builds(
    lambda digits, scale: Decimal(digits).scaleb(-scale, Context(80)),
    st.integers(1 - 10**38, 10**38 - 1),
    st.integers(0, 38),
)


@given(
    values=st.lists(decimals.filter(lambda each: len(each.as_tuple().digits) <= 38), min_size=1, max_size=20),
    target=st.sampled_from([pa.float64(), pa.float32(), pa.decimal128(10, 2), pa.decimal128(38, 10), pa.int32()]),
    scale=st.none() | st.integers(0, 38),
)
def test_long_decimals_are_rounded_once(values: list[Decimal], target: pa.DataType, scale: int | None) -> None:
    array = pv.VariantArray.from_variants([pv.Variant.from_python(value) for value in values])
    if scale is not None:
        array = pv.shred_variant(array, pv.ShreddingSchema.from_ddl(f"decimal(38,{scale})"))
    expected = [cast_variant(pv.Variant.from_python(value), target, safe=False) for value in values]
    assert pv.variant_get(array, "$", target, errors="null").to_pylist() == expected


@given(data=st.data(), column=columns, path_and_target=paths_and_targets, zone=zones)
def test_every_layout_gives_the_same_answer(
    data: st.DataObject, column: list[pv.Variant | None], path_and_target: tuple[str, pa.DataType], zone: str
) -> None:
    path, target = path_and_target
    plain = pv.VariantArray.from_variants(column)
    schema = data.draw(testing.shredding_schemas())
    shredded = pv.shred_variant(plain, schema)
    expected = pv.variant_get(plain, path, target, zone=zone, errors="null")
    found = pv.variant_get(shredded, path, target, zone=zone, errors="null")
    assert found.type == expected.type
    assert as_rows(found) == as_rows(expected)


@given(data=st.data(), column=columns, path=paths)
def test_every_layout_gives_the_same_variants(data: st.DataObject, column: list[pv.Variant | None], path: str) -> None:
    if "*" in path:
        return
    plain = pv.VariantArray.from_variants(column)
    expected = [None if value is None else value.get(path) for value in column]
    assert list(pv.variant_get(plain, path)) == expected
    shredded = pv.shred_variant(plain, data.draw(testing.shredding_schemas()))
    assert list(pv.variant_get(shredded, path)) == expected


@pytest.mark.parametrize("layout", ["draft-paths", "draft-object"])
def test_the_drafts_give_the_same_answer(layout: str) -> None:
    values = [{"a": 1, "b": ["x", 2.5]}, {"a": "y", "c": None}, None, [1], 7]
    plain = pv.VariantArray.from_pylist(values)
    draft = pv.shred_variant(plain, pv.ShreddingSchema.from_ddl("a bigint, b array<string>"), layout=layout)
    assert draft.layout == layout
    for path in ("$", "$.a", "$.b[1]", "$.b[*]", "$.c"):
        assert pv.variant_get(draft, path, "string", errors="null").equals(
            pv.variant_get(plain, path, "string", errors="null")
        )
        if "*" not in path:
            assert pv.variant_get(draft, path).equals(pv.variant_get(plain, path))


@given(
    value=testing.variants(max_leaves=30),
    reverse=st.booleans(),
    unsorted=st.booleans(),
    widths=st.tuples(*[st.integers(1, 4)] * 3),
    extra=st.lists(st.text(max_size=3), max_size=4, unique=True),
)
def test_every_encoding_of_a_value_gives_the_same_answer(
    value: pv.Variant, reverse: bool, unsorted: bool, widths: tuple[int, int, int], extra: list[str]
) -> None:
    other = lay_out(
        value,
        Layout(
            *widths,
            large_counts=reverse,
            reverse_values=reverse,
            reverse_names=unsorted,
            extra_names=tuple(extra),
            long_strings=reverse,
            unsorted_fields=unsorted,
        ),
    )
    both = pv.VariantArray.from_variants([value, other])
    for path in PATHS:
        # As text only scalars: fields stand in the order in which they are stored.
        for target in ("bigint", "struct<a: double, b: array<boolean>>"):
            first, second = as_rows(pv.variant_get(both, path, target, errors="null"))
            assert first == second
        if "*" not in path:
            first, second = pv.variant_get(both, path)
            assert first == second


def test_a_key_is_found_among_many_whatever_their_order() -> None:
    wide = pv.Variant.from_python({f"k{number:03}": number for number in range(300)})
    unsorted = lay_out(wide, Layout(reverse_names=True, unsorted_fields=True))
    array = pv.VariantArray.from_variants([wide, unsorted])
    for key, number in (("k000", 0), ("k150", 150), ("k299", 299)):
        assert pv.variant_get(array, f"$.{key}", "int").to_pylist() == [number, number]
    assert pv.variant_get(array, "$.k300", "int").to_pylist() == [None, None]


def test_a_dictionary_with_a_name_twice_finds_the_field_by_either_id() -> None:
    metadata = bytes.fromhex("01020001026161")  # a, a
    rows = [pv.Variant(metadata, bytes.fromhex(f"0201{field_id}00020c{field_id}")) for field_id in ("00", "01")]
    assert pv.variant_get(pv.VariantArray.from_variants(rows), "$.a", "int").to_pylist() == [0, 1]


def test_keys_of_every_kind_are_found() -> None:
    names = ["", ".", "a.b", "é", "😀", "a\0b", "A", "a" * 70]
    array = pv.VariantArray.from_pylist([{name: number for number, name in enumerate(names)}])
    shredded = pv.shred_variant(array, pv.ShreddingSchema.object({name: pa.int64() for name in names if name}))
    for number, name in enumerate(names):
        path = pv.VariantPath((name,))
        assert pv.variant_get(array, path, "int").to_pylist() == [number]
        assert pv.variant_get(shredded, path, "int").to_pylist() == [number]


@pytest.mark.parametrize("shredded", [False, True])
def test_an_error_names_row_and_path(shredded: bool) -> None:
    array = pv.VariantArray.from_pylist([None, {"a": [{"b": 1}]}, {"a": [{"b": 2}, {"b": "x"}]}])
    if shredded:
        array = pv.shred_variant(array, pv.ShreddingSchema.from_ddl("a array<struct<b: int>>"))
    with pytest.raises(pv.VariantError) as caught:
        pv.variant_get(array, "$.a[*].b", "int")
    assert (caught.value.reason, caught.value.row, caught.value.path) == ("bad-cast", 2, "$['a'][*]['b']")
    assert "'x'" in str(caught.value) or '"x"' in str(caught.value)


def test_nulls_of_every_kind_become_null_and_stay_apart_as_variants() -> None:
    array = pv.VariantArray.from_variants(
        [None, pv.Variant.from_python(None), *map(pv.Variant.from_python, ({}, {"a": None}, {"a": 1}, 5))]
    )
    for item in (array, pv.shred_variant(array, pv.ShreddingSchema.from_ddl("a bigint"))):
        assert pv.variant_get(item, "$.a", "int").to_pylist() == [None, None, None, None, 1, None]
        assert [value and value.to_json() for value in pv.variant_get(item, "$.a")] == [
            None, None, None, "null", "1", None,
        ]  # fmt: skip


def test_numbers_do_not_depend_on_their_width() -> None:
    array = pv.VariantArray.from_pylist([123, Decimal("123.00"), Decimal("1230") / 10, 2**40 * 0 + 123])
    assert pv.variant_get(array, "$", "string").to_pylist() == ["123"] * 4
    shredded = pv.shred_variant(array, pv.ShreddingSchema.from_ddl("decimal(18,6)"))
    assert pv.variant_get(shredded, "$", "string").to_pylist() == ["123"] * 4


def test_a_slice_of_a_shredded_array_is_read_from_its_own_rows() -> None:
    array = pv.VariantArray.from_pylist([{"a": number, "b": [number, str(number)]} for number in range(10)])
    shredded = pv.shred_variant(array, pv.ShreddingSchema.from_ddl("a bigint, b array<string>"))
    for item in (array[3:6], shredded[3:6]):
        assert pv.variant_get(item, "$.a", "double").to_pylist() == [3.0, 4.0, 5.0]
        assert pv.variant_get(item, "$.b[*]", "string").to_pylist() == [["3", "3"], ["4", "4"], ["5", "5"]]
        assert pv.variant_get(item, "$.b[0]").to_pylist() == [3, 4, 5]


@given(column=columns, index=st.integers(0, 5), path=paths, target=targets)
def test_a_single_value_is_cast_like_its_row(
    column: list[pv.Variant | None], index: int, path: str, target: pa.DataType
) -> None:
    value = column[index % len(column)]
    if value is None or "*" in path:
        return
    found = value.get(path)
    try:
        expected = None if found is None else cast_variant(found, target, safe=False)
    except pv.VariantError as error:
        assert error.reason == "out-of-python"
        return
    assert repr(pv.variant_get(value, path, target, errors="null")) == repr(expected)


@given(st.lists(testing.mutated_variants(), min_size=1, max_size=4), paths, targets)
def test_malformed_bytes_never_crash(broken: list[Any], path: str, target: pa.DataType) -> None:
    array = pv.VariantArray.from_variants([pv.Variant(*_parts(one)) for one in broken])
    for errors in ("null", "raise"):
        try:
            assert len(pv.variant_get(array, path, target, errors=errors)) == len(broken)
            assert len(pv.variant_get(array, path, errors=errors)) == len(broken)
        except pv.VariantError:
            pass


def _parts(one: Any) -> tuple[bytes, bytes]:
    return (one.metadata, one.value) if isinstance(one, pv.Variant) else one


def test_malformed_bytes_are_reported_with_row_and_offset() -> None:
    good = pv.Variant.from_python({"a": 1})
    array = pv.VariantArray.from_variants([good, pv.Variant(good.metadata, good.value[:-1])])
    with pytest.raises(pv.VariantError) as caught:
        pv.variant_get(array, "$.a", "int")
    assert caught.value.row == 1
    assert caught.value.offset is not None


def test_overlapping_elements_are_refused() -> None:
    # 255 elements that all are the same 254 bytes: the walk would grow with every level.
    inner = bytes([3, 255]) + bytes(255) + b"\x01\x00"
    outer = bytes([3 | 1 << 2, 255]) + b"\x00\x00" * 255 + len(inner).to_bytes(2, "little") + inner
    array = pv.VariantArray.from_variants([pv.Variant(b"\x11\0\0", outer)])
    with pytest.raises(pv.VariantError):
        pv.variant_get(array, "$[*][*]", "int")


def test_lists_of_size_zero():
    """pyarrow divides by the size, which ended the process."""
    kind = pa.list_(pa.int64(), 0)
    rows = pv.parse_json(["[]", "[1]", "null", '{"a": []}'])
    assert pv.variant_get(rows, "$", kind, errors="null").to_pylist() == [[], None, None, None]
    assert pv.variant_get(rows, "$.a", kind, errors="null").to_pylist() == [None, None, None, []]
    assert pv.variant_get(rows[0], "$", kind) == []
    shredded = pv.shred_variant(rows, "array<int>")
    assert pv.variant_get(shredded, "$", kind, errors="null").to_pylist() == [[], None, None, None]
    assert pv.variant_get(rows, "$", pa.list_(pa.large_string(), 0), errors="null").to_pylist() == [
        [],
        None,
        None,
        None,
    ]


def test_forms_that_arrow_does_not_have_are_refused():
    rows = pv.parse_json([f'"{n}"' for n in range(300)])
    for kind in (
        pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int8(), pa.uuid()),
        pa.dictionary(pa.int8(), pa.list_(pa.int8())), pa.run_end_encoded(pa.int32(), pa.string_view()),
    ):  # fmt: skip
        with pytest.raises(pv.CastError, match="cannot store the values as") as caught:
            pv.variant_get(rows, "$", kind, errors="null")
        assert caught.value.reason == "bad-type"
