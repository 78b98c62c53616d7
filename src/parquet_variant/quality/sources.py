"""`DataSet`: the Variants of any source that can be compared or checked, and where they are stored.

Owns recognizing the source, reading all rows, and the data files of Delta and Iceberg tables: their places, partitions
and deleted rows. Leaves logs and manifests to `tables`, what footers prove to `footers`, and bounded samples to
`footer_figures`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import partial
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from parquet_variant.arrays.capsules import named_variants
from parquet_variant.arrays.chunked_array import ChunkedVariantArray
from parquet_variant.arrays.parts import nested_array
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantFileError, check_names, without_secrets
from parquet_variant.files.parquet.format.columns import choose_column, find_variants
from parquet_variant.files.parquet.format.files import ParquetSource, locate, open_file
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.files.parquet.reading.read import row_group_arrays
from parquet_variant.ingestion.formats.csv_rows import is_csv
from parquet_variant.ingestion.json_column import find_tables
from parquet_variant.ingestion.request import TextOptions
from parquet_variant.ingestion.sources.input_files import InputFile, find_input_files
from parquet_variant.ingestion.sources.splits import Split
from parquet_variant.ingestion.task import read_arrays
from parquet_variant.io.filesystems import path_texts
from parquet_variant.io.hive import Partition
from parquet_variant.ops.interop.tables import is_rows, table_of
from parquet_variant.quality.footers import read_footer
from parquet_variant.tables.opening import is_delta, is_iceberg, is_json, is_vortex, refuse_versions
from parquet_variant.tables.table.base import TextKeywords
from parquet_variant.tables.table.table import Table

_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True)
class TableFileRows:
    """A data file of a table: its place and partition, whether it has deleted rows, and the description in the log."""

    source: ParquetSource
    has_deletes: bool
    described: Any


@dataclass(frozen=True)
class TableRows:
    """The rows of a table at a version.

    `name`, `version`: the table and its version, for messages.
    `stored_column`: the Variant column, as the files name it.
    `files`: the data files.
    `read`: returns the live rows of a file.
    `reads_files`: whether the Variant column of the files is that of the table, so that footers describe the table.
    """

    name: str
    version: str
    stored_column: str
    files: Sequence[TableFileRows]
    read: Callable[[TableFileRows], VariantArray]
    reads_files: bool = True


# ---- Delta


def delta_rows(table: Any, column: str | None, version: int | None, timestamp: Any) -> TableRows:
    """Return the rows of a Delta table. Raises `DeltaError` and `TableError` as `pv.open` does."""
    from parquet_variant.tables.delta.file_locations import partition_column, relative_path
    from parquet_variant.tables.delta.log.file_actions import iter_adds
    from parquet_variant.tables.delta.log.snapshot import Snapshot, snapshot
    from parquet_variant.tables.delta.reading.read import PLACES, read_file, selected_schema
    from parquet_variant.tables.table_scan import variant_place

    current = table if isinstance(table, Snapshot) else snapshot(table, version=version, timestamp=timestamp)
    place = variant_place(current.schema, column)
    fields = [field for field in current.schema.fields if field.name in current.partition_columns]
    values = [partition_column(current.files, field) for field in fields]
    files = []
    for number, add in enumerate(iter_adds(current.files.select(PLACES))):
        filesystem, path = current.storage.filesystem(relative_path(current.storage, add.path))
        partition = tuple((field.name, column[number]) for field, column in zip(fields, values, strict=True))
        source = ParquetSource(path, filesystem, add.size, partition)
        files.append(TableFileRows(source, add.deletion_vector is not None, add))
    top = current.schema.get(place[0])
    stored = ".".join(place)
    if top is not None and current.column_mapping != "none":
        stored = top.physical_name

    def read(file: TableFileRows) -> VariantArray:
        return _variants_of(read_file(current, selected_schema(current, [place[0]]), file.described), place)

    reads_files = current.column_mapping == "none" or len(place) == 1
    return TableRows(
        _table_name(table, current.storage.uri), f"version {current.version}", stored, files, read, reads_files
    )


def _variants_of(rows: pa.Table, place: Sequence[str]) -> VariantArray:
    return VariantArray.from_storage(nested_array(rows.combine_chunks(), place))


def _table_name(table: Any, location: str) -> str:
    return os.fspath(table) if isinstance(table, str | os.PathLike) else location


# ---- Iceberg


def iceberg_rows(table: Any, column: str | None, version: int | None, timestamp: Any, catalog: Any) -> TableRows:
    """Return the rows of an Iceberg table. Raises `IcebergError` as `pv.open` does."""
    from parquet_variant.tables.iceberg.metadata.partitioning import result_types
    from parquet_variant.tables.iceberg.metadata.schema import shared_schema
    from parquet_variant.tables.iceberg.reading.data_files import read_file
    from parquet_variant.tables.iceberg.reading.planning import plan_files
    from parquet_variant.tables.iceberg.reading.snapshot import snapshot
    from parquet_variant.tables.table_scan import variant_place

    current = snapshot(table, catalog=catalog, snapshot_id=version, timestamp=timestamp)
    place = variant_place(shared_schema(current.schema), column)
    files = []
    for file in plan_files(current).files:
        filesystem, path = current.table.files.filesystem(file.path)
        spec = current.metadata.specs[file.file.spec_id]
        types = result_types(spec, current.metadata.schemas_newest_first)
        # The partition has the names of the partition fields and of identity sources.
        values: dict[str, pa.Scalar] = {}
        for member, kind, raw in zip(spec.fields, types, file.file.partition, strict=True):
            text = None if raw is None else _partition_text(str(member.transform), kind.family, raw)
            values[member.name] = pa.scalar(text, pa.string())
        source = ParquetSource(path, filesystem, file.size, tuple(values.items()))
        files.append(TableFileRows(source, bool(file.deletes), file))
    if not files:
        raise VariantFileError(f"the Iceberg table {current.table.name} has no rows", reason="no-rows")

    def read(file: TableFileRows) -> VariantArray:
        return _variants_of(read_file(current, file.described, current.schema.select([place[0]]).struct), place)

    # Files keep the name that a column had when they were written.
    reads_files = len(place) == 1 and len(_names_of(current, place[0])) == 1
    version_name = f"snapshot {current.snapshot_id}"
    return TableRows(_table_name(table, current.table.name), version_name, ".".join(place), files, read, reads_files)


def _names_of(current: Any, name: str) -> set[str]:
    """Return the names that a top-level column has had."""
    field_id = next(field.id for field in current.schema.fields if field.name == name)
    schemas = current.metadata.schemas_newest_first
    return {field.name for schema in schemas for field in schema.fields if field.id == field_id}


def _partition_text(transform: str, family: str, raw: Any) -> str:
    """Return a partition value as Iceberg's directory names have it: ``2026-01-31``, ``2026-01``, ``2026``."""
    if transform == "year":
        return str(_EPOCH.year + raw)
    if transform == "month":
        return f"{_EPOCH.year + raw // 12:04}-{raw % 12 + 1:02}"
    if transform == "hour":
        return f"{_EPOCH + timedelta(days=raw // 24)}-{raw % 24:02}"
    if family == "date":
        return str(_EPOCH + timedelta(days=raw))
    return str(raw).lower() if isinstance(raw, bool) else str(raw)


