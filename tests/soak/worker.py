"""A writer process of a table under test: random operations until it is killed, announced before and after.

Arguments: table, storage options as JSON, name of the worker, seed. Lines on stdout: ``begin`` with the operation as
data, then ``done`` with its version, or ``failed``.
"""

from __future__ import annotations

import json
import random
import sys
from typing import Any

import parquet_variant as pv
from soak.on_table import perform
from soak.plain_model import choose

# Each with how often it is chosen.
OPERATIONS = {
    "append": 8, "overwrite": 1, "replace_where": 2, "delete": 4, "update": 5, "merge": 5, "optimize": 3, "vacuum": 1,
    "restore": 1, "checkpoint": 1, "properties": 1,
}  # fmt: skip
COLUMNS = {"k": "bigint", "p": "string", "a": "int", "t": "string", "v": "variant"}
_KEYS = 1_000_000


def _tell(**what: Any) -> None:
    print(json.dumps(what, default=float), flush=True)


def _next(chance: random.Random, table: str, tag: str, fresh: list[int], storage: dict[str, Any]) -> dict[str, Any]:
    kind = chance.choices(list(OPERATIONS), list(OPERATIONS.values()))[0]
    if kind == "restore":
        return {"op": kind, "version": chance.randrange(pv.open(table, **storage).snapshot.version + 1)}
    if kind == "properties":
        return {"op": kind, "values": {"delta.dataSkippingNumIndexedCols": chance.randrange(1, 9)}}
    if kind in ("optimize", "vacuum", "checkpoint"):
        return {"op": kind, "reshred": chance.random() < 0.5}
    keys = pv.open(table, **storage).to_arrow(columns=["k"])["k"].to_pylist()
    return choose(chance, kind, COLUMNS, keys, fresh, tag)


def main(table: str, options: str, worker: str, seed: str) -> None:
    chance = random.Random(f"{seed} {worker}")
    storage: dict[str, Any] = {"storage_options": json.loads(options)}
    key = _KEYS * (1 + int(worker.removeprefix("w")))
    for number in range(_KEYS):
        tag = f"{worker}-{number}"
        fresh = list(range(key, key + chance.randrange(1, 6)))
        key = fresh[-1] + 1
        try:
            op = _next(chance, table, tag, fresh, storage)
            _tell(what="begin", tag=tag, op=op)
            _tell(what="done", tag=tag, kind=op["op"], version=perform(op, table, COLUMNS, **storage))
        except pv.VariantError as error:
            _tell(what="failed", tag=tag, kind=op["op"], reason=error.reason, message=str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])
