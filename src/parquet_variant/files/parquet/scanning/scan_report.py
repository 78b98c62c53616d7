"""The report of a scan: what it reads and skips.

Owns counting. Leaves the decisions to `scan_plan`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from parquet_variant.files.parquet.format.files import OpenFile
from parquet_variant.files.parquet.report_text import Report, counted
from parquet_variant.files.parquet.scanning.scan_plan import FilePlan


@dataclass(slots=True)
class ScanReport(Report):
    """Files, row groups, rows, columns and bytes that a scan reads, and their totals.

    Parameters
    ----------
    files_read, files_total
        Files with a row group that is read, and all files.
    row_groups_read, row_groups_total
        Row groups that may contain a matching row, and all row groups.
    rows_read, rows_total
        Rows of these row groups.
    bytes_read, bytes_total
        Compressed bytes of the column chunks that are read, and of all column chunks.
    columns
        Number of row groups in which each leaf column is read.
    columns_total
        Number of leaf columns of the widest file.
    residuals
        Number of row groups in which each residual column that may hold values is read.
    """

    files_read: int = 0
    files_total: int = 0
    row_groups_read: int = 0
    row_groups_total: int = 0
    rows_read: int = 0
    rows_total: int = 0
    bytes_read: int = 0
    bytes_total: int = 0
    columns: dict[str, int] = field(default_factory=dict)
    columns_total: int = 0
    residuals: dict[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        files = f"{self.files_read:,} of {self.files_total:,} files"
        return f"<ScanReport {files}, {self.rows_read:,} of {self.rows_total:,} rows, {self.bytes_read:,} bytes>"

    def add(self, file: OpenFile, plan: FilePlan, bytes_read: int, outputs: Iterable[int]) -> None:
        """Add a file to the counts."""
        metadata = file.metadata
        outputs = list(outputs)
        self.files_total += 1
        self.files_read += bool(plan.groups)
        self.row_groups_total += metadata.num_row_groups
        self.row_groups_read += len(plan.groups)
        self.rows_total += file.rows
        self.columns_total = max(self.columns_total, metadata.num_columns)
        self.bytes_read += bytes_read
        names = {leaf.leaf: leaf.dotted for leaf in file.schema.leaves()}
        for leaf in plan.residuals:
            self.residuals.setdefault(names[leaf], 0)
        self.bytes_total += file.facts.size()
        self.rows_read += file.facts.rows(planned.number for planned in plan.groups)
        for planned in plan.groups:
            for leaf in planned.leaves_of(outputs):
                self.columns[names[leaf]] = self.columns.get(names[leaf], 0) + 1
                if leaf in plan.residuals:
                    self.residuals[names[leaf]] += 1

    def __str__(self) -> str:
        share = f" ({self.bytes_read / self.bytes_total:.1%})" if self.bytes_total else ""
        lines = [
            f"files       {self.files_read:,} of {self.files_total:,}",
            f"row groups  {self.row_groups_read:,} of {self.row_groups_total:,}",
            f"rows        {self.rows_read:,} of {self.rows_total:,}",
            f"bytes       {self.bytes_read:,} of {self.bytes_total:,}{share}",
            f"columns     {len(self.columns):,} of {self.columns_total:,}",
            *(f"  {name} in {counted(count, 'row group')}" for name, count in sorted(self.columns.items())),
        ]
        for name, count in sorted(self.residuals.items()):
            need = f"needed in {counted(count, 'row group')}" if count else "ruled out"
            lines.append(f"residual    {name}: {need}")
        return "\n".join(lines)
