"""The plan by which tasks write the data files of an Iceberg table, and the ``write.*`` properties that it obeys.

Owns `WriteProperties` (acted on, known to have no effect here, or refused by name), partitioning rows by transforms,
sorting them, names of files, and their description with metrics as manifests have it (specification, "Field-level
Metrics"). Writing itself is `tables.write_plan`, collecting metrics `tables.file_metrics`, the commit `commit`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any
from urllib.parse import quote_plus

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import column_at, one_chunk
from parquet_variant.arrays.variant_array import VariantArray, plain_storage
from parquet_variant.errors import IcebergError
from parquet_variant.files.parquet.format.arrow_schema import map_variants
from parquet_variant.files.parquet.format.facts import chunk_start_of
from parquet_variant.files.parquet.writing.writer import FileInfo
from parquet_variant.inference.statistics import lower_text, upper_text
from parquet_variant.ops.interop.tables import rows_of
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record, cached_property
from parquet_variant.tables import schema as shared
from parquet_variant.tables.file_metrics import FileMetrics, MetricsCollector, leaf_columns
from parquet_variant.tables.iceberg.locations import normal_location
from parquet_variant.tables.iceberg.metadata import schema as schemas
from parquet_variant.tables.iceberg.metadata.manifests import METRICS, DataFile, ManifestEntry, Status
from parquet_variant.tables.iceberg.metadata.partitioning import PartitionSpec, SortOrder, hash_rows, source_type
from parquet_variant.tables.iceberg.reading.scan import repeated
from parquet_variant.tables.iceberg.reading.snapshot import Snapshot, TableFile
from parquet_variant.tables.partitions import recorded_paths, rows_by_key, with_extracted_column
from parquet_variant.tables.pruning import bounds_to_bytes, complete_bounds
from parquet_variant.tables.row_input import SchemaOption, batches_of, schemas_by_column
from parquet_variant.tables.write_plan import DEFAULT_FILE_BYTES, TableWritePlan, property_codec
from parquet_variant.types.forms import struct_like

TARGET_BYTES = "write.target-file-size-bytes"
_CODEC, _LEVEL = "write.parquet.compression-codec", "write.parquet.compression-level"
_ROW_GROUP = "write.parquet.row-group-size-bytes"
_METRICS = "write.metadata.metrics."
_ONLY = {"write.format.default": "parquet", "write.delete.format.default": "parquet", "write.wap.enabled": "false"}
_REFUSED = ("write.location-provider.impl", "encryption.key-id", "write.object-storage.path")
_TRUNCATE = re.compile(r"truncate\((\d+)\)")
OBJECT_STORAGE = "write.object-storage.enabled"
# The values of properties by the end of their names; the first one is the default.
_CHOICES = {
    ".enabled": ("false", "true"),
    ".mode": ("merge-on-read", "copy-on-write"),
    ".isolation-level": ("serializable", "snapshot"),
}
_CHECKED = (
    OBJECT_STORAGE,
    *(f"write.{name}{end}" for name in ("delete", "update", "merge") for end in (".mode", ".isolation-level")),
)


class WriteProperties(Record):
    """The properties of a table, as its writers read them."""

    properties: Mapping[str, str]

    def check(self) -> None:
        """Refuse what this package does not do. Raises `IcebergError`: reason ``"unsupported-feature"``."""
        for name, allowed in _ONLY.items():
            value = self.properties.get(name, allowed)
            if value.lower() != allowed:
                problem = f"the table property {name} is {value!r}: only {allowed!r} is supported"
                raise IcebergError(problem, reason="unsupported-feature")
        for name in _REFUSED:
            if name in self.properties:
                raise IcebergError(f"the table property {name} is not supported", reason="unsupported-feature")
        for name in _CHECKED:
            self.is_default(name)
        for name, value in self.properties.items():
            if name == f"{_METRICS}default" or name.startswith(f"{_METRICS}column."):
                truncation(value.lower(), name)
        for name in (TARGET_BYTES, _ROW_GROUP, _LEVEL):
            self.number(name, 0)
        _ = self.codec

    @cached_property
    def codec(self) -> str:
        """The compression of data files."""
        codec = property_codec(self.properties, _CODEC, IcebergError)
        return "none" if codec == "uncompressed" else codec

    def writer_options(self) -> dict[str, Any]:
        """Return the options of `VariantWriter` that the properties ask for."""
        options: dict[str, Any] = {"compression": self.codec}
        if _LEVEL in self.properties and self.codec not in ("none", "snappy"):
            options["compression_level"] = self.number(_LEVEL, 0)
        if _ROW_GROUP in self.properties:
            options["row_group_bytes"] = self.number(_ROW_GROUP, 0)
        return options

    def metrics_mode(self, column: str, position: int) -> str:
        """Return the metrics mode of a leaf column: ``none``, ``counts``, ``full`` or ``truncate(n)``.

        `position`: how many leaf columns are before it.
        """
        column_mode = self.properties.get(f"{_METRICS}column.{column}")
        if column_mode is not None:
            return column_mode.lower()
        default = self.properties.get(f"{_METRICS}default")
        if default is None and position >= self.number(f"{_METRICS}max-inferred-column-defaults", 100):
            return "none"
        return (default or "truncate(16)").lower()

    def number(self, name: str, default: int) -> int:
        """Return a property that is a number. Raises `IcebergError`: reason ``"bad-property"``."""
        text = self.properties.get(name)
        if text is None:
            return default
        if not text.isdecimal():
            raise IcebergError(f"the table property {name} is {text!r}: give a number", reason="bad-property")
        return int(text)

    def is_default(self, name: str) -> bool:
        """Return whether a property that is one of some choices has its default value.

        Raises `IcebergError`: reason ``"bad-property"``.
        """
        choices = _CHOICES[name[name.rindex(".") :]]
        value = self.properties.get(name, choices[0]).lower()
        if value not in choices:
            problem = f"the table property {name} is {value!r}: use {' or '.join(choices)}"
            raise IcebergError(problem, reason="bad-property")
        return value == choices[0]


def truncation(mode: str, name: str) -> int | None:
    """Return how many characters of bounds a metrics mode keeps; None for all.

    `name`: the property or column, for errors.
    Raises `IcebergError`: reason ``"bad-property"``.
    """
    if mode in ("none", "counts", "full"):
        return None
    match = _TRUNCATE.fullmatch(mode)
    if match is None or int(match[1]) < 1:
        problem = f"the metrics mode {mode!r} of {name} is unknown: use none, counts, truncate(n) or full"
        raise IcebergError(problem, reason="bad-property")
    return int(match[1])


def manifest_metrics(
    schema: schemas.Schema, properties: WriteProperties, info: FileInfo, metrics: FileMetrics
) -> dict[str, Any]:
    """Return the metrics of a written file, and its row groups' begins; `metrics`: those of its leaf columns."""
    result: dict[str, Any] = {name: {} for name in METRICS}
    file_leaves = info.facts.schema.leaves()
    for position, fields in enumerate(shared.leaves(schema.struct)):
        place, f = tuple(f.name for f in fields), fields[-1]
        mode = properties.metrics_mode(".".join(place), position)
        limit = truncation(mode, ".".join(place))
        column = metrics.columns.get(place)
        # A shredded Variant has a bound, if only an empty one: some readers take it for unshredded if it has none.
        if f.type == shared.VARIANT and any(
            leaf.path[: len(place) + 1] == (*place, "typed_value") for leaf in file_leaves
        ):
            result["lower_bounds"][f.id] = result["upper_bounds"][f.id] = bounds_to_bytes({})
        if column is None or mode == "none":
            continue
        result["value_counts"][f.id] = metrics.rows
        if column.nulls is not None:
            result["null_value_counts"][f.id] = column.nulls
        if f.type in (shared.PrimitiveType("float"), shared.PrimitiveType("double")) and not info.may_hold_nan:
            result["nan_value_counts"][f.id] = 0
        if mode == "counts":
            continue
        if f.type == shared.VARIANT:
            lower, upper = complete_bounds(column.paths)
            if lower:
                result["lower_bounds"][f.id] = bounds_to_bytes(lower)
                result["upper_bounds"][f.id] = bounds_to_bytes(upper)
        elif isinstance(f.type, shared.PrimitiveType) and column.lower is not None and column.upper is not None:
            _set_bounds(result, f, column.lower, column.upper, limit)
    sizes = {leaf.path: info.facts.size([leaf]) for leaf in file_leaves}
    for path, number in parquet_places(schema.struct):
        size = sum(size for leaf, size in sizes.items() if leaf[: len(path)] == path)
        if size:
            result["column_sizes"][number] = size
    result["split_offsets"] = tuple(sorted(chunk_start_of(info.facts.chunk(0, group)) for group in info.facts.groups))
    return result


