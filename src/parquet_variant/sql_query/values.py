"""The expressions of a query: paths become columns, and what only typed values have is refused of a Variant.

Owns which expressions may hold a Variant, stars, and what output columns are called. Leaves relations and queries to
`rewriting`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Protocol

import pyarrow as pa
from sqlglot import exp

from parquet_variant.choices import SqlEngine
from parquet_variant.encoding.cast.targets import VARIANT_STORAGE
from parquet_variant.path import VariantPath
from parquet_variant.query.sql_dialect import SqlError, written
from parquet_variant.query.sql_expression import check_fields, column_name
from parquet_variant.query.sql_terms import VariantTerm, read_term
from parquet_variant.query.sql_types import sql_type_name
from parquet_variant.sql_query.kinds import Kind, field_of, is_variant, only_variants
from parquet_variant.sql_query.nested import NOT_NESTED, nested_kind, taken_from
from parquet_variant.sql_query.scopes import Hit, OutputColumn, Relation, Scope, TableUse, unique_names

USE = "table_use"
# Functions that hand on their first argument as it is, and those that hand on any.
_FIRST_ONLY = {"any_value", "arbitrary", "first", "last", "first_value", "last_value", "nth_value", "lag", "lead"}
_FIRST_ONLY |= {"arg_min", "arg_max", "min_by", "max_by", "argmin", "argmax"}
_HAND_ON = _FIRST_ONLY | {"coalesce", "ifnull", "nvl", "if", "iff"}
_OF_WHAT_IS_IN = (exp.Window, exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.ArgMax, exp.ArgMin)
_OF_VARIANTS = frozenset(["to_json", "is_variant_null", "schema_of_variant"])
_NO_ELEMENTS = exp.Array(expressions=[])
_COUNTS = frozenset(["count"])
_AGGREGATES = frozenset(["list", "array_agg", "collect_list"])


class QueryRewriter(Protocol):
    """The rewriter of whole queries; `rewriting` implements it and imports this module."""

    engine: SqlEngine

    def query(self, node: exp.Expr, around: Scope) -> Sequence[OutputColumn] | None:
        """Rewrite a query inside an expression, and return its output columns if they are known."""
        ...

    def add_unknown(self, message: str) -> None:
        """Record the message for a name that is not a column, in case the engine does not know the name either."""
        ...

    def getter(self, term: VariantTerm | None = None, function: str = "") -> str:
        """Return the name of the SQL function that reads a path, or that runs a function of this library."""
        ...


class Values:
    """Rewrites the expressions of one scope."""

    def __init__(self, rewriter: QueryRewriter, scope: Scope) -> None:
        self.rewriter, self.scope, self.engine = rewriter, scope, rewriter.engine
        self.done: dict[int, tuple[exp.Expr, exp.Expr, Kind]] = {}  # the node is kept: its id must stay its own
        self.stars: list[tuple[exp.Expr, str | None, set[str]]] = []
        self.in_having = False

    # ---- clauses

    def select_list(self, node: exp.Select) -> list[OutputColumn] | None:
        """The outputs of a SELECT; each expression rewritten, with the name that it is to have."""
        outputs: list[OutputColumn] | None = []
        items = []
        names: list[str] = []
        for item in node.expressions:
            star = self._star(item)
            if star is not None:
                items.append(item)
                names += [output.name for output in star if output.name] if isinstance(star, list) else []
                outputs = None if outputs is None or star is False else outputs + list(star)  # type: ignore[arg-type]
                continue
            text = written(item, self.engine)
            inner = item.this if isinstance(item, exp.Alias) else item
            name = self._name(item, inner, text)
            value, kind = self.expression(inner)
            default = name if name is not None else inner.name if isinstance(inner, exp.Column) else None
            if default is not None:  # repeated names are numbered, as DuckDB does for a subquery
                unique = unique_names([*names, default])[-1]
                name = unique if unique != default else name
                names.append(unique)
            if name is not None:
                first = self.scope.aliases.setdefault(name.lower(), OutputColumn(name, kind))
                if first.name != name:
                    self.scope.twins[name.lower()] = (first.name or "", name)
                value = exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))
            items.append(value)
            if inner.find(exp.Columns):
                outputs = None
            if outputs is not None:
                shown = name if name is not None else inner.name if isinstance(inner, exp.Column) else None
                outputs.append(OutputColumn(shown, kind))
        node.set("expressions", items)
        return outputs

    def _name(self, item: exp.Expr, inner: exp.Expr, text: str) -> str | None:
        """What an output is called: by its alias, the last key of its path, or its text; None: as the engine does."""
        if isinstance(item, exp.Alias):
            return item.alias
        if inner.find(exp.Column, exp.JSONExtract) is None:
            return None
        term = read_term(inner, self.is_variant, self.engine)
        if term is None and isinstance(inner, exp.Column):
            hit = self.scope.resolve(inner)
            return hit.rest[-1] if hit is not None and hit.rest else None  # DuckDB calls a.b by its field
        if term is None:
            return text
        if not isinstance(term.column, exp.Column):
            return term.key or text
        return term.key or (term.column.name if term.key is None else text)  # no engine has a column named ""

    def clause(self, node: exp.Expr, outputs: Sequence[OutputColumn] | None) -> None:
        """WHERE, GROUP BY, ORDER BY and the like; numbers and aliases mean outputs."""
        prefers_alias = isinstance(node, (exp.Order, exp.Having, exp.Qualify, exp.Sort, exp.Distinct))
        self.in_having = isinstance(node, exp.Having)
        if isinstance(node.args.get("on"), exp.Tuple):
            node = node.args["on"]
        self._number_twins(node, outputs or ())
        for each in self._outputs_meant(node, outputs or ()):
            if each.kind is not None:
                raise self._untyped(each.name or "an output", each.kind)
        for child in list(node.iter_expressions()):
            inner = child.this if isinstance(child, exp.Ordered) else child
            alias = self._alias(inner) if prefers_alias else None
            if alias is not None and alias.kind is not None:
                raise self._untyped(inner.name, alias.kind)
            if alias is None and child is inner:
                _replace(node, child, self.value(child))
            elif alias is None:
                child.set("this", self.value(inner))

    def _number_twins(self, node: exp.Expr, outputs: Sequence[OutputColumn]) -> None:
        """Ask for an output that is named exactly by its number, where the engine would take the name for another's."""
        if not self.scope.twins or not isinstance(node, (exp.Order, exp.Group)):
            return
        names = [each.name for each in outputs]
        for child in node.expressions:
            key = child.this if isinstance(child, exp.Ordered) else child
            plain = isinstance(key, exp.Column) and len(key.parts) == 1
            if plain and key.name.lower() in self.scope.twins and names.count(key.name) == 1:
                key.replace(exp.Literal.number(names.index(key.name) + 1))

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
        if not isinstance(node, exp.Column) or len(node.parts) > 1:
            return None
        if (twins := self.scope.twins.get(node.name.lower())) is not None:
            told_apart_in(node.name, twins)
        return self.scope.aliases.get(node.name.lower())

    # ---- expressions

    def value(self, node: exp.Expr) -> exp.Expr:
        """A rewritten expression that must have a type."""
        rewritten, kind = self.expression(node)
        if kind is not None:
            raise self._untyped(written(node, self.engine), kind)
        return rewritten

    def _untyped(self, text: str, kind: Kind) -> SqlError:
        refused = "cannot be compared, ordered, grouped or computed with"
        if not is_variant(kind):
            return SqlError(f"{text} holds Variants, which {refused}: give them types, as in ::array<string>")
        cast = f"({text})" if " " in text else text
        return SqlError(f"{text} is a Variant, which {refused}: write the type, as in {cast}::string or {cast}::double")

    def is_variant(self, node: exp.Expr) -> bool:
        """Whether an expression that is no path and no cast gives a Variant."""
        if isinstance(node, exp.Column):
            return not isinstance(node.this, exp.Star) and is_variant(self._kind(node))
        if isinstance(node, (exp.Bracket, exp.Dot)):
            return is_variant(taken_from(self.expression(node.this)[1], node))
        if isinstance(node, (exp.JSONExtract, exp.Cast)) or _is_getter(node):
            return False  # of a Variant, these are terms
        return is_variant(self.expression(node)[1])

    def expression(self, node: exp.Expr) -> tuple[exp.Expr, Kind]:
        """A rewritten expression, and the Variants in what it gives."""
        known = self.done.get(id(node))
        if known is None:
            known = self.done[id(node)] = (node, *self._expression(node))
            self.done[id(known[1])] = known
        return known[1:]

    def _expression(self, node: exp.Expr) -> tuple[exp.Expr, Kind]:
        asks = isinstance(node, (exp.Column, exp.JSONExtract, exp.Bracket, exp.Dot, exp.Cast)) or _is_getter(node)
        term = read_term(node, self.is_variant, self.engine) if asks else None
        if term is not None:
            rewritten = self._term(term)
            if rewritten is not node:
                rewritten.meta["written"] = node
            return rewritten, VARIANT_STORAGE if term.output is None else only_variants(term.output)
        if isinstance(node, exp.Column):
            return self._column(node), self._kind(node)
        if isinstance(node, exp.Identifier):
            return node, self.scope.locals.get(node.name.lower())
        if isinstance(node, exp.JSONExtract) and node.args.get("variant_extract"):
            raise self._no_variant(node, node.this)
        if _is_getter(node) and node.expressions and self.engine == "duckdb":
            raise self._no_variant(node, node.expressions[0])
        if isinstance(node, (exp.Select, exp.SetOperation, exp.Subquery)):
            outputs = self.rewriter.query(node, self.scope)
            return node, outputs[0].kind if outputs and len(outputs) == 1 else None
        if isinstance(node, exp.Lambda):
            return node, self.lambda_kind(node, [each.name for each in node.expressions])
        if isinstance(node, exp.Star):
            return node, None
        if isinstance(node, exp.Columns):
            if any(_may_hold_variants(each) for each in self.scope.visible()):
                raise SqlError("COLUMNS(…) is not for tables with Variants: list the columns")
            return node, None
        if isinstance(node, exp.Binary) and node.this.is_star:
            raise SqlError("* LIKE … is not for tables with Variants: list the columns")
        return self._handing_on(node)

    def _handing_on(self, node: exp.Expr) -> tuple[exp.Expr, Kind]:
        """Expressions that may hold a Variant: CASE, COALESCE, IS NULL, COUNT, windows over them; no other."""
        name = str(node.this).lower() if isinstance(node, exp.Anonymous) else ""
        if isinstance(node, (exp.Paren, exp.Alias, exp.PropertyEQ)):
            key = "expression" if isinstance(node, exp.PropertyEQ) else "this"
            value, kind = self.expression(node.args[key])
            node.set(key, value)
            names = [each for each in node.iter_expressions() if isinstance(each, exp.Identifier)]
            self.children(node, names, skip=(key,))
            return node, kind
        if isinstance(node, exp.Exists):
            _ask_for_rows_alone(node.this)
        if isinstance(node, (exp.Is, exp.Exists)) or name in _COUNTS:
            self.children(node, [*node.iter_expressions()])
            return node, None
        if (name in _AGGREGATES and node.expressions) or isinstance(node, exp.ArrayAgg):
            first = node.this if isinstance(node, exp.ArrayAgg) else node.expressions[0]
            kind = self.expression(first)[1]
            self.children(node, [first])
            return node, None if kind is None else pa.list_(kind)
        if isinstance(node, exp.Coalesce):
            return node, self.alike(node, [node.this, *node.expressions])
        if name in _OF_VARIANTS and len(node.expressions) == 1:
            value, kind = self.expression(node.expressions[0])
            node.set("expressions", [value])
            if is_variant(kind) and self.engine == "duckdb":
                node.set("this", self.rewriter.getter(function=name))
            return node, None
        if isinstance(node, exp.Case):
            branches = [each.args["true"] for each in node.args.get("ifs") or ()] + [node.args.get("default")]
            return node, self.alike(node, branches)
        if isinstance(node, exp.If):
            return node, self.alike(node, [node.args["true"], node.args.get("false")])
        if name in _HAND_ON:
            first = 1 if name in ("if", "iff") else 0
            return node, self.alike(node, node.expressions[first : 1 if name in _FIRST_ONLY else None])
        if isinstance(node, _OF_WHAT_IS_IN) or (isinstance(node, exp.Order) and node.this):
            kind = self.expression(node.this)[1]
            self.children(node, [node.this])
            return node, kind
        kind = nested_kind(self, node, name)
        if kind is not NOT_NESTED:
            return node, kind
        self.children(node)
        return node, None

    def alike(self, node: exp.Expr, parts: Sequence[exp.Expr | None]) -> Kind:
        """Rewrite an expression that hands on some of its parts: the Variants in those, which must be alike."""
        text = written(node, self.engine)
        values = [
            each for each in parts if each is not None and not isinstance(each, exp.Null) and each != _NO_ELEMENTS
        ]
        kinds = [self.expression(each)[1] for each in values]
        if any(each is not None for each in kinds) and not all(each == kinds[0] for each in kinds):
            raise SqlError(f"{text} mixes a Variant with other values: cast the Variant, as in ::string")
        for each in node.args.get("ifs") or ():
            self.children(each, [each.args["true"]])
        self.children(node, parts, skip=("ifs",))
        return kinds[0] if kinds else None

    def children(self, node: exp.Expr, handed: Sequence[exp.Expr | None] = (), skip: tuple[str, ...] = ()) -> None:
        """Rewrite what an expression is made of; only what it hands on may hold Variants."""
        may = {id(each) for each in handed}
        for key, argument in list(node.args.items()):
            if key in skip:
                continue
            if isinstance(argument, exp.Expr):
                node.set(key, self._child(argument, may))
            elif isinstance(argument, list):
                node.set(key, [self._child(each, may) for each in argument])

    def _child(self, node: Any, may: set[int]) -> Any:
        if not isinstance(node, exp.Expr) or isinstance(node, (exp.DataType, exp.Var)):
            return node
        return self.expression(node)[0] if id(node) in may else self.value(node)

    def lambda_kind(self, node: exp.Lambda | exp.Comprehension, names: list[str], element: Kind = None) -> Kind:
        """Rewrite a lambda, whose first parameter is an element: the Variants in what it gives."""
        before = self.scope.locals
        self.scope.locals = before | {name.lower(): None for name in names} | {names[0].lower(): element}
        own = ("expressions",) if isinstance(node, exp.Lambda) else ("expression", "position")
        self.children(node, [node.this, node.args.get("iterator")], skip=own)
        kind = self.expression(node.this)[1]
        self.scope.locals = before
        self.done[id(node)] = (node, node, kind)
        return kind

    # ---- columns and paths

    def _term(self, term: VariantTerm) -> exp.Expr:
        if isinstance(term.column, exp.Column):
            hit = self.scope.resolve(term.column)
            if hit is not None and hit.ambiguous and hit.column.is_variant:
                tables = " or ".join(each.relation.alias for each in self.scope.everywhere(term.column.name))
                raise SqlError(f"{term.column.name} may be of {tables}: write the table before it")
            if hit is not None and hit.relation.use is not None and not hit.rest:
                return self._table_column(hit, hit.relation.use, term)
        inner = self._handed(term.column)
        return inner if not term.path.segments and not term.cast else self._get(inner, term)

    def _handed(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column):
            return self._column(node).copy()
        return self._handing_on(node)[0] if isinstance(node, (exp.Bracket, exp.Dot)) else self.expression(node)[0]

    def _table_column(self, hit: Hit, use: TableUse, term: VariantTerm) -> exp.Expr:
        column = hit.column.name or ""
        name = column_name(term, column)
        if name == column:
            use.named.add(name)
        else:
            name = f"{use.number}.{name}"
        use.needed[name] = use.table.needs(column, term.path, term.type)
        return _reference(hit.relation, name, use, type=term.output)

    def _get(self, inner: exp.Expr, term: VariantTerm) -> exp.Expr:
        if self.engine == "spark":
            kind = "variant" if term.type is None else sql_type_name(term.type)
            arguments = [inner, exp.Literal.string(str(term.path)), exp.Literal.string(kind)]
            return exp.Anonymous(this="try_variant_get", expressions=arguments)
        return exp.Anonymous(this=self.rewriter.getter(term), expressions=[inner])

    def _is_local(self, node: exp.Column) -> bool:
        return node.parts[0].name.lower() in self.scope.locals

    def _kind(self, node: exp.Column) -> Kind:
        """The Variants in a column, a lambda's parameter or an output."""
        if self._is_local(node):
            first, *fields = (part.name for part in node.parts)
            return reduce(field_of, fields, self.scope.locals[first.lower()])
        hit = self.scope.resolve(node)
        if hit is not None:
            return hit.kind
        alias = self._alias(node)
        return None if alias is None else alias.kind

    def _column(self, node: exp.Column) -> exp.Expr:
        if isinstance(node.this, exp.Star) or self._is_local(node):
            return node
        hit = self.scope.resolve(node)
        if hit is None:
            if not self.scope.is_known(node):
                self.rewriter.add_unknown(self._missing(node))
            elif self._whole_table(node):
                raise SqlError(f"{node.name} is a table: name its columns, or write {node.name}.*")
            return node
        use = hit.relation.use
        if use is None:
            told_apart_in(hit.column.name or "", [each.name or "" for each in hit.relation.columns])
            return node
        name = hit.column.name or ""
        use.named.add(name)
        for each in self.scope.everywhere(node.parts[0].name) if hit.ambiguous else [hit]:
            if each.relation.use is not None:
                each.relation.use.needed[each.column.name or ""] = each.relation.use.table.needs(each.column.name or "")
        if hit.ambiguous:
            return node
        use.needed[name] = use.table.needs(name)
        if self.in_having and self._alias(node) is not None:
            return node  # an output's name, unless the column is grouped by: the engine knows
        reference = _reference(hit.relation, name, use, written=node)
        check_fields(use.table.columns.ordinary.get(name), name, hit.rest)
        for part in hit.rest:
            reference = exp.Dot(this=exp.Paren(this=reference), expression=exp.to_identifier(part, quoted=True))
        return reference

    def _whole_table(self, node: exp.Column) -> bool:
        names = {each.alias.lower() for each in self.scope.visible() if each.use is not None}
        return len(node.parts) == 1 and node.name.lower() in names and node.name.lower() not in self.scope.aliases

    def _missing(self, node: exp.Column) -> str:
        name = ".".join(part.name for part in node.parts)
        tables = [each.alias for each in self.scope.visible()]
        if len(node.parts) > 1 and tables and node.parts[0].name.lower() not in [each.lower() for each in tables]:
            return f"there is no table {node.parts[0].name}: FROM has {', '.join(tables)}"
        hint = ": text stands in single quotes" if node.this.quoted and self.engine == "duckdb" else ""
        if len(node.parts) > 1 and name in self.scope.names():
            return f'unknown column {node.parts[0].name}; the column whose name has a dot is written "{name}"'
        return f"there is no column {name}{hint}: choose from {', '.join(self.scope.names()) or 'none'}"

    def _no_variant(self, node: exp.Expr, inner: exp.Expr) -> SqlError:
        if isinstance(inner, exp.Column) and self.scope.resolve(inner) is None and not self.scope.is_known(inner):
            return SqlError(self._missing(inner))
        slices = "; a slice is written list_slice(list, 1, 2)" if node.find_ancestor(exp.Bracket) else ""
        return SqlError(
            f"{written(node, self.engine)}: {written(inner, self.engine)} is no Variant, so it has no paths{slices}"
        )

    # ---- stars

    def _star(self, item: exp.Expr) -> list[OutputColumn] | bool | None:
        """The outputs of ``*`` or ``t.*``; False if they are not known; None for any other expression."""
        star = item.this if isinstance(item, exp.Column) else item
        if not isinstance(star, exp.Star):
            return None
        table = item.table if isinstance(item, exp.Column) else None
        relations = [each for each in self.scope.visible() if each.alias.lower() == (table or each.alias).lower()]
        if table and not relations:
            raise SqlError(
                f"there is no table {table}: FROM has {', '.join(each.alias for each in self.scope.visible())}"
            )
        left_out = {_excluded(each).lower() for each in star.args.get("except_") or ()}
        replaced = {each.alias.lower(): each for each in star.args.get("replace") or ()}
        outputs: list[OutputColumn] = []
        for relation in relations:
            for each in {*left_out, *replaced}:
                told_apart_in(each, [column.name or "" for column in relation.columns])
            for column in relation.columns:
                name = column.name or ""
                if column.struct_path:  # the star gives the struct
                    continue
                if relation.use is not None and name.lower() not in left_out:
                    path = VariantPath() if column.is_variant else None
                    relation.use.needed[name] = relation.use.table.needs(name, path)
                if name.lower() not in left_out:
                    outputs.append(column)
        for alias, each in replaced.items():
            value, kind = self.expression(each.this)
            each.set("this", value)
            outputs = [OutputColumn(o.name, kind) if (o.name or "").lower() == alias else o for o in outputs]
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
                for name in use.named:
                    told_apart_in(name, list(use.needed))
                order = {name: place for place, name in enumerate(use.table.order)}
                use.needed = dict(sorted(use.needed.items(), key=lambda item: order.get(item[0], len(order))))
        for star, table, left_out in self.stars:
            hidden = list(star.args.get("except_") or ())
            for relation in self.scope.relations:
                if (
                    relation.use is None
                    or not relation.is_visible
                    or relation.alias.lower() != (table or relation.alias).lower()
                ):
                    continue
                own = {
                    column.name
                    for column in relation.columns
                    if not column.struct_path and (column.name or "").lower() not in left_out
                }
                hidden += [exp.to_identifier(name, quoted=True) for name in relation.use.needed if name not in own]
            star.set("except_", hidden or None)


