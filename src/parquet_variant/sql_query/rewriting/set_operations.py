"""UNION, INTERSECT and EXCEPT of Variants, by sort keys because the engine cannot compare Variants; outputs of queries;
and forms of syntax that the engine does not take, or runs more slowly.

Owns the query in place of a set operation, and the names and facts of outputs. Leaves rewriting queries to `query`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePath

import pyarrow as pa
from sqlglot import exp

from parquet_variant.query.rewriting.scopes import BothSides, OutputColumn, Outputs, StoredPath, unique_names
from parquet_variant.query.variant_functions import VARIANT
from parquet_variant.sql_query.rewriting.select_list import without_variant_null
from parquet_variant.support.options import SqlEngine

_BOUNDS = {exp.Anonymous, exp.Column, exp.Identifier, exp.Alias, exp.Add, exp.Sub, exp.Paren, exp.Literal}
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
    if not isinstance(tree, exp.Select) or {key for key, part in tree.args.items() if part} != {"expressions", "from_"}:
        return False
    table = tree.args["from_"].this
    if not isinstance(table, exp.Table) or {key for key, part in table.args.items() if part} - {"this", "alias"}:
        return False
    nodes = [node for item in tree.expressions for node in item.walk()]
    calls = [node for node in nodes if isinstance(node, exp.Anonymous)]
    columns = [node for node in nodes if isinstance(node, exp.Column)]
    return (
        bool(columns)
        and all(type(node) in _BOUNDS for node in nodes)
        and all(node.name.lower() in ("min", "max") and len(node.expressions) == 1 for node in calls)
        and all(isinstance(column.parent, exp.Anonymous) for column in columns)
    )


def prepared(tree: exp.Expr, engine: SqlEngine) -> exp.Expr:
    """Return a parsed query with forms in place of those that the engine does not take."""
    for exists in tree.find_all(exp.Exists):  # a literal in place of all columns, so that none is read
        query = exists.this
        if isinstance(query, exp.Select) and not query.args.get("group") and query.args.get("from_"):
            items = query.expressions
            if all(isinstance(item, exp.Star) and not any(item.args.values()) for item in items):
                query.set("expressions", [exp.Literal.number(1)])
    for select in tree.find_all(exp.Select) if engine == "duckdb" else ():
        # DuckDB needs joins with UNNEST in place of LATERAL VIEW and LATERAL explode(…).
        for lateral in select.args.get("laterals") or ():
            how = {"side": "LEFT", "on": exp.true()} if lateral.args.get("outer") else {"kind": "CROSS"}
            select.append("joins", exp.Join(this=lateral, **how))
        select.set("laterals", None)
        for join in select.args.get("joins") or ():
            call = join.this.this if isinstance(join.this, exp.Lateral) else None
            if isinstance(call, exp.Explode):
                join.set("this", exp.Unnest(expressions=[call.this], alias=join.this.args.get("alias")))
    return tree


_VARIANT = exp.DataType.build(VARIANT, dialect="duckdb")
_NUMBER = "_number"


def by_position(
    sides: tuple[exp.Expr, exp.Expr], left: Sequence[OutputColumn], right: Sequence[OutputColumn]
) -> list[tuple[exp.Expr, Sequence[OutputColumn]]]:
    """Return both sides of a set operation BY NAME as sides of one by position, with their outputs.

    A column that a side lacks is NULL there. Names that differ only in letter case are one, unless both exist.
    """
    pairs = _pairs([output.name or "" for output in left], [output.name or "" for output in right])
    columns = [(a is None and right[b or 0]) or left[a or 0] for a, b in pairs]
    names = unique_names([column.name or "" for column in columns])

    def side(
        query: exp.Expr, outputs: Sequence[OutputColumn], places: Sequence[int | None]
    ) -> tuple[exp.Expr, Sequence[OutputColumn]]:
        items: list[exp.Expr] = []
        named: list[OutputColumn] = []
        for place, name, column in zip(places, names, columns, strict=True):
            item: exp.Expr = exp.Null() if column.kind is None else exp.cast(exp.Null(), _VARIANT)
            if place is not None:
                item = exp.column(f"_c{place}", table="_side")
                item.meta["type"] = outputs[place].type
            items.append(exp.alias_(item, name, quoted=True))
            named.append(replace(column if place is None else outputs[place], name=name))
        rows = exp.Subquery(this=query, alias=table_alias("_side", _numbered(outputs)))
        return exp.select(*items).from_(rows), named

    return [side(sides[0], left, [a for a, _ in pairs]), side(sides[1], right, [b for _, b in pairs])]


def _pairs(left: Sequence[str], right: Sequence[str]) -> list[tuple[int | None, int | None]]:
    """Return the positions of the columns of both sides that have one name, and those of the other columns.

    >>> _pairs(["a", "b"], ["A", "a", "c"])
    [(0, 1), (1, None), (None, 0), (None, 2)]
    """
    free = dict(enumerate(right))
    pairs: list[tuple[int | None, int | None]] = []
    for place, name in enumerate(left):
        exact = [number for number, other in free.items() if other == name]
        matches = exact or [number for number, other in free.items() if other.lower() == name.lower()]
        pairs.append((place, matches[0] if matches else None))
        free.pop(matches[0] if matches else -1, None)
    return pairs + [(None, number) for number in free]


def table_alias(name: str, columns: Iterable[str] = ()) -> exp.TableAlias:
    """Return the alias of a relation, with names for its columns."""
    return exp.TableAlias(
        this=exp.to_identifier(name, quoted=True), columns=[exp.to_identifier(c, quoted=True) for c in columns]
    )


def _numbered(outputs: Sequence[OutputColumn]) -> dict[str, str]:
    """Return the name of each output in the result by a name that is unique for the engine, which ignores case."""
    names = unique_names([output.name or f"column{number}" for number, output in enumerate(outputs)])
    return {f"_c{number}": name for number, name in enumerate(names)}


def by_sort_keys(
    node: exp.SetOperation,
    sides: tuple[exp.Expr, exp.Expr],
    outputs: Sequence[OutputColumn],
    key: Callable[[exp.Expr], exp.Expr],
) -> exp.Select:
    """Return a query with the rows of a set operation other than UNION ALL.

    With ALL, rows of both sides are numbered among their equals, and equal numbers are part of equality.

    `outputs`: the columns of the sides, which are rewritten.
    `key`: returns the sort key of a Variant.
    """
    columns = _numbered(outputs)
    is_all = not node.args.get("distinct")

    def keys(table: str) -> list[exp.Expr]:
        names = [exp.column(column, table=table) for column in columns]
        return [name if output.kind is None else key(name) for name, output in zip(names, outputs, strict=True)]

    def side(query: exp.Expr, name: str) -> exp.Subquery:
        rows = exp.Subquery(this=query, alias=table_alias(name, columns))
        if not is_all:
            return rows
        number = exp.Window(this=exp.Anonymous(this="row_number"), partition_by=keys(name))
        numbered = exp.select("*", exp.alias_(number, _NUMBER)).from_(rows)
        return exp.Subquery(this=numbered, alias=table_alias(name))

    values = [exp.column(column, table="_left") for column in columns]
    shown = (a if a == b else without_variant_null(a, b) for a, b in zip(values, keys("_left"), strict=True))
    rows = exp.select(*(exp.alias_(v, name, quoted=True) for v, name in zip(shown, columns.values(), strict=True)))
    if isinstance(node, exp.Union):
        both = exp.Union(this=sides[0], expression=sides[1], distinct=False)
        rows = rows.from_(side(both, "_left"))
    else:
        equal: list[exp.Expr] = [
            exp.NullSafeEQ(this=a, expression=b) for a, b in zip(keys("_left"), keys("_right"), strict=True)
        ]
        if is_all:
            numbers = [exp.column(_NUMBER, table=table) for table in ("_left", "_right")]
            equal.append(exp.EQ(this=numbers[0], expression=numbers[1]))
        kind = "SEMI" if isinstance(node, exp.Intersect) else "ANTI"
        rows = rows.from_(side(sides[0], "_left"))
        rows.append("joins", exp.Join(this=side(sides[1], "_right"), kind=kind, on=exp.and_(*equal)))
    if not is_all:
        rows.set("distinct", exp.Distinct(on=exp.Tuple(expressions=keys("_left"))))
    return exp.select("*").from_(exp.Subquery(this=rows, alias=table_alias("_rows")))


def in_common(output: OutputColumn, other: OutputColumn) -> OutputColumn:
    """Return an output of both sides of a set operation: its types are those that both have."""
    kind = output.type if output.type == other.type else output.kind or other.kind
    place = StoredPath(BothSides(output.place, other.place), "") if output.place and other.place else None
    return replace(output, type=kind, common=output.common if output.common == other.common else None, place=place)


def rename_outputs(outputs: Outputs, alias: exp.Expr | None) -> Outputs:
    """Return outputs with the names of an alias such as ``x(a, b)``; repeated names are numbered."""
    if outputs is None:
        return None
    names = [column.name for column in alias.args.get("columns") or ()] if isinstance(alias, exp.Expr) else []
    if not names:
        shown = unique_names([output.name or "" for output in outputs])
        names = [name if output.name else output.name for name, output in zip(shown, outputs, strict=True)]
    names += [output.name for output in outputs[len(names) :]]
    return [replace(output, name=name) for name, output in zip(names, outputs, strict=False)]


def typed_result(
    query: exp.Expr,
    outputs: Outputs,
    cast: Callable[[exp.Expr, pa.DataType], exp.Expr],
    others: Sequence[OutputColumn] | None = None,
) -> tuple[exp.Expr, Outputs]:
    """Return a query whose Variants have the type of all their values, as far as it is known, and its outputs.

    `cast`: returns the cast of a Variant.
    `others`: the outputs of the other side of a set operation; Variants next to Variants remain what they are.
    """
    pairs = zip(outputs or (), others or [OutputColumn("")] * len(outputs or ()), strict=True)
    types = [output.common if other.kind is None and output.is_variant else None for output, other in pairs]
    if outputs is None or not any(types):
        return query, outputs
    columns = _numbered(outputs)
    values: list[exp.Expr] = [exp.column(column, table="_result") for column in columns]
    typed = [value if kind is None else cast(value, kind) for value, kind in zip(values, types, strict=True)]
    items = map(partial(exp.alias_, quoted=True), typed, columns.values())
    rows = exp.select(*items).from_(exp.Subquery(this=query, alias=table_alias("_result", columns)))
    return rows, [o if t is None else replace(o, type=t, place=None) for o, t in zip(outputs, types, strict=True)]
