"""Changes of table metadata, as the REST catalog specification words them: requirements and updates.

Owns `TableChange`, what every commit hands to its catalog. A REST catalog gets it as JSON; catalogs that keep documents
themselves check and apply it here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from parquet_variant.errors import IcebergError
from parquet_variant.support.records import Record
from parquet_variant.tables.iceberg.metadata.partitioning import PartitionSpec, SortOrder, spec_of
from parquet_variant.tables.iceberg.metadata.schema import Schema
from parquet_variant.tables.iceberg.metadata.table_metadata import MAIN, TableMetadata
from parquet_variant.tables.schema import Field
from parquet_variant.tables.storage import now_millis

Update = Mapping[str, Any]
Document = dict[str, Any]
_KEEP_METADATA = "write.metadata.previous-versions-max"
_DEFAULT_KEPT = 100
# In an update, this id stands for the schema, spec or order that the same change added last.
LAST_ADDED = -1


class TableChange(Record):
    """A change of a table's metadata: what to do, and what must still be true then."""

    updates: Sequence[Update] = ()
    requirements: Sequence[Update] = ()


_IDS: dict[str, Callable[[TableMetadata], int]] = {
    "current-schema-id": lambda metadata: metadata.schema.id,
    "last-assigned-field-id": lambda metadata: metadata.last_column_id,
    "default-spec-id": lambda metadata: metadata.spec.id,
    "last-assigned-partition-id": lambda metadata: metadata.last_partition_id,
    "default-sort-order-id": lambda metadata: metadata.sort_order.id,
}


# What a change of columns relies on.
SCHEMA_IDS = ("current-schema-id", "last-assigned-field-id")


def requires(metadata: TableMetadata, *ids: str, refs: Iterable[str] = ()) -> list[Update]:
    """Return the requirements that a table is the same one, and that some ids, branches and tags are what they were."""
    requirements: list[Update] = []
    if metadata.uuid is not None:
        requirements.append({"type": "assert-table-uuid", "uuid": metadata.uuid})
    for name in refs:
        reference = metadata.references.get(name)
        snapshot_id = None if reference is None else reference.snapshot_id
        requirements.append({"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": snapshot_id})
    return requirements + [{"type": f"assert-{name}", name: _IDS[name](metadata)} for name in ids]


def check_requirements(metadata: TableMetadata, requirements: Sequence[Update]) -> None:
    """Check the requirements of a change, which `requires` made, against the newest metadata.

    Raises `IcebergError`: reason ``"conflict"``.
    """
    for requirement in requirements:
        (name,) = (name for name in requirement if name not in ("type", "ref"))
        actual: Any = metadata.uuid
        if "ref" in requirement:
            reference = metadata.references.get(requirement["ref"])
            actual = None if reference is None else reference.snapshot_id
        elif name in _IDS:
            actual = _IDS[name](metadata)
        if actual != requirement[name]:
            what = name.replace("-", " ") + (f" of {requirement['ref']}" if "ref" in requirement else "")
            problem = f"another commit came first: the {what} is {actual}, expected {requirement[name]}"
            raise IcebergError(problem, reason="conflict")


def properties_updates(values: Mapping[str, str], removed: Sequence[str] = ()) -> list[Update]:
    """Return the updates that set some properties and remove others."""
    updates: list[Update] = [{"action": "set-properties", "updates": dict(values)}] if values else []
    return [*updates, {"action": "remove-properties", "removals": list(removed)}] if removed else updates


def definition_updates(
    metadata: TableMetadata,
    schema: Schema | None = None,
    spec: PartitionSpec | None = None,
    order: SortOrder | None = None,
    properties: Mapping[str, str] | None = None,
) -> tuple[Update, ...]:
    """Return the updates that give a table another schema, spec or order, and set properties.

    A spec or an order that the table already has is used again.
    """
    updates: list[Update] = []
    if schema is not None:
        highest = max(metadata.last_column_id, schema.highest_id)
        updates.append({"action": "add-schema", "schema": schema.to_json(), "last-column-id": highest})
        updates.append({"action": "set-current-schema", "schema-id": LAST_ADDED})
    if spec is not None:
        updates.append({"action": "add-spec", "spec": spec.to_json()})
        updates.append({"action": "set-default-spec", "spec-id": LAST_ADDED})
    if order is not None:
        updates.append({"action": "add-sort-order", "sort-order": order.to_json()})
        updates.append({"action": "set-default-sort-order", "sort-order-id": LAST_ADDED})
    return (*updates, *properties_updates(properties or {}))


