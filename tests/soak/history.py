"""Several writers on one table, killed at random; then every version is explained by what they were told to do.

Owns starting and killing the writers, and the check. What is acknowledged is in the table, in the version that the
writer was told, once; what is not acknowledged is there whole or not at all, at most once; no version holds anything
else. ``python -m soak.history MINUTES [SEED]`` runs it for longer (`make soak`).
"""

from __future__ import annotations

import json
import os
import random
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
from soak.worker import ROWS, rows

__all__ = ["Told", "check", "soak"]

WORKER = Path(__file__).with_name("worker.py")


@dataclass
class Told:
    """What the writers said: batches begun, batches acknowledged with their version, and how many were killed."""

    begun: set[str] = field(default_factory=set)
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
            self.operations[f"{said['kind']} {said['what']}"] += 1
            if said["kind"] in ("append", "overwrite"):
                if said["what"] == "begin":
                    self.begun.add(said["batch"])
                elif said["what"] == "done":
                    self.done[said["batch"]] = said["version"]
                else:
                    self.refused.add(said["batch"])


def soak(table: str, options: dict[str, Any], seconds: float, seed: int, *, writers: int = 3) -> Told:
    """Let writers work and kill them at random for some time."""
    source = random.Random(seed)
    pv.delta.write(table, rows("first"), storage_options=options)
    told = Told(begun={"first"}, done={"first": 0})
    stop = time.monotonic() + seconds
    running: list[tuple[subprocess.Popen[str], float]] = []
    number = 0

    def goes_on() -> bool:
        """Until the time is over; on a busy machine until something was written, for a minute at most."""
        late = time.monotonic() - stop
        return late < 0 or (seconds > 0 and len(told.done) < 2 and late < 60)

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
    states: list[frozenset[str]] = []
    made_in: dict[str, int] = {}
    entries = sorted(pv.delta.history(table, storage_options=options), key=lambda entry: entry["version"])
    for version, entry in enumerate(entries):
        assert entry["version"] == version, f"version {version} is missing"
        values = pv.delta.read(table, version=version, storage_options=options).to_pylist()
        counts = Counter(value["batch"] for value in values)
        assert all(count == ROWS for count in counts.values()), f"version {version}: a part of a batch: {counts}"
        state = frozenset(counts)
        before = states[-1] if states else frozenset()
        new = state - before
        operation = str(entry["operation"])
        if operation.startswith("RESTORE"):
            assert state in states, f"version {version} restores what never was"
        elif new:
            assert len(new) == 1, f"version {version}: two batches in one commit: {new}"
            (batch,) = new
            assert batch not in made_in, f"version {version}: {batch} was committed in {made_in[batch]} already"
            made_in[batch] = version
            assert state in (before | new, new), f"version {version} ({operation}) lost {before - state}"
            assert batch in told.begun and batch not in told.refused, f"version {version}: {batch} was not asked for"
        else:
            assert state == before, f"version {version} ({operation}) lost {before - state}"
        states.append(state)
    for batch, version in told.done.items():
        assert made_in.get(batch) == version, f"{batch} was acknowledged in {version}, is in {made_in.get(batch)}"
    return len(entries)


def main(minutes: str, seed: str = "") -> None:
    """Run on the local disk and print the figures."""
    chosen = int(seed or random.SystemRandom().randrange(2**32))
    with tempfile.TemporaryDirectory() as folder:
        told = soak(f"{folder}/table", {}, 60 * float(minutes), chosen)
        versions = check(f"{folder}/table", {}, told)
    print(f"seed {chosen}: {versions} versions explained, {len(told.done)} acknowledged writes, {told.kills} kills")
    print("lost: 0, doubled: 0, in part: 0")
    for name, count in sorted(told.operations.items()):
        print(f"{name}: {count}")


if __name__ == "__main__":
    main(*sys.argv[1:])
