"""Typed paths read by the JVM alone: which files allow it, and the DataFrame over them.

Spark can read a shredded Variant as the plain struct that it is in the file, and then prunes columns and skips row
groups by itself, with no Python in the way. That is sound only where a path's typed column holds every answer. Owns
that decision, per file, and the view. Leaves all other files to the data source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs as pafs

from parquet_variant.errors import VariantError
from parquet_variant.parquet.format.columns import choose_column
from parquet_variant.parquet.format.files import OpenFile, locate, open_file
from parquet_variant.parquet.format.footer import SchemaNode
from parquet_variant.parquet.format.statistics import leaf_statistics, leaf_type
from parquet_variant.parquet.scanning.projection import columns_of_path
from parquet_variant.path import backquoted
from parquet_variant.query.selection import Selected, read_selection
from parquet_variant.shredding.leaf_statistics import LeafStatistics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Each shape of files is a scan of its own; beyond this many, the data source is the simpler plan.
_MAX_SHAPES = 8
_GLOB = frozenset("*?[]{}\\")
# Schema path of the typed column that holds an output, and its Arrow type; None where the output is null in every row.
_Place = tuple[tuple[str, ...], pa.DataType] | None


@dataclass
class ReadPlan:
    """Which reader takes which files."""

    columns: dict[str, pa.DataType | None]  # The output columns' names and types.
    # Files that the JVM reads alone, by shape: where each output column lies.
    jvm: dict[tuple[_Place, ...], list[str]] = field(default_factory=dict)
    python: dict[str, str] = field(default_factory=dict)  # The files that the data source reads, with the reason.

    @property
    def jvm_files(self) -> list[str]:
        """The files that the JVM reads alone."""
        return [file for files in self.jvm.values() for file in files]

    def __str__(self) -> str:
        lines = [f"jvm     {file}" for file in self.jvm_files]
        lines += [f"python  {file}: {reason}" for file, reason in self.python.items()]
        return "\n".join(lines)


def plan_read(source: Any, columns: Mapping[str, Any], *, column: str | None = None) -> ReadPlan:
    """Decide for every file who reads it, from the footers alone.

    Parameters
    ----------
    source
        A file, directory or glob.
    columns
        Output columns: name to path and type, as for `pv.spark.read`.
    column
        The variant column, if there are several.

    Returns
    -------
    ReadPlan
        A file is read by the JVM if, for every path, each row group's statistics rule out any answer in a residual, and
        the typed column has the type asked for or one that casts to it in the same way everywhere.
    """
    selection = read_selection(columns)
    plan = ReadPlan({each.name: each.type for each in selection})
    for each in locate(source):
        if not isinstance(each.filesystem, pafs.LocalFileSystem):
            plan.python[each.path] = "not on a local disk"
        elif _GLOB & set(each.path):
            plan.python[each.path] = "the path has characters of patterns"
        else:
            with open_file(each) as file:
                try:
                    shape = tuple(_place(file, one, column) for one in selection)
                except _NotPlain as reason:
                    plan.python[each.path] = str(reason)
                    continue
            plan.jvm.setdefault(shape, []).append(each.path)
    while len(plan.jvm) > _MAX_SHAPES:
        _, files = plan.jvm.popitem()
        plan.python |= dict.fromkeys(files, "too many shapes of files")
    return plan


class _NotPlain(Exception):  # noqa: N818 - a reason, not an error
    """Why a file needs the data source."""


def _place(file: OpenFile, selected: Selected, column: str | None) -> _Place:
    if selected.path is None:
        raise _NotPlain(f"{selected.name} is an ordinary column")
    if selected.type is None or pa.types.is_nested(selected.type):
        raise _NotPlain(f"{selected.name} is no scalar")
    variant = choose_column(file.schema, column, file.name)
    if variant.repeated or variant.layout != "final":
        raise _NotPlain(f"the layout is {variant.layout}")
    columns = columns_of_path(variant, selected.path, selected.type)
    typed = columns.primitive
    for number in range(file.metadata.num_row_groups):
        needed = columns.needed(partial(_statistics, file.metadata.row_group(number)), scalar=True)
        if any(leaf is not typed for leaf in needed or ()):
            raise _NotPlain(f"{selected.name} may have values in a residual")
    if typed is None:
        return None
    if not all(isinstance(step, str) for step in selected.path.segments):
        raise _NotPlain(f"{selected.name} is in an array")
    stored = leaf_type(typed)
    if stored is None or not _same_everywhere(stored, selected.type):
        raise _NotPlain(f"{selected.name} is stored as {stored or typed.spelled()}")
    return typed.path, stored


def _statistics(group: Any, node: SchemaNode) -> LeafStatistics:
    return leaf_statistics(group.column(node.leaf), node)


def _same_everywhere(stored: pa.DataType, kind: pa.DataType) -> bool:
    """Whether SQL's CAST gives what `try_variant_get` gives for every value."""
    if stored == kind:
        # Types that Spark's Parquet reader has.
        return not (pa.types.is_time(stored) or stored == pa.uuid() or getattr(stored, "unit", "us") == "ns")
    if pa.types.is_integer(stored):
        return kind == pa.float64() or (pa.types.is_integer(kind) and kind.bit_width >= stored.bit_width)
    return bool(pa.types.is_decimal(stored) and kind == pa.float64())


def struct_view(spark: SparkSession, plan: ReadPlan) -> list[DataFrame]:
    """A DataFrame for each shape of the plan's files, in the session, with the plan's columns.

    Raises `VariantError` with reason ``"no-struct-view"`` if this Spark has no way to read a Variant as a struct in one
    query only.
    """
    from pyspark.sql import DataFrame
    from pyspark.sql.pandas.types import from_arrow_type

    if not plan.jvm:
        return []
    frames = []
    try:
        own = _own_session(spark)
        of_rows = spark._jvm.org.apache.spark.sql.classic.Dataset.ofRows
        for shape, files in plan.jvm.items():
            tree: dict[str, Any] = {}
            outputs = []  # as text: of expressions that are objects, every part is a call to the JVM
            for (name, kind), place in zip(plan.columns.items(), shape, strict=True):
                value = "NULL"
                if place is not None:
                    path, stored = place
                    _insert(tree, path, from_arrow_type(stored))
                    value = ".".join(map(backquoted, path))
                outputs.append(f"CAST({value} AS {from_arrow_type(kind).simpleString()}) AS {backquoted(name)}")
            frame = own.read.schema(_struct(tree)).parquet(*files).selectExpr(*outputs)
            frames.append(DataFrame(of_rows(spark._jsparkSession, frame._jdf.logicalPlan()), spark))
    except (AttributeError, TypeError) as error:
        raise VariantError(f"this Spark cannot give a struct view: {error}", reason="no-struct-view") from error
    return frames


@lru_cache(maxsize=8)
def _own_session(spark: SparkSession) -> SparkSession:
    """The session in which a Variant is a struct: the setting is a session's, and the user's keeps its VARIANT."""
    own = spark.newSession()
    own.conf.set("spark.sql.parquet.ignoreVariantAnnotation", "true")
    own.conf.set("spark.sql.caseSensitive", "true")
    return own


def _insert(tree: dict[str, Any], path: tuple[str, ...], kind: Any) -> None:
    for part in path[:-1]:
        tree = tree.setdefault(part, {})
    tree[path[-1]] = kind


def _struct(tree: Mapping[str, Any]) -> Any:
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [StructField(name, _struct(kind) if isinstance(kind, dict) else kind) for name, kind in tree.items()]
    )
