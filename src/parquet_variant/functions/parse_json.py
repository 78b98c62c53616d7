"""`parse_json`: JSON text to Variants.

Owns the public operation and its `try_` twin over text and over arrays of text. Leaves one value to
`encoding.json_reader` and batches to `kernels.shredding.json_batch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeVar, overload

import numpy as np
import pyarrow as pa

from parquet_variant.array.parts import binary_parts, joined_storages
from parquet_variant.array.variant_array import VariantArray, trusted_array
from parquet_variant.compute import in_slices
from parquet_variant.compute.arrow_input import as_arrow
from parquet_variant.compute.null_on_error import or_none
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import JsonError, SchemaError, check_choice
from parquet_variant.kernels.arrow_buffers import row_chunks
from parquet_variant.schema.shredding_schema import ShreddingSchema

# What is one text, not a column of them.
ONE_TEXT = (str, bytes, bytearray, memoryview)
# Text of one kernel call: bounds the node table, and keeps every column below Arrow's 2 GiB of 32-bit offsets.
_CHUNK_BYTES = 256 << 20
Result = TypeVar("Result")


@overload
def parse_json(source: str | bytes, **options: Any) -> Variant: ...
@overload
def parse_json(source: Any, **options: Any) -> VariantArray: ...
def parse_json(
    source: Any,
    *,
    schema: ShreddingSchema | str | None = None,
    dictionary: Literal["row", "batch"] = "row",
    types: Mapping[str, str] | None = None,
    threads: int | None = None,
    **options: Any,
) -> Variant | VariantArray:
    """Parse JSON text (RFC 8259).

    Parameters
    ----------
    source
        Text gives a `Variant`. An array of text (pyarrow, polars, a list) gives a `VariantArray`; null stays SQL NULL.
    schema
        For arrays: what to shred at once, as a `ShreddingSchema` or DDL; the same result as `shred_variant` after
        parsing, in less time.
    dictionary
        For arrays: ``"row"`` gives each distinct key set its own metadata, so that a value's bytes do not depend on its
        neighbours; ``"batch"`` makes one for all rows.
    types
        Strings that are to be dates, timestamps, UUIDs or binary, by path: ``{"$.created_at": "timestamp"}``; those
        whose text `to_json` would not give back stay strings (see `pv.ingest`).
    threads
        How many parse parts of a large column, unless one dictionary is made for all rows; by default one for each CPU
        that this process may use.
    **options
        ``floats="decimal" | "double"``, ``on_duplicate_key="last" | "error"``,
        ``on_lone_surrogate="error" | "replace"``, ``max_depth=1000``, ``max_size=128 MiB``; see
        `parquet_variant.kernels.shredding.json_batch.JsonOptions`.

    Raises
    ------
    JsonError
        With the row (for arrays), the byte offset in its text, and what was expected there.

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
    parquet_variant.errors.JsonError: found 'tru', expected a value (row 1, byte offset 6)
    """
    if isinstance(source, ONE_TEXT) and types is None:
        from parquet_variant.encoding.json_reader import parse_json as parse_one

        return parse_one(source if isinstance(source, str) else bytes(source), **options)
    one = isinstance(source, ONE_TEXT)
    array = parse_json_array(
        [source] if one else source,
        schema=schema,
        dictionary=dictionary,
        null_on_error=False,
        options=options,
        types=types,
        threads=threads,
    )
    if one:
        value = array[0]
        assert value is not None
        return value
    return array


def try_parse_json(
    source: Any,
    *,
    schema: ShreddingSchema | str | None = None,
    dictionary: Literal["row", "batch"] = "row",
    types: Mapping[str, str] | None = None,
    threads: int | None = None,
    **options: Any,
) -> Variant | VariantArray | None:
    """Parse JSON text as `parse_json` does, but give null where that would raise.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.try_parse_json("{") is None
    True
    >>> pv.try_parse_json(["[1]", "[1", None]).to_pylist()
    [[1], None, None]
    """
    if isinstance(source, ONE_TEXT):
        return or_none(lambda: parse_json(source, types=types, **options), JsonError)
    return parse_json_array(
        source,
        schema=schema,
        dictionary=dictionary,
        null_on_error=True,
        options=options,
        types=types,
        threads=threads,
    )


def parse_json_array(
    source: Any,
    *,
    schema: ShreddingSchema | str | None,
    dictionary: str,
    null_on_error: bool,
    options: dict[str, Any],
    types: Mapping[str, str] | None = None,
    threads: int | None = None,
) -> VariantArray:
    """Parse an array of text; with ``null_on_error`` bad rows are null."""
    from parquet_variant.kernels.shredding.json_batch import JsonOptions, parse_text, shredded_rows
    from parquet_variant.shredding.typed_texts import TextTypes

    schema = None if schema is None else ShreddingSchema.of(schema)
    text = _text_column(source)
    try:
        offsets, address, valid, owner = binary_parts(text)
    except SchemaError:
        raise SchemaError(
            f"parse_json takes text, not {text.type}; for other values use cast_to_variant", reason="not-text"
        ) from None
    check_choice("dictionary", dictionary, ("row", "batch"))
    json_options, text_types = JsonOptions(**options), TextTypes({} if types is None else types)
    per_batch = dictionary == "batch"

    def parsed(rows: tuple[int, int]) -> pa.StructArray:
        start, stop = rows
        base = int(offsets[start])
        data = _view(address + base, int(offsets[stop]) - base, owner)
        some = offsets[start : stop + 1] - base
        parsed = parse_text(
            data,
            some[:-1],
            some[1:],
            valid[start:stop] if len(valid) else None,
            json_options,
            null_on_error=null_on_error,
            first_row=start,
        )
        tape, _ = text_types.apply(parsed.tape)
        storage = shredded_rows(tape, schema, per_batch=per_batch, first_row=start).storage()
        parsed.tape.release()
        return storage

    storages = list(_in_threads(parsed, offsets, 1 if per_batch else threads))
    return trusted_array(storages[0] if len(storages) == 1 else joined_storages(storages), fits_files=True)


def _text_column(source: Any) -> pa.Array:
    """The text as an Arrow array; what is not UTF-8 among Python objects stays as it is, for the parser to judge."""
    if isinstance(source, Iterator):
        source = list(source)
    try:
        try:
            return as_arrow(source, pa.string())
        except (pa.ArrowInvalid, UnicodeEncodeError):
            raw = [value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value for value in source]
            return as_arrow(raw, pa.binary())
    except TypeError:  # pyarrow's among them
        raise _no_text(source) from None


def _no_text(source: Any) -> SchemaError:
    text = (str, bytes, bytearray, memoryview, type(None))
    row, other = next((row, value) for row, value in enumerate(source) if not isinstance(value, text))
    kind = type(other).__name__
    return SchemaError(
        f"expected JSON text, found {kind}: Python values become Variants with from_python", reason="not-text", row=row
    )


def _in_threads(
    parsed: Callable[[tuple[int, int]], Result], offsets: np.ndarray[Any, Any], threads: int | None
) -> Iterator[Result]:
    """What is parsed of each run of rows, by several threads if there is enough text for them."""
    total = int(offsets[-1] - offsets[0])
    if threads is None and total < 2 * in_slices.MIN_SLICE_BYTES:
        return map(parsed, row_chunks(offsets, _CHUNK_BYTES))
    from parquet_variant.io.parallel import in_order, thread_count

    workers = thread_count(threads)
    most = min(max(-(-total // workers), in_slices.MIN_SLICE_BYTES), _CHUNK_BYTES // workers)
    return in_order(parsed, row_chunks(offsets, most), workers)


def _view(address: int, size: int, owner: pa.Array) -> np.ndarray[Any, Any]:
    """The bytes at an address as a NumPy array that keeps their owner alive."""
    if size == 0:
        return np.empty(0, np.uint8)
    return np.frombuffer(pa.foreign_buffer(address, size, base=owner), np.uint8)
