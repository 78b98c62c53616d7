"""Methods of `Table` that read: columns, paths and SQL.

Owns the parameters and their description. Leaves the work to the functions of the formats and of higher layers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.support.choices import Errors, OnConflict, SqlEngine
from parquet_variant.support.lazy_names import registered_method
from parquet_variant.tables.table.base import TableBase
from parquet_variant.tables.table.scan import Scan


class ReadingMethods(TableBase):
    """The methods that read."""

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of all columns; a Variant is a struct whose field has the extension name."""
        return self._run("schema")

    @property
    def column(self) -> str:
        """The name of the Variant column: that of `pv.open`, or the only one.

        Raises `VariantError` if there is no Variant column, or several and `pv.open` names none.
        """
        return self._run("column_name")

    def __len__(self) -> int:
        return self._run("count_rows")

    def __bool__(self) -> bool:
        return True

    def paths(self, column: str | None = None) -> dict[str, str]:
        """Return the paths of a Variant column that are shredded, or else inferred from some rows, with their types.

        Parameters
        ----------
        column
            The Variant column, if there are several.

        Examples
        --------
        >>> import parquet_variant as pv
        >>> pv.open(pv.parse_json(['{"id": 1, "at": {"x": 0.5}}'])).paths()
        {'$.at.x': 'decimal(2,1)', '$.id': 'bigint'}
        """
        return self._run("paths", column=column or self._options.column)

    # ---- rows

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
    ) -> Scan:
        """Plan a query by path; files, row groups and columns that it does not need are not read.

        Parameters
        ----------
        columns
            Output columns by name: ``("$.path", "type")``, ``"$.path:type"``, or the name of a column, which is
            returned whole, with any Variants in it. ``"$.path"`` has the type of its values as in SQL, and is a Variant
            if they have several types, and in Spark; ``"$.path:variant"`` always is. By default all columns.
        where
            A filter: text such as ``"mag > 5 and place like 'x%'"``; tuples such as ``[("mag", ">", 5)]``; or a
            predicate. It names output columns, ordinary columns, or paths with their type: ``$.a.b:int = 3``.
        column
            The Variant column of the paths, if there are several (default: that of `pv.open`).
        skipping
            Whether to skip data by statistics and Bloom filters. The result is the same.
        errors
            ``"null"``: a value that cannot be cast is null; ``"raise"``: `CastError` is raised, and nothing is skipped.
        zone
            The session time zone of casts: a region or an offset.
        threads
            Number of row groups that are read at the same time (default: one per CPU that this process may use). Rows
            are returned in order, and at most ``threads + 1`` row groups are in memory.

        Raises
        ------
        VariantFileError, TableError
            If a file or column does not exist.
        PathError, PredicateError, SchemaError
            If a path, the filter or a type cannot be read.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(f"{folder}/a.parquet", pv.parse_json(['{"mag": 5.5}', '{"mag": 1}']), schema="infer")
        ...     pv.open(folder).scan({"mag": "$.mag:double"}, "mag > 2").to_arrow().to_pydict()
        {'mag': [5.5]}
        """
        column = column or self._options.column
        named: dict[str, Any] = {"column": column, "zone": zone, "threads": threads}
        if errors != "null":
            named["errors"] = errors
        if not skipping:
            named["skipping"] = False
        return self._scan(columns, where, named)

    def _scan(self, columns: Any, where: Any, named: dict[str, Any]) -> Scan:
        column = named["column"]

        def make_plan() -> Any:
            selected = {f.name: f.name for f in self.schema} if columns is None else columns
            selected = registered_method("Scan.with_common_types")(self, selected, column)
            return self._run("scan", selected, where, **named)

        if type(self._options.engine).__module__.startswith("pyspark."):
            return Scan(make_plan, partial(registered_method("Scan.to_spark"), self, columns, where, column=column))
        scan = Scan(make_plan)
        _ = scan.plan  # raises for an invalid request
        return scan

    def read(
        self, column: str | None = None, *, on_conflict: OnConflict = "error", threads: int | None = None
    ) -> VariantArray:
        """Read a Variant column.

        Parameters
        ----------
        column
            The name of the column; optional if there is only one. A field of a struct is written with dots.
        on_conflict
            Action for values whose ``value`` and ``typed_value`` contradict each other: with ``"error"``,
            `ConflictError` is raised when such a value is used or unshredded; with ``"typed"``, ``typed_value`` is
            returned.
        threads
            Number of row groups or files that are read at the same time (default: one per CPU).

        Returns
        -------
        VariantArray
            In the layout of the files if they have the same one, else unshredded; unshredded for tables.

        Raises
        ------
        VariantFileError, TableError
            If the file or column does not exist.
        SchemaError
            If a column has a shape or type that the specification does not allow.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(f"{folder}/a.parquet", pv.parse_json(['{"a": 1}', "2"]))
        ...     pv.open(folder).read().to_pylist()
        [{'a': 1}, 2]
        """
        given = None if on_conflict == "error" else on_conflict
        return self._run("read", column=column, on_conflict=given, threads=threads)

    def to_arrow(self, columns: Sequence[str] | None = None, *, threads: int | None = None) -> pa.Table:
        """Read whole rows; every Variant is a struct whose field carries the extension name.

        Parameters
        ----------
        columns
            Top-level columns, in the order of the result (default: all).
        threads
            Number of files that are read at the same time (default: one per CPU that this process may use).

        Returns
        -------
        pyarrow.Table
            `pv.write` and `Table.append` accept it; ``pv.VariantArray(table["v"])`` makes an array of a column.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"id": [7], "v": pv.parse_json(['{"a": 1}'])}, format="delta")
        ...     table = pv.open(folder).to_arrow()
        >>> table.column_names, pv.VariantArray(table["v"]).to_pylist()
        (['id', 'v'], [{'a': 1}])
        """
        return self._run("to_arrow", columns, threads=threads)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return all rows as an Arrow stream, so that DuckDB, polars and others read the table."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def sql(self, query: str, /, **others: Any) -> Any:
        """Run a query in which the table is named ``t``; see `pv.sql`.

        Parameters
        ----------
        query
            SQL with paths into Variants: ``v:a.b[0]::string``.
        **others
            Other tables by name, and the options of `pv.sql`.

        Returns
        -------
        SqlResult
            A Spark DataFrame if the table was opened with a session.

        Examples
        --------
        >>> import parquet_variant as pv
        >>> pv.open(pv.parse_json(['{"n": 1}', '{"n": 2}'])).sql("SELECT max(v:n::int) AS m FROM t").to_pylist()
        [{'m': 2}]
        """
        run = registered_method("Table.sql")
        engine = {} if self._options.engine is None else {"engine": self._options.engine}
        return run(query, t=self, **engine, **others)

    def typed(self, *, column: str | None = None, names: str = "short") -> Any:
        """View the table as typed columns: the ordinary columns, and one column per shredded path.

        In SQL it is ``FROM typed(t)``. A value of another type than that of its column is null.

        Parameters
        ----------
        column
            The Variant column, if there are several.
        names
            ``"short"``: the shortest end of the path that no other path has, such as ``id`` or ``user_id``; ``"path"``:
            all keys of the path, such as ``event_user_id``.

        Returns
        -------
        TypedView
            An Arrow stream with ``schema``, ``column_names`` and the methods of every result, which `pv.sql` also
            accepts as a table.

        Examples
        --------
        >>> import parquet_variant as pv
        >>> view = pv.open(pv.parse_json(['{"kind": "a", "user": {"id": 1}}'])).typed()
        >>> view.column_names, view.to_arrow().to_pylist()
        (['kind', 'id'], [{'kind': 'a', 'id': 1}])
        >>> pv.sql("SELECT max(id) AS m FROM v", v=view).to_pylist()
        [{'m': 1}]
        """
        return registered_method("Table.typed")(self, column=column or self._options.column, names=names)

    def sql_view(
        self,
        columns: Mapping[str, Any] | None = None,
        *,
        name: str = "events",
        engine: SqlEngine = "duckdb",
        column: str | None = None,
    ) -> str:
        """Return SQL of DuckDB or Spark that defines a view with typed columns over Parquet files or a Delta table.

        Parameters
        ----------
        columns
            Columns by name, as for `scan` (default: all shredded paths).
        name
            The name of the view.
        engine
            ``"duckdb"`` or ``"spark"``.
        column
            The Variant column, if there are several.
        """
        view = registered_method("Table.sql_view")
        text: str = view(self, columns, name=name, engine=engine, column=column or self._options.column)
        return text
