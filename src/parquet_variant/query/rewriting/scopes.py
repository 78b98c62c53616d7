"""Name resolution: the relations of each SELECT, their columns, and the scope in which a name is found.

Owns relations, scopes, looking up names, and hints for paths that no row has. Leaves traversing a query to `query`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from functools import reduce
from typing import Any, Literal, TypeAlias

import pyarrow as pa
from sqlglot import exp

from parquet_variant.errors import PathError
from parquet_variant.layouts.similar_paths import missing_path_hint
from parquet_variant.query.path_dialect import steps_of, with_steps
from parquet_variant.query.predicate import And, Predicate, joined
from parquet_variant.query.selection import Inside, Kind, Selected, TableFacts, field_of, is_variant, only_variants
from parquet_variant.query.sql_dialect import SqlError
from parquet_variant.query.sql_pushdown import Pushdown
from parquet_variant.support.options import SqlEngine
from parquet_variant.support.records import Record
from parquet_variant.types.path import VariantPath
from parquet_variant.types.targets import VARIANT_STORAGE

USE = "table_use"  # The entry of a column's `meta` with the number of its table.


class StoredPath(Record):
    """A path of a column of a table, or inside of the elements, the fields, or the parsed text of the values at a path.

    `inside`: the path inside these, once per explosion or parsed text; none for the values themselves.
    """

    table: TableFacts
    column: str
    path: VariantPath = VariantPath()
    inside: tuple[Inside, ...] = ()

    def extended(self, path: VariantPath) -> StoredPath:
        """Return a path below this one."""
        if not self.inside:
            return replace(self, path=VariantPath((*self.path.segments, *path.segments)))
        *outer, (how, last) = self.inside
        return replace(self, inside=(*outer, (how, VariantPath((*last.segments, *path.segments)))))

    def opened(self, how: Literal["elements", "text"] = "elements") -> StoredPath:
        """Return the place of the elements and fields of the values, or of their parsed text."""
        return replace(self, inside=(*self.inside, (how, VariantPath())))

    def common_type(self, *, nulls: bool = True) -> pa.DataType | None:
        """Return the type of every value; see `TableFacts.common_type`."""
        return self.table.common_type(self.column, self.path, self.inside, nulls=nulls)


class BothSides(TableFacts):
    """The facts about an output of UNION ALL, whose values are stored at one of two places."""

    def __init__(self, *places: StoredPath) -> None:
        self.places = places

    def common_type(self, name: str, path: VariantPath, inside: Sequence[Inside] = (), *, nulls: bool = True) -> Kind:
        """See `TableFacts.common_type`."""
        places = [place.extended(path) for place in self.places]
        for how, further in inside:
            places = [place.opened(how).extended(further) for place in places]
        first, second = (place.common_type(nulls=nulls) for place in places)
        return first if first == second else None


class HoldsVariants:
    """Something with a type, as far as it is known without the engine, in which Variants have the type of storage."""

    __slots__ = ()
    type: pa.DataType | None

    @property
    def kind(self) -> Kind:
        """The Variants in it."""
        return only_variants(self.type)

    @property
    def is_variant(self) -> bool:
        """Whether it is a Variant itself."""
        return is_variant(self.type)


class OutputColumn(HoldsVariants, Record):
    """An output column of a query: its name (None if the engine chooses it), and the Variants in it."""

    name: str | None
    type: pa.DataType | None = None
    struct_path: tuple[str, ...] = ()  # Struct and field names, if the column is a Variant inside a struct.
    common: pa.DataType | None = None  # The type of all values of a Variant, if it is known.
    place: StoredPath | None = None  # Where the values of a Variant are stored, if they are unchanged.

    @property
    def names(self) -> tuple[str, ...]:
        """The names that lead to the column; none if the engine chooses its name."""
        return self.struct_path or (() if self.name is None else (self.name,))


Outputs: TypeAlias = Sequence[OutputColumn] | None  # The columns of a query; None if only the engine knows them.


class TableUse(Record, frozen=False):
    """One place in a query that names a table; each is scanned separately."""

    number: int  # The number of the place in the query.
    table: Any  # The table: `TableFacts`, in a query a `BoundTable`.
    prefix: str  # The start of the names of paths.
    # The columns that are read, by their names in the engine's text.
    needed: dict[str, Selected] = field(default_factory=dict)
    # Predicates over those names that are true for every row that the query needs.
    filters: list[Predicate] = field(default_factory=list)
    named: set[str] = field(default_factory=set)  # The columns that the query names, not only by a star.

    @property
    def relation(self) -> str:
        """The name of the relation in the engine's text."""
        return f"_table_{self.number}"

    @property
    def predicate(self) -> Predicate | None:
        """The conditions that are pushed down."""
        return joined(And, self.filters) if self.filters else None

    def output_columns(self) -> list[OutputColumn]:
        """Return the columns that a query can name."""
        columns = self.table.columns
        return [
            OutputColumn(
                column,
                VARIANT_STORAGE if column in columns.variants else columns.ordinary.get(column),
                columns.nested.get(column, ()),
                place=StoredPath(self.table, column),
            )
            for column in dict.fromkeys((*self.table.order, *columns.nested))
        ]

    def name_of(self, column: str) -> str:
        """Return the name of a column in the engine's text: DuckDB does not accept the empty name."""
        return column or " " * (1 + max(map(len, self.table.order)))

    def push(self, condition: exp.Expr, zone: str) -> None:
        """Push down the part of a rewritten condition that decides about rows of the table alone."""
        if self.table.skips and (predicate := self.pushdown(zone).implied(condition)) is not None:
            self.filters.append(predicate)

    def pushdown(self, zone: str) -> Pushdown:
        """Return the reader of conditions over the columns of the table."""

        def find_column(node: exp.Expr) -> tuple[str, Any] | None:
            if not isinstance(node, exp.Column) or node.meta.get(USE) != self.number:
                return None
            if node.name in self.needed and self.needed[node.name].stored_name in self.table.parsed_columns:
                return None  # a scan filters before it parses text
            ordinary = self.table.columns.ordinary
            return node.name, ordinary[node.name] if node.name in ordinary else node.meta.get("type")

        return Pushdown(find_column, zone)


