"""`Finding`: a difference between two data sets at a path, with its figures on both sides and example rows.

Owns the kinds of differences, their text, and the search for example rows: in sampled rows, the first rows of small
data, and the values of residual columns, whose rows are known. Leaves finding differences to `compare`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import chain, islice
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import VariantError
from parquet_variant.kernels.arrow_buffers import from_numpy
from parquet_variant.ops.value_types import variant_type
from parquet_variant.ops.variant_get import variant_get
from parquet_variant.quality.footers import PathValues
from parquet_variant.quality.summaries import Summary
from parquet_variant.quality.value_figures import RANGE_KINDS, Evidence, PathSummary, type_name
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record, shortened
from parquet_variant.types import VariantType
from parquet_variant.types.path import VariantPath, is_within

Change: TypeAlias = Literal[
    "vanished", "array-to-object", "object-to-array", "type", "nulls", "presence", "appeared", "range", "cardinality",
    "length",
]  # fmt: skip
# The kinds, in the order of reports: what breaks queries comes first.
CHANGES: tuple[Change, ...] = get_args(Change)


class Example(Record):
    """A row that shows a difference, on the side ``"before"`` or ``"after"``; rows are counted in the file, if any.

    `value` is the value at the path as JSON, perhaps shortened; of a missing value, the value that lacks it. None if
    values are hidden.
    """

    side: Literal["before", "after"]
    row: int
    file: str | None
    value: str | None

    def __str__(self) -> str:
        place = f"row {self.row:,}" + (f" of {self.file}" if self.file is not None else "")
        return f"{'-' if self.side == 'before' else '+'} {place}{'' if self.value is None else f': {self.value}'}"


class Finding(Record):
    """A difference at a path.

    Parameters
    ----------
    path
        The path; ``[*]`` stands for every element of an array.
    change
        ``"appeared"``, ``"vanished"``: the path has values in one data set only. ``"type"``: the types of the values
        differ. ``"array-to-object"``, ``"object-to-array"``: arrays became objects, or the reverse. ``"nulls"``,
        ``"presence"``: the share of Variant nulls, or of places with a value, differs. ``"range"``, ``"cardinality"``,
        ``"length"``: the range of numbers or times, the number of distinct values, or the mean length of strings or
        arrays differs by the factor.
    count
        Number of affected values: those at a path that appeared or vanished, those of types that are new (or gone), and
        the nulls or missing values that are more or fewer than expected from the other share.
    before, after
        The figures on both sides; None if the path has no value there.
    evidence
        How it is known: ``"values"`` (all values were read), ``"footers"`` or ``"sample"``; the weaker one of both
        sides.
    text
        The difference in words.
    nested
        Number of paths below that differ for the same reason, and are not reported.
    examples
        Rows that show the difference.
    """

    path: VariantPath
    change: Change
    count: int
    before: PathSummary | None
    after: PathSummary | None
    evidence: Evidence
    text: str
    nested: int = 0
    examples: tuple[Example, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain values."""
        plain = {name: getattr(self, name) for name in ("change", "count", "evidence", "text", "nested")}
        sides = {
            name: None if side is None else side.to_dict()
            for name, side in (("before", self.before), ("after", self.after))
        }
        return {"path": str(self.path), **plain, **sides, "examples": [asdict(example) for example in self.examples]}

    def __str__(self) -> str:
        nested = f", with {self.nested:,} paths below it" if self.nested else ""
        return f"{self.change}  {self.path.shorthand}: {self.text}{nested} [{self.evidence}]"


def without_values(finding: Finding) -> Finding:
    """Return a finding without values of the data: no bounds of ranges, and examples with the number of the row only.

    >>> import parquet_variant as pv
    >>> old, new = pv.parse_json(["1", "2"] * 50), pv.parse_json(["1000", "2000"] * 50)
    >>> print(pv.open(old).diff(new, values=False).findings[0])
    range  $: the smallest or largest value differs [values]
    """
    sides = [None if side is None else replace(side, ranges={}) for side in (finding.before, finding.after)]
    text = "the smallest or largest value differs" if finding.change == "range" else finding.text
    examples = tuple(replace(example, value=None) for example in finding.examples)
    return replace(finding, before=sides[0], after=sides[1], text=text, examples=examples)


def type_shares(types: Mapping[str, int]) -> str:
    """Return types with their shares in words.

    >>> type_shares({"integer": 3, "string": 1}), type_shares({"integer": 3})
    ('integer 75%, string 25%', 'integer')
    """
    total = sum(types.values())
    largest_first = sorted(types.items(), key=lambda entry: (-entry[1], entry[0]))
    if len(largest_first) == 1:
        return largest_first[0][0]
    return ", ".join(f"{name} {percent(count / total)}" for name, count in largest_first)


def percent(share: float) -> str:
    """Return a share as a percentage that is 0% or 100% only if it is exactly that.

    >>> percent(1), percent(0.99999), percent(0.5), percent(0.00001)
    ('100%', '>99.9%', '50%', '<0.1%')
    """
    if 0 < share < 0.001:
        return "<0.1%"
    if 0.999 < share < 1:
        return ">99.9%"
    return f"{share:.1%}".replace(".0%", "%")