def _set_bounds(result: dict[str, Any], f: shared.Field, lower: pa.Scalar, upper: pa.Scalar, limit: int | None) -> None:
    assert isinstance(f.type, shared.PrimitiveType)
    if f.type.family in ("geometry", "geography"):
        return
    try:
        low, high = (
            scalar.value.as_py()
            if isinstance(scalar, pa.ExtensionScalar)
            else schemas.raw_values(pa.array([scalar.as_py()], shared.arrow_type(f.type)), f.type)[0]
            for scalar in (lower, upper)
        )
    except (pa.ArrowException, OverflowError, ValueError):
        return
    if limit is not None and isinstance(low, str):
        low, high = lower_text(low, limit), upper_text(high, limit)
    elif limit is not None and isinstance(low, bytes):
        low = low[:limit]
        if len(high) > limit:
            cut = high[:limit].rstrip(b"\xff")
            high = cut[:-1] + bytes([cut[-1] + 1]) if cut else None
    if low is not None:
        result["lower_bounds"][f.id] = schemas.to_bytes(low, f.type)
    if high is not None:
        result["upper_bounds"][f.id] = schemas.to_bytes(high, f.type)


def parquet_places(struct: shared.TableType, place: shared.Place = ()) -> list[tuple[shared.Place, int]]:
    """Return the path in a Parquet file's schema, and the field id, of every leaf; Variants are one leaf."""
    places: list[tuple[shared.Place, int]] = []
    for f in shared.parts(struct):
        inner = (*place, f.name)
        if isinstance(struct, shared.ArrayType):
            inner = (*place, "list", "element")
        elif isinstance(struct, shared.MapType):
            inner = (*place, "key_value", f.name)
        if shared.parts(f.type):
            places += parquet_places(f.type, inner)
        else:
            places.append((inner, f.id))
    return places


