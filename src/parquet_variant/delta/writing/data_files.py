"""Writing a table's data files, in this process or in a Spark executor, and describing each as an add action.

Owns `WritePlan`: all that a task needs to write files that a later commit can name. Leaves the commit to the driver
(`commit`), the Parquet format to `parquet.writer`, and statistics to `file_stats`. A file that no commit names is not
part of the table; vacuum removes it.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.choices import DEFAULT_COMPRESSION
from parquet_variant.delta.log.snapshot import Snapshot
from parquet_variant.delta.protocol.actions import Add, Cdc, now_millis
from parquet_variant.delta.protocol.schema import parse_schema, schema_json
from parquet_variant.delta.statistics.file_stats import Stats, dump_stats, indexed_places, leaf_columns
from parquet_variant.delta.writing.stats_collector import StatsCollector
from parquet_variant.delta.writing.table_rules import rules_of
from parquet_variant.errors import DeltaError, SchemaError, VariantFileError, bad_option
from parquet_variant.functions.shred_variant import infer_shredding_schema, shred_variant
from parquet_variant.interop.table_of import is_rows, table_of
from parquet_variant.parquet.pages.codecs import codec_number
from parquet_variant.parquet.writing.writer import FileInfo, VariantWriter
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.tables.columns import (
    align_table,
    by_given_name,
    check_known,
    check_storable,
    stored_schema,
    to_stored,
    unchanged,
)
from parquet_variant.tables.partitions import partition_directory, split_by_partition
from parquet_variant.tables.rules import Rules, check_nulls
from parquet_variant.tables.schema import Field, PrimitiveType, StructType
from parquet_variant.tables.storage import Storage, open_storage

DEFAULT_FILE_BYTES = 256 << 20
# Arrow bytes are larger than what they become in a file; how much larger is only known afterwards.
_ASSUMED_COMPRESSION = 3
_CODEC = "delta.parquet.compression.codec"
CHANGE_TYPE = "_change_type"
CLUSTERING = "delta.clustering"
CHANGE_DATA = "_change_data/"
_URI_SAFE = "/=-._~"
# The name that `_File` gives, in any partition.
_NAME = re.compile(r"([^/]+=[^/]*/)*part-([0-9a-f]{12}-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.\w+\.parquet")
Place = tuple[str, ...]


@dataclass(frozen=True)
class WritePlan:
    """What a task needs to know to write files for a table; can be pickled.

    Parameters
    ----------
    uri, storage_options
        Where the table is.
    schema_string, partition_columns, configuration
        As in the table's metadata.
    shred
        Whether variants may be shredded (``delta.enableVariantShredding``).
    variant_stats
        Whether variants get bounds (the table enables shredding).
    shredding
        What to shred, by dotted column; other columns, and all if it is None, are shredded by inference from the first
        rows, or stay as they are if they come shredded.
    file_bytes
        About how large a file may become.
    options
        Options of `VariantWriter`, such as ``compression``; ``annotation=True`` marks unshredded variants, too.
    job
        Begins the part of file names that is unique, so that what a job wrote can be told from everything else.
    hidden_columns
        Columns that files may have beside the table's: those that keep row ids and commit versions.
    directory
        Where in the table the files go.
    rules
        What rows must obey.
    least_indexed
        How many leaf columns get statistics at least, since the table is clustered by some of them.
    """

    uri: str
    schema_string: str = field(repr=False)
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    shred: bool = False
    variant_stats: bool = False
    shredding: Mapping[str, ShreddingSchema] | None = field(default=None, repr=False)
    file_bytes: int = DEFAULT_FILE_BYTES
    options: Mapping[str, Any] = field(default_factory=dict)
    job: str = ""
    hidden_columns: tuple[str, ...] = ()
    directory: str = ""
    rules: Rules = field(default_factory=Rules)
    least_indexed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.file_bytes, bool) or not isinstance(self.file_bytes, int) or self.file_bytes < 1:
            raise bad_option(f"file_bytes is {self.file_bytes!r}: give a positive number of bytes", DeltaError)

    def write(self, data: Any, *, data_change: bool = True) -> list[dict[str, Any]]:
        """Write rows to new files and describe them.

        Parameters
        ----------
        data
            A table, a record batch or columns by name; or an iterable of such.
        data_change
            False if the rows are in the table already (compaction).

        Returns
        -------
        list of dict
            One add action a file, as JSON holds it: what `commit_files` takes.

        Raises
        ------
        DeltaError
            Reason ``"bad-data"``, ``"unknown-column"``, ``"missing-column"``, ``"type-mismatch"`` or ``"null-value"``.
        """
        return [add.to_dict() for add in self.write_files(data, data_change=data_change)]

    def write_files(self, data: Any, *, data_change: bool = True) -> list[Add]:
        """As `write`, with the actions as objects."""
        batches = [data] if is_rows(data) else data
        task = _Task(self)
        try:
            for batch in batches:
                task.take(_rows(batch))
        except BaseException:
            task.abort()
            raise
        return task.finish(data_change)

    def completed(self, rows: pa.Table) -> pa.Table:
        """Rows with every column of the table: as it was given, as the table's rules make it, else null."""
        return align_table(self.with_made_columns(rows), self.schema, by_given_name, unchanged)

    def with_made_columns(self, rows: pa.Table) -> pa.Table:
        """Rows under the table's names, with the columns that its rules make and nobody gave."""
        return self.rules.completed(_named(rows, self.schema), self.schema)

    def stored(self, rows: pa.Table) -> pa.Table:
        """Rows as files hold them: complete, shredded, under physical names; they keep the table's rules."""
        return to_stored(_Task(self).conformed(rows), self.schema)

    def new_path(self, values: Mapping[str, str | None]) -> str:
        """A name for a file of a partition that no other file has."""
        name = f"part-{self.job}{uuid.uuid4()}.{self.codec}.parquet"
        return f"{self.directory}{partition_directory(values)}{name}"

    def remove_files(self) -> None:
        """Remove all that tasks of this job wrote, or are at; for a job that no version will name."""
        storage = open_storage(self.uri, self.storage_options)
        for file in list(storage.list("")):
            # One that is being written has a temporary name, which begins with a dot.
            if file.path.rpartition("/")[2].removeprefix(".").startswith(f"part-{self.job}"):
                storage.delete(file.path)

    def add(
        self, path: str, values: Mapping[str, str | None], info: FileInfo, stats: Stats, data_change: bool = True
    ) -> Add:
        """The action that adds a file."""
        return Add(
            path=quote(path, safe=_URI_SAFE),
            partition_values=dict(values),
            size=info.bytes,
            modification_time=now_millis(),
            data_change=data_change,
            stats=dump_stats(stats),
            rows=info.rows,
        )

    def stats_collector(self, columns: StructType) -> StatsCollector:
        """Gathers what is told of a file's columns, which are all of `data_schema` or some of it."""
        places = indexed_places(self.unpartitioned, self.configuration, self.least_indexed)
        return StatsCollector(columns, places, variant_stats=self.variant_stats)

    @cached_property
    def codec(self) -> str:
        """The compression of files."""
        if "compression" in self.options:
            return str(self.options["compression"]).lower()
        codec = self.configuration.get(_CODEC, DEFAULT_COMPRESSION).lower()
        try:
            codec_number(codec)
        except VariantFileError as error:
            raise DeltaError(
                f"the table's property {_CODEC} is {codec!r}: {error.message}", reason="bad-property"
            ) from None
        return codec

    def write_changes(self, changes: Mapping[str, pa.Table | None]) -> list[Cdc]:
        """Write rows that changed to files of change data.

        Parameters
        ----------
        changes
            Rows by what happened to them (`insert`, `delete`, `update_preimage`, `update_postimage`).
        """
        parts = []
        for kind, rows in changes.items():
            if rows is not None and len(rows):
                rows = rows.drop_columns([name for name in self.hidden_columns if name in rows.column_names])
                parts.append(rows.append_column(CHANGE_TYPE, pa.repeat(pa.scalar(kind), len(rows))))
        if not parts:
            return []
        columns = StructType((*self.schema.fields, Field(CHANGE_TYPE, PrimitiveType("string"))))
        plan = replace(
            self, schema_string=schema_json(columns), directory=CHANGE_DATA, hidden_columns=(), rules=Rules()
        )
        return [Cdc(add.path, add.partition_values, add.size) for add in plan.write_files(iter(parts))]

    @cached_property
    def schema(self) -> StructType:
        """The table's columns."""
        return parse_schema(self.schema_string)

    @cached_property
    def unpartitioned(self) -> StructType:
        """All but the partition columns."""
        return StructType(tuple(f for f in self.schema.fields if f.name not in self.partition_columns))

    @cached_property
    def data_schema(self) -> StructType:
        """The columns of data files: all but the partition columns, under physical names."""
        return stored_schema(self.unpartitioned)

    @cached_property
    def partition_names(self) -> dict[str, str]:
        """The physical name of each partition column."""
        return {f.name: f.physical_name for f in self.schema.fields if f.name in self.partition_columns}


