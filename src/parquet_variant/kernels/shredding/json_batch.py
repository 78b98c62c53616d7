"""From JSON text to a tape, and from a tape to a storage: the callers of the kernels, which raise their errors.

Owns allocation, and rounding the doubles that the kernel leaves as text. Leaves the work to `tapes.parse_json`,
`tapes.dictionaries` and `shred_tape`, and the wording of errors to `encoding.json_reader`, which reads a refused row
again.
"""

from __future__ import annotations

from dataclasses import field
from decimal import Decimal
from itertools import starmap
from math import isfinite
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from parquet_variant.encoding.json_reader import JsonOptions, parse_json
from parquet_variant.errors import JsonError, VariantError
from parquet_variant.kernels.buffer_pool import acquire, acquire_result, adopt, adopt_bytes, release, result_block
from parquet_variant.kernels.json.scan import STATUS
from parquet_variant.kernels.machine_code.functions import kernel
from parquet_variant.kernels.machine_code.signatures import Int32s, Int64Table
from parquet_variant.kernels.memory import HASH_SEED, address_of
from parquet_variant.kernels.native_vectors import Memory, address_in, filled_vector, new_vector, own, table_at
from parquet_variant.kernels.shredding.schema_table import FilledBuffers, SchemaTable, ShreddedRows, schema_table
from parquet_variant.kernels.shredding.shred_tape import ShreddedTape, shred_nodes
from parquet_variant.kernels.tapes.dictionaries import metadata_column
from parquet_variant.kernels.tapes.parse_json import ParsedNodes, Rules, TextSpans, parse_rows
from parquet_variant.kernels.tapes.tape import Tape, without_dropped
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.records import Record
from parquet_variant.types import MAX_OFFSET

Int64s = npt.NDArray[np.int64]
_NO_BYTES = np.empty(0, np.uint8)
# Bytes of a number of 15 digits and a point, and a double that has 15 digits, as smaller ones may not.
_EXACT_LENGTH, _SMALLEST_EXACT = 16, 1e-300
_UNSHREDDED = schema_table(ShreddingSchema.variant())
_SHORT_BYTES = 512 << 10  # More bytes of text are worth several threads.
_parse_rows, _shred_nodes = cast("tuple[Any, Any]", (parse_rows, shred_nodes))  # which take the memory of a kernel


class ParsedRows(Record, frozen=False, eq=False):
    """A tape, and the errors of rows that could not be parsed (null on the tape)."""

    tape: Tape
    faults: list[tuple[int, JsonError]]  # ``(row, error)`` of each invalid row, in order.
    # ``(row, text)`` of each number that is not kept exactly, in order.
    inexact: list[tuple[int, bytes]] = field(default_factory=list)


def _fault(text: bytes, row: int, options: JsonOptions) -> JsonError:
    """Return the error of a row that the kernel refused, worded by the scalar reader."""
    try:
        parse_json(text, options)
    except JsonError as error:
        error.at(row=row)
        return error
    return JsonError("the parser kernel refuses this text; please report it as a bug", reason="internal", row=row)


def _arguments(
    data: npt.NDArray[np.uint8],
    starts: Int64s,
    stops: Int64s,
    valid: npt.NDArray[np.uint8] | None,
    options: JsonOptions,
    null_on_error: bool,
) -> tuple[TextSpans, ParsedNodes, Rules, npt.NDArray[np.uint8]]:
    """Return the arguments of `parse_rows`, and the memory for unescaped text, which the caller keeps alive."""
    rows, address, sizes = len(starts), address_of(data), stops - starts
    if len(data) > options.max_size:
        sizes = sizes[sizes <= options.max_size]  # longer rows are refused without being read
    total = int(np.add.reduce(sizes))
    # A value takes at least one character, plus one that separates it from the next value or closes it.
    count = total // 2 + rows + 2
    nodes = acquire(np.int64, count + min(options.max_depth, total), 4)
    scratch = acquire_result(np.uint8, total + 8)
    rules = Rules(
        as_double=options.floats == "double",
        refuse_duplicates=options.on_duplicate_key == "error",
        replace_surrogates=options.on_lone_surrogate == "replace",
        max_depth=options.max_depth,
        max_size=options.max_size,
        null_on_error=null_on_error,
        seed=HASH_SEED,
        limit=address + len(data) - 32,
    )
    spans = TextSpans(address, starts, stops, _NO_BYTES if valid is None else valid, address_of(scratch))
    row_start, status = np.empty(rows + 1, np.int64), np.zeros(rows, np.int32)
    return spans, ParsedNodes(nodes, row_start, status, acquire(np.int64, count)), rules, scratch


