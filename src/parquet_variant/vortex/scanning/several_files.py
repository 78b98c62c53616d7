"""A query by path over all Vortex files that a path names.

Owns giving their answers as one. Leaves finding the files to `paths`, a single file to `reader` and `scanner`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from parquet_variant.array.parts import empty_table
from parquet_variant.errors import VariantFileError
from parquet_variant.parquet.report_text import Report
from parquet_variant.vortex.files.paths import some_vortex_files
from parquet_variant.vortex.scanning.parts import Part
from parquet_variant.vortex.scanning.scanner import VortexScan, scan


@dataclass(frozen=True, slots=True)
class VortexFilesReport(Report):
    """What a query reads, of how much."""

    # In all.
    files: int
    rows: int
    bytes: int
    columns: tuple[str, ...]  # What is asked of each file: ordinary columns, and parts of the Variant column.
    filters_in_file: bool  # Whether Vortex applies a part of the filter, and so may skip zones of the files.
    layouts: tuple[str, ...]  # How the Variant columns lie in the files.
    rows_read: int  # Rows of the ranges that statistics do not rule out.
    # Ranges of rows with statistics of shredded children, and those that are left.
    ranges: int
    ranges_read: int

    def to_dict(self) -> dict[str, object]:
        """The report for machines."""
        return {
            "files_total": self.files, "rows_total": self.rows, "bytes_total": self.bytes,
            "columns": list(self.columns), "filters_in_file": self.filters_in_file, "layouts": list(self.layouts),
            "rows_read": self.rows_read, "ranges_total": self.ranges, "ranges_read": self.ranges_read,
        }  # fmt: skip

    def __str__(self) -> str:
        columns = "\n".join(f"  {name}" for name in self.columns)
        filtered = "Vortex skips zones by it" if self.filters_in_file else "none that Vortex can apply"
        ranges = f"{self.ranges_read:,} of {self.ranges:,} ranges" if self.ranges else "no statistics of ranges"
        return (
            f"files       {self.files:,} Vortex{', ' if self.layouts else ''}{', '.join(self.layouts)}\n"
            f"rows        {self.rows_read:,} of {self.rows:,}: {ranges}\n"
            f"bytes       {self.bytes:,} in the files\n"
            f"columns     {len(self.columns)}\n{columns}\nfilter      {filtered}"
        )


@dataclass(frozen=True)
class VortexFilesScan:
    """A planned query over files; see `scan_files`."""

    scans: tuple[VortexScan, ...]

    @property
    def schema(self) -> pa.Schema:
        """The schema of the answer."""
        return self.scans[0].schema

    def batches(self) -> Iterator[pa.Table]:
        """The answer, file by file."""
        for each in self.scans:
            for table in each.batches():
                if len(table):
                    yield self._alike(each, table)

    def to_table(self) -> pa.Table:
        """The whole answer."""
        return pa.concat_tables([empty_table(self.schema), *self.batches()])

    def explain(self) -> VortexFilesReport:
        """What would be read, of how much."""
        rows = [len(each.file) for each in self.scans]
        columns = {_name(each, part) for each in self.scans for part in each.parts.values()}
        known = [(each, each.statistics.count) for each in self.scans if each.statistics is not None]
        runs = [each.row_ranges for each in self.scans]
        return VortexFilesReport(
            len(rows),
            sum(rows),
            sum(Path(each.path).stat().st_size for each in self.scans),
            tuple(sorted(columns)),
            any(each.filters_in_file for each in self.scans),
            tuple(sorted({each.layout for each in self.scans if each.layout is not None})),
            sum(
                count if run is None else sum(stop - start for start, stop in run)
                for count, run in zip(rows, runs, strict=True)
            ),
            sum(count for _, count in known),
            sum(len(each.range_numbers) for each, _ in known),
        )

    def _alike(self, each: VortexScan, table: pa.Table) -> pa.Table:
        if table.schema.equals(self.schema):
            return table
        try:
            return table.cast(self.schema)
        except (pa.ArrowException, ValueError) as error:
            raise VariantFileError(
                f"columns differ from those of {self.scans[0].path}: {error}",
                file=str(each.path),
                reason="files-differ",
            ) from None


def _name(each: VortexScan, part: Part | str) -> str:
    return part if isinstance(part, str) else ".".join((str(each.column), *part.levels))


def scan_files(
    path: str | os.PathLike[str], columns: Mapping[str, Any] | Sequence[str], where: Any = None, **options: Any
) -> VortexFilesScan:
    """Plan a query by path over the Vortex files of a directory or glob, as `scan` does over one.

    Parameters
    ----------
    path
        What `vortex_files` takes.
    columns, where, **options
        As for `scan`.

    Raises
    ------
    VariantFileError
        If there are no files, and as `scan`.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.vortex.write(f"{folder}/a.vortex", pv.parse_json(['{"n": 1}']))
    ...     _ = pv.vortex.write(f"{folder}/b.vortex", pv.parse_json(['{"n": 2}']), schema="n bigint")
    ...     scan_files(folder, {"n": "$.n:int"}).to_table().to_pydict()
    {'n': [1, 2]}
    """
    return VortexFilesScan(tuple(scan(each, columns, where, **options) for each in some_vortex_files(path)))
