"""`Table.diff`: the differences between two data sets, by path, and the rules by which differences are findings.

A finding is either a fact (a path or type exists on one side only) or a change of a figure that is larger than the
thresholds and larger than chance explains. Leaves opening to `sources`, figures to `summaries`, and the words and the
example rows to `findings`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import sqrt
from typing import Any

from parquet_variant.errors import bad_option, check_number
from parquet_variant.quality.findings import (
    CHANGES,
    Change,
    Finding,
    bound_text,
    percent,
    type_shares,
    with_examples,
    without_values,
)
from parquet_variant.quality.sources import data_of
from parquet_variant.quality.summaries import Summary, places_of, summarize
from parquet_variant.quality.value_figures import Evidence, PathSummary
from parquet_variant.support.records import Record, Report, counted
from parquet_variant.tables.opening import open as open_any
from parquet_variant.tables.table.table import Table
from parquet_variant.types.path import WILDCARD, VariantPath, depth_first, is_within, outer_paths

# Standard errors by which shares must differ; fewer if a value was always (or never) there before or after.
_ERRORS, _ERRORS_OF_NEWS = 4.0, 2.5
# The chance that a sample misses a path, below which the path is taken to be missing.
_CHANCE = 1e-6
# Additional factor for few values: n values must differ by the factor times 1 + 10 / n.
_FEW = 10
# Additional factor for ranges of samples.
_SAMPLED = 2
# Distance of two ranges of times, in multiples of the longer one, at which they are unrelated.
_FAR = 10
_NUMBERS = ("integer", "decimal", "double")
_EVIDENCE: tuple[Evidence, ...] = ("values", "footers", "sample")


class Thresholds(Record):
    """What counts as a difference; see `Table.diff`."""

    factor: float = 3.0
    min_change: float = 0.05
    min_share: float = 0.0
    ignore: tuple[VariantPath, ...] = ()

    def __post_init__(self) -> None:
        for name in ("factor", "min_change", "min_share"):
            check_number(name, number := getattr(self, name))
            if name == "factor" and not number > 1:
                raise bad_option(f"factor is {number}: it must be above 1")
            if name != "factor" and not 0 <= number <= 1:
                raise bad_option(f"{name} is {number}: it must be from 0 to 1")


class _Comparison:
    """The differences of two summaries."""

    def __init__(self, before: Summary, after: Summary, thresholds: Thresholds) -> None:
        self.before, self.after, self.thresholds = before, after, thresholds
        # Paths at and below which the same difference would be reported again -> the path of its finding.
        self.explained: dict[VariantPath, VariantPath] = {}
        self.nested: Counter[VariantPath] = Counter()

    def findings(self) -> list[Finding]:
        """Return the differences, those that break queries first."""
        findings: list[Finding] = []
        for path in sorted({*self.before.paths, *self.after.paths}, key=depth_first):
            if any(is_within(path, ignored) for ignored in self.thresholds.ignore):
                continue
            outer = next((outer for outer in [*outer_paths(path), path] if outer in self.explained), None)
            if outer is not None:
                self.nested[self.explained[outer]] += 1
            else:
                findings += self._findings_at(path)
        findings.sort(key=lambda finding: CHANGES.index(finding.change))
        return [replace(finding, nested=self.nested[finding.path]) for finding in findings]

    def _findings_at(self, path: VariantPath) -> Iterator[Finding]:
        old, new = self.before.paths.get(path), self.after.paths.get(path)
        if old is None or new is None:
            if (missing := self._one_sided(path, old, new)) is not None:
                self.explained[path] = path
                yield missing
            return
        counts, places = (old.count, new.count), (old.places, new.places)
        if not path.segments:
            evidence = _weaker(self.before.rows_evidence, self.after.rows_evidence)
            nulls, rows = (self.before.null_rows, self.after.null_rows), (self.before.rows, self.after.rows)
            if self._differs(nulls, rows):
                yield _share_change("presence", old, new, nulls, rows, ["rows are NULL in"] * 2, "all rows", evidence)
        elif all(places) and self._differs(counts, places):
            words = ["became sparse: in", "became frequent: in"]
            yield _share_change("presence", old, new, counts, places, words, "its parents")
        nulls = old.nulls, new.nulls
        if (old.nulls == old.count) != (new.nulls == new.count) or self._differs(nulls, counts):
            words = ["is no longer null: null in", "became null: null in"]
            yield _share_change("nulls", old, new, nulls, counts, words, "its values")
        # The paths inside of objects, or of arrays, that exist on one side only are not findings of their own.
        for kind in ("object", "array"):
            if bool(old.types.get(kind)) != bool(new.types.get(kind)):
                children = {child for side in (self.before, self.after) for child in side.paths if child.parent == path}
                for child in children - {path}:
                    if (child.segments[-1] is WILDCARD) == (kind == "array"):
                        self.explained[child] = path
        if (types := self._types(old, new)) is not None:
            yield types
            return
        compared = (compare(old, new, self.thresholds.factor) for compare in (_range, _cardinality, _length))
        yield from filter(None, compared)

    def _one_sided(self, path: VariantPath, old: PathSummary | None, new: PathSummary | None) -> Finding | None:
        present, other = (new, self.before) if old is None else (old, self.after)
        assert present is not None
        if present.share < self.thresholds.min_share:
            return None
        evidence = present.evidence
        if not other.is_proved_missing(path):
            evidence = "sample"
            # The number of places for a value at the path among the rows of the sample.
            places = places_of(path, other.paths, other.sampled_rows)
            places = min(places, other.sampled_rows) if other.sampled_rows else places
            if (1 - min(present.share, 1.0)) ** places > _CHANCE:
                return None
        elif not other.closed or other.rows_evidence != "values":
            evidence = _weaker(evidence, other.rows_evidence)
        change: Change = "appeared" if old is None else "vanished"
        verb = "is" if old is None else "was"
        text = f"{verb} in {percent(present.share)} of its parents ({counted(present.count, 'value')})"
        if old is None:
            text += f", as {type_shares(present.types)}"
        return Finding(path, change, present.count, old, new, evidence, text)

    def _types(self, old: PathSummary, new: PathSummary) -> Finding | None:
        old_types, new_types = _comparable_types(old.types, new.types)
        if not old_types or not new_types:
            return None  # All values of a side are null, which `nulls` reports.
        count = 0
        for name in {*old_types, *new_types}:
            sides = ((old, old_types, new_types), (new, new_types, old_types))
            # A type that one side lacks may just be missing from a sample.
            if all(
                side.evidence != "sample"
                or types.get(name)
                or (1 - _share(other_types, name)) ** sum(types.values()) <= _CHANCE
                for side, types, other_types in sides
            ):
                count += self._type_change(old_types, new_types, name)
        if not count:
            return None
        change: Change = "type"
        # Shares of arrays and objects that moved in opposite directions, and nearly by the same amount.
        arrays, objects = (_share(new_types, kind) - _share(old_types, kind) for kind in ("array", "object"))
        if arrays * objects < 0 and min(abs(arrays), abs(objects)) > abs(arrays + objects):
            change = "array-to-object" if objects > 0 else "object-to-array"
        shown = " -> ".join(type_shares(_without_null(side.types)) for side in (old, new))
        return _finding(change, count, old, new, f"{shown} ({counted(count, 'value')})")

    def _type_change(self, old_types: Mapping[str, int], new_types: Mapping[str, int], name: str) -> int:
        """Return the number of values by which a type differs, counted on the side where it is more frequent."""
        totals = sum(old_types.values()), sum(new_types.values())
        counts = old_types.get(name, 0), new_types.get(name, 0)
        shares = counts[0] / totals[0], counts[1] / totals[1]
        if 0 in counts:
            # A type that is gone is counted only if no new type replaced it.
            has_successor = not counts[1] and any(kind not in old_types for kind in new_types)
            return 0 if max(shares) < self.thresholds.min_share or has_successor else max(counts)
        if not self._differs(counts, totals):
            return 0
        rise = shares[1] - shares[0]
        return round(rise * totals[1]) if rise > 0 else 0

    def _differs(self, counts: tuple[int, int], totals: tuple[int, int]) -> bool:
        shares = counts[0] / totals[0], counts[1] / totals[1]
        if abs(shares[0] - shares[1]) < max(self.thresholds.min_change, 1e-12):
            return False
        if {*shares} == {0.0, 1.0}:
            return True
        is_news = any(count in (0, total) for count, total in zip(counts, totals, strict=True))
        pooled = sum(counts) / sum(totals)
        error = sqrt(pooled * (1 - pooled) * (1 / totals[0] + 1 / totals[1]))
        return abs(shares[0] - shares[1]) >= (_ERRORS_OF_NEWS if is_news else _ERRORS) * error


def _weaker(first: Evidence, second: Evidence) -> Evidence:
    return max(first, second, key=_EVIDENCE.index)


def _finding(
    change: Change, count: int, old: PathSummary, new: PathSummary, text: str, evidence: Evidence | None = None
) -> Finding:
    evidence = evidence or _weaker(old.evidence, new.evidence)
    return Finding(old.path, change, count, old, new, evidence, text)


def _share_change(
    change: Change,
    old: PathSummary,
    new: PathSummary,
    counts: tuple[int, int],
    totals: tuple[int, int],
    words: Sequence[str],
    of: str,
    evidence: Evidence | None = None,
) -> Finding:
    """Return the finding for a share that fell (the first of the words) or rose (the second)."""
    shares = counts[0] / totals[0], counts[1] / totals[1]
    count = abs(round((shares[1] - shares[0]) * totals[1]))
    text = f"{words[shares[1] > shares[0]]} {percent(shares[0])} -> {percent(shares[1])} of {of}"
    text += f" ({counted(count, 'row' if of == 'all rows' else 'value')})"
    return _finding(change, count, old, new, text, evidence)


def _without_null(types: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in types.items() if name != "null" and count}


def _share(types: Mapping[str, int], name: str) -> float:
    return types.get(name, 0) / sum(types.values())


def _comparable_types(old: Mapping[str, int], new: Mapping[str, int]) -> tuple[dict[str, int], dict[str, int]]:
    """Return the types of both sides without null; types of numbers are one, unless a side has no fractions at all,
    since a column of decimals holds integers, too, and JSON has decimals with an exponent as doubles.
    """
    sides = _without_null(old), _without_null(new)
    fractions = [side.keys() & {"decimal", "double"} for side in sides]
    numbers = [side.keys() & set(_NUMBERS) for side in sides]
    mixes = all(numbers) and bool(fractions[0]) == bool(fractions[1])
    if not mixes or (fractions[0] and fractions[0].isdisjoint(fractions[1])):
        return sides
    combined = []
    for side in sides:
        other_types = {name: count for name, count in side.items() if name not in _NUMBERS}
        combined.append({"number": sum(side.get(name, 0) for name in _NUMBERS)} | other_types)
    return combined[0], combined[1]


def _scaled(factor: float, *counts: int) -> float:
    return factor * (1 + _FEW / max(min(counts), 1))


def _ratio(old: float, new: float) -> float:
    """Return how many times the larger of two positive numbers is the smaller one."""
    return max(old, new) / min(old, new) if min(old, new) > 0 else float("inf")


def _range(old: PathSummary, new: PathSummary, factor: float) -> Finding | None:
    counts = [side.count - side.nulls for side in (old, new)]
    for kind in old.ranges.keys() & new.ranges.keys():
        differs = _number_ranges_differ if kind == "number" else _time_ranges_differ
        old_range, new_range = old.ranges[kind], new.ranges[kind]
        # The range of a sample is smaller than that of all values.
        is_sampled = "sample" in (old.evidence, new.evidence)
        if differs(old_range, new_range, _scaled(factor, *counts) * (_SAMPLED if is_sampled else 1)):
            text = " -> ".join(f"{bound_text(low)} to {bound_text(high)}" for low, high in (old_range, new_range))
            return _finding("range", new.count, old, new, text)
    return None


def _number_ranges_differ(old: tuple[Any, Any], new: tuple[Any, Any], factor: float) -> bool:
    sides = [(float(low), float(high)) for low, high in (old, new)]
    widths = [high - low for low, high in sides]
    sizes = [max(abs(low), abs(high)) for low, high in sides]
    if any(all(pair) and _ratio(*pair) >= factor for pair in (sizes, widths)):
        return True
    lows = [low for low, _ in sides]
    # Negative values are new, or gone, and are not few and small.
    return min(lows) < 0 <= max(lows) and abs(min(lows)) * factor >= max(*widths, 1e-300)


def _time_ranges_differ(old: tuple[Any, Any], new: tuple[Any, Any], factor: float) -> bool:
    widths = [high - low for low, high in (old, new)]
    gap = max(old[0], new[0]) - min(old[1], new[1])
    shortest = timedelta(days=1) if not isinstance(old[0], datetime) else timedelta(hours=1)
    longest = max(*widths, shortest)
    if gap > longest * max(factor, _FAR):
        return True
    return all(widths) and longest / max(min(widths), timedelta(microseconds=1)) >= factor


def _cardinality(old: PathSummary, new: PathSummary, factor: float) -> Finding | None:
    if not old.distinct or not new.distinct:
        return None
    counts = [side.detail_count for side in (old, new)]
    required = _scaled(factor, *counts)
    grows = new.distinct > old.distinct
    shares = [min(side.distinct or 0, side.detail_count) / side.detail_count for side in (old, new)]
    # More values have more distinct ones, so the share of distinct values must differ, too.
    if _ratio(old.distinct, new.distinct) < required or _ratio(*shares) < required or grows != (shares[1] > shares[0]):
        return None
    text = f"about {old.distinct:,} -> {new.distinct:,} distinct values, of {counts[0]:,} -> {counts[1]:,}"
    evidence = _weaker(old.detail_evidence, new.detail_evidence)
    return _finding("cardinality", new.count, old, new, text, evidence)


def _length(old: PathSummary, new: PathSummary, factor: float) -> Finding | None:
    for kind, unit, mean in (("string", "bytes", "mean_string_bytes"), ("array", "elements", "mean_elements")):
        before, after = getattr(old, mean), getattr(new, mean)
        if before is None or after is None:
            continue
        counts = [side.types.get(kind, 0) for side in (old, new)]
        if max(before, after) >= 1 and _ratio(before, after) >= _scaled(factor, *counts):
            text = f"{kind}s of {before:,.1f} -> {after:,.1f} {unit} on average"
            return _finding("length", new.count, old, new, text)
    return None


class DataDiff(Report, Record):
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

    def to_dict(self) -> dict[str, object]:
        """Return the differences as plain values."""
        return {
            "equal": self.is_equal,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            **{name: getattr(self.thresholds, name) for name in ("factor", "min_change", "min_share")},
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def __repr__(self) -> str:
        return f"<DataDiff {self.before.data.name} -> {self.after.data.name}: {self._verdict}>"

    @property
    def _verdict(self) -> str:
        return counted(len(self.findings), "difference") if self.findings else "no differences"

    def __str__(self) -> str:
        lines = []
        for mark, side in (("-", self.before), ("+", self.after)):
            sample = f"a sample of {side.sampled_rows:,} rows"
            read = {"values": "all values were read", "footers": f"footers, and {sample}", "sample": sample}
            size = f"{read[side.rows_evidence]} ({side.bytes_read:,} of {side.data.size:,} bytes)"
            about = "about " if side.rows_evidence == "sample" else ""
            lines.append(f"{mark} {side.data.name}: {about}{side.rows:,} rows, {len(side.paths):,} paths; {size}")
        lines.append(self._verdict)
        for finding in self.findings:
            lines += ["", str(finding), *(f"    {example}" for example in finding.examples)]
        return "\n".join(lines)


def diff(
    table: Table,
    other: Any,
    *,
    ignore: Any,
    values: bool,
    sample_bytes: int | None,
    threads: int | None,
    **limits: float,
) -> DataDiff:
    """Compare the Variants of two tables; see `Table.diff`."""
    paths = ignore if isinstance(ignore, Iterable) and not isinstance(ignore, str) else [ignore]
    thresholds = Thresholds(ignore=tuple(map(VariantPath.parse, paths)), **limits)
    before, after = data_of(table), data_of(open_any(other, column=table.options.column))
    old = summarize(before, sample_bytes=sample_bytes, threads=threads)
    files, newer = (
        None if data.has_deletes else [(data.kind, file.source.path, file.source.size) for file in data.files]
        for data in (before, after)
    )
    is_same = bool(files) and files == newer
    new = replace(old, data=after) if is_same else summarize(after, sample_bytes=sample_bytes, threads=threads)
    shown = with_examples(_Comparison(old, new, thresholds).findings(), old, new)
    return DataDiff(old, new, tuple(shown if values else map(without_values, shown)), thresholds)
