"""The report of a scan of a table: files that were pruned, and what is read of the other files.

Owns the report over many files. Leaves the report of one file to `files.parquet.scanning.scan_report`, and the version
of the table to the formats.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import ClassVar

from parquet_variant.files.parquet.report_text import Report
from parquet_variant.files.parquet.scanning.scan_report import ScanReport


@dataclass(frozen=True)
class TableScanReport(Report):
    """The files, row groups, columns and bytes of a table that a scan reads.

    Parameters
    ----------
    files_total, files_by_partition, files_by_statistics
        Number of data files of the table, and of the files that partition values and statistics of the table rule out
        before any file is opened.
    inside
        Row groups, columns and bytes of the other files.
    """

    files_total: int
    files_by_partition: int
    files_by_statistics: int
    inside: ScanReport

    # The format's name for its statistics of files.
    STATISTICS: ClassVar[str] = "statistics"

    @property
    def files_pruned(self) -> int:
        """The number of files that are not opened."""
        return self.files_by_partition + self.files_by_statistics

    def to_dict(self) -> dict[str, object]:
        """Return the report for programs."""
        return asdict(self) | {"files_pruned": self.files_pruned}

    def __str__(self) -> str:
        return (
            f"files       {self.files_total - self.files_pruned:,} of {self.files_total:,} opened; pruned by partition "
            f"values {self.files_by_partition:,}, by {self.STATISTICS} {self.files_by_statistics:,}\n"
            f"in them:\n{self.inside}"
        )


def add_reports(left: ScanReport, right: ScanReport) -> ScanReport:
    """Return the combined report of two files or groups of files."""
    total = ScanReport()
    for name in ScanReport.__dataclass_fields__:
        a, b = getattr(left, name), getattr(right, name)
        if isinstance(a, dict):
            setattr(total, name, {key: a.get(key, 0) + b.get(key, 0) for key in [*a, *(k for k in b if k not in a)]})
        else:
            setattr(total, name, max(a, b) if name == "columns_total" else a + b)
    return total
