"""``errors="null"`` gives null for rows that raise, and the same results for all other rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import parquet_variant as pv

BAD = pv.Variant(b"\x11\0\0", b"\x0c")
GOOD = [pv.Variant.from_python(value) for value in ({"a": 1}, [1, None], "x", None, 2.5)]
FUNCTIONS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (pv.to_json, ()),
    (pv.to_python, ()),
    (pv.schema_of_variant, ()),
    (pv.variant_type, ()),
    (pv.is_variant_null, ()),
    (pv.strip_nulls, ()),
    (pv.variant_normalize, ()),
    (pv.variant_delete, ("$.a",)),
    (pv.equals, (GOOD[0],)),
]


def _rows(result: Any) -> list[Any]:
    return result if isinstance(result, list) else result.to_pylist()


@pytest.mark.parametrize(("function", "arguments"), FUNCTIONS, ids=lambda each: getattr(each, "__name__", ""))
@pytest.mark.parametrize("bad", [(), (0,), (4,), (1, 2), (0, 1, 2, 3, 4, 5)])
def test_rows_at_fault_are_null_and_no_others(
    function: Callable[..., Any], arguments: tuple[Any, ...], bad: tuple[int, ...]
) -> None:
    rows = list(GOOD)
    for place in bad:
        rows.insert(place, BAD)
    places = [number for number, row in enumerate(rows) if row is BAD]
    expected = _rows(function(pv.VariantArray.from_variants(GOOD), *arguments))

    found = _rows(function(pv.VariantArray.from_variants(rows), *arguments, errors="null"))

    assert [found[place] for place in places] == [None] * len(places)
    assert [each for number, each in enumerate(found) if number not in places] == expected
    if places:
        with pytest.raises(pv.VariantError):
            function(pv.VariantArray.from_variants(rows), *arguments)


@pytest.mark.parametrize(("function", "arguments"), FUNCTIONS, ids=lambda each: getattr(each, "__name__", ""))
def test_an_unknown_value_of_errors_is_refused(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    for source in (GOOD[0], pv.VariantArray.from_variants(GOOD)):
        with pytest.raises(pv.VariantError, match="errors is 'ignore': use raise or null"):
            function(source, *arguments, errors="ignore")


def test_unknown_options_and_invalid_paths_raise_with_errors_null() -> None:
    with pytest.raises((pv.VariantError, TypeError)):
        pv.parse_json("1", no_such_option=1, errors="null")  # type: ignore[call-overload]
    with pytest.raises(pv.PathError):
        pv.is_variant_null(GOOD[0], "$[", errors="null")
