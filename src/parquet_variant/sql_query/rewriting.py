"""A query over Variants as a query over typed columns: which table gives which columns, filtered how, and the text.

Owns the walk over a parsed query: each place that names a table gets a number, each path into one of its Variants
becomes a column of it, conditions are pushed down where a join allows it. A Variant that comes from elsewhere (out of
a subquery or COALESCE) is read by a function of the engine. Leaves expressions to `values`, names to `scopes`, and
reading to `tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import PurePath
from typing import Any

from sqlglot import exp

from parquet_variant.choices import SqlEngine
from parquet_variant.query.predicate import And, Predicate
from parquet_variant.query.sql_dialect import SqlError, parse_sql, to_sql
from parquet_variant.query.sql_pushdown import pushdown
from parquet_variant.query.sql_terms import VariantTerm
from parquet_variant.sql_query.scopes import OutputColumn, Relation, Scope, TableUse
from parquet_variant.sql_query.tables import BoundTable
from parquet_variant.sql_query.values import USE, Values

__all__ = ["Getter", "Rewritten", "rewrite"]

Outputs = Sequence[OutputColumn] | None
_NUMBERS = count(1)
# What a query is made of that needs no more of its columns than their least and greatest values.
_BOUNDS = {exp.Min, exp.Max, exp.Column, exp.Identifier, exp.Alias, exp.Add, exp.Sub, exp.Paren, exp.Literal}


@dataclass(frozen=True, slots=True)
class Getter:
    """A function that the engine's text calls on a Variant: what is at a path, or without one its JSON."""

    name: str
    term: VariantTerm | None


@dataclass(slots=True)
class Rewritten:
    """A query, rewritten.

    Parameters
    ----------
    text
        The engine's text.
    uses
        What is read: a relation of the text each.
    getters
        Functions that the text calls.
    describes
        Whether the query asks for its columns, not its rows.
    unknown
        What to say about a name that is no column, if the engine does not know it either.
    outputs
        The columns of the answer, where they are known.
    only_bounds
        Whether of all rows only the least and the greatest value of each column count.
    """

    text: str = ""
    uses: list[TableUse] = field(default_factory=list)
    getters: list[Getter] = field(default_factory=list)
    describes: bool = False
    unknown: list[str] = field(default_factory=list)
    outputs: Outputs = None
    only_bounds: bool = False

    def predicate(self, use: TableUse) -> Predicate | None:
        """All that is pushed down to one use of a table."""
        if not use.filters:
            return None
        return use.filters[0] if len(use.filters) == 1 else And(tuple(use.filters))


def rewrite(
    text: str, bind: Callable[[str], BoundTable | None], *, engine: SqlEngine = "duckdb", zone: str = "UTC"
) -> Rewritten:
    """Rewrite a query.

    Parameters
    ----------
    text
        The query.
    bind
        The table that a name or path in FROM stands for; None for one that only the engine may know.
    engine
        Whose SQL it is.
    zone
        The session time zone.

    Raises
    ------
    SqlError, PathError
        If it cannot be read, or asks of a Variant what only typed values have.
    VariantError
        What `bind` raises.
    """
    tree = parse_sql(text, engine)
    return _Rewriter(bind, engine, zone).whole(tree)


