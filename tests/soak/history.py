"""Several writers on one table, killed at random; then each version must be the result of its operation.

Owns starting and killing the writers, and the check: an acknowledged operation is in the version that its writer
reported, exactly once; any other operation is complete or absent, at most once; no version has other rows.
``python -m soak.history MINUTES [SEED]`` runs it for longer (`make soak`).
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import parquet_variant as pv
from parquet_variant.tables.delta.log.segment import commit_path
from parquet_variant.tables.storage import open_storage
from soak.on_table import arrow_columns, plain, rows_of
from soak.plain_model import Model, Operation, new_rows
from soak.worker import COLUMNS

__all__ = ["WriterLog", "check", "soak"]

WORKER = Path(__file__).with_name("worker.py")
_TAG = re.compile(r"\bw\d+-\d+\b")
# The share of tables that have each property.
_PROPERTIES = {
    "delta.enableDeletionVectors": 0.5, "delta.enableChangeDataFeed": 0.3, "delta.enableRowTracking": 0.3,
    "delta.enableInCommitTimestamps": 0.3,
}  # fmt: skip


@dataclass
class WriterLog:
    """What the writers reported: operations begun, acknowledged with their version, or refused; and the kills."""

    first: list[dict[str, Any]] = field(default_factory=list)
    begun: dict[str, Operation] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    done: dict[str, int] = field(default_factory=dict)
    operations: Counter[str] = field(default_factory=Counter)
    kills: int = 0

    def read(self, lines: list[str]) -> None:
        """Add the lines that one writer printed; the last may be cut off."""
        for line in lines:
            try:
                report = json.loads(line)
            except ValueError:
                continue
            if report["what"] == "begin":
                self.begun[report["tag"]] = report["op"]
                continue
            self.operations[f"{report['kind']} {report['what']} {report.get('reason', '')}".strip()] += 1
            if report["what"] == "failed":
                self.refused.add(report["tag"])
                if report["reason"] not in ("conflict", "missing-file"):
                    print(f"{report['tag']} {report['reason']}: {report['message']}", file=sys.stderr)
            elif report["version"] is not None:
                self.done[report["tag"]] = report["version"]


def soak(table: str, options: dict[str, Any], seconds: float, seed: int, *, writers: int = 3) -> WriterLog:
    """Run writers for some time and kill them at random."""
    source = random.Random(seed)
    log = WriterLog(new_rows(source, list(range(12)), COLUMNS, "first"))
    properties = {name: True for name, share in _PROPERTIES.items() if source.random() < share}
    partition_by = ["p"] if source.random() < 0.5 else []
    definition = {"properties": properties | {"delta.checkpointInterval": 10}, "partition_by": partition_by}
    pv.write(table, arrow_columns(log.first, COLUMNS), format="delta", storage_options=options, **definition)
    stop = time.monotonic() + seconds
    running: list[tuple[subprocess.Popen[str], float]] = []
    number = 0

    def is_running() -> bool:
        """Return True until the time is over, or on a busy machine until a change was committed (at most a minute)."""
        late = time.monotonic() - stop
        return late < 0 or (seconds > 0 and not log.done and late < 60)

    while is_running() or running:
        while len(running) < writers and is_running():
            command = [sys.executable, str(WORKER), table, json.dumps(options), f"w{number}", str(seed)]
            roots = [str(WORKER.parent.parent), os.environ.get("PYTHONPATH", "")]
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(roots), "OMP_NUM_THREADS": "1"}
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
            )
            running.append((process, time.monotonic() + source.uniform(2, max(3.0, seconds / 3)) + log.kills / 2))
            number += 1
        time.sleep(0.05)
        for process, until in list(running):
            if time.monotonic() > until or not is_running():
                process.send_signal(signal.SIGKILL)
                log.kills += 1
            elif process.poll() is None:
                continue
            lines = process.communicate()[0].splitlines()
            assert not any(line.startswith("Traceback") for line in lines), "\n".join(lines[-12:])
            log.read(lines)
            running.remove((process, until))
    return log


def check(table: str, options: dict[str, Any], log: WriterLog) -> int:
    """Check every version and return their number.

    Raises
    ------
    AssertionError
        A version is not the result of its operation.
    """
    model = Model(dict(COLUMNS))
    made_in: dict[str, int] = {}
    storage = open_storage(table, options)
    newest = pv.open(table, storage_options=options).snapshot.version
    for version in range(newest + 1):
        actions = [json.loads(line) for line in storage.read(commit_path(version)).splitlines()]
        operation = _operation(version, actions, log)
        tag = operation.get("tag")
        if tag is not None:
            assert tag not in made_in, f"version {version}: {tag} was committed in {made_in[tag]} already"
            made_in[tag] = version
        model.do(operation)
        model.commit()
        found = pv.open(table, version=version, storage_options=options).to_arrow()
        rows = Counter(repr(plain(row)) for row in rows_of(found, ["v"]))
        wanted = Counter(repr(plain(row)) for row in model.rows.values())
        assert rows == wanted, (
            f"version {version} ({operation}): {list((rows - wanted).items())[:3]} too many, "
            f"{list((wanted - rows).items())[:3]} missing"
        )
    for tag, version in log.done.items():
        operation = log.begun[tag]
        if "tag" in operation and made_in.get(tag) != version:
            assert tag not in made_in, f"{tag} was acknowledged in {version}, is in {made_in[tag]}"
            then = Model(dict(COLUMNS), dict(model.versions[version][1]))
            assert not then.do(operation), f"{tag} was acknowledged in {version} and is nowhere"
    return newest + 1


def _operation(version: int, actions: list[dict[str, Any]], log: WriterLog) -> Operation:
    """Return the operation of a commit, among those that writers began."""
    if version == 0:
        return {"op": "append", "rows": log.first}
    info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
    names = [action["txn"]["appId"] for action in actions if "txn" in action]
    tags = _TAG.findall(" ".join([*names, info["operationParameters"].get("predicate", "")]))
    if tags:
        tag = tags[0]
        assert tag in log.begun, f"version {version}: nobody began {tag}"
        assert tag not in log.refused, f"version {version}: {tag} was refused"
        return log.begun[tag]
    kind = {"RESTORE": "restore", "OPTIMIZE": "optimize", "VACUUM END": "vacuum", "SET TBLPROPERTIES": "properties"}
    assert info["operation"] in kind, f"version {version} says {info['operation']}, which nobody began"
    return {"op": kind[info["operation"]], "version": int(info["operationParameters"].get("version", 0))}


def main(minutes: str, seed: str = "") -> None:
    """Run on the local disk, with a new table every two minutes, and print the figures."""
    chosen = int(seed or random.SystemRandom().randrange(2**32))
    versions, acknowledged, kills, tables = 0, 0, 0, max(1, round(float(minutes) / 2))
    operations: Counter[str] = Counter()
    for number in range(tables):
        with tempfile.TemporaryDirectory() as folder:
            log = soak(f"{folder}/table", {}, 60 * float(minutes) / tables, chosen + number)
            versions += check(f"{folder}/table", {}, log)
        acknowledged, kills = acknowledged + len(log.done), kills + log.kills
        operations += log.operations
    print(f"seed {chosen}: {versions} versions explained, {acknowledged} acknowledged changes, {kills} kills")
    print("lost: 0, doubled: 0, in part: 0")
    for name, count in sorted(operations.items()):
        print(f"{name}: {count}")


if __name__ == "__main__":
    main(*sys.argv[1:])
