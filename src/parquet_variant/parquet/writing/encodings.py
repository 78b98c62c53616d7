"""How each leaf column is written: its encoding and zstd's level, both tried on the first rows.

Owns the trials. Leaves writing to `writer`. A dictionary suits columns that repeat, delta encodings suit numbers that
grow, texts of many lengths and texts that start like the one before; which one is smaller after compression is seen,
not guessed. Long texts get a dictionary untried: its indexes weigh nothing beside them, and as one page it compresses
better than pages do. Where zstd finds little more by trying hard (in hashes, ids, deltas), it is not asked to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.encoding.cast.forms import list_elements
from parquet_variant.parquet.pages.codecs import compressor

__all__ = ["DICTIONARY_BYTES", "UNCOMPRESSED", "ColumnEncodings", "choose_encodings", "known_encodings"]

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
_DELTAS = {"INT32": "DELTA_BINARY_PACKED", "INT64": "DELTA_BINARY_PACKED", "BYTE_ARRAY": "DELTA_LENGTH_BYTE_ARRAY"}
_PREFIXES = "DELTA_BYTE_ARRAY"
# A column whose dictionary and indexes take less than this share of its bytes gets no other encoding.
_REPEATING = 0.2
# What an encoding must save for being slower to read than those that are tried before it.
_SLOWER = {"DELTA_BINARY_PACKED": 0.01, _PREFIXES: 0.01}
# zstd itself and Spark have 3, pyarrow 1. The last level takes four times as long as the first.
_EASY_LEVEL, _LEVEL, _HARD_LEVEL = 2, 3, 5
# What is tried of a column, and the share of these bytes that the last level must save for one above the first: time is
# spent by the byte before compression, not after it.
_LEVEL_BYTES = 64 << 10
_GAIN, _HARD_GAIN = 0.005, 0.015
Pages: TypeAlias = tuple[pa.Buffer, pa.Buffer]


# The encoding of a column's values, empty for a dictionary, and zstd's level, by dotted leaf path.
ColumnEncodings: TypeAlias = Mapping[str, tuple[str, int | None]]


def choose_encodings(
    table: pa.Table, compression: str, level: int | None = None, known: ColumnEncodings | None = None
) -> dict[str, Any]:
    """Choose between dictionary, plain and delta for every leaf column, and between two levels of zstd.

    Parameters
    ----------
    table
        The first batch of a file.
    compression, level
        Codec of the file, and its level if that is chosen already.
    known
        What was chosen for some columns before: those are not tried.

    Returns
    -------
    dict
        ``use_dictionary``, ``column_encoding`` and ``compression_level`` for `pyarrow.parquet.ParquetWriter`, by dotted
        leaf path.

    Examples
    --------
    >>> choose_encodings(pa.table({"number": range(4000)}), "zstd")
    {'use_dictionary': False, 'column_encoding': {'number': 'DELTA_BINARY_PACKED'}, 'compression_level': {'number': 2}}
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

    Examples
    --------
    >>> known_encodings(pa.table({"number": range(4000), "nothing": pa.nulls(4000)}), "zstd")
    {'number': ('DELTA_BINARY_PACKED', 2)}
    """
    leaves = _first_rows(table)
    chosen = _chosen(leaves, compression.lower(), level, {})
    return {path: choice for path, choice in chosen.items() if leaves[path].null_count < len(leaves[path])}


def _first_rows(table: pa.Table) -> dict[str, pa.Array]:
    """The leaves of the rows that are looked at."""
    return {
        path: leaf
        for name, column in zip(table.column_names, table.slice(0, _ROWS).columns, strict=True)
        for path, leaf in _leaves(column.combine_chunks(), name)
    }


def _chosen(
    leaves: Mapping[str, pa.Array], compression: str, level: int | None, known: ColumnEncodings
) -> ColumnEncodings:
    chosen = {path: known[path] for path in leaves if path in known}
    least = _MIN_SHARE * sum(leaf.nbytes for leaf in leaves.values())
    others = {path: leaf for path, leaf in leaves.items() if path not in chosen}
    stays = {path for path, leaf in others.items() if _stays(leaf)}
    tried = {path: leaf for path, leaf in others.items() if leaf.nbytes > least and path not in stays}
    found = _smallest(tried, compression) if tried else {}
    for path, leaf in others.items():
        name, pages = found.get(path, ("", None))
        number = None
        if level is None and compression == "zstd":
            if path in stays:
                pages = _long_texts(leaf)
            is_filled = leaf.null_count < len(leaf)
            number = _LEVEL if not is_filled else _EASY_LEVEL if pages is None else _level_of(pages)
        chosen[path] = name, number
    return {path: chosen[path] for path in leaves}


def _smallest(tried: dict[str, pa.Array], compression: str) -> dict[str, tuple[str, Pages]]:
    """The encoding in which each column compresses best, empty for a dictionary, and the column so encoded."""
    entries = min(max(map(len, tried.values())), _ENTRIES)
    sample = pa.table([_of_length(leaf, entries) for leaf in tried.values()], names=list(map(str, range(len(tried)))))
    trial = (compression, _TRIAL_LEVEL if compression == "zstd" else None)
    types, columns = _encoded(sample, dictionary_pagesize_limit=DICTIONARY_BYTES)
    best = [(_compressed(pages, *trial), "", pages) for pages in columns]
    # Values that repeat much are read fastest from a dictionary.
    repeats = {
        number
        for number, (leaf, pages) in enumerate(zip(tried.values(), columns, strict=True))
        if sum(map(len, pages)) < _REPEATING * leaf.nbytes
    }

    def attempt(encodings: dict[int, str]) -> None:
        encodings = {number: name for number, name in encodings.items() if number not in repeats}
        if not encodings:
            return
        names = list(map(str, encodings))
        by_column = dict(zip(names, encodings.values(), strict=True))
        _, columns = _encoded(sample.select(names), use_dictionary=False, column_encoding=by_column)
        for (number, encoding), pages in zip(encodings.items(), columns, strict=True):
            size = _compressed(pages, *trial)
            if size < (1 - _SLOWER.get(encoding, 0)) * best[number][0]:
                best[number] = size, encoding, pages

    attempt(dict.fromkeys(range(len(tried)), "PLAIN"))
    attempt({number: _DELTAS[kind] for number, kind in enumerate(types) if kind in _DELTAS})
    # Shared prefixes are looked for only where values hardly repeat: it is the slowest trial.
    attempt({number: _PREFIXES for number, (_, name, _) in enumerate(best) if name and types[number] == "BYTE_ARRAY"})
    return {path: (name, pages) for path, (_, name, pages) in zip(tried, best, strict=True)}


def _stays(leaf: pa.Array) -> bool:
    """Whether a column gets a dictionary untried."""
    if pa.types.is_dictionary(leaf.type):
        return True
    kind = leaf.type
    texts = pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind)
    return (texts or pa.types.is_large_binary(kind)) and bool(leaf.nbytes > _LONG * (len(leaf) - leaf.null_count))


def _long_texts(leaf: pa.Array) -> Pages | None:
    """The bytes of texts that get a dictionary untried; None where there are only dictionaries of names."""
    if pa.types.is_dictionary(leaf.type):
        return None
    nothing = pa.py_buffer(b"")
    return leaf.buffers()[2] or nothing, nothing


def _leaves(array: pa.Array, path: str) -> Iterator[tuple[str, pa.Array]]:
    """The leaf columns of an array, by dotted path, without their nesting."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        yield from _leaves(array.storage, path)
    elif pa.types.is_struct(kind):
        for index, field in enumerate(kind):
            yield from _leaves(array.field(index), f"{path}.{field.name}")
    elif pa.types.is_map(kind):
        yield from _leaves(array.keys, f"{path}.key_value.key")
        yield from _leaves(array.items, f"{path}.key_value.value")
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _leaves(list_elements(array), f"{path}.list.element")
    else:
        yield path, array


