"""Names of cast targets: ``bigint``, ``array<struct<a: double>>``, ``map<string, variant>``.

Owns the names that only targets have, and the meaning of a type at a path with wildcards. The grammar is
`layouts.type_grammar`; `encoding.cast` decides which types can be a target.
"""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa

from parquet_variant.errors import CastError
from parquet_variant.layouts.storage_shape import is_list, refuse_deep
from parquet_variant.layouts.type_grammar import Grammar, TypeParser
from parquet_variant.types.path import WILDCARD, VariantPath


def as_target(target: str | pa.DataType) -> pa.DataType:
    """Return the Arrow type of a cast target, given as a type or by name.

    Names are Spark's in any case (``bigint``, ``decimal(10,2)``, ``array<…>``, ``struct<a: int, b string>``,
    ``map<string, …>``, ``variant``), those of the DDL of `ShreddingSchema` (``uuid``, ``timestamp_nanos``, …), and
    pyarrow's own aliases (``uint8``, ``large_string``). ``variant`` is a struct of ``metadata`` and ``value``. Raises
    `CastError` with reason ``bad-type`` and the offset of the part that cannot be read.

    >>> as_target("array<struct<a: int, b: decimal(5,2)>>")
    ListType(list<element: struct<a: int32, b: decimal128(5, 2)>>)
    >>> as_target("strin")
    Traceback (most recent call last):
    ...
    parquet_variant.errors.CastError: unknown type 'strin': did you mean 'string'? (byte offset 0)
    """
    if isinstance(target, pa.DataType):
        refuse_deep(target)
        return target
    if not isinstance(target, str):
        raise CastError(f"type is {target!r}: pass a type name such as 'bigint', or a pyarrow type", reason="bad-type")
    return _parsed(target)


_TARGETS = Grammar(CastError, "bad-type", 100, "the target type is nested more than {} levels deep", has_aliases=True)


@lru_cache(maxsize=256)
def _parsed(target: str) -> pa.DataType:
    parser = TypeParser(target, _TARGETS)
    return parser.complete(parser.type())


def value_target(target: pa.DataType, path: VariantPath) -> pa.DataType:
    """Return the type of the values at the end of a path with wildcards, from the type that a user passed.

    Every wildcard makes a list. A list type with that many levels is the type of the result, so its element type is
    returned; a type that is not a list is the type of every value.

    Raises `CastError` (``bad-type``) for a list type with fewer levels than the path has wildcards.

    >>> path = VariantPath.parse("$.items[*].n")
    >>> value_target(pa.list_(pa.int64()), path), value_target(pa.int64(), path)
    (DataType(int64), DataType(int64))
    """
    element = target
    wildcards = wildcard_count(path)
    for level in range(wildcards):
        if not is_list(element):
            if level:
                raise CastError(
                    f"{target} has {level} array levels, and {path} makes {wildcards}: give the type of the result, "
                    "with one array level for each [*], or the type of its values",
                    reason="bad-type",
                )
            return target
        element = element.value_type
    return element


def result_type(value_type: pa.DataType, path: VariantPath) -> pa.DataType:
    """Return the type of the result for a type of values: a list for each wildcard of the path."""
    for _ in range(wildcard_count(path)):
        value_type = pa.list_(pa.field("element", value_type))
    return value_type


def wildcard_count(path: VariantPath) -> int:
    """Return how many wildcards a path has."""
    return sum(segment is WILDCARD for segment in path.segments)
