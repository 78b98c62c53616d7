"""`write`, `create` and `rewrite`: new files and tables of any format.

Owns the choice of the format. Leaves the work to the functions of the formats.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, Unpack, get_args

from pyarrow import fs

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import bad_option, check_choice, strings_of
from parquet_variant.files.parquet.writing.conform import WriterKeywords
from parquet_variant.files.vortex.paths import vortex_files
from parquet_variant.io.parallel import Engine
from parquet_variant.ops.interop.tables import with_variant_columns
from parquet_variant.support.lazy_names import has_method, registered_method
from parquet_variant.support.options import AnyLayout, OutputFormat, TableMode, VortexLayout
from parquet_variant.tables.opening import format_of_table, open
from parquet_variant.tables.row_input import Batch, SchemaOption
from parquet_variant.tables.table.base import accepted_keywords
from parquet_variant.tables.table.table import Table


class WriteKeywords(WriterKeywords, total=False):
    """The keywords of `write` that only some formats have."""

    partition_by: Any
    properties: Mapping[str, Any] | None
    where: str | None
    schema_mode: Literal["merge"] | None
    batch: Batch | None
    file_bytes: int | None
    catalog: Any
    location: str | None
    storage_options: Mapping[str, str] | None
    preview: bool
    layout: AnyLayout
    json: Collection[str]
    exact: bool
    compact: bool


def write(
    path: Any,
    data: Any,
    *,
    format: OutputFormat | None = None,
    mode: TableMode = "error",
    column: str | None = None,
    schema: SchemaOption | Mapping[str, Any] = None,
    policy: Any = None,
    variant_columns: Sequence[str] | str = (),
    **options: Unpack[WriteKeywords],
) -> Any:
    """Write rows to a file or table, which is created if it does not exist.

    Parameters
    ----------
    path
        The file, the directory or URI of a table, or ``namespace.table`` of an Iceberg catalog. A file appears only
        when it is complete.
    data
        A `VariantArray`; a mapping of column names to `VariantArray` or Arrow arrays; a pyarrow table whose Variant
        columns are structs with the extension name ``arrow.parquet.variant``; a data frame of pandas, polars or Spark.
        Tables also take an iterable of these.
    format
        ``"parquet"``, ``"delta"``, ``"iceberg"`` or ``"vortex"``. By default that of the table at the path, Vortex for
        names that end in ``.vortex``, Iceberg with a catalog, or else Parquet.
    mode
        What to do if the destination exists: ``"error"``, ``"append"``, ``"overwrite"`` (of a table: replace its rows)
        or ``"ignore"``. ``"replace"`` gives an Iceberg table a new definition and keeps its history. A single file
        cannot be appended to.
    column
        The name of the column, if `data` is a `VariantArray` (default: ``v``); of a Spark DataFrame the VARIANT or JSON
        column, by default the only one.
    schema
        Shredding schema: a `ShreddingSchema`, its DDL, or ``"infer"``; a mapping by dotted name for several Variant
        columns. By default files keep every column as it is, and the schema of tables is inferred from the first rows.
    policy
        The policy of the inference, for tables, Vortex and DataFrames: a name such as ``"auto"`` or a policy object.
    variant_columns
        Columns of a data frame, table or mapping whose values become Variants, such as dicts and values of several
        types in pandas, which would become a struct or be refused.
    **options
        Parquet files: ``layout`` (``"final"``, ``"unshredded"``, ``"draft-paths"`` or ``"draft-object"``), and options
        of `VariantWriter`: ``compression`` (``"zstd"``), ``compression_level``, ``row_group_bytes``, ``annotation``
        (without it, readers that do not support Variant see a struct), ``sort_by`` and ``bloom_filters`` (paths),
        ``variants`` (structs that are Variants without the extension name), ``writer``, ``filesystem``.

        Tables: ``partition_by``, ``properties``, ``batch``, ``schema_mode``, ``file_bytes``, ``storage_options`` and
        options of files. Delta: ``where`` (with ``mode="overwrite"``: replace only the rows for which it is true),
        ``preview``. Iceberg: ``catalog``, ``location``, ``sort_by`` (``"ts desc"``, ``"bucket(4, id)"``), and
        partition fields such as ``"day(ts)"`` and ``"bucket(16, id)"``.

        Vortex files: ``layout`` (``"variant"``: Vortex's Variant type, in which scalar fields at the top with one type
        are typed; ``"struct"``: the storage struct, in which every shredded path is a column; ``"auto"``, the default:
        ``"variant"`` if vortex-data preserves the column), ``json`` (names of string columns that hold JSON), ``exact``
        (keep their original texts), ``compact`` (smaller, slower encodings).

    Returns
    -------
    FileInfo, VortexFileInfo or CommitResult
        Rows and bytes of a file, or the version of a table. None for a Spark DataFrame.

    Raises
    ------
    VariantFileError, TableError
        If the destination exists (``"exists"``, ``"table-exists"``) or cannot be created.
    SchemaError
        If the schema is invalid, or the columns of the data do not have one type.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> rows = pv.parse_json(['{"a": 1}', "null", None])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     info = pv.write(f"{folder}/a.parquet", rows, schema="a bigint")
    ...     _ = pv.write(f"{folder}/table", {"v": rows}, format="delta")
    ...     pv.write(f"{folder}/table", {"v": rows}, mode="append").version
    1
    >>> info.rows, info.variants
    (3, (('v',),))
    """
    if format is None:
        format = format_of_destination(path, **options)
    check_choice("format", format, get_args(OutputFormat))
    check_choice("schema_mode", options.get("schema_mode"), ("merge",), optional=True)
    keywords: dict[str, Any] = {"schema": schema, "policy": policy, "mode": mode, **options}
    if hasattr(data, "toArrow") and hasattr(data, "sparkSession"):
        return registered_method("write.spark")(data, path, format=format, column=column, **keywords)
    if names := strings_of("variant_columns", variant_columns):
        data = with_variant_columns(data, names)
    if isinstance(data, VariantArray):
        data = {column or "v": data}
    elif column is not None:
        keywords["column"] = column
    function = registered_method(f"write.{format}")
    return function(path, data, **accepted_keywords(function, keywords, f"write for the format {format}"))


def format_of_destination(
    path: Any,
    *,
    catalog: Any = None,
    filesystem: Any = None,
    storage_options: Mapping[str, str] | None = None,
    **_: Any,
) -> OutputFormat:
    """Return the format of the rows that are written to a path: that of what is there, else by its name."""
    if catalog is not None:
        return "iceberg"
    if filesystem is not None or not isinstance(path, str | os.PathLike) or str(path).endswith(".parquet"):
        return "parquet"
    return format_of_table(path, storage_options) or ("vortex" if vortex_files(path) else "parquet")


def create(
    path: str | os.PathLike[str],
    schema: Any,
    *,
    format: Literal["delta", "iceberg"] = "delta",
    partition_by: Any = None,
    sort_by: Any = None,
    properties: Mapping[str, Any] | None = None,
    shredding: bool = True,
    preview: bool = False,
    name: str | None = None,
    description: str | None = None,
    location: str | None = None,
    catalog: Any = None,
    storage_options: Mapping[str, str] | None = None,
) -> Table:
    """Create an empty table.

    Parameters
    ----------
    path
        The directory or URI of the table, or ``namespace.table`` of an Iceberg catalog.
    schema
        Columns: DDL (``"id BIGINT NOT NULL, v VARIANT"``, for Delta), an Arrow schema whose Variant fields
        carry the extension name ``arrow.parquet.variant``; for Delta also
        a Delta schema or schema string. Identity, generation, default and invariant metadata of its columns enables the
        features that it needs.
    format
        ``"delta"`` or ``"iceberg"``.
    partition_by
        The partition column, or several; for Iceberg also fields such as ``"day(ts)"``.
    sort_by
        The sort order of an Iceberg table.
    properties
        Table properties, such as ``delta.appendOnly``.
    shredding
        Set ``delta.enableVariantShredding`` and the feature that it needs; a value in `properties` wins.
    preview
        Name the feature ``variantShredding-preview``, for readers that know only this name.
    name, description
        Name and description of a Delta table.
    location
        The location of an Iceberg table; chosen by the catalog by default.
    catalog
        The catalog of an Iceberg table, as for `pv.open`.
    storage_options
        Configuration of the object store.

    Raises
    ------
    TableError
        ``"exists"`` or ``"table-exists"`` if the table exists; ``"bad-schema"``, ``"unsupported-type"`` for invalid
        columns; ``"bad-partitioning"``, ``"bad-property"``.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pv.create(folder, pa.schema([("n", pa.int64())])).version
    0
    """
    if not has_method(f"create.{format}"):
        raise bad_option(f"format is {format!r}: use 'delta' or 'iceberg'; files are created by pv.write")
    keywords = {
        "partition_by": partition_by,
        "sort_by": sort_by,
        "properties": properties,
        "shredding": None if shredding else False,
        "preview": preview or None,
        "name": name,
        "description": description,
        "location": location,
        "catalog": catalog,
        "storage_options": storage_options,
    }
    function = registered_method(f"create.{format}")
    function(path, schema, **accepted_keywords(function, keywords, f"create for the format {format}"))
    return open(path, format=format, catalog=catalog, storage_options=storage_options)


def rewrite(
    source: Any,
    dest: Any,
    *,
    format: Literal["parquet", "vortex"] | None = None,
    layout: AnyLayout | None = None,
    filesystem: fs.FileSystem | None = None,
    column: str | None = None,
    engine: Engine | None = None,
    **options: Any,
) -> list[Any]:
    """Rewrite Parquet or Vortex files; see `Table.rewrite`."""
    from parquet_variant.files.parquet.operations.rewrite import rewrite as rewrite_parquet
    from parquet_variant.files.vortex.rewriting import rewrite as rewrite_vortex

    options |= {"layout": layout, "column": column, "engine": engine}
    is_local = filesystem is None and not isinstance(source, list | tuple)
    to_vortex = format == "vortex" or str(dest).endswith(".vortex") or layout in get_args(VortexLayout)
    if to_vortex or (is_local and vortex_files(source)):
        return rewrite_vortex(source, dest, format=format, **options)
    return rewrite_parquet(source, dest, filesystem=filesystem, **options)
