"""Namespaces and tables of catalogs: created and dropped."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TypedDict, Unpack

import pyarrow as pa

from parquet_variant.errors import IcebergError
from parquet_variant.support.keywords import with_keywords
from parquet_variant.tables.iceberg.catalogs.opening import CatalogOption, find_table, open_catalog
from parquet_variant.tables.iceberg.catalogs.rest import RestCatalog
from parquet_variant.tables.iceberg.catalogs.sql import SqlCatalog
from parquet_variant.tables.iceberg.writing.create import Names
from parquet_variant.tables.iceberg.writing.write import write


class CreateKeywords(TypedDict, total=False):
    """The keywords of `write` for a new table."""

    partition_by: Names
    sort_by: Names
    properties: Mapping[str, str] | None
    location: str | None
    catalog: CatalogOption
    storage_options: Mapping[str, str] | None


def create_namespace(namespace: str, *, catalog: CatalogOption) -> None:
    """Create a namespace in a catalog, unless it exists.

    Parameters
    ----------
    namespace
        Its name, with dots between its parts.
    catalog
        The catalog; see `snapshot`.

    Raises
    ------
    IcebergError
        ``"bad-catalog"``, ``"no-connection"``.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     catalog = {"type": "sql", "uri": f"sqlite:///{folder}/catalog.db", "warehouse": folder}
    ...     pv.create_namespace("db", catalog=catalog)
    ...     _ = pv.write("db.events", {"n": [1]}, catalog=catalog)
    ...     pv.open("db.events", catalog=catalog).to_arrow().to_pydict()
    {'n': [1]}
    """
    opened = open_catalog(catalog)
    if not isinstance(opened, RestCatalog | SqlCatalog):
        raise IcebergError("a directory has no namespaces: give catalog=", reason="bad-catalog")
    opened.create_namespace(tuple(namespace.split(".")))


def drop_table(
    table: str | os.PathLike[str],
    *,
    catalog: CatalogOption = None,
    storage_options: Mapping[str, str] | None = None,
) -> None:
    """Remove a table from its catalog; its data files are kept; see `IcebergTable.drop`."""
    opened, identifier = find_table(table, catalog, storage_options)
    opened.drop(identifier)


@with_keywords(CreateKeywords, write)
def create_table(table: str | os.PathLike[str], schema: pa.Schema, **options: Unpack[CreateKeywords]) -> None:
    """Create an empty table; see `pv.create`."""
    if not isinstance(schema, pa.Schema):
        raise IcebergError(f"schema is a {type(schema).__name__}: give a pyarrow schema", reason="bad-schema")
    write(table, schema.empty_table(), mode="error", **options)
