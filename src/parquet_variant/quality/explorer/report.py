"""`ExploreReport`: the contents of the page, as one JSON document.

Owns the figures of footers by leaf column and row group, from which the page computes what a query reads, with a limit
on their size; their combination with those of the sample; and the form of the document, which ``page/*.js`` reads.
Leaves the facts of a footer to `files.parquet.format.facts`, and drawing to the page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

from parquet_variant.errors import without_secrets
from parquet_variant.files.parquet.format.columns import VariantColumn, shredded_groups
from parquet_variant.files.parquet.format.facts import FileFacts
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.files.parquet.report_text import counted
from parquet_variant.quality.sources import DataFile
from parquet_variant.support import arrow_compute as pc
from parquet_variant.types.path import VariantPath, depth_first, outer_paths

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
        lines = {}
        for shape in self.shapes:
            above = {outer for path in shape.typed for outer in outer_paths(path)}
            for path in [path for path in shape.residual if path in above and not path.has_wildcard]:
                leaf = self.leaves[shape.residual[path]]
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
    """Return the shape of a file, and add the leaf columns that no file before it has."""
    metadata = variant.node.child("metadata")
    groups = list(shredded_groups(variant))
    columns = [node for group in groups for node in (group.typed, group.residual) if node is not None]
    for node in [*([] if metadata is None else [metadata]), *columns, *variant.node.leaves()]:
        if node.leaf is not None and node.dotted not in numbers:
            numbers[node.dotted] = len(leaves)
            leaves.append(Leaf(node.dotted))
    return Shape(
        variant.layout,
        {of.path: numbers[of.typed.dotted] for of in groups if of.typed is not None and of.typed.leaf is not None},
        {of.path: numbers[of.residual.dotted] for of in groups if of.residual is not None},
        {of.path: of.type_name for of in groups},
        None if metadata is None else numbers[metadata.dotted],
    )


def _bound(bound: pa.Scalar | None, *, cut: bool) -> Any:
    """Return a bound as a JSON value with the order of the column; None without one."""
    if bound is None:
        return None
    value, kind = bound.as_py() if not pa.types.is_temporal(bound.type) else None, bound.type
    # Dates and timestamps are strings of a fixed width, which are ordered as the values.
    if pa.types.is_date(kind):
        text = str(bound.as_py())
        return text if len(text) == 10 else None
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        text = str(pc.strftime(bound, "%Y-%m-%d %H:%M:%S").as_py())
        return text if len(text) == 26 else None
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


@dataclass(slots=True)
class PathSample:
    """Figures of one path in the sample."""

    count: int
    row_share: float  # The share of rows with a value.
    kinds: dict[str, int]  # Values by type; numbers that fit one exact type count as that type.
    # The type of the best typed column, as DDL; ``"object"``, ``"array"``, or None if there are only nulls.
    column: str | None
    distinct: int  # Estimated number of distinct scalars.
    int_range: tuple[int | None, int | None]
    bytes: int  # Encoded bytes of the values in a residual.
    typed_bytes: int | None = None  # Compressed bytes of a typed column; None if not measured.
    reason: str = ""  # The reason for the decision of the ``auto`` policy.
    is_typed: bool = False  # Whether the ``auto`` policy types the path.
    # Examples by type: number of the row, and JSON.
    examples: dict[str, list[tuple[int, str]]] = field(default_factory=dict)


@dataclass(slots=True)
class Sample:
    """Figures of a sample."""

    # Number of rows, and their bytes as JSON.
    rows: int
    text_bytes: int
    paths: dict[VariantPath, PathSample]  # Every path, parents first.
    ddl: str  # The schema that the ``auto`` policy chooses.
    unshredded_bytes: int  # Compressed bytes of the sample without typed columns.
    shredded_bytes: int
    residual_ratio: float  # Compressed bytes per byte of residual.
    slow_paths: list[str]  # Paths that DuckDB would read slowly under that schema, with the reasons.


# Largest number of paths on the page, with examples: about 3 MB.
_MAX_PATHS = 12_000


@dataclass(slots=True)
class ExploreReport:
    """Figures of a table, or of JSON before it is ingested."""

    source: str  # The path, as the user wrote it.
    kind: str  # ``"parquet"``, ``"delta"``, ``"iceberg"``, ``"vortex"`` or ``"json"``.
    column: str  # The Variant column; ``"v"`` for JSON.
    # Rows and bytes of the whole table; an estimate for JSON.
    rows: int
    bytes: int
    footers: Footers | None  # The figures of footers; None without Parquet files.
    sample: Sample  # The figures of the sample.
    # The versions of a table, newest first: version, time, operation, figures.
    versions: list[dict[str, Any]] = field(default_factory=list)
    types: dict[VariantPath, str] = field(default_factory=dict)
    before: ExploreReport | None = None  # Another report to compare with.
    table: Any = None  # The snapshot of an Iceberg table, over which SQL runs.
    catalog: str | None = None  # The name of the catalog of an Iceberg table, for commands; None without a catalog.

    def to_dict(self) -> dict[str, Any]:
        """Return the document, with tables by column so that it compresses well."""
        paths = sorted(self._paths(), key=depth_first)
        document: dict[str, Any] = {
            "source": without_secrets(self.source),
            "kind": self.kind,
            "column": self.column,
            "rows": self.rows,
            "bytes": self.bytes,
            "sample": {
                "rows": self.sample.rows, "text": self.sample.text_bytes, "ddl": self.sample.ddl,
                "unshredded": self.sample.unshredded_bytes, "shredded": self.sample.shredded_bytes,
                "ratio": self.sample.residual_ratio, "slow": self.sample.slow_paths,
            },
            "paths": self._path_table(paths),
            "versions": self.versions,
            "catalog": self.catalog,
        }  # fmt: skip
        if self.footers is not None:
            at = {path: number for number, path in enumerate(paths)}
            document["footers"] = {
                "files": [{"name": name, "bytes": size, "shape": shape} for name, size, shape in self.footers.files],
                "groups": {
                    "file": [file for file, _ in self.footers.groups],
                    "rows": [rows for _, rows in self.footers.groups],
                },
                "shapes": [
                    {
                        "layout": shape.layout,
                        "typed": {at[path]: leaf for path, leaf in shape.typed.items() if path in at},
                        "residual": {at[path]: leaf for path, leaf in shape.residual.items() if path in at},
                        "groups": [at[path] for path in shape.kinds if path in at],
                        "metadata": shape.metadata,
                    }
                    for shape in self.footers.shapes
                ],
                "leaves": [_leaf(leaf) for leaf in self.footers.leaves],
                "otherColumns": self.footers.other_columns,
                "otherBytes": self.footers.other_bytes,
                "createdBy": self.footers.created_by,
                "skippedFiles": self.footers.skipped_files,
                "skippedBytes": self.footers.skipped_bytes,
                "slow": self.footers.slow_paths,
            }
        if self.before is not None:
            document["before"] = self.before.to_dict() | {"before": None}
        return document

    def _paths(self) -> list[VariantPath]:
        """Return every path that is typed or in the sample; of too many, the largest and their parents."""
        sizes: dict[VariantPath, int] = {VariantPath(): 0}
        for path, of_sample in self.sample.paths.items():
            sizes[path] = of_sample.bytes
        shapes = self.footers.shapes if self.footers is not None else []
        for path in [path for shape in shapes for path in shape.kinds] + list(self.types):
            sizes.setdefault(path, 0)
        if len(sizes) <= _MAX_PATHS:
            return list(sizes)
        typed = {path for shape in shapes for path in shape.kinds}
        largest: dict[VariantPath, None] = {}
        for path in sorted(sizes, key=lambda path: (path not in typed, -sizes[path])):
            if len(largest) >= _MAX_PATHS:
                break
            largest |= dict.fromkeys([*outer_paths(path), path])
        return list(largest)

    def _path_table(self, paths: list[VariantPath]) -> dict[str, list[Any]]:
        number = {path.segments: at for at, path in enumerate(paths)}
        kinds: dict[VariantPath, str] = dict(self.types)
        for shape in reversed(self.footers.shapes if self.footers is not None else []):
            kinds |= shape.kinds
        scale = self.rows / self.sample.rows if self.sample.rows else 0.0
        not_sampled = PathSample(0, 0.0, {}, None, 0, (None, None), 0)
        samples = [self.sample.paths.get(path) or not_sampled for path in paths]
        return {
            "parent": [number[path.segments[:-1]] if path.segments else -1 for path in paths],
            # null stands for the elements of an array: no key of JSON is null.
            "key": [
                "$" if not path.segments else path.segments[-1] if isinstance(path.segments[-1], str) else None
                for path in paths
            ],
            "kind": [kinds.get(path) for path in paths],
            "column": [sample.column for sample in samples],
            "share": [round(sample.row_share, 5) for sample in samples],
            "count": [round(sample.count * scale) for sample in samples],
            "kinds": [{kind: round(count * scale) for kind, count in sample.kinds.items()} for sample in samples],
            "distinct": [sample.distinct for sample in samples],
            "lower": [sample.int_range[0] for sample in samples],
            "upper": [sample.int_range[1] for sample in samples],
            "encoded": [round(sample.bytes * scale) for sample in samples],
            "typed": [None if sample.typed_bytes is None else round(sample.typed_bytes * scale) for sample in samples],
            "reason": [sample.reason for sample in samples],
            "chosen": [int(sample.is_typed) for sample in samples],
            "examples": [sample.examples for sample in samples],
        }


def _leaf(leaf: Leaf) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": leaf.name, "bytes": leaf.by_group, "plain": leaf.plain, "states": "".join(map(str, leaf.states)),
        "values": leaf.values, "nulls": leaf.nulls,
    }  # fmt: skip
    if leaf.name.rpartition(".")[2] not in ("value", "metadata") and any(bound is not None for bound in leaf.lower):
        document |= {"lower": leaf.lower, "upper": leaf.upper}
    return document
