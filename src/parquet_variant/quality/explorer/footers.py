"""The footers of Parquet files as tables of the page: bytes, nulls and bounds by leaf column and row group.

Owns the tables from which the page computes what a query reads, and the limit on their size. Leaves the facts of a
footer to `files.parquet.format.facts`, and the leaves of a path to the page, which follows `files.parquet.scanning`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

from parquet_variant.files.parquet.format.columns import VariantColumn, shredded_groups
from parquet_variant.files.parquet.format.facts import FileFacts
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.files.parquet.report_text import counted
from parquet_variant.quality.sources import DataFile
from parquet_variant.support import arrow_compute as pc
from parquet_variant.types.path import WILDCARD, VariantPath, outer_paths

# Largest number of leaf columns times row groups: a page of 3 MB, read in a second.
_MAX_CHUNKS = 200_000
# Longer strings are cut in lower bounds, which stay valid, and omitted in upper bounds.
_TEXT = 32
# Integers below this are exact in JavaScript.
_EXACT = 2**53
# States of a leaf in a row group.
MAY_HOLD, ALL_NULL, VARIANT_NULLS, NO_NULLS = range(4)


@dataclass(slots=True)
class Leaf:
    """A leaf column of the Variant, over all row groups that were read."""

    name: str  # The dotted name in the files.
    plain: int = 0  # Decompressed bytes, over all row groups.
    # Total entries and nulls; ``nulls`` is None if unknown.
    values: int = 0
    nulls: int | None = 0
    # In each row group: compressed bytes (0 if the file has no such column), the state (may hold values, only nulls,
    # only Variant nulls, or no nulls), and bounds as JSON values (None for unknown).
    by_group: list[int] = field(default_factory=list)
    states: list[int] = field(default_factory=list)
    lower: list[Any] = field(default_factory=list)
    upper: list[Any] = field(default_factory=list)

    def pad(self, groups: int) -> None:
        """Add empty row groups, up to a number of row groups, for files without this column."""
        missing = groups - len(self.by_group)
        self.by_group += [0] * missing
        self.states += [ALL_NULL] * missing
        self.lower += [None] * missing
        self.upper += [None] * missing

    def add(self, facts: FileFacts, node: SchemaNode, group: int) -> None:
        """Add a row group of a file."""
        statistics = facts.statistics(node, group)
        self.plain += facts.plain_size([node], [group])
        self.values += statistics.values
        self.nulls = None if self.nulls is None or statistics.nulls is None else self.nulls + statistics.nulls
        self.by_group.append(facts.size([node], [group]))
        variant_nulls = node.name == "value" and facts.is_empty(node, variant_nulls=True, groups=[group])
        state = VARIANT_NULLS if variant_nulls else NO_NULLS if statistics.no_nulls else MAY_HOLD
        self.states.append(ALL_NULL if statistics.all_null else state)
        self.lower.append(_bound(statistics.lower, cut=True))
        self.upper.append(_bound(statistics.upper, cut=False))


@dataclass(slots=True)
class Shape:
    """A shredding of files of the table: the leaf columns of each path."""

    layout: str
    typed: dict[VariantPath, int] = field(default_factory=dict)
    residual: dict[VariantPath, int] = field(default_factory=dict)
    kinds: dict[VariantPath, str] = field(default_factory=dict)
    metadata: int | None = None


@dataclass(slots=True)
class Footers:
    """The contents of all footers."""

    # Name, bytes and number of the shape of each file; the row groups are in `groups`.
    files: list[tuple[str, int, int]] = field(default_factory=list)
    groups: list[tuple[int, int]] = field(default_factory=list)  # The number of the file, and the rows.
    leaves: list[Leaf] = field(default_factory=list)  # The leaf columns of the Variant.
    shapes: list[Shape] = field(default_factory=list)
    other_columns: list[str] = field(default_factory=list)
    other_bytes: int = 0  # Bytes of the other columns.
    created_by: dict[str, int] = field(default_factory=dict)
    skipped_files: int = 0  # Files whose footers were not read because of the limit on the page.
    skipped_bytes: int = 0

    @property
    def rows(self) -> int:
        """The number of rows in the row groups that were read."""
        return sum(rows for _, rows in self.groups)

    @property
    def slow_paths(self) -> list[str]:
        """One line per object whose typed paths DuckDB reads slowly in these files, because it has residuals."""
        lines = []
        for path, (values, is_known) in self._residuals().items():
            if values or not is_known:
                number = counted(values, "residual") if is_known else "an unknown number of residuals"
                lines.append(
                    f"DuckDB 2.0 reads typed paths in {path.shorthand} slowly: {path.shorthand} has {number} in "
                    f"{counted(self.rows, 'row')}, and DuckDB rebuilds the 2,048 rows around each; "
                    "readers=duckdb gives rare keys columns"
                )
        untyped = [path for shape in self.shapes for path, kind in shape.kinds.items() if kind == "variant"]
        if untyped and any(shape.typed for shape in self.shapes):
            lines.append(f"DuckDB 2.0 reads all typed paths slowly: {untyped[0].shorthand} has a column without a type")
        return lines

    def _residuals(self) -> dict[VariantPath, tuple[int, bool]]:
        """Return the objects on the way to typed scalars, with the number of residuals, and whether it is known."""
        residuals: dict[VariantPath, tuple[int, bool]] = {}
        for shape in self.shapes:
            above = {outer for path in shape.typed for outer in outer_paths(path)}
            for path, number in shape.residual.items():
                if path in above and WILDCARD not in path.segments:
                    leaf = self.leaves[number]
                    residuals[path] = leaf.values - (leaf.nulls or 0), leaf.nulls is not None
        return residuals


def read_footers(files: Sequence[DataFile], root: str = "") -> Footers:
    """Read the footers of files, and no data.

    `root`: the common directory, which is removed from the names.
    """
    footers = Footers()
    numbers: dict[str, int] = {}
    shapes: dict[Any, int] = {}
    other_columns: dict[str, None] = {}
    for file in files:
        source = file.source
        if len(footers.groups) * len(footers.leaves) >= _MAX_CHUNKS:
            footers.skipped_files += 1
            footers.skipped_bytes += source.size
            continue
        with file.open() as (opened, variant):
            top = None if variant is None else variant.path[0]
            other_columns |= dict.fromkeys(node.name for node in opened.schema.children if node.name != top)
            writer = opened.writer or "unknown"
            footers.created_by[writer] = footers.created_by.get(writer, 0) + 1
            # A file that is older than the column has no leaves of it.
            shape = Shape("unshredded") if variant is None else _shape(variant, numbers, footers.leaves)
            key = (shape.layout, tuple(shape.typed.items()), tuple(shape.residual.items()))
            if key not in shapes:
                shapes[key] = len(footers.shapes)
                footers.shapes.append(shape)
            footers.files.append((source.path.removeprefix(root).lstrip("/"), source.size, shapes[key]))
            nodes = [] if variant is None else variant.node.leaves()
            for number in opened.facts.groups:
                for node in nodes:
                    leaf = footers.leaves[numbers[node.dotted]]
                    leaf.pad(len(footers.groups))
                    leaf.add(opened.facts, node, number)
                footers.groups.append((len(footers.files) - 1, opened.facts.rows([number])))
            footers.other_bytes += opened.facts.size() - opened.facts.size(nodes)
    for leaf in footers.leaves:
        leaf.pad(len(footers.groups))
    footers.other_columns = list(other_columns)
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


def _bound(bound: pa.Scalar | None, *, cut: bool) -> Any:
    """Return a bound as a JSON value with the order of the column; None without one."""
    value = None if bound is None else bound.as_py() if not pa.types.is_temporal(bound.type) else _iso(bound)
    if isinstance(value, str):
        return value if len(value) <= _TEXT else value[:_TEXT] if cut else None
    if isinstance(value, bool):
        return value
    if isinstance(value, Decimal):
        # The nearest double may be inside the bounds, so the next one outside is used.
        nearest = float(value)
        return math.nextafter(nearest, -math.inf if cut else math.inf)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        return value if abs(value) < _EXACT else None
    return None


def _iso(bound: pa.Scalar) -> str | None:
    """Return a date or timestamp as a string of fixed width, so that strings are ordered as the values."""
    kind = bound.type
    if pa.types.is_date(kind):
        text = str(bound.as_py())
        return text if len(text) == 10 else None
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        text = str(pc.strftime(bound, "%Y-%m-%d %H:%M:%S").as_py())
        return text if len(text) == 26 else None
    return None