def _of_length(leaf: pa.Array, entries: int) -> pa.Array:
    """So many entries: a column inside lists has more or fewer than there are rows."""
    missing = entries - len(leaf)
    return leaf[:entries] if missing <= 0 else pa.concat_arrays([leaf, pa.nulls(missing, leaf.type)])


def _encoded(sample: pa.Table, **encoding: Any) -> tuple[list[str], list[Pages]]:
    """Physical type and pages, not compressed, of each column under some encoding."""
    collected: list[pq.FileMetaData] = []
    sink = pa.BufferOutputStream()
    pq.write_table(
        sample,
        sink,
        row_group_size=max(len(sample), 1),
        store_decimal_as_integer=True,
        write_statistics=False,
        store_schema=False,
        compression="none",
        metadata_collector=collected,
        **encoding,
    )
    group, file = collected[0].row_group(0), sink.getvalue()
    columns = [group.column(number) for number in range(group.num_columns)]
    return [column.physical_type for column in columns], [_pages(column, file) for column in columns]


def _pages(column: pq.ColumnChunkMetaData, file: pa.Buffer) -> Pages:
    """The dictionary, empty if there is none, and the data."""
    data, start = column.data_page_offset, column.dictionary_page_offset or column.data_page_offset
    return file[start:data], file[data : start + column.total_compressed_size]


def _compressed(pages: Pages, compression: str, level: int | None = None) -> int:
    """Bytes of pages that are compressed one by one, as a file's are."""
    compress = compressor(compression, level)
    return sum(len(page if compress is None else compress(page)) for page in pages if page.size)


def _level_of(pages: Pages) -> int:
    """The level of zstd that encoded values are worth."""
    first = pages[0][:_LEVEL_BYTES], pages[1][:_LEVEL_BYTES]
    saved = _compressed(first, "zstd", _EASY_LEVEL) - _compressed(first, "zstd", _HARD_LEVEL)
    share = saved / max(sum(map(len, first)), 1)
    return _HARD_LEVEL if share >= _HARD_GAIN else _LEVEL if share >= _GAIN else _EASY_LEVEL
