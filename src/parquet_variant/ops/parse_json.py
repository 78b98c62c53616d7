"""`parse_json`: JSON text to Variants.

Owns the public operation for strings and columns of strings. `encoding.json_reader` parses single
strings, `kernels.shredding.json_batch` batches.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import BinaryParts, binary_parts, joined_storages
from parquet_variant.arrays.variant_array import VariantArray, trusted_array
from parquet_variant.encoding import json_reader
from parquet_variant.encoding.json_reader import MAX_SIZE, JsonOptions
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import JsonError, SchemaError, check_choice
from parquet_variant.kernels.arrow_buffers import Int64s, from_numpy, row_chunks
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.columns import arguments
from parquet_variant.ops.columns.arguments import as_arrow, check_errors, or_none
from parquet_variant.support.options import Errors
from parquet_variant.types.path import VariantPath

Bytes = npt.NDArray[np.uint8]
# Types of a single JSON text, as opposed to a column.
TEXT_TYPES = (str, bytes, bytearray, memoryview)
# Bytes of text in one kernel call: bounds the node table, and keeps columns below the 2 GiB of 32-bit Arrow offsets.
_CHUNK_BYTES = 256 << 20


@overload
def parse_json(
    source: str | bytes,
    *,
    types: Mapping[str, str] | str | None = ...,
    floats: Literal["decimal", "double"] = ...,
    on_duplicate_key: Literal["last", "error"] = ...,
    on_lone_surrogate: Literal["error", "replace"] = ...,
    max_depth: int = ...,
    max_size: int = ...,
    errors: Errors = ...,
) -> Variant | Any: ...
@overload
def parse_json(
    source: Any,
    *,
    schema: ShreddingSchema | str | None = ...,
    dictionary: Literal["row", "batch"] = ...,
    types: Mapping[str, str] | str | None = ...,
    threads: int | None = ...,
    floats: Literal["decimal", "double"] = ...,
    on_duplicate_key: Literal["last", "error"] = ...,
    on_lone_surrogate: Literal["error", "replace"] = ...,
    max_depth: int = ...,
    max_size: int = ...,
    errors: Errors = ...,
) -> VariantArray: ...
def parse_json(
    source: Any,
    *,
    schema: ShreddingSchema | str | None = None,
    dictionary: Literal["row", "batch"] = "row",
    types: Mapping[str, str] | str | None = None,
    threads: int | None = None,
    floats: Literal["decimal", "double"] = "decimal",
    on_duplicate_key: Literal["last", "error"] = "last",
    on_lone_surrogate: Literal["error", "replace"] = "error",
    max_depth: int = 1000,
    max_size: int = MAX_SIZE,
    errors: Errors = "raise",
) -> Variant | VariantArray | None:
    """Parse JSON text (RFC 8259).

    Parameters
    ----------
    source
        One string, or a column of strings (pyarrow, polars, a list), in which null is SQL NULL.
    schema
        For columns: a schema to shred into, as a `ShreddingSchema` or DDL. The result is that of `shred_variant` after
        parsing, but takes less time.
    dictionary
        For columns: ``"row"`` makes one metadata per distinct key set, so that the bytes of a value do not depend on
        other rows; ``"batch"`` makes one metadata for all rows.
    types
        Types of strings by path: ``{"$.created_at": "timestamp"}``. Strings become dates, timestamps, UUIDs or binary;
        those that `to_json` would not write back unchanged stay strings. ``"timestamp!"``, ``"timestamp_ntz!"``,
        ``"uuid!"`` and ``"number!"`` type them in any form, and `to_json` writes the canonical form. ``"auto!"``
        instead of a mapping types each path whose strings all have one of these forms. ``"timestamp_ms!"`` types
        numbers since 1970; docs/json.md lists all types.
    threads
        Number of threads for a large column (default: one per CPU of this process). With ``dictionary="batch"`` one
        thread parses.
    floats
        ``"decimal"``: numbers with a fraction are exact decimals where they fit; ``"double"``: they are doubles.
    on_duplicate_key
        ``"last"`` keeps the last value of a key, ``"error"`` raises.
    on_lone_surrogate
        ``"error"`` raises, ``"replace"`` replaces it with U+FFFD.
    max_depth
        Maximum nesting of arrays and objects.
    max_size
        Maximum bytes of one text.
    errors
        ``"raise"``, or ``"null"``: text that would raise becomes null.

    Returns
    -------
    Variant or VariantArray
        A `Variant` for one string, a `VariantArray` for a column.

    Raises
    ------
    JsonError
        For invalid JSON, with the row (for columns) and the byte offset in its text.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.parse_json('{"a": 1.50}').to_python()
    {'a': Decimal('1.50')}
    >>> pv.parse_json(['{"a": 1}', None, '[]']).to_pylist()
    [{'a': 1}, None, []]
    >>> pv.parse_json(['{"a": 1}', '{"a": tru}'])
    Traceback (most recent call last):
    ...
    parquet_variant.errors.JsonError: unexpected 'tru': expected a value (row 1, byte offset 6)
    >>> pv.parse_json(['{"a": 1}', '{"a": tru}'], errors="null").to_pylist()
    [{'a': 1}, None]
    """
    null_on_error = check_errors(errors)
    options = JsonOptions(floats, on_duplicate_key, on_lone_surrogate, max_depth, max_size)
    if isinstance(source, TEXT_TYPES):
        if types is None:
            parse = partial(json_reader.parse_json, source if isinstance(source, str) else bytes(source), options)
            return or_none(parse, errors, JsonError)
        return _parse_column([source], options, types, null_on_error=null_on_error)[0]
    return _parse_column(source, options, types, schema, dictionary, threads, null_on_error=null_on_error)


def _parse_column(
    source: Any,
    options: JsonOptions,
    types: Mapping[str, str] | str | None,
    schema: ShreddingSchema | str | None = None,
    dictionary: str = "row",
    threads: int | None = None,
    *,
    null_on_error: bool = False,
) -> VariantArray:
    """Parse a column of JSON text; with ``null_on_error``, invalid rows are null."""
    from parquet_variant.inference.typed_strings import StringTypes, schema_and_types
    from parquet_variant.io.parallel import in_order, thread_count
    from parquet_variant.kernels.shredding.json_batch import encoded_text, parse_text, shredded_rows

    schema, schema_types = schema_and_types(schema)
    string_types = StringTypes.of(types).with_types(schema_types)
    if string_types.auto:
        from parquet_variant.inference.profile import Profile

        source = _text_column(source)
        plain = _parse_column(
            source, options, string_types.types, None, dictionary, threads, null_on_error=null_on_error
        )
        string_types = string_types.resolved(Profile.of_array(plain, threads=threads))
    text = _text_column(source)
    try:
        parts = binary_parts(text)
    except SchemaError:
        raise SchemaError(
            f"parse_json takes strings, not {text.type}: use cast_to_variant for other types", reason="not-text"
        ) from None
    check_choice("dictionary", dictionary, ("row", "batch"))
    per_batch, offsets = dictionary == "batch", parts.offsets
    if schema is None and threads is None and not string_types:
        rows = encoded_text(*_text_rows(parts, 0, len(text)), options, per_batch=per_batch, null_on_error=null_on_error)
        if rows is not None:
            return trusted_array(rows.storage(), fits_files=True)

    def parsed(rows: tuple[int, int]) -> pa.StructArray:
        parsed = parse_text(*_text_rows(parts, *rows), options, null_on_error=null_on_error, first_row=rows[0])
        tape = string_types.apply(parsed.tape)[0] if string_types else parsed.tape
        storage = shredded_rows(tape, schema, per_batch=per_batch, first_row=rows[0]).storage()
        parsed.tape.release()
        return storage

    total = int(offsets[-1] - offsets[0])
    is_small = threads is None and total < 2 * arguments.MIN_SLICE_BYTES
    workers = 1 if per_batch or is_small else thread_count(threads)
    chunk_bytes = min(max(-(-total // workers), arguments.MIN_SLICE_BYTES), _CHUNK_BYTES // workers)
    chunks = row_chunks(offsets, chunk_bytes) if total > chunk_bytes else [(0, len(text))]
    storages = list(in_order(parsed, chunks, workers))
    return trusted_array(storages[0] if len(storages) == 1 else joined_storages(storages), fits_files=True)


def _text_rows(parts: BinaryParts, start: int, stop: int) -> tuple[Bytes, Int64s, Int64s, Bytes | None]:
    """Return some rows of a column of text as `parse_text` takes them."""
    offsets, address, valid, owner = parts
    base = int(offsets[start])
    size = int(offsets[stop]) - base
    data = np.frombuffer(pa.foreign_buffer(address + base, size, base=owner) if size else b"", np.uint8)
    row_offsets = offsets[start : stop + 1] - base
    return data, row_offsets[:-1], row_offsets[1:], valid[start:stop] if len(valid) else None


def parse_paths(
    strings: pa.Array, paths: Collection[VariantPath], schema: ShreddingSchema | None = None, errors: Errors = "null"
) -> tuple[pa.StructArray, pa.BinaryArray]:
    """Parse JSON text as far as some paths need, and return the storage, and the text of the rows that are not JSON.

    Rows that are not JSON are null in the storage, or raise, and all others are null in the second array.
    `schema`: how the storage is shredded.

    >>> texts = pa.array(['{"a": 1, "b": 2}', "[1", None])
    >>> values, malformed = parse_paths(texts, [VariantPath.parse("$.a")])
    >>> VariantArray(values).to_pylist(), malformed.to_pylist()
    ([{'a': 1}, None, None], [None, b'[1', None])
    """
    from parquet_variant.kernels.shredding.json_batch import parse_text, shredded_rows
    from parquet_variant.kernels.tapes.tape import project

    parts = binary_parts(strings)
    parsed = parse_text(*_text_rows(parts, 0, len(strings)), JsonOptions(), null_on_error=errors == "null")
    tape = project(parsed.tape, paths)
    storage = shredded_rows(tape, schema, per_batch=True).storage()
    tape.release()
    malformed = [row for row, _ in parsed.faults]
    if not malformed:
        return storage, pa.nulls(len(strings), pa.binary())
    rows = np.full(len(strings), -1)
    rows[malformed] = malformed
    return storage, parts.owner.take(from_numpy(rows, rows < 0)).cast(pa.binary())


def _text_column(source: Any) -> pa.Array:
    """Return the text as an Arrow array; Python strings that are not valid UTF-8 are left for the parser to report."""
    if isinstance(source, Iterator):
        source = list(source)
    try:
        try:
            return as_arrow(source, pa.string())
        except (pa.ArrowInvalid, UnicodeEncodeError):
            raw = [value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value for value in source]
            return as_arrow(raw, pa.binary())
    except TypeError:  # also raised by pyarrow
        text_types = (*TEXT_TYPES, type(None))
        row, value = next((row, value) for row, value in enumerate(source) if not isinstance(value, text_types))
        kind = type(value).__name__
        raise SchemaError(
            f"expected JSON text, found {kind}: use from_python for Python objects", reason="not-text", row=row
        ) from None
