"""`Finding`: a difference between two data sets at a path, with its figures on both sides and example rows.

Owns the kinds of differences and their text. Leaves finding them to `compare`, and searching rows to `examples`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from math import isfinite
from typing import Any, Literal, TypeAlias, get_args

from parquet_variant.path import VariantPath
from parquet_variant.quality.summaries import Evidence, PathSummary

Change: TypeAlias = Literal[
    "vanished", "array-to-object", "object-to-array", "type", "nulls", "presence", "appeared", "range", "cardinality",
    "length",
]  # fmt: skip
# The kinds, in the order of reports: what breaks queries comes first.
CHANGES: tuple[Change, ...] = get_args(Change)


@dataclass(frozen=True, slots=True)
class Example:
    """A row that shows a difference.

    Parameters
    ----------
    side
        ``"before"`` or ``"after"``.
    row
        The number of the row in the file, or in the data set if there is no file.
    file
        The file; None for data in memory.
    value
        The value at the path as JSON, perhaps shortened; of a missing value, the value that lacks it. None if values
        are hidden.
    """

    side: Literal["before", "after"]
    row: int
    file: str | None
    value: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the example as plain values."""
        return {"side": self.side, "row": self.row, "file": self.file, "value": self.value}


@dataclass(frozen=True, slots=True)
class Finding:
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
        return {
            "path": str(self.path),
            "change": self.change,
            "count": self.count,
            "evidence": self.evidence,
            "text": self.text,
            "nested": self.nested,
            "before": None if self.before is None else figures_of(self.before),
            "after": None if self.after is None else figures_of(self.after),
            "examples": [example.to_dict() for example in self.examples],
        }

    def __str__(self) -> str:
        nested = f", with {self.nested:,} paths below it" if self.nested else ""
        return f"{self.change}  {self.path.shorthand}: {self.text}{nested} [{self.evidence}]"


def figures_of(summary: PathSummary) -> dict[str, Any]:
    """Return the figures of a path as plain values."""
    return {
        "count": summary.count,
        "places": summary.places,
        "share": summary.share,
        "nulls": summary.nulls,
        "types": dict(summary.types),
        "ranges": {kind: [_json_bound(bound) for bound in bounds] for kind, bounds in summary.ranges.items()},
        "distinct": summary.distinct,
        "distinct_of": summary.detail_count,
        "mean_string_bytes": summary.mean_string_bytes,
        "mean_elements": summary.mean_elements,
        "evidence": summary.evidence,
        "detail_evidence": summary.detail_evidence,
    }


def _json_bound(bound: Any) -> Any:
    return bound if isinstance(bound, int | float) and isfinite(bound) else str(bound)


def without_values(finding: Finding) -> Finding:
    """Return a finding without values of the data: no bounds of ranges, and examples with the number of the row only.

    >>> import parquet_variant as pv
    >>> old, new = pv.parse_json(["1", "2"] * 50), pv.parse_json(["1000", "2000"] * 50)
    >>> print(pv.diff(old, new, values=False).findings[0])
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
