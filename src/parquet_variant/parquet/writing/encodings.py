"""The encoding and the zstd level of each leaf column, chosen by trials on the first rows.

Owns the trials. Leaves writing to `writer`. A dictionary suits columns with repeated values; delta encodings suit
increasing numbers, strings of varying lengths, and strings that share a prefix with the previous one. The trial
measures which is smaller after compression. Long strings get a dictionary without a trial: its indices are negligible,
and one dictionary page compresses better than many data pages. The level of zstd follows from the same trial: columns
that hardly compress (hashes, identifiers, deltas) get a low level.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.parquet.pages.codecs import compressor
from parquet_variant.parquet.pages.dictionary import new_dictionary
from parquet_variant.parquet.pages.encodings import (
    Encoding,
    encode_indices,
    encode_values,
    is_encodable,
    max_index_bytes,
    max_value_bytes,
)
from parquet_variant.parquet.pages.leaf_types import LeafType, Physical, leaf_type_of
from parquet_variant.parquet.pages.leaf_values import LeafValues, leaf_values
from parquet_variant.parquet.writing.arrow_leaves import leaf_arrays

# Names for no compression, for which pyarrow has no codec.
UNCOMPRESSED = ("none", "uncompressed")
# The limit of a dictionary, large enough for values that repeat at a distance. pyarrow's default is 1 MiB.
DICTIONARY_BYTES = 8 << 20
_ROWS = 512
# Entries of a column inside lists that are tried, from the same rows.
_ENTRIES = 1_024
# zstd level in trials of encodings: the level affects the time, but not which encoding is smallest.
_TRIAL_LEVEL = 1
# Mean bytes of strings from which a dictionary is used without a trial.
_LONG_BYTES = 512
# Columns with a smaller share of the bytes of the sample are not tried.
_MIN_SHARE = 0.002
_PLAIN = (Encoding.PLAIN,)
_TRIED = {
    Physical.INT32: (Encoding.PLAIN, Encoding.DELTA_BINARY_PACKED),
    Physical.INT64: (Encoding.PLAIN, Encoding.DELTA_BINARY_PACKED),
    Physical.BYTE_ARRAY: (Encoding.PLAIN, Encoding.DELTA_LENGTH_BYTE_ARRAY, Encoding.DELTA_BYTE_ARRAY),
}
# A column whose dictionary and indices take less than this share of its bytes gets a dictionary.
_REPEATING = 0.2
# The share of bytes that a delta encoding must save, because it is slower to read.
_DELTA_GAIN = 0.01
# The cost of compressing a byte, in bytes of the file: hashes without their shared prefix are hardly smaller, but take
# a third of the time to compress.
_BYTE_COST = 0.03
# The defaults are 3 in zstd and Spark, 1 in pyarrow. Trials of levels took a tenth of an ingest and saved 2 % of the
# bytes (docs/internals/performance-log.md).
_LOWEST_LEVEL, _LEVEL = 1, 3
# Columns that compress to more than this share get the lowest level.
_INCOMPRESSIBLE = 0.5
Bytes: TypeAlias = npt.NDArray[np.uint8]
Pages: TypeAlias = tuple[Bytes, ...]


# The encoding of a column's values, empty for a dictionary, and zstd's level, by dotted leaf path.
ColumnEncodings: TypeAlias = Mapping[str, tuple[str, int | None]]


class Trial(NamedTuple):
    """An encoding of values that was tried."""

    name: str  # Empty for a dictionary.
    cost: float  # The size in the file, and the time of zstd, in bytes.
    share: float  # The compressed bytes, as a share of the encoded bytes.


def choose_encodings(
    table: pa.Table, compression: str, level: int | None = None, chosen_before: ColumnEncodings | None = None
) -> dict[str, Any]:
    """Choose dictionary, plain or delta encoding, and a zstd level, for every leaf column.

    The choice is made by trials on the first batch of a file, except for columns in `chosen_before`. The result has
    keywords of `pyarrow.parquet.ParquetWriter`, by dotted leaf path.

    >>> choose_encodings(pa.table({"number": range(4000)}), "zstd")
    {'use_dictionary': False, 'column_encoding': {'number': 'DELTA_BINARY_PACKED'}, 'compression_level': {'number': 1}}
    """
    chosen_encodings = _chosen_encodings(_first_rows(table), compression.lower(), level, chosen_before or {})
    encodings = {path: name for path, (name, _) in chosen_encodings.items() if name}
    levels = {path: number for path, (_, number) in chosen_encodings.items() if number is not None}
    return {
        "use_dictionary": [path for path in chosen_encodings if path not in encodings] or False,
        "column_encoding": encodings or None,
        "compression_level": levels if level is None and levels else level,
    }


def known_encodings(table: pa.Table, compression: str, level: int | None = None) -> ColumnEncodings:
    """Return the choices of `choose_encodings` for columns with values, for other writers of such rows.

    >>> known_encodings(pa.table({"number": range(4000), "nothing": pa.nulls(4000)}), "zstd")
    {'number': ('DELTA_BINARY_PACKED', 1)}
    """
    leaves = _first_rows(table)
    chosen_encodings = _chosen_encodings(leaves, compression.lower(), level, {})
    return {path: choice for path, choice in chosen_encodings.items() if leaves[path].null_count < len(leaves[path])}


def _first_rows(table: pa.Table) -> dict[str, pa.Array]:
    """Return the leaves of the rows that are tried."""
    columns = zip(table.column_names, table.slice(0, _ROWS).columns, strict=True)
    return {path: leaf for name, column in columns for path, leaf in leaf_arrays(column.combine_chunks(), name)}


def _chosen_encodings(
    leaves: Mapping[str, pa.Array], compression: str, level: int | None, chosen_before: ColumnEncodings
) -> ColumnEncodings:
    chosen_encodings = {path: chosen_before[path] for path in leaves if path in chosen_before}
    undecided = {path: leaf for path, leaf in leaves.items() if path not in chosen_encodings}
    filled = {path: leaf for path, leaf in undecided.items() if leaf.null_count < len(leaf)}
    least = _MIN_SHARE * sum(leaf.nbytes for leaf in leaves.values()) if filled else 0
    has_levels = level is None and compression == "zstd"
    chosen_encodings |= dict.fromkeys(undecided.keys() - filled.keys(), ("", _LEVEL if has_levels else None))
    for path, leaf in filled.items():
        size = leaf.nbytes
        is_tried = size > least and not _gets_dictionary(leaf, size)
        name, share = _smallest(leaf, compression) if is_tried else ("", 0.0)
        level = _LOWEST_LEVEL if share > _INCOMPRESSIBLE else _LEVEL
        chosen_encodings[path] = name, level if has_levels else None
    return {path: chosen_encodings[path] for path in leaves}


def _smallest(leaf: pa.Array, compression: str) -> tuple[str, float]:
    """Return the encoding that compresses best (empty for a dictionary), and the share that its bytes compress to.

    The share is 0 if it was not measured.
    """
    kind = leaf_type_of(leaf.type)
    if kind is None or not is_encodable(Encoding.RLE_DICTIONARY, kind):
        return "", 0.0
    values = leaf_values(leaf[:_ENTRIES], kind)
    pages = _in_dictionary(values, kind)
    # Values that repeat often are read fastest from a dictionary.
    if pages and sum(map(len, pages)) < _REPEATING * leaf.nbytes:
        return "", 0.0
    level = _TRIAL_LEVEL if compression == "zstd" else None
    smallest = _trial("", pages, values, compression, level) if pages else Trial("", math.inf, 0.0)
    for encoding in _TRIED.get(kind.physical, _PLAIN):
        # Shared prefixes are tried only if values hardly repeat, because this is the slowest trial.
        if encoding == Encoding.DELTA_BYTE_ARRAY and not smallest.name:
            break
        tried = _trial(encoding.name, (_encode_values(values, encoding, kind),), values, compression, level)
        if tried.cost < (1 - _DELTA_GAIN * (encoding != Encoding.PLAIN)) * smallest.cost:
            smallest = tried
    return smallest.name, smallest.share


def _in_dictionary(values: LeafValues, kind: LeafType) -> Pages:
    """Return a dictionary and the indices; nothing if the dictionary would be too large."""
    dictionary = new_dictionary(values.width)
    indexed = dictionary.index(values, DICTIONARY_BYTES)
    if indexed is None:
        return ()
    entries = _encode_values(dictionary.values(), Encoding.PLAIN, kind)
    width = max((dictionary.count - 1).bit_length(), 1)
    out = np.empty(max_index_bytes(values.count, width), np.uint8)
    dictionary.release()
    return entries, out[: encode_indices(indexed.indices, width, out)]


def _encode_values(values: LeafValues, encoding: Encoding, kind: LeafType) -> Bytes:
    out = np.empty(max_value_bytes(values, encoding), np.uint8)
    return out[: encode_values(values, encoding, kind, out)]


def _gets_dictionary(leaf: pa.Array, size: int) -> bool:
    """Return whether a column of `size` bytes gets a dictionary without a trial."""
    if pa.types.is_dictionary(leaf.type):
        return True
    kind = leaf.type
    texts = pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind)
    return (texts or pa.types.is_large_binary(kind)) and size > _LONG_BYTES * (len(leaf) - leaf.null_count)


def _compressed_size(pages: Pages, compression: str, level: int | None = None) -> int:
    """Return the size of pages that are compressed separately, as in a file."""
    compress = compressor(compression, level)
    return sum(len(page if compress is None else compress(page)) for page in pages if len(page))


def _trial(name: str, pages: Pages, values: LeafValues, compression: str, level: int | None) -> Trial:
    plain = sum(map(len, pages))
    size = _compressed_size(pages, compression, level)
    # Lengths add nothing to the time of zstd.
    slow = 0 if values.lengths is None else min(plain, len(values.data))
    return Trial(name, size + _BYTE_COST * slow, size / max(plain, 1))