# Hidden columns of files whose rows were in the table before.
LINEAGE = (schemas.ROW_ID, schemas.LAST_UPDATED)


class IcebergWritePlan(TableWritePlan[TableFile]):
    """All that a task needs to write files for an Iceberg table; can be pickled.

    `location`: location of the files as the metadata has it; `uri` is the same place as this process opens it.
    `columns`: the table's schema, with field ids and defaults.
    """

    location: str = ""
    columns: schemas.Schema = field(default_factory=lambda: schemas.Schema(0, shared.StructType(())), repr=False)
    spec: PartitionSpec = field(default_factory=PartitionSpec)
    order: SortOrder = field(default_factory=SortOrder)
    write_properties: WriteProperties = field(default_factory=lambda: WriteProperties({}))

    def write_files(self, data: Any, *, data_change: bool = True) -> list[TableFile]:
        """Write rows to new files; see `TableWritePlan.write_files`. Rows of sorted tables are held in memory."""
        if not self.order.fields:
            return super().write_files(data, data_change=data_change)
        tables = [self.with_generated_columns(rows_of(batch)) for batch in batches_of(data)]
        if not tables:
            return []
        if any(table.schema != tables[0].schema for table in tables):
            # Tables whose Variants have several layouts do not fit together; they are shredded again below.
            tables = [map_variants(table, lambda storage, _: plain_storage(VariantArray(storage))) for table in tables]
        rows = pa.concat_tables(tables, promote_options="permissive")
        return super().write_files(self.sorted(rows), data_change=data_change)

    def with_generated_columns(self, rows: pa.Table) -> pa.Table:
        """Return rows under the table's names, with missing columns and fields of structs at their default.

        A partition column that the rows lack has the values at the path that the table records.
        """
        rows = super().with_generated_columns(rows)
        recorded = recorded_paths(self.write_properties.properties)
        for f in self.columns.fields:
            if f.name in recorded and f.name not in rows.column_names:
                rows = with_extracted_column(rows, f.name, recorded[f.name], shared.arrow_type(f.type))
        for f in self.columns.fields:
            index = next((n for n, name in enumerate(rows.column_names) if name.lower() == f.name.lower()), -1)
            if (
                index < 0
                and f.metadata.get(schemas.WRITE_DEFAULT) is not None
                and isinstance(f.type, shared.PrimitiveType)
            ):
                rows = rows.append_column(shared.arrow_field(f), _write_default(f, len(rows)))
            elif index >= 0 and len(rows):
                column = pa.chunked_array([_with_defaults(chunk, f) for chunk in rows.column(index).chunks])
                rows = rows.set_column(index, rows.field(index).with_type(column.type), column)
        return rows

    def sorted(self, rows: pa.Table) -> pa.Table:
        """Return rows in the table's sort order; rows that are equal in it keep theirs."""
        keys: dict[str, Any] = {}
        directions: list[tuple[str, str]] = []
        for number, f in enumerate(self.order.fields):
            place, column = self.columns.by_id[f.source_id]
            assert isinstance(column.type, shared.PrimitiveType)
            values = one_chunk(column_at(rows, place))
            values = f.transform.apply(in_type(values, column.type), column.type)
            if isinstance(values, pa.ExtensionArray):
                values = values.storage
            if values.null_count:
                # Nulls have a key of their own, so that each field can place them first or last.
                keys[f"n{number}"] = pc.cast(values.is_null(), pa.int8())
                directions.append((f"n{number}", "ascending" if f.nulls_last else "descending"))
            keys[f"k{number}"] = values
            directions.append((f"k{number}", "descending" if f.descending else "ascending"))
        return rows.take(pc.sort_indices(pa.table(keys), sort_keys=directions)) if keys else rows

    def split(self, rows: pa.Table) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...], pa.Table]]:
        """Split rows by the partition spec; see `TableWritePlan.split`."""
        if not self.spec.fields:
            yield (), (), rows
            return
        values = []
        for f in self.spec.fields:
            if f.transform.name == "void":
                values.append(pa.nulls(len(rows), pa.null()))
                continue
            place, column = self.columns.by_id[f.source_id]
            assert isinstance(column.type, shared.PrimitiveType)
            array = in_type(one_chunk(column_at(rows, place)), column.type)
            values.append(f.transform.apply(array, column.type))
        parts = rows_by_key([v.storage if isinstance(v, pa.ExtensionArray) else v for v in values])
        for part in parts:
            partition = tuple(
                schemas.raw_values(array.slice(part[0], 1), kind)[0]
                for array, kind in zip(values, self._result_types, strict=True)
            )
            yield tuple(map(str, partition)), partition, rows if len(parts) == 1 else rows.take(pa.array(part))

    @cached_property
    def _result_types(self) -> tuple[shared.PrimitiveType, ...]:
        return tuple(f.transform.result_type(source_type(self.columns, f)) for f in self.spec.fields)

    def new_path(self, partition: tuple[Any, ...]) -> str:
        """Return a unique path for a new file of a partition, relative to the directory of data files."""
        values = zip(self.spec.fields, partition, self._result_types, strict=bool(partition))
        strings = [(f.name, schemas.partition_text(raw, f.transform.name, kind)) for f, raw, kind in values]
        directories = "".join(
            f"{quote_plus(name)}={quote_plus('null' if text is None else text)}/" for name, text in strings
        )
        path = f"{directories}{self.new_name()}.parquet"
        if not self.write_properties.is_default(OBJECT_STORAGE):
            number = int(hash_rows(np.frombuffer(path.encode(), np.uint8).reshape(1, -1))[0]) & 0xFFFFF
            bits = f"{number:020b}"
            path = f"{bits[:4]}/{bits[4:8]}/{bits[8:12]}/{bits[12:]}/{path}"
        return path

    def metrics_collector(self, columns: shared.StructType) -> MetricsCollector:
        """Return a collector of the metrics of every leaf column; their modes are applied in `describe`."""
        return MetricsCollector(columns, {place for place, _ in leaf_columns(columns)}, variant_bounds=True)

    def describe(
        self, path: str, partition: tuple[Any, ...], info: FileInfo, metrics: FileMetrics, data_change: bool = True
    ) -> TableFile:
        """Return a written file as a manifest describes it."""
        file = DataFile(
            path=f"{self.location}/{path}",
            format="parquet",
            record_count=info.rows,
            size=info.bytes,
            spec_id=self.spec.id,
            partition=partition,
            sort_order_id=self.order.id,
            **manifest_metrics(self.columns, self.write_properties, info, metrics),
        )
        return TableFile(ManifestEntry(Status.ADDED, file))


