"""Conditions and values in SQL over the columns of one or several tables, for DELETE, UPDATE and MERGE.

Owns the columns that an expression needs, its pushdown, and its text over those columns. Leaves whole queries, with
their scopes, to `sql_query`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pyarrow as pa
from sqlglot import exp

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.query.duckdb_engine import connect, run_interruptibly
from parquet_variant.query.function_calls import returns_variant, rewrite_call
from parquet_variant.query.local_times import with_earlier_instants
from parquet_variant.query.predicate import Predicate
from parquet_variant.query.selection import Selected
from parquet_variant.query.sql_dialect import SqlError, parse_sql, to_sql, written
from parquet_variant.query.sql_pushdown import pushdown
from parquet_variant.query.sql_terms import VariantTerm, read_term
from parquet_variant.query.sql_types import sql_type_name
from parquet_variant.query.variant_functions import OF_ONE_VARIANT, call_name, register_calls, unknown_function
from parquet_variant.support.choices import SqlEngine
from parquet_variant.types.path import VariantPath
from parquet_variant.types.targets import VARIANT_STORAGE


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of a table that an expression can name."""

    variants: Sequence[str] = ()  # Names of the Variant columns, those of `nested` included.
    ordinary: Mapping[str, pa.DataType] = field(default_factory=dict)  # Arrow types of the other columns by name.
    # Variants inside structs: the dotted name that scans use for them -> names of the struct and its fields.
    nested: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def top(self) -> list[str]:
        """Names of the columns that are not inside a struct."""
        return list(dict.fromkeys([*self.ordinary, *(name for name in self.variants if name not in self.nested)]))

    def find(self, name: str) -> str | None:
        """Return the column of exactly this name, or else the only one that differs from it by letter case alone."""
        if name in self.top:
            return name
        matching = [column for column in self.top if column.lower() == name.lower()]
        return matching[0] if len(matching) == 1 else None

    def resolve(self, parts: Sequence[str]) -> ColumnMatch | None:
        """Resolve ``column.field.…`` as DuckDB and Spark do: every dot is a field access, and never part of a name.

        Raises `SqlError` if the name of a Variant inside a struct is also the name of a column.

        >>> columns = TableColumns([], {"a.b": pa.int64(), "a": pa.struct([("b", pa.int64())])})
        >>> columns.resolve(["a", "b"]), columns.resolve(["a.b"])
        (ColumnMatch(column='a', fields=('b',)), ColumnMatch(column='a.b', fields=()))
        """
        lower = [part.lower() for part in parts]
        for dotted, place in self.nested.items():
            if [name.lower() for name in place] == lower[: len(place)]:
                if dotted in self.top:
                    raise SqlError(
                        f'{dotted} is a Variant inside a struct, and a column is called "{dotted}": rename the column'
                    )
                return ColumnMatch(dotted, tuple(parts[len(place) :]))
        column = self.find(parts[0])
        return None if column is None else ColumnMatch(column, tuple(parts[1:]))


class ColumnMatch(NamedTuple):
    """The column that a dotted name refers to, and the fields of the struct in it."""

    column: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NeededColumn:
    """A column of a table that an expression needs."""

    column: str  # The name of the table's column.
    path: VariantPath | None = None  # The path into the Variant; None for an ordinary column.
    type: pa.DataType | None = None  # The requested Arrow type; None for a Variant or an ordinary column.
    function: str | None = None  # The function to apply to the Variant: a key of `VARIANT_FUNCTIONS`.
    exact: bool = False  # Whether values of other types are null.

    @property
    def is_variant(self) -> bool:
        """Whether the expression uses the column as a Variant."""
        return self.path is not None and self.type is None and self.function is None

    @property
    def output(self) -> pa.DataType | None:
        """The Arrow type of the column, a list for each wildcard; None for a Variant, or an ordinary column."""
        if self.function is not None:
            return VARIANT_FUNCTIONS[self.function]
        return None if self.path is None else Selected("", self.path, self.type).output

    @property
    def select(self) -> Selected:
        """The column as scans take it; a column whose name begins with ``$`` is not read as a path."""
        return Selected(self.column, self.path, self.type, None if self.path is not None else self.column, self.exact)

    def computed(self, column: Any) -> Any:
        """Return a column that was read as `select` names it, with the function applied."""
        if self.function is None:
            return column
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        values = [_apply_function(self.function, chunk) for chunk in chunks]
        return pa.chunked_array(values, VARIANT_FUNCTIONS[self.function])


