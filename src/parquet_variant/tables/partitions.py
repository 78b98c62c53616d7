"""Partition values as text: their serialization, their directories, and columns made from them.

Owns Hive's directories and the serialization of Delta's PROTOCOL.md ("Partition Value Serialization") in both
directions. Leaves the choice of partition columns to the formats.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Generic, TypeVar
from urllib.parse import quote
from weakref import WeakSet

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.capsules import is_variant_field
from parquet_variant.arrays.parts import one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import TableError
from parquet_variant.io.directories import NULL_PARTITION
from parquet_variant.kernels.arrow_buffers import Int64s, from_numpy, scalar, to_numpy
from parquet_variant.ops.variant_get import variant_get
from parquet_variant.query.selection import read_selection
from parquet_variant.tables.schema import PrimitiveType, TableType, arrow_type
from parquet_variant.types.path import VariantPath

_MAX_NAME_BYTES = 255
MANY_PARTITIONS = 1000
# Processes may have 1,024 files open by default, and an open file holds a row group in memory.
MAX_OPEN_FILES = 800
_TASKS: WeakSet[OpenFiles[Any, Any]] = WeakSet()
Key = TypeVar("Key")
File = TypeVar("File", bound=Any)
# The properties of Delta and Iceberg tables with the path and type of a partition column, by its name.
PATH_PROPERTY = "parquet-variant.partition-by."
# Characters that Hive escapes in directory names.
_HIVE_UNSAFE = set("\"#%'*/:=?\\\x7f{}[]^") | {chr(c) for c in range(32)}


def recorded_paths(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the paths of partition columns that the properties of a table record, by column."""
    return {n.removeprefix(PATH_PROPERTY): text for n, text in properties.items() if n.startswith(PATH_PROPERTY)}


def with_extracted_column(rows: pa.Table, name: str, text: str, kind: pa.DataType) -> pa.Table:
    """Return rows with a partition column that they lack: the values at a path, with or without its type, as a type.

    Raises `TableError` if there is not exactly one Variant column.
    """
    variants = [column.name for column in rows.schema if is_variant_field(column)]
    if len(variants) != 1:
        problem = f"the data has no partition column {name!r}: add the column, with nulls if that is meant"
        raise TableError(problem, reason="missing-column")
    path, chunks = read_selection({name: text})[0].path or VariantPath(), map(VariantArray, rows[variants[0]].chunks)
    values = [variant_get(chunk, path, kind, errors="null") for chunk in chunks]
    return rows.append_column(name, pa.chunked_array(values, kind))


def partition_text(value: Any) -> str | None:
    """Return a partition value as text; None for null and for the empty string, which Delta's protocol treats as null.

    >>> partition_text(date(2020, 1, 2)), partition_text(True), partition_text(None)
    ('2020-01-02', 'true', None)
    """
    if value is None or value == "" or value == b"":
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        # `strftime` does not pad years before 1000 to four digits.
        if value.tzinfo is not None:
            return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
        return value.isoformat(" ", "microseconds")
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        try:
            # Spark and delta-kernel write the bytes as UTF-8 text.
            return value.decode()
        except UnicodeDecodeError:
            problem = f"the partition value {value!r} is not UTF-8 text: partition by another column"
            raise TableError(problem, reason="bad-partition-value") from None
    if isinstance(value, (str, int, float, date)):
        return str(value)
    problem = f"a value of type {type(value).__name__} cannot be a partition value: partition by another column"
    raise TableError(problem, reason="unsupported-type")


def partition_array(text: str | None, kind: TableType, rows: int) -> pa.Array:
    """Return a column that repeats one partition value.

    Raises `TableError`: reason ``"bad-partition-value"`` if the text is not a value of the type.
    """
    target = arrow_type(kind)
    if text is None or text == "":
        return pa.nulls(rows, target)
    name = kind.name if isinstance(kind, PrimitiveType) else "struct"
    try:
        value: Any = text
        if name == "binary":
            value = text.encode()
        elif name == "boolean":
            value = {"true": True, "false": False}[text.lower()]
        elif name == "date":
            value = date.fromisoformat(text[:10])
        elif name in ("timestamp", "timestamp_ntz"):
            value = datetime.fromisoformat(text)
            if name == "timestamp" and value.tzinfo is None:
                # Without a zone, the protocol means the writer's zone, which is not recorded. Writers use UTC.
                value = value.replace(tzinfo=UTC)
        elif name.startswith("decimal"):
            value = Decimal(text)
        elif name != "string":
            return pa.repeat(pa.scalar(text).cast(target), rows)
        return pa.repeat(pa.scalar(value, target), rows)
    except (ValueError, KeyError, ArithmeticError, pa.ArrowException):
        raise TableError(
            f"partition value {json.dumps(text)} is not a value of type {name}", reason="bad-partition-value"
        ) from None


