"""How each leaf column is written: its encoding and zstd's level, both tried on the first rows.

Owns the trials. Leaves writing to `writer`. A dictionary suits columns that repeat, delta encodings suit numbers that
grow, texts of many lengths and texts that start like the one before; which one is smaller after compression is seen,
not guessed. Long texts get a dictionary untried: its indexes weigh nothing beside them, and as one page it compresses
better than pages do. Where zstd finds little more by trying hard (in hashes, ids, deltas), it is not asked to.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

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

# The names of no codec, which pyarrow makes none for.
UNCOMPRESSED = ("none", "uncompressed")
# A dictionary may grow to this: what repeats far apart is stored once. pyarrow's default is 1 MiB.
DICTIONARY_BYTES = 8 << 20
_ROWS = 1_024
# Entries of a column inside lists that are tried, of the same rows.
_ENTRIES = 2_048
# Of zstd in trials of encodings: which one wins does not depend on how hard it tries, and the time does.
_TRIAL_LEVEL = 1
# Mean bytes of a long text, from which on it is not tried.
_LONG = 512
# Only columns with more than this share of the sample's bytes are tried: the others hardly matter.
_MIN_SHARE = 0.002
_PLAIN = (Encoding.PLAIN,)
_TRIED = {
    Physical.INT32: (Encoding.PLAIN, Encoding.DELTA_BINARY_PACKED),
    Physical.INT64: (Encoding.PLAIN, Encoding.DELTA_BINARY_PACKED),
    Physical.BYTE_ARRAY: (Encoding.PLAIN, Encoding.DELTA_LENGTH_BYTE_ARRAY, Encoding.DELTA_BYTE_ARRAY),
}
# A column whose dictionary and indexes take less than this share of its bytes gets no other encoding.
_REPEATING = 0.2
# What a delta encoding must save for being slower to read than those that are tried before it.
_SLOWER = 0.01
# What a byte of a text costs that zstd is given, in bytes of the file: hashes without the prefix that they share are
# hardly smaller, but compressed in a third of the time, since there is nothing to be found.
_GIVEN = 0.02
# zstd itself and Spark have 3, pyarrow 1. The last level takes five times as long as the first.
_LEAST_LEVEL, _EASY_LEVEL, _LEVEL, _HARD_LEVEL = 1, 2, 3, 5
# What is tried of a column, and the share of these bytes that a level must save to be worth its time, which is spent by
# the byte before compression, not after it: the last beside the second, and beside the third.
_LEVEL_BYTES = 64 << 10
_GAIN, _HARD_GAIN = 0.005, 0.01
# What stays larger than this part of its bytes gets the first level: there is nothing to be found.
_DENSE = 0.5
Bytes: TypeAlias = npt.NDArray[np.uint8]
Pages: TypeAlias = tuple[Bytes, ...]


# The encoding of a column's values, empty for a dictionary, and zstd's level, by dotted leaf path.
ColumnEncodings: TypeAlias = Mapping[str, tuple[str, int | None]]


def choose_encodings(
    table: pa.Table, compression: str, level: int | None = None, known: ColumnEncodings | None = None
) -> dict[str, Any]:
    """Choose between dictionary, plain and delta for every leaf column, and between two levels of zstd.

    Tried on the first batch of a file, but for columns that are known. The answer has the keywords of
    `pyarrow.parquet.ParquetWriter`, by dotted leaf path.

    >>> choose_encodings(pa.table({"number": range(4000)}), "zstd")
    {'use_dictionary': False, 'column_encoding': {'number': 'DELTA_BINARY_PACKED'}, 'compression_level': {'number': 1}}
    """
    chosen = _chosen(_first_rows(table), compression.lower(), level, known or {})
    others = {path: name for path, (name, _) in chosen.items() if name}
    levels = {path: number for path, (_, number) in chosen.items() if number is not None}
    return {
        "use_dictionary": [path for path in chosen if path not in others] or False,
        "column_encoding": others or None,
        "compression_level": levels if level is None and levels else level,
    }


def known_encodings(table: pa.Table, compression: str, level: int | None = None) -> ColumnEncodings:
    """What `choose_encodings` chooses for the columns that have values, to be sent to whoever writes more such rows.

    >>> known_encodings(pa.table({"number": range(4000), "nothing": pa.nulls(4000)}), "zstd")
    {'number': ('DELTA_BINARY_PACKED', 1)}
    """
    leaves = _first_rows(table)
    chosen = _chosen(leaves, compression.lower(), level, {})
    return {path: choice for path, choice in chosen.items() if leaves[path].null_count < len(leaves[path])}


def _first_rows(table: pa.Table) -> dict[str, pa.Array]:
    """The leaves of the rows that are looked at."""
    columns = zip(table.column_names, table.slice(0, _ROWS).columns, strict=True)
    return {path: leaf for name, column in columns for path, leaf in leaf_arrays(column.combine_chunks(), name)}


def _chosen(
    leaves: Mapping[str, pa.Array], compression: str, level: int | None, known: ColumnEncodings
) -> ColumnEncodings:
    chosen = {path: known[path] for path in leaves if path in known}
    others = {path: leaf for path, leaf in leaves.items() if path not in chosen}
    filled = {path: leaf for path, leaf in others.items() if leaf.null_count < len(leaf)}
    least = _MIN_SHARE * sum(leaf.nbytes for leaf in leaves.values()) if filled else 0
    has_levels = level is None and compression == "zstd"
    chosen |= dict.fromkeys(others.keys() - filled.keys(), ("", _LEVEL if has_levels else None))
    for path, leaf in filled.items():
        size = leaf.nbytes
        if _stays(leaf, size):
            name, pages = "", _long_texts(leaf)
        else:
            name, pages = _smallest(leaf, compression) if size > least else ("", ())
        chosen[path] = name, (_level_of(pages) if pages else _EASY_LEVEL) if has_levels else None
    return {path: chosen[path] for path in leaves}


def _smallest(leaf: pa.Array, compression: str) -> tuple[str, Pages]:
    """The encoding in which a column's values compress best, empty for a dictionary, and the values so encoded."""
    kind = leaf_type_of(leaf.type)
    if kind is None or not is_encodable(Encoding.RLE_DICTIONARY, kind):
        return "", ()
    values = leaf_values(leaf[:_ENTRIES], kind)
    name, pages = "", _in_dictionary(values, kind)
    # LeafValues that repeat much are read fastest from a dictionary.
    if pages and sum(map(len, pages)) < _REPEATING * leaf.nbytes:
        return name, pages
    level = _TRIAL_LEVEL if compression == "zstd" else None
    least = _cost(pages, values, compression, level) if pages else math.inf
    for encoding in _TRIED.get(kind.physical, _PLAIN):
        # Shared prefixes are looked for only where values hardly repeat: it is the slowest trial.
        if encoding == Encoding.DELTA_BYTE_ARRAY and not name:
            break
        tried = (_encoded(values, encoding, kind),)
        cost = _cost(tried, values, compression, level)
        if cost < (1 - _SLOWER * (encoding != Encoding.PLAIN)) * least:
            least, name, pages = cost, encoding.name, tried
    return name, pages


