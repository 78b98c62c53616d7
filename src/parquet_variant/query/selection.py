"""The request of a scan: output columns, and a filter that can use further columns.

An output column is a typed path into a Variant, or an ordinary column. Owns the ways to write columns, binding a
request to the types of a file, and the columns that an SQL expression can name and needs. Leaves which columns of a
file they need to `files.parquet.scanning.projection`.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field as dataclasses_field
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from parquet_variant.arrays.capsules import is_variant_field, with_marks
from parquet_variant.arrays.parts import empty_table
from parquet_variant.arrays.variant_array import plain_storage
from parquet_variant.errors import PathError, VariantError, VariantFileError, check_column_name, strings_of
from parquet_variant.layouts.type_grammar import as_target, result_type, value_target
from parquet_variant.ops.columns.extract_path import extract_path, extract_variant
from parquet_variant.ops.columns.slot_casts import FailedCasts, Lossless
from parquet_variant.ops.interop.tables import ArrowResult
from parquet_variant.query.predicate import Computed, Predicate, all_of, bind, columns_of, conditions_of
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record, counted
from parquet_variant.types.path import VariantPath, split_type
from parquet_variant.types.targets import VARIANT_STORAGE


class Selected(Record):
    """One output column."""

    name: str  # Its name.
    path: VariantPath | None  # The path into the Variant column; None for an ordinary column.
    # The requested Arrow type, of each element if the path has wildcards; None for the Variant at the path, or for an
    # ordinary column with its own type. It is not hashed, since extension types made in Python have no hash.
    type: pa.DataType | None = dataclasses_field(default=None, hash=False)
    column: str | None = None  # The name in the data of an ordinary column, or of the Variant column of the path.
    exact: bool = False  # Whether values of other types are null; numbers are cast where the type keeps them.
    # Receives the numbers of values that could not be cast; None if nobody asks for them.
    failed: FailedCasts | None = dataclasses_field(default_factory=list, compare=False, repr=False)

    @classmethod
    def of(
        cls, column: str, path: VariantPath | None = None, kind: pa.DataType | None = None, *, exact: bool = False
    ) -> Selected:
        """Return a column of a table, or a path into it, as an expression needs it."""
        return cls(column, path, kind, column, exact)

    @property
    def is_variant(self) -> bool:
        """Whether the column is the Variant at a path."""
        return self.path is not None and self.type is None

    @property
    def stored_name(self) -> str:
        """The name of the column in the data: `column`, which may be empty, or the output name."""
        return self.name if self.column is None else self.column

    @property
    def field(self) -> pa.Field:
        """The output column as an Arrow field; Variants have the extension name in their metadata."""
        field = pa.field(self.name, VARIANT_STORAGE if self.output is None else self.output)
        return with_marks(field, is_variant) if self.type is None else field

    @property
    def output(self) -> pa.DataType | None:
        """The Arrow type of the output column; None for a Variant, or an ordinary column whose type is not read yet."""
        if self.path is None or not self.path.has_wildcard:
            return self.type
        return result_type(VARIANT_STORAGE if self.type is None else self.type, self.path)

    def values_in(self, values: Any, *, safe: bool = False, lossless: bool = False, zone: str = "UTC") -> pa.Array:
        """Return the values at the path in a Variant column, without a path the whole Variants; see `extract_path`.

        `values`: the storage of the column, or for typed values its `storage_group`.
        """
        path = self.path or VariantPath()
        if self.output is None:
            return plain_storage(extract_variant(values, path))
        target = VARIANT_STORAGE if self.type is None else self.type
        exact: Lossless = "numbers" if self.exact else lossless
        return extract_path(values, path, target, safe=safe, zone=zone, lossless=exact, failed=self.failed)

    def as_sql(self) -> str:
        """Return the column as a query writes it.

        >>> Selected.of("v", VariantPath.parse("$.a['b c'][0][*]"), pa.int64()).as_sql()
        "v:a['b c'][0][*]::array<bigint>"
        """
        from parquet_variant.query.path_dialect import with_steps
        from parquet_variant.query.sql_dialect import sql_type_name

        if self.path is None:
            return self.stored_name
        text = self.path.shorthand if self.column is None else with_steps(self.column, self.path.segments)
        return text if self.output is None else f"{text}::{sql_type_name(self.output)}"


def cast_warnings(failed: FailedCasts | None, cast: str | Selected) -> list[str]:
    """Return a warning about values that could not be cast, and forget them."""
    if not failed:
        return []
    number, example = sum(count for count, _ in failed), failed[0][1]
    failed.clear()
    where, are = cast if isinstance(cast, str) else cast.as_sql(), "is" if number == 1 else "are"
    if isinstance(cast, Selected) and cast.exact:
        problem = f"{counted(number, 'value')} of another type {are} NULL in the typed column {cast.name}"
        return [f"{problem}, such as {example}: query {where} of the Variant column to convert them"]
    problem = f"{counted(number, 'value')} at {where} could not be cast and {are} NULL, such as {example}"
    return [f"{problem}: read the path as string to convert such values, or write TRY_CAST if NULL is meant"]


def arrow_type(kind: object) -> pa.DataType | None:
    """Return the Arrow type with a name; None for ``variant``.

    >>> arrow_type("double"), arrow_type("array<string>"), arrow_type("variant")
    (DataType(double), ListType(list<element: string>), None)
    """
    if kind is None or (isinstance(kind, str) and kind.strip().lower() == "variant"):
        return None
    return as_target(kind)


def read_selection(columns: Mapping[str, object] | Sequence[str]) -> tuple[Selected, ...]:
    """Read output columns, in their order.

    `columns`: by name: ``("$.path", "type")``; ``"$.path:type"``; ``"$.path"`` for a Variant; or the name of an
      ordinary column. A list of names, or a single name, selects columns under their own names.
    Raises `VariantError` for anything else and for unknown types, `PathError` for an invalid path.

    >>> read_selection({"mag": ("$.properties.mag", "double"), "id": "id"})[0].type
    DataType(double)
    """
    if not isinstance(columns, Mapping):
        columns = {name: name for name in strings_of("columns", columns)}
    return tuple(_read_column(name, request) for name, request in columns.items())


_NAMED = re.compile(r"([^$=\[\]]*[^$=\[\]\s])\s*=\s*(.*)", re.DOTALL)


def read_selects(texts: Iterable[str]) -> dict[str, str]:
    """Read columns such as ``name=$.path:type`` as the mapping for `read_selection`.

    Without a name, a path is named by its last key, and an ordinary column keeps its name. Raises `PathError` for an
    invalid path, and for a repeated name.

    >>> read_selects(["mag=$.properties.mag:double", "$.id", "$['a=b'][0]:struct<x: int>", "day"])
    {'mag': '$.properties.mag:double', 'id': '$.id', 'a=b': "$['a=b'][0]:struct<x: int>", 'day': 'day'}
    """
    selects: dict[str, str] = {}
    for text in texts:
        if named := _NAMED.fullmatch(text.strip()):
            name, path = named[1], named[2]
        else:
            path = text.strip()
            keys = VariantPath.parse(split_type(path)[0]).segments if path.startswith("$") else (path,)
            name = next((key for key in reversed(keys) if isinstance(key, str)), "value")
        if name in selects:
            raise PathError(f"two columns have the name {name!r}: rename one, as in 'other={path}'")
        selects[name] = path
    return selects


def _read_column(name: str, request: object) -> Selected:
    check_column_name(name)
    if isinstance(request, Selected):
        return replace(request, name=name)
    if isinstance(request, VariantPath):
        return Selected(name, request)
    if isinstance(request, str) and request.startswith("$"):
        request = split_type(request)
    if isinstance(request, tuple) and len(request) == 2:
        path, target = VariantPath.parse(request[0]), arrow_type(request[1])
        return Selected(name, path, None if target is None else value_target(target, path))
    if isinstance(request, str):
        is_quoted = len(request) > 1 and request[0] == request[-1] == '"'  # see `column_request`
        return Selected(name, None, column=request[1:-1].replace('""', '"') if is_quoted else request)
    raise VariantError(
        f"invalid selection for column {name}: {request!r}; give ('$.path', 'type'), '$.path:type' or a column name",
        reason="bad-selection",
    )


def read_filter(where: object) -> Predicate | None:
    """Read a filter as a user writes it: text, tuples, or a predicate; see `Table.scan`."""
    if not isinstance(where, str):
        return None if where is None else all_of(where if isinstance(where, list) else [where])
    from parquet_variant.query.sql_pushdown import parse_predicate

    return parse_predicate(where)


def distinct_names(names: Sequence[str], taken: Iterable[str] = ()) -> list[str]:
    """Number names, so that no two differ only in letter case; one without capitals is not numbered.

    `taken`: names that no result has.

    >>> distinct_names(["Order", "order", "id"]), distinct_names(["a", "b"], ["A"])
    (['Order_1', 'order', 'id'], ['a_1', 'b'])
    """
    requested, reserved = {name.lower() for name in names}, {name.lower() for name in taken}
    unique: dict[int, str] = {}
    for place in sorted(range(len(names)), key=lambda place: names[place] != names[place].lower()):
        name, number = names[place], 0
        while name.lower() in reserved or (number and name.lower() in requested):
            number += 1
            name = f"{names[place]}_{number}"
        reserved.add(name.lower())
        unique[place] = name
    return [unique[place] for place in range(len(names))]


class Question(Record):
    """The request of a scan.

    >>> question = Question.of({"mag": "$.mag:double"}, "id > 5")
    >>> [column.name for column in question.columns], question.hidden[0].column
    (['mag', 'id'], 'id')
    """

    selection: tuple[Selected, ...]  # The output columns.
    hidden: tuple[Selected, ...] = ()  # The columns that only the filter uses.
    predicate: Predicate | None = None  # The filter, or None.

    @classmethod
    def of(cls, columns: Mapping[str, object] | Sequence[str], where: object) -> Question:
        """Read columns and filter as a user writes them; see `Table.scan`.

        Raises `VariantFileError` if no column is selected; `PathError` or `PredicateError` if a path or the filter
        cannot be read.
        """
        selection = read_selection(columns)
        if not selection:
            raise VariantFileError("no columns are selected: name at least one", reason="no-columns")
        predicate = read_filter(where)
        outputs = {column.name for column in selection}
        hidden = sorted(columns_of(predicate) - outputs) if predicate is not None else []
        return cls(selection, read_selection({name: name for name in hidden}), predicate)

    @property
    def columns(self) -> tuple[Selected, ...]:
        """The columns that are read."""
        return (*self.selection, *self.hidden)

    @property
    def ordinary_names(self) -> list[str]:
        """The names in the data of the columns that are not paths."""
        return list(dict.fromkeys(column.stored_name for column in self.columns if column.path is None))

    def bound(self, types: Mapping[str, pa.DataType | None], zone: str, variant: str | None = None) -> Question:
        """Return the request with the types of its ordinary columns, and the filter bound to all types.

        `types`: by name in the data; that of a Variant is None. A column that is not among them keeps its type.
        `variant`: the Variant column of the paths that name none.
        """
        predicate, columns = self.predicate, list(self.columns)
        for number, column in enumerate(columns):
            if column.path is None:
                name = column.stored_name
                columns[number] = replace(column, type=types.get(name, column.type), column=name)
            elif column.column is None:
                columns[number] = replace(column, column=variant)
        if predicate is not None:
            predicate = bind(predicate, {column.name: column.output for column in columns}, zone)
        count = len(self.selection)
        return Question(tuple(columns[:count]), tuple(columns[count:]), predicate)

    def __str__(self) -> str:
        """Describe the request in one line: its first columns, and whether there is a filter.

        >>> str(Question(read_selection(["a", "b", "c", "d", "e", "f"])))
        'of a, b, c, d, e and 1 more'
        """
        more = f" and {len(self.selection) - 5:,} more" if len(self.selection) > 5 else ""
        names = ", ".join(column.name for column in self.selection[:5])
        return f"of {names}{more}{', filtered' if self.predicate is not None else ''}"


class PlannedQuery(ArrowResult):
    """A query that is ready to run: its columns, and its result as batches or as one table."""

    question: Question  # The request, bound to the types of the data.
    _bytes_read: list[int]  # A counter, which threads share.

    @property
    def selection(self) -> tuple[Selected, ...]:
        """The output columns."""
        return self.question.selection

    @property
    def predicate(self) -> Predicate | None:
        """The bound filter; None for all rows."""
        return self.question.predicate

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result; a Variant is a struct with the extension name."""
        return pa.schema([column.field for column in self.selection])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.question}>"

    @property
    def bytes_read(self) -> int:
        """The bytes that the query has read so far in this process: of column chunks, or of Vortex's Arrow columns."""
        return self._bytes_read[0]

    @abstractmethod
    def explain(self) -> Any:
        """Return what the query reads and skips."""

    @abstractmethod
    def batches(self) -> Iterator[pa.Table]:
        """Yield the result in parts."""

    def take_warnings(self) -> list[str]:
        """Return warnings about values that the filter did not compare, or that were not cast, since the last call."""
        conditions = () if self.predicate is None else conditions_of(self.predicate)
        texts = [text for part in conditions if isinstance(part, Computed) for text in part.take_warnings()]
        return texts + [text for c in self.question.columns for text in cast_warnings(c.failed, c)]

    def tasks(self, task_bytes: int) -> list[Any]:
        """Divide the work; see `pv.Scan.tasks`."""
        problem = "a scan is divided into tasks for the formats parquet, delta, iceberg only: use batches()"
        raise VariantError(problem, reason="unsupported-operation")

    def read(self, task: Any) -> Iterator[pa.Table]:
        """Yield the part of the result that belongs to a task."""
        return iter(self.tasks(0))

    def to_arrow(self) -> pa.Table:
        """Return the whole result."""
        parts = list(self.batches())
        return pa.concat_tables(parts) if parts else empty_table(self.schema)


