"""Every `try_` function gives null for the rows at fault, and for all others what its twin gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import parquet_variant as pv

BAD = pv.Variant(b"\x11\0\0", b"\x0c")
GOOD = [pv.Variant.from_python(value) for value in ({"a": 1}, [1, None], "x", None, 2.5)]
TWINS: list[tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]] = [
    (pv.to_json, pv.try_to_json, ()),
    (pv.to_python, pv.try_to_python, ()),
    (pv.schema_of_variant, pv.try_schema_of_variant, ()),
    (pv.variant_type, pv.try_variant_type, ()),
    (pv.is_variant_null, pv.try_is_variant_null, ()),
    (pv.strip_nulls, pv.try_strip_nulls, ()),
    (pv.variant_normalize, pv.try_variant_normalize, ()),
    (pv.variant_delete, pv.try_variant_delete, ("$.a",)),
    (pv.equals, pv.try_equals, (GOOD[0],)),
]


def _rows(result: Any) -> list[Any]:
    return result if isinstance(result, list) else result.to_pylist()


@pytest.mark.parametrize(("function", "twin", "arguments"), TWINS, ids=lambda each: getattr(each, "__name__", ""))
@pytest.mark.parametrize("bad", [(), (0,), (4,), (1, 2), (0, 1, 2, 3, 4, 5)])
def test_rows_at_fault_are_null_and_no_others(
    function: Callable[..., Any], twin: Callable[..., Any], arguments: tuple[Any, ...], bad: tuple[int, ...]
) -> None:
    rows = list(GOOD)
    for place in bad:
        rows.insert(place, BAD)
    places = [number for number, row in enumerate(rows) if row is BAD]
    expected = _rows(function(pv.VariantArray.from_variants(GOOD), *arguments))

    found = _rows(twin(pv.VariantArray.from_variants(rows), *arguments))

    assert [found[place] for place in places] == [None] * len(places)
    assert [each for number, each in enumerate(found) if number not in places] == expected
    if places:
        with pytest.raises(pv.VariantError):
            function(pv.VariantArray.from_variants(rows), *arguments)


def test_an_option_that_there_is_not_is_an_error_for_twins_too() -> None:
    with pytest.raises((pv.VariantError, TypeError)):
        pv.try_parse_json("1", no_such_option=1)
    with pytest.raises(pv.PathError):
        pv.try_is_variant_null(GOOD[0], "$[")