# Functions of one Variant that conditions and values may use, and the Arrow type of their result.
VARIANT_FUNCTIONS = {"is_variant_null": pa.bool_(), "schema_of_variant": pa.string(), "to_json": pa.string()}


def _apply_function(name: str, storage: pa.Array) -> pa.Array:
    from parquet_variant.ops.conversions import to_json
    from parquet_variant.ops.value_types import is_variant_null, schema_of_variant

    functions: dict[str, Any] = {
        "is_variant_null": is_variant_null, "schema_of_variant": schema_of_variant, "to_json": to_json
    }  # fmt: skip
    if not len(storage):
        return pa.nulls(0, VARIANT_FUNCTIONS[name])
    return functions[name](VariantArray.from_storage(storage)).cast(VARIANT_FUNCTIONS[name])


@dataclass(frozen=True, slots=True)
class SqlExpression:
    """An expression as DuckDB's text, with the columns that it needs."""

    text: str  # DuckDB's text over `columns`, each qualified by its table.
    # For each table, the columns that the text needs, by their names in the text.
    columns: Mapping[str, Mapping[str, NeededColumn]]
    # For each table, a predicate over those names that is true wherever the expression is true, if it is a condition.
    pushdown: Mapping[str, Predicate]
    returns_variant: bool = False  # Whether the value is a Variant, as the struct of its parts.


def read_expression(
    text: str, tables: Mapping[str, TableColumns], *, zone: str = "UTC", engine: SqlEngine = "duckdb"
) -> SqlExpression:
    r"""Parse an expression, and resolve its columns.

    `text`: a condition or a value: ``v:a.b::int > 5 AND day = DATE '2024-01-31'``.
    `tables`: the columns of each table, by the name or alias that qualifies them in the text.
    `engine`: the SQL of the text; Spark's is translated for DuckDB, or refused.
    Raises `SqlError` or `PathError` if the text is invalid, names an unknown column, has a subquery, or compares a
    Variant that is not cast.

    >>> where = read_expression("v:a.b::int > 5 AND lower(c) = 'x'", {"t": TableColumns(["v"], {"c": pa.string()})})
    >>> where.text
    't."v:$[\'a\'][\'b\']:int" > 5 AND LOWER(t.c) = \'x\''
    >>> where.pushdown["t"]
    Compare(column="v:$['a']['b']:int", op='>', literal=5)
    """
    tree = parse_sql(text, engine, what="expression")
    if engine == "spark":
        from parquet_variant.query.spark_meaning import as_spark_means

        tree = as_spark_means(
            tree, {name: kind for columns in tables.values() for name, kind in columns.ordinary.items()}
        )
    for node in tree.find_all(exp.Query, exp.Window, exp.Star):
        raise SqlError(
            f"{written(node)!r} is not allowed in a condition on rows: subqueries, windows and stars read other rows"
        )
    reading = _Reading(tables)
    condition, kind = reading.expression(tree)
    predicates = {}
    for table in tables:
        predicate = pushdown(condition, reading.columns_of(table), zone)
        if predicate is not None:
            predicates[table] = predicate
    return SqlExpression(to_sql(with_earlier_instants(condition, zone)), reading.columns, predicates, kind is not None)


def column_name(term: VariantTerm, column: str) -> str:
    """Return the internal name of the column of a path; the same path and type have the same name."""
    if term.path.segments or term.cast:
        kind = "variant" if term.type is None else sql_type_name(term.type)
        name = f"{column}:{term.path}:{kind}"
        # Engines ignore letter case in names, so the position and code of each upper-case letter are appended.
        marks = [f"{place}-{ord(sign)}" for place, sign in enumerate(name) if not sign.isascii() or sign.isupper()]
        return " ".join([name, *marks])
    return column


