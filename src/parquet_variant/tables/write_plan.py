"""Writing the data files of a table, in this process or in tasks of other processes, and describing each of them.

Owns `TableWritePlan`, the base of each format's plan: conforming rows to the table, enforcing its `Rules` (a rule that
cannot be evaluated is an error, never ignored), splitting rows by partition and rolling files. Leaves partitions, names
of files and their description to the format's subclass, the commit to the format, the Parquet format to
`files.parquet.writing`, and metrics to `file_metrics`. A file that no commit names is not part of the table.
"""

from __future__ import annotations

import re
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import SchemaError, TableError, VariantError, VariantFileError, check_count
from parquet_variant.files.parquet.format.files import ParquetSource
from parquet_variant.files.parquet.pages.encodings import codec_number
from parquet_variant.files.parquet.writing.writer import FileInfo, VariantWriter
from parquet_variant.io.commit_journal import everything_below
from parquet_variant.io.directories import A_TABLE, TableFormat, is_hidden, table_directories
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.ops.interop.tables import rows_of
from parquet_variant.ops.shred_variant import infer_shredding_schema, shred_variant
from parquet_variant.query.selection import TableColumns
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.options import DEFAULT_COMPRESSION
from parquet_variant.support.records import Record, cached_property
from parquet_variant.tables.columns import (
    align_table,
    by_given_name,
    check_known,
    check_storable,
    stored_schema,
    to_stored,
    with_other_columns,
)
from parquet_variant.tables.file_metrics import FileMetrics, MetricsCollector
from parquet_variant.tables.partitions import OpenFiles
from parquet_variant.tables.row_input import batches_of, keep_types, kept_types
from parquet_variant.tables.schema import VARIANT, Place, StructType, arrow_type, reachable_variants
from parquet_variant.tables.storage import LocalStorage, Storage, open_storage


class Rules(Record):
    """The rules of a table; can be pickled."""

    checks: tuple[tuple[str, str], ...] = ()  # Name and SQL of conditions that must be true for every row.
    # Column and SQL.
    generated: tuple[tuple[str, str], ...] = ()
    defaults: tuple[tuple[str, str], ...] = ()

    def completed(self, table: pa.Table, schema: StructType) -> pa.Table:
        """Return rows with missing default and generated columns filled in."""
        for name, text in (*self.defaults, *self.generated):
            if name not in table.column_names:
                field = schema.get(name)
                assert field is not None
                if field.type == VARIANT:
                    continue  # The default of a Variant column is null (Delta's PROTOCOL.md).
                values = _evaluate(f"the value of column {name}", text, table)
                try:
                    table = table.append_column(name, values.cast(arrow_type(field.type)))
                except pa.ArrowException as error:
                    raise _cannot_evaluate(f"the value of column {name}", text, error) from None
        return table

    def regenerated(self, rows: pa.Table, schema: StructType, assigned: Collection[str]) -> pa.Table:
        """Return changed rows with their generated columns computed again, except those that were assigned."""
        names = [name for name, _ in self.generated if name in rows.column_names and name not in assigned]
        if not names or not len(rows):
            return rows
        completed = replace(self, defaults=()).completed(rows.drop_columns(names), schema)
        return completed.select(rows.column_names)

    def enforce(self, table: pa.Table) -> None:
        """Refuse rows that break a rule.

        Raises `TableError`: reason ``"constraint-violated"``, with the rule and the first row that breaks it.
        """
        rules = [(f"constraint {name}", text) for name, text in self.checks]
        rules += [
            (f"generated column {name}", f"`{name.replace('`', '``')}` <=> ({text})") for name, text in self.generated
        ]
        for name, text in rules if len(table) else ():
            answer = _evaluate(name, text, table)
            if not pa.types.is_boolean(answer.type) and not pa.types.is_null(answer.type):
                raise _cannot_evaluate(name, text, f"its type is {answer.type}, not boolean")
            is_met = np.asarray(pc.fill_null(answer.cast(pa.bool_()), False))
            if not is_met.all():
                problem = f"{int((~is_met).sum())} rows break {name} ({text}), so nothing is written: change these rows"
                raise TableError(problem, reason="constraint-violated", row=int((~is_met).argmax()))


