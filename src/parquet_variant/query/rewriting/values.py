"""Rewritten expressions: what the engine computes for an expression of the query, and what is known of its values.

Owns columns, paths into Variants, casts of Variants to text and JSON, and the typed column in the place of a path
without a cast. Leaves other expressions to the subclasses, and proving types to the tables.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from sqlglot import exp

from parquet_variant.query.path_dialect import with_steps
from parquet_variant.query.rewriting import scopes
from parquet_variant.query.selection import Selected, field_of, is_variant
from parquet_variant.query.sql_dialect import SqlError, from_template, sql_type_name, written
from parquet_variant.query.sql_pushdown import class_of_type
from parquet_variant.query.variant_functions import call_name, unknown_function
from parquet_variant.support.options import SqlEngine
from parquet_variant.support.records import Record
from parquet_variant.types.path import VariantPath
from parquet_variant.types.targets import VARIANT_STORAGE


class VariantTerm(Record):
    """A path into a Variant, and the type that an expression casts it to."""

    path: VariantPath = VariantPath()
    type: pa.DataType | None = None  # The Arrow type of the result; None for a Variant.
    cast: bool = False  # Whether there is a cast; ``::variant`` is a cast, too.
    tries: bool = False  # Whether a value that cannot be cast is NULL even where failed casts are errors.

    @property
    def key(self) -> str | None:
        """The last key of the path, which names the output column."""
        keys = [segment for segment in self.path.segments if isinstance(segment, str)]
        return keys[-1] if keys else None

    @property
    def output(self) -> pa.DataType | None:
        """The Arrow type of the result, a list for each wildcard; None for a Variant."""
        return Selected("", self.path, self.type).output


ROOT = VariantTerm()


@dataclass(eq=False, frozen=True, slots=True)
class Value(scopes.HoldsVariants):
    """An expression, rewritten for the engine."""

    source: exp.Expr  # The expression as the user wrote it.
    make: Callable[[], exp.Expr]  # Returns a tree for the engine, to which nothing else refers.
    type: pa.DataType | None = None
    term: VariantTerm | None = None  # The path and the cast, if it is a path into `root`.
    root: Value | None = None  # The Variant that the path begins at.
    column: scopes.ResolvedColumn | None = None  # The column that it is.
    place: scopes.StoredPath | None = None  # Where the values of a Variant are stored.
    origin: scopes.StoredPath | None = None  # Where the values of which an aggregate returns one are stored.
    # Returns the Variant as the type of all its values, if it is known; Variant nulls become NULL.
    as_typed: Callable[[], Value | None] | None = None

    def __deepcopy__(self, _: object) -> Value:
        return self  # so that a copy of a tree keeps the values of its nodes

    @property
    def sql(self) -> exp.Expr:
        """A tree for the engine."""
        return self.make()

    @property
    def is_path(self) -> bool:
        """Whether a path or a cast can follow: of a Variant, or of a path with [*], whose result is a list."""
        return self.is_variant or (self.term is not None and not self.term.cast)

    @property
    def start(self) -> tuple[VariantTerm, Value]:
        """The path that the value is at, and the Variant that it begins at."""
        return (ROOT, self) if self.term is None or self.root is None else (self.term, self.root)

    def typed(self, *, nulls: bool = True) -> Value | None:
        """Return the Variant as the type of all its values; None if the types differ, or the query asks for a Variant.

        `nulls`: whether values may also be Variant null.
        """
        if self.as_typed is None or (self.term is not None and self.term.cast):
            return None
        is_proved = nulls or (self.place is not None and self.place.common_type(nulls=False) is not None)
        return self.as_typed() if is_proved else None

    def missing_path_hint(self, *, elsewhere: bool = False) -> str | None:
        """Return the hint for a path that no row has; None for a path that exists, and for other expressions.

        `elsewhere`: whether other paths with its last key are looked for.
        """
        place = self.place or self.origin
        if place is None or place.inside or not place.path.segments:
            return None
        return scopes.missing_path(place.table, place.column, place.path, elsewhere=elsewhere)

    def typed_or_null(self) -> Value | None:
        """Return the Variant as `typed` does, and NULL for a path that no row has."""
        typed = self.typed()
        return value_of(self.source, exp.Null()) if typed is None and self.missing_path_hint() is not None else typed


Around = Callable[[list[exp.Expr]], exp.Expr]  # Callback: rewritten parts -> the expression that has them.
# Callback: a value that holds Variants -> what takes its place.
Convert = Callable[[Value], exp.Expr]


def engine_call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """Return a call of a function of the engine."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def copies(part: Any) -> Any:
    """Return a copy of a tree, or of each tree in a list or dict."""
    if isinstance(part, dict):
        return {key: copies(element) for key, element in part.items()}
    if isinstance(part, list):
        return [copies(element) for element in part]
    return part.copy() if isinstance(part, exp.Expr) else part