_FIRST_LATE, _LAST_LATE = 631_152 * 10**12, 4_102_445 * 10**12  # Milliseconds of 1990 to 2100, taken as seconds.


def with_late_time_hints(parts: Iterable[pa.Table], hints: dict[str, None]) -> Iterator[pa.Table]:
    """Yield tables, and add the hints of each one to `hints`."""
    for part in parts:
        hints.update(dict.fromkeys(late_time_hints(part)))
        yield part


def late_time_hints(table: pa.Table) -> list[str]:
    """Return warnings about columns with times that are probably numbers of another unit, not the end of all time."""
    return [
        f"{name} has times after the year 9999, because numbers become timestamps as seconds since 1970: for "
        "milliseconds use timestamp_millis(n::bigint) in SQL, or ingest the path with the type timestamp_ms!"
        for name, column in zip(table.column_names, table.columns, strict=True)
        if pa.types.is_timestamp(column.type) and column.type.unit == "us"
        if _FIRST_LATE <= (pc.max(pc.cast(column, pa.int64())).as_py() or 0) <= _LAST_LATE
    ]


# The type of the values of an expression, in which null stands for unknown types; None for a type that is not known.
Kind: TypeAlias = pa.DataType | None
# A step into values, to their elements and fields or to their text as JSON, and the path inside of these.
Inside: TypeAlias = tuple[Literal["elements", "text"], VariantPath]


