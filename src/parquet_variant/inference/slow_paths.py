"""Typed paths that another engine reads slowly under a schema, with the reason.

Owns what DuckDB needs to read typed columns alone (docs/interop.md). Leaves the remedy to `AutoPolicy.readers`, and the
text of decisions to `explain`.
"""

from __future__ import annotations

from parquet_variant.inference.policies.completion import LEAST_ROW_SHARE
from parquet_variant.inference.policies.decision import Decision, InferenceResult
from parquet_variant.path import Segment, Wildcard

_SHOWN_KEYS = 3
_REMEDY = "; use readers=duckdb"


def slow_paths(result: InferenceResult) -> list[str]:
    """Return one line per object whose typed paths DuckDB reads slowly, and one if it reads all of them slowly.

    >>> import parquet_variant as pv
    >>> from parquet_variant.inference.infer import infer
    >>> rows = pv.parse_json(['{"id": 1}'] * 20 + ['{"id": 2, "note": "rare"}'])
    >>> print(*slow_paths(infer(rows)))  # doctest: +NORMALIZE_WHITESPACE
    DuckDB 2.0 reads typed paths in $ slowly: the residual of $ has $.note in 4.8% of the rows; the
    data is too small for more columns for DuckDB; use readers=duckdb
    >>> from parquet_variant.inference.policies.auto import AutoPolicy
    >>> slow_paths(infer(rows, AutoPolicy(readers="duckdb")))
    []
    """
    lines = []
    remedy = "" if "duckdb" in getattr(result.policy, "readers", ()) else _REMEDY
    untyped = [decision.path for decision in result.decisions if decision.type == "variant"]
    has_types = any(decision.type not in (None, "object", "array", "variant") for decision in result.decisions)
    if untyped and has_types:
        lines.append(
            f"DuckDB 2.0 reads all typed paths slowly: {untyped[0].shorthand} has a column without a type{remedy}"
        )
    children: dict[tuple[Segment, ...], list[Decision]] = {}
    for decision in result.decisions:
        if decision.path.segments:
            children.setdefault(decision.path.segments[:-1], []).append(decision)
    for decision in result.decisions:
        segments = decision.path.segments
        if decision.type == "object" and not any(isinstance(step, Wildcard) for step in segments):
            lines += _slow_object(decision, children.get(segments, []), remedy)
    return lines


def _slow_object(decision: Decision, children: list[Decision], remedy: str) -> list[str]:
    """Return the line of an object with typed paths and keys in its residual, if it is slow.

    `children`: the decisions about its fields.

    The reason of the decision says what `AutoPolicy.completion` found: the cost, or why columns do not help.
    """
    path = decision.path
    residual = [child for child in children if not child.shredded and child.row_share >= LEAST_ROW_SHARE]
    if not residual or len(residual) == len(children):
        return []
    residual.sort(key=lambda child: -child.row_share)
    names = ", ".join(child.path.shorthand for child in residual[:_SHOWN_KEYS])
    more = f" and {len(residual) - _SHOWN_KEYS} other paths" if len(residual) > _SHOWN_KEYS else ""
    share = residual[0].row_share
    place = path.shorthand
    reason = f"the residual of {place} has {names}{more} in {share:.1%} of the rows"
    words = next((part for part in decision.reason.split("; ") if "DuckDB" in part), None)
    cost = f"; {words}" if words else ""
    remedy = "" if words and "only in case" in words else remedy
    return [f"DuckDB 2.0 reads typed paths in {place} slowly: {reason}{cost}{remedy}"]
