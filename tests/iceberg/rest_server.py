"""A REST catalog for tests that checks requirements, on 127.0.0.1: an implementation of its own.

It keeps metadata in memory and in files below a directory. `fail_next` makes it answer a commit with an error, before
or after the commit took place. `token` is the bearer token that it asks for.
"""

from __future__ import annotations

import base64
import copy
import json
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

Json = dict[str, Any]


class RefusedError(Exception):
    def __init__(self, code: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.code, self.kind, self.message = code, kind, message


@dataclass
class State:
    root: Path
    token: str | None = None
    signed_by: str | None = None  # The access key of requests that must be signed.
    config: Json = field(default_factory=dict)
    storage_credentials: list[Json] = field(default_factory=list)
    namespaces: set[tuple[str, ...]] = field(default_factory=set)
    tables: dict[tuple[str, ...], Json] = field(default_factory=dict)  # {"metadata", "location", "version"}
    fail_next: list[tuple[int, bool]] = field(default_factory=list)  # HTTP status, whether the commit takes place
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def save(self, key: tuple[str, ...], metadata: Json) -> Json:
        version = self.tables[key]["version"] + 1 if key in self.tables else 0
        folder = Path("/" + metadata["location"].removeprefix("file:").lstrip("/")) / "metadata"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{version:05}-{uuid.uuid4()}.metadata.json"
        path.write_text(json.dumps(metadata))
        self.tables[key] = {"metadata": metadata, "location": f"file://{path}", "version": version}
        return self.tables[key]


def check(metadata: Json | None, requirement: Json) -> None:
    kind = requirement["type"]
    if kind == "assert-create":
        if metadata is not None:
            raise RefusedError(409, "CommitFailedException", "table already exists")
        return
    if metadata is None:
        raise RefusedError(404, "NoSuchTableException", "table does not exist")
    if kind == "assert-ref-snapshot-id":
        actual = metadata["refs"].get(requirement["ref"], {}).get("snapshot-id")
        wanted = requirement["snapshot-id"]
    else:
        name, actual_name = {
            "assert-table-uuid": ("uuid", "table-uuid"),
            "assert-last-assigned-field-id": ("last-assigned-field-id", "last-column-id"),
            "assert-current-schema-id": ("current-schema-id", "current-schema-id"),
            "assert-last-assigned-partition-id": ("last-assigned-partition-id", "last-partition-id"),
            "assert-default-spec-id": ("default-spec-id", "default-spec-id"),
            "assert-default-sort-order-id": ("default-sort-order-id", "default-sort-order-id"),
        }[kind]
        actual, wanted = metadata[actual_name], requirement[name]
    if actual != wanted:
        raise RefusedError(409, "CommitFailedException", f"{kind}: {actual} != {wanted}")


def empty(location: str) -> Json:
    return {
        "format-version": 1,
        "table-uuid": str(uuid.uuid4()),
        "location": location,
        "last-sequence-number": 0,
        "last-updated-ms": 0,
        "last-column-id": 0,
        "schemas": [],
        "current-schema-id": -1,
        "partition-specs": [],
        "default-spec-id": -1,
        "last-partition-id": 999,
        "sort-orders": [],
        "default-sort-order-id": -1,
        "properties": {},
        "snapshots": [],
        "refs": {},
        "snapshot-log": [],
        "metadata-log": [],
    }


def all_ids(kind: Any) -> list[int]:
    if not isinstance(kind, dict):
        return []
    ids = [kind[name] for name in ("element-id", "key-id", "value-id") if name in kind]
    for part in ("element", "key", "value"):
        ids += all_ids(kind.get(part))
    for f in kind.get("fields", ()):
        ids += [f["id"], *all_ids(f["type"])]
    return ids


class Applied:
    """Applies updates to a copy of a table's metadata."""

    def __init__(self, metadata: Json) -> None:
        self.metadata = copy.deepcopy(metadata)
        self.last: dict[str, int] = {}

    def apply(self, update: Json) -> None:
        getattr(self, update["action"].replace("-", "_"))(update)

    def assign_uuid(self, u: Json) -> None:
        self.metadata["table-uuid"] = u["uuid"]

    def upgrade_format_version(self, u: Json) -> None:
        assert u["format-version"] >= self.metadata["format-version"]
        self.metadata["format-version"] = u["format-version"]
        if u["format-version"] >= 3:
            self.metadata.setdefault("next-row-id", 0)

    def _add(self, plural: str, id_name: str, item: Json, kind: str) -> None:
        known = [i[id_name] for i in self.metadata[plural]]
        item = dict(item)
        if item.get(id_name) in known or id_name not in item:
            item[id_name] = max(known, default=-1) + 1
        self.metadata[plural].append(item)
        self.last[kind] = item[id_name]

    def add_schema(self, u: Json) -> None:
        ids = all_ids(u["schema"])
        assert len(ids) == len(set(ids))
        self.metadata["last-column-id"] = max([self.metadata["last-column-id"], *ids])
        self._add("schemas", "schema-id", u["schema"], "schema")

    def set_current_schema(self, u: Json) -> None:
        self.metadata["current-schema-id"] = self.last["schema"] if u["schema-id"] == -1 else u["schema-id"]

    def add_spec(self, u: Json) -> None:
        ids = [f["field-id"] for f in u["spec"]["fields"]]
        self.metadata["last-partition-id"] = max([self.metadata["last-partition-id"], *ids])
        self._add("partition-specs", "spec-id", u["spec"], "spec")

    def set_default_spec(self, u: Json) -> None:
        self.metadata["default-spec-id"] = self.last["spec"] if u["spec-id"] == -1 else u["spec-id"]

    def add_sort_order(self, u: Json) -> None:
        if not u["sort-order"]["fields"]:
            if not any(o["order-id"] == 0 for o in self.metadata["sort-orders"]):
                self.metadata["sort-orders"].append({"order-id": 0, "fields": []})
            self.last["order"] = 0
            return
        self._add("sort-orders", "order-id", u["sort-order"], "order")

    def set_default_sort_order(self, u: Json) -> None:
        chosen = self.last["order"] if u["sort-order-id"] == -1 else u["sort-order-id"]
        self.metadata["default-sort-order-id"] = chosen

    def set_location(self, u: Json) -> None:
        self.metadata["location"] = u["location"]

    def set_properties(self, u: Json) -> None:
        self.metadata["properties"].update(u["updates"])

    def remove_properties(self, u: Json) -> None:
        for name in u["removals"]:
            self.metadata["properties"].pop(name, None)

    def add_snapshot(self, u: Json) -> None:
        snapshot, metadata = u["snapshot"], self.metadata
        if any(s["snapshot-id"] == snapshot["snapshot-id"] for s in metadata["snapshots"]):
            raise RefusedError(409, "CommitFailedException", "snapshot id in use")
        if snapshot["sequence-number"] <= metadata["last-sequence-number"]:
            raise RefusedError(409, "CommitFailedException", "stale sequence number")
        if metadata["format-version"] >= 3:
            if snapshot["first-row-id"] < metadata["next-row-id"]:
                raise RefusedError(409, "CommitFailedException", "stale first-row-id")
            metadata["next-row-id"] = snapshot["first-row-id"] + snapshot["added-rows"]
        assert Path("/" + snapshot["manifest-list"].removeprefix("file:").lstrip("/")).exists()
        metadata["snapshots"].append(snapshot)
        metadata["last-sequence-number"] = snapshot["sequence-number"]

    def set_snapshot_ref(self, u: Json) -> None:
        metadata, snapshot_id = self.metadata, u["snapshot-id"]
        if not any(s["snapshot-id"] == snapshot_id for s in metadata["snapshots"]):
            raise RefusedError(400, "BadRequestException", "unknown snapshot")
        metadata["refs"][u["ref-name"]] = {k: v for k, v in u.items() if k not in ("action", "ref-name")}
        if u["ref-name"] == "main":
            metadata["current-snapshot-id"] = snapshot_id
            entry = {"snapshot-id": snapshot_id, "timestamp-ms": int(time.time() * 1000)}
            metadata["snapshot-log"].append(entry)

    def remove_snapshot_ref(self, u: Json) -> None:
        self.metadata["refs"].pop(u["ref-name"], None)

    def remove_snapshots(self, u: Json) -> None:
        gone = set(u["snapshot-ids"])
        self.metadata["snapshots"] = [s for s in self.metadata["snapshots"] if s["snapshot-id"] not in gone]
        log = self.metadata["snapshot-log"]
        last = max((n for n, e in enumerate(log) if e["snapshot-id"] in gone), default=-1)
        self.metadata["snapshot-log"] = log[last + 1 :]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    state: State

    def log_message(self, *_: Any) -> None:
        return

    def answer(self, code: int, body: Any = None) -> None:
        data = b"" if body is None else json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def handle_request(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        form = self.headers.get("Content-Type", "").startswith("application/x-www-form-urlencoded")
        body = raw.decode() if form else json.loads(raw or b"{}")
        parts = [unquote(part) for part in urlparse(self.path).path.strip("/").split("/")]
        with self.state.lock:
            self.state.requests.append((self.command, self.path, body))
            try:
                self.route(parts[1:], body)
            except RefusedError as error:
                payload = {"error": {"message": error.message, "type": error.kind, "code": error.code}}
                self.answer(error.code, payload)

    do_GET = do_POST = do_HEAD = do_DELETE = handle_request  # noqa: N815

    def route(self, parts: list[str], body: Any) -> None:
        state = self.state
        if parts == ["oauth", "tokens"]:
            basic = "Basic " + base64.b64encode(b"me:s3cret").decode()
            if "client_secret=s3cret" not in body and self.headers.get("Authorization") != basic:
                raise RefusedError(401, "NotAuthorizedException", "bad credentials")
            return self.answer(200, {"access_token": state.token, "token_type": "bearer", "expires_in": 3600})
        if state.token is not None and self.headers.get("Authorization") != f"Bearer {state.token}":
            raise RefusedError(401, "NotAuthorizedException", "who are you?")
        if state.signed_by is not None and not self.headers.get("Authorization", "").startswith(
            f"AWS4-HMAC-SHA256 Credential={state.signed_by}/"
        ):
            raise RefusedError(403, "ForbiddenException", "the request is not signed")
        if parts == ["config"]:
            return self.answer(200, {"defaults": {}, "overrides": {}})
        if parts == ["transactions", "commit"]:
            return self.transaction(body["table-changes"])
        assert parts[0] == "namespaces"
        if len(parts) == 1:
            if self.command == "POST":
                if tuple(body["namespace"]) in state.namespaces:
                    raise RefusedError(409, "AlreadyExistsException", "namespace exists")
                state.namespaces.add(tuple(body["namespace"]))
                return self.answer(200, {"namespace": body["namespace"], "properties": {}})
            return self.answer(200, {"namespaces": [list(n) for n in sorted(state.namespaces)]})
        namespace = tuple(parts[1].split("\x1f"))
        if namespace not in state.namespaces:
            # Java's catalogs answer this for tables, on which Iceberg's Spark catalog relies for db.table.history.
            kind = "NoSuchTableException" if len(parts) == 4 and self.command == "GET" else "NoSuchNamespaceException"
            raise RefusedError(404, kind, "no such namespace")
        if len(parts) == 2:
            return self.answer(200, {"namespace": list(namespace), "properties": {}})
        if parts[2:] == ["register"]:
            return self.register(namespace, body)
        if len(parts) == 3:
            if self.command == "GET":
                names = [{"namespace": list(k[:-1]), "name": k[-1]} for k in state.tables if k[:-1] == namespace]
                return self.answer(200, {"identifiers": names})
            return self.create(namespace, body)
        if parts[-1] == "metrics":
            return self.answer(204)
        key = (*namespace, parts[3])
        if self.command == "POST":
            return self.commit(key, body)
        if key not in state.tables:
            raise RefusedError(404, "NoSuchTableException", "no such table")
        if self.command == "DELETE":
            del state.tables[key]
            return self.answer(204)
        return self.answer(200, self.loaded(state.tables[key]))

    def loaded(self, table: Json) -> Json:
        answer = {"metadata-location": table["location"], "metadata": table["metadata"], "config": self.state.config}
        return answer | {"storage-credentials": self.state.storage_credentials}

    def create(self, namespace: tuple[str, ...], body: Json) -> None:
        state, key = self.state, (*namespace, body["name"])
        if key in state.tables:
            raise RefusedError(409, "AlreadyExistsException", "table exists")
        location = body.get("location") or f"file://{state.root}/{'/'.join(key)}"
        properties = dict(body.get("properties") or {})
        made = Applied(empty(location))
        made.apply({"action": "upgrade-format-version", "format-version": int(properties.pop("format-version", 2))})
        made.apply({"action": "add-schema", "schema": {**body["schema"], "schema-id": 0}})
        made.apply({"action": "set-current-schema", "schema-id": -1})
        made.apply({"action": "add-spec", "spec": {"spec-id": 0, "fields": [], **(body.get("partition-spec") or {})}})
        made.apply({"action": "set-default-spec", "spec-id": -1})
        made.apply({"action": "add-sort-order", "sort-order": body.get("write-order") or {"fields": []}})
        made.apply({"action": "set-default-sort-order", "sort-order-id": -1})
        made.apply({"action": "set-properties", "updates": properties})
        made.metadata["last-updated-ms"] = int(time.time() * 1000)
        if body.get("stage-create"):
            for name in ("data", "metadata"):
                (Path(location.removeprefix("file://")) / name).mkdir(parents=True, exist_ok=True)
            return self.answer(200, {"metadata": made.metadata, "config": state.config})
        return self.answer(200, self.loaded(state.save(key, made.metadata)))

    def register(self, namespace: tuple[str, ...], body: Json) -> None:
        state, key, location = self.state, (*namespace, body["name"]), body["metadata-location"]
        if key in state.tables:
            raise RefusedError(409, "AlreadyExistsException", "table exists")
        metadata = json.loads(Path("/" + location.removeprefix("file:").lstrip("/")).read_text())
        state.tables[key] = {"metadata": metadata, "location": location, "version": 0}
        self.answer(200, self.loaded(state.tables[key]))

    def changed(self, key: tuple[str, ...], body: Json) -> Json:
        state = self.state
        current = state.tables[key]["metadata"] if key in state.tables else None
        for requirement in body["requirements"]:
            check(current, requirement)
        if current is None:
            location = next(u["location"] for u in body["updates"] if u["action"] == "set-location")
            current = empty(location)
        applied = Applied(current)
        for update in body["updates"]:
            applied.apply(update)
        applied.metadata["last-updated-ms"] = int(time.time() * 1000)
        return applied.metadata

    def commit(self, key: tuple[str, ...], body: Json) -> None:
        status, takes_place = self.state.fail_next.pop(0) if self.state.fail_next else (200, True)
        if takes_place:
            saved = self.state.save(key, self.changed(key, body))
        if status != 200:
            raise RefusedError(status, "ServerError", "the server failed")
        self.answer(200, {"metadata-location": saved["location"], "metadata": saved["metadata"]})

    def transaction(self, changes: list[Json]) -> None:
        keys = [(*c["identifier"]["namespace"], c["identifier"]["name"]) for c in changes]
        done = [self.changed(key, change) for key, change in zip(keys, changes, strict=True)]
        for key, metadata in zip(keys, done, strict=True):
            self.state.save(key, metadata)
        self.answer(204)


@contextmanager
def rest_catalog(root: Path, **state: Any) -> Iterator[tuple[str, State]]:
    """Run a catalog; give its address and its state."""
    shared = State(root, **state)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("TestHandler", (Handler,), {"state": shared}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", shared
    finally:
        server.shutdown()
        server.server_close()
