"""The limit of Parquet levels of a shredded Variant column.

Owns the limit that every writer keeps. `ShreddingSchema` counts its levels and cuts what is deeper.

A nested object takes two levels in Parquet (the group of the field and its ``typed_value``), a nested array three (the
group, ``typed_value`` and ``list``). Readers limit how many levels they accept:

- pyarrow's C data interface and its IPC format accept 62 levels of Arrow types.
- pyarrow 26 opens Parquet files of up to 98 levels (``schema_depth_limit`` counts more); Apache Doris up to 100.
- DuckDB 2.0 and ClickHouse store a level in one byte: 255.
- parquet-java, Spark and arrow-rs have no limit but the depth of their recursion.
"""

from __future__ import annotations

from parquet_variant.errors import SchemaError
from parquet_variant.types.path import VariantPath

# Levels of a Variant column, from its own group to its deepest leaf: 24 nested objects, or 16 nested arrays.
MAX_PHYSICAL_DEPTH = 50
# Levels of a file, from a top-level column to the deepest leaf: Variants inside structs and lists have fewer.
MAX_FILE_DEPTH = 62
# Levels of an unshredded Variant: its group and `value`.
UNSHREDDED_DEPTH = 2


def depth_limit(levels_above: int = 0) -> int:
    """Return how many levels a Variant column may have under a number of levels of structs, lists and maps.

    >>> depth_limit(), depth_limit(20), depth_limit(100)
    (50, 42, 2)
    """
    return max(UNSHREDDED_DEPTH, min(MAX_PHYSICAL_DEPTH, MAX_FILE_DEPTH - levels_above))


def path_depth(path: VariantPath) -> int:
    """Return the levels of a Variant column that has a leaf at a path."""
    return UNSHREDDED_DEPTH + sum(2 if isinstance(segment, str) else 3 for segment in path.segments)


def too_deep(path: VariantPath) -> SchemaError:
    """Make the error for an explicit schema whose node at a path is deeper than the limit."""
    deepest = path
    while path_depth(deepest) > MAX_PHYSICAL_DEPTH:
        deepest = deepest.parent
    return SchemaError(
        f"the shredding schema is too deep: {path} takes {path_depth(path)} Parquet levels, and the limit is "
        f"{MAX_PHYSICAL_DEPTH}, because readers refuse deeper files; make {deepest} a variant",
        reason="too-deep",
        path=str(path),
    )