class Relation(Record, frozen=False):
    """A table, subquery or function in FROM."""

    alias: str  # The name that qualifies its columns.
    columns: Sequence[OutputColumn]  # Its columns in order.
    use: TableUse | None = None  # The table; None for a subquery or function.
    is_open: bool = False  # Whether it can have columns that only the engine knows.
    is_visible: bool = True  # Whether its columns can be named; False for the right side of SEMI JOIN.

    def find(self, *parts: str) -> OutputColumn | None:
        """Return the column that the first names of ``s.v.…`` lead to: first one inside a struct, then an exact one."""
        lower = [part.lower() for part in parts]
        matching = [
            column
            for column in self.columns
            if (names := column.names) and [name.lower() for name in names] == lower[: len(names)]
        ]
        return max(matching, key=lambda c: (len(c.names), c.names == parts[: len(c.names)]), default=None)


class ResolvedColumn(Record):
    """A resolved name: the relation, its column, and the fields of a struct after it."""

    relation: Relation
    column: OutputColumn
    fields: tuple[str, ...] = ()
    ambiguous: bool = False
    malformed: str | None = None  # The column with the text that is not JSON, an error where its value is needed.

    @property
    def type(self) -> pa.DataType | None:
        """The type of the column or field; of an ambiguous one only the Variants in it."""
        kind = reduce(field_of, self.fields, self.column.type)
        return only_variants(kind) if self.ambiguous else kind