def bound_text(bound: Any) -> str:
    """Return a bound of a range in words."""
    if isinstance(bound, date):
        return str(bound)
    return f"{bound:,}" if isinstance(bound, int) else f"{float(bound):,g}"


Side: TypeAlias = Literal["before", "after"]
# Examples of a finding on a side, characters of a value, and findings with examples.
_EXAMPLES, _TEXT, _FINDINGS = 3, 80, 200
# Rows per batch that are inspected one by one.
_ROWS = 4096


class _Search(Record, frozen=False):
    """The examples that a finding still needs on a side; `needs_rows`: whole rows, because values lack a field."""

    side: Side
    path: VariantPath
    types: Collection[str] | None = None
    matches: Callable[[Variant], bool] = lambda _: True
    needs_rows: bool = False
    rows: list[Example] = field(default_factory=list)


def with_examples(findings: Sequence[Finding], before: Summary, after: Summary) -> list[Finding]:
    """Return findings with example rows, as far as the searched rows have any."""
    searches = [list(_searches(finding)) for finding in findings[:_FINDINGS]]
    for side, summary in (("before", before), ("after", after)):
        remaining = [search for search in chain.from_iterable(searches) if search.side == side]
        if not remaining:
            continue
        batches = (
            PathValues(VariantPath(), batch.values, np.arange(len(batch.values)) + batch.first_row, batch.file)
            for batch in summary.example_batches()
        )
        for rows in chain([] if summary.proof is None else summary.proof.residuals, batches):
            for search in remaining:
                if is_within(search.path, rows.path) and not (search.needs_rows and rows.path.segments):
                    search.rows += islice(_matching(rows, search), _EXAMPLES - len(search.rows))
            remaining = [search for search in remaining if len(search.rows) < _EXAMPLES]
            if not remaining:
                break
    shown = list(findings)
    for number, of_finding in enumerate(searches):
        examples: list[Example] = []
        for search in of_finding:
            sample = (before if search.side == "before" else after).sample
            is_whole = sample is None or not any(is_within(path, search.path) for path in sample.omitted)
            examples += (one if is_whole else replace(one, value=None) for one in search.rows)
        shown[number] = replace(shown[number], examples=tuple(examples))
    return shown


def _searches(finding: Finding) -> Iterator[_Search]:
    old, new, path = finding.before, finding.after, finding.path
    if old is None or new is None:
        yield _Search("before" if new is None else "after", path)
    elif finding.change in ("type", "array-to-object", "object-to-array"):
        shares = [{name: count / side.count for name, count in side.types.items()} for side in (old, new)]
        risen = {name for name, share in shares[1].items() if share > shares[0].get(name, 0) and name != "null"}
        fallen = {name for name, share in shares[0].items() if share > shares[1].get(name, 0) and name != "null"}
        yield _Search("before", path, fallen - risen)
        yield _Search("after", path, risen)
    elif finding.change == "nulls":
        yield _Search("after" if new.null_share > old.null_share else "before", path, {"null"})
    elif finding.change == "presence" and path.segments:
        side: Side = "after" if new.share < old.share else "before"
        key, kind = path.segments[-1], VariantType.OBJECT
        yield _Search(side, path.parent, None, lambda v: v.type == kind and key not in dict(v.items()), needs_rows=True)
    elif finding.change == "range":
        yield _Search("after", path, matches=partial(_is_outside, old))
        yield _Search("before", path, matches=partial(_is_outside, new))
    elif finding.change in ("cardinality", "length"):
        yield _Search("before", path)
        yield _Search("after", path)


def _is_outside(other: PathSummary, value: Variant) -> bool:
    """Return whether a number or time is outside of the ranges of the other side."""
    name = type_name(value.type)
    bounds = other.ranges.get(RANGE_KINDS.get(name, name))
    if bounds is None:
        return False
    sides = (*bounds, value.to_python())
    low, high, number = (float(bound) if isinstance(bound, Decimal) else bound for bound in sides)
    return not low <= number <= high


def _matching(rows: PathValues, search: _Search) -> Iterator[Example]:
    """Yield the rows that are examples, each once; malformed rows are skipped."""
    inner, numbers = search.path.segments[len(rows.path) :], rows.rows
    try:
        at_path: Any = variant_get(rows.values, VariantPath(inner), "variant") if inner else rows.values
        if not isinstance(at_path, VariantArray):  # the elements of lists
            while pa.types.is_list(at_path.type) or pa.types.is_large_list(at_path.type):
                numbers, at_path = numbers[np.asarray(pc.list_parent_indices(at_path))], pc.list_flatten(at_path)
            at_path = VariantArray(at_path)
        is_candidate = np.asarray(at_path.storage.is_valid())
        if search.types is not None:
            names = variant_type(at_path).to_pylist()
            is_candidate &= [name is not None and type_name(VariantType(name)) in search.types for name in names]
        candidates = np.flatnonzero(is_candidate)[:_ROWS]
        # Single values of an unshredded array are much faster to get.
        values = VariantArray(at_path.storage.take(from_numpy(candidates))).to_unshredded()
        last = -1
        for row, value in zip(numbers[candidates].tolist(), values, strict=True):
            if row != last and value is not None and search.matches(value):
                last = row
                yield Example(search.side, row, rows.file, shortened(value.to_json(), _TEXT))
    except VariantError:
        return
