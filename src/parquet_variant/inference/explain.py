"""Explanations of an inferred schema, and typed paths that another engine reads slowly.

Owns the wording, and what DuckDB needs to read typed columns alone (docs/interop.md). The commands color the text;
`ShreddingSchema` has the notations of schemas, and `AutoPolicy.readers` is the remedy for slow paths.
"""

from __future__ import annotations

import json
from typing import Any

from parquet_variant.inference.policies.auto import LEAST_ROW_SHARE
from parquet_variant.inference.policies.decision import Decision, InferenceResult
from parquet_variant.support.options import SortBy
from parquet_variant.support.records import human_bytes
from parquet_variant.types.path import VariantPath, Wildcard

_SHOWN_KEYS = 3
_REMEDY = "; use readers=duckdb"
_JSON_FIELDS = ("path", "type", "count", "row_share", "typed_share", "bytes_saved", "reason")


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
    children_of = _children(result)
    for decision in result.decisions:
        children = children_of.get(decision.path, [])
        residual = [child for child in children if not child.shredded and child.row_share >= LEAST_ROW_SHARE]
        if decision.type != "object" or decision.path.has_wildcard or not residual or len(residual) == len(children):
            continue
        residual.sort(key=lambda child: -child.row_share)
        names = ", ".join(child.path.shorthand for child in residual[:_SHOWN_KEYS])
        more = f" and {len(residual) - _SHOWN_KEYS} other paths" if len(residual) > _SHOWN_KEYS else ""
        place = decision.path.shorthand
        reason = f"the residual of {place} has {names}{more} in {residual[0].row_share:.1%} of the rows"
        # What `AutoPolicy.completion` found: the cost of columns, or why they do not help.
        duckdb_reasons = [part for part in decision.reason.split("; ") if "DuckDB" in part][:1]
        has_twins = any("only in case" in part for part in duckdb_reasons)
        words = "; ".join([reason, *duckdb_reasons]) + ("" if has_twins else remedy)
        lines.append(f"DuckDB 2.0 reads typed paths in {place} slowly: {words}")
    return lines


def _children(result: InferenceResult) -> dict[VariantPath, list[Decision]]:
    """Return the decisions about the fields and elements of each path."""
    children: dict[VariantPath, list[Decision]] = {}
    for decision in result.decisions:
        if decision.path.segments:
            children.setdefault(decision.path.parent, []).append(decision)
    return children


def explain(result: InferenceResult) -> str:
    """Return a summary, and a tree of all considered paths: type, shares, bytes saved and left in the residual,
    reason.

    The shares (typed, null, residual, missing) are of rows, below an array of its elements, and add up to 100 %. Lines
    after the tree name the paths that DuckDB reads slowly.

    >>> import parquet_variant as pv
    >>> from parquet_variant.inference.infer import infer
    >>> rows = ['{"id": 1, "tags": ["x", 2, 3]}'] * 20 + ['{"id": 2, "note": "rare"}']
    >>> print(explain(infer(pv.parse_json(rows))))  # doctest: +NORMALIZE_WHITESPACE
    21 rows, 3 paths with values, 2 typed (auto): 488 bytes of 536 bytes encoded leave the residual, 48 bytes stay
    $  object  100.0% typed  all object; the data is too small for more columns for DuckDB
    ├─ id  bigint  100.0% typed  saves 85 bytes  all bigint
    ├─ note  residual  4.8% residual (8 bytes)  95.2% missing  in 4.76% of the rows, under 15%
    └─ tags  array  95.2% typed  4.8% missing  all array
       └─ [*]  bigint  66.7% typed  33.3% residual (40 bytes)  saves 126 bytes  66.7% number, 33.3% string
    DuckDB 2.0 reads typed paths in $ slowly: the residual of $ has $.note in 4.8% of the rows; the
    data is too small for more columns for DuckDB; use readers=duckdb
    """
    if not result.decisions:
        return "$  nothing to shred: no values"
    root, children_of = result.decisions[0], _children(result)
    lines = [*summary(result), _line("$", root)]

    def add_below(path: VariantPath, indent: str) -> None:
        children = children_of.get(path, [])
        for child in children:
            is_last, segment = child is children[-1], child.path.segments[-1]
            name = "[*]" if isinstance(segment, Wildcard) else str(segment)
            name = name if name.isprintable() and name else repr(name)
            lines.append(f"{indent}{'└─' if is_last else '├─'} {_line(name, child)}")
            add_below(child.path, indent + ("   " if is_last else "│  "))

    add_below(root.path, "")
    return "\n".join([*lines, *slow_paths(result)])