def arguments_of(node: exp.Expr) -> list[exp.Expr]:
    """Return the arguments of a function, whether sqlglot has a class for it or not, or the operands of an operator."""
    further = [node.expression] if isinstance(node, exp.Binary) else node.expressions
    return [*([node.this] if isinstance(node.this, exp.Expr) else []), *further]


def value_of(source: exp.Expr, sql: exp.Expr, type: pa.DataType | None = None) -> Value:
    """Return the value of a rewritten tree."""
    return Value(source, sql.copy, type)


def subset_of(value: Value, source: exp.Expr, around: Around) -> Value:
    """Return an expression whose values are some of those of another one, such as an aggregate."""
    result = made_of([value], source, around, common_type)
    return replace(result, type=value.type, origin=value.place or value.origin)


def classes_of(values: Sequence[Value | None]) -> set[Any]:
    """Return the classes of values as far as they have one, else their types; NULL has none."""
    found = [value for value in values if value is not None and not isinstance(value.sql, exp.Null)]
    return {class_of_type(value.type) or value.type for value in found}


def common_type(types: Iterable[pa.DataType | None]) -> pa.DataType | None:
    """Return the type that the engine gives values of some types, as far as it is simple; None is a NULL."""
    found = [kind for kind in types if kind is not None]  # no set: the hashes of equal types of lists may differ
    is_same = all(kind == found[0] for kind in found)
    return next(iter(found), None) if is_same else pa.float64() if pa.float64() in found else None


def list_of(types: Iterable[pa.DataType | None]) -> pa.DataType | None:
    """Return the type of a list of values of some types."""
    item = common_type(types)
    return None if item is None else pa.list_(item)


def made_of(
    values: Sequence[Value],
    source: exp.Expr,
    around: Around,
    type_of: Callable[[list[pa.DataType | None]], pa.DataType | None],
    *,
    alike: bool = False,
) -> Value:
    """Return an expression over others, in which Variants have the type of all their values where types are needed.

    `type_of`: returns its type for those of the others.
    `alike`: whether the others need one type, or types of numbers, and a path that no row has is NULL.
    """

    def as_typed() -> Value | None:
        typed = (v if v.kind is None else v.typed_or_null() if alike else v.typed() for v in values)
        forms = [form for form in typed if form is not None]
        if len(forms) < len(values) or (alike and len(classes_of(forms)) > 1):
            return None
        return value_of(source, around([form.sql for form in forms]), type_of([form.type for form in forms]))

    typed = as_typed if any(value.as_typed is not None for value in values) else None
    sql = around([value.sql for value in values])
    is_known = all(value.type is not None for value in values)  # literals have no type
    types = [value.type if is_known else value.kind for value in values]
    return Value(source, sql.copy, type_of(types), as_typed=typed)


