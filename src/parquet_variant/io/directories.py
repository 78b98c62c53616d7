"""What the names in a directory say: values of Hive partitions, ``day=2026-01-31/``, and Delta and Iceberg tables.

Owns parsing partitions for reading, with the types of their values (those that the directory declares, or that Spark
infers), and recognizing tables, so that their files are not read, replaced or removed as files of a directory. Readers
list the files, `tables.partitions` makes directory names from values, and `tables` reads logs and metadata.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.fs as pafs

from parquet_variant.errors import VariantFileError
from parquet_variant.io.filesystems import filesystem_of, info_of
from parquet_variant.layouts.storage_shape import ddl_name

# Columns and values, in the order of the directories; null for a file without such a partition.
Partition: TypeAlias = "tuple[tuple[str, pa.Scalar], ...]"

# The name of the partition of nulls.
NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
# The file in a directory that declares the types of its partition columns.
PARTITION_TYPES = "_partition_types.json"
_INTEGER = re.compile(r"-?\d+", re.ASCII)
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)", re.ASCII)
_DECLARED = {"string": pa.string(), "boolean": pa.bool_()}
_BOOLEANS = {"true": True, "false": False}
# Spark's decimal for integers beyond int64 has at least as many digits as the largest integer of 64 bits.
_MIN_WIDE_DIGITS, _MAX_DIGITS = 20, 38
_NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_LOCAL_TIME = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?")
_INSTANT = re.compile(_LOCAL_TIME.pattern + r"(Z|[-+]\d\d:\d\d)?")


def partition_texts(folders: Sequence[str]) -> dict[str, str | None]:
    """Return the partition columns of directory names, as strings.

    >>> partition_texts(["day=2026-01-31", "kind=a%2Fb", "n=__HIVE_DEFAULT_PARTITION__", "plain"])
    {'day': '2026-01-31', 'kind': 'a/b', 'n': None}
    """
    values: dict[str, str | None] = {}
    for folder in folders:
        name, equals, value = folder.partition("=")
        if equals and name:
            values[unquote(name)] = None if value == NULL_PARTITION else unquote(value)
    return values


def typed_partitions(
    files: Sequence[dict[str, str | None]], declared: Sequence[Mapping[str, pa.DataType]] = ()
) -> list[Partition]:
    """Return the partition columns of files, with one type per column: the declared type, or what Spark infers.

    That is the narrowest of ``int32``, ``int64``, ``decimal128(n, 0)``, ``double``, ``date32`` and ``timestamp`` that
    holds all values, or ``string``. Integers beyond ``int32`` are never mixed with doubles, which do not hold all of
    them; nor are numbers with more digits than a double holds read as doubles.

    `files`: the values by column of each file.
    `declared`: the types by column that the directory of each file declares; ignored if some value does not have it.

    >>> typed_partitions([{"day": "2026-01-31", "n": "1"}, {"day": None, "n": "x"}])[0][1]
    ('n', <pyarrow.StringScalar: '1'>)
    """
    names = dict.fromkeys(name for strings in files for name in strings)
    scalars: dict[str, dict[str | None, pa.Scalar]] = {}
    for name in names:
        values = dict.fromkeys(strings.get(name) for strings in files)
        stated = [text for text in values if text is not None]
        kinds = {types.get(name) for types, strings in zip(declared, files, strict=False) if name in strings}
        kind = kinds.pop() if len(kinds) == 1 else None
        typed: dict[str | None, pa.Scalar] = {}
        with suppress(KeyError, ArithmeticError, pa.ArrowException):  # a value does not have the declared type
            if kind is not None and pa.types.is_boolean(kind):
                typed = {text: pa.scalar(_BOOLEANS[text], kind) for text in stated}
            elif kind is not None:
                parse = Decimal if pa.types.is_decimal(kind) else str
                typed = {text: pa.scalar(parse(text), kind) for text in stated}
        typed = typed or _inferred(stated)
        null = pa.scalar(None, next(iter(typed.values())).type if typed else kind or pa.string())
        scalars[name] = {**typed, None: null}
    return [tuple((name, scalars[name][strings.get(name)]) for name in names) for strings in files]


def _inferred(strings: list[str]) -> dict[str | None, pa.Scalar]:
    """Return the values as the type that Spark infers."""
    digits = max((len(text.lstrip("-").lstrip("0")) for text in strings), default=0)
    wide = pa.decimal128(max(digits, _MIN_WIDE_DIGITS), 0) if digits <= _MAX_DIGITS else pa.string()
    kinds: tuple[tuple[re.Pattern[str], pa.DataType, Callable[[str], object]], ...] = (
        (_INTEGER, pa.int32(), int),
        (_INTEGER, pa.int64(), int),
        (_INTEGER, wide, Decimal if digits <= _MAX_DIGITS else str),
        (_NUMBER, pa.float64(), _double),
        (_DATE, pa.date32(), date.fromisoformat),
        (_LOCAL_TIME, pa.timestamp("us"), datetime.fromisoformat),
        (_INSTANT, pa.timestamp("us", "UTC"), _instant),
    )
    for pattern, kind, parse in kinds:
        if strings and all(map(pattern.fullmatch, strings)):
            try:
                return {text: pa.scalar(parse(text), kind) for text in strings}
            except (ValueError, OverflowError, pa.ArrowException):
                continue
    return {text: pa.scalar(text, pa.string()) for text in strings}


def _double(text: str) -> float:
    value = float(text)
    if Decimal(repr(value)) != Decimal(text) or (_INTEGER.fullmatch(text) and not -(2**31) <= int(text) < 2**31):
        raise ValueError("the digits of the value, or of other long integers, would be lost")
    return value


def types_to_declare(types: Mapping[str, pa.DataType]) -> dict[str, str]:
    """Return the types, as DDL, of partition columns that would be inferred as another type."""
    return {
        name: ddl_name(kind)
        for name, kind in types.items()
        if pa.types.is_string(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind)
    }


def declared_partitions(filesystem: pafs.FileSystem, root: str) -> tuple[dict[str, str], dict[str, pa.DataType]]:
    """Return what a directory declares of its partition columns: a type or ``$.path:type`` each; and the types."""
    place = f"{root.rstrip('/')}/{PARTITION_TYPES}"
    types: dict[str, pa.DataType] = {}
    try:
        with filesystem.open_input_stream(place) as stream:
            entries = {str(name): str(text) for name, text in json.loads(stream.read()).items()}
        for name, text in entries.items():
            type_name = text.rpartition(":")[2]
            if decimal := _DECIMAL.fullmatch(type_name):
                types[name] = pa.decimal128(int(decimal[1]), int(decimal[2]))
            elif type_name in _DECLARED or not text.startswith("$"):  # other types of paths are inferred
                types[name] = _DECLARED[type_name]
        return entries, types
    except FileNotFoundError:
        return {}, {}
    except (OSError, ValueError, KeyError, AttributeError, RecursionError, pa.ArrowException) as error:
        problem = f"cannot read the types of partition columns ({error}): remove the file to infer them from the values"
        raise VariantFileError(problem, reason="bad-partition-types", file=place) from None


def _instant(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def is_hidden(path: str) -> bool:
    """Return whether readers leave a file out by its path below their directory; as in Spark, ``_a=1`` is a partition.

    >>> [is_hidden(path) for path in ("a/_b.parquet", "_temporary/a.parquet", ".a=1/b.parquet", "_a=1/b.parquet")]
    [True, True, True, False]
    """
    *folders, name = path.split("/")
    hidden = (name, *(folder for folder in folders if "=" not in folder or folder.startswith(".")))
    return any(part.startswith((".", "_")) for part in hidden)


# The names of files that readers of directories open, whatever their case.
PARQUET_SUFFIXES, VORTEX_SUFFIX = (".parquet", ".parq", ".pq"), ".vortex"
DATA_SUFFIXES = (*PARQUET_SUFFIXES, VORTEX_SUFFIX)
VORTEX_MAGIC = b"VTXF"  # The first bytes of a Vortex file.


def data_file_names(
    names: Collection[str], suffixes: str | tuple[str, ...] = DATA_SUFFIXES, place: str | None = None
) -> list[str]:
    """Return the data files among the files and directories below a directory, in order, without those of tables.

    Raises `VariantFileError`, reason ``"two-formats"``, if the directory `place` has files of both formats.
    """
    tables = table_directories(names)
    named = (name for name in names if name.lower().endswith(DATA_SUFFIXES))
    files = sorted(name for name in named if not is_hidden(name) and not is_inside(name, tables))
    formats = {name.lower().endswith(VORTEX_SUFFIX): name for name in reversed(files)}
    if place is not None and len(formats) > 1:
        problem = (
            f"{place} has Parquet files ({formats[False]}) and Vortex files ({formats[True]}), which are not read "
            "together: name the files of one format by a glob (**/*.parquet), or move them to another directory"
        )
        raise VariantFileError(problem, reason="two-formats", file=place)
    return [name for name in files if name.lower().endswith(suffixes)]


TableFormat: TypeAlias = Literal["delta", "iceberg"]
A_TABLE: dict[TableFormat, str] = {"delta": "a Delta table", "iceberg": "an Iceberg table"}
# How the names of Iceberg's metadata files end.
ICEBERG_METADATA = (".metadata.json", ".metadata.json.gz")


def format_of_directory(path: str | os.PathLike[str]) -> TableFormat | None:
    """Return the format of the table at a path; None for a path without a table.

    >>> format_of_directory("examples") is None
    True
    """
    return "delta" if has_delta_log(path) else "iceberg" if has_iceberg_metadata(path) else None


def has_delta_log(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a Delta table: a directory with a log."""
    filesystem, root = filesystem_of(path)
    return bool(info_of(filesystem, f"{root.rstrip('/')}/_delta_log").type == pafs.FileType.Directory)


