"""The request of a scan: output columns, and a filter that can use further columns.

Owns reading both from user input for every format, and the interface of every planned query. Leaves plans and batches
to the formats, and the types of ordinary columns, which only the files have, to the scans.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from parquet_variant.arrays.parts import empty_table
from parquet_variant.errors import VariantFileError
from parquet_variant.ops.interop.tables import ArrowResult
from parquet_variant.query.predicate import Predicate, all_of, bind, columns_of
from parquet_variant.query.predicate_text import parse_predicate
from parquet_variant.query.selection import Selected, read_selection


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
