"""Commits: new and rewritten manifests, a manifest list, a snapshot, and the catalog's swap, retried on conflicts.

Owns `commit_snapshot` (specification, "Commit Conflict Resolution and Retry"). Manifests of one
attempt are made in `manifest_changes`, the summary too; data files and deletion vectors are written before.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from parquet_variant.errors import IcebergError, VariantError
from parquet_variant.tables.commits import CommitSteps, best_effort, commit_steps
from parquet_variant.tables.iceberg.catalogs.catalog import LoadedTable
from parquet_variant.tables.iceberg.metadata import updates
from parquet_variant.tables.iceberg.metadata.manifests import ManifestFile, write_manifest_list
from parquet_variant.tables.iceberg.metadata.table_metadata import NEWEST_VERSION, Reference, TableMetadata
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot, newest_snapshot
from parquet_variant.tables.iceberg.writing import manifest_changes
from parquet_variant.tables.iceberg.writing.properties import WriteProperties
from parquet_variant.tables.storage import now_millis

_METADATA_RETRIES = 9


def check_writable(metadata: TableMetadata) -> None:
    """Refuse to write to tables of older versions. Raises `IcebergError`: reason ``"unsupported-version"``."""
    if metadata.version < NEWEST_VERSION:
        raise IcebergError(
            f"the table has format version {metadata.version}: upgrade it first with IcebergTable.upgrade; other "
            "writers of the table must then know version 3",
            reason="unsupported-version",
            file=metadata.location,
        )
    if metadata.document.get("encryption-keys"):
        raise IcebergError(
            "the table is encrypted, and encrypted tables cannot be written", reason="unsupported-feature"
        )


def commit_snapshot(base: Snapshot, change: manifest_changes.SnapshotChange, written: Sequence[str] = ()) -> Snapshot:
    """Commit a change that was planned on a snapshot, and return the new snapshot.

    Other commits in between are allowed where they do not matter to the change.

    `written`: locations of files that only this change names; they are removed if it was certainly not committed.
    Raises `IcebergError`: reason ``"conflict"``, ``"batch-committed"``, ``"too-many-retries"``,
    ``"unknown-outcome"`` or ``"unsupported-version"``.
    """
    check_writable(base.metadata)
    attempts = _Attempts(base, change)

    def discard() -> None:
        base.table.files.delete([*written, *attempts.lists, *attempts.writer.locations])

    with commit_steps(base.table.name, discard) as steps:
        retries = WriteProperties(base.metadata.properties).number("commit.retry.num-retries", 4)
        done = _retried(base.table, attempts.prepare, steps, retries, attempts.landed)
    # The manifests and lists of attempts that did not succeed.
    unused = [*attempts.lists[:-1], *attempts.writer.unused(attempts.manifests)]
    best_effort(partial(base.table.files.delete, unused))
    return newest_snapshot(done, base.branch)


def _retried(
    base: LoadedTable,
    prepare: Callable[[LoadedTable, int], updates.TableChange | None],
    steps: CommitSteps,
    retries: int,
    landed: Callable[[], LoadedTable | None] | None = None,
) -> LoadedTable:
    """Commit to the newest metadata until no other commit comes first, and return the table.

    `prepare`: returns the change of an attempt, by its number; None if there is nothing to change.
    `landed`: see `CommitSteps.swap`.
    Raises `IcebergError`: reason ``"too-many-retries"``; and as `prepare`.
    """
    properties, table = WriteProperties(base.metadata.properties), base
    deadline = time.monotonic() + properties.number("commit.retry.total-timeout-ms", 1_800_000) / 1000
    shortest = properties.number("commit.retry.min-wait-ms", 100)
    longest = properties.number("commit.retry.max-wait-ms", 60_000)
    for attempt in range(retries + 1):
        change = prepare(table, attempt)
        if change is None:
            return table
        try:
            return steps.swap(partial(table.commit, change), landed)
        except VariantError as error:
            if error.reason != "conflict" or not base.exists:
                raise
            last = error
        if attempt == retries or time.monotonic() > deadline:
            break
        # Longer after each attempt.
        time.sleep(min(shortest * 2.0**attempt, longest) / 1000 * random.uniform(0.5, 1.0))
        table = base.refreshed()
    raise IcebergError(
        f"{attempt + 1} attempts to commit found other commits first: try again when fewer writers are active (the "
        f"last: {last.message})",
        reason="too-many-retries",
        file=base.name,
    )


class _Attempts:
    """The attempts of one commit: the snapshot id and the manifest of added files are the same in all of them."""

    def __init__(self, base: Snapshot, change: manifest_changes.SnapshotChange) -> None:
        self.base, self.change = base, change
        self.snapshot_id = 0
        while not self.snapshot_id or self.snapshot_id in base.metadata.snapshots:
            number = uuid.uuid4().int
            self.snapshot_id = ((number >> 64) ^ number) & (2**63 - 1)
        self.unique = str(uuid.uuid4())
        metadata = (
            updates.apply_change(base.metadata, updates.TableChange(change.updates), None)
            if change.updates
            else base.metadata
        )
        self.writer = manifest_changes.ManifestWriter(base.table, metadata, self.snapshot_id, self.unique)
        self.lists: list[str] = []
        self.manifests: list[ManifestFile] = []

    def prepare(self, table: LoadedTable, attempt: int) -> updates.TableChange:
        """Write the manifests and the manifest list of an attempt on top of the newest metadata.

        Raises `IcebergError`: reason ``"conflict"`` if other commits matter to the change.
        """
        change, metadata = self.change, table.metadata
        branch = self.base.branch
        is_new = self.base.snapshot_id is None and branch not in metadata.references
        parent = Snapshot(table, None, metadata.schema, branch) if is_new else newest_snapshot(table, branch)
        if manifest_changes.has_batch(parent, change.batch):
            raise IcebergError("the batch was committed before", reason="batch-committed", file=table.name)
        known = self.base.metadata.properties
        if again := [name for name in change.loads if metadata.properties.get(name) != known.get(name)]:
            path = again[0].removeprefix(manifest_changes.LOAD_PROPERTY)
            raise IcebergError(
                f"another writer loaded the same files ({path}): run this again",
                reason="conflict",
                file=table.name,
            )
        self.manifests, removed = manifest_changes.next_manifests(self.base, parent, change, self.writer)
        sequence, first_row_id = metadata.integer("last-sequence-number") + 1, metadata.integer("next-row-id")
        parent_id = None if change.is_replacement else parent.snapshot_id
        data, rows = write_manifest_list(self.manifests, self.snapshot_id, parent_id, sequence, first_row_id)
        location = f"{table.metadata_directory()}/snap-{self.snapshot_id}-{attempt}-{self.unique}.avro"
        self.lists.append(location)
        table.files.write(location, data)
        added_schemas = [u["schema"]["schema-id"] for u in change.updates if u["action"] == "add-schema"]
        snapshot = {
            "snapshot-id": self.snapshot_id,
            **({} if parent_id is None else {"parent-snapshot-id": parent_id}),
            "sequence-number": sequence,
            "timestamp-ms": max(now_millis(), metadata.document["last-updated-ms"]),
            "manifest-list": location,
            "summary": manifest_changes.summary_of(parent, change, removed),
            "first-row-id": first_row_id,
            "added-rows": rows,
            "schema-id": added_schemas[-1] if added_schemas else metadata.schema.id,
        }
        former = metadata.references.get(branch)
        new = Reference(self.snapshot_id, "branch")
        reference = new if former is None else replace(former, snapshot_id=self.snapshot_id)
        steps = (
            *change.updates,
            *manifest_changes.batch_updates(metadata, branch, change, self.snapshot_id),
            {"action": "add-snapshot", "snapshot": snapshot},
            updates.set_reference(branch, reference),
        )
        return updates.TableChange(steps, (*change.requirements, *updates.assert_ref(metadata, branch)))

    def landed(self) -> LoadedTable | None:
        """Return the table if one of the attempts was committed although its answer got lost or a later step failed."""
        table = self.base.table
        newest = table.catalog.find(table.identifier)
        if newest is None or self.snapshot_id not in newest.metadata.snapshots:
            return None
        return replace(newest, allow_outside=table.allow_outside)


def change_metadata(
    table: LoadedTable,
    make: Callable[[TableMetadata], updates.TableChange | None],
    *,
    any_version: bool = False,
) -> LoadedTable:
    """Commit a change of a table's metadata and return the table after it.

    `make`: returns the change for the newest metadata; None if there is nothing to change.
    `any_version`: also change tables that `check_writable` refuses.
    Raises `IcebergError`: reason ``"too-many-retries"``, and as `check_writable` and `make`.
    """

    def prepare(newest: LoadedTable, _: int) -> updates.TableChange | None:
        if not any_version:
            check_writable(newest.metadata)
        return make(newest.metadata)

    return _retried(table, prepare, CommitSteps(table.name), _METADATA_RETRIES)
