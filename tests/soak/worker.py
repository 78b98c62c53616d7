"""One writer of a table under test: random operations until it is killed, each told before and after; a process.

Arguments: table, storage options as JSON, name of the worker, seed. Lines on stdout: ``begin``, ``done`` or ``failed``.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

import parquet_variant as pv

ROWS = 3
# Each with how often it is chosen.
OPERATIONS = {"append": 10, "overwrite": 1, "optimize": 3, "vacuum": 1, "restore": 1, "checkpoint": 1}


def rows(batch: str) -> dict[str, Any]:
    """The rows of a batch: all of them are there, or none."""
    return {"v": pv.parse_json([json.dumps({"batch": batch, "i": i}) for i in range(ROWS)])}


def _tell(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def main(table: str, options: str, worker: str, seed: str) -> None:
    source = random.Random(f"{seed} {worker}")
    storage: dict[str, Any] = {"storage_options": json.loads(options)}
    for number in range(1_000_000):
        kind = source.choices(
            ["append", "overwrite", "optimize", "vacuum", "restore", "checkpoint"], [10, 1, 3, 1, 1, 1]
        )[0]
        batch = f"{worker}-{number}"
        _tell(what="begin", kind=kind, batch=batch)
        try:
            version = None
            if kind == "append":
                version = pv.delta.append(table, rows(batch), **storage).version
            elif kind == "overwrite":
                version = pv.delta.overwrite(table, rows(batch), **storage).version
            elif kind == "optimize":
                pv.delta.optimize(table, reshred=source.random() < 0.5, **storage)
            elif kind == "vacuum":
                pv.delta.vacuum(table, **storage)
            elif kind == "checkpoint":
                pv.delta.checkpoint(table, **storage)
            else:
                newest = pv.delta.snapshot(table, **storage).version
                version = pv.delta.restore(table, version=source.randrange(newest + 1), **storage).version
            _tell(what="done", kind=kind, batch=batch, version=version)
        except pv.VariantError as error:
            _tell(what="failed", kind=kind, batch=batch, reason=error.reason)


if __name__ == "__main__":
    main(*sys.argv[1:])