@dataclass(slots=True)
class QueryContext:
    """The options of a query, and what is found in it."""

    engine: SqlEngine
    zone: str  # The session time zone.
    strict: bool = False  # Whether scans raise for failed casts.
    is_condition: bool = False  # Whether it is a condition on rows that are changed, not a query.
    warnings: list[str] = field(default_factory=list)  # Warnings about the result.
    # Messages about names that are not columns, used if the engine does not know them either.
    unknown: list[str] = field(default_factory=list)

    def query(self, node: exp.Expr, around: scopes.Scope) -> tuple[exp.Expr, scopes.Outputs]:
        """Rewrite a query inside the query; conditions have none."""
        raise NotImplementedError


class PathRewriter(ABC):
    """Rewrites the columns and paths of one SELECT, or of a condition."""

    def __init__(self, context: QueryContext, scope: scopes.Scope) -> None:
        self.context, self.scope, self.engine = context, scope, context.engine
        self.in_having = False

    @abstractmethod
    def read(self, node: exp.Expr) -> Value:
        """Rewrite an expression that has no value yet."""

    def expression(self, node: exp.Expr) -> Value:
        """Rewrite an expression; its value is kept with the node."""
        value = node.meta.get("value")
        if value is None:
            value = node.meta["value"] = self.read(node)
        return value

    def rebuild(self, node: exp.Expr, convert: Convert | None = None, /, **parts: Any) -> exp.Expr:
        """Return a copy of an expression with rewritten parts; Variants among them are converted or refused.

        `parts`: parts that are rewritten already.
        """
        return type(node)(
            **{key: parts[key] if key in parts else self.parts(part, convert) for key, part in node.args.items()}
        )

    def parts(self, part: Any, convert: Convert | None = None) -> Any:
        """Return a rewritten part of an expression: an expression, a list, or a constant."""
        if isinstance(part, list):
            return [self.parts(element, convert) for element in part]
        if not isinstance(part, exp.Expr) or isinstance(part, (exp.DataType, exp.Var)):
            return part.copy() if isinstance(part, exp.Expr) else part
        is_key = convert == self.by_key and isinstance(part, exp.Tuple)
        if convert is not None and (isinstance(part, exp.Distinct) or is_key):
            return self.rebuild(part, convert)
        if convert is not None and isinstance(part, exp.Order):  # the argument of an aggregate, and its order
            keys = [self.expression(key).sql for key in part.expressions]
            return exp.Order(this=self.parts(part.this, convert), expressions=keys)
        return self.plain(part, convert)

    def with_arguments(self, node: exp.Expr, arguments: list[exp.Expr], convert: Convert | None = None) -> exp.Expr:
        """Return a function or operator with other arguments."""
        if isinstance(node.this, exp.Expr):
            last = {"expression": arguments[-1]} if isinstance(node, exp.Binary) else {"expressions": arguments[1:]}
            return self.rebuild(node, convert, this=arguments[0], **last)
        return self.rebuild(node, convert, expressions=arguments)

    def plain(self, node: exp.Expr, convert: Convert | None = None) -> exp.Expr:
        """Rewrite an expression that may not hold Variants, unless they are converted."""
        value = self.expression(node)
        if value.kind is None:
            return value.sql
        return self.only_typed(value) if convert is None else convert(value)

    def only_typed(self, value: Value) -> exp.Expr:
        """Return a Variant as the type of all its values; a Variant without one is refused."""
        if (typed := value.typed()) is not None:
            return typed.sql
        parent = value.source.parent
        function = str(parent.this).lower() if isinstance(parent, exp.Anonymous) else ""
        if isinstance(parent, (exp.Any, exp.All)) or function.startswith(("list_", "array_")):
            self.refuse_as_list(value)
        raise self.untyped(value)

    def untyped(self, value: Value) -> SqlError:
        """Return the error for a Variant where the engine needs a type."""
        text, parent = self.text(value.source), value.source.parent
        call = parent if isinstance(parent, exp.Anonymous) and self.engine == "duckdb" else None
        if call is not None and (message := unknown_function(call.name)) is not None:
            return SqlError(message)
        quotes = "; a key that contains - is quoted: v:['a-b'].c" if isinstance(parent, exp.Sub) else ""
        if (hint := value.missing_path_hint(elsewhere=True)) is not None:
            return SqlError(f"{hint}{quotes}")
        if not value.is_variant:
            return SqlError(f"{text} holds Variants: to compare or compute, give them types, as in ::array<string>")
        cast = f"({text})" if " " in text else text
        clauses = (exp.And, exp.Or, exp.Not, exp.Where, exp.Having, exp.Join, exp.Qualify)
        is_condition = isinstance(parent, clauses) or (isinstance(parent, exp.If) and parent.this is value.source)
        is_condition |= call is not None and call.name.lower() in ("bool_and", "bool_or", "count_if")
        kinds = f"{cast}::boolean" if is_condition else f"{cast}::string or {cast}::double"
        return SqlError(f"{text} is a Variant, which cannot be computed with: write a type, as in {kinds}{quotes}")

    def refuse_as_list(self, value: Value) -> None:
        """Refuse a Variant where a list is needed."""
        if value.is_variant:
            text = self.text(value.source.unnest())
            types = f"{text}::array<variant>, {text}::array<string>, or another type of elements"
            raise SqlError(f"{text} is a Variant, not a list: write {types}")

    def text(self, node: exp.Expr) -> str:
        """Return an expression as the user wrote it."""
        return written(node, self.engine)

    def call(self, function: str, *arguments: exp.Expr, constants: tuple[Any, ...] = ()) -> exp.Expr:
        """Return a call of a function of `variant_functions`."""
        return exp.Anonymous(this=call_name(function, constants), expressions=list(arguments))

    def key_of(self, variant: exp.Expr) -> exp.Expr:
        """Return the sort key of a rewritten Variant."""
        return self.call("sort_key", variant)

    def by_key(self, value: Value) -> exp.Expr:
        """Return a Variant as the type of all its values, or else its sort key."""
        typed = value.typed()
        if typed is None and not value.is_variant:
            raise self.untyped(value)
        return self.key_of(value.sql) if typed is None else typed.sql

    def as_variant(self, value: Value) -> Value:
        """Return any value as a Variant."""
        variant = self.call("variant_cast", value.sql)
        if value.kind is None:
            # Of these types the engine's VARIANT loses values, or has another form; see docs/internals/sql-variants.md.
            types = "MAP|UBIGINT|UHUGEINT|TIMESTAMP_M?S|TIME_NS"
            template = f"CASE WHEN regexp_matches(typeof(_0), '{types}') THEN _1 ELSE _2 END"
            by_engine = self.call("variant_of", exp.cast(value.sql, "VARIANT"))
            variant = from_template(template, [value.sql, variant, by_engine])
        return value if value.is_variant else value_of(value.source, variant, VARIANT_STORAGE)

    def path(self, root: Value, term: VariantTerm, source: exp.Expr) -> Value:
        """Return the value at a path of a Variant, cast to a type if the term has one."""
        use = None if root.column is None else root.column.relation.use
        is_simple = all(isinstance(step, (str, int)) for step in term.path.segments)
        make: Callable[[], exp.Expr]
        if term.tries and self.context.strict and term.type is not None:  # a scan would raise
            inner = self.path(root, replace(ROOT, path=term.path if is_simple else ROOT.path), source)
            cast = replace(term, path=ROOT.path) if is_simple else term
            make = lambda: self.get(inner.sql, cast)  # noqa: E731
        elif root.column is not None and use is not None:
            make = partial(self.table_column, root.column, use, term)
        elif term.path.segments or term.cast:
            make = lambda: self.get(root.sql, term, root.source)  # noqa: E731
        else:
            make = root.make
        place = None if root.place is None or term.type is not None else root.place.extended(term.path)
        has_place = place is not None and bool(term.path.segments) and self.engine == "duckdb"

        def as_typed() -> Value | None:
            common = None if place is None else place.common_type()
            return None if common is None else self.path(root, replace(term, type=common, cast=True), source)

        kind = VARIANT_STORAGE if term.output is None else term.output
        typed = as_typed if has_place else None
        return Value(source, make, kind, term, root, place=place, as_typed=typed)

    def get(self, variant: exp.Expr, term: VariantTerm, source: exp.Expr | None = None) -> exp.Expr:
        """Return the call that takes the value at a path out of `source`, whose failed casts are reported."""
        kind = None if term.type is None else sql_type_name(term.type)
        if self.engine == "spark":
            arguments = [variant, exp.Literal.string(str(term.path)), exp.Literal.string(kind or "variant")]
            return exp.Anonymous(this="try_variant_get", expressions=arguments)
        text = None
        if source is not None and kind is not None and not term.tries:
            text = f"{with_steps(self.text(source), term.path.segments)}::{kind}"
        return self.call("variant_get", variant, constants=(str(term.path), kind, term.tries, text))

    def cast_to(self, variant: exp.Expr, kind: pa.DataType, source: exp.Expr | None = None) -> exp.Expr:
        """Return the cast of a rewritten Variant; see `get`."""
        return self.get(variant, VariantTerm(type=kind, cast=True), source)

    def table_column(self, hit: scopes.ResolvedColumn, use: scopes.TableUse, term: VariantTerm) -> exp.Expr:
        """Return the column of a scan for a path; the same path and type have the same name."""
        column = hit.column.name or ""
        if term.path.segments or term.cast:
            kind = "variant" if term.type is None else sql_type_name(term.type)
            name = f"{column}:{term.path}:{kind}"
            # Engines ignore letter case in names, so the position and code of each upper-case letter are appended.
            marks = [f"{place}-{ord(sign)}" for place, sign in enumerate(name) if not sign.isascii() or sign.isupper()]
            name = use.prefix + use.name_of(" ".join([name, *marks]))
        else:
            name = use.name_of(column)
            use.named.add(name)
        if not (term.tries and name in use.needed):
            need = use.table.needs(column, term.path, term.type)
            use.needed[name] = replace(need, failed=None) if term.tries else need
        reference = _reference(hit.relation, name, use, term.output)
        if hit.malformed is None:
            return reference
        malformed = use.prefix + hit.malformed
        use.needed[malformed] = use.table.needs(hit.malformed)
        text = _reference(hit.relation, malformed, use, pa.binary())
        template = "CASE WHEN _0 IS NULL THEN _1 WHEN _2 IS NULL THEN _1 END"
        return from_template(template, [text, reference, self.call("parse_json", text)])

    def alias(self, node: exp.Expr) -> scopes.OutputColumn | None:
        """Return the output that a name is the alias of, if it is one."""
        if not isinstance(node, exp.Column) or len(node.parts) > 1:
            return None
        if (twins := self.scope.twins.get(node.name.lower())) is not None:
            scopes.check_distinct(node.name, twins)
        return self.scope.aliases.get(node.name.lower())

    def resolve(self, node: exp.Expr) -> scopes.ResolvedColumn | None:
        """Return the column that a name refers to; None for other expressions, and parameters of lambdas."""
        is_name = isinstance(node, exp.Column) and node.parts[0].name.lower() not in self.scope.locals
        return self.scope.resolve(node) if is_name and isinstance(node, exp.Column) else None

    def read_column(self, node: exp.Column) -> Value:
        """Rewrite a name."""
        first, *fields = (part.name for part in node.parts)
        if isinstance(node.this, exp.Star) or first.lower() in self.scope.locals:
            kind = None if isinstance(node.this, exp.Star) else self.scope.locals[first.lower()]
            return value_of(node, node, reduce(field_of, fields, kind))
        hit = self.scope.resolve(node)
        if hit is None:
            alias = self.alias(node)
            tables = [relation for relation in self.scope.visible() if relation.alias.lower() == first.lower()]
            if not self.scope.is_known(node):
                self.context.unknown.append(scopes.unknown_name(self.scope, node, self.engine))
            elif not fields and alias is None and tables:
                scopes.refuse_table(node, tables[0])
            return value_of(node, node, None if alias is None else alias.kind)
        use, is_variant_column = hit.relation.use, hit.column.is_variant and not hit.fields
        if hit.ambiguous and (hit.column.is_variant or self.context.is_condition):
            name = node.parts[0].name
            shown = " or ".join(match.relation.alias for match in self.scope.everywhere(name))
            raise SqlError(f"{name} is ambiguous: {shown} has such a column; write the table before it")
        if use is None or (self.context.is_condition and hit.column.name not in [part.name for part in node.parts]):
            scopes.check_distinct(hit.column.name or "", [column.name or "" for column in hit.relation.columns])
        if use is None:
            place = None if hit.fields else hit.column.place
            node.meta["type"] = None if is_variant_column else hit.type

            def as_typed() -> Value | None:
                common, column = reduce(field_of, hit.fields, hit.column.common), node.copy()
                if common is None and is_variant_column and place is not None and place.inside:
                    common = place.common_type()
                if common is None:
                    return None
                if not is_variant(hit.type):  # a list or struct with Variants inside
                    return self.expression(from_template(f"_0::{sql_type_name(common)}", [node]))
                if not column.table and hit.relation.alias:  # not an output of this SELECT
                    column.set("table", exp.to_identifier(hit.relation.alias, quoted=True))
                return value_of(node, self.cast_to(column, common), common)

            typed = as_typed if self.engine == "duckdb" else None
            column = hit if is_variant_column else None
            return Value(node, node.copy, hit.type, column=column, place=place, as_typed=typed)
        if is_variant_column:
            make = partial(self.table_column, hit, use, ROOT)
            return Value(node, make, VARIANT_STORAGE, column=hit, place=hit.column.place)
        return self._read_ordinary(node, hit, use)

    def _read_ordinary(self, node: exp.Column, hit: scopes.ResolvedColumn, use: scopes.TableUse) -> Value:
        column = hit.column.name or ""
        name = use.name_of(column)
        use.named.add(name)
        for match in self.scope.everywhere(node.parts[0].name) if hit.ambiguous else [hit]:
            if (table_use := match.relation.use) is not None:
                matching = match.column.name or ""
                table_use.needed[table_use.name_of(matching)] = table_use.table.needs(matching)
        if hit.ambiguous or (self.in_having and self.alias(node) is not None):
            return value_of(node, node, hit.type)  # an output's name, unless it is grouped by: the engine knows
        ordinary = use.table.columns.ordinary.get(column)
        reference = _reference(hit.relation, name, use, None if hit.fields else ordinary)
        kind, shown = ordinary, column
        for part in hit.fields:
            if kind is not None and not pa.types.is_struct(kind):
                raise SqlError(f"{shown} is {sql_type_name(kind)}, not a struct, so it has no field {part}")
            fields = {} if kind is None else {field.name.lower(): field.type for field in reversed(list(kind))}
            if kind is not None and part.lower() not in fields:
                names = ", ".join(field.name for field in kind)
                raise SqlError(f"{shown} has no field {part}: choose from {names}")
            kind, shown = fields.get(part.lower()), f"{shown}.{part}"
            reference = exp.Dot(this=exp.Paren(this=reference), expression=exp.to_identifier(part, quoted=True))
        return Value(node, reference.copy, hit.type, place=None if hit.fields else hit.column.place)


def _reference(relation: scopes.Relation, name: str, use: scopes.TableUse, kind: pa.DataType | None) -> exp.Expr:
    """Return a column of a table, with the facts that later steps need."""
    column = exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(relation.alias, quoted=True))
    column.meta.update({"type": kind, scopes.USE: use.number})
    return column