class _Rewriter:
    def __init__(self, bind: Callable[[str], BoundTable | None], engine: SqlEngine, zone: str) -> None:
        self.bind, self.engine, self.zone = bind, engine, zone
        self.found = Rewritten()

    def whole(self, tree: exp.Expr) -> Rewritten:
        if isinstance(tree, (exp.Describe, exp.Summarize)):
            self.found.describes = isinstance(tree, exp.Describe)
            inner = tree.this
            if isinstance(inner, exp.Table):
                inner = exp.Select(expressions=[exp.Star()]).from_(inner.copy())
            self.found.outputs = self.query(inner, Scope({}))
            if isinstance(tree, exp.Summarize) and any(each.is_variant for each in self.found.outputs or ()):
                raise SqlError(
                    "SUMMARIZE compares values: select typed columns, such as SUMMARIZE SELECT v:a::int FROM t"
                )
            prefix = "DESCRIBE " if isinstance(tree, exp.Describe) else "SUMMARIZE "
            self.found.text = prefix + to_sql(inner, self.engine)
            return self.found
        self.found.outputs = self.query(tree, Scope({}))
        self.found.only_bounds = self.engine == "duckdb" and _asks_for_bounds(tree)
        if self.zone == "UTC" and self.engine == "duckdb":
            _parts_of_instants(tree)
        self.found.text = to_sql(tree, self.engine)
        return self.found

    # ---- queries: each gives its outputs, and rewrites its node in place

    def query(self, node: exp.Expr, around: Scope, recursive: str | None = None) -> Outputs:
        scope = Scope(dict(around.ctes), around.outer)
        if around.relations or around.locals:
            scope.outer = around
        self._with(node, scope)
        if isinstance(node, exp.Select):
            return self._select(node, scope)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, scope, recursive)
        if isinstance(node, exp.Subquery):
            outputs = self.query(node.this, scope)
            self._modifiers(node, scope, outputs)
            return outputs
        if isinstance(node, exp.Table):
            self._table(node, scope)
            return None
        self._generic(node, scope)
        return None

    def _with(self, node: exp.Expr, scope: Scope) -> None:
        clause: Any = node.args.get("with_")
        for cte in () if clause is None else clause.expressions:
            name = cte.alias.lower()
            recursive = name if clause.args.get("recursive") else None
            if recursive and not isinstance(cte.this, exp.SetOperation):
                recursive = None
            outputs = self.query(cte.this, scope, recursive)
            scope.ctes[name] = _named(outputs, cte.args.get("alias"))

    def _set_operation(self, node: exp.SetOperation, scope: Scope, recursive: str | None) -> Outputs:
        left = self.query(node.this, scope)
        if recursive:
            scope.ctes[recursive] = left
        right = self.query(node.expression, scope)
        variant = [each.name or "?" for each in (*(left or ()), *(right or ())) if each.is_variant]
        if variant and (node.args.get("distinct") or not isinstance(node, exp.Union)):
            raise SqlError(
                f"{type(node).__name__.upper()} compares rows, and {variant[0]} is a Variant: cast it, as in "
                f"{variant[0]}::string, or write UNION ALL"
            )
        if left is not None and right is not None and len(left) == len(right) and not node.args.get("by_name"):
            left = [OutputColumn(a.name, a.is_variant or b.is_variant) for a, b in zip(left, right, strict=True)]
        self._modifiers(node, scope, left)
        return left

    def _modifiers(self, node: exp.Expr, scope: Scope, outputs: Outputs) -> None:
        """ORDER BY, LIMIT and the like over a whole set operation or subquery: they name its outputs."""
        inner = Scope(scope.ctes, scope.outer)
        inner.relations.append(Relation("", outputs or (), is_open=True))
        for key in ("order", "limit", "offset"):
            if isinstance(clause := node.args.get(key), exp.Expr):
                Values(self, inner).clause(clause, outputs)

    def _select(self, node: exp.Select, scope: Scope) -> Outputs:
        if (from_ := node.args.get("from_")) is not None:
            self._relation(from_.this, scope)
        joins = node.args.get("joins") or []
        for join in joins:
            self._relation(join.this, scope)
        for lateral in node.args.get("laterals") or []:
            self._lateral(lateral, scope)
        _merge_columns(joins, scope)
        values = Values(self, scope)
        for join in joins:
            if isinstance(join.args.get("on"), exp.Expr):
                join.set("on", values.value(join.args["on"]))
        outputs = values.select_list(node)
        for key in (
            "where",
            "group",
            "having",
            "qualify",
            "windows",
            "distinct",
            "order",
            "sort",
            "cluster",
            "limit",
            "offset",
        ):
            clause = node.args.get(key)
            for each in clause if isinstance(clause, list) else [clause]:
                if isinstance(each, exp.Expr):
                    values.clause(each, outputs)
        if node.args.get("distinct") is not None and node.args["distinct"].args.get("on") is None:
            self._refuse_variants(outputs, "DISTINCT")
        values.finish_stars()
        self._push_down(node, joins, scope)
        return outputs

    def _refuse_variants(self, outputs: Outputs, what: str) -> None:
        for each in outputs or ():
            if each.is_variant:
                raise SqlError(
                    f"{what} compares values, and {each.name or 'an output'} is a Variant: cast it, as in ::string"
                )

    def _generic(self, node: exp.Expr, scope: Scope) -> None:
        Values(self, scope).children(node)

    # ---- FROM

    def _relation(self, node: exp.Expr, scope: Scope) -> None:
        if isinstance(node, exp.Table) and not isinstance(node.this, (exp.Anonymous, exp.Func)):
            scope.relations.append(self._table(node, scope))
        elif isinstance(node, exp.Subquery):
            outputs = self.query(node.this, scope)  # DuckDB takes a correlated one without LATERAL
            outputs = _named(outputs, node.args.get("alias"))
            opened = outputs is None or bool(node.args.get("pivots"))
            scope.relations.append(Relation(node.alias, outputs or (), is_open=opened))
        elif isinstance(node, exp.Lateral):
            self._lateral(node, scope)
        else:  # a function, VALUES, UNNEST
            self._generic(node, scope)
            scope.relations.append(Relation(node.alias_or_name, (), is_open=True))
        for join in node.args.get("joins") or ():  # FROM (a JOIN b)
            self._relation(join.this, scope)
            if isinstance(join.args.get("on"), exp.Expr):
                join.set("on", Values(self, scope).value(join.args["on"]))

    def _lateral(self, node: exp.Expr, scope: Scope) -> None:
        inner = node.this
        outputs = None
        if isinstance(inner, exp.Subquery):
            outputs = self.query(inner.this, Scope(scope.ctes, scope, []))
        else:
            self._generic(node, scope)
        outputs = _named(outputs, node.args.get("alias"))
        scope.relations.append(Relation(node.alias, outputs or (), is_open=outputs is None))

    def _table(self, node: exp.Table, scope: Scope) -> Relation:
        name = ".".join(part.name for part in node.parts)
        alias = node.args.get("alias")
        if name.lower() in scope.ctes and len(node.parts) == 1:
            outputs = _named(scope.ctes[name.lower()], alias)
            return Relation(node.alias or name, outputs or (), is_open=outputs is None)
        path = node.parts[-1].name if len(node.parts) == 2 and node.parts[0].name.lower() in _FORMATS else name
        table = self.bind(path)
        if table is None:
            return Relation(node.alias_or_name, (), is_open=True)
        if node.args.get("pivots"):
            raise SqlError(
                f"PIVOT over {path}: write it over a subquery with typed columns, (SELECT v:a::string AS a FROM …)"
            )
        use = TableUse(len(self.found.uses) + 1, table)
        self.found.uses.append(use)
        every = dict.fromkeys((*table.order, *table.columns.variants))  # also those inside of structs
        columns = [OutputColumn(each, each in table.columns.variants) for each in every]
        shown = node.alias or _stem(name)
        relation = Relation(shown, _named(columns, alias) or (), use)
        use_alias = exp.TableAlias(this=exp.to_identifier(shown, quoted=True))
        if alias is not None and alias.args.get("columns"):
            raise SqlError(f"{shown}({', '.join(each.name for each in alias.columns)}): name columns in a subquery")
        for key in ("db", "catalog"):
            node.set(key, None)
        node.set("this", exp.to_identifier(use.relation))
        node.set("alias", use_alias)
        return relation

    # ---- filters

    def _push_down(self, node: exp.Select, joins: list[exp.Join], scope: Scope) -> None:
        """Give each table the conditions that all rows of the answer come from."""
        tables = [relation.use for relation in scope.relations]
        from_ = node.args.get("from_")
        if from_ is None or len(tables) != len(joins) + 1 or from_.this.args.get("joins"):
            return
        preserved = [not _is_sampled(from_.this)]
        for number, join in enumerate(joins, 1):
            side = str(join.args.get("side") or "").upper()
            kinds = {str(join.args.get(key) or "").upper() for key in ("kind", "method")}
            plain = kinds <= {"", "INNER", "CROSS", "OUTER", "NATURAL"} and not join.args.get("nearest")
            whole = plain and not _is_sampled(join.this)  # every row of the table is looked at, each on its own
            if side in ("RIGHT", "FULL") or "POSITIONAL" in kinds:
                preserved = [False] * number
            preserved.append(whole and side in ("", "RIGHT"))
            condition = join.args.get("on")
            if condition is not None and whole and side in ("", "LEFT"):
                self._push(condition, tables[number])
        where = node.args.get("where")
        for use, keeps in zip(tables, preserved, strict=True):
            if where is not None and keeps:
                self._push(where.this, use)

    def _push(self, condition: exp.Expr, use: TableUse | None) -> None:
        if use is None or not use.table.skips:
            return

        def known(node: exp.Expr) -> tuple[str, Any] | None:
            if not isinstance(node, exp.Column) or node.meta.get(USE) != use.number:
                return None
            ordinary = use.table.columns.ordinary
            return node.name, ordinary[node.name] if node.name in ordinary else node.meta.get("type")

        predicate = pushdown(condition, known, self.zone)
        if predicate is not None:
            use.filters.append(predicate)

    def getter(self, term: VariantTerm | None) -> str:
        """The name of the function that reads a path of a Variant that is no column of a table, or its JSON."""
        name = f"_variant_function_{next(_NUMBERS)}"  # all queries of a process share DuckDB's functions
        self.found.getters.append(Getter(name, term))
        return name