def _in_dictionary(values: LeafValues, kind: LeafType) -> Pages:
    """A dictionary and the numbers of its entries; nothing if it would be too large."""
    dictionary = new_dictionary(values.width)
    indexed = dictionary.index(values, DICTIONARY_BYTES)
    if indexed is None:
        return ()
    entries = _encoded(dictionary.values(), Encoding.PLAIN, kind)
    width = max((dictionary.count - 1).bit_length(), 1)
    out = np.empty(max_index_bytes(values.count, width), np.uint8)
    dictionary.release()
    return entries, out[: encode_indices(indexed.indices, width, out)]


def _encoded(values: LeafValues, encoding: Encoding, kind: LeafType) -> Bytes:
    out = np.empty(max_value_bytes(values, encoding), np.uint8)
    return out[: encode_values(values, encoding, kind, out)]


def _stays(leaf: pa.Array, size: int) -> bool:
    """Whether a column of so many bytes gets a dictionary untried."""
    if pa.types.is_dictionary(leaf.type):
        return True
    kind = leaf.type
    texts = pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind)
    return (texts or pa.types.is_large_binary(kind)) and size > _LONG * (len(leaf) - leaf.null_count)


def _long_texts(leaf: pa.Array) -> Pages:
    """The bytes of texts that get a dictionary untried; nothing where there are only dictionaries of names."""
    data = None if pa.types.is_dictionary(leaf.type) else leaf.buffers()[2]
    return () if data is None else (np.frombuffer(data, np.uint8),)


def _compressed(pages: Pages, compression: str, level: int | None = None) -> int:
    """Bytes of pages that are compressed one by one, as a file's are."""
    compress = compressor(compression, level)
    return sum(len(page if compress is None else compress(page)) for page in pages if len(page))


def _cost(pages: Pages, values: LeafValues, compression: str, level: int | None) -> float:
    """What pages of some values cost in the file, and in zstd's time, to which lengths add nothing."""
    size = 0 if values.lengths is None else min(sum(map(len, pages)), len(values.data))
    return _compressed(pages, compression, level) + _GIVEN * size


def _level_of(pages: Pages) -> int:
    """The level of zstd that encoded values are worth."""
    first = tuple(page[:_LEVEL_BYTES] for page in pages)
    size = sum(map(len, first))
    easy, hard = (_compressed(first, "zstd", level) for level in (_EASY_LEVEL, _HARD_LEVEL))
    if easy - hard < _GAIN * size:
        return _LEAST_LEVEL if easy > _DENSE * size else _EASY_LEVEL
    return _HARD_LEVEL if _compressed(first, "zstd", _LEVEL) - hard >= _HARD_GAIN * size else _LEVEL
