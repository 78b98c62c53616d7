"""What a scan of a table reads, of how much: the answer to "explain".

Owns the report over a table's files. Leaves counting inside of one file to `parquet.scan_report`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from parquet_variant.parquet.report_text import Report
from parquet_variant.parquet.scanning.scan_report import ScanReport


@dataclass(frozen=True, slots=True)
class DeltaScanReport(Report):
    """What a scan of a table reads, of how much.

    Parameters
    ----------
    version
        The table's version.
    files_total, files_by_partition, files_by_statistics
        Files of the version, and how many of them partition values and statistics of the log ruled out, before any
        file was opened.
    inside
        The files that are left: row groups, columns and bytes.
    """

    version: int
    files_total: int
    files_by_partition: int
    files_by_statistics: int
    inside: ScanReport

    @property
    def files_pruned(self) -> int:
        """Files that are not opened."""
        return self.files_by_partition + self.files_by_statistics

    def to_dict(self) -> dict[str, object]:
        """The report for machines."""
        return asdict(self) | {"files_pruned": self.files_pruned}

    def __str__(self) -> str:
        return (
            f"version     {self.version}\n"
            f"files       {self.files_total - self.files_pruned:,} of {self.files_total:,} opened; pruned by partition "
            f"values {self.files_by_partition:,}, by statistics of the log {self.files_by_statistics:,}\n"
            f"in them:\n{self.inside}"
        )


def add_reports(left: ScanReport, right: ScanReport) -> ScanReport:
    """The report of two files, or groups of files, together."""
    total = ScanReport()
    for name in ScanReport.__dataclass_fields__:
        a, b = getattr(left, name), getattr(right, name)
        if isinstance(a, dict):
            setattr(total, name, {key: a.get(key, 0) + b.get(key, 0) for key in [*a, *(k for k in b if k not in a)]})
        else:
            setattr(total, name, max(a, b) if name == "columns_total" else a + b)
    return total
