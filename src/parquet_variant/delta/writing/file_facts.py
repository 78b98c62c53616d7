"""What is told of a data file in the log: gathered from its rows while they are written, and from its footer.

Owns putting the two together. Leaves the bounds of variants to `column_facts`, and the JSON to `statistics.file_stats`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.delta.protocol.schema import VARIANT, StructType
from parquet_variant.delta.statistics.file_stats import FileStats
from parquet_variant.delta.writing.column_facts import ColumnFacts
from parquet_variant.parquet.format.statistics import LeafStatistics
from parquet_variant.parquet.writing.writer import FileInfo

__all__ = ["FileFacts"]

Place = tuple[str, ...]


class FileFacts:
    """Sees the rows of a file, and makes its statistics.

    Parameters
    ----------
    schema
        The columns, as files have them.
    places
        The leaf columns that get statistics.
    variant_stats
        Whether variants get bounds.
    """

    def __init__(self, schema: StructType, places: frozenset[Place], *, variant_stats: bool) -> None:
        self._stats = FileStats(schema, places)
        # Variants outside of lists and maps: those that have one value a row.
        self._variants = _variant_leaves(schema, ()) if variant_stats else []
        self._facts: dict[Place, ColumnFacts] = {}

    def see(self, table: pa.Table) -> None:
        """Take note of rows that are going to be written."""
        self._stats.see(table)
        for place in self._variants:
            column = table[place[0]]
            for name in place[1:]:
                column = pc.struct_field(column, name)
            for chunk in column.chunks:
                self._facts.setdefault(place, ColumnFacts()).see(VariantArray.from_storage(chunk))

    def stats(self, info: FileInfo) -> str:
        """The statistics of the file that was written, as JSON."""

        def leaf(place: Place) -> LeafStatistics | None:
            found = info.statistics.get(place)
            is_bounded = found is not None and found.lower is not None
            if info.may_hold_nan and is_bounded and pa.types.is_floating(found.lower.type):  # type: ignore[union-attr]
                return LeafStatistics(found.values, found.nulls)  # type: ignore[union-attr]
            return found

        bounds = {place: facts.bounds(place, leaf) for place, facts in self._facts.items()}
        return self._stats.build(info.rows, info.statistics.get, bounds, hidden_nan=info.may_hold_nan)


def _variant_leaves(kind: Any, place: Place) -> list[Place]:
    if kind == VARIANT:
        return [place]
    if isinstance(kind, StructType):
        return [leaf for f in kind.fields for leaf in _variant_leaves(f.type, (*place, f.name))]
    return []