def parse_text(
    data: npt.NDArray[np.uint8],
    starts: Int64s,
    stops: Int64s,
    valid: npt.NDArray[np.uint8] | None = None,
    options: JsonOptions | None = None,
    *,
    null_on_error: bool = False,
    first_row: int = 0,
) -> ParsedRows:
    """Parse spans of a text, one per row.

    `data`: the text of all rows.
    `starts` and `stops`: ``int64[rows]``: where the text of each row is in ``data``.
    `valid`: one byte per row, 0 for SQL NULL.
    `options`: how to read the text.
    `null_on_error`: whether a bad row becomes null and is listed, or raises.
    `first_row`: the number of the first row, for errors.

    Raises `JsonError` for the first bad row, unless ``null_on_error``.
    """
    options = options or JsonOptions()
    spans, out, rules, scratch = _arguments(data, starts, stops, valid, options, null_on_error)
    count, double_count, dropped, tables = parse_rows(spans, out, rules)
    nodes, row_start, status, doubles = out
    keys, paths, shapes = starmap(adopt, tables)
    (bad,) = status.nonzero()
    faults = [
        (first_row + row, _fault(data[starts[row] : stops[row]].tobytes(), first_row + row, options))
        for row in (bad if null_on_error else bad[:1]).tolist()
    ]
    if faults and not null_on_error:
        raise faults[0][1]
    inexact = [
        (first_row + int(np.searchsorted(row_start, node, side="right")) - 1, text)
        for node, text in _round_doubles(nodes, doubles[:double_count], data)
    ]
    release(doubles[:double_count])
    tape = Tape(nodes[:count], row_start, keys, paths, shapes, (data, scratch), len(scratch))
    return ParsedRows(without_dropped(tape) if dropped else tape, faults, inexact)


def _round_doubles(nodes: Int64s, which: Int64s, data: npt.NDArray[np.uint8]) -> list[tuple[int, bytes]]:
    """Replace the text of doubles by their bits, as `float` does; return ``(node, text)`` of inexact numbers."""
    if not len(which):
        return []
    text, base = data.tobytes(), data.ctypes.data
    starts = nodes[which, 1] - base
    lengths = nodes[which, 2]
    values = np.array(
        [float(text[start : start + size]) for start, size in zip(starts.tolist(), lengths.tolist(), strict=True)],
        np.float64,
    )
    nodes[which, 1] = values.view(np.int64)
    nodes[which, 2] = 0
    # A double keeps up to 15 digits, so that the texts of nearly all numbers need no comparison.
    size = np.abs(values)
    candidates = np.flatnonzero((lengths > _EXACT_LENGTH) | (size < _SMALLEST_EXACT) | ~np.isfinite(values))
    inexact = []
    for index in candidates.tolist():
        number, value = text[starts[index] : starts[index] + lengths[index]], float(values[index])
        if value == 0:
            is_exact = not any(digit in number.lower().partition(b"e")[0] for digit in b"123456789")
        else:
            is_exact = isfinite(value) and Decimal(number.decode()) == Decimal(repr(value))
        if not is_exact:
            inexact.append((int(which[index]), number))
    return inexact


def _name_keys(table: SchemaTable, tape: Tape) -> Int64s:
    """Return the key id of each schema node's name; -1 for array elements, -2 for names that the batch lacks."""
    key_of_name = {name: key for key, name in enumerate(tape.key_list)} if len(table.names) > 1 else {}
    return np.array([-1 if name is None else key_of_name.get(name.encode(), -2) for name in table.names], np.int64)


