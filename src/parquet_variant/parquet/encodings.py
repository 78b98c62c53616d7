"""Which Parquet encoding each leaf column gets: tried on the first rows, the smallest wins.

Owns the trial. Leaves writing to `writer`. A dictionary suits columns that repeat, delta encodings suit numbers that
grow and texts of many lengths; which one is smaller after compression is seen, not guessed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["choose_encodings"]

_ROWS = 4_096
# Only columns with more than this share of the sample's bytes are tried: the others hardly matter.
_MIN_SHARE = 0.001
_DELTAS = {"INT32": "DELTA_BINARY_PACKED", "INT64": "DELTA_BINARY_PACKED", "BYTE_ARRAY": "DELTA_LENGTH_BYTE_ARRAY"}


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
    leaves = {
        path: leaf
        for name, column in zip(table.column_names, table.slice(0, _ROWS).columns, strict=True)
        for path, leaf in _leaves(column.combine_chunks(), name)
    }
    least = _MIN_SHARE * sum(leaf.nbytes for leaf in leaves.values())
    tried = [path for path, leaf in leaves.items() if leaf.nbytes > least and not pa.types.is_dictionary(leaf.type)]
    plain: list[str] = []
    encodings: dict[str, str] = {}
    if tried:
        sample = pa.table([_of_length(leaves[path]) for path in tried], names=[str(n) for n in range(len(tried))])
        types, by_dictionary = _sizes(sample, codec, use_dictionary=True)
        _, by_plain = _sizes(sample, codec, use_dictionary=False)
        deltas = {str(number): _DELTAS[kind] for number, kind in enumerate(types) if kind in _DELTAS}
        _, by_delta = _sizes(sample, codec, use_dictionary=False, column_encoding=deltas)
        for number, path in enumerate(tried):
            if by_dictionary[number] <= min(by_plain[number], by_delta[number]):
                continue
            plain.append(path)
            if by_delta[number] < by_plain[number]:
                encodings[path] = deltas[str(number)]
    return {
        "use_dictionary": [path for path in leaves if path not in set(plain)] or False,
        "column_encoding": encodings or None,
    }


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


def _of_length(leaf: pa.Array) -> pa.Array:
    """As many entries as there are rows: a column inside lists has more or fewer."""
    missing = _ROWS - len(leaf)
    return leaf[:_ROWS] if missing <= 0 else pa.concat_arrays([leaf, pa.nulls(missing, leaf.type)])


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