class Scope(Record, frozen=False):
    """The scope of one SELECT: its relations, the aliases of its outputs, and the enclosing scope."""

    ctes: dict[str, Sequence[OutputColumn] | None]  # The outputs of common table expressions, by name in lower case.
    outer: Scope | None = None  # The enclosing scope, whose columns a correlated subquery can name.
    relations: list[Relation] = field(default_factory=list)  # The relations of FROM.
    aliases: dict[str, OutputColumn] = field(default_factory=dict)  # Outputs of the SELECT by name in lower case.
    # Two outputs whose names differ only in letter case, by name in lower case.
    twins: dict[str, tuple[str, str]] = field(default_factory=dict)
    # Lambda parameters by name in lower case: their types, as far as they are known.
    locals: dict[str, Kind] = field(default_factory=dict)
    merged: set[str] = field(default_factory=set)  # Columns that USING or NATURAL merges.

    def resolve(self, column: exp.Column) -> ResolvedColumn | None:
        """Resolve a name in this scope or an enclosing one.

        Raises `SqlError` if a dot follows a Variant.
        """
        first, *further = (part.name for part in column.parts)
        hit = self._resolve_here((first, *further))
        # A name behind that of a table outside is not a column that only the engine knows.
        is_inside = self.is_open and (not further or first.lower() in [r.alias.lower() for r in self.visible()])
        return self.outer.resolve(column) if hit is None and self.outer is not None and not is_inside else hit

    def _resolve_here(self, parts: tuple[str, ...]) -> ResolvedColumn | None:
        if len(parts) > 1:  # a qualified column goes before a field of a column, as in DuckDB and Spark
            for relation in self.visible():
                if relation.alias.lower() == parts[0].lower() and (hit := _resolve_in(relation, parts[1:])) is not None:
                    return hit
        hits = self.everywhere(*parts)
        if not hits:
            return None
        several = len(hits) > 1 and parts[0].lower() not in self.merged
        kinds = [hit.column.kind for hit in hits if hit.column.kind is not None]
        column = OutputColumn(hits[0].column.name, kinds[0]) if several and kinds else hits[0].column
        return ResolvedColumn(hits[0].relation, column, hits[0].fields, ambiguous=len(hits) > 1)

    @property
    def is_open(self) -> bool:
        """Whether it can have columns that only the engine knows."""
        return any(relation.is_open for relation in self.visible())

    def visible(self) -> list[Relation]:
        """Return the relations whose columns can be named."""
        return [relation for relation in self.relations if relation.is_visible]

    def everywhere(self, *parts: str) -> list[ResolvedColumn]:
        """Return all columns of a name in the relations of this scope."""
        return [hit for relation in self.visible() if (hit := _resolve_in(relation, parts)) is not None]

    def is_known(self, column: exp.Column) -> bool:
        """Return whether a name is an alias, a lambda parameter, or possibly a column that only the engine knows."""
        name = column.parts[0].name.lower()
        relations = {relation.alias.lower(): relation for relation in self.visible()}
        if len(column.parts) > 1 and name in relations:
            return relations[name].is_open
        is_here = self.is_open or name in {*relations, *self.aliases, *self.locals}
        return is_here or (self.outer is not None and self.outer.is_known(column))

    def names(self) -> list[str]:
        """Return the names of all columns in this scope."""
        columns = [column for relation in self.visible() for column in relation.columns]
        return list(dict.fromkeys(column.name for column in columns if column.name))


def check_distinct(name: str, names: Sequence[str]) -> None:
    """Refuse a name that several columns have but for letter case: the engines would take one of them."""
    matching = list(dict.fromkeys(column for column in names if column.lower() == name.lower()))
    if len(matching) > 1:
        raise SqlError(
            f"{name} is ambiguous: {' and '.join(matching)} differ only in letter case, which SQL ignores; "
            "select one, or rename them with AS"
        )


def unknown_name(scope: Scope, node: exp.Column, engine: SqlEngine) -> str:
    """Return the message for a name that is not a column."""
    name = ".".join(part.name for part in node.parts)
    tables = [relation.alias for relation in scope.visible()]
    if len(node.parts) > 1 and name in scope.names():
        return f'unknown column {node.parts[0].name}; the column whose name has a dot is written "{name}"'
    is_of_table = len(node.parts) > 1 and node.parts[0].name.lower() in map(str.lower, tables)
    table = node.parts[0].name.lower() if is_of_table else None
    columns = [
        column for relation in scope.visible() if table in (None, relation.alias.lower()) for column in relation.columns
    ]
    names = dict.fromkeys(column.name for column in columns if column.name)
    variants = [column.name for column in columns if column.is_variant]
    is_path = len(set(variants)) == 1 and not {part.name for part in node.parts} & set(names)
    table, dot, key = name.partition(".") if is_of_table else ("", "", name)
    text = f", and a string '{name}'" * (not is_of_table)
    hint = f"; a path into the Variant is written {table}{dot}{variants[0]}:{key}{text}" if is_path else ""
    if len(node.parts) > 1 and tables and not is_of_table:
        return f"unknown table {node.parts[0].name}: FROM has {', '.join(tables)}{hint}"
    if node.this.quoted and engine == "duckdb":
        hint = "; a string is written in single quotes"
    if key.lower() == "filename":
        hint = "; `variant ingest --file-column filename` records the file of each row"
    return f"unknown column {name}: choose from {', '.join(names) or 'none, since FROM is missing'}{hint}"


