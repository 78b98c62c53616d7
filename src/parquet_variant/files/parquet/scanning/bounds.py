"""Minimum and maximum of columns, from the footer of a file where its statistics are exact.

Owns the rule for exact statistics: those of integers, dates and timestamps that this library wrote, where no residual
holds a value of the path. Such a row group is answered by two rows; other row groups are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from parquet_variant.files.parquet.format.files import ParquetSource, open_file
from parquet_variant.files.parquet.format.statistics import OWN_WRITER, writer_of
from parquet_variant.files.parquet.scanning.scan import Scan
from parquet_variant.files.parquet.scanning.scan_plan import ScanTask, plan_file, proven_bounds
from parquet_variant.files.parquet.scanning.scan_report import ScanReport

# Minimum and maximum of each column, which may be null; None if the row group must be read.
_ColumnBounds = list[tuple[pa.Scalar, pa.Scalar]] | None


@dataclass(frozen=True)
class BoundsScan:
    """A scan without a filter that only has to preserve the minimum and maximum of its columns, nulls ignored."""

    scan: Scan

    @property
    def schema(self) -> pa.Schema:
        """The schema of every batch."""
        return self.scan.schema

    def batches(self) -> Iterator[pa.Table]:
        """Yield rows with the same minimum and maximum of every column as all rows."""
        proven = [(source, self._proven_bounds(source)) for source in self.scan.sources]
        if all(bounds is None for _, groups in proven for bounds in groups):
            yield from self.scan.batches()
            return
        for source, groups in proven:
            exact = [bounds for bounds in groups if bounds is not None]
            for bounds in exact:
                columns = [pa.array(pair, kind) for pair, kind in zip(bounds, self.schema.types, strict=True)]
                yield pa.table(columns, schema=self.schema)
            if len(exact) < len(groups):
                unknown = tuple(number for number, bounds in enumerate(groups) if bounds is None)
                yield from self.scan.read(ScanTask(source, unknown, 0, 0))

    def explain(self) -> ScanReport:
        """Return what would be read: nothing of row groups whose statistics are exact."""
        report = ScanReport()
        outputs = range(len(self.scan.selection))
        for source in self.scan.sources:
            proven = self._proven_bounds(source)
            with open_file(source) as file:
                plan = plan_file(file, self.scan.selection, None, self.scan.column)
                plan = replace(plan, groups=[group for group in plan.groups if proven[group.number] is None])
                report.add(file, plan, plan.chunk_bytes(file, plan.groups, outputs), outputs)
        return report

    def _proven_bounds(self, source: ParquetSource) -> list[_ColumnBounds]:
        with open_file(source) as file:
            # Other writers may store bounds that are not values of the column.
            if not writer_of(file.metadata).startswith(OWN_WRITER):
                return [None] * len(file.facts.groups)
            return proven_bounds(file, self.scan.selection, self.scan.column)
