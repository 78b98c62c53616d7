"""Methods of `Table` that change rows: append, overwrite, delete, update, merge and erase; and files that tasks write.

Owns the parameters and their description. Leaves the work to the functions of the formats.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Unpack

from parquet_variant.arrays.capsules import is_variant_field
from parquet_variant.errors import bad_option, check_choice, strings_of
from parquet_variant.files.parquet.writing.conform import FileKeywords, WriterOptions
from parquet_variant.io.parallel import Progress
from parquet_variant.support.lazy_names import registered_method
from parquet_variant.tables.row_input import FILES_WITH_TYPES, Batch, ChangeOptions, SchemaOption, rows_by_column
from parquet_variant.tables.table.reporting import ReportingMethods

if TYPE_CHECKING:
    from parquet_variant.tables.changes.operations import ChangeResult, EraseReport, Merge
    from parquet_variant.tables.commits import CommitResult

# The operations that are the same for all formats of tables, once the format has opened the table.
CHANGES_OF_ROWS = (
    "delete", "update", "merge", "replace_where", "replace_partitions", "optimize", "drop_shredding", "annotate",
)  # fmt: skip


class ChangingMethods(ReportingMethods):
    """The methods that change rows."""

    def _change(self, operation: str, *arguments: Any, options: dict[str, Any], **keywords: Any) -> Any:
        """Run an operation of `tables.changes` with the options that all changes of rows have."""
        options = {name: value for name, value in options.items() if value is not None or name == "threads"}
        engine = self._engine(options.pop("threads", 1), options.pop("progress", None))
        changes = ChangeOptions.of(engine, **options)
        WriterOptions.of(changes.files)  # Raises for an unknown option before a task runs.
        return self._run(operation, changes, *arguments, **keywords)

    def append(
        self,
        data: Any,
        *,
        schema: SchemaOption = None,
        policy: Any = None,
        schema_mode: Literal["merge"] | None = None,
        batch: Batch | None = None,
        file_bytes: int | None = None,
        **files: Unpack[FileKeywords],
    ) -> Any:
        """Add rows, in one commit.

        A directory of Parquet or Vortex files gets a new file, or one per partition of its directories.

        Parameters
        ----------
        data
            A pyarrow table or record batch, a data frame, columns by name (dicts, lists and structs are Variants in a
            Variant column), or an iterable of tables with Variants. Or a list of dicts, one per row: the keys are the
            table's columns, or each dict is a Variant if the table has only a column of Variants. A partition column of
            Delta that the data lacks is read from the Variant column, at the path of the first load or of its name.
        schema
            Shredding schema (object or DDL) of the only Variant column, or schemas by dotted column name. By default
            the schema is inferred from the first rows, and paths of the table keep their types; columns that arrive
            shredded keep theirs. Files of a Parquet directory get the types that most of its rows have at each path.
            Delta tables without ``delta.enableVariantShredding`` are not shredded.
        policy
            The policy of the inference, for tables: a name such as ``"auto"`` or a policy object.
        schema_mode
            ``"merge"`` adds columns, and fields of structs, that the first rows have and the table lacks, and widens
            types if the table allows it. By default both are refused.
        batch
            Application and number, for exactly-once writes: nothing is written if the table has already recorded this
            number, or a later one, for the application.
        file_bytes
            Approximate maximum size of a file (default: the table's property, or 256 MiB).
        **files
            Options of `VariantWriter`.

        Returns
        -------
        CommitResult
            The version or snapshot; ``committed`` is False if `batch` had been committed before.

        Raises
        ------
        TableError
            ``"unsupported-feature"``, ``"unknown-column"``, ``"missing-column"``, ``"type-mismatch"``, ``"conflict"``.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"v": pv.parse_json(['{"n": 1}'])}, format="delta")
        ...     events = pv.open(folder)
        ...     events.append({"v": pv.parse_json(["2"])}, batch=("loader", 1)).committed
        ...     events.append({"v": pv.parse_json(["2"])}, batch=("loader", 1)).committed
        True
        False
        """
        check_choice("schema_mode", schema_mode, ("merge",), optional=True)
        data = rows_by_column(data, lambda: self.schema)
        options = {"schema": schema, "policy": policy, "batch": batch, "file_bytes": file_bytes, **files}
        return self._run("append", data, schema_mode=schema_mode, **options)

    def overwrite(
        self,
        data: Any,
        *,
        where: str | None = None,
        partitions: bool = False,
        schema: SchemaOption = None,
        policy: Any = None,
        batch: Batch | None = None,
        zone: str = "UTC",
        threads: int | None = 1,
        file_bytes: int | None = None,
        **files: Unpack[FileKeywords],
    ) -> Any:
        """Replace all rows, the rows that meet a condition, or partitions, in one commit; the table's schema is kept.

        Parameters
        ----------
        data
            As for `append`.
        where
            SQL, as for `delete`: only rows for which it is true are replaced, and it must be true for every new row.
        partitions
            Replace all rows of the partitions that new rows belong to; other partitions are kept.
        schema, policy, batch, file_bytes, **files
            As for `append`.
        zone
            Session time zone of `where`.
        threads
            Number of files to process at the same time, with `where` or `partitions`; None for one per CPU.

        Returns
        -------
        CommitResult
            With `where` or `partitions` a ChangeResult.

        Raises
        ------
        TableError
            ``"outside-condition"`` if `where` is not true for a new row; ``"not-partitioned"``; and as `append`.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"day": [1, 1, 2], "n": [1, 2, 3]}, format="delta")
        ...     _ = pv.open(folder).overwrite({"day": [1], "n": [9]}, where="day = 1")
        ...     sorted(pv.open(folder).to_arrow()["n"].to_pylist())
        [3, 9]
        """
        if where is not None and partitions:
            raise bad_option("where= and partitions= each choose the rows to replace: give one of them")
        data = rows_by_column(data, lambda: self.schema)
        options = {"schema": schema, "policy": policy, "batch": batch, "file_bytes": file_bytes, **files}
        if where is not None:
            return self._change("replace_where", data, where, options=options | {"zone": zone, "threads": threads})
        if partitions:
            return self._change("replace_partitions", data, options=options | {"threads": threads})
        return self._run("overwrite", data, **options)

    def delete(
        self,
        where: str | None = None,
        *,
        dry_run: bool = False,
        batch: Batch | None = None,
        zone: str = "UTC",
        threads: int | None = 1,
        progress: Progress | None = None,
        **files: Unpack[FileKeywords],
    ) -> ChangeResult:
        """Delete the rows for which a condition is true, in one commit.

        Files that cannot match, by partition values and statistics, are not opened. Files with matching rows are
        rewritten without them, or get a deletion vector if the table has the feature. The old files remain in storage,
        for readers of older versions, until `vacuum` or `expire_snapshots`; `erase` also removes them.

        Parameters
        ----------
        where
            SQL over the table's columns and paths of its Variants: ``"v:a.b::int = 3 AND day < DATE '2024-01-31'"``.
            Without a condition all rows are deleted.
        dry_run
            Only count the rows to delete and the files that hold them; nothing is changed.
        batch
            As for `append`: a change with a recorded number, or an earlier one, is not made again.
        zone
            Session time zone.
        threads
            Number of files to process at the same time; None for one per CPU.
        progress
            True shows the progress on standard error. Or a function that is called with the step, the number of
            finished tasks and the number of tasks.
        **files
            Options of `VariantWriter`.

        Raises
        ------
        TableError
            ``"append-only"``; ``"unsupported-feature"``; ``"too-many-retries"`` if other commits kept changing the same
            rows; ``"no-such-path"`` if no row matches because of a path that no row has, and rows have a similar path.
        SqlError
            The condition cannot be parsed.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"v": pv.parse_json(['{"n": 1}', '{"n": 2}', "3"])}, format="delta")
        ...     pv.open(folder).delete("v:n::int = 2").rows_deleted
        ...     pv.open(folder).read().to_pylist()
        1
        [{'n': 1}, 3]
        """
        options = {"batch": batch, "zone": zone, "threads": threads, "progress": progress, **files}
        return self._change("delete", where, dry_run=dry_run, options=options)

    def update(
        self,
        updates: Mapping[str, str] | None = None,
        where: str | None = None,
        *,
        new_values: Mapping[str, Any] | None = None,
        dry_run: bool = False,
        batch: Batch | None = None,
        zone: str = "UTC",
        threads: int | None = 1,
        progress: Progress | None = None,
        **files: Unpack[FileKeywords],
    ) -> ChangeResult:
        """Set columns, or paths inside Variants, of the rows for which a condition is true, in one commit.

        Parameters
        ----------
        updates
            SQL by column or path: ``{"v:seen": "true", "k": "k + 1"}``. Expressions see the row before the change. NULL
            set at a path becomes the JSON null, except at a missing path that the expression itself reads.
        where
            As for `delete`; without a condition all rows are updated.
        new_values
            Python values by column or path, in addition to `updates` or instead.
        dry_run, batch, zone, threads, progress, **files
            As for `delete`.

        Raises
        ------
        TableError
            ``"bad-assignment"``, ``"type-mismatch"``; and as `delete`.
        SqlError
            An expression cannot be parsed.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"v": pv.parse_json(['{"n": 1}', '{"n": 2}'])}, format="delta")
        ...     _ = pv.open(folder).update({"v:n": "v:n::int * 10"}, "v:n::int = 2", new_values={"v:seen": True})
        ...     pv.open(folder).read().to_pylist()
        [{'n': 1}, {'n': 20, 'seen': True}]
        """
        options = {"batch": batch, "zone": zone, "threads": threads, "progress": progress, **files}
        return self._change("update", updates, where, new_values=new_values, dry_run=dry_run, options=options)

    def merge(
        self,
        source: Any,
        on: str,
        *,
        columns: str | Sequence[str] = (),
        source_alias: str = "source",
        target_alias: str = "target",
        batch: Batch | None = None,
        zone: str = "UTC",
        threads: int | None = 1,
        progress: Progress | None = None,
        **files: Unpack[FileKeywords],
    ) -> Merge:
        """Begin a merge of rows into the table; its clauses define the changes, and ``execute`` commits them.

        If the condition requires columns or paths to be equal, files that hold no key of the source are not opened;
        this is decided by partition values and statistics.

        Parameters
        ----------
        source
            Rows: a pyarrow table, columns by name, a list of dicts as for `append`, any object with Arrow's C stream,
            an open table or its path, such as that of NDJSON, whose values are in a column of the name of this table's
            only Variant column (strings become dates, timestamps and UUIDs as in an append), or of CSV, which has JSON
            in Variant columns; with a Spark session also a DataFrame, which is collected in the driver.
        on
            SQL over both: ``"target.id = source.v:id::bigint"``; or a column or path that is equal in both: ``"v:id"``.
        columns
            Keys of the rows of JSON files or a list of dicts that fill columns, as `pv.ingest` does; the rest of each
            row is in the Variant column.
        source_alias, target_alias
            Names of the tables in SQL.
        batch, zone, threads, progress, **files
            As for `delete`.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"id": [1, 2], "v": pv.parse_json(['{"n": 1}', '{"n": 2}'])}, format="delta")
        ...     news = {"id": [2, 3], "v": pv.parse_json(['{"n": 20}', '{"n": 30}'])}
        ...     merged = pv.open(folder).merge(news, "target.id = source.id")
        ...     result = merged.when_matched_update_all().when_not_matched_insert_all().execute()
        ...     (result.rows_updated, result.rows_inserted), pv.open(folder).read().to_pylist()
        ((1, 1), [{'n': 1}, {'n': 20}, {'n': 30}])
        """
        if not (keys := strings_of("columns", columns)) and isinstance(source, str | os.PathLike):
            options = {name: getattr(self._options, name) for name in ("catalog", "storage_options", "filesystem")}
            source = registered_method("Table.open")(source, **options)
        if keys or getattr(source, "format", None) == "json":
            rows_of_json = registered_method("Table.rows_of_json")
            source = rows_of_json(source, self.schema, keys, self._run("parquet_files", FILES_WITH_TYPES))
        elif isinstance(source, ReportingMethods):
            variants = [field.name for field in self.schema if is_variant_field(field)]
            is_csv, source = source.options.text.get("input_format") == "csv", source.to_arrow()
            source = registered_method("Table.with_json_columns")(source, variants) if is_csv else source
        elif hasattr(source, "toArrow"):
            source = source.toArrow()
        source = rows_by_column(source, lambda: self.schema)
        options = {"batch": batch, "zone": zone, "threads": threads, "progress": progress, **files}
        return self._change("merge", source, on, options=options, source_alias=source_alias, target_alias=target_alias)

    def erase(
        self,
        where: str,
        *,
        dry_run: bool = False,
        force: bool = False,
        zone: str = "UTC",
        threads: int | None = 1,
        progress: Progress | None = None,
        **files: Unpack[FileKeywords],
    ) -> EraseReport:
        """Erase the rows for which a condition is true from the table, its history and its statistics.

        The steps: rewrite the files that hold matching rows, and those with deleted rows; remove all older versions,
        with their data files, logs and metadata that name values; read all remaining files again to verify that no row
        matches. A process that is killed in between leaves a readable table; call `erase` again to finish.

        Files that hold no matching row are kept: their lists of object keys and shredding schemas may name keys, but
        not values, that only erased rows used. An erasure cannot reach copies: backups, clones, tables that share
        files, exports, versions of the object store, and the memory of running readers.

        Parameters
        ----------
        where
            As for `delete`.
        dry_run
            Only count rows, files and versions.
        force
            Also erase if a writer seems to be active: if a data file without a commit is younger than an hour. Its
            commit would then fail or lose files. In Iceberg, also drop branches and tags, which keep older snapshots.
        zone, threads, progress, **files
            As for `delete`.

        Raises
        ------
        TableError
            ``"writer-active"``, ``"has-references"`` and ``"no-such-path"`` (no row matches because of a misspelled
            path) without `force`; ``"append-only"``; ``"published"`` for a table that `Table.publish` made;
            ``"bad-property"`` if ``gc.enabled`` is false; ``"conflict"`` if another commit came in between: call
            `erase` again; ``"not-erased"`` if a remaining file still holds a matching row; and as `delete`.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"v": pv.parse_json(['{"user": 1}', '{"user": 2}'])}, format="delta")
        ...     report = pv.open(folder).erase("v:user::int = 1")
        ...     report.rows_erased, report.versions_removed, pv.open(folder).read().to_pylist()
        (1, 1, [{'user': 2}])
        """
        options = {"zone": zone, "threads": threads, "progress": progress, **files}
        return self._change("erase", where, dry_run=dry_run, force=force, options=options)

    def plan(
        self,
        *,
        schema: SchemaOption = None,
        policy: Any = None,
        file_bytes: int | None = None,
        rewriting: bool = False,
        job: str = "",
        **files: Unpack[FileKeywords],
    ) -> Any:
        """Return the plan by which tasks of other processes write files for a Delta or Iceberg table.

        Parameters
        ----------
        schema, policy, file_bytes, **files
            As for `append`.
        rewriting
            Whether the rows are in the table already, for Delta.
        job
            Beginning of the files' names.

        Returns
        -------
        WritePlan or IcebergWritePlan
            Its ``write_files(rows)``, for Delta also ``write(rows)``, returns what `commit_files` commits.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"v": pv.parse_json(['{"n": 1}'])}, format="delta")
        ...     table = pv.open(folder)
        ...     adds = table.plan().write({"v": pv.parse_json(["2", "3"])})
        ...     table.commit_files(adds).version, len(table.read())
        (1, 3)
        """
        options = {"schema": schema, "policy": policy, "file_bytes": file_bytes, "rewriting": rewriting or None}
        return replace(self._run("plan", **options, **files), job=job)

    def commit_files(
        self,
        files: Iterable[Any],
        *,
        mode: Literal["append", "overwrite"] = "append",
        batch: Batch | None = None,
        operation: str | None = None,
    ) -> CommitResult:
        """Commit files that tasks wrote with a plan, once, on the driver.

        The files of Delta carry a mark of the table for which their plan was made. The commit is refused if the table's
        schema, properties (constraints among them), partition columns or protocol are different now: the rows were not
        checked against these. The files are then not part of the table; write them again, and `vacuum` removes the old
        ones.

        Parameters
        ----------
        files
            The results of the plan. Of Delta also add actions from elsewhere; these need a table that was opened at a
            version, because they carry no mark.
        mode
            ``"overwrite"`` removes all files that are in the table when the commit succeeds.
        batch
            As for `append`.
        operation
            Name of the operation in Delta's history (default: ``WRITE``).

        Raises
        ------
        TableError
            ``"conflict"`` if the table changed since the files were planned; ``"unplanned-files"``; ``"append-only"``;
            ``"too-many-retries"``.
        """
        return self._run("commit_files", files, mode=mode, batch=batch, operation=operation)