def _parts_of_instants(tree: exp.Expr) -> None:
    """In UTC, the parts of an instant are those of its date and time, which DuckDB tells without a calendar."""
    for node in tree.find_all(exp.Anonymous):
        around = node.parent
        of_part = isinstance(around, exp.Extract) or around.name.lower() in _PARTS if around is not None else False
        if node.name.lower() == "make_timestamptz" and of_part:
            node.set("this", "make_timestamp")


_PARTS = ("hour", "minute", "second", "year", "month", "day")
_FORMATS = ("parquet", "delta", "vortex")


def _stem(path: str) -> str:
    """What qualifies the columns of a path: its last part without the ending, as DuckDB has it."""
    last = PurePath(path.rstrip("/")).name.split("?")[0]
    return last.split(".")[0] or last or path


def _asks_for_bounds(tree: exp.Expr) -> bool:
    """Whether a query is ``SELECT min(a), max(b) FROM t`` and no more; also with numbers added, subtracted."""
    if not isinstance(tree, exp.Select) or _parts(tree) != {"expressions", "from_"}:
        return False
    table = tree.args["from_"].this
    if not isinstance(table, exp.Table) or _parts(table) - {"this", "alias"}:
        return False
    nodes = [node for item in tree.expressions for node in item.walk()]
    columns = [node for node in nodes if isinstance(node, exp.Column)]
    return (
        bool(columns)
        and all(type(node) in _BOUNDS for node in nodes)
        and all(isinstance(column.parent, (exp.Min, exp.Max)) for column in columns)
        and all(_parts(node) == {"this"} for node in nodes if isinstance(node, (exp.Min, exp.Max)))
    )


