"""`scan_files`: read typed columns by path from the Vortex files of a directory or glob.

Owns the scan of several files and its report. Leaves the scan of one file to `scanner`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.parts import empty_table
from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.report_text import Report
from parquet_variant.files.vortex.files.paths import some_vortex_files
from parquet_variant.files.vortex.scanning.parts import Part
from parquet_variant.files.vortex.scanning.scanner import VortexScan, scan
from parquet_variant.interop.arrow_result import ArrowResult


@dataclass(frozen=True, slots=True)
class VortexFilesReport(Report):
    """How much of the files a query reads.

    Parameters
    ----------
    files, rows, bytes
        Number of files, rows and bytes in total.
    columns
        Columns read from each file: ordinary columns, and parts of the Variant column.
    filters_in_file
        True if Vortex applies a part of the filter, and so may skip zones of the files.
    layouts
        Layouts of the Variant columns.
    rows_read
        Number of rows in the ranges that statistics do not exclude.
    ranges, ranges_read
        Number of row ranges with statistics of shredded children, and of those that are read.
    """

    files: int
    rows: int
    bytes: int
    columns: tuple[str, ...]
    filters_in_file: bool
    layouts: tuple[str, ...]
    rows_read: int
    ranges: int
    ranges_read: int

    def to_dict(self) -> dict[str, object]:
        """Return the report as a dictionary of JSON values."""
        return {
            "files_total": self.files, "rows_total": self.rows, "bytes_total": self.bytes,
            "columns": list(self.columns), "filters_in_file": self.filters_in_file, "layouts": list(self.layouts),
            "rows_read": self.rows_read, "ranges_total": self.ranges, "ranges_read": self.ranges_read,
        }  # fmt: skip

    def __str__(self) -> str:
        columns = "\n".join(f"  {name}" for name in self.columns)
        filtered = "applied by Vortex, which may skip zones" if self.filters_in_file else "not applied by Vortex"
        ranges = f"{self.ranges_read:,} of {self.ranges:,} ranges" if self.ranges else "no range statistics"
        return (
            f"files       {self.files:,} Vortex{', ' if self.layouts else ''}{', '.join(self.layouts)}\n"
            f"rows        {self.rows_read:,} of {self.rows:,}: {ranges}\n"
            f"bytes       {self.bytes:,} in the files\n"
            f"columns     {len(self.columns)}\n{columns}\nfilter      {filtered}"
        )


@dataclass(frozen=True)
class VortexFilesScan(ArrowResult):
    """A planned query over files; see `scan_files`."""

    scans: tuple[VortexScan, ...]

    @property
    def schema(self) -> pa.Schema:
        """The schema of the result."""
        return self.scans[0].schema

    def batches(self) -> Iterator[pa.Table]:
        """Yield the result, file by file."""
        for file_scan in self.scans:
            for table in file_scan.batches():
                if len(table):
                    yield self._in_schema(file_scan, table)

    @property
    def bytes_read(self) -> int:
        """The bytes of the columns, in Arrow's representation, that this scan has read so far."""
        return sum(file_scan.bytes_read for file_scan in self.scans)

    def to_table(self) -> pa.Table:
        """Return the whole result."""
        return pa.concat_tables([empty_table(self.schema), *self.batches()])

    def to_arrow(self) -> pa.Table:
        """Return the whole result, as `to_table` does."""
        return self.to_table()

    def explain(self) -> VortexFilesReport:
        """Report how much of the files would be read."""
        rows = [len(file_scan.file) for file_scan in self.scans]
        columns = {_name(file_scan, part) for file_scan in self.scans for part in file_scan.parts.values()}
        with_ranges = [(scanned, scanned.statistics.count) for scanned in self.scans if scanned.statistics is not None]
        runs = [file_scan.row_ranges for file_scan in self.scans]
        return VortexFilesReport(
            len(rows),
            sum(rows),
            sum(Path(file_scan.path).stat().st_size for file_scan in self.scans),
            tuple(sorted(columns)),
            any(file_scan.filters_in_file for file_scan in self.scans),
            tuple(sorted({file_scan.layout for file_scan in self.scans if file_scan.layout is not None})),
            sum(
                count if run is None else sum(stop - start for start, stop in run)
                for count, run in zip(rows, runs, strict=True)
            ),
            sum(count for _, count in with_ranges),
            sum(len(scanned.range_numbers) for scanned, _ in with_ranges),
        )

    def _in_schema(self, file_scan: VortexScan, table: pa.Table) -> pa.Table:
        if table.schema.equals(self.schema):
            return table
        try:
            return table.cast(self.schema)
        except (pa.ArrowException, ValueError) as error:
            raise VariantFileError(
                f"the columns differ from those of {self.scans[0].path}: {error}",
                file=str(file_scan.path),
                reason="files-differ",
            ) from None


def _name(file_scan: VortexScan, part: Part | str) -> str:
    return part if isinstance(part, str) else ".".join((str(file_scan.column), *part.levels))


def scan_files(
    path: str | os.PathLike[str],
    columns: Mapping[str, Any] | Sequence[str],
    where: Any = None,
    *,
    column: str | None = None,
    pushdown: bool = True,
    cast: bool = True,
    zone: str = "UTC",
    threads: int | None = None,
) -> VortexFilesScan:
    """Plan a query by path over the Vortex files of a path, directory or glob; see `Table.scan`.

    `pushdown`: whether rows may be skipped before they are read.
    Raises `VariantFileError` if no file is found, and as `scan`.
    """
    return VortexFilesScan(
        tuple(
            scan(file, columns, where, column=column, pushdown=pushdown, cast=cast, zone=zone, threads=threads)
            for file in some_vortex_files(path)
        )
    )
