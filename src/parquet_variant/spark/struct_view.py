"""Typed paths that the JVM reads without Python: the files that allow it, and the DataFrame over them.

Spark can read a shredded Variant as the struct that the file stores, and then prunes columns and skips row groups
itself. That is correct only if the typed column of a path contains every value. This module decides it per file. The
data source reads all other files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pafs

from parquet_variant.errors import VariantError
from parquet_variant.files.parquet.format.columns import choose_column
from parquet_variant.files.parquet.format.facts import leaf_type
from parquet_variant.files.parquet.format.files import OpenFile, locate, open_file
from parquet_variant.files.parquet.scanning.projection import columns_of_path
from parquet_variant.query.selection import Selected, read_selection
from parquet_variant.tables.table.table import Table
from parquet_variant.types.path import backquoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Files with the same columns for the paths have one scan. With more scans the data source is the simpler plan.
_MAX_SCANS = 8
_GLOB = frozenset("*?[]{}\\")
# Schema path and Arrow type of the typed column that contains an output; None if the output is null in every row.
_TypedColumn = tuple[tuple[str, ...], pa.DataType] | None


@dataclass
class ReadPlan:
    """The reader of each file."""

    columns: dict[str, pa.DataType | None]  # Names and types of the output columns.
    # The files that the JVM reads without Python, grouped by the typed columns of the outputs.
    jvm: dict[tuple[_TypedColumn, ...], list[str]] = field(default_factory=dict)
    python: dict[str, str] = field(default_factory=dict)  # The files that the data source reads, with the reason.

    @property
    def jvm_files(self) -> list[str]:
        """The files that the JVM reads without Python."""
        return [file for files in self.jvm.values() for file in files]

    def __str__(self) -> str:
        lines = [f"jvm     {file}" for file in self.jvm_files]
        lines += [f"python  {file}: {reason}" for file, reason in self.python.items()]
        return "\n".join(lines)


def readers(
    table: Table, columns: Mapping[str, Any], where: str | None = None, *, column: str | None = None
) -> ReadPlan:
    """Return which reader reads each file of a table: the JVM, or the data source with the reason for it."""
    if table.format != "parquet":
        tasks = table.scan(columns, column=column).tasks()
        reason = {"delta": "a Delta table", "iceberg": "an Iceberg table"}.get(table.format, table.format)
        return ReadPlan({}, python={file.path: reason for task in tasks for file in task.files})
    if where is not None:
        return ReadPlan({}, python={file.path: "--where needs the data source" for file in locate(table.source)})
    return plan_read(table.source, columns, column=column)


def plan_read(source: Any, columns: Mapping[str, Any], *, column: str | None = None) -> ReadPlan:
    """Decide which reader reads each Parquet file, from the footers alone.

    The JVM reads a file if, for every path, the statistics of each row group exclude values in a residual, and the
    typed column has the requested type or one that Spark and this library cast to it in the same way.

    `columns`: name to path and type, as for `Scan.to_spark`.
    """
    selection = read_selection(columns)
    plan = ReadPlan({selected.name: selected.type for selected in selection})
    for parquet_source in locate(source):
        path = parquet_source.path
        if not isinstance(parquet_source.filesystem, pafs.LocalFileSystem):
            plan.python[path] = "not on a local disk"
        elif _GLOB & set(path):
            plan.python[path] = "the path contains characters of glob patterns"
        else:
            with open_file(parquet_source) as file:
                try:
                    typed_columns = tuple(_typed_column(file, selected, column) for selected in selection)
                except _NeedsPython as reason:
                    plan.python[path] = str(reason)
                    continue
            plan.jvm.setdefault(typed_columns, []).append(path)
    while len(plan.jvm) > _MAX_SCANS:
        _, files = plan.jvm.popitem()
        plan.python |= dict.fromkeys(files, "too many different shredding schemas")
    return plan


class _NeedsPython(Exception):  # noqa: N818 - a reason, not an error
    """The reason why the data source must read a file."""


def _typed_column(file: OpenFile, selected: Selected, column: str | None) -> _TypedColumn:
    """Return the typed column that contains every value of an output. Raises `_NeedsPython` if none does."""
    if selected.path is None:
        raise _NeedsPython(f"{selected.name} is an ordinary column")
    if selected.type is None or pa.types.is_nested(selected.type):
        raise _NeedsPython(f"{selected.name} is not a scalar")
    variant = choose_column(file.schema, column, file.name)
    if variant.repeated or variant.layout != "final":
        raise _NeedsPython(f"the layout is {variant.layout}")
    columns = columns_of_path(variant, selected.path, selected.type)
    typed = columns.primitive
    for number in file.facts.groups:
        needed = columns.needed(partial(file.facts.statistics, group=number), scalar=True)
        if any(leaf is not typed for leaf in needed or ()):
            raise _NeedsPython(f"{selected.name} may have values in a residual")
    if typed is None:
        return None
    if not all(isinstance(step, str) for step in selected.path.segments):
        raise _NeedsPython(f"{selected.name} is in an array")
    stored = leaf_type(typed)
    if stored is None or not _casts_equally(stored, selected.type):
        raise _NeedsPython(f"{selected.name} is stored as {stored or typed.spelled()}")
    return typed.path, stored


def _casts_equally(stored: pa.DataType, target: pa.DataType) -> bool:
    """Return whether CAST in Spark returns the result of `try_variant_get` for every value."""
    if stored == target:
        # Spark's Parquet reader does not support time, UUID and nanoseconds.
        return not (pa.types.is_time(stored) or stored == pa.uuid() or getattr(stored, "unit", "us") == "ns")
    if pa.types.is_integer(stored):
        return target == pa.float64() or (pa.types.is_integer(target) and target.bit_width >= stored.bit_width)
    return bool(pa.types.is_decimal(stored) and target == pa.float64())


def struct_view(spark: SparkSession, plan: ReadPlan) -> list[DataFrame]:
    """Return one DataFrame with the columns of the plan for each group of files that the JVM reads.

    Raises `VariantError` with reason ``"no-struct-view"`` if this version of Spark cannot read a Variant as a struct in
    a single query.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql.pandas.types import from_arrow_type

    if not plan.jvm:
        return []
    frames = []
    try:
        struct_session = _struct_session(spark)
        of_rows = spark._jvm.org.apache.spark.sql.classic.Dataset.ofRows
        for typed_columns, files in plan.jvm.items():
            tree: dict[str, Any] = {}
            # Expressions as text, because every part of an expression object is a call to the JVM.
            outputs = []
            for (name, output_type), typed_column in zip(plan.columns.items(), typed_columns, strict=True):
                value = "NULL"
                if typed_column is not None:
                    path, stored = typed_column
                    _insert(tree, path, from_arrow_type(stored))
                    value = ".".join(map(backquoted, path))
                outputs.append(f"CAST({value} AS {from_arrow_type(output_type).simpleString()}) AS {backquoted(name)}")
            frame = struct_session.read.schema(_struct(tree)).parquet(*files).selectExpr(*outputs)
            frames.append(DataFrame(of_rows(spark._jsparkSession, frame._jdf.logicalPlan()), spark))
    except (AttributeError, TypeError) as error:
        raise VariantError(
            f"this version of Spark cannot read Variants as structs ({error}): use engine='python'",
            reason="no-struct-view",
        ) from error
    return frames


@lru_cache(maxsize=8)
def _struct_session(spark: SparkSession) -> SparkSession:
    """Return a session that reads Variants as structs; the setting would affect all reads of the user's session."""
    session = spark.newSession()
    session.conf.set("spark.sql.parquet.ignoreVariantAnnotation", "true")
    session.conf.set("spark.sql.caseSensitive", "true")
    return session


def _insert(tree: dict[str, Any], path: tuple[str, ...], data_type: Any) -> None:
    for part in path[:-1]:
        tree = tree.setdefault(part, {})
    tree[path[-1]] = data_type


def _struct(tree: Mapping[str, Any]) -> Any:
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [StructField(name, _struct(child) if isinstance(child, dict) else child) for name, child in tree.items()]
    )