def _parts(node: exp.Expr) -> set[str]:
    return {key for key, value in node.args.items() if value}


def _named(outputs: Outputs, alias: exp.Expr | None) -> Outputs:
    """Outputs under the names that an alias such as ``x(a, b)`` gives."""
    names = [each.name for each in alias.args.get("columns") or ()] if isinstance(alias, exp.Expr) else []
    if outputs is None or not names:
        return outputs
    names_of_outputs = [*names, *(each.name for each in outputs[len(names) :])]
    return [OutputColumn(name, each.is_variant) for name, each in zip(names_of_outputs, outputs, strict=False)]


def _is_sampled(node: exp.Expr) -> bool:
    return node.args.get("sample") is not None


def _merge_columns(joins: list[exp.Join], scope: Scope) -> None:
    """The columns that USING and NATURAL compare: every side has to give them, and none may be a Variant."""
    for number, join in enumerate(joins, 1):
        names = [each.name for each in join.args.get("using") or ()]
        if str(join.args.get("method") or "").upper() == "NATURAL" and number < len(scope.relations):
            right = scope.relations[number]
            earlier = {(each.name or "").lower() for left in scope.relations[:number] for each in left.columns}
            names += [each.name for each in right.columns if each.name and each.name.lower() in earlier]
        for name in names:
            scope.merged.add(name.lower())
            for hit in scope.everywhere(name):
                if hit.column.is_variant:
                    raise SqlError(f"{name} is a Variant, which cannot be compared: join ON {name}:key::type instead")
                if (use := hit.relation.use) is not None:
                    use.needed[hit.column.name or name] = use.table.needs(hit.column.name or name)
