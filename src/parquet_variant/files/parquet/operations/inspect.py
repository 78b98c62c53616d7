"""`inspect`: report the content of Parquet files with Variant columns, from their footers alone.

Owns the counts of rows, bytes, typed values and residual values by path. Leaves reading values to `read`, and checks to
`validate`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, field
from typing import Any

from pyarrow import fs

from parquet_variant.files.parquet.format.columns import (
    ShreddedGroup,
    find_variants,
    no_variant_column,
    shredded_groups,
)
from parquet_variant.files.parquet.format.files import OpenFile, Source, locate, open_file
from parquet_variant.support.options import PathOrder
from parquet_variant.support.records import Record, Report, counted, grid, human_bytes
from parquet_variant.types.path import VariantPath


class PathReport(Record, frozen=False):
    """The report of a path of a Variant column.

    Parameters
    ----------
    path
        The normalized path; ``[*]`` stands for every element.
    types
        Number of files per type that they shred the path as: ``object``, ``array``, ``variant`` (not shredded), or the
        DDL name of a type.
    entries
        Possible values: rows, or elements of the enclosing lists.
    typed, residual
        Values in the typed column and in the residual; None if unknown (groups have no counts).
    bytes, uncompressed_bytes
        Compressed and decompressed size of the columns of the path.
    residual_bytes
        Compressed size of the residual column.
    """

    path: str
    types: dict[str, int] = field(default_factory=dict)
    entries: int = 0
    typed: int | None = 0
    residual: int | None = 0
    bytes: int = 0
    uncompressed_bytes: int = 0
    residual_bytes: int = 0

    @property
    def typed_share(self) -> float | None:
        """Share of the entries that are typed."""
        return None if self.typed is None or not self.entries else self.typed / self.entries

    @property
    def residual_share(self) -> float | None:
        """Share of the entries that are in the residual."""
        return None if self.residual is None or not self.entries else self.residual / self.entries

    @property
    def missing_share(self) -> float | None:
        """Share of the entries that are missing or NULL."""
        if self.typed is None or self.residual is None or not self.entries:
            return None
        return (self.entries - self.typed - self.residual) / self.entries


class ColumnReport(Record, frozen=False):
    """The report of a Variant column."""

    name: str
    layouts: dict[str, int] = field(default_factory=dict)
    annotated: int = 0
    paths: list[PathReport] = field(default_factory=list)
    metadata_bytes: int = 0

    def lines(self, sort: PathOrder = "file", top: int | None = None) -> list[str]:
        """Return the report as lines, with at most `top` paths in an order, largest first."""
        layouts = ", ".join(f"{layout} in {counted(files, 'file')}" for layout, files in self.layouts.items())
        residuals = sum(path.residual_bytes for path in self.paths)
        typed = counted(sum(path.bytes > path.residual_bytes for path in self.paths), "typed column")
        sizes = f"{human_bytes(sum(path.bytes for path in self.paths) - residuals)}, residuals {human_bytes(residuals)}"
        rows = [
            (
                VariantPath.parse(path.path).shorthand,
                " or ".join(path.types),
                path.entries,
                *map(share_text, (path.typed_share, path.residual_share, path.missing_share)),
                human_bytes(path.bytes - path.residual_bytes),
                human_bytes(path.residual_bytes),
            )
            for path in (sorted(self.paths, key=_SORT_KEYS[sort]) if sort in _SORT_KEYS else self.paths)[:top]
        ]
        names = ["path", "type", "values", "typed", "residual", "missing", "typed bytes", "residual bytes"]
        return [
            f"{self.name}: {layouts}; VARIANT annotation in {counted(self.annotated, 'file')}",
            f"{typed} of {sizes}, dictionaries {human_bytes(self.metadata_bytes)}",
            *grid(names, rows, right=names[2:]),
        ]


_SORT_KEYS: dict[PathOrder, Callable[[PathReport], Any]] = {
    "path": lambda path: path.path,
    "bytes": lambda path: -path.bytes,
    "residual": lambda path: -path.residual_bytes,
    "typed": lambda path: -(path.typed_share or 0),
    "missing": lambda path: -(path.missing_share or 0),
}


def share_text(share: float | None) -> str | None:
    """Return a share in percent."""
    return None if share is None else f"{share:.1%}"


class FilesReport(Report, Record, frozen=False):
    """The report of files with Variant columns."""

    files: int = 0
    rows: int = 0
    row_groups: int = 0
    bytes: int = 0
    columns: list[ColumnReport] = field(default_factory=list)
    other_columns: list[str] = field(default_factory=list)
    created_by: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dictionary, including shares."""
        result = asdict(self)
        for column, plain in zip(self.columns, result["columns"], strict=True):
            for path, entry in zip(column.paths, plain["paths"], strict=True):
                entry |= {"typed_share": path.typed_share, "residual_share": path.residual_share}
                entry["missing_share"] = path.missing_share
        return result

    def __repr__(self) -> str:
        names = ", ".join(f"{column.name} ({len(column.paths):,} paths)" for column in self.columns)
        return f"<FilesReport {self.files:,} files, {self.rows:,} rows, {self.bytes:,} bytes: {names}>"

    def __str__(self) -> str:
        return self.text()

    def text(self, sort: PathOrder = "file", top: int | None = None) -> str:
        """Return the report as text; see `ColumnReport.lines`."""
        totals = ((self.files, "file"), (self.rows, "row"), (self.row_groups, "row group"))
        lines = [", ".join(counted(*total) for total in totals)]
        lines.append(f"{human_bytes(self.bytes)}, written by {', '.join(self.created_by)}")
        if self.other_columns:
            lines.append(f"other columns: {', '.join(self.other_columns)}")
        for column in self.columns:
            lines += ["", *column.lines(sort, top)]
        return "\n".join(lines)