def plan_write(
    snapshot: Snapshot,
    *,
    shredding: Mapping[str, ShreddingSchema] | None = None,
    file_bytes: int = DEFAULT_FILE_BYTES,
    options: Mapping[str, Any] | None = None,
) -> WritePlan:
    """The plan that writes files for a table as it is.

    `shredding` and `file_bytes` and `options`: see `WritePlan`.
    """
    return WritePlan(
        uri=snapshot.storage.uri,
        schema_string=schema_json(snapshot.schema),
        partition_columns=snapshot.partition_columns,
        configuration=dict(snapshot.metadata.configuration),
        storage_options=dict(snapshot.storage.options),
        shred=snapshot.shredding_enabled,
        # PROTOCOL.md: bounds only if the table enables shredding.
        variant_stats=snapshot.shredding_enabled,
        shredding=dict(shredding or {}),
        file_bytes=file_bytes,
        options=dict(options or {}),
        hidden_columns=snapshot.row_tracking_columns or (),
        rules=rules_of(snapshot.protocol, snapshot.metadata),
        least_indexed=_clustered(snapshot),
    )


def _rows(batch: Any) -> pa.Table:
    try:
        return table_of(batch)
    except SchemaError as error:
        raise DeltaError(error.message, reason="bad-data") from None


def _clustered(snapshot: Snapshot) -> int:
    """How many leaf columns it takes to have statistics of every clustering column."""
    domain = snapshot.domains.get(CLUSTERING)
    if domain is None:
        return 0
    try:
        columns = [
            tuple(each) if isinstance(each, list) else (each,)
            for each in json.loads(domain.configuration)["clusteringColumns"]
        ]
    except (ValueError, KeyError, TypeError):
        raise DeltaError("the domain delta.clustering names no columns", reason="broken-log") from None
    places = [place for place, _ in leaf_columns(stored_schema(snapshot.schema))]
    return max((places.index(each) + 1 for each in columns if each in places), default=0)