def has_iceberg_metadata(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is an Iceberg table: a directory with metadata files, or a metadata file."""
    if str(path).endswith(ICEBERG_METADATA):
        return True
    filesystem, root = filesystem_of(path)
    directory = f"{root.rstrip('/')}/metadata"
    if info_of(filesystem, f"{directory}/version-hint.text").type == pafs.FileType.File:
        return True
    # A writer that was killed may have left the hint out.
    files = filesystem.get_file_info(pafs.FileSelector(directory, allow_not_found=True))
    return any(file.path.endswith(ICEBERG_METADATA) for file in files)


def refuse_inside_table(file: str | os.PathLike[str]) -> None:
    """Refuse a local file below a Delta or Iceberg table. Raises `VariantFileError`: reason ``"bad-option"``."""
    tables = [folder for folder in Path(os.path.realpath(file)).parents if format_of_directory(folder) is not None]
    if tables:
        problem = f"{os.fspath(file)} is inside the table {tables[0]}: write to another directory"
        raise VariantFileError(problem, reason="bad-option", file=os.fspath(file))


def table_directories(paths: Iterable[str]) -> dict[str, TableFormat]:
    """Return the tables below a common directory, with their formats; the directory itself is ``""``.

    `paths`: of files, and of directories if they are known, relative to the common directory.

    >>> table_directories(["a/x.parquet", "b/_delta_log/0.json", "c/d/metadata/v1.metadata.json"])
    {'b': 'delta', 'c/d': 'iceberg'}
    """
    tables: dict[str, TableFormat] = {}
    for path in paths:
        above, log, _ = f"/{path}/".partition("/_delta_log/")
        parent, metadata, name = f"/{path}".rpartition("/metadata/")
        if log:
            tables[above[1:]] = "delta"
        elif metadata and "/" not in name and name.endswith(ICEBERG_METADATA):
            tables.setdefault(parent[1:], "iceberg")
    return tables


def is_inside(path: str, directories: Collection[str]) -> bool:
    """Return whether a file is below one of some directories; all are relative to a common one.

    >>> is_inside("a/b/c.parquet", {"a/b"}), is_inside("a/b.parquet", {"a/b"})
    (True, False)
    """
    return bool(directories) and any(path[:end] in directories for end, sign in enumerate(path) if sign == "/")
