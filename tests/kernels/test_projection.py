"""A tape that is projected to some paths has their values, as the whole tape has."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from parquet_variant.arrays.variant_array import VariantArray, trusted_array
from parquet_variant.kernels.shredding.json_batch import parse_text, shredded_rows
from parquet_variant.kernels.tapes.tape import project
from parquet_variant.types.path import WILDCARD, VariantPath

KEYS = st.sampled_from(["a", "b", "c", ""])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.lists(st.tuples(KEYS, inner), max_size=4),
    max_leaves=12,
)
PATHS = st.lists(st.lists(KEYS | st.integers(0, 2) | st.just(WILDCARD), max_size=3), max_size=3)


def text_of(value: object) -> str:
    """Return JSON, in which lists of pairs are objects that may have a key twice."""
    if isinstance(value, list) and value and all(isinstance(item, tuple) for item in value):
        return "{" + ", ".join(f"{json.dumps(key)}: {text_of(item)}" for key, item in value) + "}"
    return "[" + ", ".join(map(text_of, value)) + "]" if isinstance(value, list) else json.dumps(value)


def rows_of(texts: list[str], paths: list[VariantPath] | None) -> VariantArray:
    data = [text.encode() for text in texts]
    stops = np.cumsum([len(text) for text in data], dtype=np.int64)
    starts = stops - np.array([len(text) for text in data], np.int64)
    tape = parse_text(np.frombuffer(b"".join(data), np.uint8), starts, stops).tape
    rows = shredded_rows(tape if paths is None else project(tape, paths), per_batch=True)
    return trusted_array(rows.storage())


@given(st.lists(VALUES, min_size=1, max_size=5), PATHS)
def test_paths_have_the_values_of_the_whole(values: list[object], segments: list[list[str | int]]) -> None:
    texts = [text_of(value) for value in values]
    paths = [VariantPath(tuple(path)) for path in segments]
    whole, projected = rows_of(texts, None), rows_of(texts, paths)
    assert len(projected) == len(whole)
    for path in paths:
        for left, right in zip(projected, whole, strict=True):
            assert _at(left.to_python(), path.segments) == _at(right.to_python(), path.segments)
    if any(not path.segments for path in paths):
        assert [value.to_bytes() for value in projected] == [value.to_bytes() for value in whole]


def _at(value: object, segments: tuple[object, ...]) -> object:
    """Return the value at a path, a list for each wildcard."""
    for number, segment in enumerate(segments):
        if segment is WILDCARD:
            return [_at(item, segments[number + 1 :]) for item in value] if isinstance(value, list) else None
        if isinstance(segment, str):
            value = value.get(segment) if isinstance(value, dict) else None
        else:
            value = value[segment] if isinstance(value, list) and segment < len(value) else None
    return value


def test_other_fields_are_gone() -> None:
    rows = rows_of(
        ['{"a": {"b": 1, "c": [2]}, "d": "x", "a2": 3}', "[1]"], [VariantPath(("a", "b")), VariantPath(("e",))]
    )
    assert [value.to_python() for value in rows] == [{"a": {"b": 1}}, [1]]
