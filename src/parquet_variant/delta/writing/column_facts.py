"""What the rows of a file tell of a variant column: the facts from which its bounds by path are made.

Owns gathering them, from the footer of a shredded column or from the values. Leaves the bounds themselves to
`shredding.statistics`.
"""

from __future__ import annotations

from typing import Any

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.functions.storage.shred_variant import shred_variant
from parquet_variant.parquet.format.statistics import LeafStatistics
from parquet_variant.path import VariantPath
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.statistics import (
    Bounds,
    array_facts,
    residual_objects,
    shredded_bounds,
    uniform_schema,
)

__all__ = ["ColumnFacts"]

Place = tuple[str, ...]
# Bounds of every path would make the log larger than small files.
_MAX_PATHS = 100


class ColumnFacts:
    """What is known of one variant column of a file: from the footer if it is shredded, else from its values."""

    def __init__(self) -> None:
        self.schema: ShreddingSchema | None = None
        self.unsafe: frozenset[VariantPath] = frozenset()
        self.seen: dict[Place, LeafStatistics] | None = None
        self._first = True

    def see(self, array: VariantArray) -> None:
        """Take note of rows that are going to be written."""
        if array.is_shredded:
            self.schema = array.schema
            self.unsafe |= residual_objects(array)
            return
        if self._first:
            self._first = False
            self.schema = uniform_schema(array, _MAX_PATHS)
            self.seen = {}
        if self.schema is None or self.seen is None:
            return
        facts = array_facts(shred_variant(array, self.schema))
        for path, node in self.schema.walk():
            if node.type is None or path.has_wildcard:
                continue
            place = tuple(part for name in path.segments for part in ("typed_value", str(name)))
            for leaf in ((*place, "typed_value"), (*place, "value")):
                known = facts(leaf)
                if known is not None:
                    new = LeafStatistics(known.values, known.nulls, known.lower, known.upper)
                    old = self.seen.get(leaf)
                    self.seen[leaf] = new if old is None else old.merge(new)

    def bounds(self, place: Place, leaf: Any) -> dict[VariantPath, Bounds]:
        """The bounds by path; `leaf` gives what the footer says of a leaf column."""
        if self.schema is None:
            return {}
        if self.seen is not None:
            return shredded_bounds(self.schema, self.seen.get, limit=_MAX_PATHS)
        return shredded_bounds(self.schema, lambda p: leaf((*place, *p)), unsafe=self.unsafe, limit=_MAX_PATHS)
