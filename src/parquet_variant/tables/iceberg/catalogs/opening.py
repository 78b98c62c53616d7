"""Finding the catalog and the table that a user names: by a name in a catalog, a directory, or a metadata file.

Owns reading the arguments ``table`` and ``catalog`` of public functions, and REST catalogs over the session of
PyIceberg (its configuration, OAuth2, bearer tokens, TLS and SigV4): requests for tables, whose schemas PyIceberg
refuses if they hold a Variant, and what the answers mean.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn, TypeAlias
from urllib.parse import quote, unquote

from parquet_variant.errors import IcebergError, check_mapping, first_line, without_secrets
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.tables.iceberg.catalogs import catalog as catalogs
from parquet_variant.tables.iceberg.catalogs.catalog import Catalog
from parquet_variant.tables.iceberg.locations import storage_options_of
from parquet_variant.tables.iceberg.metadata import updates
from parquet_variant.tables.iceberg.metadata.table_metadata import TableMetadata

_OK, _NO_CONTENT = 200, 204
_NOT_FOUND, _CONFLICT, _UNAUTHORIZED, _FORBIDDEN = 404, 409, 401, 403
# A server that fails in these ways may have committed.
_UNKNOWN_OUTCOMES = {500, 502, 503, 504}
_TABLES = "namespaces/{namespace}/tables"
_TABLE = f"{_TABLES}/{{table}}"
_NAMESPACE_SEPARATOR = "%1F"
_DELEGATION = {"X-Iceberg-Access-Delegation": "vended-credentials"}


class RestCatalog(catalogs.NamedCatalog):
    """Tables of a REST catalog."""

    @staticmethod
    def _client_type() -> Any:
        from pyiceberg.catalog.rest import RestCatalog as PyIcebergRestCatalog

        return PyIcebergRestCatalog

    def load(self, identifier: tuple[str, ...]) -> catalogs.LoadedTable:
        """See `Catalog.load`."""
        answer = self._request("GET", _TABLE, identifier, headers=_DELEGATION)
        return self._loaded(identifier, answer)

    def stage(self, identifier: tuple[str, ...], metadata: TableMetadata) -> catalogs.LoadedTable:
        """Ask the server for location and credentials of a new table; see `Catalog.stage`."""
        body = {
            "name": identifier[-1],
            "schema": metadata.schema.to_json(),
            "partition-spec": metadata.spec.to_json(),
            "write-order": metadata.sort_order.to_json(),
            "properties": {**metadata.properties, "format-version": str(metadata.version)},
            "stage-create": True,
        }
        if metadata.document["location"]:
            body["location"] = metadata.location
        answer = self._request("POST", _TABLES, identifier, body, headers=_DELEGATION)
        # The server assigns ids, the UUID and the location.
        return replace(self._loaded(identifier, answer), metadata_location=None)

    def commit(self, table: catalogs.LoadedTable, change: updates.TableChange) -> catalogs.LoadedTable:
        """See `Catalog.commit`."""
        steps, requirements = list(change.updates), list(change.requirements)
        if not table.exists:
            # The updates that make the metadata of the new table out of nothing come first.
            new = table.metadata
            steps[:0] = [
                {"action": "assign-uuid", "uuid": new.uuid},
                {"action": "upgrade-format-version", "format-version": new.version},
                *updates.definition_updates(new, new.schema, new.spec, new.sort_order),
                {"action": "set-location", "location": new.location},
                *updates.properties_updates(new.properties),
            ]
            requirements = [{"type": "assert-create"}]
        *namespace, name = table.identifier
        identifier = {"namespace": namespace, "name": name}
        body = {"identifier": identifier, "requirements": requirements, "updates": steps}
        answer = self._request("POST", _TABLE, table.identifier, body, is_commit=True)
        loaded = self._loaded(table.identifier, answer)
        return replace(table, metadata=loaded.metadata, metadata_location=str(loaded.metadata_location))

    def drop(self, identifier: tuple[str, ...]) -> None:
        """See `Catalog.drop`."""
        self._request("DELETE", _TABLE, identifier)

    def _request(
        self,
        method: str,
        endpoint: str,
        identifier: tuple[str, ...],
        body: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        is_commit: bool = False,
    ) -> dict[str, Any]:
        client, name = self._client, ".".join(identifier)
        # PyIceberg has no public name for the session that authenticates and signs requests, nor another way to send
        # the metadata of a table with a Variant.
        session = getattr(client, "_session", None)
        if session is None:
            raise IcebergError(
                "this version of PyIceberg has no session for requests: install pyiceberg 0.12, or name the table by "
                "its directory",
                reason="unsupported-version",
            )
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **(headers or {})}
        try:
            url = client.url(endpoint, prefixed=True, **_names_in_url(identifier, client.properties))
            response = session.request(method, url, data=data, headers=headers)
        except Exception as error:
            problem = f"the catalog did not answer: {first_line(error)}"
            reason = "unknown-outcome" if is_commit else "no-connection"
            raise IcebergError(problem, reason=reason, file=name) from None
        if response.status_code == _NO_CONTENT or (response.status_code == _OK and not response.content):
            return {}
        if response.status_code != _OK:
            _fail(response, name, is_commit=is_commit)
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            reason = "unknown-outcome" if is_commit else "bad-answer"
            raise IcebergError("the catalog's answer is not a JSON object", reason=reason, file=name)
        return answer

    def _loaded(self, identifier: tuple[str, ...], answer: Mapping[str, Any]) -> catalogs.LoadedTable:
        try:
            metadata = TableMetadata.parse(answer.get("metadata"))
        except IcebergError as error:
            raise error.at(file=".".join(identifier)) from None
        options = {**self.store_options, **storage_options_of(answer.get("config") or {})}
        # The credentials whose prefix fits the location best.
        credentials = [c for c in answer.get("storage-credentials") or [] if isinstance(c, dict)]
        fitting = [c for c in credentials if metadata.location.startswith(str(c.get("prefix", "")))]
        best = max(fitting, key=lambda credential: len(str(credential.get("prefix", ""))), default={})
        options |= storage_options_of(best.get("config") or {})
        location = answer.get("metadata-location")
        return catalogs.LoadedTable(self, identifier, metadata, None if location is None else str(location), options)


def _names_in_url(identifier: tuple[str, ...], properties: Mapping[str, Any]) -> dict[str, str]:
    """Return the namespace and the table in the form that URLs have.

    >>> _names_in_url(("a", "b/c", "events"), {})
    {'namespace': 'a%1Fb%2Fc', 'table': 'events'}
    """
    *namespace, table = (quote(part, safe="") for part in identifier)
    separator = str(properties.get("namespace-separator") or _NAMESPACE_SEPARATOR)
    return {"namespace": quote(unquote(separator), safe="").join(namespace), "table": table}


def _fail(response: Any, name: str, *, is_commit: bool) -> NoReturn:
    status = response.status_code
    message, kind = f"HTTP status {status}", ""
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        error = response.json()["error"]
        message, kind = without_secrets(str(error.get("message") or message)), str(error.get("type") or "")
    if status == _NOT_FOUND and "Namespace" in kind:
        raise IcebergError(f"the namespace of {name} does not exist: {message}", reason="no-such-namespace", file=name)
    if status == _NOT_FOUND:
        raise catalogs.no_such_table(name)
    if status == _CONFLICT:
        problem, reason = "the catalog refused the commit", "conflict" if is_commit else "table-exists"
    elif status in (_UNAUTHORIZED, _FORBIDDEN):
        problem, reason = "the catalog refused access", "no-access"
    elif is_commit and status in _UNKNOWN_OUTCOMES:
        problem, reason = "the catalog failed, and may have committed (read the table's history)", "unknown-outcome"
    else:
        problem, reason = "the catalog refused the request", "bad-request"
    raise IcebergError(f"{problem}: {message}", reason=reason, file=name)


CatalogOption: TypeAlias = "str | Mapping[str, Any] | Catalog | None"
_KINDS: dict[str, type[catalogs.NamedCatalog]] = {"rest": RestCatalog, "sql": catalogs.SqlCatalog}


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
    schemes = {"http": "rest", "sqlite": "sql", "postgresql": "sql"}
    kind = properties.get("type") or next((schemes[scheme] for scheme in schemes if uri.startswith(scheme)), None)
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
    if not isinstance(opened, catalogs.NamedCatalog):
        return {}
    kind = next(kind for kind, catalog_class in _KINDS.items() if isinstance(opened, catalog_class))
    return {"type": kind, "name": opened.name} | {name: str(value) for name, value in opened.properties.items()}


def find_table(
    table: str | os.PathLike[str], catalog: CatalogOption = None, storage_options: Mapping[str, str] | None = None
) -> tuple[Catalog, tuple[str, ...]]:
    """Return the catalog and the identifier of a table that may not exist.

    Raises `IcebergError`: reason ``"bad-argument"`` or ``"bad-catalog"``.
    """
    text = os.fspath(table) if isinstance(table, (str, os.PathLike)) else ""
    if not isinstance(text, str) or not text:
        problem = f"{table!r} is not a table: give namespace.table with catalog=, or a path or URI"
        raise IcebergError(problem, reason="bad-argument")
    check_mapping("storage_options", storage_options or {}, IcebergError)
    options = dict(storage_options or {})
    opened = open_catalog(catalog)
    if opened is None:
        # Iceberg's names of properties are accepted next to obstore's.
        options = storage_options_of(options) | {name: value for name, value in options.items() if "." not in name}
        return catalogs.DirectoryCatalog(options), (text,)
    parts = tuple(text.split("."))
    if len(parts) < 2 or not all(parts):
        raise IcebergError(f"{text!r} is not a table of a catalog: write namespace.table", reason="bad-argument")
    return opened, parts


def load_table(
    table: str | os.PathLike[str] | catalogs.LoadedTable,
    catalog: CatalogOption = None,
    storage_options: Mapping[str, str] | None = None,
    *,
    allow_outside: bool = False,
) -> catalogs.LoadedTable:
    """Load a table as it is now. Raises `IcebergError`: reason ``"no-such-table"``, and as `find_table`."""
    if isinstance(table, catalogs.LoadedTable):
        return table
    opened, identifier = find_table(table, catalog, storage_options)
    loaded = opened.load(identifier)
    return replace(loaded, options={**loaded.options, **(storage_options or {})}, allow_outside=allow_outside)
