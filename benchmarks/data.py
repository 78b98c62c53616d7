"""The data sets of the benchmarks: the shared ones where they are, generated events where not.

Owns finding, reading and unpacking them. Leaves what is measured to `works`.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa

NAMES = ("gharchive", "windows_events", "cve_v5")
ROOT = Path(__file__).resolve().parent.parent
_SHARED = Path(os.environ.get("VARIANT_TEST_DATA") or ROOT / "../shared").resolve() / "data"

# Typed paths to extract, the first one, three or ten of which are asked for.
PATHS: dict[str, list[tuple[str, str]]] = {
    "gharchive": [
        ("$.type", "string"), ("$.actor.id", "bigint"), ("$.repo.name", "string"), ("$.created_at", "string"),
        ("$.public", "boolean"), ("$.id", "string"), ("$.actor.login", "string"), ("$.repo.id", "bigint"),
        ("$.payload.size", "bigint"), ("$.payload.ref", "string"),
    ],
    "windows_events": [
        ("$.Channel", "string"), ("$.EventID", "bigint"), ("$.Hostname", "string"), ("$.Severity", "string"),
        ("$.RecordNumber", "bigint"), ("$.EventTime", "string"), ("$.ThreadID", "bigint"), ("$.Version", "bigint"),
        ("$.Image", "string"), ("$.Opcode", "string"),
    ],
    "cve_v5": [
        ("$.cveMetadata.cveId", "string"), ("$.cveMetadata.state", "string"), ("$.dataType", "string"),
        ("$.cveMetadata.datePublished", "string"), ("$.cveMetadata.assignerShortName", "string"),
        ("$.dataVersion", "string"), ("$.cveMetadata.dateUpdated", "string"),
        ("$.containers.cna.title", "string"), ("$.cveMetadata.assignerOrgId", "string"),
        ("$.containers.cna.providerMetadata.orgId", "string"),
    ],
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class DataSet:
    """One data set: its name, its text, where it lies as plain NDJSON, and the paths that queries ask for."""

    name: str
    text: bytes
    file: Path
    paths: list[tuple[str, str]]

    @property
    def size(self) -> int:
        return len(self.text)

    @property
    def lines(self) -> pa.Array:
        return _lines(self)


@cache
def _lines(data: DataSet) -> pa.Array:
    return pa.array(data.text.decode().splitlines() if b"\r" not in data.text else data.text.decode().split("\n")[:-1])


@cache
def scratch() -> Path:
    """A directory for files, removed when the process ends."""
    holder = tempfile.TemporaryDirectory(prefix="pv-bench-")
    _HOLDERS.append(holder)
    return Path(holder.name)


_HOLDERS: list[tempfile.TemporaryDirectory[str]] = []


@cache
def data_sets() -> list[DataSet]:
    """All data sets."""
    sets = []
    for name in NAMES:
        packed = _SHARED / f"{name}.ndjson.zst"
        if packed.exists():
            text = pa.input_stream(packed, compression="zstd").read()
        else:
            print(f"{packed} is missing: generated events are measured in its place", file=sys.stderr)
            text = _events(name, 60_000)
        if not text.endswith(b"\n"):
            text += b"\n"
        file = scratch() / f"{name}.ndjson"
        file.write_bytes(text)
        sets.append(DataSet(name, text, file, PATHS[name]))
    return sets


def _events(name: str, rows: int) -> bytes:
    """Events of the shape that the paths ask for, where the shared data are absent."""
    dice = random.Random(name)
    lines = []
    for number in range(rows):
        event: dict[str, object] = {}
        for path, kind in PATHS[name]:
            if dice.random() < 0.05:
                continue
            keys = path.removeprefix("$.").split(".")
            inner = event
            for key in keys[:-1]:
                inner = inner.setdefault(key, {})  # type: ignore[assignment]
            inner[keys[-1]] = (
                dice.randrange(1 << 40) if kind == "bigint" else dice.random() < 0.5 if kind == "boolean"
                else f"value-{dice.randrange(1000)}"
            )  # fmt: skip
        event[f"rare-{dice.randrange(50)}"] = {"number": number, "list": [1, "two", None]}
        lines.append(json.dumps(event))
    return "\n".join(lines).encode()
