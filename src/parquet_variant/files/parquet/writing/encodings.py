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

from parquet_variant.files.parquet.format.arrow_schema import LeafType, Physical, leaf_arrays, leaf_type_of
from parquet_variant.files.parquet.pages import encodings as page_encodings
from parquet_variant.files.parquet.pages.encodings import Encoding
from parquet_variant.files.parquet.pages.leaf_values import LeafValues, leaf_values
from parquet_variant.io.parallel import in_threads
from parquet_variant.kernels.pages.runs import most_run_bytes
from parquet_variant.support.options import Effort

# Names for no compression, for which pyarrow has no codec.
UNCOMPRESSED = ("none", "uncompressed")
# The limit of a dictionary, large enough for values that repeat at a distance. pyarrow's default is 1 MiB.
DICTIONARY_BYTES = 8 << 20
_ROWS = 512
# Entries of a column inside lists that are tried, from the same rows.
_ENTRIES = 1_024
# With the effort ``"small"``, more rows are tried, and these levels.
_THOROUGHNESS, _TRIED_LEVELS = 16, (9, 3, 1)
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
# zstd's level for columns that compress well, by effort; the other columns get the lowest level. The defaults are 3 in
# zstd and Spark, 1 in pyarrow. Higher levels than 9 take three to six times as long, and save at most 3 % more.
_LOWEST_LEVEL = 1
_LEVEL_OF_EFFORT: dict[Effort, int] = {"fast": _LOWEST_LEVEL, "balanced": 2, "small": 9}
# If the first batch has fewer bytes, its time does not matter, and level 2 is often not smaller than level 1.
_FEW_BYTES, _LEVEL_OF_FEW = 4 << 20, 3
# Columns that compress to more than this share get the lowest level.
_INCOMPRESSIBLE = 0.5
Bytes: TypeAlias = npt.NDArray[np.uint8]
Pages: TypeAlias = tuple[Bytes, ...]


# The encoding of a column's values, empty for a dictionary, and zstd's level, by dotted leaf path.
ColumnEncodings: TypeAlias = Mapping[str, tuple[str, int | None]]


class _Trial(NamedTuple):
    """An encoding of values that was tried."""

    name: str  # Empty for a dictionary.
    pages: Pages
    cost: float  # The size in the file, and the time of zstd, in bytes.
    size: int  # The bytes of the compressed pages.


class _Codec(NamedTuple):
    """The codec of a file, and how the levels of its columns are chosen."""

    name: str
    level: int | None  # The level of columns that compress well; None if all columns have the same level.
    tried_levels: tuple[int, ...]  # The levels that are tried for every column; none if trials would take too long.
    thoroughness: int  # The number of times as many rows that are tried.

    @classmethod
    def of(cls, compression: str, level: int | None, effort: Effort) -> _Codec:
        name = compression.lower()
        has_levels = level is None and name == "zstd"
        tried = (_TRIED_LEVELS, _THOROUGHNESS) if has_levels and effort == "small" else ((), 1)
        return cls(name, _LEVEL_OF_EFFORT[effort] if has_levels else None, *tried)


def choose_encodings(
    table: pa.Table,
    compression: str,
    level: int | None = None,
    chosen_before: ColumnEncodings | None = None,
    effort: Effort = "balanced",
    threads: int = 1,
) -> dict[str, Any]:
    """Choose dictionary, plain or delta encoding, and a zstd level, for every leaf column.

    The choice is made by trials on the first batch of a file, except for columns in `chosen_before`. The result has
    keywords of `pyarrow.parquet.ParquetWriter`, by dotted leaf path. With a `level`, the effort has no effect. Columns
    are tried in `threads`.

    >>> choose_encodings(pa.table({"number": range(4000)}), "zstd")
    {'use_dictionary': False, 'column_encoding': {'number': 'DELTA_BINARY_PACKED'}, 'compression_level': {'number': 1}}
    """
    codec = _Codec.of(compression, level, effort)
    if codec.level == _LEVEL_OF_EFFORT["balanced"] and table.nbytes < _FEW_BYTES:
        codec = codec._replace(level=_LEVEL_OF_FEW)
    chosen_encodings = _chosen_encodings(_first_rows(table, codec), codec, chosen_before or {}, threads)
    encodings = {path: name for path, (name, _) in chosen_encodings.items() if name}
    levels = {path: number for path, (_, number) in chosen_encodings.items() if number is not None}
    return {
        "use_dictionary": [path for path in chosen_encodings if path not in encodings] or False,
        "column_encoding": encodings or None,
        "compression_level": levels if level is None and levels else level,
    }