def next_spec(metadata: TableMetadata, fields: Sequence[str | Field], schema: Schema) -> PartitionSpec:
    """Return another partition spec of a table; see `spec_of`."""
    specs, last = metadata.specs, metadata.last_partition_id
    return spec_of(fields, schema, spec_id=max(specs) + 1, last_partition_id=last, former=specs.values())


def removal_of(references: Iterable[str], snapshot_ids: Sequence[int]) -> list[Update]:
    """Return the updates that remove branches, tags and snapshots."""
    updates: list[Update] = [{"action": "remove-snapshot-ref", "ref-name": name} for name in references]
    return [*updates, {"action": "remove-snapshots", "snapshot-ids": snapshot_ids}] if snapshot_ids else updates


def set_reference(name: str, reference: Any) -> Update:
    """Return the update that makes or moves a branch or tag."""
    return {"action": "set-snapshot-ref", "ref-name": name, **reference.to_json()}


def apply_change(metadata: TableMetadata, change: TableChange, previous_location: str | None) -> TableMetadata:
    """Return the metadata after a change, with the former metadata file in its log.

    `previous_location`: where the former metadata is stored; None for a new table.
    Raises `IcebergError`: reason ``"conflict"`` or ``"unknown-snapshot"`` if another commit came first.
    """
    document: Document = copy.deepcopy(dict(metadata.document))
    # A commit is never older than the one before it, whatever the clocks of two machines say.
    now = max(now_millis(), metadata.document["last-updated-ms"])
    former = {"timestamp-ms": document["last-updated-ms"], "metadata-file": previous_location}
    state = _State(document, now)
    for update in change.updates:
        _ACTIONS[update["action"]](state, update)
    if previous_location is not None:
        limit = str((document.get("properties") or {}).get(_KEEP_METADATA, _DEFAULT_KEPT))
        count = max(int(limit) if limit.isdecimal() else _DEFAULT_KEPT, 1)
        document["metadata-log"] = [*(document.get("metadata-log") or []), former][-count:]
    document["last-updated-ms"] = now
    return TableMetadata.parse(document)


class _State:
    """A document while updates are applied."""

    def __init__(self, document: Document, now: int) -> None:
        self.document, self.now = document, now
        self.last: dict[str, int] = {}  # The id that the updates added last, by the name of the list.
        self.added: dict[int, int] = {}  # Ids and times of the snapshots that the updates add.

    def make_current(self, name: str, key: str) -> None:
        """Make the entry of a list that was added last the current one."""
        self.document[key] = self.last[name]


def _upgrade(state: _State, update: Update) -> None:
    """Upgrade a document to the newest format version."""
    document = state.document
    for name in ("schema", "partition-spec"):
        document.pop(name, None)
    document.setdefault("last-sequence-number", 0)
    for snapshot in document.get("snapshots") or []:
        snapshot.setdefault("sequence-number", 0)
    if document.get("current-snapshot-id") == -1:
        del document["current-snapshot-id"]
    document.setdefault("next-row-id", 0)
    document["format-version"] = update["format-version"]


# Of what is added: its list in the document and in `TableMetadata`, its class, and whether two of them are the same.
_LISTS: dict[str, tuple[str, str, Any, Callable[[Any, Any], bool]]] = {
    "schema": ("schemas", "schemas", Schema, lambda new, old: replace(old, id=new.id).to_json() == new.to_json()),
    "spec": ("partition-specs", "specs", PartitionSpec, PartitionSpec.same_fields),
    "sort-order": ("sort-orders", "sort_orders", SortOrder, lambda new, old: new.fields == old.fields),
}


def _add_entry(state: _State, update: Update) -> None:
    """Add a schema, spec or order to a list of the document, unless the list has the same one."""
    document, kind = state.document, update["action"].removeprefix("add-")
    name, attribute, parser, is_same = _LISTS[kind]
    new, entries = parser.parse(update[kind]), getattr(TableMetadata(document), attribute)
    existing = next((number for number, entry in entries.items() if is_same(new, entry)), None)
    if existing is not None:
        state.last[name] = existing
        return
    state.last[name] = new.id if new.id not in entries else max(entries) + 1
    document[name] = [*(document.get(name) or []), replace(new, id=state.last[name]).to_json()]
    if kind == "schema":
        last = (document["last-column-id"], new.highest_id, update.get("last-column-id") or 0)
        document["last-column-id"] = max(last)
    elif kind == "spec":
        document["last-partition-id"] = max([document["last-partition-id"], *(f.field_id for f in new.fields)])


