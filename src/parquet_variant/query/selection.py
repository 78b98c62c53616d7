"""The request of a scan: output columns, and a filter that can use further columns.

An output column is a typed path into a Variant, or an ordinary column. Owns the ways to write columns, and binding a
request to the types of a file. Leaves which columns of a file they need to `files.parquet.scanning.projection`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclasses_field
from typing import Any, Literal

import pyarrow as pa

from parquet_variant.arrays.capsules import EXTENSION_METADATA
from parquet_variant.arrays.parts import empty_table
from parquet_variant.errors import VariantError, VariantFileError, check_column_name, strings_of
from parquet_variant.ops.columns.target_type import as_target, result_type, value_target
from parquet_variant.ops.interop.tables import ArrowResult
from parquet_variant.query.predicate import Predicate, all_of, bind, columns_of
from parquet_variant.query.predicate_text import parse_predicate
from parquet_variant.types.path import AnyPath, VariantPath
from parquet_variant.types.targets import VARIANT_STORAGE


@dataclass(frozen=True, slots=True)
class Selected:
    """One output column."""

    name: str  # Its name.
    path: VariantPath | None  # The path into the Variant column; None for an ordinary column.
    # The requested Arrow type, of each element if the path has wildcards; None for the Variant at the path, or for an
    # ordinary column with its own type. It is not hashed, since extension types made in Python have no hash.
    type: pa.DataType | None = dataclasses_field(default=None, hash=False)
    column: str | None = None  # The ordinary column's name in the file.
    exact: bool = False  # Whether values of other types are null; numbers are cast where the type keeps them.

    @property
    def lossless(self) -> Literal[False, "numbers"]:
        """The option of `extract_path` for an exact column."""
        return "numbers" if self.exact else False

    @property
    def stored_name(self) -> str:
        """The name of the column in the data: `column`, which may be empty, or the output name."""
        return self.name if self.column is None else self.column

    @property
    def field(self) -> pa.Field:
        """The output column as an Arrow field; a Variant has the extension name in its metadata."""
        if self.output is None:
            return pa.field(self.name, VARIANT_STORAGE, metadata=EXTENSION_METADATA)
        return pa.field(self.name, self.output)

    @property
    def output(self) -> pa.DataType | None:
        """The Arrow type of the output column; None for a Variant, or an ordinary column whose type is not read yet."""
        if self.path is None or not self.path.has_wildcard:
            return self.type
        return result_type(VARIANT_STORAGE if self.type is None else self.type, self.path)


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


def _read_column(name: str, request: object) -> Selected:
    check_column_name(name)
    if isinstance(request, Selected):
        return replace(request, name=name)
    if isinstance(request, VariantPath):
        return Selected(name, request)
    if isinstance(request, tuple) and len(request) == 2:
        return _typed_path(name, request[0], request[1])
    if isinstance(request, str) and request.startswith("$"):
        path, kind = split_type(request)
        return _typed_path(name, path, kind)
    if isinstance(request, str):
        return Selected(name, None, column=request)
    raise VariantError(
        f"invalid selection for column {name}: {request!r}; give ('$.path', 'type'), '$.path:type' or a column name",
        reason="bad-selection",
    )


def _typed_path(name: str, path: AnyPath, type_name: object) -> Selected:
    parsed, target = VariantPath.parse(path), arrow_type(type_name)
    return Selected(name, parsed, None if target is None else value_target(target, parsed))


def split_type(text: str) -> tuple[str, str | None]:
    """Split ``$.a['b:c']:int`` into path and type; a key with a colon must be written in brackets and quotes."""
    quote, bracketed, index = "", False, 0
    while index < len(text):
        character = text[index]
        if quote:
            index += character == "\\"
            quote = "" if character == quote else quote
        elif bracketed and character in "'\"":
            quote = character
        elif character in "[]":
            bracketed = character == "["
        elif character == ":":
            return text[:index], text[index + 1 :].strip()
        index += 1
    return text, None


@dataclass(frozen=True, slots=True)
class Question:
    """The request of a scan.

    >>> question = Question.of({"mag": "$.mag:double"}, "id > 5")
    >>> [column.name for column in question.columns], question.hidden[0].column
    (['mag', 'id'], 'id')
    """

    selection: tuple[Selected, ...]  # The output columns.
    hidden: tuple[Selected, ...]  # The columns that only the filter uses.
    predicate: Predicate | None  # The filter, or None.

    @classmethod
    def of(cls, columns: Mapping[str, object] | Sequence[str], where: object) -> Question:
        """Read columns and filter as a user writes them; see `Table.scan`.

        Raises `VariantFileError` if no column is selected; `PathError` or `PredicateError` if a path or the filter
        cannot be read.
        """
        selection = read_selection(columns)
        if not selection:
            raise VariantFileError("no columns are selected: name at least one", reason="no-columns")
        if where is None or isinstance(where, str):
            predicate = None if where is None else parse_predicate(where)
        else:
            predicate = all_of(where if isinstance(where, list) else [where])
        outputs = {column.name for column in selection}
        hidden = sorted(columns_of(predicate) - outputs) if predicate is not None else []
        return cls(selection, read_selection({name: name for name in hidden}), predicate)

    @property
    def columns(self) -> tuple[Selected, ...]:
        """The columns that are read."""
        return (*self.selection, *self.hidden)

    def bound(self, columns: Sequence[Selected], zone: str) -> Question:
        """Return the request with the column types of the files, and the filter bound to them.

        `columns`: the columns of `Question.columns` with their types.
        """
        predicate = self.predicate
        if predicate is not None:
            predicate = bind(predicate, {column.name: column.output for column in columns}, zone)
        count = len(self.selection)
        return Question(tuple(columns[:count]), tuple(columns[count:]), predicate)


def short_description(selection: Sequence[Selected], predicate: Predicate | None) -> str:
    """Describe a request in one line: its first columns, and whether there is a filter.

    >>> short_description(read_selection(["a", "b", "c", "d", "e", "f"]), None)
    'of a, b, c, d, e and 1 more'
    """
    more = f" and {len(selection) - 5:,} more" if len(selection) > 5 else ""
    return (
        f"of {', '.join(column.name for column in selection[:5])}{more}{', filtered' if predicate is not None else ''}"
    )


class PlannedQuery(ArrowResult):
    """A query that is ready to run: its columns, and its result as batches or as one table."""

    selection: tuple[Selected, ...]
    hidden: tuple[Selected, ...]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result; a Variant is a struct with the extension name."""
        return pa.schema([column.field for column in self.selection])

    @property
    def every_column(self) -> tuple[Selected, ...]:
        """The columns that are read: the output columns, and the columns that only the filter uses."""
        return (*self.selection, *self.hidden)

    @property
    @abstractmethod
    def bytes_read(self) -> int:
        """The bytes that the query has read so far in this process."""

    @abstractmethod
    def explain(self) -> Any:
        """Return what the query reads and skips."""

    @abstractmethod
    def batches(self) -> Iterator[pa.Table]:
        """Yield the result in parts."""

    def to_table(self) -> pa.Table:
        """Return the whole result."""
        parts = list(self.batches())
        return pa.concat_tables(parts) if parts else empty_table(self.schema)

    def to_arrow(self) -> pa.Table:
        """Return the whole result, as `to_table` does."""
        return self.to_table()
