"""The plan by which tasks write the data files of a Delta table, each described by an add action.

Owns partitions, names and add actions of new files, the mark of their plan, the table's rules, and files of change
data. Leaves writing to `tables.write_plan`, and the commit to `writing.write`.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar
from urllib.parse import quote

import pyarrow as pa

from parquet_variant.errors import DeltaError
from parquet_variant.files.parquet.writing.writer import FileInfo
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.records import cached_property
from parquet_variant.tables import partitions
from parquet_variant.tables.columns import stored_schema
from parquet_variant.tables.delta.log.snapshot import Snapshot
from parquet_variant.tables.delta.protocol.actions import Add, Cdc, Metadata, PlanMark, Protocol, parse_schema
from parquet_variant.tables.delta.protocol.features import CONSTRAINT, check_column_features, supports
from parquet_variant.tables.delta.protocol.schema_merging import DEFAULT, GENERATION, INVARIANT
from parquet_variant.tables.delta.statistics import dump_stats, indexed_places, stats_tree
from parquet_variant.tables.file_metrics import FileMetrics, MetricsCollector, leaf_columns
from parquet_variant.tables.schema import Field, PrimitiveType, StructType, arrow_type, leaves
from parquet_variant.tables.storage import now_millis
from parquet_variant.tables.write_plan import DEFAULT_FILE_BYTES, Rules, TableWritePlan, property_codec
from parquet_variant.types.path import VariantPath

# The key of the mark in the JSON form of an add action, outside of the log.
_KEY = "parquetVariantPlan"


def table_key(protocol: Protocol, metadata: Metadata) -> str:
    """Return a digest of all that files are checked against: protocol, schema, partition columns and properties."""
    parts = (
        protocol.to_dict(),
        metadata.schema_string,
        list(metadata.partition_columns),
        dict(sorted(metadata.configuration.items())),
    )
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def with_mark(action: Mapping[str, Any]) -> Add:
    """Return the add action of JSON that `WritePlan.write` returned; the mark is None if the JSON has none."""
    add, mark = Add.from_dict(action), action.get(_KEY)
    return add if mark is None else replace(add, mark=PlanMark.from_dict(mark))


def check_planned(current: Snapshot, adds: Sequence[Add]) -> None:
    """Refuse files whose plan was made for another definition of the table (``"conflict"``).

    Also refuse files whose partition column was extracted from the Variant column without any value
    (``"missing-column"``).
    """
    marks = {add.mark for add in adds if add.mark is not None}
    key = table_key(current.protocol, current.metadata)
    for mark in sorted(marks, key=lambda mark: mark.version):
        if mark.digest != key:
            problem = (
                f"the files were planned for version {mark.version} of the table, whose schema, properties or "
                "protocol changed since: write them again"
            )
            raise DeltaError(problem, reason="conflict", file=current.storage.uri)
    for name in sorted({name for mark in marks for name in mark.derived}):
        field = current.schema.get(name)
        physical = name if field is None else field.physical_name
        if all(add.partition_values.get(physical) is None for add in adds):
            raise DeltaError(
                f"the data has no partition column {name!r}, and no row has a value at its path: add the column, or "
                f"name its path, as in partition_by={name}=$.path:type",
                reason="missing-column",
            )
    warn_of_nulls(current, adds)


def warn_of_nulls(current: Snapshot, adds: Sequence[Add]) -> None:
    """Warn of partition columns of the table that are null in every row of the files."""
    fields = current.partition_fields
    values = {field.name: [add.partition_values.get(field.physical_name) for add in adds] for field in fields}
    partitions.warn_of_null_partitions(values, sum(add.num_records or 0 for add in adds))


def rules_of(protocol: Protocol, metadata: Metadata) -> Rules:
    """Return the rules that a writer of a table must obey."""
    schema = parse_schema(metadata.schema_string)
    checks: list[tuple[str, str]] = []

    def expressions(key: str) -> tuple[tuple[str, str], ...]:
        return tuple((f.name, str(f.metadata[key])) for f in schema.fields if key in f.metadata)

    if supports(protocol, "checkConstraints"):
        checks += [(key, text) for key, text in metadata.configuration.items() if key.startswith(CONSTRAINT)]
    if supports(protocol, "invariants"):
        for name, text in expressions(INVARIANT):
            try:
                checks.append((f"of column {name}", str(json.loads(text)["expression"]["expression"])))
            except (ValueError, KeyError, TypeError):
                raise DeltaError(f"the invariant {text!r} cannot be parsed", reason="unsupported-feature") from None
        _refuse_nested(schema, INVARIANT, "an invariant")
    generated: tuple[tuple[str, str], ...] = ()
    if supports(protocol, "generatedColumns"):
        generated = expressions(GENERATION)
        _refuse_nested(schema, GENERATION, "a generation expression")
    defaults = expressions(DEFAULT) if supports(protocol, "allowColumnDefaults") else ()
    return Rules(tuple(checks), generated, defaults)


def _refuse_nested(schema: StructType, key: str, description: str) -> None:
    for fields in leaves(schema):
        if any(key in field.metadata for field in fields[1:]):
            name = ".".join(field.name for field in fields)
            problem = f"column {name} has {description}, which is not supported inside structs"
            raise DeltaError(problem, reason="unsupported-feature")


_CODEC = "delta.parquet.compression.codec"
CHANGE_TYPE = "_change_type"
CLUSTERING = "delta.clustering"
CHANGE_DATA = "_change_data/"
# Characters that RFC 2396 allows in a path: delta-rs does not find files again whose paths escape them.
URI_SAFE = "/=-._~!$&()+,;@"

PartitionValues = Mapping[str, str | None]


class WritePlan(TableWritePlan[Add]):
    """All that a task needs to write files for a Delta table; can be pickled.

    The hidden columns are those of row ids and commit versions.
    """

    # As in the table's metadata.
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    directory: str = ""  # Directory of the files inside the table.
    # Minimum number of leaf columns that get statistics, because the table is clustered by some of them.
    least_indexed: int = 0
    # The version of the table for which the plan was made, and a digest of its definition: `commit_files` checks that
    # the table is still the same.
    version: int = -1
    key: str = ""
    derives_partitions: bool = False  # Whether partition columns that the data lacks come from its Variant column.
    FILE_PREFIXES: ClassVar[tuple[str, ...]] = ("part-", "deletion_vector_")
    _derived: set[str] = field(default_factory=set, repr=False, compare=False)

    def new_vector_id(self) -> uuid.UUID:
        """Return a unique id of a new deletion vector, by whose first half `remove_files` knows the job."""
        return uuid.UUID(self.job[:16] + uuid.uuid4().hex[16:])

    def write(self, data: Any, *, data_change: bool = True) -> list[dict[str, Any]]:
        """Write rows to new files and describe them.

        Parameters
        ----------
        data
            A table, a record batch or columns by name; or an iterable of these.
        data_change
            False if the rows are already in the table (compaction).

        Returns
        -------
        list of dict
            One add action per file, as JSON holds it: the input of `commit_files`.

        Raises
        ------
        TableError
            ``"bad-data"``, ``"unknown-column"``, ``"missing-column"``, ``"type-mismatch"``, ``"null-value"`` or
            ``"constraint-violated"``.
        """
        adds = self.write_files(data, data_change=data_change)
        return [add.to_dict() | ({_KEY: add.mark.to_dict()} if add.mark is not None else {}) for add in adds]

    def split(self, rows: pa.Table) -> Iterator[tuple[tuple[str | None, ...], PartitionValues, pa.Table]]:
        """Split rows by their partition columns; see `TableWritePlan.split`."""
        names = {f.name: f.physical_name for f in self.schema.fields if f.name in self.partition_columns}
        data = rows.drop_columns([*self.partition_columns])
        for values, part in partitions.rows_by_partition({name: rows[name] for name in self.partition_columns}):
            partition = {names[name]: text for name, text in values.items()}
            yield tuple(values.values()), partition, data if part is None else data.take(part)

    def new_path(self, partition: PartitionValues) -> str:
        """Return a unique path for a new file of a partition."""
        return f"{self.directory}{partitions.partition_directory(partition)}{self.new_name()}.{self.codec}.parquet"

    def describe(
        self, path: str, partition: PartitionValues, info: FileInfo, metrics: FileMetrics, data_change: bool = True
    ) -> Add:
        """Return the action that adds a file."""
        return self.add(path, partition, info, dump_stats(stats_tree(metrics, self.data_schema)), data_change)

    def add(self, path: str, partition: PartitionValues, info: FileInfo, stats: str, data_change: bool = True) -> Add:
        """Return the action that adds a file with given statistics."""
        return Add(
            path=quote(path, safe=URI_SAFE),
            partition_values=dict(partition),
            size=info.bytes,
            modification_time=now_millis(),
            data_change=data_change,
            stats=stats,
            rows=info.rows,
            mark=PlanMark(self.version, self.key, tuple(sorted(self._derived))) if self.key else None,
        )

    def with_generated_columns(self, rows: pa.Table) -> pa.Table:
        """Return rows with missing generated, default and partition columns filled in.

        The values of a partition column that the data lacks are those at its recorded path, or the path of its name.
        """
        rows = super().with_generated_columns(rows)
        if not self.derives_partitions:
            return rows
        for name in self.partition_columns:
            if name not in rows.column_names:
                (kind,) = (arrow_type(column.type) for column in self.schema.fields if column.name == name)
                text = partitions.recorded_paths(self.configuration).get(name, str(VariantPath((name,))))
                rows = partitions.with_extracted_column(rows, name, text, kind)
                self._derived.add(name)
        return rows

    def metrics_collector(self, columns: StructType) -> MetricsCollector:
        """Return a collector of the statistics that the table's properties ask for."""
        places = indexed_places(self.unpartitioned, self.configuration, self.least_indexed)
        return MetricsCollector(columns, places, variant_bounds=self.variant_bounds)

    def write_changes(self, changes: Mapping[str, pa.Table | None]) -> list[Cdc]:
        """Write changed rows by change type to files of change data; see `ChangePlan.write_changes`."""
        parts = []
        for change_type, rows in changes.items():
            if rows is not None and len(rows):
                rows = rows.drop_columns([name for name in self.hidden_columns if name in rows.column_names])
                parts.append(rows.append_column(CHANGE_TYPE, pa.repeat(pa.scalar(change_type), len(rows))))
        if not parts:
            return []
        columns = StructType((*self.schema.fields, Field(CHANGE_TYPE, PrimitiveType("string"))))
        plan = replace(self, schema=columns, directory=CHANGE_DATA, hidden_columns=(), rules=Rules())
        return [Cdc(add.path, add.partition_values, add.size) for add in plan.write_files(iter(parts))]

    @cached_property
    def codec(self) -> str:
        """The compression of files: the option, else the table's property."""
        if "compression" in self.options:
            return str(self.options["compression"]).lower()
        return property_codec(self.configuration, _CODEC, DeltaError)

    @cached_property
    def unpartitioned(self) -> StructType:
        """The table's columns without the partition columns."""
        return StructType(tuple(f for f in self.schema.fields if f.name not in self.partition_columns))