class _Reading:
    """Rewrites one tree, and collects the columns that it needs in `columns`."""

    engine: SqlEngine = "duckdb"

    def __init__(self, tables: Mapping[str, TableColumns]) -> None:
        self.tables = tables
        self.columns: dict[str, dict[str, NeededColumn]] = {table: {} for table in tables}
        self.types: dict[tuple[str, str], pa.DataType | None] = {}
        self.computed: set[tuple[str, str]] = set()  # Columns that functions compute: they have no statistics.

    def resolve(self, column: exp.Column) -> tuple[str, ColumnMatch] | None:
        """Return the table and the column that a name refers to; a qualified column goes before a field."""
        parts = [part.name for part in column.parts]
        for table, columns in self.tables.items() if len(parts) > 1 else ():
            if table.lower() == parts[0].lower() and (match := columns.resolve(parts[1:])) is not None:
                return table, match
        matches = [
            (table, match) for table, columns in self.tables.items() if (match := columns.resolve(parts)) is not None
        ]
        if len(matches) > 1:
            tables = " or ".join(table for table, _ in matches)
            raise SqlError(f"{parts[0]} is ambiguous: {tables} has such a column; write the table before it")
        return matches[0] if matches else None

    def is_variant(self, node: exp.Expr) -> bool:
        if isinstance(node, exp.Anonymous):
            return returns_variant(node.name.lower())
        resolved = self.resolve(node) if isinstance(node, exp.Column) else None
        return resolved is not None and not resolved[1].fields and self._is_variant_column(*resolved)

    def _is_variant_column(self, table: str, match: ColumnMatch) -> bool:
        return match.column in self.tables[table].variants

    # ---- the interface of `function_calls`

    def expression(self, node: exp.Expr) -> tuple[exp.Expr, pa.DataType | None]:
        """Rewrite an expression, and return it with the type of its value if that is a Variant."""
        node = node.unnest()
        if isinstance(node, exp.Anonymous) and (call := rewrite_call(self, node, node.name.lower())) is not None:
            return call, VARIANT_STORAGE
        term = read_term(node, self.is_variant)
        if term is not None and term.type is None:
            if isinstance(term.column, exp.Column):
                return self.column_of(term), VARIANT_STORAGE
            inner = self.expression(term.column)[0]
            return (self.value_at(inner, term) if term.path.segments else inner), VARIANT_STORAGE
        return self.rewritten(node), None

    def text_of(self, node: exp.Expr) -> exp.Expr:
        """Rewrite an argument that is text."""
        return self.rewritten(node)

    def variant_of(self, value: exp.Expr, _: pa.DataType | None) -> exp.Expr:
        """Return a rewritten value that is not a Variant as one."""
        return self.call("variant_of", exp.cast(value, "VARIANT"))

    def call(self, function: str, *arguments: exp.Expr, constants: tuple[Any, ...] = ()) -> exp.Expr:
        """Return a call of a function of `variant_functions`."""
        return exp.Anonymous(this=call_name(function, constants), expressions=list(arguments))

    def value_at(self, variant: exp.Expr, term: VariantTerm) -> exp.Expr:
        """Return the value at the path of a Variant that is not a column."""
        kind = None if term.type is None else sql_type_name(term.type)
        return self.call("variant_get", variant, constants=(str(term.path), kind, True))

    def rewritten(self, node: exp.Expr) -> exp.Expr:
        term = read_term(node, self.is_variant)
        if term is not None and not isinstance(term.column, exp.Column):
            inner = self.expression(term.column)[0]
            return self.value_at(inner, term) if term.path.segments or term.cast else inner
        if term is not None:
            return self.term(term, node)
        if isinstance(node, exp.Column):
            return self.ordinary(node)
        if isinstance(node, exp.Anonymous) and (call := self.function(node)) is not None:
            return call
        copy = node.copy()
        for key, value in node.args.items():
            if isinstance(value, exp.Expr):
                copy.set(key, self.rewritten(value))
            elif isinstance(value, list):
                copy.set(key, [self.rewritten(part) if isinstance(part, exp.Expr) else part for part in value])
        return copy

    def function(self, node: exp.Anonymous) -> exp.Expr | None:
        """Return the reference to a column that a function of a Variant computes; None for another call."""
        name, arguments = node.name.lower(), node.expressions
        if (name not in VARIANT_FUNCTIONS and name not in OF_ONE_VARIANT) or len(arguments) != 1:
            return None
        term = read_term(arguments[0].unnest(), self.is_variant)
        if term is None or term.type is not None:
            return None
        if name not in VARIANT_FUNCTIONS or not isinstance(term.column, exp.Column):
            return self.call(OF_ONE_VARIANT.get(name, name), self.expression(arguments[0])[0])
        resolved = self.resolve(term.column)
        assert resolved is not None
        table, column = resolved[0], resolved[1].column
        needed = NeededColumn(column, term.path, None, name)
        # A cast gives a path a name of its own, other than that of the column.
        reference = f"{name}({column_name(replace(term, cast=True), column)})"
        self.columns[table][reference] = needed
        self.computed.add((table, reference))
        return _reference(table, reference)

    def term(self, term: VariantTerm, node: exp.Expr) -> exp.Expr:
        parent = node.parent
        if (
            isinstance(parent, exp.Anonymous)
            and not term.cast
            and (message := unknown_function(parent.name)) is not None
        ):
            raise SqlError(message)
        if not term.cast and not _takes_variant(node):
            raise SqlError(
                f"{written(node)} is a Variant, which cannot be compared: write a type, as in {written(node)}::string"
            )
        return self.column_of(term)

    def column_of(self, term: VariantTerm) -> exp.Expr:
        """Return the column of a path."""
        assert isinstance(term.column, exp.Column)
        resolved = self.resolve(term.column)
        assert resolved is not None
        table, column = resolved[0], resolved[1].column
        name = self.alias(table, column_name(term, column))
        self.columns[table][name] = NeededColumn(column, term.path, term.type)
        self.types[table, name] = term.output
        return _reference(table, name, term.output)

    def ordinary(self, node: exp.Column) -> exp.Expr:
        resolved = self.resolve(node)
        name = ".".join(part.name for part in node.parts)
        if resolved is None:
            quoted = f'; the column whose name has a dot is written "{name}"' if name in self.names() else ""
            raise SqlError(f"unknown column {name}: choose from {', '.join(self.names())}{quoted}")
        table, (column, fields) = resolved
        if self._is_variant_column(*resolved):
            raise SqlError(f"{column} is a Variant: write a path into it, such as {column}:{'.'.join(fields) or 'key'}")
        check_fields(self.tables[table].ordinary[column], column, fields)
        alias = self.alias(table, column)
        self.columns[table][alias] = NeededColumn(column)
        self.types[table, alias] = self.tables[table].ordinary[column]
        reference: exp.Expr = _reference(table, alias, None if fields else self.types[table, alias])
        for field_name in fields:
            reference = exp.Dot(this=exp.Paren(this=reference), expression=exp.to_identifier(field_name, quoted=True))
        return reference

    def alias(self, table: str, name: str) -> str:
        """Return the name of a column in the rewritten text: DuckDB does not accept the empty name."""
        if name:
            return name
        return " " * (1 + max(map(len, (*self.tables[table].variants, *self.tables[table].ordinary))))

    def names(self) -> list[str]:
        return [name for table in self.tables.values() for name in (*table.variants, *table.ordinary)]

    def columns_of(self, table: str) -> Any:
        def find_column(node: exp.Expr) -> tuple[str, pa.DataType | None] | None:
            if not isinstance(node, exp.Column) or node.table != table or (table, node.name) in self.computed:
                return None
            return node.name, self.types[table, node.name]

        return find_column