def _named(table: pa.Table, schema: StructType) -> pa.Table:
    """The data under the table's own spelling of names, which differ in more than case."""
    spelled = {f.name.lower(): f.name for f in schema.fields}
    names = [spelled.get(name.lower(), name) for name in table.column_names]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DeltaError(f"the data has column {twice!r} twice: names that differ by case are one", reason="bad-data")
    return table.rename_columns(names)


def is_data_file_name(path: str) -> bool:
    """Whether a file below a table's root has a name that only a `WritePlan` gives.

    >>> is_data_file_name("day=1/part-1b4e28ba-2fa1-4ba2-883f-0016d3cca427.zstd.parquet")
    True
    """
    return _NAME.fullmatch(path) is not None


class _Task:
    """Takes batches, splits them by partition, and rolls files."""

    def __init__(self, plan: WritePlan) -> None:
        self.plan = plan
        check_storable(plan.schema)
        self.storage = open_storage(plan.uri, plan.storage_options)
        self.open: dict[tuple[str | None, ...], _File] = {}
        self.done: list[_File] = []
        self.schemas: dict[Place, ShreddingSchema | None] = {}

    def take(self, table: pa.Table) -> None:
        table = self.conformed(table)
        kept = {name: table[name] for name in self.plan.hidden_columns if name in table.column_names}
        for values, part in split_by_partition(table, self.plan.partition_columns):
            named = {self.plan.partition_names[name]: value for name, value in values.items()}
            stored = to_stored(part, self.plan.schema)
            for name in kept:
                stored = stored.append_column(name, part[name])
            self._write(tuple(values.values()), named, stored)

    def conformed(self, table: pa.Table) -> pa.Table:
        """Rows in the table's columns and types, complete, and shredded; they keep its rules."""
        table = self.plan.with_made_columns(table)
        self._check(table)
        kept = {name: table[name] for name in self.plan.hidden_columns if name in table.column_names}
        table = align_table(table, self.plan.schema, by_given_name, self._variant)
        check_nulls(table, self.plan.schema)
        self.plan.rules.enforce(table)
        for name, column in kept.items():
            table = table.append_column(name, column)
        return table

    def finish(self, data_change: bool) -> list[Add]:
        try:
            for file in self.open.values():
                file.close()
        except BaseException:
            self.abort()
            raise
        return [file.add(data_change) for file in (*self.done, *self.open.values())]

    def abort(self) -> None:
        for file in (*self.open.values(), *self.done):
            file.abort()

    def _write(self, key: tuple[str | None, ...], values: dict[str, str | None], part: pa.Table) -> None:
        share = self.plan.file_bytes * _ASSUMED_COMPRESSION / max(1, part.nbytes)
        rows = max(1, int(len(part) * min(share, 1)))
        for start in range(0, len(part), rows):
            file = self.open.get(key)
            if file is None:
                file = self.open[key] = _File(self.plan, self.storage, values, self.schemas)
            file.write(part.slice(start, rows))
            if file.size >= self.plan.file_bytes * _ASSUMED_COMPRESSION:
                file.close()
                self.done.append(self.open.pop(key))

    def _check(self, table: pa.Table) -> None:
        columns = pa.schema([field for field in table.schema if field.name not in self.plan.hidden_columns])
        check_known(columns, self.plan.schema, by_given_name)
        for f in self.plan.schema.fields:
            if f.nullable:
                continue
            if f.name not in table.column_names:
                raise DeltaError(f"column {f.name!r} must not be null and is missing", reason="missing-column")
            if table[f.name].null_count:
                raise DeltaError(f"column {f.name!r} must not be null", reason="null-value")

    def _variant(self, place: Place, array: VariantArray) -> VariantArray:
        if not self.plan.shred:
            return array.to_unshredded()
        if place not in self.schemas:
            self.schemas[place] = self._choose(place, array)
        schema = self.schemas[place]
        if schema is None:
            return array.to_unshredded()
        if array.layout == "final" and array.schema == schema:
            return array
        return shred_variant(array.to_unshredded(), schema)

    def _choose(self, place: Place, array: VariantArray) -> ShreddingSchema | None:
        chosen = (self.plan.shredding or {}).get(".".join(place))
        if chosen is None:
            if array.layout == "final":
                return None if array.schema is None else array.schema.limited_to()
            chosen = infer_shredding_schema(array.to_unshredded())
        chosen = chosen.limited_to()
        return None if chosen.kind == "variant" else chosen


