"""`IcebergTable`: an Iceberg table, with the methods that only Iceberg has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from parquet_variant.tables.iceberg.catalogs.opening import load_table
from parquet_variant.tables.iceberg.metadata.table_metadata import MAIN
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot, newest_snapshot, snapshot
from parquet_variant.tables.table.base import TableFormat
from parquet_variant.tables.table.changing import CHANGES_OF_ROWS
from parquet_variant.tables.table.table import TableWithVersions

if TYPE_CHECKING:
    from parquet_variant.tables.commits import CommitResult
    from parquet_variant.tables.iceberg.changes.changeable import RewriteManifestsResult
    from parquet_variant.tables.iceberg.maintenance.expiration import ExpireResult

# Operations on the rows of one snapshot.
_OF_SNAPSHOTS = ("read", "to_arrow", "scan", "data_files", "parquet_files")
# Operations on the newest snapshot of a branch.
_OF_BRANCHES = ("changeable", "append", "overwrite", "commit_files", "plan", "rewrite_manifests")
# Operations that take the path or name of the table.
_OF_PATHS = ("drop", "publish")


class IcebergTable(TableWithVersions):
    """An Iceberg table; see `Table`. Versions are ids of snapshots."""

    format: ClassVar[TableFormat] = "iceberg"

    @property
    def snapshot(self) -> Snapshot:
        """The metadata of the table at the snapshot of `pv.open`, or at the newest one."""
        options = self._options
        return snapshot(
            self._absolute(self._source),
            catalog=options.catalog,
            snapshot_id=options.version,
            timestamp=options.at,
            branch=options.branch,
            tag=options.tag,
            storage_options=options.storage_options,
            allow_outside=options.allow_outside,
        )

    @property
    def uri(self) -> str:
        """The path or URI of the table, or its name in the catalog."""
        return self._source.table.name if isinstance(self._source, Snapshot) else super().uri

    def _target(self, operation: str) -> Any:
        if operation in CHANGES_OF_ROWS:
            # The properties of a table have names for deletes, updates and merges.
            return self._run("changeable", "delete" if operation == "replace_where" else operation)
        if operation == "erase":
            return self._run("erasable")
        if operation in _OF_SNAPSHOTS:
            return self.snapshot
        source, options = self._absolute(self._source), self._options
        if operation in _OF_PATHS:
            return source
        if isinstance(source, Snapshot):
            loaded = source.table
        else:
            outside = options.allow_outside and operation == "changeable"
            loaded = load_table(source, options.catalog, options.storage_options, allow_outside=outside)
        if operation not in (*_OF_BRANCHES, "erasable", "history"):
            return loaded
        branch = options.branch if operation in _OF_BRANCHES else None
        is_opened = isinstance(source, Snapshot) and branch is None
        return source if is_opened else newest_snapshot(loaded, branch or MAIN)

    def branch(
        self,
        name: str,
        *,
        version: int | None = None,
        max_age_ms: int | None = None,
        min_snapshots_to_keep: int | None = None,
        max_snapshot_age_ms: int | None = None,
    ) -> CommitResult:
        """Make a branch, or move it to another snapshot.

        Parameters
        ----------
        name
            The branch.
        version
            Its newest snapshot (default: the current one).
        max_age_ms, min_snapshots_to_keep, max_snapshot_age_ms
            How long `expire_snapshots` keeps the branch, and snapshots of it.

        Raises
        ------
        IcebergError
            ``"unknown-snapshot"``; ``"bad-argument"`` if the name is that of a tag.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"n": [1]}, format="iceberg")
        ...     _ = pv.open(folder).branch("audit")
        ...     _ = pv.open(folder, branch="audit").append({"n": [2]})
        ...     len(pv.open(folder)), len(pv.open(folder, branch="audit"))
        (1, 2)
        """
        limits = {"max_age_ms": max_age_ms, "max_snapshot_age_ms": max_snapshot_age_ms}
        return self._run(
            "make_reference", "branch", name, version=version, min_snapshots_to_keep=min_snapshots_to_keep, **limits
        )

    def tag(self, name: str, *, version: int | None = None, max_age_ms: int | None = None) -> CommitResult:
        """Make a tag, or move it to another snapshot.

        Parameters
        ----------
        name
            The tag.
        version, max_age_ms
            As for `branch`.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"n": [1]}, format="iceberg")
        ...     _ = pv.open(folder).tag("v1")
        ...     _ = pv.open(folder).append({"n": [2]})
        ...     len(pv.open(folder, tag="v1"))
        1
        """
        return self._run("make_reference", "tag", name, version=version, max_age_ms=max_age_ms)

    def drop_reference(self, name: str) -> None:
        """Drop a branch or tag; its snapshots are kept until they expire.

        Raises
        ------
        IcebergError
            ``"unknown-snapshot"``; ``"bad-argument"`` for the main branch.
        """
        self._run("drop_reference", name)

    def fast_forward(self, name: str, to: str) -> CommitResult:
        """Move a branch forward to the newest snapshot of another one, which has the branch's as an ancestor.

        Parameters
        ----------
        name, to
            The branch to move, such as ``"main"``, and the branch that is ahead.

        Raises
        ------
        IcebergError
            ``"unknown-snapshot"``; ``"bad-argument"`` if the branches have parted.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"n": [1]}, format="iceberg")
        ...     _ = pv.open(folder).branch("audit")
        ...     _ = pv.open(folder, branch="audit").append({"n": [2]})
        ...     _ = pv.open(folder).fast_forward("main", "audit")
        ...     len(pv.open(folder))
        2
        """
        return self._run("fast_forward", name, to)

    def expire_snapshots(
        self,
        *,
        older_than: Any = None,
        retain_last: int | None = None,
        delete_files: bool = True,
        dry_run: bool = False,
    ) -> ExpireResult:
        """Remove snapshots that the table's retention policy no longer keeps, and the files that only they need.

        Branches and tags keep what they refer to. Ages are those of the references, else of the table's properties
        ``history.expire.max-snapshot-age-ms`` (default: 5 days), ``history.expire.min-snapshots-to-keep`` (1) and
        ``history.expire.max-ref-age-ms`` (forever).

        Parameters
        ----------
        older_than
            Remove snapshots of branches that are older than a time, instead of the table's maximum age.
        retain_last
            Number of snapshots of each branch to keep in any case, instead of the table's.
        delete_files
            Delete the files; otherwise they become orphans.
        dry_run
            Only return what would be removed.

        Raises
        ------
        IcebergError
            ``"bad-property"`` if the table has ``gc.enabled`` set to false.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"n": [1]}, format="iceberg")
        ...     _ = pv.open(folder).overwrite({"n": [2]})
        ...     len(pv.open(folder).expire_snapshots(older_than="2999-01-01").snapshots)
        1
        """
        return self._run(
            "expire_snapshots",
            older_than=older_than,
            retain_last=retain_last,
            delete_files=delete_files,
            dry_run=dry_run,
        )

    def rewrite_manifests(self) -> RewriteManifestsResult:
        """Merge the manifests of the branch, with entries in the order of their partitions, in one commit.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"n": [1]}, format="iceberg")
        ...     _ = pv.open(folder).append({"n": [2]})
        ...     result = pv.open(folder).rewrite_manifests()
        ...     result.before, result.after
        (2, 1)
        """
        return self._run("rewrite_manifests")

    def remove_orphan_files(self, *, older_than: Any = None, dry_run: bool = False) -> list[str]:
        """Delete files below the table's location that no snapshot needs, such as those of writes that were killed.

        Metadata files are kept, and so are files of ``write.data.path`` and ``write.metadata.path`` elsewhere, which
        other tables may share. Tables must not share a location: files of the other table would be deleted.

        Parameters
        ----------
        older_than
            Only files that were last changed before a time (default: three days ago); younger ones may belong to a
            write that is running.
        dry_run
            Only list the files.

        Returns
        -------
        list of str
            The locations of the files.

        Raises
        ------
        IcebergError
            ``"bad-property"`` if the table has ``gc.enabled`` set to false.

        Examples
        --------
        >>> import pathlib, tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"n": [1]}, format="iceberg")
        ...     _ = pathlib.Path(folder, "data", "left-behind.parquet").write_bytes(b"")
        ...     removed = pv.open(folder).remove_orphan_files(older_than="2999-01-01")
        ...     [name.rpartition("/")[2] for name in removed]
        ['left-behind.parquet']
        """
        return self._run("remove_orphan_files", older_than=older_than, dry_run=dry_run)

    def set_partitioning(self, partition_by: str | Iterable[str]) -> CommitResult:
        """Change the partition spec of new files; each file is pruned by the spec that it was written with.

        Parameters
        ----------
        partition_by
            Partition fields, as for `pv.write`; none for an unpartitioned table.

        Raises
        ------
        IcebergError
            ``"bad-partitioning"``, ``"unknown-column"``.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"n": [1, 2]}, format="iceberg")
        ...     _ = pv.open(folder).set_partitioning("bucket(4, n)")
        ...     [f.name for f in pv.open(folder).snapshot.metadata.spec.fields]
        ['n_bucket']
        """
        return self._run("set_partitioning", partition_by)

    def set_sort_order(self, sort_by: str | Iterable[str]) -> CommitResult:
        """Change the sort order of new files.

        Parameters
        ----------
        sort_by
            Sort fields, as for `pv.write`; none for unsorted files.

        Raises
        ------
        IcebergError
            ``"bad-partitioning"``, ``"unknown-column"``.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"n": [1, 2]}, format="iceberg")
        ...     _ = pv.open(folder).set_sort_order("n desc")
        ...     _ = pv.open(folder).append({"n": [3, 4]})
        ...     pv.open(folder).to_arrow().to_pydict()
        {'n': [1, 2, 4, 3]}
        """
        return self._run("set_sort_order", sort_by)

    def set_default(self, name: str, value: Any) -> CommitResult:
        """Set the value that new rows without a column get; existing rows keep theirs.

        Parameters
        ----------
        name
            The column.
        value
            A Python value of the column's type; None for null.

        Raises
        ------
        IcebergError
            ``"unknown-column"``; ``"type-mismatch"``.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"n": [1], "m": [2]}, format="iceberg")
        ...     _ = pv.open(folder).set_default("m", 9)
        ...     _ = pv.open(folder).append({"n": [3]})
        ...     pv.open(folder).to_arrow().to_pydict()
        {'n': [1, 3], 'm': [2, 9]}
        """
        return self._run("set_default", name, value)

    def move_column(self, name: str, *, after: str | None = None) -> CommitResult:
        """Move a column, or a field inside of its struct.

        Parameters
        ----------
        name
            The dotted name.
        after
            Name of the field (without the struct's) before the new place; the first place by default.

        Raises
        ------
        IcebergError
            ``"unknown-column"``.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"n": [1], "m": [2]}, format="iceberg")
        ...     _ = pv.open(folder).move_column("m")
        ...     pv.open(folder).schema.names
        ['m', 'n']
        """
        return self._run("move_column", name, after=after)

    def upgrade(self) -> None:
        """Upgrade a table of format version 1 or 2 to version 3, which this package writes.

        Readers and writers of the table must know version 3 afterwards. Files are not rewritten; rows get row ids with
        the next commit.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"n": [1]}, format="iceberg")
        ...     pv.open(folder).upgrade()
        ...     pv.open(folder).snapshot.metadata.version
        3
        """
        self._run("upgrade")

    def drop(self) -> None:
        """Remove the table from its catalog; of a directory, the metadata files are deleted. Data files are kept.

        Raises
        ------
        IcebergError
            ``"no-such-table"``.

        Examples
        --------
        >>> import pathlib, tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"n": [1]}, format="iceberg")
        ...     pv.open(folder).drop()
        ...     pathlib.Path(folder, "metadata", "version-hint.text").exists()
        False
        """
        self._run("drop")
