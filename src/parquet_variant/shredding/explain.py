"""What a policy chose, as text: a tree of paths with shares and reasons, and what differs between two choices.

Owns the wording. Leaves colours to the commands, and the schema's own spellings to `ShreddingSchema`.
"""

from __future__ import annotations

import json

from parquet_variant.path import VariantPath, Wildcard
from parquet_variant.shredding.policies.decision import Decision, InferenceResult

__all__ = ["explain", "explain_diff", "explain_json"]


def explain(result: InferenceResult) -> str:
    """Draw every path that was looked at: type, share of rows, share in the residual, bytes saved, reason.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> from parquet_variant.shredding.infer import infer
    >>> rows = ['{"id": 1, "tags": ["x", 2, 3]}'] * 20 + ['{"id": 2, "note": "rare"}']
    >>> print(explain(infer(pv.parse_json(rows))))
    $  object  100.0% of rows  all object
    ├─ id  bigint  100.0% of rows  saves 85 B  all bigint
    ├─ note  residual  4.8% of rows  in 4.76% of the rows, under 15%
    └─ tags  array  95.2% of rows  all array
       └─ [*]  bigint  95.2% of rows  33.3% residual  saves 126 B  66.7% number, 33.3% string
    """
    below: dict[VariantPath, list[Decision]] = {}
    for decision in result.decisions:
        if decision.path.segments:
            below.setdefault(decision.path.parent, []).append(decision)
    root = next((decision for decision in result.decisions if not decision.path.segments), None)
    if root is None:
        return "$  nothing to shred: no values"
    lines = [_line("$", root)]
    stack = [(child, "", last) for child, last in _siblings(below, root.path)]
    while stack:
        decision, indent, last = stack.pop()
        lines.append(f"{indent}{'└─' if last else '├─'} {_line(_name(decision.path), decision)}")
        inner = indent + ("   " if last else "│  ")
        stack.extend((child, inner, ends) for child, ends in _siblings(below, decision.path))
    return "\n".join(lines)


def explain_json(result: InferenceResult) -> str:
    """The same as JSON: ``schema`` (what `ShreddingSchema.from_json` takes), ``ddl``, ``policy``, ``rows``, ``paths``.

    Examples
    --------
    >>> import json, parquet_variant as pv
    >>> from parquet_variant.shredding.infer import infer
    >>> found = json.loads(explain_json(infer(pv.parse_json(['{"a": true}']))))
    >>> found["ddl"], found["paths"][1]["path"], found["paths"][1]["reason"]
    ('a boolean', "$['a']", 'all boolean')
    """
    return json.dumps(
        {
            "policy": result.policy.name,
            "rows": result.rows,
            "ddl": result.schema.to_ddl(),
            "schema": json.loads(result.schema.to_json()),
            "paths": [
                {
                    "path": str(decision.path),
                    "type": decision.type,
                    "count": decision.count,
                    "row_share": decision.row_share,
                    "typed_share": decision.typed_share,
                    "bytes_saved": decision.bytes_saved,
                    "reason": decision.reason,
                }
                for decision in result.decisions
            ],
        },
        ensure_ascii=False,
    )


def explain_diff(before: InferenceResult, after: InferenceResult) -> str:
    """What another policy, or another threshold, changes: a line for each path, with the new reason; empty if nothing.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> from parquet_variant.shredding.infer import infer
    >>> from parquet_variant.shredding.policies.auto import AutoPolicy
    >>> rows = pv.parse_json(['{"a": 1}'] * 19 + ['{"a": 1, "b": "x"}'])
    >>> print(explain_diff(infer(rows), infer(rows, AutoPolicy(min_row_share=0.05))))
    + $['b']: string, 5.0% of rows (all string)
    """
    old = {decision.path: decision for decision in before.decisions if decision.shredded}
    new = {decision.path: decision for decision in after.decisions if decision.shredded}
    lines = []
    for path in sorted({*old, *new}, key=str):
        was, now = old.get(path), new.get(path)
        if was is None and now is not None:
            lines.append(f"+ {path}: {now.type}, {now.row_share:.1%} of rows ({now.reason})")
        elif was is not None and now is None:
            nearest = after.decision(path)
            reason = nearest.reason if nearest is not None else "not looked at"
            lines.append(f"- {path}: {was.type}, {was.row_share:.1%} of rows ({reason})")
        elif was is not None and now is not None and was.type != now.type:
            lines.append(f"~ {path}: {was.type} -> {now.type} ({now.reason})")
    return "\n".join(lines)


def _siblings(below: dict[VariantPath, list[Decision]], path: VariantPath) -> list[tuple[Decision, bool]]:
    """The decisions right below a path, last first, each with whether it is the last."""
    children = below.get(path, [])
    return [(child, child is children[-1]) for child in reversed(children)]


def _name(path: VariantPath) -> str:
    segment = path.segments[-1]
    if isinstance(segment, Wildcard):
        return "[*]"
    text = str(segment)
    return text if text.isprintable() and text else repr(text)


def _line(name: str, decision: Decision) -> str:
    parts = [name, decision.type or "residual", f"{decision.row_share:.1%} of rows"]
    if decision.type not in (None, "variant") and decision.typed_share < 1:
        parts.append(f"{1 - decision.typed_share:.1%} residual")
    if decision.bytes_saved:
        parts.append(f"saves {_human(decision.bytes_saved)}")
    return "  ".join([*parts, decision.reason])


def _human(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
