"""`inspect`: what is in Parquet files with Variant columns, from their footers alone.

Owns counting rows, bytes, typed and residual values by path. Leaves what the values are to `read`, and rules to
`validate`.
"""

from __future__ import annotations

import html
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from pyarrow import fs

from parquet_variant.parquet.format.columns import VariantColumn, find_variants, no_variant_column
from parquet_variant.parquet.format.files import OpenFile, Source, locate, open_file
from parquet_variant.parquet.format.footer import SchemaNode
from parquet_variant.parquet.format.statistics import file_statistics
from parquet_variant.parquet.report_text import Report, counted
from parquet_variant.parquet.scanning.groups import ShreddedGroup, shredded_groups


@dataclass(slots=True)
class PathReport:
    """A path of a Variant column.

    Parameters
    ----------
    path
        The normalized path; ``[*]`` stands for every element.
    types
        For each type that files shred it as (``object``, ``array``, ``variant`` for none, else as a schema says it): in
        how many files.
    entries
        Values that could be there: rows, or elements of the lists above.
    typed, residual
        How many of them are in the typed column and in the residual; None if unknown (groups have no counts).
    bytes, uncompressed_bytes
        Of the path's own columns, in the file and decompressed.
    residual_bytes
        Of its column of other values, in the file.
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
        """Share of the entries that are neither: what is not there, or null as a whole."""
        if self.typed is None or self.residual is None or not self.entries:
            return None
        return (self.entries - self.typed - self.residual) / self.entries


@dataclass(slots=True)
class ColumnReport:
    """A Variant column of the files."""

    name: str
    layouts: dict[str, int] = field(default_factory=dict)
    annotated: int = 0
    paths: list[PathReport] = field(default_factory=list)
    metadata_bytes: int = 0

    def tree(self) -> str:
        """The paths as a tree, with types and shares."""
        return "\n".join(_line(path) for path in self.paths)


@dataclass(slots=True)
class FilesReport(Report):
    """Files with Variant columns."""

    files: int = 0
    rows: int = 0
    row_groups: int = 0
    bytes: int = 0
    columns: list[ColumnReport] = field(default_factory=list)
    other_columns: list[str] = field(default_factory=list)
    created_by: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The report for machines, shares included."""
        result = asdict(self)
        for column, plain in zip(self.columns, result["columns"], strict=True):
            for path, entry in zip(column.paths, plain["paths"], strict=True):
                entry |= {"typed_share": path.typed_share, "residual_share": path.residual_share}
                entry["missing_share"] = path.missing_share
        return result

    def __repr__(self) -> str:
        names = ", ".join(f"{each.name} ({len(each.paths):,} paths)" for each in self.columns)
        return f"<FilesReport {self.files:,} files, {self.rows:,} rows, {self.bytes:,} bytes: {names}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def __str__(self) -> str:
        totals = ((self.files, "file"), (self.rows, "row"), (self.row_groups, "row group"), (self.bytes, "byte"))
        lines = [", ".join(counted(*total) for total in totals)]
        for column in self.columns:
            layouts = ", ".join(f"{layout} in {counted(count, 'file')}" for layout, count in column.layouts.items())
            lines += ["", f"{column.name}: {layouts}; annotated in {column.annotated:,}", column.tree()]
        return "\n".join(lines)


def inspect(source: Source, *, column: str | None = None, filesystem: fs.FileSystem | None = None) -> FilesReport:
    """Look into Parquet files with Variant columns; reads footers, no data.

    Parameters
    ----------
    source
        A file, directory, glob, URI or list of these.
    column
        Only this Variant column.
    filesystem
        A pyarrow filesystem.

    Raises
    ------
    VariantFileError
        If a file is not there or not Parquet, or no file has a Variant column (of that name).

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.parquet.write(f"{folder}/a.parquet", pv.parse_json(['{"a": 1}', '{"a": "x"}']), schema="a bigint")
    ...     report = pv.parquet.inspect(folder)
    >>> [(path.path, path.typed_share, path.residual_share) for path in report.columns[0].paths]
    [('$', None, 0.0), ("$['a']", 0.5, 0.5)]
    """
    report = FilesReport()
    columns: dict[str, ColumnReport] = {}
    paths: dict[str, dict[str, PathReport]] = {}
    others: dict[str, None] = {}
    sources = locate(source, filesystem)
    writers: Counter[str] = Counter()
    for each in sources:
        with open_file(each) as file:
            report.files += 1
            report.rows += file.rows
            report.row_groups += file.metadata.num_row_groups
            report.bytes += each.size
            writers[file.writer or "unknown"] += 1
            variants = [variant for variant in find_variants(file.schema) if column in (None, variant.name)]
            tops = {variant.path[0] for variant in variants}
            others |= dict.fromkeys(node.name for node in file.schema.children if node.name not in tops)
            for variant in variants:
                known = columns.setdefault(variant.name, ColumnReport(variant.name))
                _count(file, variant, known, paths.setdefault(variant.name, {}))
    if not columns:
        raise no_variant_column(list(others), sources[0].path, column)
    for name, known in columns.items():
        known.paths = list(paths[name].values())
    report.columns, report.other_columns, report.created_by = list(columns.values()), list(others), dict(writers)
    return report


def _count(file: OpenFile, variant: VariantColumn, known: ColumnReport, paths: dict[str, PathReport]) -> None:
    known.layouts[variant.layout] = known.layouts.get(variant.layout, 0) + 1
    known.annotated += variant.node.annotated
    metadata = variant.node.child("metadata")
    if metadata is not None:
        known.metadata_bytes += _bytes(file, metadata)[0]
    for group in shredded_groups(variant):
        path = paths.setdefault(str(group.path), PathReport(str(group.path)))
        path.types[group.type_name] = path.types.get(group.type_name, 0) + 1
        _count_path(file, group, path)


def _count_path(file: OpenFile, group: ShreddedGroup, path: PathReport) -> None:
    typed = group.typed if group.typed is not None and group.typed.leaf is not None else None
    any_leaf = next(iter(group.group.leaves()))
    path.entries += file_statistics(file.metadata, typed or group.residual or any_leaf).values
    for leaf, name in ((typed, "typed"), (group.residual, "residual")):
        count: int | None = None
        if leaf is not None:
            known = file_statistics(file.metadata, leaf)
            count = None if known.nulls is None else known.values - known.nulls
            compressed, plain = _bytes(file, leaf)
            path.bytes += compressed
            path.residual_bytes += compressed if name == "residual" else 0
            path.uncompressed_bytes += plain
        elif name == "residual" or group.typed is None:
            count = 0  # There is no such column, so nothing is in it.
        before = getattr(path, name)
        setattr(path, name, None if before is None or count is None else before + count)


def _bytes(file: OpenFile, leaf: SchemaNode) -> tuple[int, int]:
    chunks = [file.metadata.row_group(number).column(leaf.leaf) for number in range(file.metadata.num_row_groups)]
    return sum(chunk.total_compressed_size for chunk in chunks), sum(chunk.total_uncompressed_size for chunk in chunks)


def _line(path: PathReport) -> str:
    kinds = " or ".join(path.types)
    shares = [
        f"{label} {share:.1%}"
        for label, share in (("typed", path.typed_share), ("residual", path.residual_share))
        if share is not None
    ]
    return f"{path.path}: {kinds}  {', '.join(shares)}  {path.bytes:,} bytes"
