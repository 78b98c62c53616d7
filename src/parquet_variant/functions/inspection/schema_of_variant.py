"""`schema_of_variant`: the type of each value, in Spark's words.

Owns the public operation and its `try_` twin over columns. Leaves batches to `kernels.operations.type_text`, the types
and their text to `encoding.schema_of`, which also decides the rows that the kernel leaves.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.array.parts import binary_parts, valid_bytes
from parquet_variant.encoding.schema_of import (
    BIGINT_DIGITS,
    MAX_DEPTH,
    VOID,
    SparkType,
    merged,
    name_order,
    scalar_type,
    schema_of,
)
from parquet_variant.encoding.variant import Variant
from parquet_variant.functions.inputs.fallback_texts import text_column, with_fallback_texts
from parquet_variant.functions.inputs.null_on_error import or_none, readable_storage
from parquet_variant.functions.inputs.variant_input import as_variant_array
from parquet_variant.functions.walks.canonical_nodes import Batch, Names, canonical_nodes, present_rows, value_chunks
from parquet_variant.kernels.arrow_buffers import offsets_of
from parquet_variant.path import quote_name
from parquet_variant.types import TYPE_OF_ID


@overload
def schema_of_variant(array: Variant) -> str: ...
@overload
def schema_of_variant(array: Any) -> pa.StringArray: ...
def schema_of_variant(array: Any) -> str | pa.StringArray:
    """Tell the type of each value, as Spark's ``schema_of_variant`` does.

    Parameters
    ----------
    array
        A `VariantArray` of any layout, or a single `Variant`.

    Returns
    -------
    pyarrow.StringArray or str
        Null for SQL NULL.

    Raises
    ------
    MalformedVariantError
        If a value is malformed, with its row.
    VariantError
        With reason ``depth`` for values nested deeper than 200.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.schema_of_variant(pv.parse_json(['{"a": [1, 2.5]}', "null", None])).to_pylist()
    ['OBJECT<a: ARRAY<DECIMAL(21,1)>>', 'VOID', None]
    """
    if isinstance(array, Variant):
        return str(schema_of(array))
    return type_texts(as_variant_array(array).to_unshredded().storage, null_on_error=False)


def try_schema_of_variant(array: Any) -> str | pa.StringArray | None:
    r"""Tell the type of each value, as `schema_of_variant` does; null where that would raise.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [pv.Variant.from_python([1]), pv.Variant(b"\x11\0\0", b"\x0c")]
    >>> pv.try_schema_of_variant(pv.VariantArray.from_variants(rows)).to_pylist()
    ['ARRAY<BIGINT>', None]
    """
    if isinstance(array, Variant):
        return or_none(lambda: str(schema_of(array)))
    return type_texts(readable_storage(array), null_on_error=True)


def type_texts(storage: pa.StructArray, *, null_on_error: bool) -> pa.StringArray:
    """The type of each row of an unshredded storage; with ``null_on_error`` null for rows that would raise."""
    pieces = [_chunk(storage.slice(start, stop - start)) for start, stop in value_chunks(storage)]
    texts = pa.concat_arrays([text for text, _ in pieces])
    refused = np.concatenate([flags for _, flags in pieces])
    return with_fallback_texts(
        texts, storage, refused, lambda value: str(schema_of(value)), null_on_error=null_on_error
    )


def _chunk(storage: pa.StructArray) -> tuple[pa.Array, npt.NDArray[np.uint8]]:
    """The types that the kernel finds, and the rows that it leaves."""
    from parquet_variant.kernels.buffer_pool import adopt_bytes
    from parquet_variant.kernels.memory import address_of
    from parquet_variant.kernels.operations.type_text import write_types

    batch = Batch.of(storage, present_rows(storage))
    table = Names([batch])
    starts, ranks = table.maps[0]
    spelled, order = _spelled(table.values)
    nodes, row_start, refused = canonical_nodes(batch, (starts, order[ranks]))
    words = _words()
    offsets = np.empty(len(storage) + 1, np.int64)
    exported = write_types(
        nodes, row_start, words.code_of_kind, words.merged, BIGINT_DIGITS, MAX_DEPTH, address_of(words.text),
        words.starts, spelled.address, spelled.offsets, offsets, refused,
    )  # fmt: skip
    return text_column(adopt_bytes(*exported), offsets, valid_bytes(storage)), refused


def _spelled(names: pa.Array) -> tuple[Any, npt.NDArray[np.int64]]:
    """Names as they stand in a type, in the order in which they stand there, and the place there of each name."""
    texts = [name.decode() for name in names.to_pylist()]
    in_order = sorted(range(len(texts)), key=lambda number: name_order(texts[number]))
    order = np.empty(len(texts), np.int64)
    order[in_order] = np.arange(len(texts))
    spelled = [f"{quote_name(texts[number])}: " for number in in_order]
    return binary_parts(pa.array([*spelled, " " * 8], pa.large_string())), order  # the kernel may read on behind a name


class _Words(NamedTuple):
    """The tables of the kernel: see `kernels.operations.type_text.write_types`."""

    code_of_kind: npt.NDArray[np.int64]
    merged: npt.NDArray[np.int64]
    text: npt.NDArray[np.uint8]
    starts: npt.NDArray[np.int64]


@cache
def _words() -> _Words:
    from parquet_variant.kernels.operations.type_text import CODES

    scalars = {int(kind): scalar_type(info.type).name for kind, info in TYPE_OF_ID.items()}
    names = [*CODES, *sorted(set(scalars.values()) - set(CODES))]
    code_of_kind = np.array([names.index(scalars[kind]) for kind in range(len(scalars))], np.int64)
    types = [SparkType(name, element=VOID if name == "ARRAY" else None) for name in names]
    table = np.array([[names.index(merged(left, right).name) for right in types] for left in types], np.int64)
    starts = offsets_of([len(name) for name in names])
    return _Words(code_of_kind, table, np.frombuffer("".join(names).encode(), np.uint8), starts)