def partition_directory(values: Mapping[str, str | None]) -> str:
    """Return the directory of a partition by Hive's convention, ending in a slash; empty without partition columns.

    >>> partition_directory({"day": "2020-01-02", "k": "a/b"})
    'day=2020-01-02/k=a%2Fb/'
    """
    parts = [f"{_name(k)}={NULL_PARTITION if v is None else _hive(v)}/" for k, v in values.items()]
    # Directories are only a convention, so a name that is too long for a file system is not used.
    return "" if any(len(part.encode()) > _MAX_NAME_BYTES for part in parts) else "".join(parts)


def rows_by_partition(columns: Mapping[str, Any]) -> list[tuple[dict[str, str | None], pa.Array | None]]:
    """Return the values of each partition as text, and the numbers of its rows (None for all), by first appearance.

    >>> rows_by_partition({"k": pa.array(["b", "a", "b"])})[0][1].to_pylist()
    [0, 2]
    """
    if not columns:
        return [({}, None)]
    strings = {name: partition_texts(column) for name, column in columns.items()}
    rows = rows_by_key([pa.array(column, pa.string()) for column in strings.values()])
    # Warn, before anything is written, of partition values that are probably not meant.
    if len(rows) > MANY_PARTITIONS:
        warnings.warn(
            f"the rows belong to {len(rows):,} partitions, each with files of its own: partition by fewer values, "
            "such as a date instead of a time",
            stacklevel=3,
        )
    for name, column in strings.items():
        if columns[name].null_count < column.count(None):
            warnings.warn(
                f"empty strings in the partition column {name!r} become null, because partitions cannot hold them",
                stacklevel=3,
            )
        if NULL_PARTITION in column:
            warnings.warn(
                f"the partition column {name!r} holds {NULL_PARTITION!r}, the name of the null partition: readers of "
                "directories return null",
                stacklevel=3,
            )
    values = [{name: column[part[0]] for name, column in strings.items()} for part in rows]
    return [(values[0], None)] if len(rows) == 1 else list(zip(values, map(from_numpy, rows), strict=True))


def rows_by_key(columns: Sequence[pa.Array]) -> list[Int64s]:
    """Return the numbers of the rows of each combination of values, by first appearance."""
    _, first, codes = np.unique(row_codes(columns), return_index=True, return_inverse=True)
    parts = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes, minlength=1))[:-1])
    return [parts[number] for number in np.argsort(first)]


def row_codes(columns: Sequence[pa.Array]) -> Int64s:
    """Return a number for each row of some columns, at least one; rows have the same one if all values are equal."""
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        encoded = column.dictionary_encode()
        indices = to_numpy(encoded.indices.cast(pa.int64()).fill_null(scalar(-1, pa.int64()))) + 1
        _, codes = np.unique(codes * (len(encoded.dictionary) + 1) + indices, return_inverse=True)
    return codes


class OpenFiles(Generic[Key, File]):
    """The files that a task writes, by partition, from the least to the most recently used.

    The tasks of a process share a number of open files: a task above its part closes the least recently used one.
    """

    def __init__(self) -> None:
        self._files: dict[Key, File] = {}
        self.results: list[Any] = []  # What `close` of the files returned.
        _TASKS.add(self)

    def opened(self, key: Key, create: Callable[[], File]) -> File:
        """Return the file of a partition; without one, create it."""
        file = self._files.pop(key, None)
        if file is None:
            while len(self._files) >= max(1, MAX_OPEN_FILES // len(_TASKS)):
                self.close(next(iter(self._files)))
            file = create()
        self._files[key] = file
        return file

    def close(self, key: Key) -> None:
        """Finish the file of a partition."""
        self.results.append(self._files.pop(key).close())

    def close_all(self) -> None:
        """Finish all files."""
        for key in list(self._files):
            self.close(key)


def warn_of_null_partitions(values: Mapping[str, Iterable[Any]], rows: int) -> None:
    """Warn of partition columns, by name, that are null in every row of a write of several rows."""
    if rows < 2:
        return
    for name, column in values.items():
        if all(value is None for value in column):
            warnings.warn(
                f"the partition column {name!r} is null in all {rows:,} rows: check the column, or its path and type",
                stacklevel=4,
            )


def partition_texts(column: pa.Array | pa.ChunkedArray) -> list[str | None]:
    """Return the text of each value of a partition column; see `partition_text`."""
    encoded = one_chunk(column)
    if not isinstance(encoded, pa.DictionaryArray):
        encoded = encoded.dictionary_encode(null_encoding="encode")
    try:
        names = [partition_text(v) for v in encoded.dictionary.to_pylist()]
    except TableError:
        raise
    except (OverflowError, ValueError) as error:
        raise TableError(
            f"a partition value cannot be written as text: {error}", reason="bad-partition-value"
        ) from error
    return [None if i is None else names[i] for i in encoded.indices.to_pylist()]


def _name(column: str) -> str:
    """Return the name of a column in a directory name, which engines skip if it begins with a dot or an underscore."""
    return f"%{ord(column[0]):02X}{_hive(column[1:])}" if column.startswith((".", "_")) else _hive(column)


def _hive(text: str) -> str:
    return "".join(quote(c, safe="") if c in _HIVE_UNSAFE else c for c in text)