def _write_default(f: shared.Field, rows: int) -> pa.Array:
    assert isinstance(f.type, shared.PrimitiveType)
    return repeated(
        schemas.arrow_array([schemas.from_json(f.metadata.get(schemas.WRITE_DEFAULT), f.type)], f.type), rows
    )


def _with_defaults(array: pa.Array, f: shared.Field) -> pa.Array:
    """Return structs in which missing fields, at any depth of structs, have their write default."""
    if isinstance(f.type, shared.PrimitiveType) or not pa.types.is_struct(array.type):
        return array
    fields, columns = list(array.type), [pc.struct_field(array, [n]) for n in range(array.type.num_fields)]
    by_name = {field.name.lower(): index for index, field in enumerate(fields)}
    for child in shared.parts(f.type):
        index = by_name.get(child.name.lower())
        if index is not None:
            columns[index] = _with_defaults(columns[index], child)
            fields[index] = fields[index].with_type(columns[index].type)
        elif child.metadata.get(schemas.WRITE_DEFAULT) is not None and isinstance(child.type, shared.PrimitiveType):
            fields.append(shared.arrow_field(child))
            columns.append(_write_default(child, len(array)))
    return struct_like(array, fields, columns)


def plan_write(
    snapshot: Snapshot,
    *,
    schema: SchemaOption = None,
    policy: Any = None,
    file_bytes: int | None = None,
    **options: Any,
) -> IcebergWritePlan:
    """Return the plan that writes files for a table under its current schema, spec and sort order.

    `schema`: shredding schemas; `policy`: how other columns are inferred.
    Raises `IcebergError`: reason ``"unsupported-feature"`` or ``"bad-partitioning"``.
    """
    metadata = snapshot.metadata
    columns, order, properties = metadata.schema, metadata.sort_order, WriteProperties(metadata.properties)
    properties.check()
    metadata.spec.check_writable()
    is_applicable = all(f.transform.is_known and f.source_id in columns.by_id for f in order.fields)
    if not is_applicable or options.get("sort_by"):
        order = SortOrder()
    return IcebergWritePlan(
        uri=normal_location(snapshot.table.data_location()),
        schema=columns.struct,
        storage_options=dict(snapshot.table.options),
        shred=True,
        variant_bounds=True,
        shredding=schemas_by_column(schema, columns.struct),
        policy=policy,
        file_bytes=properties.number(TARGET_BYTES, DEFAULT_FILE_BYTES) if file_bytes is None else file_bytes,
        # The specification requires the annotation of every Variant, and metadata stands before value in it.
        options={"annotation": True, "value_first": False, **properties.writer_options(), **options},
        location=snapshot.table.data_location(),
        columns=columns,
        spec=metadata.spec,
        order=order,
        write_properties=properties,
    )


def in_type(values: pa.Array, kind: shared.PrimitiveType) -> pa.Array:
    """Return values in the Arrow type of an Iceberg type."""
    target = shared.arrow_type(kind)
    return values if values.type == target else values.cast(target)
