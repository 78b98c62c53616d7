"""REST catalogs, over the session of PyIceberg: its configuration, OAuth2, bearer tokens, TLS and SigV4.

Owns the requests for tables, whose schemas PyIceberg refuses if they hold a Variant, and what their answers mean.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn
from urllib.parse import quote, unquote

from parquet_variant.errors import IcebergError, without_secrets
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.tables.iceberg.catalogs.catalog import Catalog, LoadedTable, first_line, no_such_table
from parquet_variant.tables.iceberg.locations import storage_options_of
from parquet_variant.tables.iceberg.metadata.table_metadata import TableMetadata
from parquet_variant.tables.iceberg.metadata.updates import (
    TableChange,
    order_updates,
    schema_updates,
    set_properties,
    spec_updates,
)

_OK, _NO_CONTENT = 200, 204
_NOT_FOUND, _CONFLICT, _UNAUTHORIZED, _FORBIDDEN = 404, 409, 401, 403
# A server that fails in these ways may have committed.
_UNKNOWN_OUTCOMES = {500, 502, 503, 504}
_TABLES = "namespaces/{namespace}/tables"
_TABLE = f"{_TABLES}/{{table}}"
_NAMESPACE_SEPARATOR = "%1F"
_DELEGATION = {"X-Iceberg-Access-Delegation": "vended-credentials"}


@dataclass(frozen=True)
class RestCatalog(Catalog):
    """Tables of a REST catalog.

    `name`: the catalog's name.
    `properties`: PyIceberg's properties of REST catalogs, such as ``uri``, ``token`` and ``credential``.
    """

    name: str
    properties: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return RestCatalog, (self.name, dict(self.properties))

    @cached_property
    def _client(self) -> Any:
        """PyIceberg's catalog: it holds the session and knows the addresses."""
        with optional_libraries("REST catalogs"):
            from pyiceberg.catalog.rest import RestCatalog as PyIcebergRestCatalog
        try:
            return PyIcebergRestCatalog(self.name, **self.properties)
        except Exception as error:
            raise IcebergError(
                f"cannot connect to the catalog {self.name!r} at {self.properties.get('uri')}: {first_line(error)}",
                reason="no-connection",
            ) from None

    def load(self, identifier: tuple[str, ...]) -> LoadedTable:
        """See `Catalog.load`."""
        answer = self._request("GET", _TABLE, identifier, headers=_DELEGATION)
        return self._loaded(identifier, answer)

    def stage(self, identifier: tuple[str, ...], metadata: TableMetadata) -> LoadedTable:
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
        staged = self._loaded(identifier, answer)
        # The server assigns ids, the UUID and the location.
        return replace(staged, metadata_location=None)

    def commit(self, table: LoadedTable, change: TableChange) -> LoadedTable:
        """See `Catalog.commit`."""
        updates, requirements = list(change.updates), list(change.requirements)
        if not table.exists:
            # The updates that make the metadata of the new table out of nothing come first.
            new = table.metadata
            updates[:0] = [
                {"action": "assign-uuid", "uuid": new.uuid},
                {"action": "upgrade-format-version", "format-version": new.version},
                *schema_updates(new, new.schema),
                *spec_updates(new.spec),
                *order_updates(new.sort_order),
                {"action": "set-location", "location": new.location},
                *([set_properties(new.properties)] if new.properties else []),
            ]
            requirements = [{"type": "assert-create"}]
        *namespace, name = table.identifier
        identifier = {"namespace": namespace, "name": name}
        body = {"identifier": identifier, "requirements": requirements, "updates": updates}
        answer = self._request("POST", _TABLE, table.identifier, body, is_commit=True)
        metadata = _parse_metadata(answer.get("metadata"), table.name)
        return replace(table, metadata=metadata, metadata_location=str(answer.get("metadata-location")))

    def drop(self, identifier: tuple[str, ...]) -> None:
        """See `Catalog.drop`."""
        self._request("DELETE", _TABLE, identifier)

    def create_namespace(self, namespace: tuple[str, ...]) -> None:
        """Create a namespace if it does not exist."""
        self._client.create_namespace_if_not_exists(namespace)

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
        try:
            response = session.request(
                method,
                client.url(endpoint, prefixed=True, **_names_in_url(identifier, client.properties)),
                data=None if body is None else json.dumps(body).encode(),
                headers={"Content-Type": "application/json", **(headers or {})},
            )
        except Exception as error:
            reason = "unknown-outcome" if is_commit else "no-connection"
            raise IcebergError(f"the catalog did not answer: {first_line(error)}", reason=reason, file=name) from None
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

    def _loaded(self, identifier: tuple[str, ...], answer: Mapping[str, Any]) -> LoadedTable:
        metadata = _parse_metadata(answer.get("metadata"), ".".join(identifier))
        options = storage_options_of(self.properties) | storage_options_of(answer.get("config") or {})
        # The credentials whose prefix fits the location best.
        credentials = [c for c in answer.get("storage-credentials") or [] if isinstance(c, dict)]
        fitting = [c for c in credentials if metadata.location.startswith(str(c.get("prefix", "")))]
        best = max(fitting, key=lambda credential: len(str(credential.get("prefix", ""))), default={})
        options |= storage_options_of(best.get("config") or {})
        location = answer.get("metadata-location")
        return LoadedTable(self, identifier, metadata, None if location is None else str(location), options)


def _names_in_url(identifier: tuple[str, ...], properties: Mapping[str, Any]) -> dict[str, str]:
    """Return the namespace and the table in the form that URLs have.

    >>> _names_in_url(("a", "b/c", "events"), {})
    {'namespace': 'a%1Fb%2Fc', 'table': 'events'}
    """
    *namespace, table = (quote(part, safe="") for part in identifier)
    separator = str(properties.get("namespace-separator") or _NAMESPACE_SEPARATOR)
    return {"namespace": quote(unquote(separator), safe="").join(namespace), "table": table}


def _parse_metadata(document: Any, name: str) -> TableMetadata:
    try:
        return TableMetadata.parse(document)
    except IcebergError as error:
        raise error.at(file=name) from None


def _fail(response: Any, name: str, *, is_commit: bool) -> NoReturn:
    status = response.status_code
    message, kind = f"HTTP status {status}", ""
    try:
        error = response.json()["error"]
        message, kind = str(error.get("message") or message), str(error.get("type") or "")
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    message = without_secrets(message)
    if status == _NOT_FOUND and "Namespace" in kind:
        raise IcebergError(f"the namespace of {name} does not exist: {message}", reason="no-such-namespace", file=name)
    if status == _NOT_FOUND:
        raise no_such_table(name)
    if status == _CONFLICT:
        problem, reason = "the catalog refused the commit", "conflict" if is_commit else "table-exists"
    elif status in (_UNAUTHORIZED, _FORBIDDEN):
        problem, reason = "the catalog refused access", "no-access"
    elif is_commit and status in _UNKNOWN_OUTCOMES:
        problem, reason = "the catalog failed, and may have committed (read the table's history)", "unknown-outcome"
    else:
        problem, reason = "the catalog refused the request", "bad-request"
    raise IcebergError(f"{problem}: {message}", reason=reason, file=name)