def known_encodings(
    table: pa.Table, compression: str, level: int | None = None, effort: Effort = "balanced"
) -> ColumnEncodings:
    """Return the choices of `choose_encodings` for columns with values, for other writers of such rows.

    >>> known_encodings(pa.table({"number": range(4000), "nothing": pa.nulls(4000)}), "zstd")
    {'number': ('DELTA_BINARY_PACKED', 1)}
    """
    codec = _Codec.of(compression, level, effort)
    leaves = _first_rows(table, codec)
    chosen_encodings = _chosen_encodings(leaves, codec, {})
    return {path: choice for path, choice in chosen_encodings.items() if leaves[path].null_count < len(leaves[path])}


def _first_rows(table: pa.Table, codec: _Codec) -> dict[str, pa.Array]:
    """Return the leaves of the rows that are tried."""
    columns = zip(table.column_names, table.slice(0, _ROWS * codec.thoroughness).columns, strict=True)
    return {path: leaf for name, column in columns for path, leaf in leaf_arrays(column.combine_chunks(), name)}


def _chosen_encodings(
    leaves: Mapping[str, pa.Array], codec: _Codec, chosen_before: ColumnEncodings, threads: int = 1
) -> ColumnEncodings:
    least = _MIN_SHARE * sum(leaf.nbytes for leaf in leaves.values())
    tried = []
    for path, leaf in leaves.items():
        kind, count, size = leaf.type, len(leaf) - leaf.null_count, leaf.nbytes
        is_text = any(map(kind.equals, (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())))
        is_long = is_text and size > _LONG_BYTES * count
        is_tried = count and size > least and not is_long and not pa.types.is_dictionary(kind)
        if is_tried and path not in chosen_before:
            tried.append(path)
    smallest = in_threads(lambda path: _smallest(leaves[path], codec), tried, threads)
    choices = {path: chosen_before.get(path, ("", codec.level)) for path in leaves}
    return choices | dict(zip(tried, smallest, strict=True))


def _smallest(leaf: pa.Array, codec: _Codec) -> tuple[str, int | None]:
    """Return the encoding that compresses best (empty for a dictionary), and its level."""
    kind = leaf_type_of(leaf.type)
    if kind is None or not page_encodings.is_encodable(Encoding.RLE_DICTIONARY, kind):
        return "", codec.level
    values = leaf_values(leaf[: _ENTRIES * codec.thoroughness], kind)
    dictionary = page_encodings.new_dictionary(values.width)
    indices = dictionary.index(values, DICTIONARY_BYTES)
    pages: Pages = ()
    if indices is not None:  # None if the dictionary would be too large.
        entries = _encode_values(dictionary.values(), Encoding.PLAIN, kind)
        width = max((dictionary.count - 1).bit_length(), 1)
        out = np.empty(1 + most_run_bytes(values.count, width), np.uint8)
        dictionary.release()
        pages = entries, out[: page_encodings.encode_indices(indices, width, out)]
    # Values that repeat often are read fastest from a dictionary.
    if pages and sum(map(len, pages)) < _REPEATING * leaf.nbytes:
        return "", codec.level

    def trial(name: str, pages: Pages) -> _Trial:
        size = _compressed_size(pages, codec.name, _TRIAL_LEVEL if codec.name == "zstd" else None)
        # Lengths add nothing to the time of zstd.
        slow = 0 if values.lengths is None else min(sum(map(len, pages)), len(values.data))
        return _Trial(name, pages, size + _BYTE_COST * slow, size)

    smallest = trial("", pages) if pages else _Trial("", (), math.inf, 0)
    for encoding in _TRIED.get(kind.physical, _PLAIN):
        # Shared prefixes are tried only if values hardly repeat, because this is the slowest trial.
        if encoding == Encoding.DELTA_BYTE_ARRAY and not smallest.name:
            break
        tried = trial(encoding.name, (_encode_values(values, encoding, kind),))
        if tried.cost < (1 - _DELTA_GAIN * (encoding != Encoding.PLAIN)) * smallest.cost:
            smallest = tried
    level = codec.level
    if codec.tried_levels:  # High levels make random letters and words larger.
        level = min(codec.tried_levels, key=lambda level: _compressed_size(smallest.pages, codec.name, level))
    elif level is not None and smallest.size > _INCOMPRESSIBLE * sum(map(len, smallest.pages)):
        level = _LOWEST_LEVEL
    return smallest.name, level


def _encode_values(values: LeafValues, encoding: Encoding, kind: LeafType) -> Bytes:
    out = np.empty(page_encodings.max_value_bytes(values, encoding), np.uint8)
    return out[: page_encodings.encode_values([values], encoding, kind, out)]


def _compressed_size(pages: Pages, compression: str, level: int | None = None) -> int:
    """Return the size of pages that are compressed separately, as in a file."""
    compress = page_encodings.compressor(compression, level)
    return sum(len(page if compress is None else compress(page)) for page in pages if len(page))
