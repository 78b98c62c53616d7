"""Methods of `Table` that read: columns, paths, SQL, reports and comparisons.

Owns the parameters and their description. Leaves the work to the functions of the formats and of higher layers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.files.parquet.writing.conform import FileKeywords
from parquet_variant.inference.profile import Profile
from parquet_variant.io.engine import Progress
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.choices import AnyLayout, ContractLevel, Errors, FileMode, OnConflict, SqlEngine
from parquet_variant.support.lazy_names import registered_method
from parquet_variant.tables.table.base import TableBase
from parquet_variant.tables.table.scan import Scan

if TYPE_CHECKING:
    from parquet_variant.contracts.contract import Contract


class RewriteKeywords(FileKeywords, total=False):
    """The keywords of `FileKeywords`, and those of Vortex files."""

    compact: bool


class ReadingMethods(TableBase):
    """The methods that read."""

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of all columns; a Variant is a struct whose field has the extension name."""
        schema: pa.Schema = self._run("schema")
        return schema

    @property
    def column(self) -> str:
        """The name of the Variant column: that of `pv.open`, or the only one.

        Raises `VariantError` if there is no Variant column, or several and `pv.open` names none.
        """
        name: str = self._run("column_name")
        return name

    def __len__(self) -> int:
        rows: int = self._run("count_rows")
        return rows

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
        paths: dict[str, str] = self._run("paths", column=column or self._options.column)
        return paths

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
            Output columns by name: ``("$.path", "type")``, ``"$.path:type"``, ``"$.path"`` (a Variant), or the name of
            a column, which is returned whole, with any Variants in it. By default all columns.
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

        Returns
        -------
        Scan

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
            return self._run("scan", selected, where, **named)

        if type(self._options.engine).__module__.startswith("pyspark."):
            return Scan(make_plan, partial(self._dataframe, columns, where, column))
        scan = Scan(make_plan)
        _ = scan.plan  # raises for an invalid request
        return scan

    def _dataframe(self, columns: Any, where: Any, column: str | None, **options: Any) -> Any:
        options |= {name: getattr(self._options, name) for name in ("version", "branch", "tag", "catalog")}
        run = registered_method("Scan.to_spark")
        at = self._options.at
        return run(self._options.engine, self._source, columns, where, column=column, timestamp=at, **options)

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
        array: VariantArray = self._run("read", column or self._options.column, on_conflict=given, threads=threads)
        return array

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
        table: pa.Table = self._run("to_arrow", columns, threads=threads)
        return table

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
        """Return SQL of DuckDB or Spark that defines a view with typed columns over Parquet files.

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
        view, source = self._function("sql_view")
        text: str = view(source, columns, name=name, engine=engine, column=column or self._options.column)
        return text

    # ---- reports

    def inspect(self, *, column: str | None = None) -> Any:
        """Report the content of the files: rows, row groups, columns and paths; only footers are read.

        Parameters
        ----------
        column
            Only this Variant column.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(f"{folder}/a.parquet", pv.parse_json(['{"a": 1}', '{"a": "x"}']), schema="a bigint")
        ...     report = pv.open(folder).inspect()
        >>> [(path.path, path.typed_share, path.residual_share) for path in report.columns[0].paths]
        [('$', None, 0.0), ("$['a']", 0.5, 0.5)]
        """
        return self._run("inspect", column=column)

    def validate(self, *, column: str | None = None, limit: int = 1000, threads: int | None = None) -> Any:
        """Check files, including every value, against the specification of shredding and encoding.

        Parameters
        ----------
        column
            The Variant column to check (default: all).
        limit
            Maximum number of violations per column of a file; further ones are counted.
        threads
            Number of row groups that are checked at the same time (default: one per CPU).

        Returns
        -------
        ValidationReport
            With file, row group, row, path and reason of every violation.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(f"{folder}/a.parquet", pv.parse_json(['{"a": 1}']))
        ...     pv.open(folder).validate().violations
        []
        """
        return self._run("validate", column=column, limit=limit, threads=threads)

    def profile(self, **options: Any) -> Profile:
        """Profile the paths: types, shares, ranges and lengths; see `pv.profile`."""
        profile: Profile = self._run("profile", **options)
        return profile

    def diff(self, other: Any = None, **options: Any) -> Any:
        """Compare with another data set by path: paths that appeared or vanished, types, nulls, ranges and lengths.

        Parameters
        ----------
        other
            The newer data: anything that `pv.open` accepts, or an open table.
        **options
            ``factor``, ``min_change``, ``min_share``, ``ignore``, ``values``, ``sample_bytes``, ``threads``.

        Returns
        -------
        DataDiff

        Examples
        --------
        >>> import parquet_variant as pv
        >>> old, new = pv.parse_json(['{"id": 1}'] * 100), pv.parse_json(['{"id": "x1"}'] * 100)
        >>> for finding in pv.open(old).diff(new).findings:
        ...     print(finding)
        type  $.id: integer -> string (100 values) [values]
        """
        return registered_method("Table.diff")(self, other, **options)

    def contract(
        self, level: ContractLevel = "normal", *, name: str | None = None, threads: int | None = None
    ) -> Contract:
        """Infer a contract that the rows satisfy.

        Parameters
        ----------
        level
            ``"loose"``: types and nulls. ``"normal"``: also required fields, enumerations, forms of strings such as
            timestamps, and numbers that are not negative. ``"strict"``: also exact ranges and lengths, the share of
            rows with a field, patterns, and no other fields.
        name
            The name of the contract.
        threads
            Number of worker threads (default: one per CPU).
        """
        inferred: Contract = registered_method("Table.contract")(self, level, name=name, threads=threads)
        return inferred

    def check(self, contract: Any, *, values: bool = True, examples: int = 5, threads: int | None = None) -> Any:
        """Check the rows against a contract.

        Rules that footers or statistics prove are decided without reading the values.

        Parameters
        ----------
        contract
            A `Contract`, a file (YAML, JSON Schema or ODCS), or a mapping of paths to rules.
        values
            Whether examples contain values. False is for confidential data.
        examples
            Number of examples per rule.
        threads
            Number of worker threads (default: one per CPU).

        Returns
        -------
        ContractReport
            The violations; it is true if there are none.

        Examples
        --------
        >>> import parquet_variant as pv
        >>> rows = pv.open(pv.parse_json(['{"id": 1}', '{"id": "x"}']))
        >>> bool(rows.check({"$.id": {"type": "integer"}}))
        False
        """
        return self._run("check", contract, values=values, examples=examples, threads=threads)

    def compat(self, engines: Collection[str] | None = None, **options: Any) -> Any:
        """Try the engines that are installed here on a copy of the data, and compare values.

        Parameters
        ----------
        engines
            Names of engines; by default all engines that read this kind of data.
        **options
            ``timeout``: seconds after which an engine is stopped (120). ``pythons``: Python executables of other
            environments, in which engines are looked for, too. ``progress``: a callback.

        Returns
        -------
        CompatReport
        """
        return self._run("compat", engines=engines, **options)

    def explore(self, *, compare: Any = None) -> Any:
        """Inspect the data on one page: footers, the metadata of a table, and a sample of the rows.

        Parameters
        ----------
        compare
            Another source to compare with, such as an earlier state.

        Returns
        -------
        Exploration
            Displayed by notebooks; `Exploration.save` writes one self-contained HTML page.
        """
        return registered_method("Table.explore")(self, compare=compare)

    def publish(self, format: str, *, to: Any = None, catalog: Any = None) -> Any:
        """Write the metadata of another table format over the data files, which are not copied.

        Vortex files, which table formats cannot hold, are converted to Parquet files with shredded Variants, each once.
        A repeated call adds and removes only what changed since, in one commit; a call without changes does nothing.
        The published table is a copy for readers: change the source, and publish again.

        Parameters
        ----------
        format
            The format to publish: ``"iceberg"``, ``"delta"`` or ``"ducklake"``.
        to
            Where the published table is: another directory, ``namespace.table`` of `catalog` for Iceberg, or for
            DuckLake the file of its catalog (default: ``TABLE.ducklake``), with ``#schema.table`` for another name than
            that of the directory. By default, Delta and Iceberg share the table's directory; tables of Vortex files
            share the directory ``TABLE.published`` with the converted files.
        catalog
            The catalog of a published Iceberg table (default: that of `pv.open`).

        Returns
        -------
        PublishResult

        Raises
        ------
        TableError
            ``"cannot-publish"`` for what the format cannot express, by name; ``"table-exists"`` or ``"exists"`` for a
            table that was not published; ``"changed-copy"`` if others changed the published table; ``"conflict"``.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"v": pv.parse_json(['{"n": 1}', '{"n": 2}'])}, format="delta")
        ...     pv.open(folder).publish("iceberg").files_added
        ...     pv.open(folder, format="iceberg").scan({"n": "$.n:int"}).to_arrow().to_pydict()
        1
        {'n': [1, 2]}
        """
        return self._run("publish", format, to=to, **({} if catalog is None else {"catalog": catalog}))

    def rewrite(
        self,
        dest: Any,
        *,
        format: Any = None,
        layout: AnyLayout | None = None,
        schema: ShreddingSchema | str | None = None,
        column: str | None = None,
        on_conflict: OnConflict = "error",
        mode: FileMode = "error",
        threads: int | None = None,
        progress: Progress | None = None,
        **files: Unpack[RewriteKeywords],
    ) -> list[Any]:
        """Rewrite files to another layout, schema, format or annotation.

        Parameters
        ----------
        dest
            The new file, or directory for several files.
        format
            ``"parquet"`` or ``"vortex"`` (default: by the name of the destination).
        layout
            Of Parquet: ``"final"``, ``"unshredded"``, ``"draft-paths"`` or ``"draft-object"``; of Vortex: ``"auto"``,
            ``"variant"`` or ``"struct"``. By default the layout is kept.
        schema
            Shredding schema or its DDL; ``"infer"`` chooses one.
        column
            The Variant column, if there are several.
        on_conflict
            As for `read`.
        mode
            What to do if the destination exists: ``"error"`` or ``"overwrite"``.
        threads, progress
            Number of files that are written at the same time (default: one per CPU); a callback that is called with the
            step, the files that are done and the number of files.
        **files
            Options of `VariantWriter`; for Vortex, ``compact``.

        Returns
        -------
        list of FileInfo or VortexFileInfo
            One entry per file.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(f"{folder}/a.parquet", pv.parse_json(['{"a": 1}']))
        ...     _ = pv.open(f"{folder}/a.parquet").rewrite(f"{folder}/b.parquet", schema="a bigint")
        ...     pv.open(f"{folder}/b.parquet").paths()
        {'$.a': 'bigint'}
        """
        written: list[Any] = self._run(
            "rewrite",
            self._absolute(dest),
            format=format,
            layout=layout,
            schema=schema,
            column=column,
            on_conflict=None if on_conflict == "error" else on_conflict,
            mode=mode,
            threads=threads,
            progress=progress,
            **files,
        )
        return written
