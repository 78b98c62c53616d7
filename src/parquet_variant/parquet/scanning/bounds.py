"""The least and the greatest values of columns, from the footer where it proves them.

Owns which statistics are values that are there: those of whole numbers, dates and timestamps that our own writer made,
of columns beside which no residual holds a value. Two rows then stand for a row group; the others are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from parquet_variant.parquet.format.files import ParquetSource, open_file
from parquet_variant.parquet.format.statistics import writer_of
from parquet_variant.parquet.scanning.scan import Scan, ScanTask
from parquet_variant.parquet.scanning.scan_plan import plan_file, proven_bounds
from parquet_variant.parquet.scanning.scan_report import ScanReport

_OUR_WRITER = "parquet-variant"
# Of each column, two values, which may be null; or, for a row group, that it has to be read.
_Bounds = list[tuple[pa.Scalar, pa.Scalar]] | None


@dataclass(frozen=True)
class BoundsScan:
    """A scan without a filter of whose columns only the least and the greatest values count, null left out."""

    scan: Scan

    @property
    def schema(self) -> pa.Schema:
        """Of every batch."""
        return self.scan.schema

    def batches(self) -> Iterator[pa.Table]:
        """Rows that have the same least and greatest values as all rows."""
        proven = [(source, self._proven(source)) for source in self.scan.sources]
        if all(bounds is None for _, groups in proven for bounds in groups):
            yield from self.scan.batches()
            return
        for source, groups in proven:
            known = [bounds for bounds in groups if bounds is not None]
            for bounds in known:
                columns = [pa.array(pair, kind) for pair, kind in zip(bounds, self.schema.types, strict=True)]
                yield pa.table(columns, schema=self.schema)
            if len(known) < len(groups):
                left = tuple(number for number, bounds in enumerate(groups) if bounds is None)
                yield from self.scan.read(ScanTask(source, left, 0, 0))

    def explain(self) -> ScanReport:
        """What would be read: nothing of the row groups whose values the footer tells."""
        report = ScanReport()
        outputs = range(len(self.scan.selection))
        for source in self.scan.sources:
            proven = self._proven(source)
            with open_file(source) as file:
                plan = plan_file(file, self.scan.selection, None, self.scan.column)
                plan = replace(plan, groups=[group for group in plan.groups if proven[group.number] is None])
                report.add(file, plan, plan.chunk_bytes(file, plan.groups, outputs), outputs)
        return report

    def _proven(self, source: ParquetSource) -> list[_Bounds]:
        with open_file(source) as file:
            # Bounds of other writers may be any number that is below, or above, all values.
            if not writer_of(file.metadata).startswith(_OUR_WRITER):
                return [None] * file.metadata.num_row_groups
            return proven_bounds(file, self.scan.selection, self.scan.column)
