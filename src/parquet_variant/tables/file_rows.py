"""Whole rows of the data files of a table: columns of the file, and columns that rows inherit from the table.

Owns `DataFileColumns`, the base of each format's description of an open data file, and errors that name the file.
Leaves queries to `table_scan`, which uses the same descriptions, and the choice of files to the formats.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.errors import TableError, VariantFileError
from parquet_variant.files.parquet.format.footer_cache import without_views
from parquet_variant.io.filesystems import is_disk_error
from parquet_variant.kernels.arrow_buffers import Mask, from_numpy
from parquet_variant.layouts.parquet_reader import open_parquet
from parquet_variant.query.selection import Selected
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record
from parquet_variant.tables.columns import (
    Alignment,
    align_table,
    by_logical_name,
    nulls,
    unchanged,
    unshredded,
)
from parquet_variant.tables.schema import Field, Place, StructType, arrow_field, fields_at
from parquet_variant.tables.storage import LocalStorage

# Return the values of a column for some rows of a file: the position of the first row, and the number of rows.
ColumnOfRows: TypeAlias = "Callable[[int, int], pa.Array | pa.ChunkedArray]"


@contextmanager
def file_errors(path: str, error: type[TableError], kind: str = "data file") -> Iterator[None]:
    """Raise errors about a file of a table as a format's errors that name the file and its kind."""
    damaged = f"bad-{kind.replace(' ', '-')}"
    try:
        yield
    except FileNotFoundError:
        raise error.of_missing_file(f"the {kind}", path) from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as problem:
        reason = "cannot-read" if is_disk_error(problem) else damaged
        raise error(f"the {kind} cannot be read: {problem}", reason=reason, file=path) from problem
    except VariantFileError as problem:
        if problem.reason == "not-found":
            raise error.of_missing_file(f"the {kind}", path) from None
        reason = "cannot-read" if problem.reason in ("cannot-open", "cannot-read") else damaged
        raise error(f"the {kind} cannot be read: {problem.message}", reason=reason, file=path) from None
    except TableError as problem:
        if problem.reason == "type-mismatch":
            raise error(problem.message, reason=damaged, file=path) from None
        raise problem.at(file=path) from None