def _evaluate(name: str, text: str, table: pa.Table) -> pa.Array:
    # Only tables with rules need an SQL engine.
    from parquet_variant.query.sql_expression import read_expression
    from parquet_variant.tables.expressions import evaluate, needed_table

    try:
        expression = read_expression(text, {"t": TableColumns.of(table.schema)}, engine="spark")
        rows = needed_table(table, expression.columns["t"], "UTC")
        return one_chunk(evaluate({"answer": expression.text}, {"t": rows}, "UTC")["answer"])
    except TableError:
        raise
    except VariantError as error:
        raise _cannot_evaluate(name, text, error) from None


def _cannot_evaluate(name: str, text: str, cause: object) -> TableError:
    return TableError(
        f"{name} ({text}) cannot be evaluated, so nothing is written: {cause}", reason="unsupported-feature"
    )


DEFAULT_FILE_BYTES = 256 << 20
# The size of a file is known only when it is finished; until then, this is the assumed ratio of Arrow bytes to it.
_ASSUMED_COMPRESSION = 3

# The format's description of a data file, such as an add action of Delta.
File = TypeVar("File")


class TableWritePlan(ABC, Generic[File], Record):
    """All that a task needs to write files for a table; can be pickled."""

    # Location of the table, its columns, and configuration of its object store.
    uri: str
    schema: StructType = field(repr=False)
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    shred: bool = False  # Whether Variants may be shredded.
    variant_bounds: bool = False  # Whether the metrics of files have bounds by path.
    # Shredding schemas by dotted column. Other columns are shredded by inference from the first rows, or keep their
    # schema if they arrive shredded and no policy is named.
    shredding: Mapping[str, ShreddingSchema] | None = field(default=None, repr=False)
    policy: Any = None
    # Types of the table's paths by dotted column, which inferred schemas keep.
    table_schemas: Mapping[str, ShreddingSchema] = field(default_factory=dict, repr=False)
    file_bytes: int = DEFAULT_FILE_BYTES  # Approximate maximum size of a file.
    # Options of `VariantWriter`, such as ``compression``; ``annotation=True`` also annotates unshredded Variants.
    options: Mapping[str, Any] = field(default_factory=dict)
    job: str = ""  # Prefix of the unique part of file names, which identifies the files of one job.
    hidden_columns: tuple[str, ...] = ()  # Columns that files may have in addition to the table's, such as row ids.
    rules: Rules = field(default_factory=Rules)  # Constraints, generated columns and defaults that rows must obey.

    # The beginnings of the names of files, before `job`: of data files, then of others.
    FILE_PREFIXES: ClassVar[tuple[str, ...]] = ("",)

    def __post_init__(self) -> None:
        check_count("file_bytes", self.file_bytes, 1, None, TableError)

    @abstractmethod
    def split(self, rows: pa.Table) -> Iterable[tuple[Hashable, Any, pa.Table]]:
        """Split conformed rows by partition.

        Yield, for each partition, a key that identifies it, its values in the format's own form, and its rows in the
        table's columns; columns that data files do not have may be dropped.
        """

    @abstractmethod
    def new_path(self, partition: Any) -> str:
        """Return a unique path, relative to the table, for a new file of a partition."""

    @abstractmethod
    def describe(
        self, path: str, partition: Any, info: FileInfo, metrics: FileMetrics, data_change: bool = True
    ) -> File:
        """Return the format's description of a written file."""

    @abstractmethod
    def metrics_collector(self, columns: StructType) -> MetricsCollector:
        """Return a collector of the metrics of a file with these columns: all of `data_schema`, or some of them."""

    @cached_property
    def unpartitioned(self) -> StructType:
        """The table's columns without partition columns that data files do not have."""
        return self.schema

    @cached_property
    def data_schema(self) -> StructType:
        """The columns of data files under physical names."""
        return stored_schema(self.unpartitioned)

    @cached_property
    def codec(self) -> str:
        """The compression of files."""
        return str(self.options.get("compression", DEFAULT_COMPRESSION)).lower()

    def new_name(self) -> str:
        """Return a unique name of a new file, without its extension."""
        return f"{self.FILE_PREFIXES[0]}{self.job}{uuid.uuid4()}"

    def remove_files(self) -> None:
        """Remove all files that tasks of this job wrote or are writing, for a job that will not be committed."""
        assert self.job  # Without it, the names of files do not show who wrote them.
        storage = open_storage(self.uri, self.storage_options)
        # The id of a deletion vector begins with half of the job, and has its hyphens elsewhere.
        names = tuple((prefix + self.job[:16]).replace("-", "") for prefix in self.FILE_PREFIXES)
        for file in list(storage.list("")):
            # The temporary name of an unfinished file begins with a dot.
            if file.path.rpartition("/")[2].removeprefix(".").replace("-", "").startswith(names):
                storage.delete(file.path)

    def write_files(self, data: Any, *, data_change: bool = True) -> list[File]:
        """Write rows to new files and return the description of each.

        Without `data_change`, the rows are in the table already (compaction).
        Raises `TableError`: ``"bad-data"``, ``"unknown-column"``, ``"missing-column"``, ``"type-mismatch"``,
        ``"null-value"`` or ``"constraint-violated"``.
        """
        batches = batches_of(data)
        task: _Task[File] = _Task(self)
        try:
            for batch in batches:
                try:
                    rows = rows_of(batch)
                except SchemaError as error:
                    raise TableError(error.message, reason="bad-data") from None
                task.write(rows)
            task.open.close_all()
        except BaseException:
            for file in task.files:
                file.abort()
            raise
        return [file.describe(data_change) for file in task.files]

    def keeping_types(self, files: Callable[[], Sequence[ParquetSource]]) -> Self:
        """Return the plan of an append: inferred schemas keep the types that paths have in files of the table."""
        names = [".".join(place) for place in reachable_variants(self.schema)] if self.shred else []
        is_inferred = names and not self.shredding and self.policy is None
        return replace(self, table_schemas=kept_types(files(), names)) if is_inferred else self

    def with_generated_columns(self, rows: pa.Table) -> pa.Table:
        """Return rows under the table's names, with missing generated and default columns filled in."""
        # Users may write the names of the table in any case.
        spellings = {f.name.lower(): f.name for f in self.schema.fields}
        names = [spellings.get(name.lower(), name) for name in rows.column_names]
        duplicate = next((name for name in names if names.count(name) > 1), None)
        if duplicate is not None:
            raise TableError(
                f"the data has two columns named {duplicate!r} (names are compared without case): rename or drop one",
                reason="bad-data",
            )
        return self.rules.completed(rows.rename_columns(names), self.schema)

    def stored(self, rows: pa.Table) -> pa.Table:
        """Return rows as files hold them: complete, checked against the rules, shredded, under physical names."""
        return to_stored(_Task(self).conformed(rows), self.schema)


