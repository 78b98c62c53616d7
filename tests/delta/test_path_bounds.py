"""PathBounds by path: true for every value, cut soundly, and only where the type is one."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.inference.statistics import (
    array_statistics,
    lower_text,
    residual_objects,
    shredded_bounds,
    uniform_schema,
    upper_text,
)
from parquet_variant.types.path import VariantPath

LOW, HIGH = Decimal("-2.25"), Decimal("1.50")
TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("\ud7ff\U0010ffff"), max_size=8)


@given(TEXT, st.integers(1, 5))
def test_a_cut_text_still_bounds(text: str, length: int) -> None:
    low, high = lower_text(text, length), upper_text(text, length)
    assert len(low) <= length
    assert low.encode() <= text.encode()
    if high is None:
        assert text[:length] == "\U0010ffff" * length
    else:
        assert len(high) <= length
        assert text.encode() <= high.encode()


def bounds(rows: list[Any], schema: str) -> dict[str, tuple[Any, Any]]:
    array = pv.shred_variant(pv.VariantArray.from_pylist(rows), schema)
    assert array.schema is not None
    found = shredded_bounds(array.schema, array_statistics(array), unsafe=residual_objects(array))
    return {str(p): tuple(None if v is None else v.to_python() for v in (b.lower, b.upper)) for p, b in found.items()}


@pytest.mark.parametrize(
    ("rows", "schema", "expected"),
    [
        ([{"a": 1}, {"a": 3}, {}, None], "a bigint", {"$['a']": (1, 3)}),
        ([{"a": 1}, {"a": "x"}], "a bigint", {}),
        ([{"a": 1}, {"a": pv.Variant.from_python(None)}], "a bigint", {}),
        ([5, 2, 9], "bigint", {"$": (2, 9)}),
        ([5, {"a": 1}], "bigint", {}),
        ([{"a": 1.5}, {"a": float("nan")}], "a double", {}),
        ([{"a": -0.0}, {"a": 0.0}], "a double", {"$['a']": (0.0, 0.0)}),
        ([{"a": float("inf")}, {"a": 1.0}], "a double", {"$['a']": (1.0, float("inf"))}),
        ([{"a": LOW}, {"a": HIGH}], "a decimal(9,2)", {"$['a']": (LOW, HIGH)}),
        ([{"a": [1, 2]}], "a array<bigint>", {}),
        ([{"a": b"xy"}], "a binary", {}),
        ([{"a": True}, {"a": False}], "a boolean", {"$['a']": (False, True)}),
        ([{"a": {"b c'": 1}}, {"a": 5}], "a struct<`b c'`: bigint>", {r"$['a']['b c\'']": (1, 1)}),
        ([{"a": "x" * 40}], "a string", {"$['a']": ("x" * 32, "x" * 31 + "y")}),
        ([{"a": "\U0010ffff" * 40}], "a string", {"$['a']": ("\U0010ffff" * 32, None)}),
        ([{}, None], "a bigint", {}),
    ],
)  # fmt: skip
def test_a_path_has_bounds_only_where_it_has_one_type(
    rows: list[Any], schema: str, expected: dict[str, tuple[Any, Any]]
) -> None:
    assert bounds(rows, schema) == expected


@pytest.mark.parametrize(
    ("rows", "ddl"),
    [
        ([{"a": 1, "b": {"c": "x"}}, {"a": 2**40}], "a bigint, b struct<c: string>"),
        ([{"a": 1}, {"a": Decimal("1.5")}], None),
        ([{"a": Decimal("12.5")}, {"a": Decimal("1.25")}], "a decimal(4,2)"),
        ([{"a": 1}, {"a": pv.Variant.from_python(None)}], None),
        ([{"a": [1]}, {"a": {"b": 1}}], "a struct<b: bigint>"),
        ([1, 2], "bigint"),
        ([True, False], "boolean"),
        ([b"x"], None),
        ([], None),
        ([None], None),
        ([{"a": 1, "b": 1, "c": 1}], "a bigint, b bigint"),
    ],
)
def test_the_paths_of_unshredded_values_that_have_one_type(rows: list[Any], ddl: str | None) -> None:
    schema = uniform_schema(pv.VariantArray.from_pylist(rows), 2)
    assert (None if schema is None else schema.to_ddl()) == ddl


def test_bounds_keep_the_columns_type_as_other_writers_do() -> None:
    array = pv.shred_variant(pv.VariantArray.from_pylist([{"a": 1}, {"a": 2}]), "a bigint")
    assert array.schema is not None
    found = shredded_bounds(array.schema, array_statistics(array))[VariantPath(("a",))]
    assert found.lower is not None
    assert found.lower.type == pv.VariantType.INT64


def test_an_object_kept_whole_in_a_residual_hides_nothing() -> None:
    # Against the specification, but a reader that goes on finds a = 100 in the first row.
    kept = pv.Variant.from_python({"a": 100})
    shredded = pv.shred_variant(pv.VariantArray.from_pylist([{"a": 1}, {"a": 2}]), "a bigint")
    storage = shredded.storage
    typed = storage.field("typed_value").take(pa.array([None, 1]))
    value = pa.array([kept.value, None], pa.binary())
    metadata = pa.array([kept.metadata] * 2, pa.binary())
    array = pv.VariantArray(pa.StructArray.from_arrays([metadata, value, typed], ["metadata", "value", "typed_value"]))
    assert residual_objects(array) == {VariantPath()}
    assert array.schema is not None
    assert shredded_bounds(array.schema, array_statistics(array), unsafe=residual_objects(array)) == {}


SCALARS = st.integers(-(2**63), 2**63 - 1) | st.booleans() | TEXT | st.floats(width=64) | st.none()


@given(st.lists(st.dictionaries(st.sampled_from(["a", "b"]), SCALARS, max_size=2), min_size=1, max_size=12))
def test_no_value_is_outside_of_its_paths_bounds(rows: list[dict[str, Any]]) -> None:
    array = pv.VariantArray.from_pylist(rows)
    for kind, python in (("bigint", int), ("double", float), ("string", str), ("boolean", bool)):
        for name, (low, high) in bounds(rows, f"a {kind}, b {kind}").items():
            values = [v for row in array if (v := row.get(name)) is not None]
            assert values
            for value in values:
                found = value.to_python()
                assert type(found) is python or (python is float and type(found) in (int, Decimal))
                key = found.encode() if isinstance(found, str) else found
                assert low is None or (low.encode() if isinstance(low, str) else low) <= key
                assert high is None or key <= (high.encode() if isinstance(high, str) else high)
