"""`DataSet`: the Variants of an open table that can be compared or checked, and the files that hold them.

Owns reading all rows with their places, the data files of Parquet directories and of Delta and Iceberg tables, and the
methods of `Table` that need the Variants of any format: paths, number of rows, profile.
Leaves recognising formats to `pv.open`, logs and manifests to `tables`, and what footers prove to `footers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial, reduce
from typing import Any, TypeVar

from parquet_variant.arrays.capsules import chosen_variant, named_variants
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantFileError, without_secrets
from parquet_variant.files.parquet.format.columns import VariantColumn
from parquet_variant.files.parquet.format.files import OpenFile, ParquetSource, locate, open_file
from parquet_variant.files.parquet.reading.read import row_group_arrays, variant_in, variant_of_files
from parquet_variant.files.parquet.scanning.scan import Scan
from parquet_variant.inference.policies.auto import AutoPolicy
from parquet_variant.inference.profile import Profile
from parquet_variant.ingestion.batches import ChunkResult, Pass
from parquet_variant.ingestion.ingest import profile as profile_files
from parquet_variant.ingestion.request import TextOptions
from parquet_variant.ingestion.sources.input_files import COMPRESSION_RATIO, InputFile, find_input_files
from parquet_variant.ingestion.sources.splits import Split, plan_splits
from parquet_variant.ingestion.table_sources import find_tables
from parquet_variant.ingestion.task import read_arrays
from parquet_variant.io.directories import NULL_PARTITION
from parquet_variant.io.filesystems import path_texts
from parquet_variant.kernels.tapes.tape import Tape
from parquet_variant.ops.interop.tables import rows_of
from parquet_variant.ops.shred_variant import infer_shredding_schema
from parquet_variant.query.selection import Question
from parquet_variant.support.records import Record
from parquet_variant.tables.row_input import types_of_paths
from parquet_variant.tables.table.base import TableFormat
from parquet_variant.tables.table.table import Table
from parquet_variant.tables.table_scan import TableScanTask

Result = TypeVar("Result")
# Rows of data in memory that are handled at a time, and from which the paths of unshredded data are inferred.
_ROWS, _INFERRED_ROWS = 1 << 16, 20_000


class RowBatch(Record):
    """Consecutive rows of a data set."""

    values: VariantArray
    file: str | None  # None for data in memory.
    # The number of the first row in the file or the data in memory. Empty lines of JSON have no number.
    first_row: int


class DataFile(Record):
    """A Parquet file of a data set."""

    source: ParquetSource
    # Returns the name of the Variant column in the open file; None if the file does not have the column.
    column_in: Callable[[OpenFile], str | None]
    has_deletes: bool = False  # Whether a vector or delete files delete rows, so that the footer counts too many.

    @contextmanager
    def open(self) -> Iterator[tuple[OpenFile, VariantColumn | None]]:
        """Open the file; the column is None for a file that is older than the column."""
        with open_file(self.source) as file:
            name = self.column_in(file)
            yield file, None if name is None else variant_in(file, name)

    def batches(self) -> Iterator[RowBatch]:
        """Yield all rows, deleted ones included, one batch per row group; nulls without the column."""
        with self.open() as (file, column):
            for first_row, values in row_group_arrays(file, column):
                yield RowBatch(values, file.name, first_row)


class DataSet(Record, eq=False):
    """The Variants of a table, with their places."""

    name: str  # The source as messages show it, such as ``events (version 3)``.
    kind: TableFormat
    column: str  # The Variant column; ``"v"`` for JSON.
    size: int  # Bytes of the files, or in memory.
    read: Callable[[], Iterator[RowBatch]]  # Yields all rows, in order.
    files: tuple[DataFile, ...] = ()  # The Parquet files that have the rows; none for other formats.
    # The JSON files, and how they are read.
    text_files: tuple[InputFile, ...] = ()
    text: TextOptions = field(default_factory=TextOptions)
    rows: int | None = None  # The number of rows, if it is known without reading them.

    @property
    def has_deletes(self) -> bool:
        """Whether rows of the files are deleted, so that footers count too many rows."""
        return any(file.has_deletes for file in self.files)

    @property
    def text_bytes(self) -> int:
        """Estimated bytes of the text in the JSON files: see `COMPRESSION_RATIO`."""
        return sum(file.size * (COMPRESSION_RATIO if file.codec else 1) for file in self.text_files)

    def text_results(
        self, text: TextOptions, work: Callable[[Tape], Result], threads: int, share: float = 1.0
    ) -> Iterator[ChunkResult[Result]]:
        """Yield the outcomes of the chunks of the JSON files, or of a share of them, in order."""
        splits = plan_splits(self.text_files, max(self.text_bytes // max(threads, 1), 1 << 20), text.layout)
        return Pass(text, work, share).results(splits, threads)

    def batches(self) -> Iterator[RowBatch]:
        """Yield all rows, in order, without batches that have no rows."""
        return (batch for batch in self.read() if len(batch.values))


def data_of(table: Table, column: str | None = None) -> DataSet:
    """Return the Variants of a table, without reading values.

    `column`: the Variant column, if there are several (default: that of `pv.open`).
    Raises `VariantFileError` if there is no Variant column or no such partition, and `TableError` as `Table.scan` does.

    >>> import parquet_variant as pv
    >>> data = data_of(pv.open("examples/usgs_earthquakes.ndjson"))
    >>> data.name, data.kind, data.column, data.size
    ('examples/usgs_earthquakes.ndjson', 'json', 'v', 1217844)
    """
    column = column or table.options.column
    if table.format in ("delta", "iceberg"):
        return _of_table(table, column)
    if table.format == "parquet":
        return _of_parquet(table, column)
    if table.options.partition:
        kind = {"vortex": "Vortex files have", "json": "JSON files have"}.get(table.format, "data in memory has")
        problem = f"{kind} no partition columns: name the files of the partition instead"
        raise VariantFileError(problem, reason="no-partitions")
    if table.format == "json":
        return _of_json(table)
    return _of_vortex(table, column) if table.format == "vortex" else _of_memory(table, column)


def _paths_of(table: Table) -> list[Any]:
    return list(table.source) if isinstance(table.source, list | tuple) else [table.source]


def _name_of(table: Table) -> str:
    """Return the name of files for messages: the path, or the first paths."""
    names = list(map(without_secrets, path_texts(_paths_of(table))))
    return ", ".join(names[:3]) + (f", … ({len(names):,} in all)" if len(names) > 3 else "")


def _of_table(table: Table, column: str | None) -> DataSet:
    plan: Any = table.scan({"v": ("$", "variant")}, column=column).plan
    current, described = plan.current, [file for task in plan.tasks(1) for file in task.files]
    version = f"version {current.version}" if table.format == "delta" else f"snapshot {current.snapshot_id}"
    name = f"{without_secrets(table.uri)} ({version})"
    if table.options.partition:
        described = _in_partition(name, table.options.partition, described, plan.partitions())
    (values,) = plan.selection
    files = [DataFile(plan.source(f), partial(plan.variant_in, f, values), f.has_deletes) for f in described]

    def read() -> Iterator[RowBatch]:
        for file, description in zip(files, described, strict=True):
            if not file.has_deletes:
                yield from file.batches()
                continue
            rows = plan.read(TableScanTask((description,), description.size))  # without deleted rows
            yield from _numbered((VariantArray.from_arrow(part, "v") for part in rows), file.source.path)

    return _of_files(name, table, values.column, files, read)


def _numbered(parts: Iterable[VariantArray], file: str | None) -> Iterator[RowBatch]:
    """Yield the parts of a file with the numbers of their first rows."""
    first_row = 0
    for values in parts:
        yield RowBatch(values, file, first_row)
        first_row += len(values)


def _of_parquet(table: Table, column: str | None) -> DataSet:
    name, sources = _name_of(table), locate(table.source, table.options.filesystem)
    if table.options.partition:
        partitions = [{name: value.as_py() for name, value in source.partition} for source in sources]
        sources = _in_partition(name, table.options.partition, sources, partitions)
    variant = variant_of_files(sources, column)
    files = [DataFile(source, lambda _: variant.name) for source in sources]
    data = _of_files(name, table, variant.name, files, lambda: (batch for file in files for batch in file.batches()))
    # Footers of JSON text prove nothing of its values.
    return replace(data, files=()) if variant.node.is_leaf else data


def _of_files(
    name: str, table: Table, column: str, files: Sequence[DataFile], read: Callable[[], Iterator[RowBatch]]
) -> DataSet:
    name += "".join(f" {key}={value}" for key, value in (table.options.partition or {}).items())
    return DataSet(name, table.format, column, sum(file.source.size for file in files), read, tuple(files))


def _in_partition(
    name: str, partition: Mapping[str, str], files: Sequence[Any], partitions: Sequence[Mapping[str, Any]]
) -> list[Any]:
    """Return the files whose partition columns have some values; `partitions`: the values of each file."""

    def text(value: Any) -> str:
        return NULL_PARTITION if value is None else str(value).lower() if isinstance(value, bool) else str(value)

    files_kept = []
    requested = {column.lower(): text(None if value == "null" else value) for column, value in partition.items()}
    for file, values in zip(files, partitions, strict=True):
        by_name = {column.lower(): text(value) for column, value in values.items()}
        for column in partition:
            if column.lower() not in by_name:
                choices = f"choose from {', '.join(values)}" if values else "it has none"
                raise VariantFileError(f"{name} has no partition column {column}: {choices}", reason="no-such-column")
        if requested.items() <= by_name.items():
            files_kept.append(file)
    if not files_kept:
        named = ", ".join(f"{column}={value}" for column, value in partition.items())
        problem = f"{name} has no files with {named}: check the values of the partition"
        raise VariantFileError(problem, reason="no-such-partition")
    return files_kept


def _of_json(table: Table) -> DataSet:
    paths, text = _paths_of(table), TextOptions.of(sources=_paths_of(table), **table.options.text)
    files = tuple((find_input_files if text.json_column is None else find_tables)(paths, text.exclude))

    def read() -> Iterator[RowBatch]:
        for file in files:
            yield from _numbered(read_arrays([Split(file)], replace(text, sample=None)), file.name)

    size = sum(file.size for file in files)
    return DataSet(_name_of(table), "json", "v", size, read, text_files=files, text=text)


def _of_vortex(table: Table, column: str | None) -> DataSet:
    plan: Any = table.scan({"v": ("$", "variant")}, column=column).plan
    scans = plan.files
    size, rows = sum(scan.file.size for scan in scans), sum(len(scan.file) for scan in scans)

    def read() -> Iterator[RowBatch]:
        for scan in scans:
            yield from _numbered((VariantArray.from_arrow(part, "v") for part in scan.tables([0])), scan.file.path)

    return DataSet(_name_of(table), "vortex", str(scans[0].question.selection[0].column), size, read, rows=rows)


def _of_memory(table: Table, column: str | None) -> DataSet:
    rows = rows_of(table.source)
    column = chosen_variant(named_variants(rows.schema), column, VariantFileError, "no-such-column")
    values = VariantArray.from_arrow(rows, column)

    def read() -> Iterator[RowBatch]:
        return _numbered((values[start : start + _ROWS] for start in range(0, len(values), _ROWS)), None)

    name = f"{type(table.source).__name__} of {len(values):,} rows"
    return DataSet(name, "memory", column, values.storage.nbytes, read)


def column_name(table: Table) -> str:
    """Return the name of the Variant column; see `Table.column`."""
    return data_of(table).column


def paths(table: Table, column: str | None = None) -> dict[str, str]:
    """Return the typed paths of a Variant column; see `Table.paths`."""
    data = data_of(table, column)
    columns: list[tuple[ParquetSource, str]] = []
    for file in data.files:
        with file.open() as (_, variant):
            columns += [] if variant is None else [(file.source, variant.name)]
    schema = types_of_paths(columns)
    if schema is None:
        rows = next(data.batches(), None)
        if rows is None:
            return {}
        schema = infer_shredding_schema(rows.values[:_INFERRED_ROWS], AutoPolicy(min_row_share=0.0))
    return {
        path.shorthand: node.to_ddl()
        for path, node in schema.walk()
        if node.kind not in ("object", "variant") and not path.has_wildcard
    }


def count_rows(table: Table) -> int:
    """Return the number of rows; see `Table`."""
    if table.format == "vortex":
        return int(table.inspect().rows)
    if table.format == "parquet":
        scan = Scan(tuple(locate(table.source, table.options.filesystem)), Question(()))
        return sum(task.rows for task in scan.tasks())
    names = [f.name for f in sorted(table.schema, key=lambda f: f.type.num_fields)]
    return sum(len(part) for part in table.scan(names[:1]).batches())


def profile(table: Table, **options: Any) -> Profile:
    """Profile the paths; see `Table.profile`."""
    if table.format in ("json", "parquet"):
        return profile_files(table.source, column=table.options.column, **table.options.text, **options)
    data = data_of(table)
    return reduce(Profile.merge, (Profile.of_array(batch.values) for batch in data.batches()), Profile())
