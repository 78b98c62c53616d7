"""The report of a scan of a table: files pruned by manifests, and what is read in the others."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from parquet_variant.parquet.report_text import Report
from parquet_variant.parquet.scanning.scan_report import ScanReport


@dataclass(frozen=True, slots=True)
class IcebergScanReport(Report):
    """What a scan of a table reads.

    Parameters
    ----------
    snapshot_id
        The snapshot.
    files_total, files_by_partition, files_by_statistics
        Data files of the snapshot, and how many of them partition values and metrics of manifests ruled out.
    inside
        The files that are left: row groups, columns and bytes.
    """

    snapshot_id: int | None
    files_total: int
    files_by_partition: int
    files_by_statistics: int
    inside: ScanReport

    @property
    def files_pruned(self) -> int:
        """Number of files that are not opened."""
        return self.files_by_partition + self.files_by_statistics

    def to_dict(self) -> dict[str, object]:
        """Return the report for machines."""
        return asdict(self) | {"files_pruned": self.files_pruned}

    def __str__(self) -> str:
        opened = self.files_total - self.files_pruned
        return (
            f"snapshot    {self.snapshot_id}\n"
            f"files       {opened:,} of {self.files_total:,} opened; pruned by partition values "
            f"{self.files_by_partition:,}, by metrics of manifests {self.files_by_statistics:,}\n"
            f"in them:\n{self.inside}"
        )


def added_reports(left: ScanReport, right: ScanReport) -> ScanReport:
    """Return the report of two files, or groups of files, together."""
    total = ScanReport()
    for name in ScanReport.__dataclass_fields__:
        one, other = getattr(left, name), getattr(right, name)
        if isinstance(one, dict):
            keys = [*one, *(key for key in other if key not in one)]
            setattr(total, name, {key: one.get(key, 0) + other.get(key, 0) for key in keys})
        else:
            setattr(total, name, max(one, other) if name == "columns_total" else one + other)
    return total
