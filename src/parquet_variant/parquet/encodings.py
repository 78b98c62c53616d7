"""Which Parquet encoding each leaf column gets: tried on the first rows, the smallest wins.

Owns the trial. Leaves writing to `writer`. A dictionary suits columns that repeat, delta encodings suit numbers that
grow, texts of many lengths and texts that start like the one before; which one is smaller after compression is seen,
not guessed. Long texts get a dictionary untried: its indexes weigh nothing beside them, and as one page it compresses
better than pages do.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["DICTIONARY_BYTES", "choose_encodings"]

# A dictionary may grow to this: what repeats far apart is stored once. pyarrow's default is 1 MiB.
DICTIONARY_BYTES = 8 << 20
_ROWS = 1_024
# Entries of a column inside lists that are tried, of the same rows.
_ENTRIES = 4_096
# Of zstd in trials: which encoding wins does not depend on how hard it tries, and the time does.
_TRIAL_LEVEL = 1
# Mean bytes of a long text, from which on it is not tried.
_LONG = 512
# Only columns with more than this share of the sample's bytes are tried: the others hardly matter.
_MIN_SHARE = 0.001
_DELTAS = {"INT32": "DELTA_BINARY_PACKED", "INT64": "DELTA_BINARY_PACKED", "BYTE_ARRAY": "DELTA_LENGTH_BYTE_ARRAY"}
_PREFIXES = "DELTA_BYTE_ARRAY"


def choose_encodings(table: pa.Table, codec: dict[str, Any]) -> dict[str, Any]:
    """Choose between dictionary, plain and delta for every leaf column.

    Parameters
    ----------
    table
        The first batch of a file.
    codec
        ``compression`` and ``compression_level`` of the file.

    Returns
    -------
    dict
        ``use_dictionary`` and ``column_encoding`` for `pyarrow.parquet.ParquetWriter`, by dotted leaf path.

    Examples
    --------
    >>> choose_encodings(pa.table({"number": range(4000)}), {"compression": "zstd"})
    {'use_dictionary': False, 'column_encoding': {'number': 'DELTA_BINARY_PACKED'}}
    """
    if codec.get("compression") == "zstd":
        codec = {**codec, "compression_level": _TRIAL_LEVEL}
    leaves = {
        path: leaf
        for name, column in zip(table.column_names, table.slice(0, _ROWS).columns, strict=True)
        for path, leaf in _leaves(column.combine_chunks(), name)
    }
    least = _MIN_SHARE * sum(leaf.nbytes for leaf in leaves.values())
    tried = {path: leaf for path, leaf in leaves.items() if leaf.nbytes > least and not _stays(leaf)}
    chosen = _others(tried, codec) if tried else {}
    return {
        "use_dictionary": [path for path in leaves if path not in chosen] or False,
        "column_encoding": chosen or None,
    }


def _others(tried: dict[str, pa.Array], codec: dict[str, Any]) -> dict[str, str]:
    """The encoding of the columns that are smaller without a dictionary."""
    entries = min(max(map(len, tried.values())), _ENTRIES)
    sample = pa.table([_of_length(leaf, entries) for leaf in tried.values()], names=list(map(str, range(len(tried)))))
    types, by_dictionary = _sizes(sample, codec, dictionary_pagesize_limit=DICTIONARY_BYTES)
    best = [(size, "") for size in by_dictionary]

    def attempt(encodings: dict[int, str]) -> None:
        columns = list(map(str, encodings))
        by_column = dict(zip(columns, encodings.values(), strict=True))
        _, sizes = _sizes(sample.select(columns), codec, use_dictionary=False, column_encoding=by_column)
        for (number, encoding), size in zip(encodings.items(), sizes, strict=True):
            if size < best[number][0]:
                best[number] = size, encoding

    attempt(dict.fromkeys(range(len(tried)), "PLAIN"))
    attempt({number: _DELTAS[kind] for number, kind in enumerate(types) if kind in _DELTAS})
    # Shared prefixes are looked for only where values hardly repeat: it is the slowest trial.
    attempt({number: _PREFIXES for number, (_, name) in enumerate(best) if name and types[number] == "BYTE_ARRAY"})
    return {path: name for path, (_, name) in zip(tried, best, strict=True) if name}


def _stays(leaf: pa.Array) -> bool:
    """Whether a column gets a dictionary untried."""
    if pa.types.is_dictionary(leaf.type):
        return True
    kind = leaf.type
    texts = pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind)
    return (texts or pa.types.is_large_binary(kind)) and bool(leaf.nbytes > _LONG * (len(leaf) - leaf.null_count))


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
        yield from _leaves(array.flatten(), f"{path}.list.element")
    else:
        yield path, array


def _of_length(leaf: pa.Array, entries: int) -> pa.Array:
    """So many entries: a column inside lists has more or fewer than there are rows."""
    missing = entries - len(leaf)
    return leaf[:entries] if missing <= 0 else pa.concat_arrays([leaf, pa.nulls(missing, leaf.type)])


def _sizes(sample: pa.Table, codec: dict[str, Any], **encoding: Any) -> tuple[list[str], list[int]]:
    """Physical type and compressed bytes of each column under some encoding."""
    collected: list[pq.FileMetaData] = []
    pq.write_table(
        sample,
        pa.BufferOutputStream(),
        row_group_size=max(len(sample), 1),
        store_decimal_as_integer=True,
        write_statistics=False,
        store_schema=False,
        metadata_collector=collected,
        **codec,
        **encoding,
    )
    group = collected[0].row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    return [column.physical_type for column in columns], [column.total_compressed_size for column in columns]