def inspect(source: Source, *, column: str | None = None, filesystem: fs.FileSystem | None = None) -> FilesReport:
    """Report the content of Parquet files with Variant columns; only footers are read; see `Table.inspect`."""
    report = FilesReport()
    columns: dict[str, ColumnReport] = {}
    paths: dict[tuple[str, str], PathReport] = {}
    other_columns: dict[str, None] = {}
    sources = locate(source, filesystem)
    writers: Counter[str] = Counter()
    for parquet_source in sources:
        with open_file(parquet_source) as file:
            report.files += 1
            report.rows += file.facts.rows()
            report.row_groups += len(file.facts.groups)
            report.bytes += parquet_source.size
            writers[file.facts.writer or "unknown"] += 1
            variants = [variant for variant in find_variants(file.schema) if column in (None, variant.name)]
            tops = {variant.path[0] for variant in variants}
            other_columns |= dict.fromkeys(node.name for node in file.schema.children if node.name not in tops)
            for variant in variants:
                of_column = columns.setdefault(variant.name, ColumnReport(variant.name))
                of_column.layouts[variant.layout] = of_column.layouts.get(variant.layout, 0) + 1
                of_column.annotated += variant.node.annotated
                if (metadata := variant.node.child("metadata")) is not None:
                    of_column.metadata_bytes += file.facts.size([metadata])
                for group in shredded_groups(variant):
                    key = variant.name, str(group.path)
                    if key not in paths:
                        paths[key] = PathReport(key[1])
                        of_column.paths.append(paths[key])
                    paths[key].types[group.type_name] = paths[key].types.get(group.type_name, 0) + 1
                    _count_path(file, group, paths[key])
    if not columns:
        raise no_variant_column(list(other_columns), sources[0].path, column)
    report.columns, report.other_columns, report.created_by = list(columns.values()), list(other_columns), dict(writers)
    return report


def _count_path(file: OpenFile, group: ShreddedGroup, path: PathReport) -> None:
    facts, residual = file.facts, group.residual
    typed = group.typed if group.typed is not None and group.typed.leaf is not None else None
    path.entries += facts.statistics(typed or residual or next(iter(group.group.leaves()))).values
    for leaf, name in ((typed, "typed"), (residual, "residual")):
        # A column that does not exist has no values; a typed object or list is not counted.
        count: int | None = None if leaf is None and name == "typed" and group.typed is not None else 0
        if leaf is not None:
            leaf_values = facts.statistics(leaf)
            count = None if leaf_values.nulls is None else leaf_values.values - leaf_values.nulls
            path.bytes += facts.size([leaf])
            path.uncompressed_bytes += facts.size([leaf], plain=True)
        before = getattr(path, name)
        setattr(path, name, None if before is None or count is None else before + count)
    path.residual_bytes += 0 if residual is None else facts.size([residual])