def _reference(relation: Relation, name: str, use: TableUse, **known: object) -> exp.Expr:
    """A column of a table, with what is to be known of it later."""
    column = exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(relation.alias, quoted=True))
    column.meta.update(known, **{USE: use.number})
    return column


def told_apart_in(name: str, names: Sequence[str]) -> None:
    """Refuse a name that several columns have but for the case of letters: the engines take one of them."""
    alike = list(dict.fromkeys(each for each in names if each.lower() == name.lower()))
    if len(alike) > 1:
        raise SqlError(
            f"{name} may be {' or '.join(alike)}, which SQL does not tell apart: ask for one alone, or give them other "
            "names, with AS"
        )


def _ask_for_rows_alone(query: exp.Expr) -> None:
    """Let a query of EXISTS that selects all columns read none of them for it."""
    if isinstance(query, exp.Select) and not query.args.get("group") and query.args.get("from_"):
        items = query.expressions
        if all(isinstance(each, exp.Star) and not any(each.args.values()) for each in items):
            query.set("expressions", [exp.Literal.number(1)])


def _may_hold_variants(relation: Relation) -> bool:
    return relation.use is not None or relation.is_open or any(each.kind is not None for each in relation.columns)


def _excluded(node: exp.Expr) -> str:
    return node.this.name if isinstance(node, exp.Column) else node.name


def _is_getter(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and str(node.this).lower() in ("variant_get", "try_variant_get")


def _replace(node: exp.Expr, child: exp.Expr, new: exp.Expr) -> None:
    for key, argument in node.args.items():
        if argument is child:
            node.set(key, new)
            return
        if isinstance(argument, list) and any(each is child for each in argument):
            node.set(key, [new if each is child else each for each in argument])
            return