def plan_write(
    snapshot: Snapshot,
    *,
    shredding: Mapping[str, ShreddingSchema] | None = None,
    file_bytes: int = DEFAULT_FILE_BYTES,
    options: Mapping[str, Any] | None = None,
) -> WritePlan:
    """Return the plan that writes files for a table at one version; see `WritePlan`."""
    check_column_features(snapshot.protocol, snapshot.schema, snapshot.storage.uri)
    return WritePlan(
        uri=snapshot.storage.uri,
        schema=snapshot.schema,
        storage_options=dict(snapshot.storage.options),
        shred=snapshot.shredding_enabled,
        # PROTOCOL.md: bounds only if the table enables shredding.
        variant_bounds=snapshot.shredding_enabled,
        shredding=dict(shredding or {}),
        file_bytes=file_bytes,
        options=dict(options or {}),
        hidden_columns=snapshot.row_tracking_columns or (),
        rules=rules_of(snapshot.protocol, snapshot.metadata),
        version=snapshot.version,
        key=table_key(snapshot.protocol, snapshot.metadata),
        partition_columns=snapshot.partition_columns,
        configuration=dict(snapshot.metadata.configuration),
        least_indexed=_clustered_leaves(snapshot),
    )


def _clustered_leaves(snapshot: Snapshot) -> int:
    """Return how many leaf columns, from the first on, include every clustering column."""
    domain = snapshot.domains.get(CLUSTERING)
    if domain is None:
        return 0
    try:
        columns = [
            tuple(name) if isinstance(name, list) else (name,)
            for name in json.loads(domain.configuration)["clusteringColumns"]
        ]
    except (ValueError, KeyError, TypeError):
        problem = f"the metadata domain {CLUSTERING} does not list its clusteringColumns"
        raise DeltaError(problem, reason="broken-log") from None
    places = [place for place, _ in leaf_columns(stored_schema(snapshot.schema))]
    return max((places.index(column) + 1 for column in columns if column in places), default=0)
