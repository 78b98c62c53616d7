"""An object that has a key twice is malformed: every operation that reads the object raises the same error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import parquet_variant as pv
from parquet_variant.encoding.header import object_bytes, uint_width
from parquet_variant.encoding.metadata import SORTED_BIT

ONE, TWO = b"\x0c\x01", b"\x0c\x02"


def metadata(names: list[str], flags: int = SORTED_BIT) -> bytes:
    numbers = [len(names), *(sum(map(len, names[:count])) for count in range(len(names) + 1))]
    width = uint_width(max(numbers))
    header = bytes([flags | 1 | (width - 1) << 6])
    return b"".join([header, *(number.to_bytes(width, "little") for number in numbers)]) + "".join(names).encode()


WIDE = [f"k{number:03}" for number in range(100)]
OBJECTS: dict[str, tuple[bytes, bytes, str]] = {
    "one id": (metadata(["a", "b"]), object_bytes([0, 0], [ONE, TWO]), "a"),
    "equal values": (metadata(["a", "b"]), object_bytes([0, 0], [ONE, ONE]), "a"),
    "one name with two ids": (metadata(["a", "a"], 0), object_bytes([0, 1], [ONE, TWO]), "a"),
    "apart": (metadata(["a", "b"]), object_bytes([0, 1, 0], [ONE, TWO, TWO]), "a"),
    "apart, unsorted": (metadata(["b", "a"], 0), object_bytes([1, 0, 1], [ONE, TWO, TWO]), "a"),
    "wide": (metadata(WIDE), object_bytes([*range(50), 49, *range(50, 100)], [ONE] * 101), "k049"),
    "wide, ids of two bytes": (
        metadata(WIDE),
        # A header that says large ids: 4 fields would fit one byte.
        bytes([2 | 1 << 4, 3, 0, 0, 5, 0, 5, 0, 0, 2, 4, 6]) + ONE + TWO + ONE,
        "k005",
    ),
}

READS: dict[str, Callable[[pv.VariantArray, str], Any]] = {
    "variant_get": lambda array, key: pv.variant_get(array, f"$.{key}", "bigint"),
    "variant_get of a Variant": lambda array, key: pv.variant_get(array, f"$.{key}"),
    "key of an array": lambda array, key: array[key],
    "to_python": lambda array, _: pv.to_python(array),
    "to_pylist": lambda array, _: array.to_pylist(),
    "to_json": lambda array, _: pv.to_json(array),
    "equals itself": lambda array, _: pv.equals(array, array),
    "equals another": lambda array, _: pv.equals(array, pv.from_python([{"x": 1}])),
    "schema_of_variant": lambda array, _: pv.schema_of_variant(array),
    "schema_of_variant_agg": lambda array, _: pv.schema_of_variant_agg(array),
    "infer": lambda array, _: pv.infer_shredding_schema(array),
    "shred": lambda array, key: pv.shred_variant(array, f"{key} bigint"),
    "explode": lambda array, _: pv.variant_explode(array),
    "cast to map": lambda array, _: pv.variant_get(array, "$", "map<string, int>"),
    "cast to struct": lambda array, key: pv.variant_get(array, "$", f"struct<{key}: int>"),
    "cast to string": lambda array, _: pv.variant_get(array, "$", "string"),
    "set": lambda array, _: pv.variant_set(array, "$.new", pv.from_python([3])),
    "insert": lambda array, _: pv.variant_insert(array, "$.new", pv.from_python([3])),
    "delete": lambda array, key: pv.variant_delete(array, f"$.{key}"),
    "strip": lambda array, _: pv.strip_nulls(array),
    "normalize": lambda array, _: pv.variant_normalize(array),
    "scalar key": lambda array, key: array[0][key],  # type: ignore[index]
    "scalar get": lambda array, key: array[0].get(f"$.{key}"),  # type: ignore[union-attr]
    "scalar in": lambda array, key: key in array[0],  # type: ignore[operator]
    "scalar keys": lambda array, _: array[0].keys(),  # type: ignore[union-attr]
    "scalar values": lambda array, _: array[0].values(),  # type: ignore[union-attr]
    "scalar items": lambda array, _: array[0].items(),  # type: ignore[union-attr]
    "scalar list": lambda array, _: list(array[0]),  # type: ignore[arg-type]
    "scalar to_python": lambda array, _: array[0].to_python(),  # type: ignore[union-attr]
    "scalar to_json": lambda array, _: array[0].to_json(),  # type: ignore[union-attr]
    "scalar equals": lambda array, _: array[0] == array[0],
    "scalar hash": lambda array, _: hash(array[0]),
    "scalar validate": lambda array, _: array[0].validate(),  # type: ignore[union-attr]
}


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("read", READS)
def test_a_key_that_is_there_twice_is_one_error_everywhere(name: str, read: str) -> None:
    dictionary, value, key = OBJECTS[name]
    array = pv.VariantArray.from_variants([pv.Variant(dictionary, value)])
    with pytest.raises(pv.MalformedVariantError) as caught:
        READS[read](array, key)
    assert caught.value.reason == "duplicate-key"


@pytest.mark.parametrize("name", OBJECTS)
def test_validate_reports_it(name: str) -> None:
    dictionary, value, _ = OBJECTS[name]
    faults = pv.validate(pv.VariantArray.from_variants([pv.Variant(dictionary, value)]))
    assert "duplicate-key" in faults["reason"].to_pylist()


@pytest.mark.parametrize("name", OBJECTS)
def test_try_functions_give_null_for_it_and_the_other_rows(name: str) -> None:
    dictionary, value, key = OBJECTS[name]
    good = pv.Variant.from_python({key: 7})
    array = pv.VariantArray.from_variants([good, pv.Variant(dictionary, value), good])
    assert pv.to_json(array, errors="null").to_pylist() == [f'{{"{key}":7}}', None, f'{{"{key}":7}}']
    assert pv.to_python(array, errors="null") == [{key: 7}, None, {key: 7}]
    assert pv.equals(array, good, errors="null").to_pylist() == [True, None, True]


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize(
    "read", ["to_python", "to_json", "equals itself", "schema_of_variant", "set", "cast to string"]
)
def test_it_is_found_inside_of_other_values(name: str, read: str) -> None:
    dictionary, value, key = OBJECTS[name]
    inside = bytes([0b1111, 1, 0, 0, 0, 0, *len(value).to_bytes(4, "little")]) + value
    array = pv.VariantArray.from_variants([pv.Variant(dictionary, inside)])
    with pytest.raises(pv.MalformedVariantError) as caught:
        if read == "set":
            pv.variant_set(array, "$[5]", pv.from_python([3]))
        else:
            READS[read](array, key)
    assert caught.value.reason == "duplicate-key"


def test_keys_out_of_order_are_read_as_long_as_each_is_there_once() -> None:
    for count in (3, 40, 300):
        names = [f"k{number:04}" for number in range(count)]
        value = object_bytes(list(reversed(range(count))), [ONE] * count)
        variant = pv.Variant(metadata(names), value)
        array = pv.VariantArray.from_variants([variant])
        assert pv.to_json(array)[0].as_py() == variant.to_json()
        assert pv.to_python(array) == [dict.fromkeys(reversed(names), 1)]
        assert pv.variant_get(array, "$.k0001", "int").to_pylist() == [1]
        assert variant["k0002"].to_python() == 1
