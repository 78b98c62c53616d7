"""Every layout that the specification allows, and those of older writers, read the same."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

import variant_strategies as testing
from parquet_variant import Variant
from parquet_variant.encoding.header import array_bytes, object_bytes, uint_width
from parquet_variant.encoding.metadata import EMPTY_METADATA, decode_metadata, encode_metadata
from parquet_variant.encoding.validate import find_faults
from variant_strategies import Layout

_VALUE = Variant.from_python({"a": [1, "x", None], "b": {"é": 2.5, "": True}, "zz": "s" * 70})


@pytest.mark.parametrize(
    ("name_width", "id_width", "offset_width"), list(itertools.product((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4)))
)
def test_every_width(name_width: int, id_width: int, offset_width: int) -> None:
    for large in (False, True):
        layout = Layout(name_width=name_width, id_width=id_width, offset_width=offset_width, large_counts=large)
        other = testing.lay_out(_VALUE, layout)
        assert find_faults(other.metadata, other.value) == []
        assert other == _VALUE and hash(other) == hash(_VALUE)
        assert other.get("$.b['é']") == _VALUE["b"]["é"]
        assert other.to_python() == _VALUE.to_python()
        # Encoded again it is canonical: same value, same bytes.
        assert Variant.from_python([other])[0].value == Variant.from_python([_VALUE])[0].value


@pytest.mark.parametrize(
    "layout",
    [
        Layout(reverse_values=True),
        Layout(reverse_names=True),
        Layout(extra_names=("aa", "zzz", "")),
        Layout(long_strings=True),
        Layout(reverse_values=True, reverse_names=True, extra_names=("q",), long_strings=True, offset_width=3),
    ],
)
def test_values_in_any_order_and_dictionaries_in_any_order(layout: Layout) -> None:
    other = testing.lay_out(_VALUE, layout)
    assert find_faults(other.metadata, other.value) == []
    assert other == _VALUE
    assert {key: other[key] for key in other} == {key: _VALUE[key] for key in _VALUE}


@given(testing.variants())
def test_layouts_keep_the_meaning(variant: Variant) -> None:
    assert find_faults(variant.metadata, variant.value) == []
    canonical = testing.lay_out(variant)
    assert canonical == variant
    assert canonical.to_json() == variant.to_json()
    assert hash(canonical) == hash(variant)
    # `lay_out` and the builder agree on the canonical bytes, scalars apart that were not the narrowest.
    assert Variant.from_python([variant])[0] == canonical


@pytest.mark.parametrize("count", [0, 1, 255, 256, 65_535, 65_536])
def test_every_count_width(count: int) -> None:
    array = Variant.from_python([None] * count)
    assert len(array) == count and array.value[0] >> 4 & 1 == (count > 255)
    assert find_faults(array.metadata, array.value, 1) == []
    obj = Variant.from_python({f"k{index:06d}": index for index in range(count)})
    assert len(obj) == count and obj.value[0] >> 6 & 1 == (count > 255)
    assert find_faults(obj.metadata, obj.value, 1) == []
    for index in {0, count // 2, count - 1} - {-1}:
        if count:
            assert obj[f"k{index:06d}"].to_python() == index
            assert array[index].to_python() is None
    assert obj.get("$.k") is None


@pytest.mark.parametrize("size", [255, 256, 65_535, 65_536, 16_777_215, 16_777_216])
def test_every_offset_width(size: int) -> None:
    variant = Variant.from_python(["x" * (size - 5), 1])  # 5 bytes of header: the first offset is the size
    assert (variant.value[0] >> 2 & 3) + 1 == uint_width(size + 2)
    assert variant[1].to_python() == 1 and len(variant[0].to_python()) == size - 5
    assert find_faults(variant.metadata, variant.value) == []
    named = Variant.from_python({"k" * size: 1, "l": 2})
    assert (named.metadata[0] >> 6) + 1 == uint_width(size + 1)
    assert named["k" * size].to_python() == 1 and named["l"].to_python() == 2


def test_field_ids_are_as_wide_as_the_largest_id_of_the_object() -> None:
    names = [f"k{index:05d}" for index in range(65_537)]
    variant = Variant.from_python([{names[255]: 0}, {names[256]: 0}, {names[65_536]: 0}, dict.fromkeys(names)])
    assert [(item.value[0] >> 4 & 3) + 1 for item in variant] == [1, 2, 3, 3]
    assert find_faults(variant.metadata, variant.value) == []


def _object(names: list[str], fields: list[tuple[str, int]]) -> Variant:
    """An object by hand: the dictionary as given, fields in the given order."""
    encoded = [name.encode() for name in names]
    offsets = bytes([0, *itertools.accumulate(map(len, encoded))])
    metadata = bytes([1, len(names)]) + offsets + b"".join(encoded)
    values = [bytes([0x0C, number]) for _, number in fields]
    return Variant(metadata, object_bytes([names.index(name) for name, _ in fields], values))


def test_keys_in_utf16_order_are_found() -> None:
    # U+FB01 comes before U+1F600 by UTF-8, after it by UTF-16, in which Spark sorts.
    names = [f"a{index:02d}" for index in range(30)] + ["\U0001f600", "\ufb01"]
    assert names == sorted(names, key=lambda name: name.encode("utf-16-be"))
    variant = _object(names, [(name, index) for index, name in enumerate(names)])
    assert {name: variant[name].to_python() for name in names} == {name: index for index, name in enumerate(names)}
    assert [fault.reason for fault in find_faults(variant.metadata, variant.value)] == ["unsorted-keys"]
    assert Variant.from_python([variant])[0].keys() == sorted(names)
    assert variant.get("$.b") is None and "\U0001f601" not in variant


@given(st.permutations([f"k{index}" for index in range(40)]))
def test_keys_in_no_order_are_found(names: list[str]) -> None:
    # DuckDB 2.0 writes the fields in the order of the source.
    variant = _object(names, [(name, index) for index, name in enumerate(names)])
    assert [variant[name].to_python() for name in names] == list(range(40))
    assert "k40" not in variant


def test_unsorted_fields_mean_the_same() -> None:
    other = testing.lay_out(_VALUE, Layout(unsorted_fields=True))
    assert other.keys() == ["zz", "b", "a"]
    assert other == _VALUE and hash(other) == hash(_VALUE)


@given(st.lists(st.text(max_size=5), max_size=20))
def test_metadata_is_sorted_by_utf8_and_unique(names: list[str]) -> None:
    metadata = encode_metadata(names)
    assert [name.encode() for name in decode_metadata(metadata)] == sorted({name.encode() for name in names})
    assert metadata == encode_metadata(reversed(names))
    assert find_faults(metadata, b"\x00") == []


def test_reserved_bits_are_ignored() -> None:
    assert decode_metadata(bytes.fromhex("31010001") + b"a") == ["a"]
    assert Variant(EMPTY_METADATA, b"\xe3\x01\x00\x01\x00").to_python() == [None]  # bits 5 to 7 of an array's header


def test_an_empty_dictionary_without_offsets_is_read() -> None:
    assert decode_metadata(b"\x01\x00") == []
    assert Variant(b"\x01\x00", b"\x0c\x05").to_json() == "5"


def test_containers_take_the_narrowest_widths() -> None:
    assert array_bytes([]).hex() == "030000"
    assert object_bytes([], []).hex() == "020000"
    assert array_bytes([b"\x00"] * 256)[:5].hex() == "1700010000"  # large, offsets of two bytes
