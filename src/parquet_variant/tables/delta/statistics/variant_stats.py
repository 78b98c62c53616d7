"""Variant statistics in Delta's log: bounds by path as Z85 text.

Owns the text of `minValues` and `maxValues` of a Variant column (RFC "Variant Shredding", "Statistics for Variant
Columns"). Leaves the bytes in it to `tables.path_bounds`.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import TableError
from parquet_variant.path import VariantPath
from parquet_variant.tables.delta import z85
from parquet_variant.tables.path_bounds import bounds_array, bounds_from_bytes, bounds_to_bytes, split_rows


def encode_bounds(bounds: Mapping[VariantPath, Variant]) -> str:
    """Return bounds as the log holds them in JSON.

    `bounds`: a primitive Variant for each path; the root's path is ``$``.
    Returns Z85 of metadata and value, padded with zero bytes to a multiple of four.

    >>> encode_bounds({VariantPath.parse("$.key"): Variant.from_python(7)})
    '5DI>qbWhTiwQbUe0S-o30T]ql'
    """
    return z85.encode(bounds_to_bytes(bounds))


def decode_bounds(text: str) -> dict[VariantPath, Variant]:
    """Return the bounds in a Z85 text, by path.

    Raises `TableError`: reason ``"bad-z85"`` or ``"bad-stats"`` if the text does not hold an object of primitive values
    by path.

    >>> bounds = decode_bounds("0S&u501fk+ze0(tB98CpzF6vU0rJl95HpNdvjbtatpi(cu0wW^cTu")
    >>> {str(path): bound.to_python() for path, bound in bounds.items()}
    {"$['a']": 'min-string', "$['b']['c']": 1}
    """
    return bounds_from_bytes(z85.decode(text))


def decode_bounds_array(texts: pa.Array) -> pa.StructArray:
    """Return a column of Z85 texts as `tables.path_bounds.bounds_array` does; unreadable texts become null."""
    try:
        blobs = z85.decode_array(texts)
    except TableError:
        return split_rows([_decoded(text) for text in texts.to_pylist()])
    return bounds_array(blobs)


def _decoded(text: str | None) -> bytes | None:
    try:
        return None if text is None else z85.decode(text)
    except TableError:
        return None
