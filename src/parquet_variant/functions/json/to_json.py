"""`to_json`: Variants to JSON text.

Owns the public operation and its `try_` twin. Leaves batches to `kernels.operations.to_json`, and one value to
`encoding.json_writer`, which also decides the rows that the kernel leaves.
"""

from __future__ import annotations

from functools import partial
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.array.final_columns import assembled_nodes
from parquet_variant.array.parts import binary_parts, metadata_parts, valid_bytes
from parquet_variant.array.storages import unshredded_storage
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.choices import OnConflict
from parquet_variant.encoding.variant import Variant
from parquet_variant.functions.inputs.arrow_input import as_variant_array
from parquet_variant.functions.inputs.in_slices import joined_slices
from parquet_variant.functions.inputs.null_on_error import or_none, readable_storage, text_column, with_fallback_texts
from parquet_variant.kernels.buffer_pool import adopt_bytes, release
from parquet_variant.kernels.operations.to_json import quote_names, write_json_nodes, write_json_rows
from parquet_variant.kernels.shredding.schema_table import schema_table
from parquet_variant.kernels.values.name_tables import NameTable, name_table
from parquet_variant.schema.shredding_schema import ShreddingSchema

_MAX_DEPTH = 1000


@overload
def to_json(source: Variant) -> str: ...
@overload
def to_json(source: Any, *, on_conflict: OnConflict = "error", threads: int | None = None) -> pa.Array: ...
def to_json(source: Any, *, on_conflict: OnConflict = "error", threads: int | None = None) -> str | pa.Array:
    r"""Write values as compact JSON text.

    Doubles are the shortest text that reads back as the same double, decimals are exact, binary is base64, timestamps
    are ISO 8601; docs/json.md has the whole table.

    Parameters
    ----------
    source
        A value gives text. An array, of any layout, gives an Arrow array of text, null for SQL NULL.
    on_conflict
        For shredded arrays, as in `unshred_variant`.
    threads
        How many work on slices of a large column; by default one for each CPU that this process may use.

    Raises
    ------
    MalformedVariantError
        For bytes that are no Variant, with the row.
    ConflictError
        As in `unshred_variant`.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> pv.to_json(pv.parse_json(['{"b": [1.50, null], "a": "\u00e9"}', None])).to_pylist()
    ['{"a":"é","b":[1.5,null]}', None]
    """
    if isinstance(source, Variant):
        return source.to_json()
    return joined_slices(partial(_texts, on_conflict=on_conflict), as_variant_array(source), threads)


def _texts(array: VariantArray, on_conflict: OnConflict) -> pa.Array:
    if array.layout == "final" and (texts := _shredded_texts(array.storage)) is not None:
        return texts
    return json_texts(unshredded_storage(array.storage, array.layout, on_conflict), null_on_error=False)


def try_to_json(source: Any, *, threads: int | None = None) -> str | pa.Array | None:
    r"""Write values as JSON text, as `to_json` does; null where that would raise.

    Parameters
    ----------
    source, threads
        As for `to_json`.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = [pv.Variant.from_python([1]), pv.Variant(b"\x11\0\0", b"\x0c")]
    >>> pv.try_to_json(pv.VariantArray.from_variants(rows)).to_pylist()
    ['[1]', None]
    """
    if isinstance(source, Variant):
        return or_none(source.to_json)
    return joined_slices(
        lambda part: json_texts(readable_storage(part), null_on_error=True), as_variant_array(source), threads
    )


def _shredded_texts(storage: pa.StructArray) -> pa.Array | None:
    """The text of each row of a shredded storage, unless there is a row that the kernels leave."""
    metadata = metadata_parts(storage.field("metadata"))
    nodes, row_start, names, refused, _owner = assembled_nodes(
        storage, schema_table(ShreddingSchema.from_storage(storage.type)), metadata
    )
    if refused.any():
        return None
    quoted, name_starts = _quoted(names)
    offsets = np.empty(len(storage) + 1, np.int64)
    exported = write_json_nodes(
        nodes, row_start, metadata.indices, names.starts, name_starts, quoted.ctypes.data, offsets, refused, _MAX_DEPTH
    )
    release(nodes)
    text = adopt_bytes(*exported)
    return None if refused.any() else text_column(text, offsets, valid_bytes(storage))


def _quoted(names: NameTable) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """All names as they stand in JSON, and where each starts."""
    starts = np.empty(len(names.address) + 1, np.int64)
    return adopt_bytes(*quote_names(names.address, names.length, starts)), starts


def json_texts(storage: pa.StructArray, *, null_on_error: bool) -> pa.Array:
    """The text of each row of an unshredded storage; with ``null_on_error`` null for rows that would raise."""
    metadata, value = metadata_parts(storage.field("metadata")), binary_parts(storage.field("value"))
    names = name_table(metadata.dictionary, repeated=True)
    quoted, name_starts = _quoted(names)
    rows, valid = len(storage), valid_bytes(storage)
    offsets, refused = np.empty(rows + 1, np.int64), np.zeros(rows, np.uint8)
    exported = write_json_rows(
        rows, valid, value.offsets, value.address, metadata.indices, names.starts, names.state, name_starts,
        quoted.ctypes.data, offsets, refused, _MAX_DEPTH,
    )  # fmt: skip
    text = text_column(adopt_bytes(*exported), offsets, valid)
    return with_fallback_texts(text, storage, refused, Variant.to_json, null_on_error=null_on_error)