def shredded_rows(
    tape: Tape,
    schema: ShreddingSchema | None = None,
    *,
    per_batch: bool = False,
    first_row: int = 0,
) -> ShreddedRows:
    """Encode a tape without shredding, or shred it under a schema.

    `tape`: the values.
    `schema`: the shredding schema; None shreds nothing.
    `per_batch`: one metadata for all rows, instead of one for each distinct key set.
    `first_row`: the number of the first row, for errors.

    Raises `VariantError` with reason ``too-large`` and the row, for a value that would take 2 GiB.
    """
    table = _UNSHREDDED if schema is None else schema_table(schema)
    shredded = ShreddedTape(
        tape.nodes, tape.row_start, tape.paths, tape.shapes, np.empty(len(tape.paths), np.int64), table.nodes,
        np.empty(tape.rows, np.int32),
    )  # fmt: skip
    sizes, places = acquire(np.int32, len(tape.nodes)), acquire(np.int64, len(tape.nodes))
    filled = FilledBuffers.of(table)
    status, row, count, data = shred_nodes(
        shredded, tape.keys, _name_keys(table, tape), per_batch, MAX_OFFSET, sizes, places, filled,
        result_block(tape.text_bytes * 7 // 8 if schema is None else 0),
    )  # fmt: skip
    release(sizes, places)
    if status != STATUS.OK and row < 0:
        raise VariantError("the metadata of these rows exceeds 2 GiB: parse fewer rows at a time", reason="too-large")
    if status != STATUS.OK:
        raise VariantError("the encoded value takes more than 2 GiB", reason="too-large", row=first_row + row)
    metadata = metadata_column(shredded.of_row, count, adopt_bytes(*data))
    null = tape.row_start[1:] == tape.row_start[:-1]
    valid = (~null).astype(np.uint8) if np.count_nonzero(null) else None
    return ShreddedRows(table, metadata, valid, filled)


@kernel
def parse_and_encode(
    memory: Memory,
    spans: TextSpans,
    parsed: ParsedNodes,
    rules: Rules,
    per_batch: bool,
    schema: Int64Table,
    sizes: Int32s,
    of_row: Int32s,
    out: FilledBuffers,
) -> tuple[bool, int, tuple[int, int]]:
    """Do the work of `parse_rows`, and of `shred_nodes` for the schema that shreds nothing.

    Returns ``(done, dictionaries, metadata)``; not done if a text is bad, or a number or repeated key needs Python.
    """
    count, doubles, refused, (keys, paths, shapes) = _parse_rows(memory, spans, parsed, rules)
    for table in (keys, paths, shapes):
        own(memory, table[0])
    for row in range(len(of_row)):
        refused += parsed.status[row]
    if doubles + refused > 0:
        return False, 0, (0, 0)
    tape = ShreddedTape(
        table_at(address_in(parsed.nodes), count, 4), parsed.row_start, table_at(paths[0], paths[1], paths[2]),
        table_at(shapes[0], shapes[1], shapes[2]), new_vector(memory, paths[1]), schema, of_row,
    )  # fmt: skip
    key_table, root = table_at(keys[0], keys[1], keys[2]), filled_vector(memory, 1, -1)
    status, _, dictionaries, metadata = _shred_nodes(
        memory, tape, key_table, root, per_batch, MAX_OFFSET, sizes, new_vector(memory, count), out, (0, 0)
    )
    return status == STATUS.OK, dictionaries, metadata


def encoded_text(
    data: npt.NDArray[np.uint8],
    starts: Int64s,
    stops: Int64s,
    valid: npt.NDArray[np.uint8] | None,
    options: JsonOptions,
    *,
    per_batch: bool,
    null_on_error: bool,
) -> ShreddedRows | None:
    """Do the work of `parse_text` and `shredded_rows` in one kernel call, for a few rows that are not shredded.

    Python around the calls takes longer than their work. Returns None for rows that need several calls.
    """
    if not 0 < len(data) <= _SHORT_BYTES:
        return None
    spans, parsed, rules, _scratch = _arguments(data, starts, stops, valid, options, null_on_error)
    sizes, of_row = np.empty(len(parsed.nodes), np.int32), np.empty(len(starts), np.int32)
    filled = FilledBuffers.of(_UNSHREDDED)
    done, count, metadata = parse_and_encode(spans, parsed, rules, per_batch, _UNSHREDDED.nodes, sizes, of_row, filled)
    column = metadata_column(of_row, count, adopt_bytes(*metadata)) if done else None
    return None if column is None else ShreddedRows(_UNSHREDDED, column, valid, filled)