def refuse_table(node: exp.Column, table: Relation) -> None:
    """Raise `SqlError` if the name of a relation stands for a Variant; of others than tables, DuckDB makes a struct."""
    variants = [column.name for column in table.columns if column.is_variant]
    parent, shown = node.parent, None if table.use is None else f"{node.name}.*"
    is_extraction = isinstance(parent, (exp.JSONExtract, exp.JSONExtractScalar))
    if variants and is_extraction and parent is not None and isinstance(parent.expression, exp.JSONPath):
        steps, names = steps_of(parent), [column.name for column in table.columns]
        shown = shown if steps[0] in names else with_steps(f"{node.name}.{variants[0]}", steps)
    if shown is not None:
        raise SqlError(f"{node.name} is a table, not a column: name a column, or write {shown}")


def unique_names(names: Sequence[str]) -> list[str]:
    """Number repeated names as DuckDB does: the first keeps its name.

    >>> unique_names(["id", "id", "id_1", "id"])
    ['id', 'id_1', 'id_1_1', 'id_2']
    """
    unique: list[str] = []
    taken: set[str] = set()
    for name in names:
        candidate, number = name, 0
        while candidate in taken or (number and candidate.lower() in map(str.lower, taken)):
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate)
        unique.append(candidate)
    return unique


def _resolve_in(relation: Relation, parts: tuple[str, ...]) -> ResolvedColumn | None:
    """Resolve ``column.field.…`` in one relation: each dot is a field access, and never part of a name."""
    column = relation.find(*parts)
    if column is None:
        return None
    length = len(column.names)
    fields = parts[length:]
    if column.is_variant and fields:
        name = ".".join(parts[:length])
        raise SqlError(
            f"{name} is a Variant, so a dot does not reach its fields: use a colon, {name}:{'.'.join(fields)}"
        )
    if column.struct_path and relation.find(column.name or "") is not None:
        raise SqlError(
            f'{column.name} is a Variant inside a struct, and a column is called "{column.name}": rename the column'
        )
    return ResolvedColumn(relation, column, fields)


def merge_columns(join: exp.Join, scope: Scope, start: int, zone: str) -> None:
    """Add the columns that USING and NATURAL compare to both sides; Variants, and instants of one side, are refused."""
    using: list[exp.Expr] = join.args.get("using") or []
    if any(isinstance(column, exp.JSONExtract) for column in using):
        raise PathError("USING takes names of columns, not paths: write JOIN … ON a.v:kind = b.v:kind")
    names = [column.name for column in using]
    if str(join.args.get("method") or "").upper() == "NATURAL":
        names_on_left = {
            (column.name or "").lower() for relation in scope.relations[:start] for column in relation.columns
        }
        right = [column for relation in scope.relations[start:] for column in relation.columns]
        names += [column.name for column in right if column.name and column.name.lower() in names_on_left]
    for name in names:
        scope.merged.add(name.lower())
        hits = scope.everywhere(name)
        types = [kind for hit in hits if (kind := hit.column.type) is not None and pa.types.is_temporal(kind)]
        if zone != "UTC" and len({getattr(kind, "tz", None) is None for kind in types}) > 1:
            problem = f"USING and NATURAL cannot compare {name}, an instant in one table and a local time in the other"
            raise SqlError(f"{problem}: join ON a.{name} = b.{name}")
        for hit in hits:
            if hit.column.kind is not None:
                raise SqlError(
                    f"USING and NATURAL cannot compare {name}, a Variant: join ON a.{name}:key = b.{name}:key"
                )
            if (use := hit.relation.use) is not None:
                use.needed[hit.column.name or name] = use.table.needs(hit.column.name or name)


def missing_path(
    table: TableFacts, column: str, path: VariantPath, *, elsewhere: bool = False, as_path: bool = False
) -> str | None:
    """Return a message for a path with a key that no object of its Variant column has; None for other paths.

    `elsewhere`: whether other paths with the last key are looked for, also if objects have all keys.
    `as_path`: write paths as ``$.a.b``, not as in SQL.

    >>> table = TableFacts()
    >>> table.keys = lambda column: frozenset(["user", "id"])
    >>> missing_path(table, "v", VariantPath.parse("$.usr.id"))
    'no row has the path v:usr.id: did you mean v:user.id?'
    """
    keys = table.keys(column)
    if keys is None and not elsewhere:
        return None
    shown = None if as_path else (lambda path: with_steps(column, path.segments))
    existing = [step for step in path.segments if isinstance(step, str)] if keys is None else keys
    return missing_path_hint(path, existing, shown, lambda: table.path_elsewhere(column, path) if elsewhere else None)
