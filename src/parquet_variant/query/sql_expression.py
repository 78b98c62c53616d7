"""One condition or value in SQL over the columns of one or several tables, taken apart.

Owns which columns an expression needs, what of it can be pushed down, and its text over those columns; that is what
DELETE, UPDATE and MERGE ask for. Leaves whole queries, with their scopes, to the room `sql`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from parquet_variant.choices import SqlEngine
from parquet_variant.query.predicate import Predicate
from parquet_variant.query.selection import Selected
from parquet_variant.query.sql_dialect import SqlError, parse_sql, to_sql, written
from parquet_variant.query.sql_pushdown import pushdown
from parquet_variant.query.sql_terms import VariantTerm, read_term
from parquet_variant.query.sql_types import sql_type_name

if TYPE_CHECKING:
    from parquet_variant.path import VariantPath


@dataclass(frozen=True, slots=True)
class TableColumns:
    """The columns of a table that a text may name."""

    variants: Sequence[str] = ()  # Names of its Variant columns; ``s.v`` is the field v of the struct s.
    ordinary: Mapping[str, pa.DataType] = field(default_factory=dict)  # Arrow types of its other columns by name.

    def find(self, name: str) -> tuple[str, bool] | None:
        """The column that a name means, in any case where that is clear, and whether it is a Variant."""
        every = {**dict.fromkeys(self.ordinary, False), **dict.fromkeys(self.variants, True)}
        if name in every:
            return name, every[name]
        alike = [each for each in every if each.lower() == name.lower()]
        return (alike[0], every[alike[0]]) if len(alike) == 1 else None


@dataclass(frozen=True, slots=True)
class NeededColumn:
    """A column that an expression needs of a table."""

    column: str  # The table's column: the Variant, or the ordinary one.
    path: VariantPath | None = None  # The path into the Variant; None for an ordinary column.
    type: pa.DataType | None = None  # The Arrow type asked for; None for a Variant, or an ordinary column as it is.

    @property
    def output(self) -> pa.DataType | None:
        """The Arrow type of the column, a list for each wildcard; None for a Variant, or an ordinary column."""
        return None if self.path is None else Selected("", self.path, self.type).output

    @property
    def select(self) -> Selected:
        """As scans take it; a column whose name begins with ``$`` is no path."""
        return Selected(self.column, self.path, self.type, None if self.path is not None else self.column)


@dataclass(frozen=True, slots=True)
class SqlExpression:
    """An expression, taken apart."""

    text: str  # DuckDB's text over the columns below, each qualified by its table.
    # For each table, the columns that the text needs, by the names that it has for them.
    columns: Mapping[str, Mapping[str, NeededColumn]]
    # For each table, a predicate over those names that holds wherever the expression is true (if it is a condition).
    pushdown: Mapping[str, Predicate]


def read_expression(
    text: str, tables: Mapping[str, TableColumns], *, zone: str = "UTC", engine: SqlEngine = "duckdb"
) -> SqlExpression:
    r"""Take an expression apart.

    `text`: a condition or a value: ``v:a.b::int > 5 AND day = DATE '2024-01-31'``.
    `tables`: the columns of each table, by the name or alias that qualifies them in the text.
    `engine`: whose SQL the text is; what Spark means by it is DuckDB's to evaluate, or refused.
    Raises `SqlError` or `PathError` if the text cannot be read, names what is not there, has a subquery, or compares a
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

        tree = as_spark_means(tree, {name: kind for each in tables.values() for name, kind in each.ordinary.items()})
    for node in tree.find_all(exp.Query, exp.Window, exp.Star):
        raise SqlError(f"{written(node)!r} cannot stand in a condition on rows: it asks for other rows")
    reading = _Reading(tables)
    condition = reading.rewritten(tree)
    predicates = {}
    for table in tables:
        predicate = pushdown(condition, reading.columns_of(table), zone)
        if predicate is not None:
            predicates[table] = predicate
    return SqlExpression(to_sql(condition), reading.columns, predicates)


