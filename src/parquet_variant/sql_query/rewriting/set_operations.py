"""UNION, INTERSECT and EXCEPT of Variants: by sort keys, because the engine cannot compare Variants.

Owns the query in place of a set operation. Leaves rewriting its two sides, and which columns are Variants, to
`query`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from parquet_variant.sql_query.rewriting.scopes import OutputColumn, unique_names

_CLAUSES = ("with_", "order", "limit", "offset")


def by_sort_keys(
    node: exp.SetOperation, outputs: Sequence[OutputColumn], key: Callable[[exp.Expr], exp.Expr]
) -> exp.Select:
    """Return a query with the rows of a set operation that removes duplicates.

    `node`: the operation, whose sides are rewritten.
    `outputs`: its columns.
    `key`: returns the sort key of a Variant.
    """
    columns = [f"_c{number}" for number in range(len(outputs))]

    def keys(table: str) -> list[exp.Expr]:
        names = [exp.column(column, table=table) for column in columns]
        return [name if output.kind is None else key(name) for name, output in zip(names, outputs, strict=True)]

    def side(query: exp.Expr, name: str) -> exp.Subquery:
        alias = exp.TableAlias(this=exp.to_identifier(name), columns=[exp.to_identifier(column) for column in columns])
        return exp.Subquery(this=query, alias=alias)

    names = unique_names([output.name or f"column{number}" for number, output in enumerate(outputs)])
    items = [
        exp.alias_(exp.column(column, table="_left"), name, quoted=True)
        for column, name in zip(columns, names, strict=True)
    ]
    rows = exp.select(*items)
    if isinstance(node, exp.Union):
        both = exp.Union(this=node.this, expression=node.expression, distinct=False)
        rows = rows.from_(side(both, "_left"))
    else:
        matches: exp.Expr = exp.and_(
            *(exp.NullSafeEQ(this=a, expression=b) for a, b in zip(keys("_left"), keys("_right"), strict=True))
        )
        kind = "SEMI" if isinstance(node, exp.Intersect) else "ANTI"
        rows = rows.from_(side(node.this, "_left"))
        rows.append("joins", exp.Join(this=side(node.expression, "_right"), kind=kind, on=matches))
    rows.set("distinct", exp.Distinct(on=exp.Tuple(expressions=keys("_left"))))
    query = exp.select("*").from_(exp.Subquery(this=rows, alias=exp.TableAlias(this=exp.to_identifier("_rows"))))
    for clause in _CLAUSES:
        if (value := node.args.get(clause)) is not None:
            query.set(clause, value)
    return query
