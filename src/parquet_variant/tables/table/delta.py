"""`DeltaTable`: a Delta table, with the methods that only Delta has."""

from __future__ import annotations

from typing import Any, ClassVar

import pyarrow as pa

from parquet_variant.tables.delta.log.snapshot import Snapshot, snapshot
from parquet_variant.tables.storage import open_storage
from parquet_variant.tables.table.base import TableFormat
from parquet_variant.tables.table.changing import CHANGES_OF_ROWS
from parquet_variant.tables.table.table import TableWithVersions

# Operations on the whole history, which take the files of the table.
_OF_STORAGES = ("history", "vacuum", "restore", "erasable", "added", "changes")


class DeltaTable(TableWithVersions):
    """A Delta table; see `Table`. Without `version` and `at`, each operation uses the newest version."""

    format: ClassVar[TableFormat] = "delta"

    @property
    def snapshot(self) -> Snapshot:
        """The files, schema and properties of the version: that of `pv.open`, or the newest."""
        source, options = self._absolute(self._source), self._options
        places: dict[str, Any] = {"storage_options": options.storage_options, "allow_outside": options.allow_outside}
        return snapshot(source, version=options.version, timestamp=options.at, **places)

    @property
    def uri(self) -> str:
        """The path or URI of the table."""
        return self._source.storage.uri if isinstance(self._source, Snapshot) else super().uri

    def _target(self, operation: str) -> Any:
        if operation in CHANGES_OF_ROWS:
            return self._run("changeable")
        if operation == "erase":
            return self._run("erasable")
        options, source = self._options, self._source
        if operation in _OF_STORAGES:
            if isinstance(source, Snapshot):
                return source.storage
            path, storage_options = self._absolute(source), options.storage_options
            return open_storage(path, storage_options, allow_outside=options.allow_outside)
        if operation == "publish":
            return source.storage.uri if isinstance(source, Snapshot) else self._absolute(source)
        # Files that no plan of this package made can only be committed to a snapshot that the user names.
        is_pinned = options.version is not None or options.at is not None
        if operation == "commit_files" and not (is_pinned or options.allow_outside):
            return self._absolute(source)
        return self.snapshot

    def checkpoint(self, *, stats_parsed: bool | None = None) -> str:
        """Write a checkpoint of the newest version.

        Parameters
        ----------
        stats_parsed
            Also write statistics as typed columns, those of Variants as Variant columns with the Parquet annotation
            (default: ``delta.checkpoint.writeStatsAsStruct``). Statistics as JSON are written unless
            ``delta.checkpoint.writeStatsAsJson`` is ``false``.

        Returns
        -------
        str
            The file, relative to the table.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"v": pv.parse_json(['{"n": 1}'])}, format="delta")
        ...     pv.open(folder).checkpoint()
        '_delta_log/00000000000000000000.checkpoint.parquet'
        """
        return self._run("checkpoint", stats_parsed=stats_parsed)

    def changes(self, since: int, until: int | None = None) -> pa.Table:
        """Return the rows that versions inserted, deleted and updated.

        Parameters
        ----------
        since
            The first version whose changes are returned.
        until
            The last version (default: the newest).

        Returns
        -------
        pyarrow.Table
            The table's columns as of `until`, and ``_change_type`` (``insert``, ``delete``, ``update_preimage``,
            ``update_postimage``), ``_commit_version`` and ``_commit_timestamp``. In a version without change data, such
            as one written without ``delta.enableChangeDataFeed``, an update is a delete and an insert.

        Raises
        ------
        TableError
            ``"no-such-version"`` if a commit is no longer in the log; ``"missing-file"`` if vacuum has removed a file;
            ``"bad-schema"`` if the table has a column with one of these names.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     feed = {"delta.enableChangeDataFeed": True}
        ...     _ = pv.write(folder, {"n": [1, 2]}, format="delta", properties=feed)
        ...     _ = pv.open(folder).update({"n": "n * 10"}, "n = 2")
        ...     pv.open(folder).changes(since=1).select(["n", "_change_type"]).to_pylist()
        [{'n': 2, '_change_type': 'update_preimage'}, {'n': 20, '_change_type': 'update_postimage'}]
        """
        return self._run("changes", since, until)

    def added(self, since: int, until: int | None = None, *, ignore_changes: bool = False) -> DeltaTable:
        """Return a table that holds only the files added after a version.

        Files that only rearrange rows (``dataChange=false``, as written by `optimize`) are left out.

        Parameters
        ----------
        since
            The last version that was processed; -1 to start with the first version.
        until
            The last version to include (default: the newest).
        ignore_changes
            Continue where rows were removed, for example by an overwrite; by default that raises an error.

        Raises
        ------
        TableError
            ``"rows-removed"`` if a commit removed rows; ``"no-such-version"`` if a commit is no longer in the log.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     first = pv.write(folder, {"v": pv.parse_json(["1"])}, format="delta").version
        ...     _ = pv.open(folder).append({"v": pv.parse_json(["2"])})
        ...     pv.open(folder).added(since=first).read().to_pylist()
        [2]
        """
        return DeltaTable(self._run("added", since, until, ignore_changes=ignore_changes), self._options)
