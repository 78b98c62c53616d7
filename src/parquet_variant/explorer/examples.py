"""Examples of the values in some rows: the first distinct ones of every type at every path, as short JSON.

Owns how many rows are searched, and the length of an example. Leaves decoding rows to `arrays.tapes`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from typing import TypeAlias

import numpy as np

from parquet_variant.arrays.tapes import array_tapes
from parquet_variant.arrays.variant_array import VariantArray, trusted_array
from parquet_variant.kernels.records import KIND
from parquet_variant.kernels.shredding.json_batch import shredded_rows
from parquet_variant.kernels.tapes.tape import PATH, Tape, path_ids
from parquet_variant.ops.conversions import to_json
from parquet_variant.path import WILDCARD, Segment
from parquet_variant.types import TYPE_OF_ID, PrimitiveId, VariantType

# Rows that are searched at most, and about the number of values in them.
_ROWS = 400
_VALUES = 12_000
# Examples of a type at a path, and the characters of an example.
_EXAMPLES = 3
_TEXT = 60

# For each path, for each type: the number of a row, and JSON.
Examples: TypeAlias = dict[tuple[Segment, ...], dict[str, list[tuple[int, str]]]]


def examples_of(rows: VariantArray, values: int) -> Examples:
    """Return examples from the first rows.

    `values`: the number of values in all rows.

    >>> import parquet_variant as pv
    >>> examples_of(pv.parse_json(['{"a": [1, 2.5]}', '{"a": [1]}']), 6)[("a", WILDCARD)]
    {'int8': [(0, '1')], 'decimal4': [(0, '2.5')]}
    """
    count = min(_ROWS, -(-_VALUES * len(rows) // max(values, 1)))
    examples: Examples = {}
    for tape in islice(array_tapes(rows[:count], 0), 1):
        segments = _segments(tape)
        for (path, type_name), rows_by_text in _distinct_texts(tape).items():
            of_path = examples.setdefault(segments[path], {})
            of_path[type_name] = [(row, text) for text, row in rows_by_text.items()]
    return examples


def _segments(tape: Tape) -> list[tuple[Segment, ...]]:
    """Return the segments of each path of a tape."""
    keys = [key.decode("utf-8", "replace") for key in tape.key_list]
    segments: list[tuple[Segment, ...]] = [()]
    for parent, key in tape.paths[1:, [PATH.PARENT, PATH.KEY]].tolist():
        segments.append((*segments[parent], WILDCARD if key < 0 else keys[key]))
    return segments


def _distinct_texts(tape: Tape) -> dict[tuple[int, str], dict[str, int]]:
    """Return the first distinct texts with their rows, by path id and type."""
    kinds = tape.nodes[:, 0] & 0xFF
    type_names = [str(_type_of(kind)) for kind in range(KIND.OBJECT + 1)]
    paths = path_ids(tape.nodes[:, 0]).tolist()
    row_numbers = np.repeat(np.arange(tape.rows), np.diff(tape.row_start)).tolist()
    distinct: dict[tuple[int, str], dict[str, int]] = {}
    for kind, path, row, text in zip(kinds.tolist(), paths, row_numbers, _node_texts(tape), strict=True):
        rows_by_text = distinct.setdefault((path, type_names[kind]), {})
        if len(rows_by_text) < _EXAMPLES:
            rows_by_text.setdefault(text, row)
    return distinct


def _type_of(kind: int) -> VariantType:
    if kind < KIND.ARRAY:
        return TYPE_OF_ID[PrimitiveId(kind)].type
    return VariantType.ARRAY if kind == KIND.ARRAY else VariantType.OBJECT


def _node_texts(tape: Tape) -> list[str]:
    """Return the beginning of the JSON of each node of a tape."""
    kinds, ends = tape.nodes[:, 0] & 0xFF, tape.nodes[:, 3].tolist()
    scalars, containers = np.flatnonzero(kinds < KIND.ARRAY), np.flatnonzero(kinds >= KIND.ARRAY)
    texts = [""] * len(kinds)
    for number, text in zip(scalars.tolist(), _scalar_texts(tape, scalars), strict=True):
        texts[number] = _shortened(text)
    keys = tape.paths[path_ids(tape.nodes[:, 0]), PATH.KEY].tolist()
    names = [json.dumps(key.decode("utf-8", "replace"), ensure_ascii=False) + ":" for key in tape.key_list]
    for number in reversed(containers.tolist()):  # children before parents
        is_object = kinds[number] == KIND.OBJECT
        text, separator, child = "{" if is_object else "[", "", number + 1
        while child < ends[number] and len(text) <= _TEXT:
            text += separator + (names[keys[child]] if is_object else "") + texts[child]
            separator, child = ",", ends[child]
        texts[number] = _shortened(text + ("}" if is_object else "]"))
    return texts


def _scalar_texts(tape: Tape, scalars: np.ndarray[tuple[int], np.dtype[np.intp]]) -> list[str]:
    """Return the JSON of scalar nodes, each as a row."""
    nodes = tape.nodes[scalars]
    nodes[:, 0] &= 0xFFFF  # the path of the root
    nodes[:, 3] = np.arange(1, len(nodes) + 1)
    as_rows = replace(tape, nodes=nodes, row_start=np.arange(len(nodes) + 1))
    texts: list[str] = to_json(trusted_array(shredded_rows(as_rows).storage())).to_pylist()
    return texts


def _shortened(text: str) -> str:
    return text if len(text) <= _TEXT else text[: _TEXT - 1] + "…"
