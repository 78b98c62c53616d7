"""Iceberg tables as sources: their manifests as they are, and what other formats cannot express."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from parquet_variant.support.fork_safety import cached_property
from parquet_variant.tables.iceberg.locations import absolute_location
from parquet_variant.tables.iceberg.metadata.manifests import DataFile
from parquet_variant.tables.iceberg.metadata.schema import NAME_MAPPING, Schema, shared_field
from parquet_variant.tables.iceberg.metadata.types import PrimitiveType, walk_fields
from parquet_variant.tables.iceberg.reading.deletes import FileDeletes, TableFile, deleted_positions
from parquet_variant.tables.iceberg.reading.planning import plan_files
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot
from parquet_variant.tables.publishing.source import ListedFile, Rows, Source, SourceColumns, cannot_publish
from parquet_variant.tables.schema import PrimitiveType as SharedType


class IcebergSource(Source):
    """A snapshot of an Iceberg table."""

    format = "iceberg"

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.location = absolute_location(snapshot.metadata.location)
        self.version = "" if snapshot.snapshot_id is None else str(snapshot.snapshot_id)
        self.options = dict(snapshot.table.options)

    def columns(self, former: Schema | None, last_id: int) -> SourceColumns:
        """See `Source.columns`: field ids are those of the table."""
        schema = self.snapshot.schema
        for place, f in walk_fields(schema.struct):
            if f.initial_default is not None:
                raise cannot_publish(
                    f"column {'.'.join(place)} has an initial-default, which readers of other formats would return as "
                    "null for older files: rewrite these files with Table.optimize(…, rewrite_all=True) and drop "
                    "the default",
                    self.location,
                )
        lacks_ids = NAME_MAPPING in self.snapshot.properties
        return SourceColumns(schema, files_lack_ids=lacks_ids, partition_ids=self._partition_ids())

    @property
    def renames(self) -> bool:
        """Whether files may hold a column under another name than it has now, or a dropped column under its name."""
        names: dict[int, set[tuple[str, ...]]] = {}
        numbers: dict[tuple[str, ...], set[int]] = {}
        for schema in self.snapshot.metadata.schemas.values():
            for number, (place, _) in schema.by_id.items():
                names.setdefault(number, set()).add(place)
                numbers.setdefault(place, set()).add(number)
        current = self.snapshot.schema.by_id
        return any(len(names[number]) > 1 or len(numbers[place]) > 1 for number, (place, _) in current.items())

    @property
    def widened(self) -> Mapping[int, Sequence[str]]:
        """See `Source.widened`."""
        types: dict[int, list[str]] = {}
        for schema in sorted(self.snapshot.metadata.schemas.values(), key=lambda schema: schema.id):
            for number, (place, f) in schema.by_id.items():
                if not isinstance(f.type, PrimitiveType):
                    continue
                kind = shared_field(f).type
                assert isinstance(kind, SharedType)
                history = types.setdefault(number, [])
                if history[-1:] != [kind.name]:
                    history.append(kind.name)
                if len(history) > 1 and {"element", "key", "value"} & set(place):
                    raise cannot_publish(f"{'.'.join(place)} was widened inside of a list or map", self.location)
        current = self.snapshot.schema.by_id
        return {number: names for number, names in types.items() if len(names) > 1 and number in current}

    def _partition_ids(self) -> tuple[int, ...]:
        metadata = self.snapshot.metadata
        specs = {spec_id: metadata.specs[spec_id] for spec_id in self._spec_ids}
        fields = {
            spec_id: tuple(f for f in spec.fields if f.transform.name != "void") for spec_id, spec in specs.items()
        }
        for f in (f for members in fields.values() for f in members):
            if f.transform.name != "identity":
                raise cannot_publish(
                    f"the table is partitioned by {f.transform} of a column (partition field {f.name}), and other "
                    "formats have partitions by the values of columns only: publish a table partitioned by columns",
                    self.location,
                )
        sources = {tuple(f.source_id for f in members) for members in fields.values()}
        if len(sources) > 1:
            raise cannot_publish(
                f"the files have {len(sources)} partition specs: rewrite the files of older specs with "
                "Table.optimize(…, rewrite_all=True)",
                self.location,
            )
        numbers = next(iter(sources), ())
        for number in numbers:
            member = self.snapshot.schema.by_id.get(number)
            if member is None or len(member[0]) > 1:
                raise cannot_publish(
                    "the table is partitioned by a dropped column, or by a field of a struct", self.location
                )
        return numbers

    @cached_property
    def _spec_ids(self) -> set[int]:
        ids = {manifest.spec_id for manifest in self.snapshot.manifests if not manifest.is_deletes}
        return ids or {self.snapshot.metadata.spec.id}

    @cached_property
    def _deletes(self) -> dict[str, TableFile]:
        """Files with deleted rows, by location, once they are listed."""
        return {}

    def listed(self) -> Iterator[ListedFile]:
        """See `Source.listed`."""
        for file in plan_files(self.snapshot).files:
            data, deletes = file.file, file.deletes
            if data.format != "parquet":
                raise cannot_publish(f"{data.path} is in the format {data.format}", self.location)
            if deletes.equalities:
                raise cannot_publish(
                    f"{data.path} has equality deletes, which other formats lack: rewrite the file with Table.optimize",
                    self.location,
                )
            key = _vector_key(deletes)
            if key is not None:
                self._deletes[data.path] = file
            yield ListedFile(data.path, data.size, key)

    def described(self, columns: SourceColumns, files: Collection[ListedFile]) -> Iterator[DataFile]:
        """See `Source.described`."""
        locations = {file.location for file in files}
        specs = self.snapshot.metadata.specs
        for _, entry in self.snapshot.live_entries(deletes=False):
            file = entry.file
            if file.path in locations:
                values = zip(specs[file.spec_id].fields, file.partition, strict=True)
                partition = tuple(value for f, value in values if f.transform.name != "void")
                yield replace(file, spec_id=0, partition=partition)

    def deleted_rows(self, file: ListedFile) -> Rows:
        """See `Source.deleted_rows`."""
        planned = self._deletes[file.location]
        return deleted_positions(self.snapshot.table.files, planned.file, planned.deletes)


def _vector_key(deletes: FileDeletes) -> str | None:
    """Return what identifies the delete files of a data file; None if it has none."""
    if deletes.vector is not None:
        return f"{deletes.vector.file.path}@{deletes.vector.file.content_offset}"
    return "\n".join(sorted(entry.file.path for entry in deletes.positions)) or None