def property_codec(properties: Mapping[str, str], name: str, error: type[TableError]) -> str:
    """Return the compression that a table property names. Raises `TableError`: reason ``"bad-property"``."""
    codec = properties.get(name, DEFAULT_COMPRESSION).lower()
    try:
        codec_number(codec)
    except VariantFileError as unknown:
        raise error(f"the table property {name} is {codec!r}: {unknown.message}", reason="bad-property") from None
    return codec


class _Task(Generic[File]):
    """Writes batches to files, one open file per partition, and closes files that have reached their size."""

    def __init__(self, plan: TableWritePlan[File]) -> None:
        self.plan = plan
        check_storable(plan.schema)
        self.storage = open_storage(plan.uri, plan.storage_options)
        self.open: OpenFiles[Hashable, _OpenFile[File]] = OpenFiles()
        self.files: list[_OpenFile[File]] = []
        self.schemas: dict[Place, ShreddingSchema | None] = {}

    def write(self, table: pa.Table) -> None:
        table = self.conformed(table)
        hidden = [name for name in self.plan.hidden_columns if name in table.column_names]
        for key, partition, part in self.plan.split(table):
            stored = with_other_columns(to_stored(part, self.plan.schema), part.select(hidden))
            self._write_partition(key, partition, stored)

    def conformed(self, table: pa.Table) -> pa.Table:
        """Return rows in the table's columns and types, complete, checked against its rules, and shredded."""
        table = self.plan.with_generated_columns(table)
        columns = pa.schema([field for field in table.schema if field.name not in self.plan.hidden_columns])
        check_known(columns, self.plan.schema, by_given_name)
        for f in self.plan.schema.fields:
            if not f.nullable and f.name not in table.column_names:
                raise TableError(f"column {f.name!r} must not be null and is missing", reason="missing-column")
            if not f.nullable and table[f.name].null_count:
                raise TableError(f"column {f.name!r} must not be null", reason="null-value")
        hidden = table.select([name for name in self.plan.hidden_columns if name in table.column_names])
        table = align_table(table, self.plan.schema, by_given_name, self._shredded, exact=True)
        self.plan.rules.enforce(table)
        return with_other_columns(table, hidden)

    def _write_partition(self, key: Hashable, partition: Any, rows: pa.Table) -> None:
        limit = self.plan.file_bytes * _ASSUMED_COMPRESSION
        step = max(1, min(len(rows), len(rows) * limit // max(1, rows.nbytes)))
        for start in range(0, len(rows), step):
            file = self.open.opened(key, partial(self._create, partition))
            file.write(rows.slice(start, step))
            if file.size >= limit:
                self.open.close(key)

    def _create(self, partition: Any) -> _OpenFile[File]:
        self.files.append(_OpenFile(self.plan, self.storage, partition))
        return self.files[-1]

    def _shredded(self, place: Place, array: VariantArray) -> VariantArray:
        if not self.plan.shred:
            return array.to_unshredded()
        if place not in self.schemas:
            name = ".".join(place)
            schema = (self.plan.shredding or {}).get(name)
            if schema is None and array.layout == "final" and self.plan.policy is None:
                schema = array.schema
            elif schema is None:
                schema = infer_shredding_schema(array.to_unshredded(), self.plan.policy or "auto")
                if (table_schema := self.plan.table_schemas.get(name)) is not None:
                    schema = keep_types(schema, table_schema)
            self.schemas[place] = None if schema is None else schema.limited_to()
        schema = self.schemas[place]
        if schema is None or schema.kind == "variant":
            return array.to_unshredded()
        if array.layout == "final" and array.schema == schema:
            return array
        return shred_variant(array.to_unshredded(), schema)


class _OpenFile(Generic[File]):
    """A data file that is being written."""

    def __init__(self, plan: TableWritePlan[File], storage: Storage, partition: Any) -> None:
        self.plan, self.storage, self.partition = plan, storage, partition
        self.path = plan.new_path(partition)
        self.size = 0
        self.info: FileInfo | None = None
        self._created = storage.create(self.path)
        self._local = self._created.__enter__()
        # Delta's protocol lists value before metadata. Some readers fail on an annotation of unshredded files, which
        # do not need one.
        options: dict[str, Any] = {"compression": plan.codec, "annotation": "shredded", "value_first": True}
        self._writer = VariantWriter(self._local, **(options | dict(plan.options)))
        self._collector = plan.metrics_collector(plan.data_schema)

    def write(self, table: pa.Table) -> None:
        self._collector.add_rows(table)
        self._writer.write_batch(table)
        self.size += table.nbytes

    def close(self) -> None:
        self.info = self._writer.close()
        self._created.__exit__(None, None, None)

    def abort(self) -> None:
        self._writer.abort()
        self.storage.delete(self.path)

    def describe(self, data_change: bool) -> File:
        assert self.info is not None
        metrics = self._collector.metrics(self.info)
        return self.plan.describe(self.path, self.partition, self.info, metrics, data_change)


# Paths below a table's root that only `TableWritePlan.new_name` gives.
_UNIQUE = r"([0-9a-f]{12}-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NEW_FILE = re.compile(rf"(data/([01]{{4,8}}/)*)?([^/]+=[^/]*/)*(part-)?{_UNIQUE}(\.\w+)?\.parquet")


def refuse_files_in(storage: Storage, format: TableFormat) -> None:
    """Refuse files in the place of a new table, which would hide their rows, and remove them in its maintenance.

    Hidden files and those of an interrupted creation are accepted, in Iceberg also those of a dropped table.
    Raises `TableError`: reason ``"exists"``.
    """
    if not isinstance(storage, LocalStorage):
        names = [file.path for file in storage.list("")]
    else:  # with the targets of links, as readers
        filesystem, root = storage.filesystem("")
        infos = everything_below(filesystem, root) or [filesystem.get_file_info(root)]  # which may be a file
        names = [info.path[len(root) :].strip("/") for info in infos if info.is_file]
    former = table_directories(names).get("", format)
    dropped = ("data/", "metadata/") if format == "iceberg" and any(n.startswith("metadata/") for n in names) else ()
    foreign = (n for n in names if not (n.startswith(dropped) or _NEW_FILE.fullmatch(n)))
    if former != format or not all(is_hidden(name.removeprefix("_delta_log/")) for name in foreign):
        remedy = f", but {A_TABLE[former]}: use format={former!r}" if former != format else ": choose another path"
        problem = f"{storage.uri} contains files and is not {A_TABLE[format]}{remedy}"
        raise TableError(problem, reason="exists", file=storage.uri)
