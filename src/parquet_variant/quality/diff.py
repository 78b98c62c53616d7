"""`Table.diff`: the differences between two data sets, by path.

Owns the operation and its result. Leaves opening to `sources`, figures to `summaries`, the rules to `compare`,
and example rows to `examples`.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from parquet_variant.quality.compare import Thresholds, compare
from parquet_variant.quality.findings import Example, Finding, with_examples, without_values
from parquet_variant.quality.sources import DataSet, data_of
from parquet_variant.quality.summaries import Summary, summarize
from parquet_variant.tables.opening import open as open_any
from parquet_variant.tables.table.table import Table
from parquet_variant.types.path import VariantPath


@dataclass(frozen=True, slots=True, repr=False)
class DataDiff:
    """The differences between two data sets.

    Parameters
    ----------
    before, after
        The figures of both data sets by path, and how they are known.
    findings
        The differences, those that break queries first.
    thresholds
        What counted as a difference.
    """

    before: Summary
    after: Summary
    findings: tuple[Finding, ...]
    thresholds: Thresholds

    @property
    def is_equal(self) -> bool:
        """Whether there is no difference."""
        return not self.findings

    def to_dict(self) -> dict[str, Any]:
        """Return the differences as plain values."""
        return {
            "equal": self.is_equal,
            "before": side_of(self.before),
            "after": side_of(self.after),
            "factor": self.thresholds.factor,
            "min_change": self.thresholds.min_change,
            "min_share": self.thresholds.min_share,
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def __repr__(self) -> str:
        return f"<DataDiff {self.before.data.name} -> {self.after.data.name}: {self._verdict()}>"

    def _verdict(self) -> str:
        if not self.findings:
            return "no differences"
        return f"{len(self.findings):,} difference{'' if len(self.findings) == 1 else 's'}"

    def __str__(self) -> str:
        lines = [f"{mark} {side_text(side)}" for mark, side in (("-", self.before), ("+", self.after))]
        lines += [self._verdict()]
        for finding in self.findings:
            lines += ["", str(finding), *map(_example_text, finding.examples)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def side_of(summary: Summary) -> dict[str, Any]:
    """Return what was read of a data set, as plain values."""
    return {
        "name": summary.data.name,
        "kind": summary.data.kind,
        "column": summary.data.column,
        "rows": summary.rows,
        "null_rows": summary.null_rows,
        "evidence": summary.rows_evidence,
        "closed": summary.closed,
        "paths": len(summary.paths),
        "sampled_rows": summary.sampled_rows,
        "bytes": summary.data.size,
        "bytes_read": summary.bytes_read,
    }


def side_text(summary: Summary) -> str:
    """Return what was read of a data set, in words."""
    if summary.rows_evidence == "values":
        read = "all values were read"
    elif summary.rows_evidence == "footers":
        read = f"footers, and a sample of {summary.sampled_rows:,} rows"
    else:
        read = f"a sample of {summary.sampled_rows:,} rows"
    about = "about " if summary.rows_evidence == "sample" else ""
    size = f"{summary.bytes_read:,} of {summary.data.size:,} bytes"
    return f"{summary.data.name}: {about}{summary.rows:,} rows, {len(summary.paths):,} paths; {read} ({size})"


def _example_text(example: Example) -> str:
    mark = "-" if example.side == "before" else "+"
    place = f"row {example.row:,}" + (f" of {example.file}" if example.file is not None else "")
    return f"    {mark} {place}" + (f": {example.value}" if example.value is not None else "")


def diff(
    table: Table,
    other: Any,
    *,
    factor: float = 3.0,
    min_change: float = 0.05,
    min_share: float = 0.0,
    ignore: Sequence[str | VariantPath] = (),
    values: bool = True,
    sample_bytes: int | None = None,
    threads: int | None = None,
) -> DataDiff:
    """Compare the Variants of two tables; see `Table.diff`."""
    paths = ignore if isinstance(ignore, Iterable) and not isinstance(ignore, str) else [ignore]
    thresholds = Thresholds(factor, min_change, min_share, tuple(map(VariantPath.parse, paths)))
    before, after = data_of(table), data_of(open_any(other, column=table.options.column))
    old = summarize(before, sample_bytes=sample_bytes, threads=threads)
    if _same_files(before, after):
        new = replace(old, data=after)
    else:
        new = summarize(after, sample_bytes=sample_bytes, threads=threads)
    shown = with_examples(compare(old, new, thresholds), old, new)
    return DataDiff(old, new, tuple(shown if values else map(without_values, shown)), thresholds)


def _same_files(first: DataSet, second: DataSet) -> bool:
    """Return whether two data sets are the same files of a table, as its log shows."""
    places = [[(file.source.path, file.source.size) for file in data.files] for data in (first, second)]
    has_deletes = first.has_deletes or second.has_deletes
    return first.kind == second.kind and places[0] == places[1] and bool(places[0]) and not has_deletes