class _File:
    """One data file being written."""

    def __init__(
        self,
        plan: WritePlan,
        storage: Storage,
        values: dict[str, str | None],
        schemas: Mapping[Place, ShreddingSchema | None],
    ) -> None:
        self.plan, self.storage, self.values, self.schemas = plan, storage, values, schemas
        self.path = plan.new_path(values)
        self.size = 0
        self.info: FileInfo | None = None
        self._created = storage.create(self.path)
        self._local = self._created.__enter__()
        # PROTOCOL.md has value before metadata; an annotation that unshredded files need not have stops some readers.
        options: dict[str, Any] = {"compression": plan.codec, "annotation": "shredded", "value_first": True}
        self._writer = VariantWriter(self._local, **(options | dict(plan.options)))
        self._collector = plan.stats_collector(plan.data_schema)

    def write(self, table: pa.Table) -> None:
        self._collector.see(table)
        self._writer.write_batch(table)
        self.size += table.nbytes

    def close(self) -> None:
        if self.info is not None:
            return
        self.info = self._writer.close()
        self._created.__exit__(None, None, None)

    def abort(self) -> None:
        self._writer.abort()
        self.storage.delete(self.path)

    def add(self, data_change: bool) -> Add:
        assert self.info is not None
        return self.plan.add(self.path, self.values, self.info, self._collector.stats(self.info), data_change)