def summary(result: InferenceResult) -> list[str]:
    """Return the effect of the decisions, the counts of typed strings, and suggested types of strings."""
    if not result.rows:
        return []
    leaves = [decision for decision in result.decisions if decision.type not in ("object", "array")]
    typed = sum(leaf.type is not None for leaf in leaves)
    total, stays = result.total_bytes, result.residual_bytes
    moved, all_bytes, residual = map(human_bytes, (total - stays, total, stays))
    head = f"{result.rows:,} rows, {len(leaves):,} paths with values, {typed:,} typed ({result.policy.name}): "
    head += f"{moved} of {all_bytes} encoded leave the residual, {residual} stay"
    return [head, *map(str, result.typed_strings), *map(str, result.suggested_types)]


def explain_table(result: InferenceResult, sort: SortBy = "saved", top: int | None = None) -> str:
    """Return the decisions as a list: paths in the notation of the commands, the most important first.

    The list is sorted by the bytes that typing saves, by the bytes that stay (``"residual"``), by a share, or by path;
    `top` limits its length.
    """

    def key(decision: Decision) -> Any:
        if sort == "path":
            return decision.path.shorthand
        if sort == "saved" or not decision.count:
            return -decision.bytes_saved
        return -decision.residual_bytes if sort == "residual" else -decision.share(sort)

    decisions = sorted((decision for decision in result.decisions if decision.path.segments), key=key)[:top]
    return "\n".join([*summary(result), *(_line(decision.path.shorthand, decision) for decision in decisions)])


def explain_json(result: InferenceResult) -> str:
    """Return the result as JSON: ``schema`` (for `ShreddingSchema.from_json`), ``ddl``, ``policy``, ``rows``,
    ``paths``, and ``slow_paths``: what DuckDB reads slowly.

    >>> import json, parquet_variant as pv
    >>> from parquet_variant.inference.infer import infer
    >>> shown = json.loads(explain_json(infer(pv.parse_json(['{"a": true}']))))
    >>> shown["ddl"], shown["paths"][1]["path"], shown["paths"][1]["reason"]
    ('a boolean', "$['a']", 'all boolean')
    """
    figures = ("typed", "null", "residual", "missing", "residual_bytes")
    return json.dumps(
        {
            "summary": summary(result),
            "slow_paths": slow_paths(result),
            "policy": result.policy.name,
            "rows": result.rows,
            "ddl": result.schema.to_ddl(),
            "schema": json.loads(result.schema.to_json()),
            "paths": [
                {name: getattr(decision, name) for name in (*_JSON_FIELDS, *(figures if decision.count else ()))}
                | {"path": str(decision.path)}
                for decision in result.decisions
            ],
        },
        ensure_ascii=False,
    )


def explain_diff(before: InferenceResult, after: InferenceResult) -> str:
    """Return the differences between two results, one line per path with the new reason; empty if they are equal.

    >>> import parquet_variant as pv
    >>> from parquet_variant.inference.infer import infer
    >>> from parquet_variant.inference.policies.auto import AutoPolicy
    >>> rows = pv.parse_json(['{"a": 1}'] * 19 + ['{"a": 1, "b": "x"}'])
    >>> print(explain_diff(infer(rows), infer(rows, AutoPolicy(min_row_share=0.05))))
    + $.b: string, 5.0% of rows (all string)
    """
    before_by_path, after_by_path = (
        {one.path.shorthand: one for one in result.decisions if one.shredded} for result in (before, after)
    )
    lines = []
    for path in sorted({*before_by_path, *after_by_path}):
        was, now = before_by_path.get(path), after_by_path.get(path)
        if was is None and now is not None:
            lines.append(f"+ {path}: {now.type}, {now.row_share:.1%} of rows ({now.reason})")
        elif was is not None and now is None:
            nearest = after.decision(path)
            reason = nearest.reason if nearest is not None else "not considered"
            lines.append(f"- {path}: {was.type}, {was.row_share:.1%} of rows ({reason})")
        elif was is not None and now is not None and was.type != now.type:
            lines.append(f"~ {path}: {was.type} -> {now.type} ({now.reason})")
    return "\n".join(lines)


def _line(name: str, decision: Decision) -> str:
    parts = [name, decision.type or "residual"]
    if not decision.count:
        parts.append(f"{decision.row_share:.1%} of rows")
    for part in ("typed", "null", "residual", "missing"):
        if decision.count and getattr(decision, part):
            size = f" ({human_bytes(decision.residual_bytes)})" if part == "residual" else ""
            parts.append(f"{decision.share(part):.1%} {part}{size}")
    if decision.bytes_saved:
        parts.append(f"saves {human_bytes(decision.bytes_saved)}")
    return "  ".join([*parts, decision.reason])
