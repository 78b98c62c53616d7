"""Rewritings of syntax that need no names: forms that the engine does not take, or runs more slowly.

Owns these forms, and recognising queries for the least and greatest values. Leaves names and Variants to `query`.
"""

from __future__ import annotations

from pathlib import PurePath

from sqlglot import exp

from parquet_variant.support.choices import SqlEngine

_BOUNDS = {exp.Min, exp.Max, exp.Column, exp.Identifier, exp.Alias, exp.Add, exp.Sub, exp.Paren, exp.Literal}
_PARTS = ("hour", "minute", "second", "year", "month", "day")


def use_local_instants(tree: exp.Expr) -> None:
    """In UTC, take the parts of an instant from a timestamp without a zone, which is faster in DuckDB."""
    for node in tree.find_all(exp.Anonymous):
        parent = node.parent
        is_part = isinstance(parent, exp.Extract) or parent.name.lower() in _PARTS if parent is not None else False
        if node.name.lower() == "make_timestamptz" and is_part:
            node.set("this", "make_timestamp")


def stem_of_path(path: str) -> str:
    """Return the alias of a path: its last part without the extension, as in DuckDB."""
    last = PurePath(path.rstrip("/")).name.split("?")[0]
    return last.split(".")[0] or last or path


def asks_for_bounds(tree: exp.Expr) -> bool:
    """Return whether a query is only ``SELECT min(a), max(b) FROM t``, perhaps with sums and differences of these."""
    if not isinstance(tree, exp.Select) or _set_arguments(tree) != {"expressions", "from_"}:
        return False
    table = tree.args["from_"].this
    if not isinstance(table, exp.Table) or _set_arguments(table) - {"this", "alias"}:
        return False
    nodes = [node for item in tree.expressions for node in item.walk()]
    columns = [node for node in nodes if isinstance(node, exp.Column)]
    return (
        bool(columns)
        and all(type(node) in _BOUNDS for node in nodes)
        and all(isinstance(column.parent, (exp.Min, exp.Max)) for column in columns)
        and all(_set_arguments(node) == {"this"} for node in nodes if isinstance(node, (exp.Min, exp.Max)))
    )


def _set_arguments(node: exp.Expr) -> set[str]:
    return {key for key, value in node.args.items() if value}


def is_sampled(node: exp.Expr) -> bool:
    """Return whether a relation has TABLESAMPLE."""
    return node.args.get("sample") is not None


def prepared(tree: exp.Expr, engine: SqlEngine) -> exp.Expr:
    """Return a parsed query with forms in place of those that the engine does not take."""
    tree = tree.transform(_without_parentheses, copy=False)
    for exists in tree.find_all(exp.Exists):
        _select_rows_alone(exists.this)
    for select in tree.find_all(exp.Select) if engine == "duckdb" else ():
        _explode_by_joins(select)
    return tree


def _explode_by_joins(node: exp.Select) -> None:
    """Rewrite LATERAL VIEW and LATERAL explode(…) as joins with UNNEST, as DuckDB needs them."""
    for lateral in node.args.get("laterals") or ():
        how = {"side": "LEFT", "on": exp.true()} if lateral.args.get("outer") else {"kind": "CROSS"}
        node.append("joins", exp.Join(this=lateral, **how))
    node.set("laterals", None)
    for join in node.args.get("joins") or ():
        call = join.this.this if isinstance(join.this, exp.Lateral) else None
        if isinstance(call, exp.Explode):
            join.set("this", exp.Unnest(expressions=[call.this], alias=join.this.args.get("alias")))


def _without_parentheses(node: exp.Expr) -> exp.Expr:
    """Remove parentheses around a relation: DuckDB 2.0.1 refuses ``FROM (t)``."""
    while (
        isinstance(node, exp.Subquery)
        and isinstance(node.unnest(), exp.Table)
        and not (node.alias or node.args.get("pivots") or node.this.args.get("joins"))
    ):
        inner = node.this
        inner.set("joins", node.args.get("joins"))
        node = inner
    return node


def _select_rows_alone(query: exp.Expr) -> None:
    """Select a literal in place of all columns in a query of EXISTS, so that no column is read for it."""
    if isinstance(query, exp.Select) and not query.args.get("group") and query.args.get("from_"):
        items = query.expressions
        if all(isinstance(item, exp.Star) and not any(item.args.values()) for item in items):
            query.set("expressions", [exp.Literal.number(1)])