class DataFileColumns(ABC, Record):
    """The columns of one data file, under the names and types of the table."""

    arrow: pa.Schema  # Of the file.
    rows: int  # Of the file, deleted ones included.
    current: Any  # The table at one version, as of `TableScan`.
    file: Any  # The description of the file.
    error: ClassVar[type[TableError]]  # The errors of the format.

    @classmethod
    @contextmanager
    def opened(cls, current: Any, file: Any) -> Iterator[tuple[Self, pq.ParquetFile]]:
        """Open a data file to read whole rows; see `file_errors`."""
        storage, path, name = current.place(file)
        with file_errors(name, cls.error), open_parquet(storage.open(path)) as parquet:
            yield cls(parquet.schema_arrow, parquet.metadata.num_rows, current, file), parquet

    @classmethod
    def read_file(cls, current: Any, file: Any, fields: StructType, row_mask: Mask | None = None) -> pa.Table:
        """Return rows of a data file, with Variants as the file stores them.

        `row_mask`: the rows to read, by position (default: the rows that are not deleted).
        """
        with cls.opened(current, file) as (columns, parquet):
            if row_mask is None:
                return columns.read(parquet, fields, columns.live(parquet))
            return columns.read(parquet, fields, row_mask, by_pages=True)

    @classmethod
    def read_unshredded(cls, current: Any, file: Any, fields: StructType) -> pa.Table:
        """Return the rows of a data file that are not deleted, with unshredded Variants."""
        return align_table(cls.read_file(current, file, fields), fields, by_logical_name, unshredded)

    @property
    def schema(self) -> StructType:
        """The columns of the table that queries may name."""
        columns: StructType = self.current.columns
        return columns

    @abstractmethod
    def find(self, fields: pa.Schema | pa.DataType, f: Field) -> int:
        """Return the index of a field among those of the file's schema, or of a struct in it; -1 if it is missing."""

    def missing(self, f: Field, rows: int) -> pa.Array:
        """Return the values of a field that the file lacks."""
        return nulls(f, rows)

    @abstractmethod
    def is_inherited(self, f: Field) -> bool:
        """Return whether rows have the values of a column from the table, where the file has none."""

    @abstractmethod
    def inherited(self, f: Field) -> pa.Array:
        """Return the values that the rows of the file inherit."""

    def needs_positions(self, missing: Sequence[Selected]) -> bool:
        """Return whether rows are identified by position, so that the scan of the file must not leave out any row."""
        return bool(self.file.has_deletes)

    @abstractmethod
    def live(self, parquet: pq.ParquetFile) -> Mask | None:
        """Return a mask that is False for the deleted rows of the open file; None if no row is deleted."""

    @abstractmethod
    def complete(self, missing: Sequence[Selected]) -> tuple[Mask | None, Mapping[str, ColumnOfRows]]:
        """Return what the scan of the file does not read.

        Return a mask that is False for deleted rows (None if no row is deleted), and the missing columns by output
        name; columns that are not in the result are null. Unless `needs_positions` is True, each missing column has the
        same value in all rows.
        """

    def stored_field(self, selected: Selected) -> pa.Field | None:
        """Return the file's field of an ordinary column; None if a scan of the file does not read the column."""
        f = self._field(selected)
        index = -1 if self.is_inherited(f) else self.find(self.arrow, f)
        return None if index < 0 else self.arrow.field(index)

    def variant_name(self, place: Place) -> str | None:
        """Return the dotted name in the file of the Variant column at a place of the table; None if it is missing."""
        names, fields = [], self.arrow
        for f in fields_at(self.schema, place):
            index = self.find(fields, f)
            if index < 0:
                return None
            names.append(fields.field(index).name)
            fields = fields.field(index).type
        return ".".join(names)

    def converted(self, column: pa.Array, selected: Selected) -> pa.Array:
        """Return a nested column of the file under the table's names and types."""
        f = self._field(selected)
        return Alignment(self.find, on_missing=self.missing).column(column, f.type, (f.name,))

    def _field(self, selected: Selected) -> Field:
        f = self.schema.get(selected.stored_name)
        assert f is not None
        return f

    def read(
        self,
        parquet: pq.ParquetFile,
        fields: StructType,
        mask: Mask | None = None,
        *,
        by_pages: bool = False,
    ) -> pa.Table:
        """Return rows (default: all) in the table's types, with Variants as the file stores them.

        `by_pages`: of a local file, read only the pages with rows of the mask if it has few rows.
        """
        places = {f.name: self.find(self.arrow, f) for f in fields.fields}
        names = [self.arrow.field(index).name for index in places.values() if index >= 0]
        rows, (storage, path, _) = None, self.current.place(self.file)
        if by_pages and mask is not None and names and isinstance(storage, LocalStorage):
            from parquet_variant.files.parquet.pages.stored_chunks import rows_of_pages

            with storage.open(path) as source:
                rows = rows_of_pages(source, names, mask)
            kinds = [field.type for field in self.arrow if field.name in names]
            rows = rows if rows is not None and rows.schema.types == kinds else None
        if rows is None:
            rows = pa.table({"": pa.nulls(self.rows)})
            if names:
                rows = without_views(parquet.read(columns=names), parquet.metadata)
            # Filter before converting, because a change may need few rows of a file.
            rows = rows if mask is None else rows.filter(from_numpy(mask))
        stored = StructType(tuple(f for f in fields.fields if not self.is_inherited(f)))
        aligned = align_table(rows, stored, self.find, unchanged, self.missing)
        columns: list[pa.Array | pa.ChunkedArray] = []
        for f in fields.fields:
            if not self.is_inherited(f):
                columns.append(aligned[f.name])
                continue
            values = self.inherited(f)
            values = values if mask is None else values.filter(from_numpy(mask))
            if places[f.name] >= 0:
                file_values = one_chunk(rows[self.arrow.field(places[f.name]).name])
                values = pc.coalesce(file_values.cast(values.type), values)
            columns.append(values)
        if not columns:
            return pa.table({"": pa.nulls(len(rows))})
        types = zip(fields.fields, columns, strict=True)
        return pa.table(columns, schema=pa.schema([arrow_field(f, column.type) for f, column in types]))
