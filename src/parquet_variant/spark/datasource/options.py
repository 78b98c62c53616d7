"""The options of the `variant` data source, as Spark hands them over: text by name.

Owns their names, what they mean and the errors for those that nobody knows. Leaves doing what they say to the reader
and the writer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from parquet_variant.encoding.cast.zones import zone_of
from parquet_variant.errors import VariantError, choice_of
from parquet_variant.io.filesystems import absolute, filesystem_of, has_delta_log
from parquet_variant.parquet.writing.options import WriterOptions
from parquet_variant.query.selection import split_type
from parquet_variant.schema.shredding_schema import ShreddingSchema

# What Spark adds by itself, or users give for Spark.
_OF_SPARK = frozenset({"path", "paths", "checkpointlocation", "queryname", "truncate", "serialization.format"})


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a write."""

    path: str  # The directory.
    column: str | None  # The JSON or VARIANT column; by default the only one there is.
    schema: ShreddingSchema | None  # What to shred; None if it is to be inferred from each file's first rows.
    write: Mapping[str, Any] = field(default_factory=dict)  # Arguments of `VariantWriter`.
    checkpoint: str | None = None  # A stream's checkpoint directory, as the user named it.
    delta: bool = False  # Whether the target is a Delta table.
    partition_by: tuple[str, ...] = ()  # Partition columns: names of columns, or JSON paths such as ``day=$.ts:date``.
    # The id under which a Delta table remembers a stream's batches; by default it is the query's own.
    application: str | None = None

    def stream_id(self) -> str:
        """A name for the stream: the same when it is started again, another one for another checkpoint.

        Raises `VariantError` with reason ``"bad-option"`` if there is no checkpoint to tell streams apart by.
        """
        if self.checkpoint is None:
            raise VariantError(
                "a stream needs the option checkpointLocation, by which its batches are known", reason="bad-option"
            )
        identity = self.checkpoint
        filesystem, path = filesystem_of(absolute(self.checkpoint))
        # Spark keeps the query's id there; a checkpoint that was deleted and made again gets another.
        with suppress(OSError), filesystem.open_input_stream(f"{path}/metadata") as stream:
            identity = stream.read().decode()
        return hashlib.sha256(identity.encode()).hexdigest()[:12]

    @classmethod
    def of(cls, options: Mapping[str, str]) -> WriteOptions:
        """Read the options; names in any case.

        Raises `VariantError` with reason ``"bad-option"`` for an unknown name or a value that cannot be read.
        """
        texts = _Texts(options, _WRITE_OPTIONS, "write")
        write = {name: value for option, name, read in _FOR_WRITER if (value := texts.value(option, read)) is not None}
        WriterOptions.of(write)  # on the driver, not in the first task
        layout = texts.value("layout")
        if layout not in (None, "final", "unshredded"):
            raise _bad("layout", layout, "use final or unshredded")
        path = texts.path()
        return cls(
            path,
            texts.value("column"),
            ShreddingSchema.variant() if layout == "unshredded" else texts.value("schema", _schema),
            write,
            texts.value("checkpointLocation"),
            is_delta(texts.by_name, path),
            tuple(texts.value("partitionBy", _names) or ()),
            texts.value("txnAppId"),
        )


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a read."""

    sources: tuple[str, ...]  # Files, directories or globs.
    column: str | None  # The variant column that `paths` go into; by default the only one.
    # Output column to variant path and, where it is not left to the read's schema, type. The option is called
    # ``columns`` or ``paths``; the latter Spark refuses beside ``load(path)`` in sessions where
    # ``spark.sql.legacy.pathOptionBehavior.enabled`` is false; registering the data source sets it.
    paths: Mapping[str, tuple[str, str | None]] | None
    partition_bytes: int = 64 << 20  # Compressed bytes of the needed columns that one task reads.
    delta: bool = False  # Whether the source is a Delta table.
    # Which version of it; by default the newest.
    version: int | None = None
    timestamp: str | None = None
    # The time zone of casts between instants and local times. A data source is not told the session's, so
    # `pv.spark.read` gives it as an option.
    zone: str = "UTC"
    # The first version that a stream reads; by default all that is there is its first batch.
    starting_version: int | None = None
    # A filter on the output columns, as text; rows that do not satisfy it are not given, and files and row groups that
    # hold none are not read.
    where: str | None = None
    # Whether the columns are those of all files, null where a file lacks one; else those of the first file.
    merge_schema: bool = False
    partitions: bool = True  # Whether ``day=2026-01-31/`` is a column; not with ``recursiveFileLookup``, as in Spark.
    max_files: int | None = None  # Files of a directory that a stream takes at a time; by default all that are new.

    @classmethod
    def of(cls, options: Mapping[str, str], stream: bool | None = None) -> ReadOptions:
        """Read the options, of a stream, of a batch, or of either; names in any case.

        Raises `VariantError` with reason ``"bad-option"`` for an unknown name or a value that cannot be read.
        """
        texts = _Texts(options, _READ_OPTIONS, "read")
        for name, of_streams in _VERSIONS.items():
            if stream is not None and of_streams != stream and (text := texts.value(name)) is not None:
                hint = "it is of streams; use versionAsOf" if of_streams else "streams have startingVersion"
                raise _bad(name, text, hint)
        columns, text = "columns", texts.value("paths") or ""
        if text.lstrip().startswith("["):
            # Not our option: `load([…])` says so, that several files or directories are to be read.
            sources = tuple(absolute(source) for source in texts.value("paths", json.loads))
        else:
            sources = (texts.path(),)
            columns = "columns" if texts.value("columns") or not text else "paths"
        delta = len(sources) == 1 and is_delta(texts.by_name, sources[0])
        if not delta and (wrong := [name for name in _VERSIONS if texts.value(name) is not None]):
            raise _bad(wrong[0], texts.value(wrong[0]), "it is of Delta tables, and this is none")
        if delta and (most := texts.value("maxFilesPerTrigger")) is not None:
            raise _bad("maxFilesPerTrigger", most, "it is of directories; a Delta table's stream goes by versions")
        zone = texts.value("timeZone") or "UTC"
        zone_of(zone)  # on the driver
        return cls(
            sources,
            texts.value("column"),
            texts.value(columns, _projection) if texts.value(columns) else None,
            texts.value("partitionBytes", _at_least_one) or 64 << 20,
            delta,
            texts.value("versionAsOf", _whole),
            texts.value("timestampAsOf"),
            zone,
            texts.value("startingVersion", _whole),
            texts.value("where"),
            bool(texts.value("mergeSchema", _flag)),
            not texts.value("recursiveFileLookup", _flag),
            texts.value("maxFilesPerTrigger", _at_least_one),
        )


def is_delta(options: Mapping[str, str], path: str) -> bool:
    """Whether the option `format` says so, or the log is there."""
    kind = options.get("format")
    if kind not in (None, "parquet", "delta"):
        raise _bad("format", str(kind), "use parquet or delta")
    if kind is not None or any(character in path for character in "*?["):
        return kind == "delta"
    return has_delta_log(path)


def _flag(text: str) -> bool:
    """``true`` or ``false``, in any case."""
    try:
        return {"true": True, "false": False}[text.strip().lower()]
    except KeyError:
        raise ValueError("true or false") from None


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("a whole number") from None


def _at_least_one(text: str) -> int:
    number = _whole(text)
    if number < 1:
        raise ValueError("a positive number")
    return number


def _names(text: str) -> list[str]:
    """Names as a JSON list, or with commas between them; each once."""
    names = json.loads(text) if text.lstrip().startswith("[") else [name.strip() for name in text.split(",")]
    if not names or not all(isinstance(name, str) and name for name in names) or len({*names}) < len(names):
        raise ValueError("names with commas between them, each once")
    return list(names)


def _schema(text: str) -> ShreddingSchema:
    return ShreddingSchema.from_json(text) if text.lstrip().startswith(("{", '"')) else ShreddingSchema.from_ddl(text)


def _projection(text: str) -> dict[str, tuple[str, str | None]]:
    read = json.loads(text)
    if not isinstance(read, dict):
        raise ValueError("not an object")
    paths = {}
    for name, column in read.items():
        path, kind = split_type(column) if isinstance(column, str) else column
        if not isinstance(path, str) or not isinstance(kind, str | None):
            raise ValueError(f"column {name}")
        paths[name] = (path, kind)
    return paths


def is_ordinary(path: tuple[str, str | None]) -> bool:
    """Whether an output column is an ordinary column of the files, not a path: a name alone, without ``$``."""
    return path[1] is None and not path[0].startswith("$")


# Option, argument of `VariantWriter`, and how its text is read.
_FOR_WRITER = (
    ("compression", "compression", str),
    ("compressionLevel", "compression_level", _whole),
    ("rowGroupBytes", "row_group_bytes", _whole),
    ("sortBy", "sort_by", _names),
    ("bloomFilters", "bloom_filters", _names),
    ("writer", "writer", str),
)
_OF_FILES = [option for option, *_ in _FOR_WRITER]
_WRITE_OPTIONS = ("column", "schema", "layout", *_OF_FILES, "format", "partitionBy", "txnAppId")
_VERSIONS = {"versionAsOf": False, "timestampAsOf": False, "startingVersion": True}  # whether it is of streams
_OF_TABLES = ("format", *_VERSIONS)
_OF_FOLDERS = ("mergeSchema", "recursiveFileLookup", "maxFilesPerTrigger")
_READ_OPTIONS = ("column", "columns", "paths", "where", "partitionBytes", "timeZone", *_OF_FOLDERS, *_OF_TABLES)
_OBJECT = """an object of column to path and type, as {"mag": ["$.properties.mag", "double"]}"""
_EXPECTED = {"columns": _OBJECT, "paths": _OBJECT}

_NO_TABLES = (
    "Spark does not tell a Python data source the path of a catalog's table, so such a table cannot be read: use "
    "CREATE TEMPORARY VIEW name USING variant OPTIONS (path '...')"
)


class _Texts:
    """What is given, by name: in any case, as in Spark, and with the underscores of our parameters, too."""

    def __init__(self, options: Mapping[str, str], known: tuple[str, ...], what: str) -> None:
        self.by_name = {name.lower().replace("_", ""): value for name, value in options.items()}
        if "provider" in self.by_name:  # which Spark names where a table is made, and nothing at all where one is read
            raise VariantError(_NO_TABLES, reason="bad-option")
        unknown = self.by_name.keys() - _OF_SPARK - {name.lower() for name in known}
        if unknown:
            name = min(unknown)
            raise VariantError(f"unknown {what} option {name!r}: {choice_of(name, known)}", reason="bad-option")

    def value(self, option: str, read: Callable[[str], Any] = str) -> Any:
        """What an option says; None if it is not there."""
        text = self.by_name.get(option.lower())
        try:
            return None if text is None else read(text)
        except (ValueError, TypeError) as error:
            raise _bad(option, str(text), f"give {_EXPECTED.get(option, 'another value')} ({error})") from None

    def path(self) -> str:
        """Where the files are."""
        if not self.by_name.get("path"):
            raise VariantError(f"no path: name one in load() or save(). {_NO_TABLES}", reason="bad-option")
        return absolute(self.by_name["path"])


def _bad(option: str, text: str, hint: str) -> VariantError:
    return VariantError(f"option {option} is {text!r}: {hint}", reason="bad-option")
