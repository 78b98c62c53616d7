"""Types of CSV columns, from all their strings: a type is used only if every value has its form.

A number with leading zeros is a string, because the zeros would be lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from parquet_variant.errors import VariantFileError
from parquet_variant.support import arrow_compute as pc

_INTEGER = r"^-?(0|[1-9][0-9]*)$"
_DECIMAL = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIMESTAMP = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
# Types and the form of their strings, the preferred one first.
_FORMS: tuple[tuple[pa.DataType, str], ...] = (
    (pa.bool_(), r"^(true|false)$"),
    (pa.int64(), _INTEGER),
    (pa.float64(), _DECIMAL),
    (pa.date32(), _DATE),
    (pa.timestamp("us"), _TIMESTAMP + "$"),
    (pa.timestamp("us", "UTC"), _TIMESTAMP + r"(Z|[-+][0-9]{2}:?[0-9]{2})$"),
)


@dataclass(slots=True)
class TypesOfStrings:
    """The types whose form all strings have that were added so far.

    >>> types = TypesOfStrings()
    >>> types.add(pa.chunked_array([["1", None, "20"]]))
    >>> types.best, types.add(pa.chunked_array([["1.5"]])), types.best
    (DataType(int64), None, DataType(double))
    >>> zeros = TypesOfStrings()
    >>> zeros.add(pa.chunked_array([["007"]]))
    >>> zeros.best
    DataType(string)
    """

    possible: list[tuple[pa.DataType, str]] = field(default_factory=lambda: list(_FORMS))
    has_values: bool = False

    def add(self, values: pa.ChunkedArray) -> None:
        """Exclude the types that some of the values do not have."""
        if values.null_count == len(values):
            return
        self.has_values = True
        self.possible = [(kind, form) for kind, form in self.possible if _have_form(values, kind, form)]

    @property
    def best(self) -> pa.DataType:
        """The type to use: string if no other is possible, or there are no values."""
        return self.possible[0][0] if self.has_values and self.possible else pa.string()


def with_types(table: pa.Table, types: Mapping[str, pa.DataType], file: str) -> pa.Table:
    """Return a table of strings with the inferred types of some columns.

    Raises `VariantFileError` if a file has changed since the types were inferred.
    """
    for index, name in enumerate(table.column_names):
        if (kind := types.get(name, pa.string())) != pa.string():
            try:
                table = table.set_column(index, name, pc.cast(table[name], kind))
            except pa.ArrowInvalid as error:
                raise VariantFileError(
                    f"the column {name} of {file} is not {kind}: {error}; ingest the file again",
                    reason="changed-file",
                    file=file,
                ) from None
    return table


def _have_form(values: pa.ChunkedArray, kind: pa.DataType, form: str) -> bool:
    if not pc.all(pc.match_substring_regex(values, form), min_count=0).as_py():
        return False
    try:
        pc.cast(values, kind)
    except pa.ArrowInvalid:
        return False
    return True
