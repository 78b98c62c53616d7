"""The expressions of a query: paths become columns, and what only typed values have is refused of a Variant.

Owns which expressions may hold a Variant, stars, and what output columns are called. Leaves relations and queries to
`rewriting`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from parquet_variant.path import VariantPath
from parquet_variant.query.sql_dialect import SqlError, to_sql, written
from parquet_variant.query.sql_expression import column_name
from parquet_variant.query.sql_terms import VariantTerm, read_term
from parquet_variant.query.sql_types import sql_type_name
from parquet_variant.sql_query.scopes import Hit, OutputColumn, Relation, Scope, TableUse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from parquet_variant.sql_query.rewriting import _Rewriter

__all__ = ["USE", "Values"]

USE = "table_use"
# Functions that hand on their first argument as it is, and those that hand on any.
_FIRST_ONLY = {"any_value", "arbitrary", "first", "last", "first_value", "last_value", "nth_value", "lag", "lead"}
_FIRST_ONLY |= {"arg_min", "arg_max", "min_by", "max_by", "argmin", "argmax"}
_HAND_ON = _FIRST_ONLY | {"coalesce", "ifnull", "nvl", "if", "iff", "nullif"}
_OF_WHAT_IS_IN = (exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.ArgMax, exp.ArgMin)
_COUNTS = frozenset(["count"])
_LISTS = frozenset(["list", "array_agg", "collect_list"])


class Values:
    """Rewrites the expressions of one scope."""

    def __init__(self, rewriter: _Rewriter, scope: Scope) -> None:
        self.rewriter, self.scope, self.engine = rewriter, scope, rewriter.engine
        self.done: dict[int, tuple[exp.Expr, exp.Expr, bool]] = {}  # the node is kept: its id must stay its own
        self.stars: list[tuple[exp.Expr, str | None, set[str]]] = []
        self.in_having = False

    # ---- clauses

    def select_list(self, node: exp.Select) -> list[OutputColumn] | None:
        """The outputs of a SELECT; each expression rewritten, with the name that it is to have."""
        outputs: list[OutputColumn] | None = []
        items = []
        for item in node.expressions:
            star = self._star(item)
            if star is not None:
                items.append(item)
                outputs = None if outputs is None or star is False else outputs + list(star)  # type: ignore[arg-type]
                continue
            text = written(item, self.engine)
            inner = item.this if isinstance(item, exp.Alias) else item
            name = self._name(item, inner, text)
            value, is_variant = self.expression(inner)
            if name is not None:
                self.scope.aliases.setdefault(name.lower(), OutputColumn(name, is_variant))
                value = exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))
            items.append(value)
            if inner.find(exp.Columns):
                outputs = None
            if outputs is not None:
                shown = name if name is not None else inner.name if isinstance(inner, exp.Column) else None
                outputs.append(OutputColumn(shown, is_variant))
        node.set("expressions", items)
        return outputs

    def _name(self, item: exp.Expr, inner: exp.Expr, text: str) -> str | None:
        """What an output is called: by its alias, the last key of its path, or its text; None: as the engine does."""
        if isinstance(item, exp.Alias):
            return item.alias
        if inner.find(exp.Column, exp.JSONExtract) is None:
            return None
        term = read_term(inner, self.is_variant, self.engine)
        if term is None:
            return None if isinstance(inner, exp.Column) else text
        if not isinstance(term.column, exp.Column):
            return term.key or text
        return term.key or term.column.name

    def clause(self, node: exp.Expr, outputs: Sequence[OutputColumn] | None) -> None:
        """WHERE, GROUP BY, ORDER BY and the like; numbers and aliases mean outputs."""
        prefers_alias = isinstance(node, (exp.Order, exp.Having, exp.Qualify, exp.Sort, exp.Distinct))
        self.in_having = isinstance(node, exp.Having)
        if isinstance(node.args.get("on"), exp.Tuple):
            node = node.args["on"]
        for each in self._outputs_meant(node, outputs or ()):
            if each.is_variant:
                raise self._untyped(each.name or "an output")
        for child in list(node.iter_expressions()):
            inner = child.this if isinstance(child, exp.Ordered) else child
            alias = self._alias(inner) if prefers_alias else None
            if alias is not None and alias.is_variant:
                raise self._untyped(inner.name)
            if alias is None and child is inner:
                _replace(node, child, self.value(child))
            elif alias is None:
                child.set("this", self.value(inner))

    def _outputs_meant(self, node: exp.Expr, outputs: Sequence[OutputColumn]) -> Sequence[OutputColumn]:
        """The outputs that ORDER BY and GROUP BY name by ALL or by number."""
        if not isinstance(node, (exp.Order, exp.Group)):
            return ()
        keys = [each.this if isinstance(each, exp.Ordered) else each for each in node.expressions]
        if node.args.get("all") or any(isinstance(each, exp.Var) and each.name.upper() == "ALL" for each in keys):
            return outputs
        places = [int(each.name) for each in keys if isinstance(each, exp.Literal) and each.name.isdecimal()]
        return [outputs[place - 1] for place in places if 0 < place <= len(outputs)]

    def _alias(self, node: exp.Expr) -> OutputColumn | None:
        plain = isinstance(node, exp.Column) and len(node.parts) == 1
        return self.scope.aliases.get(node.name.lower()) if plain else None

    # ---- expressions

    def value(self, node: exp.Expr) -> exp.Expr:
        """A rewritten expression that must have a type."""
        found, is_variant = self.expression(node)
        if is_variant:
            raise self._untyped(written(node, self.engine))
        return found

    def _untyped(self, text: str) -> SqlError:
        return SqlError(
            f"{text} is a Variant, which cannot be compared, ordered, grouped or computed with: write the type, as in "
            f"{text}::string or {text}::double"
        )

    def is_variant(self, node: exp.Expr) -> bool:
        """Whether an expression that is no path and no cast gives a Variant."""
        if isinstance(node, exp.Column):
            if isinstance(node.this, exp.Star):
                return False
            hit = self.scope.resolve(node)
            if hit is None:
                alias = self._alias(node)
                return alias is not None and alias.is_variant
            return hit.column.is_variant
        if isinstance(node, (exp.Case, exp.If, exp.Subquery, exp.Coalesce, *_OF_WHAT_IS_IN)):
            return self.expression(node)[1]
        return isinstance(node, exp.Anonymous) and str(node.this).lower() in _HAND_ON and self.expression(node)[1]

    def expression(self, node: exp.Expr) -> tuple[exp.Expr, bool]:
        """A rewritten expression, and whether it is a Variant."""
        known = self.done.get(id(node))
        if known is None:
            known = self.done[id(node)] = (node, *self._expression(node))
            self.done[id(known[1])] = known
        return known[1:]

    def _expression(self, node: exp.Expr) -> tuple[exp.Expr, bool]:
        asks = isinstance(node, (exp.Column, exp.JSONExtract, exp.Bracket, exp.Dot, exp.Cast)) or _is_getter(node)
        term = read_term(node, self.is_variant, self.engine) if asks else None
        if term is not None:
            return self._term(term), term.type is None and term.output is None
        if isinstance(node, exp.Column):
            return self._column(node), False
        if isinstance(node, exp.JSONExtract) and node.args.get("variant_extract"):
            raise self._no_variant(node)
        if isinstance(node, (exp.Select, exp.SetOperation, exp.Subquery)):
            outputs = self.rewriter.query(node, self.scope)
            return node, bool(outputs) and len(outputs or ()) == 1 and (outputs or ())[0].is_variant
        if isinstance(node, exp.Lambda):
            return self._lambda(node, [each.name for each in node.expressions]), False
        if isinstance(node, exp.Comprehension):
            return self._lambda(
                node, [each.name for each in (node.expression, node.args.get("position")) if each]
            ), False
        if isinstance(node, exp.Star):
            return node, False
        if isinstance(node, exp.Columns) or (isinstance(node, exp.Anonymous) and str(node.this).lower() == "columns"):
            if any(_may_hold_variants(each) for each in self.scope.relations):
                raise SqlError("COLUMNS(…) is not for tables with Variants: list the columns")
            return node, False
        if isinstance(node, exp.Binary) and node.this.is_star:
            raise SqlError("* LIKE … is not for tables with Variants: list the columns")
        return self._handing_on(node)

    def _handing_on(self, node: exp.Expr) -> tuple[exp.Expr, bool]:
        """Expressions that may hold a Variant: CASE, COALESCE, IS NULL, COUNT, windows over them; no other."""
        name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
        if isinstance(node, exp.Paren):
            value, is_variant = self.expression(node.this)
            node.set("this", value)
            return node, is_variant
        if isinstance(node, exp.Exists):
            _ask_for_rows_alone(node.this)
        if isinstance(node, (exp.Is, exp.Exists)) or name in _COUNTS:
            self.children(node, allowed=lambda key, index: True)
            return node, False
        if name in _LISTS or isinstance(node, exp.ArrayAgg):
            self.children(node, allowed=lambda key, index: key in ("this", "expressions") and index == 0)
            return node, False
        if isinstance(node, exp.Coalesce):
            return node, self._alike(node, [node.this, *node.expressions],
                                     lambda: self.children(node, lambda key, index: True))  # fmt: skip
        if name == "to_json" and len(node.expressions) == 1:
            value, is_variant = self.expression(node.expressions[0])
            node.set("expressions", [value])
            if is_variant and self.engine == "duckdb":
                node.set("this", self.rewriter.getter(None))
            return node, False
        if isinstance(node, exp.Case):
            branches = [each.args["true"] for each in node.args.get("ifs") or ()] + [node.args.get("default")]
            return node, self._alike(node, branches, lambda: self._case(node))
        if isinstance(node, exp.If):
            return node, self._alike(node, [node.args["true"], node.args.get("false")],
                                     lambda: self.children(node, lambda key, index: key != "this"))  # fmt: skip
        if name in _HAND_ON:
            first = 1 if name in ("if", "iff") else 0
            last = 1 if name in _FIRST_ONLY else len(node.expressions)
            handed = node.expressions[first:last]
            return node, self._alike(node, handed, lambda: self.children(
                node, lambda key, index: key == "expressions" and first <= index < last))  # fmt: skip
        if isinstance(node, _OF_WHAT_IS_IN) or (isinstance(node, exp.Order) and node.this):
            is_variant = self.expression(node.this)[1]
            self.children(node, lambda key, index: key == "this")
            return node, is_variant
        self.children(node)
        return node, False

    def _case(self, node: exp.Case) -> None:
        for each in node.args.get("ifs") or ():
            self.children(each, lambda key, index: key == "true")
        self.children(node, lambda key, index: key in ("ifs", "default"), skip=("ifs",))

    def _alike(self, node: exp.Expr, parts: Sequence[exp.Expr | None], rewrite: Any) -> bool:
        """Whether the parts that an expression hands on are Variants: then all must be."""
        text = written(node, self.engine)
        given = [
            (each, self.expression(each)[1]) for each in parts if each is not None and not isinstance(each, exp.Null)
        ]
        variants = [is_variant for _, is_variant in given]
        if any(variants) and not all(variants):
            raise SqlError(f"{text} mixes a Variant with other values: cast the Variant, as in ::string")
        rewrite()
        return any(variants)

    def children(self, node: exp.Expr, allowed: Any = None, skip: tuple[str, ...] = ()) -> None:
        """Rewrite what an expression is made of; a Variant only where it is allowed, by key and number."""
        for key, given in list(node.args.items()):
            if key in skip:
                continue
            if isinstance(given, exp.Expr):
                node.set(key, self._child(given, allowed is not None and allowed(key, 0)))
            elif isinstance(given, list):
                may = [allowed is not None and allowed(key, index) for index in range(len(given))]
                node.set(key, [self._child(each, may_be) for each, may_be in zip(given, may, strict=True)])

    def _child(self, node: Any, allowed: bool) -> Any:
        if not isinstance(node, exp.Expr) or isinstance(node, (exp.Identifier, exp.DataType, exp.Var)):
            return node
        return self.expression(node)[0] if allowed else self.value(node)

    def _lambda(self, node: exp.Expr, names: list[str]) -> exp.Expr:
        before = set(self.scope.locals)
        self.scope.locals |= {name.lower() for name in names}
        self.children(node, allowed=None, skip=("expressions",) if isinstance(node, exp.Lambda) else ())
        self.scope.locals = before
        return node

    # ---- columns and paths

    def _term(self, term: VariantTerm) -> exp.Expr:
        if isinstance(term.column, exp.Column):
            hit = self.scope.resolve(term.column)
            if hit is not None and hit.ambiguous and hit.column.is_variant:
                tables = " or ".join(each.relation.alias for each in self.scope.everywhere(term.column.name))
                raise SqlError(f"{term.column.name} may be of {tables}: write the table before it")
            if hit is not None and hit.relation.use is not None:
                return self._table_column(hit, hit.relation.use, term)
        inner = self._handed(term.column)
        return inner if not term.path.segments and not term.cast else self._get(inner, term)

    def _handed(self, node: exp.Expr) -> exp.Expr:
        return node.copy() if isinstance(node, exp.Column) else self.expression(node)[0]

    def _table_column(self, hit: Hit, use: TableUse, term: VariantTerm) -> exp.Expr:
        column = hit.column.name or ""
        name = column_name(term, column)
        name = name if name == column else f"{use.number}.{name}"
        use.needed[name] = use.table.needs(column, term.path, term.type)
        found = exp.column(
            exp.to_identifier(name, quoted=True), table=exp.to_identifier(hit.relation.alias, quoted=True)
        )
        found.meta[USE], found.meta["type"] = use.number, term.output
        return found

    def _get(self, inner: exp.Expr, term: VariantTerm) -> exp.Expr:
        if self.engine == "spark":
            kind = "variant" if term.type is None else sql_type_name(term.type)
            arguments = [inner, exp.Literal.string(str(term.path)), exp.Literal.string(kind)]
            return exp.Anonymous(this="try_variant_get", expressions=arguments)
        return self._call(self.rewriter.getter(term), inner)

    def _call(self, name: str, *arguments: exp.Expr) -> exp.Expr:
        return exp.Anonymous(this=name, expressions=list(arguments))

    def _column(self, node: exp.Column) -> exp.Expr:
        if isinstance(node.this, exp.Star):
            return node
        hit = self.scope.resolve(node)
        if hit is None:
            if not self.scope.is_known(node):
                self.rewriter.found.unknown.append(self._missing(node))
            elif self._whole_table(node):
                raise SqlError(f"{node.name} is a table: name its columns, or write {node.name}.*")
            return node
        use = hit.relation.use
        if use is None:
            return node
        name = hit.column.name or ""
        for each in self.scope.everywhere(node.parts[0].name) if hit.ambiguous else [hit]:
            if each.relation.use is not None:
                each.relation.use.needed[each.column.name or ""] = each.relation.use.table.needs(each.column.name or "")
        if hit.ambiguous:
            return node
        use.needed[name] = use.table.needs(name)
        if self.in_having and self._alias(node) is not None:
            return node  # an output's name, unless the column is grouped by: the engine knows
        found: exp.Expr = exp.column(
            exp.to_identifier(name, quoted=True), table=exp.to_identifier(hit.relation.alias, quoted=True)
        )
        found.meta[USE] = use.number
        for part in hit.rest:
            found = exp.Dot(this=found, expression=exp.to_identifier(part, quoted=True))
        return found

    def _whole_table(self, node: exp.Column) -> bool:
        names = {each.alias.lower() for each in self.scope.relations if each.use is not None}
        return len(node.parts) == 1 and node.name.lower() in names and node.name.lower() not in self.scope.aliases

    def _missing(self, node: exp.Column) -> str:
        name = ".".join(part.name for part in node.parts)
        tables = [each.alias for each in self.scope.relations]
        if len(node.parts) > 1 and tables and node.parts[0].name.lower() not in [each.lower() for each in tables]:
            return f"there is no table {node.parts[0].name}: FROM has {', '.join(tables)}"
        hint = ": text stands in single quotes" if node.this.quoted and self.engine == "duckdb" else ""
        return f"there is no column {name}{hint}: choose from {', '.join(self.scope.names()) or 'none'}"

    def _no_variant(self, node: exp.JSONExtract) -> SqlError:
        inner = node.this
        name = to_sql(inner, self.engine)
        if isinstance(inner, exp.Column) and self.scope.resolve(inner) is None and not self.scope.is_known(inner):
            return SqlError(self._missing(inner))
        return SqlError(f"{written(node, self.engine)}: {name} is no Variant, so it has no paths")

    # ---- stars

    def _star(self, item: exp.Expr) -> list[OutputColumn] | bool | None:
        """The outputs of ``*`` or ``t.*``; False if they are not known; None for any other expression."""
        star = item.this if isinstance(item, exp.Column) else item
        if not isinstance(star, exp.Star):
            return None
        table = item.table if isinstance(item, exp.Column) else None
        relations = [each for each in self.scope.relations if not table or each.alias.lower() == table.lower()]
        if table and not relations:
            raise SqlError(
                f"there is no table {table}: FROM has {', '.join(each.alias for each in self.scope.relations)}"
            )
        left_out = {_excluded(each).lower() for each in star.args.get("except_") or ()}
        replaced = {each.alias.lower(): each for each in star.args.get("replace") or ()}
        outputs: list[OutputColumn] = []
        for relation in relations:
            for column in relation.columns:
                name = column.name or ""
                if relation.use is not None and name not in relation.use.table.order:
                    continue
                if relation.use is not None and name.lower() not in left_out:
                    path = VariantPath() if column.is_variant else None
                    relation.use.needed[name] = relation.use.table.needs(name, path)
                if name.lower() not in left_out:
                    outputs.append(column)
        for alias, each in replaced.items():
            value, is_variant = self.expression(each.this)
            each.set("this", value)
            outputs = [OutputColumn(o.name, is_variant) if (o.name or "").lower() == alias else o for o in outputs]
        own = [each for each in star.args.get("except_") or () if self._is_given(_excluded(each), relations)]
        star.set("except_", own)
        self.stars.append((star, table, left_out))
        return outputs if not any(each.is_open for each in relations) else False

    def _is_given(self, name: str, relations: list[Any]) -> bool:
        """Whether something else than a table has a column: what a star leaves out of a table is not read at all."""
        holders = [each for each in relations if each.find(name) is not None]
        return not holders or any(each.use is None for each in holders)

    def finish_stars(self) -> None:
        """Order each table's columns as the table has them, and leave the columns of paths out of stars."""
        for relation in self.scope.relations:
            use = relation.use
            if use is not None:
                order = {name: place for place, name in enumerate(use.table.order)}
                use.needed = dict(sorted(use.needed.items(), key=lambda item: order.get(item[0], len(order))))
        for star, table, left_out in self.stars:
            hidden = list(star.args.get("except_") or ())
            for relation in self.scope.relations:
                if relation.use is None or (table and relation.alias.lower() != table.lower()):
                    continue
                own = {each.name for each in relation.columns if (each.name or "").lower() not in left_out}
                hidden += [exp.to_identifier(name, quoted=True) for name in relation.use.needed if name not in own]
            star.set("except_", hidden or None)


def _ask_for_rows_alone(query: exp.Expr) -> None:
    """Let a query of EXISTS that selects all columns read none of them for it."""
    if isinstance(query, exp.Select) and not query.args.get("group") and query.args.get("from_"):
        items = query.expressions
        if all(isinstance(each, exp.Star) and not any(each.args.values()) for each in items):
            query.set("expressions", [exp.Literal.number(1)])


def _may_hold_variants(relation: Relation) -> bool:
    return relation.use is not None or relation.is_open or any(each.is_variant for each in relation.columns)


def _excluded(node: exp.Expr) -> str:
    return node.this.name if isinstance(node, exp.Column) else node.name


def _is_getter(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() in ("variant_get", "try_variant_get")


def _replace(node: exp.Expr, child: exp.Expr, new: exp.Expr) -> None:
    for key, given in node.args.items():
        if given is child:
            node.set(key, new)
            return
        if isinstance(given, list) and any(each is child for each in given):
            node.set(key, [new if each is child else each for each in given])
            return