Kind: TypeAlias = Literal["json", "parquet", "delta", "iceberg", "vortex", "memory"]
# Rows of a VariantArray that are handled at a time.
_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Consecutive rows of a data set.

    `values`: the Variants.
    `file`: the file that holds them; None for data in memory and for tables whose rows are merged from several files.
    `first_row`: the number of the first row in the file, or in the data set if there is no file. For JSON, values are
      counted, so that empty lines have no number.
    """

    values: VariantArray
    file: str | None
    first_row: int


@dataclass(frozen=True, eq=False)
class DataSet:
    """The Variants of a source, with their places.

    `name`: the source as messages show it, such as ``events (version 3)``.
    `kind`: ``"json"``, ``"parquet"``, ``"delta"``, ``"iceberg"``, ``"vortex"`` or ``"memory"``.
    `column`: the Variant column; ``"v"`` for JSON.
    `size`: number of bytes: of the files, or in memory.
    `read`: yields all rows, in order.
    `files`: the Parquet files whose rows belong to the data set; empty for other formats.
    `has_deletes`: whether rows of `files` are deleted by vectors or delete files, so that footers count too many rows.
    `text_files`, `text`: the JSON files, and how they are read.
    `rows`: the number of rows, if it is known without reading them.
    """

    name: str
    kind: Kind
    column: str
    size: int
    read: Callable[[], Iterator[RowBatch]]
    files: tuple[ParquetSource, ...] = ()
    has_deletes: bool = False
    text_files: tuple[InputFile, ...] = ()
    text: TextOptions = field(default_factory=TextOptions)
    rows: int | None = None

    def __repr__(self) -> str:
        return f"<DataSet {self.name}: {self.kind}, column {self.column}, {self.size:,} bytes>"

    def batches(self) -> Iterator[RowBatch]:
        """Yield all rows, in order, without batches that have no rows."""
        return (batch for batch in self.read() if len(batch.values))


def open_data(
    source: Any,
    *,
    column: str | None = None,
    version: int | None = None,
    timestamp: Any = None,
    partition: Mapping[str, str] | None = None,
    catalog: Any = None,
    **text: Any,
) -> DataSet:
    """Open a source, without reading values.

    `source`: JSON, Parquet or Vortex files, directories, globs or URIs; a Delta or Iceberg table, or a snapshot of one;
      a `VariantArray`, a data frame or an Arrow table.
    `column`: the Variant column, if there are several.
    `version`, `timestamp`: the version of a Delta table or the snapshot of an Iceberg table.
    `partition`: only the files with these values of partition columns, as strings: ``{"day": "2026-01-31"}``.
    `catalog`: the catalog of an Iceberg table named ``namespace.table``.
    `text`: how JSON is read, as for `pv.profile`.
    Raises `VariantFileError` if the source does not exist, has no Variant column or no such partition; `DeltaError` and
    `IcebergError` for tables that cannot be read.

    >>> open_data("examples/usgs_earthquakes.ndjson")
    <DataSet examples/usgs_earthquakes.ndjson: json, column v, 1,217,844 bytes>
    """
    check_names("option", text, TextKeywords.__annotations__)
    if isinstance(source, DataSet):
        return source
    if isinstance(source, Table):
        return _of_opened(source, column, version, timestamp, partition, text)
    if isinstance(source, VariantArray | ChunkedVariantArray) or is_rows(source):
        refuse_versions(f"a {type(source).__name__}", version, timestamp)
        _refuse_partition(partition, "data in memory has")
        return _of_memory(source, column)
    table = _open_table(source, column, version, timestamp, partition, catalog)
    if table is not None:
        return table
    refuse_versions(source, version, timestamp)
    name = _name_of(source)
    is_path = isinstance(source, str | os.PathLike)
    if is_path and is_vortex(source):
        _refuse_partition(partition, "Vortex files have")
        return _of_vortex(name, os.fspath(source), column)
    input_format = text.get("input_format", "auto")
    if is_csv(source) and text.get("json_column") is None and input_format == "auto":
        text["input_format"] = input_format = "csv"
    if text.get("json_column") is not None or input_format != "auto" or is_json(source):
        _refuse_partition(partition, "JSON files have")
        return _of_json(name, source, TextOptions.of(**text))
    return _of_parquet(name, locate(source), column, partition)


def _of_opened(
    table: Table,
    column: str | None,
    version: int | None,
    timestamp: Any,
    partition: Mapping[str, str] | None,
    text: Mapping[str, Any],
) -> DataSet:
    """Return the data set of an open table; arguments take precedence over the options of the table."""
    options = table.options
    if options.filesystem is not None:
        sources = locate(table.source, options.filesystem)
        return _of_parquet(table.uri, sources, column or options.column, partition or options.partition)
    source, catalog = table.source, options.catalog
    if table.format in ("delta", "iceberg") and version is None and timestamp is None:
        source, catalog = table.snapshot, None
    return open_data(
        source,
        column=column or options.column,
        version=version,
        timestamp=timestamp,
        partition=partition or options.partition,
        catalog=catalog,
        **{**options.text, **text},
    )


def _name_of(source: Any) -> str:
    if isinstance(source, str | os.PathLike):
        return without_secrets(os.fspath(source))
    names = list(map(without_secrets, path_texts(source)))
    return ", ".join(names[:3]) + (f", … ({len(names):,} in all)" if len(names) > 3 else "")


def _refuse_partition(partition: Mapping[str, str] | None, who: str) -> None:
    if partition:
        raise VariantFileError(
            f"{who} no partition columns: name the files of the partition instead", reason="no-partitions"
        )


# ---- tables


def _open_table(
    source: Any,
    column: str | None,
    version: int | None,
    timestamp: Any,
    partition: Mapping[str, str] | None,
    catalog: Any,
) -> DataSet | None:
    """Return the data set of a Delta or Iceberg table; None for other sources."""
    is_path = isinstance(source, str | os.PathLike)
    if hasattr(source, "tombstones") or (is_path and catalog is None and is_delta(source)):
        return _of_table("delta", delta_rows(source, column, version, timestamp), partition)
    if hasattr(source, "snapshot_id") or catalog is not None or (is_path and is_iceberg(source)):
        return _of_table("iceberg", iceberg_rows(source, column, version, timestamp, catalog), partition)
    return None


def _of_table(kind: Literal["delta", "iceberg"], table: TableRows, partition: Mapping[str, str] | None) -> DataSet:
    name = f"{without_secrets(table.name)} ({table.version})"
    files = table.files
    if partition:
        files = [file for file in files if _is_in(file.source.partition, partition, name)]
        if not files:
            raise _no_partition(name, partition)
    sources = tuple(file.source for file in files)
    size = sum(source.size for source in sources)
    has_deletes = any(file.has_deletes for file in files)

    def read() -> Iterator[RowBatch]:
        for file in files:
            if (
                table.reads_files
                and not file.has_deletes
                and has_column(read_footer(file.source).schema, table.stored_column)
            ):
                yield from parquet_batches([file.source], table.stored_column)
            else:
                yield RowBatch(table.read(file), file.source.path, 0)

    proving = sources if table.reads_files else ()
    return DataSet(
        _with_partition(name, partition), kind, table.stored_column, size, read, proving, has_deletes=has_deletes
    )


def has_column(schema: SchemaNode, column: str) -> bool:
    """Return whether the schema of a file has a Variant column; files that are older than the column do not."""
    return any(column in (variant.name, variant.node.dotted) for variant in find_variants(schema))


def _with_partition(name: str, partition: Mapping[str, str] | None) -> str:
    return name + "".join(f" {column}={value}" for column, value in (partition or {}).items())


def _is_in(values: Partition, partition: Mapping[str, str], name: str) -> bool:
    """Return whether the partition of a file has the wanted values."""
    by_name = {column.lower(): value for column, value in values}
    for column, text in partition.items():
        if column.lower() not in by_name:
            choices = f"choose from {', '.join(column for column, _ in values)}" if values else "it has none"
            raise VariantFileError(f"{name} has no partition column {column}: {choices}", reason="no-such-column")
        scalar = by_name[column.lower()]
        value = scalar.as_py()
        spelled = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
        if spelled != text and not (value is None and text == "__HIVE_DEFAULT_PARTITION__"):
            return False
    return True


def _no_partition(name: str, partition: Mapping[str, str]) -> VariantFileError:
    values = ", ".join(f"{column}={value}" for column, value in partition.items())
    return VariantFileError(
        f"{name} has no files with {values}: check the values of the partition", reason="no-such-partition"
    )


# ---- files


def _of_parquet(
    name: str, sources: Sequence[ParquetSource], column: str | None, partition: Mapping[str, str] | None
) -> DataSet:
    files = tuple(sources)
    if partition:
        files = tuple(source for source in sources if _is_in(source.partition, partition, name))
        if not files:
            raise _no_partition(name, partition)
    variant = choose_column(read_footer(files[0]).schema, column, files[0].path).name
    size = sum(source.size for source in files)
    return DataSet(
        _with_partition(name, partition), "parquet", variant, size, partial(parquet_batches, files, variant), files
    )


def parquet_batches(sources: Sequence[ParquetSource], column: str) -> Iterator[RowBatch]:
    """Yield the rows of Parquet files, one batch per row group."""
    for source in sources:
        with open_file(source) as file:
            for first_row, values in row_group_arrays(file, choose_column(file.schema, column, file.name)):
                yield RowBatch(values, source.path, first_row)


def _of_json(name: str, source: Any, text: TextOptions) -> DataSet:
    if text.json_column is not None:
        files = tuple(find_tables([source] if isinstance(source, str | os.PathLike) else source, text.exclude))
    else:
        files = tuple(find_input_files(source, text.exclude))

    def read() -> Iterator[RowBatch]:
        for file in files:
            first_row = 0
            for values in read_arrays([Split(file)], replace(text, sample=None)):
                yield RowBatch(values, file.name, first_row)
                first_row += len(values)

    return DataSet(name, "json", "v", sum(file.size for file in files), read, text_files=files, text=text)


def _of_vortex(name: str, path: str, column: str | None) -> DataSet:
    from parquet_variant.files.vortex.library import open_file as open_vortex
    from parquet_variant.files.vortex.paths import vortex_files
    from parquet_variant.files.vortex.reader import choose_path_column
    from parquet_variant.files.vortex.scanner import scan as scan_files

    files = vortex_files(path)
    variant = choose_path_column(open_vortex(files[0]), column)
    size = sum(file.size for file in find_input_files(files))
    rows = sum(scan_files(file, {"v": ("$", "variant")}, column=variant).explain().rows for file in files)

    def read() -> Iterator[RowBatch]:
        for file in files:
            first_row = 0
            for values in scan_files(file, {"v": ("$", "variant")}, column=variant).batches():
                yield RowBatch(VariantArray.from_arrow(values, "v"), file, first_row)
                first_row += len(values)

    return DataSet(name, "vortex", variant, size, read, rows=rows)


def _of_memory(source: Any, column: str | None) -> DataSet:
    table = table_of(source)
    names = named_variants(table.schema)
    if column is None and len(names) == 1:
        column = names[0]
    if column not in names:
        problem = f"{column} is not a Variant column" if column is not None else "the data has not one Variant column"
        raise VariantFileError(
            f"{problem}: choose one with column=, from {', '.join(names) or 'none'}", reason="no-such-column"
        )
    values = VariantArray.from_arrow(table, column)

    def read() -> Iterator[RowBatch]:
        for start in range(0, len(values), _ROWS):
            yield RowBatch(values[start : start + _ROWS], None, start)

    kind = type(source).__name__
    return DataSet(f"{kind} of {len(values):,} rows", "memory", column or "v", values.storage.nbytes, read)
