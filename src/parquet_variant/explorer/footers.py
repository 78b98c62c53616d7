"""What the footers of Parquet files say, leaf column by row group: bytes, nulls, bounds.

Owns the tables that the page computes reads and skips from, and the cap on their size. Leaves the meaning of statistics
to `parquet.format.statistics`, and which leaves answer a path to the page, by the rules of `parquet.scanning`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.parquet.format.columns import VariantColumn, choose_column
from parquet_variant.parquet.format.files import OpenFile, ParquetSource, open_file
from parquet_variant.parquet.format.footer import SchemaNode
from parquet_variant.parquet.format.statistics import leaf_statistics
from parquet_variant.parquet.scanning.groups import shredded_groups
from parquet_variant.parquet.scanning.projection import only_nulls
from parquet_variant.path import VariantPath
from parquet_variant.shredding.leaf_statistics import LeafStatistics

# Leaf columns times row groups of which each is told apart: what a page of 3 MB has room for, and a second can read.
_CELLS = 200_000
# A text bound longer than this is cut: below, a cut bound still is one; above, it is not.
_TEXT = 32
# Integers that JavaScript's numbers hold exactly.
_EXACT = 2**53
# States of a leaf in a row group.
MAY_HOLD, ALL_NULL, VARIANT_NULLS, NO_NULLS = range(4)


@dataclass(slots=True)
class Leaf:
    """A leaf column of the Variant over all row groups that were looked at."""

    name: str  # The dotted name in the files.
    # In the file and decompressed, over all row groups.
    bytes: int = 0
    plain: int = 0
    by_group: list[int] = field(default_factory=list)  # Compressed bytes in each row group; 0 where the file lacks it.
    # For each row group: may hold values, only nulls, only Variant nulls, no nulls.
    states: list[int] = field(default_factory=list)
    # Bounds in each row group, as JSON values; None for unknown.
    lower: list[Any] = field(default_factory=list)
    upper: list[Any] = field(default_factory=list)
    # Entries and nulls in all; ``nulls`` None if unknown.
    values: int = 0
    nulls: int | None = 0

    def pad(self, groups: int) -> None:
        """Row groups of files that lack this column: nothing is there."""
        missing = groups - len(self.by_group)
        self.by_group += [0] * missing
        self.states += [ALL_NULL] * missing
        self.lower += [None] * missing
        self.upper += [None] * missing


@dataclass(slots=True)
class Shape:
    """One way in which files of the table are shredded: for each path the leaves of its own."""

    layout: str
    typed: dict[VariantPath, int] = field(default_factory=dict)
    residual: dict[VariantPath, int] = field(default_factory=dict)
    kinds: dict[VariantPath, str] = field(default_factory=dict)
    metadata: int | None = None


@dataclass(slots=True)
class Footers:
    """All that was read."""

    # Name, bytes and the shape's number of each file; its row groups are in `groups`.
    files: list[tuple[str, int, int]] = field(default_factory=list)
    groups: list[tuple[int, int]] = field(default_factory=list)  # Number of the file, and rows.
    leaves: list[Leaf] = field(default_factory=list)  # The leaf columns of the Variant.
    shapes: list[Shape] = field(default_factory=list)
    other_columns: list[str] = field(default_factory=list)
    other_bytes: int = 0  # Bytes of the other columns.
    created_by: dict[str, int] = field(default_factory=dict)
    skipped_files: int = 0  # Files whose footers were not read, since the table would have grown too large.
    skipped_bytes: int = 0

    @property
    def rows(self) -> int:
        """Rows of the row groups that were looked at."""
        return sum(rows for _, rows in self.groups)


def read_footers(sources: Iterable[ParquetSource], column: str | None, root: str = "") -> Footers:
    """Read the footers of files; no data.

    `sources`: the files, in order.
    `column`: the Variant column, if there are several.
    `root`: what all names begin with, to be left out of them.
    """
    footers = Footers()
    numbers: dict[str, int] = {}
    shapes: dict[Any, int] = {}
    others: dict[str, None] = {}
    for source in sources:
        if len(footers.groups) * len(footers.leaves) >= _CELLS:
            footers.skipped_files += 1
            footers.skipped_bytes += source.size
            continue
        with open_file(source) as file:
            variant = choose_column(file.schema, column, file.name)
            others |= dict.fromkeys(node.name for node in file.schema.children if node.name != variant.path[0])
            writer = file.writer or "unknown"
            footers.created_by[writer] = footers.created_by.get(writer, 0) + 1
            shape = _shape(variant, numbers, footers.leaves)
            key = (shape.layout, tuple(shape.typed.items()), tuple(shape.residual.items()))
            if key not in shapes:
                shapes[key] = len(footers.shapes)
                footers.shapes.append(shape)
            footers.files.append((source.path.removeprefix(root).lstrip("/"), source.size, shapes[key]))
            _add_groups(file, variant, numbers, footers)
    for leaf in footers.leaves:
        leaf.pad(len(footers.groups))
    footers.other_columns = list(others)
    return footers


def _shape(variant: VariantColumn, numbers: dict[str, int], leaves: list[Leaf]) -> Shape:
    def number(node: SchemaNode) -> int:
        if node.dotted not in numbers:
            numbers[node.dotted] = len(leaves)
            leaves.append(Leaf(node.dotted))
        return numbers[node.dotted]

    shape = Shape(variant.layout)
    metadata = variant.node.child("metadata")
    shape.metadata = None if metadata is None else number(metadata)
    for group in shredded_groups(variant):
        shape.kinds[group.path] = group.type_name
        if group.typed is not None and group.typed.leaf is not None:
            shape.typed[group.path] = number(group.typed)
        if group.residual is not None:
            shape.residual[group.path] = number(group.residual)
    for leaf in variant.node.leaves():
        number(leaf)
    return shape


def _add_groups(file: OpenFile, variant: VariantColumn, numbers: dict[str, int], footers: Footers) -> None:
    nodes = [(footers.leaves[numbers[node.dotted]], node) for node in variant.node.leaves()]
    mine = {node.leaf for _, node in nodes}
    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        at = len(footers.groups)
        footers.groups.append((len(footers.files) - 1, group.num_rows))
        footers.other_bytes += sum(
            group.column(leaf).total_compressed_size for leaf in range(group.num_columns) if leaf not in mine
        )
        for leaf, node in nodes:
            assert node.leaf is not None
            chunk = group.column(node.leaf)
            leaf.pad(at)
            _add(leaf, leaf_statistics(chunk, node), chunk.total_compressed_size, chunk.total_uncompressed_size)


def _add(leaf: Leaf, known: LeafStatistics, size: int, plain: int) -> None:
    leaf.bytes += size
    leaf.plain += plain
    leaf.values += known.values
    leaf.nulls = None if leaf.nulls is None or known.nulls is None else leaf.nulls + known.nulls
    leaf.by_group.append(size)
    variant_nulls = leaf.name.rpartition(".")[2] == "value" and only_nulls(known, variant_nulls=True)
    state = VARIANT_NULLS if variant_nulls else NO_NULLS if known.no_nulls else MAY_HOLD
    leaf.states.append(ALL_NULL if known.all_null else state)
    leaf.lower.append(_bound(known.lower, cut=True))
    leaf.upper.append(_bound(known.upper, cut=False))


def _bound(bound: pa.Scalar | None, *, cut: bool) -> Any:
    """A bound as a JSON value that compares as the column does; None if it has none."""
    value = None if bound is None else bound.as_py() if not pa.types.is_temporal(bound.type) else _iso(bound)
    if isinstance(value, str):
        return value if len(value) <= _TEXT else value[:_TEXT] if cut else None
    if isinstance(value, bool):
        return value
    if isinstance(value, Decimal):
        # The nearest double may lie on the wrong side of the bound.
        near = float(value)
        return math.nextafter(near, -math.inf if cut else math.inf)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        return value if abs(value) < _EXACT else None
    return None


def _iso(bound: pa.Scalar) -> str | None:
    """Dates and timestamps as texts of one width, which order as they do."""
    kind = bound.type
    if pa.types.is_date(kind):
        text = str(bound.as_py())
        return text if len(text) == 10 else None
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        text = str(pc.strftime(bound, "%Y-%m-%d %H:%M:%S").as_py())
        return text if len(text) == 26 else None
    return None
