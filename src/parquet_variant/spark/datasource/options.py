"""The options of the `variant` data source, which Spark passes as strings by name.

This module parses and checks the options. The readers and writers apply them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import field, fields
from typing import Any

from parquet_variant.encoding.cast.strings import zone_of
from parquet_variant.errors import VariantError, bad_option, choice_of
from parquet_variant.files.parquet.writing.conform import WriterOptions
from parquet_variant.io.filesystems import absolute, filesystem_of
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.query.selection import read_selects
from parquet_variant.query.sql_pushdown import parsed_filter
from parquet_variant.support.options import OutputFormat
from parquet_variant.support.records import Record
from parquet_variant.tables.opening import format_of_table
from parquet_variant.tables.row_input import Batch
from parquet_variant.types.path import split_type

# Options that Spark adds, or that users set for Spark.
_SPARK_OPTIONS = frozenset({"path", "paths", "checkpointlocation", "queryname", "truncate", "serialization.format"})
_COMMA = re.compile(r",(?![^(]*\))")
_SIZE = re.compile("([0-9]+)([kmgtp]?)b?")


def _option(names: str, parse: Callable[[str], Any] = str, default: Any = None) -> Any:
    """A field that one of some options sets, with the function that parses the text."""
    return field(default=default, metadata={"names": names.split(), "parse": parse})


def _parsers(kind: type) -> dict[str, tuple[str, Callable[[str], Any]]]:
    """Return the options of a class: the field or argument of each, and the function that parses the text."""
    return {name: (of.name, of.metadata["parse"]) for of in fields(kind) for name in of.metadata.get("names", ())}


def _boolean(text: str) -> bool:
    """Parse ``true`` or ``false``, case-insensitively."""
    try:
        return {"true": True, "false": False}[text.strip().lower()]
    except KeyError:
        raise ValueError("true or false") from None


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("an integer") from None


def _positive_integer(text: str) -> int:
    if (number := _integer(text)) < 1:
        raise ValueError("a positive integer")
    return number


def _bytes(text: str) -> int:
    """Parse a number of bytes, also with a unit as Spark writes it (``10g``)."""
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or not int(match[1]):
        raise ValueError("a positive number of bytes, such as 10485760 or 10m")
    return int(match[1]) << (10 * " kmgtp".index(match[2] or " "))


def _names(text: str) -> list[str]:
    """Parse names from a JSON list, or separated by commas outside of parentheses, without duplicates."""
    names = json.loads(text) if text.lstrip().startswith("[") else [name.strip() for name in _COMMA.split(text)]
    if not names or not all(isinstance(name, str) and name for name in names) or len({*names}) < len(names):
        raise ValueError("names separated by commas, without duplicates")
    return list(names)


def _projection(text: str) -> dict[str, tuple[str, str | None]] | None:
    if not text:
        return None
    columns = json.loads(text) if text.lstrip().startswith(("{", "[")) else read_selects(_names(text))
    if not isinstance(columns, dict) or not columns:
        raise ValueError("not an object with columns")
    paths = {name: split_type(kind) if isinstance(kind, str) else tuple(kind) for name, kind in columns.items()}
    for name, (path, type_name) in paths.items():
        if not isinstance(path, str) or not isinstance(type_name, str | None):
            raise ValueError(f"column {name}")
    return paths


# Arguments of `VariantWriter`, which the options name in camel case.
_FOR_WRITER: dict[str, Callable[[str], Any]] = {
    "compression": str, "compressionLevel": _integer, "effort": str, "rowGroupBytes": _integer, "sortBy": _names,
    "bloomFilters": _names, "writer": str,
}  # fmt: skip


class WriteOptions(Record, kw_only=True):
    """The options of a write."""

    path: str  # The directory or table.
    format: OutputFormat = "parquet"  # The format of the target: ``"parquet"``, ``"delta"`` or ``"iceberg"``.
    catalog: Any = field(default=None, repr=False)  # The catalog of an Iceberg table, as `pv.open` accepts it.
    column: str | None = _option("column")  # The JSON or VARIANT column; by default the only one.
    # The shredding schema; by default inferred from the first rows of each file.
    schema: ShreddingSchema | None = _option("schema", ShreddingSchema.of)
    write: Mapping[str, Any] = field(default_factory=dict)  # Arguments of `VariantWriter`.
    checkpoint: str | None = _option("checkpointLocation")  # The directory of a stream, as the user named it.
    # Partition columns: names of columns, JSON paths such as ``day=$.ts:date``, or transforms of Iceberg.
    partition_by: tuple[str, ...] = _option("partitionBy", lambda text: tuple(_names(text)), ())
    # The id under which a table records the batches of a stream (by default the id of the query), or a write with
    # `transaction_version`.
    application: str | None = _option("txnAppId")
    # The version of a batch write, which is committed once for the same application and version.
    transaction_version: int | None = _option("txnVersion", _integer)
    branch: str | None = _option("branch")  # The branch of an Iceberg table that gets the rows; by default ``main``.

    def stream_id(self) -> str:
        """Return a name for the stream, which is the same after a restart and different for another checkpoint."""
        if self.checkpoint is None:
            raise bad_option("a stream requires the option checkpointLocation, which identifies its batches: set it")
        identity = self.checkpoint
        filesystem, path = filesystem_of(absolute(self.checkpoint))
        # Spark stores the id of the query there. A new checkpoint in the same directory has another id.
        with suppress(OSError), filesystem.open_input_stream(f"{path}/metadata") as stream:
            identity = stream.read().decode()
        return hashlib.sha256(identity.encode()).hexdigest()[:12]

    def transaction(self) -> Batch | None:
        """Return the application and version of a batch write."""
        if self.application is None and self.transaction_version is None:
            return None
        if self.application is None or self.transaction_version is None:
            missing = "txnAppId" if self.application is None else "txnVersion"
            problem = f"an idempotent change requires the options txnAppId and txnVersion: set {missing}, too"
            raise bad_option(problem)
        if self.format == "parquet":
            raise bad_option(
                "the options txnAppId and txnVersion apply to Delta and Iceberg tables: remove them, or write a table"
            )
        return self.application, self.transaction_version

    @classmethod
    def of(cls, options: Mapping[str, str]) -> WriteOptions:
        """Parse the options; names are case-insensitive."""
        for_writer = {name: (re.sub("[A-Z]", r"_\g<0>", name).lower(), parse) for name, parse in _FOR_WRITER.items()}
        named = _NamedOptions(options, [*_parsers(cls), *for_writer, "layout", "format", "catalog"], "write")
        write, values = named.values(for_writer), named.values(_parsers(cls))
        WriterOptions.of(write)  # raises in the driver, not in the first task
        if (layout := named.value("layout")) is not None:
            if layout not in ("final", "unshredded"):
                raise _bad_value("layout", layout, "use final or unshredded")
            values |= {"schema": ShreddingSchema.variant()} if layout == "unshredded" else {}
        path = named.path()
        format_name = named.format(path)
        if format_name != "iceberg" and "branch" in values:
            hint = f"it applies to Iceberg tables, and {path} is not an Iceberg table"
            raise _bad_value("branch", values["branch"], hint)
        return cls(path=path, format=format_name, catalog=named.catalog, write=write, **values)


class ReadOptions(Record, kw_only=True):
    """The options of a read."""

    sources: tuple[str, ...]  # Files, directories or globs, or a table.
    format: str = "parquet"  # The format of the source: ``"parquet"``, ``"delta"`` or ``"iceberg"``.
    catalog: Any = field(default=None, repr=False)  # The catalog of an Iceberg table, as `pv.open` accepts it.
    column: str | None = _option("column")  # The Variant column of `paths`; by default the only one.
    # Output column -> path into the Variant and type; the type is None if the read schema determines it. The option is
    # ``columns`` or ``paths``. Spark refuses ``paths`` together with ``load(path)`` in sessions with
    # ``spark.sql.legacy.pathOptionBehavior.enabled`` false; registering the data source sets it to true.
    paths: Mapping[str, tuple[str, str | None]] | None = _option("columns paths", _projection)
    # Compressed bytes of the required columns that one task reads.
    partition_bytes: int = _option("partitionBytes", _positive_integer, 64 << 20)
    # The version of the table (of an Iceberg table, the id of a snapshot); by default the newest.
    version: int | None = _option("versionAsOf snapshotId", _integer)
    timestamp: str | None = _option("timestampAsOf")
    branch: str | None = _option("branch")
    tag: str | None = _option("tag")
    # The time zone of casts between instants and local times. Spark does not tell a data source the time zone of the
    # session, so that `Scan.to_spark` sets this option.
    zone: str = _option("timeZone", default="UTC")
    # The first version that a stream reads; by default its first batch is the whole table.
    starting_version: int | None = _option("startingVersion", _integer)
    # A stream skips versions that remove rows, instead of raising an error.
    skip_changes: bool = _option("skipChangeCommits", _boolean, False)
    # A filter on the output columns. Rows that do not match are not returned, and files and row groups without matching
    # rows are skipped.
    where: str | None = _option("where")
    # Read the columns of all files, with null if a file lacks a column, instead of those of the first file.
    merge_schema: bool = _option("mergeSchema", _boolean, False)
    # Directories such as ``day=2026-01-31/`` are not columns, as in Spark.
    recursive: bool = _option("recursiveFileLookup", _boolean, False)
    # The maximum of files, and of their bytes, in a micro-batch of a stream; by default all new files.
    max_files: int | None = _option("maxFilesPerTrigger", _positive_integer)
    max_bytes: int | None = _option("maxBytesPerTrigger", _bytes)

    @classmethod
    def of(cls, options: Mapping[str, str], stream: bool | None = None) -> ReadOptions:
        """Parse the options of a stream, of a batch, or of either (None); names are case-insensitive."""
        named = _NamedOptions(options, [*_parsers(cls), "format", "catalog"], "read")
        if named.by_name.get("paths", "").lstrip().startswith("["):
            # Spark sets this option for `load([...])`, which reads several files or directories.
            sources = tuple(absolute(source) for source in named.value("paths", json.loads))
            del named.by_name["paths"]
        else:
            sources = (named.path(),)
        format_name = named.format(sources[0], len(sources))
        for name, (formats, is_for_streams) in _OF_TABLES.items():
            if (text := named.value(name)) is None:
                continue
            if stream is not None and is_for_streams is not None and is_for_streams != stream:
                kind = "streams; use versionAsOf" if is_for_streams else "batches; use startingVersion"
                raise _bad_value(name, text, f"it applies to {kind}")
            if format_name not in formats:
                kinds = " and ".join(kind.title() for kind in formats)
                what = "a Parquet file or directory" if format_name == "parquet" else "a Delta table"
                raise _bad_value(name, text, f"it applies to {kinds} tables, and {sources[0]} is {what}")
        if len(names := [name for name in _BATCH_VERSIONS if named.value(name) is not None]) > 1:
            hint = f"{names[0]} also names a version of the table: set one of the two"
            raise _bad_value(names[1], named.value(names[1]), hint)
        values = named.values(_parsers(cls))
        zone_of(values.get("zone", "UTC"))  # raises in the driver
        if (where := values.get("where")) is not None:
            parsed_filter(where)  # raises before the query runs
        return cls(sources=sources, format=format_name, catalog=named.catalog, **values)


def is_ordinary(path: tuple[str, str | None]) -> bool:
    """Return whether an output column is an ordinary column of the files: a name without a type and without ``$``."""
    return path[1] is None and not path[0].startswith("$")


_FORMATS = ("parquet", "delta", "iceberg")
_TABLES, _ICEBERG = ("delta", "iceberg"), ("iceberg",)
# Option -> formats, and True if it applies to streams only, False if it applies to batches only.
_OF_TABLES: Mapping[str, tuple[tuple[str, ...], bool | None]] = {
    "versionAsOf": (_TABLES, False),
    "timestampAsOf": (_TABLES, False),
    "snapshotId": (_ICEBERG, False),
    "branch": (_ICEBERG, None),
    "tag": (_ICEBERG, False),
    "startingVersion": (_TABLES, True),
    "skipChangeCommits": (_TABLES, True),
}
_BATCH_VERSIONS = ("versionAsOf", "snapshotId", "timestampAsOf", "branch", "tag")
_OBJECT = """columns such as "mag=$.properties.mag:double, day", or an object such as {"mag": ["$.mag", "double"]}"""
_EXPECTED = {"columns": _OBJECT, "paths": _OBJECT}

# Prefix of the options that are properties of a catalog.
_CATALOG = "catalog."
_NO_TABLES = (
    "Spark does not pass the path of a catalog table to a Python data source in writes, nor in reads if the table was "
    "created with columns: create the table without columns (CREATE TABLE name USING variant LOCATION '...'), use "
    "pv.spark.register_table(spark, name, path), and write to the path"
)


class _NamedOptions:
    """Options by name without case, with _ or -; ``catalog.*`` are properties of a catalog by PyIceberg's names."""

    def __init__(self, options: Mapping[str, str], names: list[str], operation: str) -> None:
        properties = {name.lower(): value for name, value in options.items() if name.lower().startswith(_CATALOG)}
        self.by_name = {
            name.lower().replace("_", "").replace("-", ""): value
            for name, value in options.items()
            if name.lower() not in properties
        }
        self.catalog: Any = self.by_name.get("catalog")
        if properties:
            named = {} if self.catalog is None else {"name": self.catalog}
            self.catalog = {**named, **{name.removeprefix(_CATALOG): value for name, value in properties.items()}}
        unknown = self.by_name.keys() - _SPARK_OPTIONS - {name.lower() for name in names}
        if unknown:
            name = min(unknown)
            raise bad_option(f"unknown {operation} option {name!r}: {choice_of(name, names)}")

    def value(self, option: str, read: Callable[[str], Any] = str) -> Any:
        """Return the value of an option; None if it is not set."""
        text = self.by_name.get(option.lower())
        try:
            return None if text is None else read(text)
        except (ValueError, TypeError) as error:
            raise _bad_value(option, str(text), f"use {_EXPECTED.get(option, 'another value')} ({error})") from None

    def values(self, parsers: Mapping[str, tuple[str, Callable[[str], Any]]]) -> dict[str, Any]:
        """Return the options that are set, by the names of fields."""
        parsed = ((name, self.value(option, read)) for option, (name, read) in parsers.items())
        return {name: value for name, value in parsed if value is not None}

    def path(self) -> str:
        """Return the path of the files or the table, or the name of a table in a catalog."""
        if not (path := self.by_name.get("path")):
            raise bad_option(f"no path: name one in load() or save(). {_NO_TABLES}")
        return path if self.catalog is not None else absolute(path)

    def format(self, path: str, paths: int = 1) -> Any:
        """Return the format of a source or target: that of the option, or else the format of an existing table."""
        named = self.by_name.get("format")
        if named not in (None, *_FORMATS):
            raise _bad_value("format", str(named), f"use {', '.join(_FORMATS[:-1])} or {_FORMATS[-1]}")
        if self.catalog is not None:
            if named not in (None, "iceberg"):
                problem = (
                    f"the option catalog applies to Iceberg tables, but format is {named!r}: remove one of the two"
                )
                raise bad_option(problem)
            return "iceberg"
        if named is not None and (paths == 1 or named == "parquet"):
            return named
        if paths > 1 or any(character in path for character in "*?["):
            return "parquet"
        return format_of_table(path) or "parquet"


def _bad_value(option: str, text: str, hint: str) -> VariantError:
    return bad_option(f"option {option} is {text!r}: {hint}")
