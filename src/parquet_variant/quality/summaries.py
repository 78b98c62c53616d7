"""`summarize`: the figures of every path of a data set, and how each is known.

Owns `Summary`, the choice between reading all values, footers with residuals, and a sample, and which
paths the footers of all files describe completely. Leaves figures of values to `value_figures`, and one footer to
`footers`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import reduce
from itertools import starmap
from typing import Any, TypeAlias

import pyarrow as pa

from parquet_variant.errors import VariantFileError, check_count
from parquet_variant.inference.statistics import LeafStatistics
from parquet_variant.io.parallel import thread_count
from parquet_variant.quality import footers
from parquet_variant.quality.sources import DataSet, RowBatch
from parquet_variant.quality.value_figures import (
    RANGE_KINDS,
    Evidence,
    PathSummary,
    Range,
    ValueFigures,
    arrow_type_name,
)
from parquet_variant.support.records import Record
from parquet_variant.types.path import WILDCARD, VariantPath, depth_first, outer_paths

# Footers of more files are not read: their number is then estimated from these.
_MAX_FILES = 4096


_Paths: TypeAlias = frozenset[VariantPath]


class FooterFigures(Record, frozen=False):
    """The figures that footers and residual columns prove, for all files together."""

    figures: dict[VariantPath, PathSummary] = field(default_factory=dict)  # Incomplete unless `is_proved`.
    rows: int = 0
    null_rows: int | None = 0  # None if unknown.
    files: list[footers.VariantFacts] = field(default_factory=list)
    # Bytes that were read.
    footer_bytes: int = 0
    residual_bytes: int = 0
    is_complete: bool = True  # Whether the footers of all files were read, and all have a known layout.
    # Of each file the shredded paths, those with incomplete figures, and those below which other paths are unknown.
    coverages: set[tuple[_Paths, _Paths, _Paths]] = field(default_factory=set)
    # The paths whose ``value`` columns were read, and their values.
    read_paths: set[VariantPath] = field(default_factory=set)
    residuals: list[footers.PathValues] = field(default_factory=list)

    def is_proved(self, path: VariantPath) -> bool:
        """Return whether the figures of a path are complete; of a path without figures, that it does not exist."""

        def proves(shredded: _Paths, unproved: _Paths, unknown_below: _Paths) -> bool:
            if path in shredded:
                return path not in unproved
            outer = next((outer for outer in reversed(outer_paths(path)) if outer in shredded), None)
            return outer is not None and outer not in unknown_below

        return self.is_complete and all(starmap(proves, self.coverages))

    @property
    def is_closed(self) -> bool:
        """Whether every path that exists has figures."""
        return self.is_complete and not any(unproved or unknown for _, unproved, unknown in self.coverages)


def footer_figures(data: DataSet, residual_limit: int) -> FooterFigures:
    """Return what the footers of a data set prove.

    `residual_limit`: number of bytes of residual columns to read at most; the smallest are read.
    """
    result = FooterFigures()
    files = footers.evenly(data.files, _MAX_FILES)
    result.is_complete = len(files) == len(data.files)
    sizes: Counter[VariantPath] = Counter()
    needed = 0  # Values need the column with the names of fields.
    for file in files:
        with file.open() as (opened, column):
            result.footer_bytes += opened.metadata.serialized_size
            facts = None if column is None else footers.variant_facts(opened, column)
            if facts is not None:
                result.files.append(facts)
                if open_paths := facts.open_paths():
                    sizes.update(open_paths)
                    needed += facts.columns.size(node for node in facts.column.node.children if node.name == "metadata")
            elif column is not None:
                result.is_complete = False
                continue
            rows = opened.facts.rows()
            result.rows += rows
            result.null_rows = footers.total([result.null_rows, rows if facts is None else facts.null_rows])
    for path, size in sorted(sizes.items(), key=lambda entry: entry[1]):
        if needed + size > residual_limit:
            break
        needed += size
        result.read_paths.add(path)
    result.residual_bytes = needed if result.read_paths else 0
    for facts in result.files:
        _add_file(result, facts)
    return result


def _add_file(result: FooterFigures, facts: footers.VariantFacts) -> None:
    unproved: set[VariantPath] = set()
    unknown_below: set[VariantPath] = set()
    for path, of_path in facts.paths.items():
        # The figures of the typed values and of the nulls; other values in a ``value`` column are added below.
        figures, typed, name = PathSummary(), of_path.group.typed, of_path.type_name
        is_complete = of_path.elements is not None
        if of_path.stored is None or of_path.typed is None or (name is None and of_path.typed):
            is_complete = False
        else:
            types: Counter[str] = Counter({name: of_path.typed} if name is not None else {})
            if of_path.has_residual and not of_path.open_groups:
                types["null"] += of_path.stored
            figures.types = +types
            figures.rows = None if path.has_wildcard else figures.count
            figures.elements = of_path.elements or 0
            if typed is not None and typed.leaf is not None:
                figures.ranges = _ranges(facts.columns.statistics(typed))
                figures.string_bytes = of_path.text_bytes if name in ("string", "binary") and of_path.typed else 0
        if not is_complete or (of_path.open_groups and path not in result.read_paths):
            unknown_below.add(path)
            # If every value is a shredded object, the ``value`` column has only their other fields.
            if not is_complete or name != "object" or of_path.typed != facts.places(path):
                unproved.add(path)
        result.figures.setdefault(path, PathSummary()).add(figures)
    for residual in footers.read_residuals(facts, result.read_paths):
        result.residuals.append(residual)
        parts = ValueFigures.of_array(residual.values).by_path(residual.path.segments)
        shredded, objects = facts.paths[residual.path], 0
        if shredded.type_name == "object" and residual.path in parts:
            # An object next to a shredded object has its other fields, and is not another value.
            objects = parts[residual.path].types.pop("object", 0)
        for path, part in parts.items():
            if residual.path.has_wildcard or path.has_wildcard:
                part.rows = None
            elif path == residual.path:
                part.rows = part.count
            result.figures.setdefault(path, PathSummary()).add(part)
        if shredded.typed is not None and objects > shredded.typed:  # the values contradict the typed columns
            unproved.add(residual.path)
    result.coverages.add((frozenset(facts.paths), frozenset(unproved), frozenset(unknown_below)))


def _ranges(bounds: LeafStatistics) -> dict[str, Range]:
    low, high = bounds.lower, bounds.upper
    if low is None or high is None or (kind := RANGE_KINDS.get(arrow_type_name(low.type) or "")) is None:
        return {}
    if pa.types.is_timestamp(low.type):
        micros = pa.timestamp("us", low.type.tz)
        low, high = low.cast(micros, safe=False), high.cast(micros, safe=False)
    return {kind: (low.as_py(), high.as_py())}


# Sizes up to which all values are read: text is parsed several times faster than it is read from a network.
_FULL_TEXT = 64 << 20
_FULL = 8 << 20
# Limits of a sample: its share of the bytes, and its smallest and largest size.
_SHARE = 0.008
_SMALLEST, _LARGEST = 4 << 20, 8 << 20
# The share of the limit that may be used for residual columns, which prove more than a sample.
_RESIDUALS = 0.7
# The share of a sample that may have all rows.
_NOT_ALL = 1 - 1e-9


class Summary(Record, eq=False):
    """The figures of a data set."""

    data: DataSet
    # Number of rows and of SQL NULL rows; estimates if the evidence is ``"sample"``.
    rows: int
    null_rows: int
    rows_evidence: Evidence
    paths: Mapping[VariantPath, PathSummary]  # Parents before children.
    closed: bool  # Whether every path that exists is known, so that a missing path is proved to be missing.
    sampled_rows: int  # 0 without a sample.
    bytes_read: int
    sample: footers.RowSample | None = field(default=None, repr=False)
    proof: FooterFigures | None = field(default=None, repr=False)  # What footers prove.

    def __repr__(self) -> str:
        return f"<Summary of {self.data.name}: {self.rows:,} rows, {len(self.paths):,} paths, {self.rows_evidence}>"

    def to_dict(self) -> dict[str, Any]:
        """Return what was read of the data set, as plain values."""
        plain = {name: getattr(self, name) for name in ("rows", "null_rows", "closed", "sampled_rows", "bytes_read")}
        plain |= {name: getattr(self.data, name) for name in ("name", "kind", "column")}
        return plain | {"evidence": self.rows_evidence, "paths": len(self.paths), "bytes": self.data.size}

    def is_proved_missing(self, path: VariantPath) -> bool:
        """Return whether it is certain that no row has a value at a path that `paths` does not have."""
        return self.closed or (self.proof is not None and self.proof.is_proved(path))

    def example_batches(self, limit: int = 200_000) -> Iterator[RowBatch]:
        """Yield rows in which to search examples: the sample if there is one, else the first rows of the data."""
        if self.sample is not None:
            yield from self.sample.batches
            return
        for batch in self.data.batches():
            yield batch
            limit -= len(batch.values)
            if limit <= 0:
                return


def summarize(data: DataSet, *, sample_bytes: int | None = None, threads: int | None = None) -> Summary:
    """Return the figures of every path of a data set; `sample_bytes` and `threads` as for `Table.diff`.

    Raises `VariantFileError` for a data set without rows, and as its reader does.

    >>> import parquet_variant as pv
    >>> from parquet_variant.quality.sources import data_of
    >>> summary = summarize(data_of(pv.open(pv.parse_json(['{"a": 1}', '{"a": "x"}', '{}']))))
    >>> a = summary.paths[VariantPath(("a",))]
    >>> dict(a.types), round(a.share, 2), a.evidence
    ({'integer': 1, 'string': 1}, 0.67, 'values')
    """
    if sample_bytes is not None:
        check_count("sample_bytes", sample_bytes, 1)
    if data.kind == "json":
        summary = _of_text(data, _FULL_TEXT if sample_bytes is None else sample_bytes, thread_count(threads))
    elif data.kind == "memory" or data.size <= (_FULL if sample_bytes is None else sample_bytes):
        summary = _of_figures(data, _figures_of(data.batches()), 1.0, data.size)
    else:
        largest = min(max(_SMALLEST, round(data.size * _SHARE)), _LARGEST)
        limit = largest if sample_bytes is None else sample_bytes
        summary = _of_footers(data, limit) if data.files else _of_first_rows(data, limit)
    if not summary.rows:
        raise VariantFileError(f"{data.name} has no rows: name data with at least one row", reason="no-rows")
    return summary


def _of_text(data: DataSet, limit: int, threads: int) -> Summary:
    # Compressed text is about ten times as large as its files.
    share = min(1.0, limit / max(data.text_bytes, 1))
    figures, bytes_read = ValueFigures(), 0
    for batch in data.text_results(data.text, ValueFigures.of_tape, threads, share):
        figures = reduce(ValueFigures.merge, batch.results, figures)
        bytes_read += batch.counts.text_bytes
    return _of_figures(data, figures, share, bytes_read)


def _figures_of(batches: Iterable[RowBatch]) -> ValueFigures:
    return reduce(ValueFigures.merge, (ValueFigures.of_array(batch.values) for batch in batches), ValueFigures())


def _of_first_rows(data: DataSet, size: int) -> Summary:
    """Return the figures of the first rows, up to a number of bytes in memory."""
    sample = footers.RowSample()
    for batch in data.batches():
        sample.batches.append(batch)
        sample.bytes_read += batch.values.storage.nbytes
        if sample.bytes_read >= size or sample.rows >= footers.SAMPLE_ROWS:
            # The last rows may be missing even if the number of rows is unknown.
            share = min(sample.rows / max(data.rows or sample.rows, 1), _NOT_ALL)
            break
    else:
        share = 1.0
    return _of_figures(data, _figures_of(sample.batches), share, sample.bytes_read, sample)


def _of_figures(
    data: DataSet, figures: ValueFigures, share: float, bytes_read: int, sample: footers.RowSample | None = None
) -> Summary:
    evidence: Evidence = "values" if share >= 1 else "sample"
    profile, paths = figures.profile, figures.by_path(evidence=evidence)
    closed, sampled = share >= 1 and not profile.overflow_values, 0 if share >= 1 else profile.rows
    rows, nulls = (round(count / share) for count in (profile.rows, profile.null_rows))
    return Summary(
        data, rows, nulls, evidence, paths, closed=closed, sampled_rows=sampled, bytes_read=bytes_read, sample=sample
    )


def places_of(path: VariantPath, figures: Mapping[VariantPath, PathSummary], rows: int) -> int:
    """Return the number of places for a value at a path: the values of the type above it, or rows."""
    if not path.segments:
        return rows
    parent = figures.get(path.parent, PathSummary())
    return parent.elements if path.segments[-1] is WILDCARD else parent.types["object"]


def _of_footers(data: DataSet, limit: int) -> Summary:
    proof = footer_figures(data, round(limit * _RESIDUALS))
    sample = footers.sampled_rows(proof.files, limit - proof.residual_bytes)
    figures = _figures_of(sample.batches)
    sampled = figures.by_path(evidence="sample")
    exact: Evidence = "footers" if not data.has_deletes and proof.null_rows is not None else "sample"
    paths: dict[VariantPath, PathSummary] = {}
    for path in sorted({*proof.figures, *sampled}, key=depth_first):
        details = None if path in sample.omitted else sampled.get(path)
        if not proof.is_proved(path) or path not in proof.figures:
            if details is not None:
                paths[path] = details
        elif (part := proof.figures[path]).count:
            details = details or PathSummary()
            paths[path] = replace(
                part, path=path, places=places_of(path, proof.figures, proof.rows - (proof.null_rows or 0)),
                evidence=exact, detail_evidence="sample", detail_count=details.count, distinct=details.distinct,
                string_range=details.string_range, array_range=details.array_range,
            )  # fmt: skip
    closed, bytes_read = proof.is_closed and not data.has_deletes, proof.footer_bytes + proof.residual_bytes
    bytes_read += sample.bytes_read
    return Summary(
        data, proof.rows, proof.null_rows or 0, exact, paths, closed=closed, sampled_rows=sample.rows,
        bytes_read=bytes_read, sample=sample, proof=proof,
    )  # fmt: skip
