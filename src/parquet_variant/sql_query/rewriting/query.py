"""Rewriting a query over Variants as a query over typed columns: the text for the engine, and what each table provides.

Owns the traversal of a parsed query. Each place that names a table gets a number, each path into one of its Variants
becomes a column, and conditions are pushed down where a join allows it. Other Variants, such as those of a subquery or
of COALESCE, are read by functions of the engine. Leaves expressions to `expressions` and `select_list`, names to
`scopes`, and reading to `tables`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from parquet_variant.query.predicate import columns_of
from parquet_variant.query.rewriting.expressions import ExpressionRewriter
from parquet_variant.query.rewriting.scopes import OutputColumn, Outputs, Relation, Scope, TableUse, merge_columns
from parquet_variant.query.rewriting.values import QueryContext, copies, engine_call
from parquet_variant.query.selection import is_variant
from parquet_variant.query.spark_meaning import with_earlier_instants
from parquet_variant.query.sql_dialect import SqlError, from_template, parse_sql, to_sql, written
from parquet_variant.query.variant_functions import EXPLODES
from parquet_variant.sql_query.rewriting.select_list import SelectList
from parquet_variant.sql_query.rewriting.set_operations import (
    asks_for_bounds,
    by_position,
    by_sort_keys,
    in_common,
    prepared,
    rename_outputs,
    stem_of_path,
    table_alias,
    typed_result,
    use_local_instants,
)
from parquet_variant.sql_query.tables import BoundTable
from parquet_variant.sql_query.typed_view import typed_table
from parquet_variant.support.options import SqlEngine
from parquet_variant.types.targets import VARIANT_STORAGE

_FORMATS = ("parquet", "delta", "vortex")
_CLAUSES = ["where", "group", "having", "qualify", "windows", "distinct", "order", "sort", "cluster", "limit", "offset"]


class Rewritten(QueryContext):
    """A query that is rewritten, and what its text needs.

    `bind`: returns the table of a name or path in FROM; None for a name that only the engine may know.
    `strict`: whether scans raise for failed casts, so that those of ``try_cast`` are not left to them.
    """

    def __init__(self, bind: Callable[[str], BoundTable | None], engine: SqlEngine, zone: str, *, strict: bool) -> None:
        super().__init__(engine, zone, strict)
        self.bind = bind
        self.text = ""  # The text for the engine.
        self.uses: list[TableUse] = []  # The places that name a table, each a relation of the text.
        self.describes = False  # Whether the query is DESCRIBE.
        self.only_bounds = False  # Whether only the least and the greatest value of each column are needed.
        self.result: exp.Expr | None = None  # The SELECT whose rows are the result.

    def rewrite(self, text: str, params: Any = None) -> Rewritten:
        """Rewrite a query with the values of its parameters.

        Raises `SqlError` or `PathError` if the query is invalid, or computes with a Variant without a type; and the
        errors of `bind`.
        """
        tree = parse_sql(text, self.engine, params=params)
        try:
            self._rewrite(prepared(tree, self.engine))
        except RecursionError:
            raise SqlError("the SQL is nested too deeply") from None
        return self

    def _rewrite(self, tree: exp.Expr) -> None:
        inner, prefix = tree, ""
        if isinstance(tree, (exp.Describe, exp.Summarize)):
            inner, prefix = tree.this, f"{type(tree).__name__.upper()} "
            if isinstance(inner, exp.Schema) and inner.this.name.lower() == "typed":  # parsed as columns of a table
                names = [exp.column(name.copy()) for name in inner.expressions]
                inner = exp.Table(this=exp.Anonymous(this="typed", expressions=names))
            if isinstance(inner, exp.Literal):  # the path of SUMMARIZE
                inner = exp.Table(this=exp.to_identifier(inner.name, quoted=True))
            if isinstance(inner, exp.Table):
                inner = exp.Select(expressions=[exp.Star()]).from_(inner.copy())
        self.result = inner
        inner, outputs = self.query(inner, Scope({}))
        if isinstance(tree, exp.Summarize) and any(output.kind is not None for output in outputs or ()):
            raise SqlError(
                "SUMMARIZE cannot summarize a Variant: select typed columns, as in SUMMARIZE SELECT * FROM typed(t)"
            )
        self.only_bounds = self.engine == "duckdb" and not prefix and asks_for_bounds(inner)
        if self.engine == "duckdb":
            if self.zone == "UTC":
                use_local_instants(inner)
            inner, _ = typed_result(inner, outputs, ExpressionRewriter(self, Scope({})).cast_to)
            inner = with_earlier_instants(inner, self.zone)
        self.text = prefix + to_sql(inner, self.engine)
        self.describes = isinstance(tree, exp.Describe)
        # Variants that the text does not name are not read: their paths or their only type took their place.
        shown = {identifier.name for identifier in inner.find_all(exp.Identifier)}
        if inner.find(exp.Star):
            shown.update(name for use in self.uses for name in use.table.columns.variants)
        for use in self.uses:
            shown.update(name for predicate in use.filters for name in columns_of(predicate))
            for name in [name for name in use.needed if name not in shown]:
                if name.startswith(use.prefix) or name in use.table.columns.variants:
                    del use.needed[name]

    def query(self, node: exp.Expr, around: Scope, recursive: exp.CTE | None = None) -> tuple[exp.Expr, Outputs]:
        """Rewrite a query, or a query inside it."""
        scope = Scope(dict(around.ctes), around.outer)
        if around.relations or around.locals:
            scope.outer = around
        clause = self._with_clause(node, scope)
        rewritten, outputs = self._query(node, scope, recursive)
        if clause is not None:
            rewritten.set("with_", clause)
        if isinstance(node.parent, exp.In) and len(outputs or ()) > 1 and self.engine == "duckdb":
            typed, outputs = typed_result(rewritten, outputs, ExpressionRewriter(self, scope).cast_to)
            rewritten = typed if typed is rewritten else exp.Subquery(this=typed)
        return rewritten, outputs

    def _query(self, node: exp.Expr, scope: Scope, recursive: exp.CTE | None) -> tuple[exp.Expr, Outputs]:
        if isinstance(node, exp.Select):
            return self._select(node, scope)
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, scope, recursive)
        if isinstance(node, exp.Subquery):
            inner, outputs = self.query(node.this, scope)
            rewritten = _with_parts(node, this=inner)
            self._modifiers(node, rewritten, scope, outputs)
            return rewritten, outputs
        if isinstance(node, exp.Table):
            return self._relation(node, scope), None
        if isinstance(node, exp.Pivot):
            return _with_parts(node, this=self._pivoted(node.this, scope)), None
        return ExpressionRewriter(self, scope).rebuild(node), None

    def _with_clause(self, node: exp.Expr, scope: Scope) -> exp.With | None:
        clause: Any = node.args.get("with_")
        if clause is None:
            return None
        queries = []
        for cte in clause.expressions:
            recursive = clause.args.get("recursive") and isinstance(cte.this, exp.SetOperation)
            inner, outputs = self.query(cte.this, scope, cte if recursive else None)
            scope.ctes[cte.alias.lower()] = rename_outputs(outputs, cte.args.get("alias"))
            queries.append(_with_parts(cte, this=inner))
        return _with_parts(clause, expressions=queries)

    def _set_operation(
        self, node: exp.SetOperation, scope: Scope, recursive: exp.CTE | None
    ) -> tuple[exp.Expr, Outputs]:
        left, outputs = self.query(node.this, scope)
        if recursive is not None:
            first = None if outputs is None else [replace(output, common=None, place=None) for output in outputs]
            scope.ctes[recursive.alias.lower()] = rename_outputs(first, recursive.args.get("alias"))
        right, added = self.query(node.expression, scope)
        by_name = node.args.get("by_name")
        if by_name and outputs is not None and added is not None:
            (left, outputs), (right, added) = by_position((left, right), outputs, added)
            by_name = None
        has_places = outputs is not None and added is not None and len(outputs) == len(added)
        if has_places and recursive is None and self.engine == "duckdb":
            cast, before = ExpressionRewriter(self, scope).cast_to, outputs
            left, outputs = typed_result(left, outputs, cast, added)
            right, added = typed_result(right, added, cast, before)
        pairs = list(zip(outputs or (), added or (), strict=False))
        variants = [output.name or "?" for output in (*(outputs or ()), *(added or ())) if output.kind is not None]
        rewritten: exp.Expr = _with_parts(node, this=left, expression=right, by_name=by_name)
        if variants and (node.args.get("distinct") or not isinstance(node, exp.Union)):
            # Sort keys compare Variants that are in the same places of both sides.
            is_alike = has_places and all(
                (a.kind is None) == (b.kind is None) and (a.kind is None or (a.is_variant and b.is_variant))
                for a, b in pairs
            )
            if not is_alike or by_name or recursive is not None or self.engine != "duckdb" or outputs is None:
                raise SqlError(
                    f"{node.key.upper()} cannot compare {variants[0]}, which is a Variant on one side or inside "
                    f"another type: cast it, as in {variants[0]}::string, or write UNION ALL"
                )
            rewritten = by_sort_keys(node, (left, right), outputs, ExpressionRewriter(self, scope).key_of)
            self._modifiers(node, rewritten, scope, outputs)
            # The rows of other operations than UNION are those of the left side.
            return rewritten, [in_common(a, b) for a, b in pairs] if isinstance(node, exp.Union) else outputs
        if has_places and not by_name:
            outputs = [in_common(a, b) for a, b in pairs]
        self._modifiers(node, rewritten, scope, outputs)
        return rewritten, outputs

    def _modifiers(self, node: exp.Expr, rewritten: exp.Expr, scope: Scope, outputs: Outputs) -> None:
        """Rewrite ORDER BY, LIMIT and OFFSET of a set operation or subquery, which name its outputs."""
        inner = Scope(scope.ctes, scope.outer)
        inner.relations.append(Relation("", outputs or (), is_open=True))
        values = SelectList(self, inner)
        values.outputs = None if outputs is None else list(outputs)
        for key in ("order", "limit", "offset"):
            if isinstance(clause := node.args.get(key), exp.Expr):
                rewritten.set(key, values.clause(clause))

    def _select(self, node: exp.Select, scope: Scope) -> tuple[exp.Expr, Outputs]:
        parts: dict[str, Any] = {}
        if (from_ := node.args.get("from_")) is not None:
            parts["from_"] = exp.From(this=self._relation(from_.this, scope))
        values = SelectList(self, scope, is_result=node is self.result)
        joins = [self._join(join, scope, values) for join in node.args.get("joins") or ()]
        parts["laterals"] = [self._lateral(lateral, scope) for lateral in node.args.get("laterals") or ()] or None
        items = values.select_list(node)
        for key in _CLAUSES:
            clause = node.args.get(key)
            if isinstance(clause, exp.Expr):
                parts[key] = values.clause(clause)
            elif isinstance(clause, list):
                parts[key] = [values.clause(part) for part in clause]
        parts["expressions"] = [values.of_group(item) for item in items]
        if node.args.get("distinct") is not None and node.args["distinct"].args.get("on") is None:
            parts["distinct"] = values.distinct(node, parts["expressions"]) or parts["distinct"]
        values.finish_stars()
        rewritten = _with_parts(node, joins=joins or None, **parts)
        self._push_down(rewritten, scope)
        return rewritten, values.outputs

    def _relation(self, node: exp.Expr, scope: Scope) -> exp.Expr:
        rewritten = self._relation_alone(node, scope)
        joins = node.args.get("joins")  # FROM (a JOIN b)
        if joins:
            values = ExpressionRewriter(self, scope)
            rewritten.set("joins", [self._join(join, scope, values) for join in joins])
        return rewritten

    def _relation_alone(self, node: exp.Expr, scope: Scope) -> exp.Expr:
        grouped = isinstance(node, exp.Subquery) and isinstance(node.unnest(), exp.Table)
        if grouped and node.alias and not node.args.get("pivots"):  # (a JOIN b ON …) x
            node = _with_parts(node, this=exp.select("*").from_(node.this.copy()))
            grouped = False
        if node.args.get("pivots"):
            shown = node.args["pivots"][-1].alias or node.alias_or_name
            rewritten = self._pivoted(node, scope)
            scope.relations.append(Relation(shown, (), is_open=True))
            return rewritten
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous) and node.this.name.lower() == "typed":
            return self._typed_relation(node, scope)
        if isinstance(node, exp.Table) and not isinstance(node.this, (exp.Anonymous, exp.Func)):
            return self._table(node, scope)
        if grouped and not node.this.args.get("joins"):  # DuckDB 2.0.1 refuses parentheses, as in FROM (t)
            sample = node.args.get("sample") or node.this.args.get("sample")
            return self._relation_alone(_with_parts(node.this, sample=sample), scope)
        if grouped:  # (a JOIN b ON …): both names are visible outside
            return _with_parts(node, this=self._relation(node.this, scope))
        if isinstance(node, exp.Subquery):
            inner, outputs = self.query(node.this, scope)  # DuckDB takes a correlated one without LATERAL
            outputs = rename_outputs(outputs, node.args.get("alias"))
            scope.relations.append(Relation(node.alias, outputs or (), is_open=outputs is None))
            return _with_parts(node, this=inner)
        if isinstance(node, exp.Lateral):
            return self._lateral(node, scope)
        exploded = self._explode_relation(node, node.this if isinstance(node, exp.Table) else node, scope)
        return self._function(node, node, scope) if exploded is None else exploded  # also VALUES, UNNEST

    def _join(self, join: exp.Join, scope: Scope, values: ExpressionRewriter) -> exp.Join:
        """Add the relation of a join; the right side of SEMI and ANTI JOIN cannot be named after its condition."""
        start = len(scope.relations)
        rewritten = _with_parts(join, this=self._relation(join.this, scope))
        merge_columns(join, scope, start, self.zone)
        if isinstance(join.args.get("on"), exp.Expr):
            rewritten.set("on", values.plain(join.args["on"]))
        if str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI"):
            for relation in scope.relations[start:]:
                relation.is_visible = False
        return rewritten

    def _pivoted(self, node: exp.Expr, scope: Scope) -> exp.Expr:
        """Return the input of PIVOT or UNPIVOT as a subquery, none of whose columns may hold Variants."""
        if isinstance(node, exp.Table):
            alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(node.name, quoted=True))
            table = _with_parts(node, pivots=None, joins=None)
            rows = exp.select("*").from_(table)
            node = exp.Subquery(this=rows, pivots=copies(node.args.get("pivots")), alias=alias.copy())
        if isinstance(node, exp.Subquery):
            query, outputs = self.query(node.this, scope)
            typed, outputs = typed_result(query, outputs, ExpressionRewriter(self, scope).cast_to)
            rewritten = _with_parts(node, this=typed, joins=None)
        else:
            rewritten, outputs = self.query(node, scope)
        for output in outputs or ():
            if output.kind is not None:
                raise SqlError(
                    f"PIVOT and UNPIVOT take typed columns, and {output.name or 'an output'} is a Variant: write them "
                    "over a subquery, (SELECT v:a::string AS a, … FROM …)"
                )
        return rewritten

    def _explode_relation(self, node: exp.Expr, call: exp.Expr, scope: Scope) -> exp.Expr | None:
        """Rewrite ``variant_explode(v)`` or ``flatten(v)`` in FROM as a subquery; None for other relations."""
        name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
        if name not in EXPLODES or self.engine != "duckdb":
            return None
        named = (exp.Kwarg, exp.PropertyEQ)
        arguments = [part.expression if isinstance(part, named) else part for part in call.expressions]
        options = [part.this.name for part in call.expressions if isinstance(part, named)]
        if unknown := next((option for option in options if option.lower() not in ("input", "path")), None):
            raise SqlError(
                f"{name} has no option {unknown}: write {name}(v:items), and explode its values again for deeper levels"
            )
        values = ExpressionRewriter(self, scope)
        if len(arguments) == 2 and isinstance(arguments[1], exp.Literal):
            arguments = [engine_call("variant_get", *copies(arguments))]
        value = values.variant_argument(arguments[0]) if len(arguments) == 1 else None
        if value is None or not value.is_variant:
            raise SqlError(f"{written(call)}: {name} takes a Variant, such as {name}(v:items)")
        entries = values.call("variant_explode", value.sql)
        if name == "variant_explode_outer":  # an entry of nulls for a value without entries
            entries = from_template("coalesce(nullif(_0, []), [NULL])", [entries])
        rows = from_template("unnest(_0, max_depth := 2)", [entries])
        columns = [OutputColumn(column) for column in EXPLODES[name]]
        columns[2] = replace(columns[2], type=VARIANT_STORAGE, place=value.place and value.place.opened())
        outputs, shown = rename_outputs(columns, node.args.get("alias")) or (), node.alias or name
        scope.relations.append(Relation(shown, outputs))
        return exp.Subquery(this=exp.select(rows), alias=table_alias(shown, [output.name or "" for output in outputs]))

    def _lateral(self, node: exp.Expr, scope: Scope) -> exp.Expr:
        if (exploded := self._explode_relation(node, node.this, scope)) is not None:
            return exploded
        if not isinstance(node.this, exp.Subquery):
            return self._function(node, node.this, scope)
        inner, outputs = self.query(node.this.this, Scope(scope.ctes, scope, []))
        outputs = rename_outputs(outputs, node.args.get("alias"))
        scope.relations.append(Relation(node.alias, outputs or (), is_open=outputs is None))
        return _with_parts(node, this=_with_parts(node.this, this=inner))

    def _function(self, node: exp.Expr, call: exp.Expr, scope: Scope) -> exp.Expr:
        """Rewrite a function in FROM, such as UNNEST."""
        values = ExpressionRewriter(self, scope)
        joins = {"joins": None} if "joins" in node.args else {}
        value = values.expression(_with_parts(node, **joins) if call is node else call)
        rewritten = value.sql if call is node else values.rebuild(node, this=value.sql, **joins)
        lists = [part for part in call.expressions if isinstance(part, exp.Cast)] if is_variant(value.type) else []
        place = values.expression(lists[0].this).place if len(lists) == len(call.expressions) == 1 else None
        common = None if value.kind is None or (typed := value.typed()) is None else typed.type
        elements = place and place.opened()
        columns = [OutputColumn(name, value.type, (), common, elements) for name in ("unnest", node.alias)]
        if call.name.lower().startswith("variant_explode"):
            columns = [OutputColumn("pos"), OutputColumn("key"), OutputColumn("value", VARIANT_STORAGE)]
        outputs = rename_outputs(columns, node.args.get("alias"))
        is_named = isinstance(call, exp.Unnest) and len(node.alias_column_names) == len(call.expressions)
        scope.relations.append(Relation(node.alias_or_name, outputs or (), is_open=not is_named))
        return rewritten

    def _table(self, node: exp.Table, scope: Scope) -> exp.Expr:
        name = ".".join(part.name for part in node.parts)
        if name.lower() in scope.ctes and len(node.parts) == 1:
            outputs = rename_outputs(scope.ctes[name.lower()], node.args.get("alias"))
            scope.relations.append(Relation(node.alias or name, outputs or (), is_open=outputs is None))
            return _with_parts(node, joins=None)
        path = node.parts[-1].name if len(node.parts) == 2 and node.parts[0].name.lower() in _FORMATS else name
        table = self.bind(path)
        if table is None:
            scope.relations.append(Relation(node.alias_or_name, (), is_open=True))
            return _with_parts(node, joins=None)
        return self._use(node, table, node.alias or stem_of_path(name), scope)

    def _use(self, node: exp.Table, table: BoundTable, shown: str, scope: Scope) -> exp.Expr:
        """Number a place that names a table, and return it with the name of its relation."""
        alias = node.args.get("alias")
        number = len(self.uses) + 1
        use = TableUse(number, table, f"{number}.")
        self.uses.append(use)
        scope.relations.append(Relation(shown, rename_outputs(use.output_columns(), alias) or (), use))
        if alias is not None and alias.args.get("columns"):
            names = ", ".join(column.name for column in alias.columns)
            raise SqlError(f"{shown}({names}): rename columns in a subquery")
        relation = exp.to_identifier(use.relation)
        return _with_parts(node, this=relation, alias=table_alias(shown), db=None, catalog=None, joins=None)

    def _typed_relation(self, node: exp.Table, scope: Scope) -> exp.Expr:
        """Bind ``typed(t)``, also with ``column := 'v'`` and ``names := 'path'``."""
        options = {
            part.name: part.expression.name for part in node.this.expressions if isinstance(part, exp.PropertyEQ)
        }
        arguments = [part for part in node.this.expressions if not isinstance(part, exp.PropertyEQ)]
        is_table = len(arguments) == 1 and isinstance(arguments[0], (exp.Column, exp.Literal))
        if not is_table or set(options) - {"column", "names"}:
            raise SqlError(
                "typed takes a table: typed(t), typed('events/'), or typed(t, column := 'v', names := 'path')"
            )
        name = arguments[0].name
        table = self.bind(name)
        if table is None:
            raise SqlError(f"typed({name}) needs a table that this query binds, such as typed('events/')")
        names: Any = options.get("names", "short")
        typed, warning = typed_table(table, options.get("column"), names)
        self.warnings += [] if warning is None else [warning]
        return self._use(node, typed, node.alias or stem_of_path(name), scope)

    def _push_down(self, node: exp.Select, scope: Scope) -> None:
        """Push down to each table the conditions that hold for every row of the result."""
        tables = [relation.use for relation in scope.relations]
        from_, joins = node.args.get("from_"), node.args.get("joins") or []
        if from_ is None or len(tables) != len(joins) + 1 or from_.this.args.get("joins"):
            return
        preserved = [from_.this.args.get("sample") is None]
        for number, join in enumerate(joins, 1):
            side = str(join.args.get("side") or "").upper()
            kinds = {str(join.args.get(key) or "").upper() for key in ("kind", "method")}
            is_ordinary = kinds <= {"", "INNER", "CROSS", "OUTER", "NATURAL"} and not join.args.get("nearest")
            # Whether the condition decides about each row of the table alone.
            by_row = is_ordinary and join.this.args.get("sample") is None
            if side in ("RIGHT", "FULL") or "POSITIONAL" in kinds:
                preserved = [False] * number
            preserved.append(by_row and side in ("", "RIGHT"))
            condition = join.args.get("on")
            if condition is not None and by_row and side in ("", "LEFT") and (use := tables[number]) is not None:
                use.push(condition, self.zone)
        where = node.args.get("where")
        for use, keeps in zip(tables, preserved, strict=True):
            if where is not None and keeps and use is not None:
                use.push(where.this, self.zone)


def _with_parts(node: Any, **parts: Any) -> Any:
    """Return a copy of a query or relation with other parts."""
    return type(node)(**{key: copies(part) for key, part in node.args.items() if key not in parts}, **parts)
