"""`diff`: the differences between two data sets, by path.

Owns the public operation and its result. Leaves opening to `sources`, figures to `summaries`, the rules to `compare`,
and example rows to `examples`.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

from parquet_variant.errors import VariantError
from parquet_variant.quality.compare import Thresholds, compare
from parquet_variant.quality.findings import Example, Finding, with_examples, without_values
from parquet_variant.quality.sources import DataSet, open_data
from parquet_variant.quality.summaries import Summary, summarize
from parquet_variant.tables.table.base import TextKeywords
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
    before: Any,
    after: Any = None,
    *,
    column: str | None = None,
    versions: tuple[int | None, int | None] = (None, None),
    timestamps: tuple[Any, Any] = (None, None),
    partitions: tuple[Mapping[str, str] | None, Mapping[str, str] | None] = (None, None),
    catalog: Any = None,
    factor: float = 3.0,
    min_change: float = 0.05,
    min_share: float = 0.0,
    ignore: Sequence[str | VariantPath] = (),
    values: bool = True,
    sample_bytes: int | None = None,
    threads: int | None = None,
    **text: Unpack[TextKeywords],
) -> DataDiff:
    """Compare two data sets by path: paths that appeared or vanished, types, nulls, ranges, distinct values, lengths.

    Small data is read as a whole. Of larger shredded files and tables, footers and residual columns prove most figures,
    and a bounded sample has the others; of other large files, a sample is read. Each finding says which.

    Parameters
    ----------
    before, after
        JSON, Parquet or Vortex files, directories, globs or URIs; Delta or Iceberg tables or their snapshots;
        `VariantArray`, data frames or Arrow tables. In any combination. By default `after` is the table `before`, at
        another version or in another partition.
    column
        The Variant column, if there are several.
    versions
        The versions of Delta tables, or the snapshot ids of Iceberg tables, of `before` and `after`.
    timestamps
        The times whose version is read, instead of `versions`.
    partitions
        Values of partition columns: only files of this partition are compared, such as
        ``({"day": "2026-01-30"}, {"day": "2026-01-31"})``.
    catalog
        The catalog of Iceberg tables named ``namespace.table``; see `pv.open`.
    factor
        Factor by which a range, the number of distinct values, or the mean length of strings or arrays must differ. Of
        n values, a factor of ``factor * (1 + 10 / n)`` is needed.
    min_change
        Difference of a share (of nulls, of missing values, of a type) that is reported, from 0 to 1, if it is also
        larger than chance explains.
    min_share
        Paths and types on one side only are not reported if their share is smaller; by default all are.
    ignore
        Paths that are not compared, with the paths below them.
    values
        If false, the result has no values of the data: example rows have numbers only, and ranges no bounds.
    sample_bytes
        Bytes to read of each data set that is larger, without its footers. By default, data up to 8 MiB (64 MiB of
        JSON) is read as a whole, else 4 MiB or 0.8 % of the bytes, at most 8 MiB.
    threads
        Number of threads that parse JSON (default: one per CPU).
    **text
        Options for reading JSON, as for `profile`: ``input_format``, ``root``, ``json_column``, ``on_error``, …

    Returns
    -------
    DataDiff
        The findings, with figures of both sides and example rows.

    Raises
    ------
    VariantFileError
        For a source that does not exist, has no rows, or has no such partition or version.
    JsonError
        For an invalid line if ``on_error`` is ``"fail"``.
    VariantError
        For an invalid option.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> old = pv.parse_json(['{"id": 1, "tags": ["a"]}'] * 100)
    >>> new = pv.parse_json(['{"id": "x1", "tags": {"a": true}, "note": null}'] * 100)
    >>> for finding in pv.diff(old, new).findings:
    ...     print(finding)
    array-to-object  $.tags: array -> object (100 values), with 2 paths below it [values]
    type  $.id: integer -> string (100 values) [values]
    appeared  $.note: is in 100% of its parents (100 values), as null [values]
    """
    if after is None:
        places = (*_pair("versions", versions), *_pair("timestamps", timestamps), *_pair("partitions", partitions))
        if all(place is None for place in places):
            raise VariantError(
                "there is one data set: give a second one, or versions=, timestamps= or partitions= of a table",
                reason="bad-option",
            )
        after = before
    paths = ignore if isinstance(ignore, Iterable) and not isinstance(ignore, str) else [ignore]
    ignored = tuple(map(VariantPath.parse, paths))
    thresholds = Thresholds(factor, min_change, min_share, ignored)
    sides: list[Summary] = []
    for number, source in enumerate((before, after)):
        data = open_data(
            source,
            column=column,
            version=_pair("versions", versions)[number],
            timestamp=_pair("timestamps", timestamps)[number],
            partition=_pair("partitions", partitions)[number],
            catalog=catalog,
            **text,
        )
        if sides and _same_files(sides[0].data, data):
            sides.append(replace(sides[0], data=data))
        else:
            sides.append(summarize(data, sample_bytes=sample_bytes, threads=threads))
    findings = compare(sides[0], sides[1], thresholds)
    shown = with_examples(findings, sides[0], sides[1])
    shown = shown if values else list(map(without_values, shown))
    return DataDiff(sides[0], sides[1], tuple(shown), thresholds)


def _same_files(first: DataSet, second: DataSet) -> bool:
    """Return whether two data sets are the same files of a table, as its log shows."""
    places = [[(source.path, source.size) for source in data.files] for data in (first, second)]
    has_deletes = first.has_deletes or second.has_deletes
    return first.kind == second.kind and places[0] == places[1] and bool(places[0]) and not has_deletes


def _pair(name: str, pair: Any) -> Any:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise VariantError(f"{name} is {pair!r}: it must be a pair, one for each side", reason="bad-option")
    return pair
