"""From chosen leaves to a `ShreddingSchema`.

Owns putting the containers above the leaves. Leaves which leaves to the policies.
"""

from __future__ import annotations

from collections.abc import Mapping

from parquet_variant.path import WILDCARD, Segment, VariantPath
from parquet_variant.schema.shredding_schema import ShreddingSchema


def schema_of_leaves(leaves: Mapping[VariantPath, ShreddingSchema]) -> ShreddingSchema:
    """Put leaves together under the objects and arrays that their paths go through.

    A path that goes further than another one wins over it. Where some paths go through an object and others through an
    array, the larger side wins: a Parquet group is one or the other.

    >>> ddl = ShreddingSchema.from_ddl
    >>> paths = {"$.a.b": ddl("int"), "$.a": ddl("variant"), "$.c[*].d": ddl("date")}
    >>> schema_of_leaves({VariantPath.parse(path): leaf for path, leaf in paths.items()}).to_ddl()
    'a struct<b: int>, c array<struct<d: date>>'
    """
    return _node([(path.segments, leaf) for path, leaf in leaves.items()], 0)


def _node(leaves: list[tuple[tuple[Segment, ...], ShreddingSchema]], depth: int) -> ShreddingSchema:
    """The node so many segments down that all these leaves are at or below."""
    groups: dict[Segment, list[tuple[tuple[Segment, ...], ShreddingSchema]]] = {}
    here: ShreddingSchema | None = None
    for segments, leaf in leaves:
        if len(segments) > depth:
            groups.setdefault(segments[depth], []).append((segments, leaf))
        else:
            here = leaf
    if not groups:
        return here or ShreddingSchema.variant()
    elements = groups.pop(WILDCARD, None)
    if elements is not None and len(elements) >= sum(map(len, groups.values())):
        return ShreddingSchema.array(_node(elements, depth + 1))
    return ShreddingSchema.object({str(name): _node(below, depth + 1) for name, below in groups.items()})
