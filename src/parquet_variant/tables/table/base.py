"""The state of an open table, the call of the function that implements an operation for its format, and reading.

Owns the options of `pv.open`, the error for an operation that a format does not have, and the methods of `Table` that
read: columns, paths and SQL. The registry of `support.lazy_names` names the functions: ``DeltaTable.delete`` is that of
Delta tables.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from inspect import Parameter, signature
from typing import Any, ClassVar, Literal, TypeAlias, TypedDict, TypeVar, get_args

import pyarrow as pa
from pyarrow import fs

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantError, bad_option, check_choice, check_session, strings_of, without_secrets
from parquet_variant.files.parquet.writing.conform import WriterOptions
from parquet_variant.io.commit_journal import of_current_files
from parquet_variant.io.filesystems import absolute, path_text
from parquet_variant.io.parallel import ThreadEngine
from parquet_variant.support.lazy_names import has_method, registered_method
from parquet_variant.support.options import Errors, InputFormat, OnConflict, OnError, OnInexact, SqlEngine
from parquet_variant.support.records import Record
from parquet_variant.tables.table.scan import Scan
from parquet_variant.types.path import VariantPath, column_request

_Result = TypeVar("_Result")
# The format of an open table. Rows in memory and Spark DataFrames have no files.
TableFormat: TypeAlias = Literal["parquet", "delta", "iceberg", "vortex", "json", "memory", "spark"]


class TextKeywords(TypedDict, total=False):
    """The keywords of all operations that read JSON text, as documented in `pv.ingest`."""

    sample: float | None
    on_error: OnError
    on_inexact: OnInexact
    exclude: str | Sequence[str]
    input_format: InputFormat
    root: str | VariantPath | None
    json_column: str | Sequence[str] | None
    infer_types: bool
    types: Mapping[str, str] | str | None
    detect_timestamps: bool | None
    parse: Mapping[str, Any] | None


class OpenOptions(Record, kw_only=True):
    """The options of `pv.open`, which all operations of the table use."""

    column: str | None = None
    version: int | None = None
    at: Any = None
    branch: str | None = None
    tag: str | None = None
    catalog: Any = None
    partition: Mapping[str, str] | None = None
    storage_options: Mapping[str, str] | None = None
    filesystem: fs.FileSystem | None = None
    engine: Any = None
    allow_outside: bool = False
    text: Mapping[str, Any] = field(default_factory=dict)


# Operations whose rows may be a stream, which cannot be read again.
_TAKE_ROWS = frozenset(["append", "overwrite", "replace_where", "replace_partitions", "merge", "commit_files"])


class TableBase:
    """The source, the options, the operations of a format by name, and the methods that read."""

    format: ClassVar[TableFormat]

    def __init__(self, source: Any, options: OpenOptions) -> None:
        self._source = source
        self._options = options

    @property
    def source(self) -> Any:
        """The path, name or data that the table was opened from."""
        return self._source

    @property
    def options(self) -> OpenOptions:
        """The options with which the table was opened."""
        return self._options

    @property
    def uri(self) -> str:
        """The path or URI of the table, or its name in the catalog."""
        source = self._source
        if isinstance(source, str | os.PathLike):
            return path_text(source)
        return ", ".join(map(path_text, source)) if isinstance(source, list | tuple) else self.format

    @property
    def _name(self) -> str:
        return without_secrets(self.uri)

    def _target(self, operation: str) -> Any:
        """Return the first argument of the function of an operation."""
        return self._absolute(self._source)

    def _absolute(self, source: Any) -> Any:
        """Return a path that other processes find, too, if an engine runs the operations there."""
        if self._options.engine is None or self._options.catalog is not None:
            return source
        if isinstance(source, str | os.PathLike):
            return absolute(source)
        return [absolute(path) for path in source] if isinstance(source, list | tuple) else source

    def _run(self, operation: str, /, *arguments: Any, **keywords: Any) -> _Result:  # type: ignore[type-var]
        """Call the function of an operation, with the options of `pv.open` that it has; None stands for its default."""
        function, is_own = self._function(operation)
        parameters = signature(function).parameters
        passed = {
            name: value
            for name in ("catalog", "branch", "storage_options", "filesystem", "column", "allow_outside", "text")
            if name in parameters and (value := getattr(self._options, name))
        }
        if self._options.filesystem is not None and is_own and "filesystem" not in parameters:
            raise bad_option(f"filesystem= is not supported by {operation} of {self._kind}: pass a URI instead")
        passed |= accepted_keywords(function, keywords, f"{operation} for {self._kind}")
        if self._options.engine is not None and self.format in ("delta", "iceberg"):
            # Raises for an unknown option before a job runs.
            WriterOptions.of({name: passed[name] for name in passed if name not in parameters and name != "file_bytes"})
        if "engine" in parameters:
            passed["engine"] = self._engine(keywords.get("threads"), keywords.get("progress"))

        def run() -> _Result:
            return function(self._target(operation) if is_own else self, *arguments, **passed)

        return run() if operation in _TAKE_ROWS else of_current_files(run)

    def _engine(self, threads: int | None, progress: Any) -> Any:
        """Return the engine that runs the tasks of an operation."""
        engine = self._options.engine
        if engine is None or hasattr(engine, "reduce"):
            return engine or ThreadEngine(threads, progress)
        check_session(engine)
        return registered_method("SparkSession.engine")(engine, progress)

    def _function(self, operation: str) -> tuple[Callable[..., Any], bool]:
        """Return the function of an operation, and whether it is that of the format, which takes the target."""
        of_format, shared = f"{self.format.title()}Table.{operation}", f"Table.{operation}"
        if has_method(of_format):
            return registered_method(of_format), True
        if has_method(shared):
            return registered_method(shared), False
        formats = [name for name in get_args(TableFormat) if has_method(f"{name.title()}Table.{operation}")]
        raise self._unsupported(operation, formats)

    def _unsupported(self, operation: str, formats: Sequence[str]) -> VariantError:
        """Return the error for an operation that only some formats have."""
        shown = {"replace_where": "overwrite with where=", "replace_partitions": "overwrite with partitions="}
        return VariantError(
            f"{self._name}: {shown.get(operation, operation)} is not supported for {self._kind}; it is supported for "
            f"{', '.join(formats)}: write the rows to one with pv.write, `variant ingest` or `variant rewrite`",
            reason="unsupported-operation",
            file=self._name,
        )

    @property
    def _kind(self) -> str:
        return {"memory": "rows in memory", "spark": "Spark DataFrames"}.get(self.format, f"the format {self.format}")

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
        return self._run("paths", column=column)

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
        """Plan a query by path; files, row groups and columns that it does not need are not read.

        Parameters
        ----------
        columns
            Output columns by name: ``("$.path", "type")``, ``"$.path:type"``, or the name of a column, which is
            returned whole, with its Variants; ``'"$x"'`` if it begins with ``$``. ``"$.path"`` has the type of its
            values, and is a Variant if they have several, or in Spark; ``"$.path:variant"`` always is. Default: all.
        where
            A filter: text such as ``"mag > 5 and place like 'x%'"``; tuples such as ``[("mag", ">", 5)]``; or a
            predicate. It names output columns, ordinary columns, or paths: ``$.a.b:int = 3`` or ``v:a.b = 3``, which
            has the type of its values. Other conditions in the SQL of queries need DuckDB: ``"lower(v:a) = 'x'"``.
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
        cast
            Whether values of other types are cast; without, for Vortex files, they are null.

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
        if columns is not None and not isinstance(columns, Mapping):
            columns = {name: name for name in strings_of("columns", columns)}
        check_choice("errors", errors, get_args(Errors))
        # Formats need not know options that have their default values.
        options = {"skipping": None if skipping else False, "errors": None if errors == "null" else errors}
        options |= {"cast": None if cast else False}

        def make_plan() -> Any:
            selected = {f.name: column_request(f.name) for f in self.schema} if columns is None else columns
            selected, predicate = registered_method("Scan.with_common_types")(self, selected, where, column, zone)
            if errors == "raise" and cast and self.format in ("delta", "iceberg", "vortex"):
                scan = partial(self._run, "scan", skipping=options["skipping"])
                arguments = {"column": column, "zone": zone, "threads": threads}
                return registered_method("Scan.with_cast_errors")(selected, predicate, scan, **arguments)
            return self._run("scan", selected, predicate, column=column, zone=zone, threads=threads, **options)

        if type(self._options.engine).__module__.startswith("pyspark."):
            return Scan(make_plan, partial(registered_method("Scan.to_spark"), self, columns, where, column=column))
        scan = Scan(make_plan, table=self)
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
        action = None if on_conflict == "error" else on_conflict
        return self._run("read", column=column, on_conflict=action, threads=threads)

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

    def sql(self, query: str, /, **tables: Any) -> Any:
        """Run a query in which the table is named ``t``; see `pv.sql`.

        Parameters
        ----------
        query
            SQL with paths into Variants: ``v:a.b[0]::string``.
        **tables
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
        return run(query, t=self, **engine, **tables)

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
        Scan
            A scan of these columns, which `pv.sql` also accepts as a table. A `UserWarning` counts the fields that are
            not among the columns.

        Examples
        --------
        >>> import parquet_variant as pv
        >>> view = pv.open(pv.parse_json(['{"kind": "a", "user": {"id": 1}}'])).typed()
        >>> view.column_names, view.to_arrow().to_pylist()
        (['kind', 'id'], [{'kind': 'a', 'id': 1}])
        >>> pv.sql("SELECT max(id) AS m FROM v", v=view).to_pylist()
        [{'m': 1}]
        """
        return self._run("typed", column=column, names=names)

    def lazy(
        self, columns: Mapping[str, Any] | Sequence[str] | None = None, where: Any = None, *, column: str | None = None
    ) -> Any:
        """Return a lazy polars frame: a query reads only its columns, its rows, and what its filters do not rule out.

        Parameters
        ----------
        columns, where, column
            As for `scan`.

        Returns
        -------
        polars.LazyFrame

        Examples
        --------
        >>> import polars as pl, parquet_variant as pv
        >>> events = pv.open(pv.parse_json(['{"n": 1}', '{"n": 2}'])).lazy({"n": "$.n"})
        >>> events.filter(pl.col("n") > 1).collect().to_dicts()
        [{'n': 2}]
        """
        return self._run("lazy", columns, where, column=column)

    def to_ibis(self, columns: Any = None, where: Any = None, *, connection: Any = None) -> Any:
        """Return a table of ibis over DuckDB, which reads the rows when an expression is executed.

        Parameters
        ----------
        columns, where
            As for `scan`; by default the columns of `typed`.
        connection
            A DuckDB connection of ibis (default: ibis's default backend, so that tables can be joined).
        """
        return registered_method("Table.to_ibis")(self, columns, where, connection=connection)

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
        view: Callable[..., str] = registered_method("Table.sql_view")
        return view(self, columns, name=name, engine=engine, column=column or self._options.column)


def accepted_keywords(function: Callable[..., Any], keywords: Mapping[str, Any], operation: str) -> dict[str, Any]:
    """Return the keyword arguments of a function for the options of an operation, without those left to its defaults.

    Raises `VariantError` for an option that the function does not have.
    """
    parameters = signature(function).parameters
    accepts_any = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values())
    passed: dict[str, Any] = {}
    for option, value in keywords.items():
        if option in parameters:
            if value is not None or option == "threads":
                passed[option] = value
        elif value is not None and option not in ("threads", "progress"):
            if not accepts_any:
                raise bad_option(f"{option}= is not an option of {operation}: leave it out")
            passed[option] = value
    return passed
