"""The JSON writer kernel writes what the reference writes."""

from __future__ import annotations

import ctypes
import json
import math
import mmap
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.kernels.int128 import digits_of, divide_by_power, multiply_power
from parquet_variant.kernels.json.scalar_text import shortest_decimal
from variant_strategies import json_texts, mutated_variants, shredding_schemas, variants


def outcome(work: Any) -> Any:
    try:
        return work()
    except pv.VariantError as error:
        return type(error), error.reason


@given(st.lists(st.none() | variants(), max_size=4))
def test_values_of_every_type(values: list[Any]) -> None:
    array = pv.VariantArray.from_variants(values)
    assert pv.to_json(array).to_pylist() == [None if value is None else value.to_json() for value in values]


@given(st.data())
def test_shredded_values_are_written_like_unshredded_ones(data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | variants(), max_size=4))
    schema = data.draw(shredding_schemas(values))
    array = pv.VariantArray.from_variants(values)
    assert pv.to_json(pv.shred_variant(array, schema)).equals(pv.to_json(array))


@given(mutated_variants(), shredding_schemas())
def test_malformed_residuals_raise_what_unshredding_and_writing_raise(value: Any, schema: Any) -> None:
    array = pv.VariantArray.from_variants([value])

    shredded = outcome(lambda: pv.shred_variant(array, schema))
    if isinstance(shredded, pv.VariantArray):
        assert outcome(lambda: pv.to_json(shredded).to_pylist()) == outcome(
            lambda: pv.to_json(pv.unshred_variant(shredded)).to_pylist()
        )


@given(mutated_variants())
def test_malformed_values_raise_what_the_reference_raises(value: Any) -> None:
    array = pv.VariantArray.from_variants([value])

    assert outcome(lambda: pv.to_json(array).to_pylist()) == outcome(lambda: [value.to_json()])


@given(st.lists(json_texts(), max_size=4))
def test_text_to_value_to_text_to_value(texts: list[str]) -> None:
    once = pv.parse_json(pa.array(texts, pa.string()))
    for value, again in zip(once, pv.parse_json(pv.to_json(once)), strict=True):
        # What has no JSON number (1e400 is Infinity) is written as a string.
        assert numbers_as_python(value) == numbers_as_python(again)


def numbers_as_python(value: Any) -> Any:
    """Decimals lose zeros at their end on the way, doubles become decimals, whole ones integers, infinities strings."""

    def plain(item: Any) -> Any:
        if isinstance(item, dict):
            return {key: plain(child) for key, child in item.items()}
        if isinstance(item, list):
            return [plain(child) for child in item]
        if isinstance(item, float) and not math.isfinite(item):
            return {math.inf: "Infinity", -math.inf: "-Infinity"}[item]
        if isinstance(item, float | Decimal):
            return int(item) if item == int(item) else float(item)
        return item

    return plain(value.to_python())


@given(st.floats(min_value=0, exclude_min=True, allow_infinity=False, allow_nan=False))
def test_shortest_digits_are_those_of_python(number: float) -> None:
    digits, exponent = shortest_decimal(int(np.float64(number).view(np.int64)))
    assert Decimal(digits).scaleb(exponent) == Decimal(repr(number))


def halves(number: int) -> tuple[int, int]:
    low = number & (1 << 64) - 1
    return number >> 64, low - (1 << 64) if low >> 63 else low


def whole(high: int, low: int) -> int:
    return (high << 64) | (low & (1 << 64) - 1)


@given(st.integers(-(10**38) + 1, 10**38 - 1), st.integers(0, 38))
def test_128_bit_arithmetic(number: int, power: int) -> None:
    high, low = halves(number)
    assert digits_of(high, low) == len(str(abs(number)))
    exact, *quotient = divide_by_power(high, low, power, False)
    assert exact == (number % 10**power == 0)
    if exact:
        assert whole(*quotient) == number // 10**power
    rounded = (abs(number) + 10**power // 2) // 10**power
    assert whole(*divide_by_power(high, low, power, True)[1:]) == (rounded if number >= 0 else -rounded)
    fits, *product = multiply_power(high, low, power)
    assert fits == (abs(number) * 10**power < 10**38)
    if fits:
        assert whole(*product) == number * 10**power


@given(st.integers(0, 140), st.sampled_from(['"', "\n", "é", "😀", "\x01", ""]))
def test_strings_are_escaped_wherever_they_end(plain: int, special: str) -> None:
    texts = ["x" * plain + special + "y" * more for more in range(3)]
    array = pv.VariantArray.from_pylist(texts)
    assert pv.to_json(array).to_pylist() == [json.dumps(text, ensure_ascii=False) for text in texts]


@pytest.mark.skipif(sys.platform != "linux", reason="protects memory by mprotect of the C library")
@pytest.mark.parametrize("size", [1, 7, 31, 32, 33, 64])
def test_nothing_is_read_beyond_the_page_that_a_string_ends_in(size: int) -> None:
    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    memory = np.frombuffer(pages, np.uint8)
    mprotect = ctypes.CDLL(None).mprotect
    forbidden = ctypes.c_void_p(memory.ctypes.data + mmap.PAGESIZE)
    unshredded = pv.VariantArray.from_pylist(["x" * size])
    value = unshredded.storage.field("value")[0].as_py()
    memory[mmap.PAGESIZE - len(value) : mmap.PAGESIZE] = np.frombuffer(value, np.uint8)
    at_the_end = pa.py_buffer(memory[mmap.PAGESIZE - len(value) : mmap.PAGESIZE])
    offsets = pa.py_buffer(np.array([0, len(value)], np.int32))
    column = pa.Array.from_buffers(pa.binary(), 1, [None, offsets, at_the_end])
    storage = pa.StructArray.from_arrays(
        [unshredded.storage.field("metadata"), column], fields=list(unshredded.storage.type)
    )
    assert mprotect(forbidden, ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    try:
        assert pv.to_json(pv.VariantArray(storage)).to_pylist() == [f'"{"x" * size}"']
    finally:
        mprotect(forbidden, ctypes.c_size_t(mmap.PAGESIZE), mmap.PROT_READ | mmap.PROT_WRITE)