class TableColumns(Record):
    """The columns of a table that an expression can name."""

    variants: Sequence[str] = ()  # Names of the Variant columns, those of `nested` included.
    # Arrow types of the other columns by name.
    ordinary: Mapping[str, pa.DataType] = dataclasses_field(default_factory=dict)
    # Variants inside structs: the dotted name that scans use for them -> names of the struct and its fields.
    nested: Mapping[str, tuple[str, ...]] = dataclasses_field(default_factory=dict)

    @classmethod
    def of(cls, schema: pa.Schema) -> TableColumns:
        """Return the columns of rows whose Variant fields are marked, without the Variants inside structs."""
        variants = [field.name for field in schema if is_variant_field(field)]
        return cls(variants, {field.name: field.type for field in schema if not is_variant_field(field)})

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


class TableFacts:
    """The columns of a table, and what is known of its values without reading them: here nothing."""

    columns: TableColumns
    order: tuple[str, ...]  # The names of the columns, in the table's order.
    skips: bool = True  # Whether its scans can use a filter to skip data.
    # Columns that scans make of JSON text, with the column of the text.
    parsed_columns: Mapping[str, str] = MappingProxyType({})

    @classmethod
    def of(cls, columns: TableColumns | TableFacts) -> TableFacts:
        """Return a table of which only the columns are known, or one of which more is known."""
        if isinstance(columns, TableFacts):
            return columns
        facts = cls()
        facts.columns, facts.order = columns, tuple(dict.fromkeys([*columns.variants, *columns.ordinary]))
        return facts

    def needs(self, name: str, path: VariantPath | None = None, kind: pa.DataType | None = None) -> Selected:
        """Return the column of the scan for a column, or for a path into it."""
        return Selected.of(name, path, kind)

    def common_type(
        self, name: str, path: VariantPath, inside: Sequence[Inside] = (), *, nulls: bool = True
    ) -> pa.DataType | None:
        """Return the type of every value at a path of a column; None if the types differ or are not known.

        `inside`: the path inside each element or field of the values, or inside their parsed text, once per step.
        `nulls`: whether values may also be Variant null, which the typed column has as NULL.
        """
        return None

    def json_nulls(self, name: str, path: VariantPath, inside: Sequence[Inside] = ()) -> int:
        """Return the number of Variant nulls at a path, as far as few values are inspected; see `common_type`."""
        return 0

    def leaf_of_elements(self, name: str, path: VariantPath) -> tuple[VariantPath, pa.DataType] | None:
        """Return a typed path inside the elements of the arrays at a path; None if the files do not prove there is one.

        The path is relative to the Variant column.
        """
        return None

    def path_elsewhere(self, variant: str, path: VariantPath) -> VariantPath | None:
        """Return another path that ends like one that no row has; None if no such path is known."""
        return None

    def keys(self, variant: str) -> frozenset[str] | None:
        """Return every key of the objects in a Variant column; None if they are unknown without reading values."""
        return None


