"""The tables without a log: Parquet, Vortex and JSON files, rows in memory, and Spark DataFrames.

Owns the classes. Higher layers implement the operations of JSON, which `ingestion` reads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import pyarrow as pa

from parquet_variant.ops.interop.tables import rows_of
from parquet_variant.support.choices import Errors
from parquet_variant.tables.table.base import OpenOptions, TableFormat
from parquet_variant.tables.table.scan import Scan
from parquet_variant.tables.table.table import Table


class JsonTable(Table):
    """JSON files, whose values are the Variant column ``v``; see `Table`."""

    format: ClassVar[TableFormat] = "json"


class MemoryTable(Table):
    """Rows in memory: arrays, Arrow data, data frames, or columns by name; see `Table`.

    Parameters
    ----------
    source
        The data.
    options
        The options of `pv.open`.
    """

    format: ClassVar[TableFormat] = "memory"

    def __init__(self, source: Any, options: OpenOptions) -> None:
        super().__init__(rows_of(source) if isinstance(source, Mapping) else source, options)
        self._table: pa.Table | None = None

    @property
    def table(self) -> pa.Table:
        """The rows as a pyarrow table."""
        if self._table is None:
            self._table = rows_of(self._source)
        return self._table

    def _target(self, operation: str) -> pa.Table:
        return self.table

    def __repr__(self) -> str:
        return f"<MemoryTable of a {type(self._source).__name__}>"

    def __len__(self) -> int:
        return self.table.num_rows

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of all columns; a Variant is a struct whose field has the extension name."""
        return self.table.schema


class SparkTable(Table):
    """A Spark DataFrame, whose operations run as Spark jobs; see `Table`."""

    format: ClassVar[TableFormat] = "spark"


class ParquetTable(Table):
    """Parquet files with Variant columns; see `Table`."""

    format: ClassVar[TableFormat] = "parquet"

    def _target(self, operation: str) -> Any:
        return self._absolute(self._source)

    def annotate(self, columns: Collection[str] | None = None) -> tuple[str, ...]:
        """Mark structs of the files as Variants, by writing footers again.

        Parameters
        ----------
        columns
            Dotted names of the structs (default: all structs that have the fields of a Variant).

        Returns
        -------
        tuple of str
            The columns that were marked.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(f"{folder}/a.parquet", pv.parse_json(["1"]), annotation=False)
        ...     pv.open(f"{folder}/a.parquet").annotate()
        ('v',)
        """
        return self._run("annotate", columns)


class VortexTable(Table):
    """Vortex files; see `Table`."""

    format: ClassVar[TableFormat] = "vortex"

    def _target(self, operation: str) -> Any:
        return self._absolute(self._source)

    def scan(
        self,
        columns: Mapping[str, Any] | Sequence[str] | None = None,
        where: Any = None,
        *,
        column: str | None = None,
        skipping: bool = True,
        errors: Errors = "null",
        zone: str = "UTC",
        threads: int | None = None,
        cast: bool = True,
    ) -> Scan:
        """Plan a query by path; see `Table.scan`.

        Parameters
        ----------
        columns, where, column, skipping, errors, zone, threads
            As for `Table.scan`.
        cast
            Whether values of other types are cast; without, they are null.
        """
        if cast:
            return super().scan(
                columns, where, column=column, skipping=skipping, errors=errors, zone=zone, threads=threads
            )
        named = {"column": column or self._options.column, "zone": zone, "threads": threads, "cast": False}
        return self._scan(columns, where, named | {"skipping": skipping})

    def read_json(self, column: str | None = None, *, exact: bool = False) -> pa.Array:
        """Read a Variant or JSON column as JSON text.

        Parameters
        ----------
        column
            The column, if there are several.
        exact
            Return the text as it was written; only columns that were written with ``exact=True`` have it.
        """
        return self._run("read_json", column=column, exact=exact)
