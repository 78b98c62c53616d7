"""Rewriting a query over Variants as a query over typed columns: the text for the engine, and what each table provides.

Owns the traversal of a parsed query. Each place that names a table gets a number, each path into one of its Variants
becomes a column, and conditions are pushed down where a join allows it. Other Variants, such as those of a subquery or
of COALESCE, are read by functions of the engine. Leaves expressions to `values` and `select_list`, names to `scopes`,
and reading to `tables`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from sqlglot import exp

from parquet_variant.query.kinds import is_variant
from parquet_variant.query.local_times import with_earlier_instants
from parquet_variant.query.predicate import And, Predicate, columns_of, joined
from parquet_variant.query.sql_dialect import SqlError, parse_sql, to_sql, written
from parquet_variant.query.sql_pushdown import pushdown
from parquet_variant.query.sql_terms import VariantTerm
from parquet_variant.query.variant_functions import EXPLODES
from parquet_variant.sql_query.rewriting.comparisons import key_of
from parquet_variant.sql_query.rewriting.rewriters import Getter
from parquet_variant.sql_query.rewriting.scopes import (
    OutputColumn,
    Relation,
    Scope,
    StoredPath,
    TableUse,
    merge_columns,
)
from parquet_variant.sql_query.rewriting.select_list import SelectList
from parquet_variant.sql_query.rewriting.set_operations import (
    Outputs,
    by_position,
    by_sort_keys,
    in_common,
    name_variants,
    rename_outputs,
    typed_result,
)
from parquet_variant.sql_query.rewriting.syntax import (
    asks_for_bounds,
    explode_by_joins,
    is_sampled,
    stem_of_path,
    use_local_instants,
    without_parentheses,
)
from parquet_variant.sql_query.rewriting.values import USE, ExpressionRewriter
from parquet_variant.sql_query.tables import BoundTable
from parquet_variant.sql_query.typed_view import typed_table
from parquet_variant.support.choices import SqlEngine
from parquet_variant.types.path import VariantPath
from parquet_variant.types.targets import VARIANT_STORAGE

_NUMBERS = count(1)
_FORMATS = ("parquet", "delta", "vortex")
_CLAUSES = ["where", "group", "having", "qualify", "windows", "distinct", "order", "sort", "cluster", "limit", "offset"]


@dataclass(slots=True)
class Rewritten:
    """A rewritten query."""

    text: str = ""  # The text for the engine.
    uses: list[TableUse] = field(default_factory=list)  # The places that name a table, each a relation of the text.
    getters: list[Getter] = field(default_factory=list)  # The functions that the text calls on Variants.
    describes: bool = False  # Whether the query is DESCRIBE.
    # Messages about names that are not columns, used if the engine does not know them either.
    unknown: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  # Warnings about the result.
    outputs: Outputs = None  # The columns of the result; None if only the engine knows them.
    only_bounds: bool = False  # Whether only the least and the greatest value of each column are needed.

    def predicate(self, use: TableUse) -> Predicate | None:
        """Return the conditions that are pushed down to one use of a table."""
        return joined(And, use.filters) if use.filters else None


def rewrite(
    text: str,
    bind: Callable[[str], BoundTable | None],
    *,
    engine: SqlEngine = "duckdb",
    zone: str = "UTC",
    strict: bool = False,
    params: Any = None,
) -> Rewritten:
    """Rewrite a query.

    `text`: the query.
    `bind`: returns the table of a name or path in FROM; None for a name that only the engine may know.
    `params`: the values of its parameters.
    `strict`: whether scans raise for failed casts, so that those of ``try_cast`` are not left to them.
    Raises `SqlError` or `PathError` if the query is invalid, or computes with a Variant without a type; and the errors
    of `bind`.
    """
    tree = parse_sql(text, engine, params=params)
    try:
        return _Rewriter(bind, engine, zone, strict).rewrite(tree)
    except RecursionError:
        raise SqlError("the SQL is nested too deeply") from None


class _Rewriter:
    def __init__(
        self, bind: Callable[[str], BoundTable | None], engine: SqlEngine, zone: str, strict: bool = False
    ) -> None:
        self.bind, self.engine, self.zone, self.strict = bind, engine, zone, strict
        self.rewritten = Rewritten()
        self.getters: dict[str, Getter] = {}
        self.result: exp.Expr | None = None  # The SELECT whose rows are the result.

    def rewrite(self, tree: exp.Expr) -> Rewritten:
        inner, prefix = tree, ""
        if isinstance(tree, (exp.Describe, exp.Summarize)):
            inner, prefix = tree.this, f"{type(tree).__name__.upper()} "
            self.rewritten.describes = isinstance(tree, exp.Describe)
            if isinstance(inner, exp.Schema) and inner.this.name.lower() == "typed":  # parsed as columns of a table
                names = [exp.column(name.copy()) for name in inner.expressions]
                inner = exp.Table(this=exp.Anonymous(this="typed", expressions=names))
            if isinstance(inner, exp.Table):
                inner = exp.Select(expressions=[exp.Star()]).from_(inner.copy())
        self.result = inner
        holder = exp.Paren(this=inner)  # a set operation of Variants is replaced by another query
        self.rewritten.outputs = self.query(inner, Scope({}))
        inner = holder.this
        if isinstance(tree, exp.Summarize) and any(output.kind is not None for output in self.rewritten.outputs or ()):
            raise SqlError(
                "SUMMARIZE cannot summarize a Variant: select typed columns, as in SUMMARIZE SELECT * FROM typed(t)"
            )
        self.rewritten.only_bounds = self.engine == "duckdb" and asks_for_bounds(tree)
        if self.zone == "UTC" and self.engine == "duckdb":
            use_local_instants(inner)
        inner = typed_result(inner, self.rewritten.outputs, self.getter)
        if self.engine == "duckdb":
            inner = with_earlier_instants(inner, self.zone)
        self.rewritten.text = prefix + to_sql(inner, self.engine)
        self._drop_unused_columns(inner)
        return self.rewritten

    def _drop_unused_columns(self, tree: exp.Expr) -> None:
        """Remove Variants that the text does not name, because their paths or their only type took their place."""
        names = {identifier.name for identifier in tree.find_all(exp.Identifier)}
        if tree.find(exp.Star):
            names.update(name for use in self.rewritten.uses for name in use.table.columns.variants)
        for use in self.rewritten.uses:
            names.update(name for predicate in use.filters for name in columns_of(predicate))
            for name in [name for name in use.needed if name not in names]:
                if name.startswith(f"{use.number}.") or name in use.table.columns.variants:
                    del use.needed[name]

    # ---- queries: each method rewrites its node in place, and returns the outputs

    def query(self, node: exp.Expr, around: Scope, recursive: exp.CTE | None = None) -> Outputs:
        scope = Scope(dict(around.ctes), around.outer)
        if around.relations or around.locals:
            scope.outer = around
        self._with_clause(node, scope)
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
        if isinstance(node, exp.Pivot):
            node.set("this", self._pivoted(node.this, scope))
            return None
        ExpressionRewriter(self, scope).children(node)
        return None

    def _with_clause(self, node: exp.Expr, scope: Scope) -> None:
        clause: Any = node.args.get("with_")
        for cte in () if clause is None else clause.expressions:
            name = cte.alias.lower()
            recursive = clause.args.get("recursive") and isinstance(cte.this, exp.SetOperation)
            outputs = self.query(cte.this, scope, cte if recursive else None)
            scope.ctes[name] = rename_outputs(outputs, cte.args.get("alias"))

    def _set_operation(self, node: exp.SetOperation, scope: Scope, recursive: exp.CTE | None) -> Outputs:
        outputs = self.query(node.this, scope)
        if recursive is not None:
            first = None if outputs is None else [replace(output, common=None, place=None) for output in outputs]
            scope.ctes[recursive.alias.lower()] = rename_outputs(first, recursive.args.get("alias"))
        added = self.query(node.expression, scope)
        if node.args.get("by_name") and outputs is not None and added is not None:
            outputs, added = by_position(node, outputs, added)
        variants = [output.name or "?" for output in (*(outputs or ()), *(added or ())) if output.kind is not None]
        compares = variants and (node.args.get("distinct") or not isinstance(node, exp.Union))
        if compares and self._by_keys(node, outputs, added) and recursive is None and outputs is not None:
            self._modifiers(node, scope, outputs)
            values = ExpressionRewriter(self, scope)
            node.replace(by_sort_keys(node, outputs, lambda column: key_of(values, column)))
            if isinstance(node, exp.Union):
                return [in_common(a, b) for a, b in zip(outputs, added or (), strict=True)]
            return outputs  # whose rows are those of the left side
        if compares:
            raise SqlError(
                f"{node.key.upper()} cannot compare {variants[0]}, which is a Variant on one side or inside another "
                f"type: cast it, as in {variants[0]}::string, or write UNION ALL"
            )
        if outputs is not None and added is not None and len(outputs) == len(added) and not node.args.get("by_name"):
            outputs = [
                in_common(OutputColumn(a.name, b.kind if a.kind is None else a.kind, common=a.common), b)
                for a, b in zip(outputs, added, strict=True)
            ]
        self._modifiers(node, scope, outputs)
        return outputs

    def _by_keys(self, node: exp.SetOperation, outputs: Outputs, added: Outputs) -> bool:
        """Return whether a set operation can compare Variants: both sides have them in the same places."""
        if outputs is None or added is None or len(outputs) != len(added) or self.engine != "duckdb":
            return False
        kinds = [(a.kind, b.kind) for a, b in zip(outputs, added, strict=True)]
        return not node.args.get("by_name") and all(
            (a is None) == (b is None) and (a is None or (is_variant(a) and is_variant(b))) for a, b in kinds
        )

    def _modifiers(self, node: exp.Expr, scope: Scope, outputs: Outputs) -> None:
        """Rewrite ORDER BY, LIMIT and OFFSET of a set operation or subquery, which name its outputs."""
        inner = Scope(scope.ctes, scope.outer)
        inner.relations.append(Relation("", outputs or (), is_open=True))
        for key in ("order", "limit", "offset"):
            if isinstance(clause := node.args.get(key), exp.Expr):
                if isinstance(clause, exp.Order):
                    name_variants(clause, outputs or ())
                SelectList(self, inner).clause(clause, outputs)

    def _select(self, node: exp.Select, scope: Scope) -> Outputs:
        if self.engine == "duckdb":
            explode_by_joins(node)
        if (from_ := node.args.get("from_")) is not None:
            self._relation(from_.this, scope)
        joins = node.args.get("joins") or []
        values = SelectList(self, scope, is_result=node is self.result)
        for join in joins:
            self._join(join, scope, values)
        for lateral in node.args.get("laterals") or []:
            self._lateral(lateral, scope)
        outputs = values.select_list(node)
        for key in _CLAUSES:
            clause = node.args.get(key)
            for part in clause if isinstance(clause, list) else [clause]:
                if isinstance(part, exp.Expr):
                    values.clause(part, outputs)
        if node.args.get("distinct") is not None and node.args["distinct"].args.get("on") is None:
            values.distinct(node, outputs)
        values.finish_stars()
        self._push_down(node, joins, scope)
        return outputs

    # ---- FROM

    def _relation(self, node: exp.Expr, scope: Scope) -> None:
        node = without_parentheses(node)
        grouped = isinstance(node, exp.Subquery) and isinstance(node.unnest(), exp.Table)
        if grouped and node.alias and not node.args.get("pivots"):  # (a JOIN b ON …) x
            node.set("this", exp.select("*").from_(node.this))
        if node.args.get("pivots"):
            shown = node.args["pivots"][-1].alias or node.alias_or_name
            node.replace(self._pivoted(node, scope))
            scope.relations.append(Relation(shown, (), is_open=True))
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Anonymous) and node.this.name.lower() == "typed":
            self._typed_relation(node, scope)
        elif isinstance(node, exp.Table) and not isinstance(node.this, (exp.Anonymous, exp.Func)):
            scope.relations.append(self._table(node, scope))
        elif grouped and not node.alias:  # (a JOIN b ON …): both names are visible outside
            self._relation(node.this, scope)
        elif isinstance(node, exp.Subquery):
            outputs = self.query(node.this, scope)  # DuckDB takes a correlated one without LATERAL
            outputs = rename_outputs(outputs, node.args.get("alias"))
            scope.relations.append(Relation(node.alias, outputs or (), is_open=outputs is None))
        elif isinstance(node, exp.Lateral):
            self._lateral(node, scope)
        elif self._explode_relation(node, node.this if isinstance(node, exp.Table) else node, scope):
            pass
        else:  # a function, VALUES, UNNEST
            scope.relations.append(self._function(node, node, scope))
        for join in node.args.get("joins") or ():  # FROM (a JOIN b)
            self._join(join, scope, ExpressionRewriter(self, scope))

    def _join(self, join: exp.Join, scope: Scope, values: ExpressionRewriter) -> None:
        """Add the relation of a join; the right side of SEMI and ANTI JOIN cannot be named after its condition."""
        start = len(scope.relations)
        self._relation(join.this, scope)
        merge_columns(join, scope, start)
        if isinstance(join.args.get("on"), exp.Expr):
            join.set("on", values.value(join.args["on"]))
        if str(join.args.get("kind") or "").upper() in ("SEMI", "ANTI"):
            for relation in scope.relations[start:]:
                relation.is_visible = False

    def _pivoted(self, node: exp.Expr, scope: Scope) -> exp.Expr:
        """Return the input of PIVOT or UNPIVOT as a subquery, none of whose columns may hold Variants."""
        if isinstance(node, exp.Table):
            alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(node.name, quoted=True))
            pivots, table = node.args.get("pivots"), node.copy()
            table.set("pivots", None)
            node = exp.Subquery(this=exp.select("*").from_(table), pivots=pivots, alias=alias.copy())
        outputs = self.query(node.this, scope) if isinstance(node, exp.Subquery) else self.query(node, scope)
        typed = typed_result(node.this, outputs, self.getter) if isinstance(node, exp.Subquery) else node
        if isinstance(node, exp.Subquery) and typed is not node.this:
            node.set("this", typed)
        for output in outputs or ():
            if output.kind is not None and (output.common is None or typed is node):
                raise SqlError(
                    f"PIVOT and UNPIVOT take typed columns, and {output.name or 'an output'} is a Variant: write them "
                    "over a subquery, (SELECT v:a::string AS a, … FROM …)"
                )
        return node

    def _explode_relation(self, node: exp.Expr, call: exp.Expr, scope: Scope) -> bool:
        """Rewrite ``variant_explode(v)`` or ``flatten(v)`` in FROM as a subquery; return whether it was one."""
        name = call.name.lower() if isinstance(call, exp.Anonymous) else ""
        if name not in EXPLODES or self.engine != "duckdb":
            return False
        arguments = [
            part.expression if isinstance(part, (exp.Kwarg, exp.PropertyEQ)) else part for part in call.expressions
        ]
        values = ExpressionRewriter(self, scope)
        options = [part.this.name for part in call.expressions if isinstance(part, (exp.Kwarg, exp.PropertyEQ))]
        if unknown := next((option for option in options if option.lower() not in ("input", "path")), None):
            raise SqlError(
                f"{name} has no option {unknown}: write {name}(v:items), and explode its values again for deeper levels"
            )
        if len(arguments) == 2 and isinstance(arguments[1], exp.Literal):
            arguments = [exp.Anonymous(this="variant_get", expressions=arguments)]
        value, kind = values.expression(arguments[0]) if len(arguments) == 1 else (None, None)
        if value is None or not is_variant(kind):
            raise SqlError(f"{written(call)}: {name} takes a Variant, such as {name}(v:items)")
        function, columns = EXPLODES[name]
        depth = exp.PropertyEQ(this=exp.to_identifier("max_depth"), expression=exp.Literal.number(2))
        rows = exp.Anonymous(this="unnest", expressions=[values.call(function, value), depth])
        alias = node.args.get("alias")
        shown = alias.name if isinstance(alias, exp.TableAlias) and alias.name else name
        named = [column.name for column in alias.args.get("columns") or ()] if alias is not None else []
        names = [*named, *columns[len(named) :]]
        table = exp.TableAlias(
            this=exp.to_identifier(shown, quoted=True), columns=[exp.to_identifier(c, quoted=True) for c in names]
        )
        query = exp.Subquery(this=exp.select(rows), alias=table)
        node.replace(query)
        place = values.stored_path(arguments[0])
        outputs = [OutputColumn(column) for column in names]
        outputs[2] = OutputColumn(
            names[2], VARIANT_STORAGE, place=None if place is None else replace(place, inside=VariantPath())
        )
        scope.relations.append(Relation(shown, outputs))
        return True

    def _lateral(self, node: exp.Expr, scope: Scope) -> None:
        if self._explode_relation(node, node.this, scope):
            return
        if not isinstance(node.this, exp.Subquery):
            scope.relations.append(self._function(node, node.this, scope))
            return
        outputs = rename_outputs(self.query(node.this.this, Scope(scope.ctes, scope, [])), node.args.get("alias"))
        scope.relations.append(Relation(node.alias, outputs or (), is_open=outputs is None))

    def _function(self, node: exp.Expr, call: exp.Expr, scope: Scope) -> Relation:
        """Return the relation of a function in FROM, such as UNNEST."""
        values = ExpressionRewriter(self, scope)
        kind = values.expression(call)[1]
        columns = [OutputColumn("unnest", kind), OutputColumn(node.alias, kind)]
        if call.name.lower().startswith("variant_explode"):
            columns = [OutputColumn("pos"), OutputColumn("key"), OutputColumn("value", VARIANT_STORAGE)]
        if call is not node:
            values.children(node, skip=("this",))
        return Relation(node.alias_or_name, rename_outputs(columns, node.args.get("alias")) or (), is_open=True)

    def _table(self, node: exp.Table, scope: Scope) -> Relation:
        name = ".".join(part.name for part in node.parts)
        alias = node.args.get("alias")
        if name.lower() in scope.ctes and len(node.parts) == 1:
            outputs = rename_outputs(scope.ctes[name.lower()], alias)
            return Relation(node.alias or name, outputs or (), is_open=outputs is None)
        path = node.parts[-1].name if len(node.parts) == 2 and node.parts[0].name.lower() in _FORMATS else name
        table = self.bind(path)
        if table is None:
            return Relation(node.alias_or_name, (), is_open=True)
        return self._use(node, table, node.alias or stem_of_path(name))

    def _use(self, node: exp.Table, table: BoundTable, shown: str) -> Relation:
        """Number a place that names a table, and write the name of its relation there."""
        alias = node.args.get("alias")
        use = TableUse(len(self.rewritten.uses) + 1, table)
        self.rewritten.uses.append(use)
        nested = table.columns.nested
        columns = [
            OutputColumn(
                column,
                table.kind(column),
                nested.get(column, ()),
                type=table.columns.ordinary.get(column),
                place=StoredPath(table, column),
            )
            for column in (*table.order, *nested)
        ]
        relation = Relation(shown, rename_outputs(columns, alias) or (), use)
        if alias is not None and alias.args.get("columns"):
            names = ", ".join(column.name for column in alias.columns)
            raise SqlError(f"{shown}({names}): rename columns in a subquery")
        for key in ("db", "catalog"):
            node.set(key, None)
        node.set("this", exp.to_identifier(use.relation))
        node.set("alias", exp.TableAlias(this=exp.to_identifier(shown, quoted=True)))
        return relation

    def _typed_relation(self, node: exp.Table, scope: Scope) -> None:
        """Bind ``typed(t)``, also with ``column := 'v'`` and ``names := 'path'``."""
        options = {
            part.name: part.expression.name for part in node.this.expressions if isinstance(part, exp.PropertyEQ)
        }
        arguments = [part for part in node.this.expressions if not isinstance(part, exp.PropertyEQ)]
        if (
            len(arguments) != 1
            or not isinstance(arguments[0], (exp.Column, exp.Literal))
            or set(options) - {"column", "names"}
        ):
            raise SqlError(
                "typed takes a table: typed(t), typed('events/'), or typed(t, column := 'v', names := 'path')"
            )
        name = arguments[0].name
        table = self.bind(name)
        if table is None:
            raise SqlError(f"typed({name}) needs a table that this query binds, such as typed('events/')")
        names: Any = options.get("names", "short")
        typed, warning = typed_table(table, options.get("column"), names)
        if warning is not None:
            self.add_warning(warning)
        scope.relations.append(self._use(node, typed, node.alias or stem_of_path(name)))

    # ---- filters

    def _push_down(self, node: exp.Select, joins: list[exp.Join], scope: Scope) -> None:
        """Push down to each table the conditions that hold for every row of the result."""
        tables = [relation.use for relation in scope.relations]
        from_ = node.args.get("from_")
        if from_ is None or len(tables) != len(joins) + 1 or from_.this.args.get("joins"):
            return
        preserved = [not is_sampled(from_.this)]
        for number, join in enumerate(joins, 1):
            side = str(join.args.get("side") or "").upper()
            kinds = {str(join.args.get(key) or "").upper() for key in ("kind", "method")}
            is_ordinary = kinds <= {"", "INNER", "CROSS", "OUTER", "NATURAL"} and not join.args.get("nearest")
            # Whether the condition decides about each row of the table alone.
            by_row = is_ordinary and not is_sampled(join.this)
            if side in ("RIGHT", "FULL") or "POSITIONAL" in kinds:
                preserved = [False] * number
            preserved.append(by_row and side in ("", "RIGHT"))
            condition = join.args.get("on")
            if condition is not None and by_row and side in ("", "LEFT"):
                self._push(condition, tables[number])
        where = node.args.get("where")
        for use, keeps in zip(tables, preserved, strict=True):
            if where is not None and keeps:
                self._push(where.this, use)

    def _push(self, condition: exp.Expr, use: TableUse | None) -> None:
        if use is None or not use.table.skips:
            return

        def find_column(node: exp.Expr) -> tuple[str, Any] | None:
            if not isinstance(node, exp.Column) or node.meta.get(USE) != use.number:
                return None
            ordinary = use.table.columns.ordinary
            return node.name, ordinary[node.name] if node.name in ordinary else node.meta.get("type")

        predicate = pushdown(condition, find_column, self.zone)
        if predicate is not None:
            use.filters.append(predicate)

    def add_warning(self, message: str) -> None:
        """Record a warning about the result."""
        self.rewritten.warnings.append(message)

    def add_unknown(self, message: str) -> None:
        """Record the message for a name that is not a column, in case the engine does not know the name either."""
        self.rewritten.unknown.append(message)

    def getter(
        self,
        term: VariantTerm | None = None,
        function: str = "",
        text: str = "",
        classes: tuple[str, ...] = (),
        constants: tuple[Any, ...] = (),
    ) -> str:
        """Return the name of the engine's function for a path of a Variant, or for a function over Variants."""
        request = Getter("", term and replace(term, column=exp.Null()), function, text, classes, constants)
        for name, existing in self.getters.items():  # the same path has the same function: GROUP BY compares calls
            if existing == request:
                return name
        name = f"_variant_function_{next(_NUMBERS)}"  # unique in the process, whose queries share DuckDB's functions
        self.getters[name] = request
        self.rewritten.getters.append(replace(request, name=name))
        return name
