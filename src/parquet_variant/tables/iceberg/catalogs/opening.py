"""Finding the catalog and the table that a user names: by a name in a catalog, a directory, or a metadata file.

Owns reading the arguments ``table`` and ``catalog`` of public functions.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from parquet_variant.errors import IcebergError, check_mapping
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.tables.iceberg.catalogs.catalog import Catalog, LoadedTable
from parquet_variant.tables.iceberg.catalogs.documents import DirectoryCatalog, SqlCatalog
from parquet_variant.tables.iceberg.catalogs.rest import RestCatalog
from parquet_variant.tables.iceberg.locations import storage_options_of

CatalogOption: TypeAlias = "str | Mapping[str, Any] | Catalog | None"
_KINDS: dict[str, type[RestCatalog | SqlCatalog]] = {"rest": RestCatalog, "sql": SqlCatalog}


def open_catalog(catalog: CatalogOption) -> Catalog | None:
    """Return the catalog that an argument names; None for None.

    `catalog`: properties by PyIceberg's names, ``type`` among them, the name of a catalog in PyIceberg's configuration,
      or a catalog.
    Raises `IcebergError`: reason ``"bad-catalog"``.
    """
    if catalog is None or isinstance(catalog, Catalog):
        return catalog
    if isinstance(catalog, str):
        with optional_libraries("catalogs by name"):
            from pyiceberg.utils.config import Config
        configured = Config().get_catalog_config(catalog)
        if configured is None:
            raise IcebergError(
                f"PyIceberg's configuration has no catalog {catalog!r}: add it to .pyiceberg.yaml or to the "
                "environment, or give its properties as a dict",
                reason="bad-catalog",
            )
        name, properties = catalog, dict(configured)
    else:
        check_mapping("catalog", catalog, IcebergError)
        properties = dict(catalog)
        name = str(properties.pop("name", "default"))
    uri = str(properties.get("uri") or "")
    is_rest, is_sql = uri.startswith(("http://", "https://")), uri.startswith(("sqlite", "postgresql"))
    kind = properties.get("type") or ("rest" if is_rest else "sql" if is_sql else None)
    if kind == "glue":
        raise IcebergError(
            f"the catalog {name!r} is of type 'glue', whose client in PyIceberg cannot hold a Variant: use the REST "
            "endpoint of Glue, with type='rest', uri='https://glue.REGION.amazonaws.com/iceberg', "
            "rest.sigv4-enabled='true', rest.signing-name='glue' and rest.signing-region",
            reason="bad-catalog",
        )
    if kind not in _KINDS:
        raise IcebergError(
            f"the catalog {name!r} is of type {kind!r}: use {', '.join(_KINDS)}, or name the table by its directory",
            reason="bad-catalog",
        )
    if not uri:
        raise IcebergError(f"the catalog {name!r} has no uri", reason="bad-catalog")
    return _KINDS[kind](name, properties)


def catalog_properties(catalog: CatalogOption) -> dict[str, str]:
    """Return a catalog as properties by PyIceberg's names, with which another process can open it.

    `catalog`: as for `open_catalog`, which raises the errors.

    >>> catalog_properties({"type": "rest", "uri": "http://127.0.0.1:8181"})
    {'type': 'rest', 'name': 'default', 'uri': 'http://127.0.0.1:8181'}
    """
    opened = open_catalog(catalog)
    if not isinstance(opened, RestCatalog | SqlCatalog):
        return {}
    kind = next(kind for kind, catalog_class in _KINDS.items() if isinstance(opened, catalog_class))
    return {"type": kind, "name": opened.name} | {name: str(value) for name, value in opened.properties.items()}


def find_table(
    table: str | os.PathLike[str],
    catalog: CatalogOption = None,
    storage_options: Mapping[str, str] | None = None,
) -> tuple[Catalog, tuple[str, ...]]:
    """Return the catalog and the identifier of a table that may not exist.

    Raises `IcebergError`: reason ``"bad-argument"`` or ``"bad-catalog"``.
    """
    text = os.fspath(table) if isinstance(table, (str, os.PathLike)) else ""
    if not isinstance(text, str) or not text:
        raise IcebergError(
            f"{table!r} is not a table: give namespace.table with catalog=, or a path or URI", reason="bad-argument"
        )
    check_mapping("storage_options", storage_options or {}, IcebergError)
    options = dict(storage_options or {})
    opened = open_catalog(catalog)
    if opened is None:
        # Iceberg's names of properties are accepted next to obstore's.
        options = storage_options_of(options) | {name: value for name, value in options.items() if "." not in name}
        return DirectoryCatalog(options), (text,)
    parts = tuple(text.split("."))
    if len(parts) < 2 or not all(parts):
        raise IcebergError(f"{text!r} is not a table of a catalog: write namespace.table", reason="bad-argument")
    return opened, parts


def load_table(
    table: str | os.PathLike[str] | LoadedTable,
    catalog: CatalogOption = None,
    storage_options: Mapping[str, str] | None = None,
    *,
    allow_outside: bool = False,
) -> LoadedTable:
    """Load a table as it is now. Raises `IcebergError`: reason ``"no-such-table"``, and as `find_table`."""
    if isinstance(table, LoadedTable):
        return table
    opened, identifier = find_table(table, catalog, storage_options)
    loaded = opened.load(identifier)
    options = {**loaded.options, **(storage_options or {})}
    return replace(loaded, options=options, allow_outside=allow_outside)
