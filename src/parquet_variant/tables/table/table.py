"""`Table`: a data set of any format, as `pv.open` returns it, and its methods that maintain it.

Owns the parameters of these methods and their description. Leaves the work to the functions of the formats.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from html import escape
from typing import Any, Unpack

import pyarrow as pa

from parquet_variant.errors import bad_option
from parquet_variant.files.parquet.writing.conform import FileKeywords
from parquet_variant.io.parallel import Progress
from parquet_variant.ops.interop.display import Records, html_table
from parquet_variant.tables.commits import CommitResult
from parquet_variant.tables.row_input import SchemaOption
from parquet_variant.tables.schema import arrow_schema
from parquet_variant.tables.table.changing import ChangingMethods


class Table(ChangingMethods):
    """Files, a table or rows in memory with Variant columns; made by `pv.open`.

    The methods are the same for all formats. A method that a format does not have raises `VariantError` with the reason
    ``unsupported-operation``, which names the formats that have it.
    """

    def __repr__(self) -> str:
        options = self._options
        parts = {"version": options.version, "at": options.at, "branch": options.branch, "tag": options.tag}
        pinned = "".join(f", {name} {value}" for name, value in parts.items() if value is not None)
        return f"<{type(self).__name__} {self._name}{pinned}>"

    def _repr_html_(self) -> str:
        columns = [[field.name for field in self.schema], [str(field.type) for field in self.schema]]
        return f"<p>{escape(repr(self))}</p>{html_table(['column', 'type'], columns)}"

    @property
    def version(self) -> Any:
        """The version of a Delta table, or the snapshot id of an Iceberg table; None for other formats."""
        return None

    @property
    def snapshot(self) -> Any:
        """The metadata of a Delta or Iceberg table at its version; unsupported for other formats."""
        raise self._unsupported("snapshot", ("delta", "iceberg"))

    @property
    def properties(self) -> Any:
        """The properties of a Delta or Iceberg table; unsupported for other formats."""
        raise self._unsupported("properties", ("delta", "iceberg"))

    def optimize(
        self,
        *,
        reshred: bool = False,
        schema: SchemaOption = None,
        policy: Any = None,
        min_saving: float = 0.02,
        file_bytes: int | None = None,
        drop_shredding: bool = False,
        rewrite_all: bool = False,
        dry_run: bool = False,
        threads: int | None = None,
        progress: Progress | None = None,
        **files: Unpack[FileKeywords],
    ) -> Any:
        """Compact small files and files with deleted rows, re-shredding columns where that saves space.

        No row changes. A table changes by one commit. In a directory of files, new files are moved into the directory
        before the old ones are removed: a directory has no log, so a reader that lists it between these steps sees
        rows twice. Files of a subdirectory stay in it.

        Parameters
        ----------
        reshred
            Rewrite every file under the schema that `policy` chooses, even if that saves nothing; implied by `schema`.
        schema
            Shredding schema, as for `append`. By default the schema of most rows, with the changes that `find_drift`
            suggests if these save enough. Iceberg tables keep their schema unless `reshred`, `schema` or `policy` is
            given.
        policy
            Policy that chooses the schema; see `infer_shredding_schema`.
        min_saving
            Minimum share of the encoded bytes that re-shredding must remove from the residual.
        file_bytes
            Approximate maximum size of a file. Files of at least three quarters of it, without deleted rows, are kept.
        drop_shredding
            Rewrite all files unshredded. In Delta tables the feature is removed from the protocol; older versions of
            the table still need it.
        rewrite_all
            Rewrite every file of a table, such as after a change of the sort order.
        dry_run
            Only report the schema and the drift, for which all rows are read; write nothing.
        threads
            Number of files to write at the same time, each of them in memory (default: one per CPU for files, one for
            tables).
        progress
            True shows the progress on standard error. Or a function that is called with the step, the number of
            finished tasks and the number of tasks.
        **files
            Options of `VariantWriter`.

        Returns
        -------
        OptimizeResult

        Raises
        ------
        TableError
            ``"conflict"`` if another commit removed one of the files meanwhile (appends do not conflict);
            ``"unsupported-feature"``.
        VariantFileError
            If a path is not a directory of files.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"v": pv.parse_json(['{"n": 1}'])}, format="delta")
        ...     _ = pv.open(folder).append({"v": pv.parse_json(["2"])})
        ...     result = pv.open(folder).optimize()
        ...     result.files_removed, result.files_added
        (2, 1)
        """
        options: dict[str, Any] = {"file_bytes": file_bytes, "progress": progress, **files}
        options["threads"] = 1 if threads is None and self.format in ("delta", "iceberg") else threads
        if drop_shredding:
            if reshred or schema is not None or policy is not None or dry_run:
                raise bad_option("drop_shredding= cannot be combined with reshred=, schema=, policy= or dry_run=")
            return self._run("drop_shredding", **options)
        options |= {"reshred": reshred or None, "rewrite_all": rewrite_all or None, "dry_run": dry_run or None}
        return self._run("optimize", schema=schema, policy=policy, min_saving=min_saving, **options)

    def annotate(self, columns: Collection[str] | None = None) -> tuple[str, ...]:
        """Set which columns have the VARIANT annotation in their files, whose pages are copied unchanged.

        A file is replaced at once. The files of a directory, and of a table, are replaced all or none; those of a table
        by one commit without changed rows: statistics, deletion vectors, row ids, and the order of rows stay valid.
        Files that are written later are annotated as by default.

        Parameters
        ----------
        columns
            Dotted names: of structs (default: all with the fields of a Variant), or of a table's Variant columns, which
            are not in lists or maps (default: all). Other annotations are removed, all of them by ``[]``.

        Returns
        -------
        tuple of str
            The columns with the annotation.

        Raises
        ------
        VariantFileError, TableError
            ``"no-such-column"``; ``"conflict"`` if another writer replaces files of the directory.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(f"{folder}/a.parquet", pv.parse_json(["1"]), annotation=False)
        ...     pv.open(f"{folder}/a.parquet").annotate()
        ('v',)
        """
        return self._run("annotate", columns)

    def vacuum(self, *, retention: timedelta | None = None, dry_run: bool = False, force: bool = False) -> list[str]:
        """Delete the files that the table no longer needs.

        A file is deleted if the newest version does not hold it and it was removed, or (if no version ever held it)
        written, longer ago than the retention. Temporary files in the log are deleted if their writer died. Other
        tables in subdirectories are kept. Iceberg tables have `expire_snapshots` and `remove_orphan_files` instead.

        Parameters
        ----------
        retention
            How long to keep files (default: ``delta.deletedFileRetentionDuration``, which is one week unless set).
        dry_run
            Only return the files.
        force
            Allow a retention shorter than the table's: active writers, and readers of old versions, may then fail.

        Returns
        -------
        list of str
            The deleted files, relative to the table.

        Raises
        ------
        TableError
            ``"retention-too-short"`` without `force`; ``"unsupported-feature"``; ``"published"`` for a table that
            `Table.publish` made.

        Examples
        --------
        >>> import datetime, tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"n": [1]}, format="delta")
        ...     _ = pv.open(folder).overwrite({"n": [2]})
        ...     len(pv.open(folder).vacuum(retention=datetime.timedelta(), force=True))
        1
        """
        return self._run("vacuum", retention=retention, dry_run=dry_run or None, force=force or None)

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the commits or snapshots that the table still has, newest first.

        Parameters
        ----------
        limit
            Maximum number of entries.

        Returns
        -------
        list of dict
            ``version`` (for `restore`), ``timestamp`` (a datetime in UTC, which finds the version), ``operation``, and
            Delta: the other information that its writer recorded (``operationParameters``, ``operationMetrics``, …);
            Iceberg: ``snapshot_id`` (the version), ``parent_id``, ``sequence_number``, ``summary``, ``schema_id``,
            ``references`` (branches and tags at the snapshot) and ``is_current``: whether the snapshot is the current
            one or one of its ancestors.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"v": pv.parse_json(['{"n": 1}'])}, format="delta")
        ...     [entry["operation"] for entry in pv.open(folder).history()]
        ['CREATE TABLE AS SELECT']
        """
        return Records(self._run("history", limit=limit))

    def loads(self) -> list[dict[str, Any]]:
        """Return the source files that `pv.ingest` with `only_new` has loaded, the last load first.

        Returns
        -------
        list of dict
            ``path`` (absolute path or URI), ``size`` (bytes), ``modified`` and ``loaded`` (datetimes in UTC),
            and ``etag`` of an object that was loaded seconds after it was written.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for _ in range(2):
        ...         result = pv.ingest("examples/*.ndjson", folder, only_new=True)
        ...         (result.rows, result.skipped, len(pv.open(folder).loads()))
        (1707, 0, 1)
        (0, 1, 1)
        """
        loads: list[Any] = sorted(self._run("loads"), key=lambda file: file.loaded or "", reverse=True)
        return Records(file.to_dict() for file in loads)

    def restore(self, version: int | None = None, at: Any = None) -> CommitResult:
        """Make the rows of an older version current again.

        Delta commits a new version with the files of the old one. Iceberg moves the branch ``main`` to an ancestor of
        the current snapshot.

        Parameters
        ----------
        version
            The version, or the id of the snapshot.
        at
            The time at which the version was the current one, instead of `version`: milliseconds since 1970, ISO text
            or a datetime (in UTC unless it has a time zone).

        Raises
        ------
        TableError
            ``"no-such-version"``, ``"unknown-snapshot"``; ``"missing-file"`` if `vacuum` has deleted files of the
            version; ``"bad-argument"`` if the snapshot is not an ancestor of the current one.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"n": [1]}, format="delta")
        ...     _ = pv.open(folder).append({"n": [2]})
        ...     _ = pv.open(folder).restore(0)
        ...     pv.open(folder).to_arrow().to_pydict()
        {'n': [1]}
        """
        return self._run("restore", version=version, at=at)

    def add_columns(self, columns: Any, *, defaults: Mapping[str, Any] | None = None) -> CommitResult:
        """Add columns, or fields of structs; existing rows have null or a default value. No file is rewritten.

        Parameters
        ----------
        columns
            An Arrow schema whose Variant fields carry the extension name ``arrow.parquet.variant``; for Delta also DDL
            (``"v VARIANT"``), a Delta schema or schema string; for Iceberg also types by name: ``{"v":
            "variant", "props.b": "int"}``. A
            dotted name adds a field to a struct (``tags.element.b`` to the structs of a list).
        defaults
            Values by name, for Iceberg, that existing rows, and new rows without the column, have instead of null.

        Raises
        ------
        TableError
            ``"bad-schema"`` for a column that exists, or that must not be null; ``"conflict"``.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"n": [1]}, format="iceberg")
        ...     _ = pv.open(folder).add_columns({"v": "variant", "m": "int"}, defaults={"m": 7})
        ...     pv.open(folder).to_arrow().to_pylist()
        [{'n': 1, 'v': None, 'm': 7}]
        """
        return self._run("add_columns", columns, defaults=defaults)

    def drop_column(self, name: str) -> CommitResult:
        """Drop a column, or a field of a struct, by its dotted name; no file is rewritten.

        Raises
        ------
        TableError
            ``"no-column-mapping"`` for a Delta table without column mapping; ``"unknown-column"``; ``"column-in-use"``
            if a constraint, a generated column or the partitioning uses the column.
        """
        return self._run("drop_column", name)

    def rename_column(self, old: str, new: str) -> CommitResult:
        """Rename a column; no file is rewritten, so a Delta table must have column mapping.

        Parameters
        ----------
        old, new
            The names; a field of a struct is given by its path: ``rename_column("s.a", "b")``.

        Raises
        ------
        TableError
            ``"no-column-mapping"``; ``"unknown-column"``; ``"bad-schema"`` if the new name exists; ``"column-in-use"``
            if a constraint or a generated column uses the column.
        """
        return self._run("rename_column", old, new)

    def widen_column(self, name: str, to: str) -> CommitResult:
        """Give a column, or a field of a struct, a wider type; no file is rewritten.

        Parameters
        ----------
        name
            The dotted name.
        to
            The new type: int to ``long``, float to ``double``, date to ``timestamp``, decimals to a higher precision.

        Raises
        ------
        TableError
            ``"unknown-column"``; ``"type-mismatch"`` if the format does not allow the change.

        Examples
        --------
        >>> import tempfile, pyarrow as pa, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"n": pa.array([1], pa.int32())}, format="iceberg")
        ...     _ = pv.open(folder).widen_column("n", "long")
        ...     pv.open(folder).schema.field("n").type
        DataType(int64)
        """
        return self._run("widen_column", name, to)

    def set_properties(self, properties: Mapping[str, str | bool | int | None], *, preview: bool = False) -> Any:
        """Set or remove table properties.

        Parameters
        ----------
        properties
            Values by name; None removes a property. In Delta, ``delta.enableVariantShredding=true`` also adds the
            feature that it needs. ``false`` keeps the feature, so that shredded files stay readable (see `optimize`
            with `drop_shredding`).
        preview
            Name an added feature of Delta ``variantShredding-preview``.

        Raises
        ------
        TableError
            ``"unsupported-property"`` for an unknown property; ``"bad-property"`` for an invalid value;
            ``"constraint-violated"`` for a new constraint that a row breaks; ``"unsupported-feature"``; ``"conflict"``.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"v": pv.parse_json(['{"n": 1}'])}, format="delta")
        ...     _ = pv.open(folder).set_properties({"delta.enableVariantShredding": False})
        ...     pv.open(folder).properties["delta.enableVariantShredding"]
        'false'
        """
        return self._run("set_properties", properties, preview=preview or None)


class TableWithVersions(Table):
    """A table of a format that has versions, or snapshots; see `Table`."""

    @property
    def version(self) -> Any:
        """The version, or the id of the snapshot: that of `pv.open`, or the newest; None for a table without any."""
        return self.snapshot.version

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of all columns; a Variant is a struct whose field has the extension name."""
        return arrow_schema(self.snapshot.struct)

    @property
    def properties(self) -> Mapping[str, str]:
        """The properties of the table."""
        properties: Mapping[str, str] = self.snapshot.properties
        return properties
