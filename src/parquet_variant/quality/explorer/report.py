"""`Footers`: the figures of all footers for the page, by leaf column and row group, with a limit on their size.

The page computes from them what a query reads. Leaves the facts of a footer to `files.parquet.format.facts`, and the
other parts of the document to `explore`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from decimal import Decimal
from typing import Any

import pyarrow as pa

from parquet_variant.files.parquet.format.columns import VariantColumn, shredded_groups
from parquet_variant.files.parquet.format.facts import FileFacts
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.quality.sources import DataFile
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record, counted
from parquet_variant.types.path import VariantPath, outer_paths

# Largest number of leaf columns times row groups: a page of 3 MB, read in a second.
_MAX_CHUNKS = 200_000
# Longer strings are cut in lower bounds, which stay valid, and omitted in upper bounds.
_TEXT = 32
# Integers below this are exact in JavaScript.
_EXACT = 2**53
# States of a leaf in a row group.
MAY_HOLD, ALL_NULL, VARIANT_NULLS, NO_NULLS = range(4)


class Leaf(Record, frozen=False):
    """A leaf column of the Variant, over all row groups that were read."""

    number: int
    name: str  # The dotted name in the files.
    plain: int = 0  # Decompressed bytes, over all row groups.
    # Total entries and nulls; ``nulls`` is None if unknown.
    values: int = 0
    nulls: int | None = 0
    # By row group: compressed bytes (0 if the file has no such column), the state (may hold values, only nulls, only
    # Variant nulls, or no nulls), and the lower and upper bound as JSON values (None for unknown).
    chunks: list[tuple[int, int, Any, Any]] = field(default_factory=list)

    def pad(self, groups: int) -> None:
        """Add empty row groups, up to a number of row groups, for files without this column."""
        self.chunks += [(0, ALL_NULL, None, None)] * (groups - len(self.chunks))

    def add(self, facts: FileFacts, node: SchemaNode, group: int) -> None:
        """Add a row group of a file."""
        statistics = facts.statistics(node, group)
        self.plain += facts.size([node], [group], plain=True)
        self.values += statistics.values
        self.nulls = None if self.nulls is None or statistics.nulls is None else self.nulls + statistics.nulls
        state = NO_NULLS if statistics.nulls == 0 else MAY_HOLD
        if node.name == "value" and facts.is_empty(node, variant_nulls=True, groups=[group]):
            state = VARIANT_NULLS
        if statistics.all_null:
            state = ALL_NULL
        low, high = _bound(statistics.lower, cut=True), _bound(statistics.upper, cut=False)
        self.chunks.append((facts.size([node], [group]), state, low, high))

    def to_dict(self) -> dict[str, Any]:
        """Return the column as JSON values, with the bounds of typed columns."""
        sizes, states, lower, upper = ([chunk[at] for chunk in self.chunks] for at in range(4))
        document = {"name": self.name, "bytes": sizes, "plain": self.plain, "states": "".join(map(str, states))}
        document |= {"values": self.values, "nulls": self.nulls}
        if self.name.rpartition(".")[2] not in ("value", "metadata") and any(bound is not None for bound in lower):
            document |= {"lower": lower, "upper": upper}
        return document


class Shape(Record, frozen=False):
    """A shredding of files of the table: the numbers of the leaf columns of each path, and the types of the paths."""

    layout: str
    typed: dict[VariantPath, int] = field(default_factory=dict)
    residual: dict[VariantPath, int] = field(default_factory=dict)
    kinds: dict[VariantPath, str] = field(default_factory=dict)
    metadata: int | None = None


class Footers(Record, frozen=False):
    """The contents of all footers."""

    # Name, bytes and number of the shape of each file; the row groups are in `groups`.
    files: list[tuple[str, int, int]] = field(default_factory=list)
    groups: list[tuple[int, int]] = field(default_factory=list)  # The number of the file, and the rows.
    leaves: dict[str, Leaf] = field(default_factory=dict)  # The leaf columns of the Variant.
    shapes: list[Shape] = field(default_factory=list)
    other_columns: dict[str, None] = field(default_factory=dict)
    other_bytes: int = 0  # Bytes of the other columns.
    created_by: Counter[str] = field(default_factory=Counter)
    skipped_files: int = 0  # Files whose footers were not read because of the limit on the page.
    skipped_bytes: int = 0

    @property
    def rows(self) -> int:
        """The number of rows in the row groups that were read."""
        return sum(rows for _, rows in self.groups)

    @property
    def slow_paths(self) -> list[str]:
        """One line per object whose typed paths DuckDB reads slowly in these files, because it has residuals."""
        lines, leaves = {}, list(self.leaves.values())
        for shape in self.shapes:
            above = {outer for path in shape.typed for outer in outer_paths(path)}
            for path in [path for path in shape.residual if path in above and not path.has_wildcard]:
                leaf = leaves[shape.residual[path]]
                if leaf.nulls is None or leaf.values > leaf.nulls:
                    number = "an unknown number of residuals"
                    if leaf.nulls is not None:
                        number = counted(leaf.values - leaf.nulls, "residual")
                    lines[path] = (
                        f"DuckDB 2.0 reads typed paths in {path.shorthand} slowly: {path.shorthand} has {number} in "
                        f"{counted(self.rows, 'row')}, and DuckDB rebuilds the 2,048 rows around each; "
                        "readers=duckdb gives rare keys columns"
                    )
        untyped = [path for shape in self.shapes for path, kind in shape.kinds.items() if kind == "variant"]
        if untyped and any(shape.typed for shape in self.shapes):
            name = untyped[0].shorthand
            return [*lines.values(), f"DuckDB 2.0 reads all typed paths slowly: {name} has a column without a type"]
        return list(lines.values())

    def to_dict(self, numbers: dict[VariantPath, int]) -> dict[str, Any]:
        """Return the figures as JSON values; `numbers`: the number of each path on the page."""

        def numbered(leaves: dict[VariantPath, int]) -> dict[int, int]:
            return {numbers[path]: leaf for path, leaf in leaves.items() if path in numbers}

        return {
            "files": [{"name": name, "bytes": size, "shape": shape} for name, size, shape in self.files],
            "groups": {"file": [file for file, _ in self.groups], "rows": [rows for _, rows in self.groups]},
            "shapes": [
                {
                    "layout": shape.layout,
                    "typed": numbered(shape.typed),
                    "residual": numbered(shape.residual),
                    "groups": [numbers[path] for path in shape.kinds if path in numbers],
                    "metadata": shape.metadata,
                }
                for shape in self.shapes
            ],
            "leaves": [leaf.to_dict() for leaf in self.leaves.values()],
            "otherColumns": list(self.other_columns),
            "otherBytes": self.other_bytes,
            "createdBy": self.created_by,
            "skippedFiles": self.skipped_files,
            "skippedBytes": self.skipped_bytes,
            "slow": self.slow_paths,
        }


def read_footers(files: Sequence[DataFile], root: str = "") -> Footers:
    """Read the footers of files, and no data.

    `root`: the common directory, which is removed from the names.
    """
    footers = Footers()
    for file in files:
        source = file.source
        if len(footers.groups) * len(footers.leaves) >= _MAX_CHUNKS:
            footers.skipped_files += 1
            footers.skipped_bytes += source.size
            continue
        with file.open() as (opened, variant):
            top = None if variant is None else variant.path[0]
            footers.other_columns |= dict.fromkeys(node.name for node in opened.schema.children if node.name != top)
            footers.created_by[opened.facts.writer or "unknown"] += 1
            # A file that is older than the column has no leaves of it.
            shape = Shape("unshredded") if variant is None else _shape(variant, footers.leaves)
            if shape not in footers.shapes:
                footers.shapes.append(shape)
            name = source.path.removeprefix(root).lstrip("/")
            footers.files.append((name, source.size, footers.shapes.index(shape)))
            nodes = [] if variant is None else variant.node.leaves()
            for number in opened.facts.groups:
                for node in nodes:
                    leaf = footers.leaves[node.dotted]
                    leaf.pad(len(footers.groups))
                    leaf.add(opened.facts, node, number)
                footers.groups.append((len(footers.files) - 1, opened.facts.rows([number])))
            footers.other_bytes += opened.facts.size() - opened.facts.size(nodes)
    for leaf in footers.leaves.values():
        leaf.pad(len(footers.groups))
    return footers


def _shape(variant: VariantColumn, leaves: dict[str, Leaf]) -> Shape:
    """Return the shape of a file, and add the leaf columns that no file before it has."""
    shape, metadata = Shape(variant.layout), variant.node.child("metadata")

    def number(node: SchemaNode) -> int:
        return leaves.setdefault(node.dotted, Leaf(len(leaves), node.dotted)).number

    if metadata is not None:
        shape.metadata = number(metadata)
    for group in shredded_groups(variant):
        shape.kinds[group.path] = group.type_name
        if group.typed is not None and group.typed.leaf is not None:
            shape.typed[group.path] = number(group.typed)
        if group.residual is not None:
            shape.residual[group.path] = number(group.residual)
    for node in variant.node.leaves():  # those of draft layouts, which have no groups
        number(node)
    return shape


def _bound(bound: pa.Scalar | None, *, cut: bool) -> Any:
    """Return a bound as a JSON value with the order of the column; None without one."""
    if bound is None:
        return None
    kind = bound.type
    # Dates and timestamps are strings of a fixed width, which are ordered as the values.
    if pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.unit == "us"):
        text = str(bound.as_py() if pa.types.is_date(kind) else pc.strftime(bound, "%Y-%m-%d %H:%M:%S").as_py())
        return text if len(text) == (10 if pa.types.is_date(kind) else 26) else None
    value = None if pa.types.is_temporal(kind) else bound.as_py()
    if isinstance(value, str):
        return value if len(value) <= _TEXT else value[:_TEXT] if cut else None
    if isinstance(value, Decimal):
        # The nearest double may be inside the bounds, so the next one outside is used.
        nearest = float(value)
        return math.nextafter(nearest, -math.inf if cut else math.inf)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int) and abs(value) < _EXACT else None