def column_name(term: VariantTerm, column: str) -> str:
    """What a path's column is called where it stands beside others; the same path and type, the same name."""
    if term.path.segments or term.cast:
        kind = "variant" if term.type is None else sql_type_name(term.type)
        name = f"{column}:{term.path}:{kind}"
        # The engines take names for the same that differ by case alone: what a lower case loses is told by number.
        lost = [f"{place}-{ord(sign)}" for place, sign in enumerate(name) if not sign.isascii() or sign.isupper()]
        return " ".join([name, *lost])
    return column


class _Reading:
    """Rewrites one tree; `columns` fills up with what it needs."""

    def __init__(self, tables: Mapping[str, TableColumns]) -> None:
        self.tables = tables
        self.columns: dict[str, dict[str, NeededColumn]] = {table: {} for table in tables}
        self.types: dict[tuple[str, str], pa.DataType | None] = {}

    def resolve(self, column: exp.Column) -> tuple[str, str, bool] | None:
        """Table, column and whether it is a Variant."""
        parts = [part.name for part in column.parts]
        named = next((table for table in self.tables if len(parts) > 1 and table.lower() == parts[0].lower()), None)
        places = [named] if named is not None else list(self.tables)
        name = ".".join(parts[1:] if named is not None else parts)
        hits = [(table, *hit) for table in places if (hit := self.tables[table].find(name)) is not None]
        if len(hits) > 1:
            raise SqlError(f"{name} may be of {' or of '.join(each[0] for each in hits)}: write the table before it")
        return hits[0] if hits else None

    def is_variant(self, node: exp.Expr) -> bool:
        column = self.resolve(node) if isinstance(node, exp.Column) else None
        return column is not None and column[2]

    def rewritten(self, node: exp.Expr) -> exp.Expr:
        term = read_term(node, self.is_variant)
        if term is not None:
            return self.term(term, node)
        if isinstance(node, exp.Column):
            return self.ordinary(node)
        copy = node.copy()
        for key, value in node.args.items():
            if isinstance(value, exp.Expr):
                copy.set(key, self.rewritten(value))
            elif isinstance(value, list):
                copy.set(key, [self.rewritten(each) if isinstance(each, exp.Expr) else each for each in value])
        return copy

    def term(self, term: VariantTerm, node: exp.Expr) -> exp.Expr:
        assert isinstance(term.column, exp.Column)
        resolved = self.resolve(term.column)
        assert resolved is not None
        table, column, _ = resolved
        if not term.cast and not _takes_variant(node):
            raise SqlError(f"{written(node)} is a Variant: write the type, as in {written(node)}::string")
        name = column_name(term, column)
        self.columns[table][name] = NeededColumn(column, term.path, term.type)
        self.types[table, name] = term.output
        return _reference(table, name)

    def ordinary(self, node: exp.Column) -> exp.Expr:
        place = self.resolve(node)
        if place is None and len(node.parts) > 1:  # a field of a struct
            owner = exp.Column(**dict(zip(("this", "table", "db"), reversed(node.parts[:-1]), strict=False)))
            return exp.Dot(this=exp.Paren(this=self.ordinary(owner)), expression=node.this.copy())
        if place is None:
            raise SqlError(f"there is no column {node.name}: choose from {', '.join(self.names())}")
        table, column, _ = place
        if column not in self.tables[table].ordinary:
            raise SqlError(f"{column} is a Variant: write a path into it as {column}:key")
        self.columns[table][column] = NeededColumn(column)
        self.types[table, column] = self.tables[table].ordinary[column]
        return _reference(table, column)

    def names(self) -> list[str]:
        return [name for table in self.tables.values() for name in (*table.variants, *table.ordinary)]

    def columns_of(self, table: str) -> Any:
        def known(node: exp.Expr) -> tuple[str, pa.DataType | None] | None:
            if not isinstance(node, exp.Column) or node.table != table:
                return None
            return node.name, self.types[table, node.name]

        return known


def _takes_variant(node: exp.Expr) -> bool:
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    return parent is None or isinstance(parent, exp.Is)


def _reference(table: str, column: str) -> exp.Column:
    plain = column.isidentifier() and column.islower()
    return exp.Column(this=exp.to_identifier(column, quoted=not plain), table=exp.to_identifier(table))