def is_variant(kind: Kind) -> bool:
    """Return whether a type is the storage of a Variant.

    >>> is_variant(pa.struct([("metadata", pa.binary()), ("value", pa.binary())])), is_variant(pa.binary())
    (True, False)
    """
    if kind is None or not pa.types.is_struct(kind) or {child.name for child in kind} != {"metadata", "value"}:
        return False
    kinds = [child.type.value_type if pa.types.is_dictionary(child.type) else child.type for child in kind]
    return all(map(pa.types.is_binary, kinds))


def holds_variants(kind: pa.DataType) -> bool:
    """Return whether a type is the storage of a Variant, or has one inside."""
    return is_variant(kind) or any(holds_variants(kind.field(index).type) for index in range(kind.num_fields))


def only_variants(kind: Kind) -> Kind:
    """Return the type if it has a Variant inside, else None."""
    return kind if kind is not None and holds_variants(kind) else None


def element_of(kind: Kind) -> Kind:
    """Return the type of the elements of a list, or of the values of a map."""
    if kind is None or not (pa.types.is_list(kind) or pa.types.is_map(kind)):
        return None
    return _if_known(kind.item_type if pa.types.is_map(kind) else kind.value_type)


def field_of(kind: Kind, name: str) -> Kind:
    """Return the type of a field of a struct; names ignore letter case, as in the engines."""
    if kind is None or not pa.types.is_struct(kind):
        return None
    return next((_if_known(field.type) for field in kind if field.name.lower() == name.lower()), None)


def _if_known(kind: pa.DataType) -> Kind:
    return None if pa.types.is_null(kind) else kind
