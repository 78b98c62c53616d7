"""Several writers on one table, killed at random; then every version is what its operation makes of the one before.

Owns starting and killing the writers, and the check. What is acknowledged is in the table, in the version that the
writer was told, once; what is not acknowledged is there whole or not at all, at most once; no version holds anything
else. ``python -m soak.history MINUTES [SEED]`` runs it for longer (`make soak`).
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
from parquet_variant.delta.log.segment import commit_path
from parquet_variant.tables.storage import open_storage
from soak.on_table import arrow_columns, plain, rows_of
from soak.plain_model import Model, Operation, new_rows
from soak.worker import COLUMNS

__all__ = ["Told", "check", "soak"]

WORKER = Path(__file__).with_name("worker.py")
_TAG = re.compile(r"\bw\d+-\d+\b")
# Of the table, as a seed chooses them.
_PROPERTIES = {
    "delta.enableDeletionVectors": 0.5, "delta.enableChangeDataFeed": 0.3, "delta.enableRowTracking": 0.3,
    "delta.enableInCommitTimestamps": 0.3,
}  # fmt: skip


@dataclass
class Told:
    """What the writers said: operations begun, acknowledged with their version, refused; and how many were killed."""

    first: list[dict[str, Any]] = field(default_factory=list)
    begun: dict[str, Operation] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    done: dict[str, int] = field(default_factory=dict)
    operations: Counter[str] = field(default_factory=Counter)
    kills: int = 0

    def read(self, lines: list[str]) -> None:
        """Take over the lines of one writer; the last may be cut off."""
        for line in lines:
            try:
                said = json.loads(line)
            except ValueError:
                continue
            if said["what"] == "begin":
                self.begun[said["tag"]] = said["op"]
                continue
            self.operations[f"{said['kind']} {said['what']} {said.get('reason', '')}".strip()] += 1
            if said["what"] == "failed":
                self.refused.add(said["tag"])
                if said["reason"] not in ("conflict", "missing-file"):
                    print(f"{said['tag']} {said['reason']}: {said['message']}", file=sys.stderr)
            elif said["version"] is not None:
                self.done[said["tag"]] = said["version"]


def soak(table: str, options: dict[str, Any], seconds: float, seed: int, *, writers: int = 3) -> Told:
    """Let writers work and kill them at random for some time."""
    source = random.Random(seed)
    told = Told(new_rows(source, list(range(12)), COLUMNS, "first"))
    properties = {name: True for name, share in _PROPERTIES.items() if source.random() < share}
    partition_by = ["p"] if source.random() < 0.5 else []
    pv.delta.write(
        table, arrow_columns(told.first, COLUMNS), properties=properties | {"delta.checkpointInterval": 10},
        partition_by=partition_by, storage_options=options,
    )  # fmt: skip
    stop = time.monotonic() + seconds
    running: list[tuple[subprocess.Popen[str], float]] = []
    number = 0

    def goes_on() -> bool:
        """Until the time is over; on a busy machine until something was written, for a minute at most."""
        late = time.monotonic() - stop
        return late < 0 or (seconds > 0 and not told.done and late < 60)

    while goes_on() or running:
        while len(running) < writers and goes_on():
            command = [sys.executable, str(WORKER), table, json.dumps(options), f"w{number}", str(seed)]
            roots = [str(WORKER.parent.parent), os.environ.get("PYTHONPATH", "")]
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(roots), "OMP_NUM_THREADS": "1"}
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
            )
            running.append((process, time.monotonic() + source.uniform(2, max(3.0, seconds / 3)) + told.kills / 2))
            number += 1
        time.sleep(0.05)
        for process, until in list(running):
            if time.monotonic() > until or not goes_on():
                process.send_signal(signal.SIGKILL)
                told.kills += 1
            elif process.poll() is None:
                continue
            lines = process.communicate()[0].splitlines()
            assert not any(line.startswith("Traceback") for line in lines), "\n".join(lines[-12:])
            told.read(lines)
            running.remove((process, until))
    return told


def check(table: str, options: dict[str, Any], told: Told) -> int:
    """Explain every version; the number of versions.

    Raises
    ------
    AssertionError
        With the version that nothing explains.
    """
    model = Model(dict(COLUMNS))
    made_in: dict[str, int] = {}
    storage = open_storage(table, options)
    newest = pv.delta.snapshot(table, storage_options=options).version
    for version in range(newest + 1):
        actions = [json.loads(line) for line in storage.read(commit_path(version)).splitlines()]
        operation = _operation(version, actions, told)
        tag = operation.get("tag")
        if tag is not None:
            assert tag not in made_in, f"version {version}: {tag} was committed in {made_in[tag]} already"
            made_in[tag] = version
        model.do(operation)
        model.commit()
        found = pv.delta.read_table(table, version=version, storage_options=options)
        rows = Counter(repr(plain(row)) for row in rows_of(found, ["v"]))
        wanted = Counter(repr(plain(row)) for row in model.rows.values())
        assert rows == wanted, (
            f"version {version} ({operation}): {list((rows - wanted).items())[:3]} too many, "
            f"{list((wanted - rows).items())[:3]} missing"
        )
    for tag, version in told.done.items():
        operation = told.begun[tag]
        if "tag" in operation and made_in.get(tag) != version:
            assert tag not in made_in, f"{tag} was acknowledged in {version}, is in {made_in[tag]}"
            then = Model(dict(COLUMNS), dict(model.versions[version][1]))
            assert not then.do(operation), f"{tag} was acknowledged in {version} and is nowhere"
    return newest + 1


def _operation(version: int, actions: list[dict[str, Any]], told: Told) -> Operation:
    """What a commit says that it is, among what writers began."""
    if version == 0:
        return {"op": "append", "rows": told.first}
    info = next(each["commitInfo"] for each in actions if "commitInfo" in each)
    names = [each["txn"]["appId"] for each in actions if "txn" in each]
    tags = _TAG.findall(" ".join([*names, info["operationParameters"].get("predicate", "")]))
    if tags:
        tag = tags[0]
        assert tag in told.begun, f"version {version}: nobody began {tag}"
        assert tag not in told.refused, f"version {version}: {tag} was refused"
        return told.begun[tag]
    kind = {"RESTORE": "restore", "OPTIMIZE": "optimize", "VACUUM END": "vacuum", "SET TBLPROPERTIES": "properties"}
    assert info["operation"] in kind, f"version {version} says {info['operation']}, which nobody began"
    return {"op": kind[info["operation"]], "version": int(info["operationParameters"].get("version", 0))}


def main(minutes: str, seed: str = "") -> None:
    """Run on the local disk, a table every two minutes, and print the figures."""
    chosen = int(seed or random.SystemRandom().randrange(2**32))
    versions, acknowledged, kills, tables = 0, 0, 0, max(1, round(float(minutes) / 2))
    operations: Counter[str] = Counter()
    for number in range(tables):
        with tempfile.TemporaryDirectory() as folder:
            told = soak(f"{folder}/table", {}, 60 * float(minutes) / tables, chosen + number)
            versions += check(f"{folder}/table", {}, told)
        acknowledged, kills = acknowledged + len(told.done), kills + told.kills
        operations += told.operations
    print(f"seed {chosen}: {versions} versions explained, {acknowledged} acknowledged changes, {kills} kills")
    print("lost: 0, doubled: 0, in part: 0")
    for name, count in sorted(operations.items()):
        print(f"{name}: {count}")


if __name__ == "__main__":
    main(*sys.argv[1:])
