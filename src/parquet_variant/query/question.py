"""What a scan is asked: output columns, and a filter that may look at more columns than are given out.

Owns reading both from what a user writes, for every kind of file and table, and what every planned query has: its
columns, and the whole answer. Leaves the plan and the parts of the answer to each format, the types of ordinary
columns, which only the files know, to the scans.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from parquet_variant.array.parts import empty_table
from parquet_variant.errors import VariantFileError
from parquet_variant.query.predicate import Predicate, all_of, bind, columns_of
from parquet_variant.query.predicate_text import parse_predicate
from parquet_variant.query.selection import Selected, read_selection


@dataclass(frozen=True, slots=True)
class Question:
    """What a scan is asked.

    >>> question = Question.of({"mag": "$.mag:double"}, "id > 5")
    >>> [each.name for each in question.columns], question.hidden[0].column
    (['mag', 'id'], 'id')
    """

    selection: tuple[Selected, ...]  # The output columns.
    hidden: tuple[Selected, ...]  # The columns that only the filter looks at.
    predicate: Predicate | None  # The filter, or None.

    @classmethod
    def of(cls, columns: Mapping[str, object] | Sequence[str], where: object) -> Question:
        """Read what a user writes; see `pv.parquet.scan`.

        Raises `VariantFileError` if no column is selected; `PathError` or `PredicateError` if a path or the filter
        cannot be read.
        """
        selection = read_selection(columns)
        if not selection:
            raise VariantFileError("no columns are selected: name at least one", reason="no-columns")
        predicate = read_predicate(where)
        outputs = {each.name for each in selection}
        others = sorted(columns_of(predicate) - outputs) if predicate is not None else []
        return cls(selection, read_selection({name: name for name in others}), predicate)

    @property
    def columns(self) -> tuple[Selected, ...]:
        """All columns that are read."""
        return (*self.selection, *self.hidden)

    def bound(self, columns: Sequence[Selected], zone: str) -> Question:
        """The same with the types that the columns have in the files, and the filter bound to these.

        `columns`: those of `columns`, typed.
        """
        predicate = self.predicate
        if predicate is not None:
            predicate = bind(predicate, {each.name: each.output for each in columns}, zone)
        count = len(self.selection)
        return Question(tuple(columns[:count]), tuple(columns[count:]), predicate)


def read_predicate(where: object) -> Predicate | None:
    """A filter as text, as conditions, or as a predicate; None for none.

    Raises `PredicateError` if it cannot be read.
    """
    if where is None:
        return None
    if isinstance(where, str):
        return parse_predicate(where)
    return all_of(where if isinstance(where, list) else [where])


def in_short(selection: Sequence[Selected], predicate: Predicate | None) -> str:
    """What a scan is asked, for one line: the first columns, and whether rows are left out.

    >>> in_short(read_selection(["a", "b", "c", "d", "e", "f"]), None)
    'of a, b, c, d, e and 1 more'
    """
    more = f" and {len(selection) - 5:,} more" if len(selection) > 5 else ""
    return f"of {', '.join(each.name for each in selection[:5])}{more}{', filtered' if predicate is not None else ''}"


class PlannedQuery(ABC):
    """Output columns, columns that only the filter looks at, and the answer, in parts or as a whole."""

    selection: tuple[Selected, ...]
    hidden: tuple[Selected, ...]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the answer; a Variant is a struct that names its extension."""
        return pa.schema([each.field for each in self.selection])

    @property
    def every_column(self) -> tuple[Selected, ...]:
        """The columns that are read: those that are asked for, and those of the filter."""
        return (*self.selection, *self.hidden)

    @abstractmethod
    def batches(self) -> Iterator[pa.Table]:
        """The answer in parts."""

    def to_table(self) -> pa.Table:
        """The whole answer."""
        parts = list(self.batches())
        return pa.concat_tables(parts) if parts else empty_table(self.schema)