def _add_snapshot(state: _State, update: Update) -> None:
    document, snapshot = state.document, dict(update["snapshot"])
    if any(s["snapshot-id"] == snapshot["snapshot-id"] for s in document.get("snapshots") or []):
        raise IcebergError(f"the snapshot id {snapshot['snapshot-id']} is in use", reason="conflict")
    sequence = snapshot.get("sequence-number", 0)
    if document["format-version"] > 1 and sequence <= document.get("last-sequence-number", 0):
        raise IcebergError(f"another commit came first: sequence number {sequence} is in use", reason="conflict")
    document["snapshots"] = [*(document.get("snapshots") or []), snapshot]
    state.added[snapshot["snapshot-id"]] = snapshot["timestamp-ms"]
    document["last-sequence-number"] = max(document.get("last-sequence-number", 0), sequence)
    if document["format-version"] > 2:
        first = snapshot["first-row-id"]
        if first < document.get("next-row-id", 0):
            raise IcebergError(f"another commit came first: row id {first} is in use", reason="conflict")
        document["next-row-id"] = first + snapshot["added-rows"]


def _set_ref(state: _State, update: Update) -> None:
    document, name = state.document, update["ref-name"]
    if not any(s["snapshot-id"] == update["snapshot-id"] for s in document.get("snapshots") or []):
        raise IcebergError(f"{name!r} cannot refer to snapshot {update['snapshot-id']}", reason="unknown-snapshot")
    references = dict(document.get("refs") or {})
    references[name] = {key: value for key, value in update.items() if key not in ("action", "ref-name")}
    document["refs"] = references
    if name == MAIN and document.get("current-snapshot-id") != update["snapshot-id"]:
        document["current-snapshot-id"] = update["snapshot-id"]
        # A snapshot that these updates add becomes current at its own time, so its time finds it in the log.
        moment = state.added.get(update["snapshot-id"], state.now)
        entry = {"timestamp-ms": moment, "snapshot-id": update["snapshot-id"]}
        document["snapshot-log"] = [*(document.get("snapshot-log") or []), entry]


def _remove_ref(state: _State, update: Update) -> None:
    references = dict(state.document.get("refs") or {})
    references.pop(update["ref-name"], None)
    state.document["refs"] = references
    if update["ref-name"] == MAIN:
        state.document.pop("current-snapshot-id", None)


def _remove_snapshots(state: _State, update: Update) -> None:
    document, removed = state.document, set(update["snapshot-ids"])
    document["snapshots"] = [s for s in document.get("snapshots") or [] if s["snapshot-id"] not in removed]
    references = document.get("refs") or {}
    document["refs"] = {name: ref for name, ref in references.items() if ref["snapshot-id"] not in removed}
    if document.get("current-snapshot-id") in removed:
        del document["current-snapshot-id"]
    # Specification: entries of the log before one that has expired tell nothing that can still be read.
    log = document.get("snapshot-log") or []
    last = max((at for at, entry in enumerate(log) if entry["snapshot-id"] in removed), default=-1)
    document["snapshot-log"] = log[last + 1 :]
    for name in ("statistics", "partition-statistics"):
        if name in document:
            document[name] = [s for s in document[name] if s["snapshot-id"] not in removed]


def _set_properties(state: _State, update: Update) -> None:
    removed = set(update.get("removals", ()))
    properties = {**(state.document.get("properties") or {}), **update.get("updates", {})}
    state.document["properties"] = {name: value for name, value in properties.items() if name not in removed}


# What the commits of this package do to a document. A REST catalog also assigns the location of a new table.
_ACTIONS: dict[str, Callable[[_State, Update], None]] = {
    "assign-uuid": lambda state, u: state.document.update({"table-uuid": u["uuid"]}),
    "upgrade-format-version": _upgrade,
    "add-schema": _add_entry,
    "set-current-schema": lambda state, u: state.make_current("schemas", "current-schema-id"),
    "add-spec": _add_entry,
    "set-default-spec": lambda state, u: state.make_current("partition-specs", "default-spec-id"),
    "add-sort-order": _add_entry,
    "set-default-sort-order": lambda state, u: state.make_current("sort-orders", "default-sort-order-id"),
    "add-snapshot": _add_snapshot,
    "set-snapshot-ref": _set_ref,
    "remove-snapshot-ref": _remove_ref,
    "remove-snapshots": _remove_snapshots,
    "set-properties": _set_properties,
    "remove-properties": _set_properties,
}
