"""JSON in strings inside JSON: ``json_column="$.payload"`` replaces each string at the path by the value in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from parquet_variant.arrays.variant_array import VariantArray, trusted_array
from parquet_variant.encoding.json_reader import JsonOptions
from parquet_variant.errors import JsonError
from parquet_variant.kernels.arrow_buffers import from_numpy
from parquet_variant.kernels.memory import address_of, copy_spans
from parquet_variant.kernels.shredding.json_batch import parse_text, shredded_rows
from parquet_variant.kernels.tapes.tape import DROPPED, Tape, path_ids
from parquet_variant.path import VariantPath
from parquet_variant.types import PrimitiveId


@dataclass(frozen=True, slots=True)
class ParsedStrings:
    """The outcome of parsing the strings at a path.

    Parameters
    ----------
    array
        The rows with the parsed values; None if there is a fault, or no string to parse.
    faults
        ``(row, error)`` of each string that is not JSON, in order.
    inexact
        ``(row, text)`` of each number in the strings that is not kept exactly.
    """

    array: VariantArray | None
    faults: list[tuple[int, JsonError]]
    inexact: list[tuple[int, bytes]]


def parse_strings(tape: Tape, path: VariantPath, options: JsonOptions) -> ParsedStrings:
    """Parse the strings at a path of some rows; other values at the path are kept.

    >>> from parquet_variant.arrays.tapes import array_tapes
    >>> rows = VariantArray.from_pylist([{"p": '{"a": 1}'}, {"p": 2}, {}])
    >>> parse_strings(next(array_tapes(rows, 0)), VariantPath.parse("$.p"), JsonOptions()).array.to_pylist()
    [{'p': {'a': 1}}, {'p': 2}, {}]
    """
    from parquet_variant.ops.value_edits import variant_set

    number = tape.find_path(path.segments)
    if number is None:
        return ParsedStrings(None, [], [])
    tags = tape.nodes[:, 0]
    is_string = ((tags & 0xFF) == PrimitiveId.STRING) & (tags & DROPPED == 0)
    nodes = np.flatnonzero(is_string & (path_ids(tags) == number))
    if not len(nodes):
        return ParsedStrings(None, [], [])
    rows = np.searchsorted(tape.row_start, nodes, "right") - 1
    sizes = tape.nodes[nodes, 2].copy()
    stops = np.cumsum(sizes)
    data = np.empty(int(stops[-1]) + 1, np.uint8)
    copy_spans(tape.nodes[nodes, 1].copy(), sizes, address_of(data))
    parsed = parse_text(data, stops - sizes, stops, options=options, null_on_error=True)
    inexact = [(int(rows[index]), text) for index, text in parsed.inexact]
    if parsed.faults:
        faults = [(int(rows[index]), _at_path(error, path)) for index, error in parsed.faults]
        return ParsedStrings(None, faults, inexact)
    values = trusted_array(shredded_rows(parsed.tape).storage())
    outer = trusted_array(shredded_rows(tape).storage())
    changed = variant_set(outer.take(from_numpy(rows)), path, values)
    positions = np.arange(tape.rows)
    positions[rows] = tape.rows + np.arange(len(rows))
    return ParsedStrings(VariantArray.concat([outer, changed]).take(from_numpy(positions)), [], inexact)


def _at_path(error: JsonError, path: VariantPath) -> JsonError:
    return JsonError(f"the string at {path.shorthand}: {error.message}", reason=error.reason, offset=error.offset)