def check_fields(kind: pa.DataType | None, column: str, fields: Sequence[str]) -> None:
    """Raise `SqlError` unless ``column.field.…`` exists in a column of an Arrow type."""
    for name in fields:
        if kind is None:
            return
        if not pa.types.is_struct(kind):
            raise SqlError(f"{column} is {sql_type_name(kind)}, not a struct, so it has no field {name}")
        child_field = next((child for child in kind if child.name.lower() == name.lower()), None)
        if child_field is None:
            names = ", ".join(child.name for child in kind)
            raise SqlError(f"{column} has no field {name}: choose from {names}")
        column, kind = f"{column}.{name}", child_field.type


def _takes_variant(node: exp.Expr) -> bool:
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    return parent is None or isinstance(parent, exp.Is)


def _reference(table: str, column: str, kind: pa.DataType | None = None) -> exp.Column:
    is_word = column.isidentifier() and column.islower()
    reference = exp.Column(this=exp.to_identifier(column, quoted=not is_word), table=exp.to_identifier(table))
    reference.meta["type"] = kind
    return reference


def run_sql(text: str, tables: Mapping[str, Any], *, zone: str = "UTC") -> pa.Table:
    """Run a query over Arrow tables or streams.

    `tables`: Arrow tables, or readers of batches that are read once, by their names in the text.
    Raises `SqlError` with the message of DuckDB.

    >>> run_sql("SELECT a + 1 AS b FROM t", {"t": pa.table({"a": [1, 2]})}).to_pydict()
    {'b': [2, 3]}
    """
    with connect(zone=zone) as connection:
        import duckdb

        failures: list[Exception] = []
        text = register_calls(connection, text, failures)
        try:
            for name, table in tables.items():
                connection.register(name, table)
            return run_interruptibly(connection, lambda: connection.sql(text).to_arrow_table())
        except duckdb.Error as error:
            if failures:
                raise failures[0] from None
            raise SqlError(f"the SQL cannot be run: {str(error).strip().splitlines()[0]}") from None
