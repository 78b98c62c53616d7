"""`open`: recognise the format of a data set, and return its `Table`.

This is the only module that recognises formats. Leaves the operations to the classes in `table`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, TypeAlias, Unpack, get_args

from pyarrow import fs

from parquet_variant.arrays.chunked_array import ChunkedVariantArray
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import TableError, VariantFileError, bad_option, check_choice, check_names, without_secrets
from parquet_variant.files.parquet.format.files import locate
from parquet_variant.files.vortex.paths import is_vortex_file, local_files
from parquet_variant.io.directories import ICEBERG_METADATA, has_delta_log, has_iceberg_metadata
from parquet_variant.io.filesystems import filesystem_of, read_errors
from parquet_variant.ops.interop.tables import is_rows
from parquet_variant.support.lazy_names import registered_method
from parquet_variant.tables.storage import open_storage
from parquet_variant.tables.table.base import OpenOptions, TableFormat, TextKeywords
from parquet_variant.tables.table.table import Table

_GLOB = re.compile(r"[*?\[]")
_Log: TypeAlias = Literal["delta", "iceberg"]
# The property of published Iceberg tables, with the format of the source as the value.
PUBLISHED_FROM = "parquet-variant.published-from"


def open(
    source: Any,
    *,
    format: TableFormat | None = None,
    column: str | None = None,
    version: int | None = None,
    at: Any = None,
    branch: str | None = None,
    tag: str | None = None,
    catalog: Any = None,
    partition: Mapping[str, str] | None = None,
    storage_options: Mapping[str, str] | None = None,
    filesystem: fs.FileSystem | None = None,
    engine: Any = None,
    allow_outside: bool = False,
    **text: Unpack[TextKeywords],
) -> Table:
    """Open files, a table or rows in memory; no values are read.

    Parameters
    ----------
    source
        Parquet, Vortex, JSON or CSV files: a path, directory, glob, URI or list of these; the path or URI of a Delta or
        Iceberg table; ``namespace.table`` of an Iceberg catalog, or the path of a metadata file; the ``snapshot`` of
        a table; a `VariantArray`, Arrow data, a data frame of pandas, polars or Spark, or columns by name.
    format
        The format, if it is known: ``"parquet"``, ``"delta"``, ``"iceberg"``, ``"vortex"``, ``"json"`` or
        ``"memory"``. By default it is recognised; of Delta and Iceberg tables that share a directory, the one that the
        other was published from.
    column
        The Variant column, if there are several.
    version
        The version of a Delta table, or the id of a snapshot of an Iceberg table (default: the newest, also after
        later commits).
    at
        The version that was current at a time: milliseconds since 1970, ISO text or a datetime. A time without
        a time zone is in UTC.
    branch, tag
        The branch or tag of an Iceberg table. Changes are committed to the branch.
    catalog
        Properties of an Iceberg catalog by PyIceberg's names (``{"type": "rest", "uri": …}``), or the name of a
        catalog in PyIceberg's configuration.
    partition
        Only the files with these values of partition columns, as text: ``{"day": "2026-01-31"}``, for `Table.diff`,
        `Table.check` and `Table.contract`.
    storage_options
        Configuration of the object store of a Delta or Iceberg table.
    filesystem
        A pyarrow filesystem of Parquet files.
    engine
        A Spark session: operations run as its jobs, and ``to_spark`` returns DataFrames. By default they run in threads
        of this process.
    allow_outside
        Also read files outside of the table that its log or metadata names (shallow clones); by default these are
        refused.
    **text
        How JSON is read, as for `pv.profile`: ``input_format``, ``root``, ``json_column``, ``on_error``, …

    Returns
    -------
    Table
        `ParquetTable`, `DeltaTable`, `IcebergTable`, `VortexTable`, `JsonTable` or `MemoryTable`.

    Raises
    ------
    VariantFileError
        ``"not-found"`` if nothing exists at a path; ``"not-a-table"`` if `version` or `at` is given for data without
        versions.
    VariantError
        For options that contradict each other.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.write(f"{folder}/events", {"v": pv.parse_json(['{"n": 1}'])}, format="delta")
    ...     events = pv.open(f"{folder}/events")
    ...     events.format, events.version, len(events), events.paths()
    ('delta', 0, 1, {'$.n': 'bigint'})
    """
    if isinstance(source, Table):
        return source
    check_choice("format", format, get_args(TableFormat), optional=True)
    check_names("option", text, TextKeywords.__annotations__)
    if version is not None and at is not None:
        raise bad_option("version= and at= each name a version: give one of them")
    options = OpenOptions(
        column=column,
        version=version,
        at=at,
        branch=branch,
        tag=tag,
        catalog=catalog,
        partition=partition,
        storage_options=storage_options,
        filesystem=filesystem,
        engine=engine,
        allow_outside=allow_outside,
        text=text,
    )
    kind = format or recognised_format(source, options)
    if kind not in ("delta", "iceberg") and any(option is not None for option in (version, at, branch, tag)):
        name = os.fspath(source) if isinstance(source, str | os.PathLike) else f"a {type(source).__name__}"
        raise VariantFileError(
            f"{name} is not a Delta or Iceberg table, so it has no versions", reason="not-a-table", file=name
        )
    if kind == "memory" and isinstance(source, str | os.PathLike):
        source, options = registered_method("Table.read_csv")(source), replace(options, text={"input_format": "csv"})
    table: Table = registered_method(f"Table.{kind}")(source, options)  # The class is imported on first use.
    return table


def recognised_format(source: Any, options: OpenOptions) -> TableFormat:
    """Return the format of a source; raise `VariantFileError` for a missing path, or neither a path nor data."""
    if options.catalog is not None:
        return "iceberg"
    is_text = options.text.get("json_column") is not None or options.text.get("input_format", "auto") != "auto"
    if isinstance(source, str | os.PathLike):
        with read_errors(os.fspath(source)):
            return "json" if is_text else _format_of_path(source, options)
    if isinstance(source, list | tuple) and all(isinstance(path, str | os.PathLike) for path in source):
        return (
            "json"
            if is_text or (options.filesystem is None and registered_method("Table.is_json")(source))
            else "parquet"
        )
    module = type(source).__module__
    if type(source).__name__ == "Snapshot" and module.startswith(f"{__package__}."):
        return "delta" if module.startswith(f"{__package__}.delta.") else "iceberg"
    if hasattr(source, "toArrow") and hasattr(source, "sparkSession"):
        return "spark"
    if isinstance(source, VariantArray | ChunkedVariantArray) or is_rows(source):
        return "memory"
    raise VariantFileError(
        f"cannot open a {type(source).__name__}: give a path, the snapshot of a table, a VariantArray or Arrow data",
        reason="bad-path",
    )


def _format_of_path(path: str | os.PathLike[str], options: OpenOptions) -> TableFormat:
    # A local file named *.parquet needs no further check.
    if options.filesystem is not None or (str(path).endswith(".parquet") and os.path.isfile(path)):  # noqa: PTH113
        return "parquet"
    table = format_of_table(path, options.storage_options)
    if table is not None:
        return table
    if options.storage_options:
        raise TableError(
            f"{without_secrets(os.fspath(path))} is not a Delta or Iceberg table: check the path, or leave out "
            "storage_options=, which files do not have",
            reason="not-a-table",
        )
    if files := local_files(path):
        return "vortex" if is_vortex_file(files[0]) else "parquet"
    if registered_method("Table.is_csv")(path):
        return "json" if options.text else "memory"
    if registered_method("Table.is_json")(path):
        return "json"
    if _GLOB.search(os.fspath(path)) is None:
        filesystem, location = filesystem_of(path)
        if filesystem.get_file_info(location).type == fs.FileType.NotFound:
            locate(path)  # raises the error of a missing path
    return "parquet"


def format_of_table(path: Any, storage_options: Mapping[str, str] | None = None) -> _Log | None:
    """Return ``"delta"`` or ``"iceberg"`` if a path is a table, else None.

    In a directory with both, it is the format that the other one was published from.

    >>> format_of_table("examples") is None, format_of_table("t/metadata/v1.metadata.json")
    (True, 'iceberg')
    """
    if not isinstance(path, str | os.PathLike):
        return None
    if str(path).endswith(ICEBERG_METADATA):
        return "iceberg"
    formats = [format for format in get_args(_Log) if _has_table(path, format, storage_options)]
    if len(formats) > 1:
        return "iceberg" if published_from(path, "delta", storage_options) == "iceberg" else "delta"
    return formats[0] if formats else None


def published_from(path: str | os.PathLike[str], format: str, options: Mapping[str, str] | None = None) -> str | None:
    """Return the format that the table of a format at a path was published from; None if it was not published."""
    if not _has_table(path, format, options):
        return None
    try:
        if format == "delta":
            from parquet_variant.tables.delta.log.snapshot import load_snapshot
            from parquet_variant.tables.delta.protocol.features import PUBLISHED_FROM_PROPERTY

            current = load_snapshot(open_storage(path, options), files=False)
            return current.metadata.configuration.get(PUBLISHED_FROM_PROPERTY)
        from parquet_variant.tables.iceberg.catalogs.opening import load_table

        return load_table(path, None, options).metadata.properties.get(PUBLISHED_FROM)
    except TableError:
        return None


def _has_table(path: str | os.PathLike[str], format: str, options: Mapping[str, str] | None) -> bool:
    """Return whether a path is a table of a format; `options` configure its object store."""
    if format not in get_args(_Log):
        return False
    if options is None or (isinstance(options, Mapping) and not options):
        return has_delta_log(path) if format == "delta" else has_iceberg_metadata(path)
    storage = open_storage(path, options)
    if format == "delta":
        return any(True for _ in storage.list("_delta_log"))
    is_metadata = str(path).endswith(ICEBERG_METADATA)
    return is_metadata or any(file.path == "metadata/version-hint.text" for file in storage.list("metadata"))
