"""Example rows of findings: rows with the path, the type or the value that differs.

Owns searching the rows that were sampled, the first rows of small data, and the values of residual columns, whose rows
are known. Leaves the findings to `compare`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import VariantError
from parquet_variant.kernels.arrow_buffers import from_numpy
from parquet_variant.ops.value_types import variant_type
from parquet_variant.ops.variant_get import variant_get
from parquet_variant.path import WILDCARD, Segment, VariantPath, is_within
from parquet_variant.quality.findings import Example, Finding
from parquet_variant.quality.summaries import PathSummary, Summary
from parquet_variant.quality.value_figures import type_name
from parquet_variant.types import VariantType

Side: TypeAlias = Literal["before", "after"]
# Examples of a finding on a side, characters of a value, and findings with examples.
_EXAMPLES, _TEXT, _FINDINGS = 3, 80, 200
# Rows per batch that are inspected one by one.
_ROWS = 4096
_RANGE_KINDS = {"integer": "number", "decimal": "number", "double": "number"}


@dataclass(frozen=True, slots=True)
class _Rows:
    """Values at a path (the root for whole rows), with their file and their row in it."""

    values: VariantArray
    file: str | None
    rows: npt.NDArray[np.int64]
    path: VariantPath


@dataclass(slots=True)
class _Search:
    """The examples that a finding still needs on a side.

    `path`: the path of the values to show.
    `missing`: the field that the values lack; None if the values themselves are shown.
    `matches`: returns whether a value is an example; None for every value.
    """

    number: int
    side: Side
    path: VariantPath
    missing: Segment | None
    types: frozenset[str] | None
    matches: Callable[[Variant], bool] | None
    rows: list[Example]

    @property
    def is_done(self) -> bool:
        return len(self.rows) >= _EXAMPLES


def with_examples(findings: Sequence[Finding], before: Summary, after: Summary) -> list[Finding]:
    """Return findings with example rows, as far as the searched rows have any."""
    searches = [search for number, finding in enumerate(findings[:_FINDINGS]) for search in _searches(number, finding)]
    for side, summary in (("before", before), ("after", after)):
        _find([search for search in searches if search.side == side], summary)
    examples: list[list[Example]] = [[] for _ in findings]
    for search in searches:
        summary = before if search.side == "before" else after
        is_whole = summary.sample is None or not any(is_within(path, search.path) for path in summary.sample.omitted)
        examples[search.number] += (one if is_whole else replace(one, value=None) for one in search.rows)
    return [replace(finding, examples=tuple(rows)) for finding, rows in zip(findings, examples, strict=True)]


# ---- what to search


def _searches(number: int, finding: Finding) -> Iterator[_Search]:
    old, new = finding.before, finding.after

    def search(
        side: Side, types: Iterable[str] | None = None, matches: Callable[[Variant], bool] = lambda value: True
    ) -> _Search:
        return _Search(number, side, finding.path, None, None if types is None else frozenset(types), matches, [])

    if old is None or new is None:
        yield search("before" if new is None else "after")
    elif finding.change in ("type", "array-to-object", "object-to-array"):
        shares = [{name: count / side.count for name, count in side.types.items()} for side in (old, new)]
        risen = {name for name, share in shares[1].items() if share > shares[0].get(name, 0) and name != "null"}
        fallen = {name for name, share in shares[0].items() if share > shares[1].get(name, 0) and name != "null"}
        yield search("before", fallen - risen)
        yield search("after", risen)
    elif finding.change == "nulls":
        yield search("after" if new.null_share > old.null_share else "before", ["null"])
    elif finding.change == "presence" and finding.path.segments:
        side: Side = "after" if new.share < old.share else "before"
        yield replace(search(side), path=finding.path.parent, missing=finding.path.segments[-1])
    elif finding.change == "range":
        yield search("after", None, _outside(old))
        yield search("before", None, _outside(new))
    elif finding.change in ("cardinality", "length"):
        yield search("before")
        yield search("after")


def _outside(other: PathSummary) -> Callable[[Variant], bool]:
    """Return a test for numbers and times outside of the ranges of the other side."""

    def is_outside(value: Variant) -> bool:
        name = type_name(value.type)
        bounds = other.ranges.get(_RANGE_KINDS.get(name, name))
        if bounds is None:
            return False
        sides = (*bounds, value.to_python())
        low, high, number = (float(bound) if isinstance(bound, Decimal) else bound for bound in sides)
        return not low <= number <= high

    return is_outside


# ---- where to search


def _find(searches: Sequence[_Search], summary: Summary) -> None:
    for rows in _all_rows(summary):
        open_searches = [search for search in searches if not search.is_done and is_within(search.path, rows.path)]
        if all(search.is_done for search in searches):
            return
        for search in open_searches:
            if search.missing is None or not rows.path.segments:
                search.rows += islice(_matching(rows, search), _EXAMPLES - len(search.rows))


def _all_rows(summary: Summary) -> Iterator[_Rows]:
    for file, residual in summary.proof.residuals if summary.proof is not None else ():
        yield _Rows(residual.values, file, residual.rows, residual.path)
    for batch in summary.example_batches():
        numbers = np.arange(batch.first_row, batch.first_row + len(batch.values), dtype=np.int64)
        yield _Rows(batch.values, batch.file, numbers, VariantPath())


def _matching(rows: _Rows, search: _Search) -> Iterator[Example]:
    """Yield the rows that are examples; malformed rows are none."""
    inner = search.path.segments[len(rows.path) :]
    steps = inner.index(WILDCARD) if WILDCARD in inner else len(inner)
    try:
        outer = variant_get(rows.values, VariantPath(inner[:steps]), "variant") if steps else rows.values
        assert isinstance(outer, VariantArray)
        is_candidate = np.asarray(outer.storage.is_valid())
        if search.types is not None and steps == len(inner):
            names = variant_type(outer).to_pylist()
            is_candidate &= [name is not None and type_name(VariantType(name)) in search.types for name in names]
        candidates = np.flatnonzero(is_candidate)[:_ROWS]
        # Single values of an unshredded array are much faster to get.
        values = VariantArray(outer.storage.take(from_numpy(candidates))).to_unshredded()
        for at, candidate in zip(candidates.tolist(), values, strict=True):
            value = next(_matching_values(candidate, inner[steps:], search), None)
            if value is not None:
                text = value.to_json()
                text = text if len(text) <= _TEXT else text[: _TEXT - 1] + "…"
                yield Example(search.side, int(rows.rows[at]), rows.file, text)
    except VariantError:
        return


def _matching_values(value: Variant | None, inner: Sequence[Segment], search: _Search) -> Iterator[Variant]:
    """Yield the values at the rest of a path that are examples."""
    if value is None:
        return
    if inner:
        if isinstance(inner[0], str) and value.type == VariantType.OBJECT:
            yield from _matching_values(dict(value.items()).get(inner[0]), inner[1:], search)
        elif inner[0] is WILDCARD and value.type == VariantType.ARRAY:
            for element in value:
                yield from _matching_values(element, inner[1:], search)
        return
    if search.missing is not None:
        if value.type == VariantType.OBJECT and search.missing not in dict(value.items()):
            yield value
    elif (search.types is None or type_name(value.type) in search.types) and (
        search.matches is None or search.matches(value)
    ):
        yield value
