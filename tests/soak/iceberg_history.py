"""Random histories of operations on one Iceberg table, each step compared with a plain dict of rows.

Owns what Iceberg does in its own way: modes of changes, partition transforms, snapshot ids, rolling back, branches,
expiry, erasure, repeated batches. `differential` has the comparison. ``python -m soak.iceberg_history MINUTES
[SEED]`` runs new histories for that long (`make soak`).
"""

from __future__ import annotations

import copy
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import parquet_variant as pv
from soak.differential import History, reproducible_history
from soak.on_table import arrow_columns, perform, sql_condition
from soak.plain_model import Model, Operation, choose, new_rows, widening_append

__all__ = ["IcebergHistory"]

_ROWS = {"append": 6, "overwrite": 1, "replace_where": 2, "delete": 4, "update": 6, "merge": 7}
_OTHERS = {
    "add": 1, "rename": 1, "drop": 1, "widen": 1, "merge_schema": 1, "partitioning": 1, "properties": 1, "optimize": 3,
    "manifests": 1, "expire": 1, "orphans": 1, "branch": 1, "erase": 1, "restore": 2, "replay": 2,
}  # fmt: skip
_MODES = ["write.delete.mode", "write.update.mode", "write.merge.mode"]
_PARTITIONS = [[], [], ["p"], ["bucket(3, k)"], ["truncate(2, k)", "p"], ["truncate(1, t)"]]
_FUTURE = "2999-01-01"


class IcebergHistory(History):
    """A table and its model, after some operations at random; the seed decides everything."""

    def __init__(self, folder: Path, seed: str) -> None:
        chance = self.chance = random.Random(seed)
        self.table, self.operations, self.next_key, self.tracked = str(folder / "table"), [], 0, False
        self.properties = {name: "copy-on-write" for name in _MODES if chance.random() < 0.4}
        if chance.random() < 0.4:
            self.properties["commit.manifest.min-count-to-merge"] = "2"
        self.model = Model({"k": "bigint", "p": "string", "a": "int", "t": "string", "v": "variant"})
        self.partition_by = chance.choice(_PARTITIONS)
        rows = new_rows(chance, self.fresh(12), self.model.columns, "first")
        options = {"properties": self.properties, "partition_by": self.partition_by}
        pv.write(self.table, arrow_columns(rows, self.model.columns), format="iceberg", **options)
        self.model.do({"op": "append", "rows": rows})
        self.model.commit()
        self.line = [pv.open(self.table).version]  # The snapshots of the versions of the model.
        self.first_restorable = 0  # Rolling back keeps the columns, so only to versions that have them.
        self.batches: list[tuple[int, Operation]] = []  # The version before each append.
        self.compare(0)

    def rows(self, columns: dict[str, str] | None = None, **options: Any) -> list[dict[str, Any]]:
        """Return what the table holds, now or at a version of the model."""
        if "version" in options:
            options["version"] = self.line[options["version"]]
        return super().rows(columns, **options)

    def step(self) -> None:
        """Run one more operation and compare the results."""
        op = self.choose()
        self.operations.append(op)
        before, rows_before = dict(self.model.columns), copy.deepcopy(self.model.rows)
        if op["op"] in _ROWS:
            if op["op"] in ("append", "overwrite"):
                self.batches.append((len(self.line) - 1, op))
            self.model.do(op)
            perform(op, self.table, before)
        else:
            getattr(self, f"_{op['op']}")(op, pv.open(self.table))
        newest = pv.open(self.table).version
        if newest != self.line[-1]:
            self.line.append(newest)
            self.model.commit()
        elif op["op"] in _ROWS:
            assert self.model.rows == rows_before, f"{op} committed nothing"
        if self.model.columns != before:
            self.first_restorable = len(self.line) - (1 if op["op"] in _ROWS else 0)
        self.compare(len(self.line) - 1)

    def choose(self) -> Operation:
        """Return the next operation."""
        chance, columns = self.chance, self.model.columns
        (kind,) = chance.choices([*_ROWS, *_OTHERS], [*_ROWS.values(), *_OTHERS.values()])
        tag = f"t{len(self.operations)}"
        if kind in _ROWS:
            return choose(chance, kind, columns, list(self.model.rows), self.fresh(6), tag)
        if kind == "merge_schema":
            return widening_append(chance, columns, self.fresh(6), tag, f"new{len(self.operations)}")
        op = {"op": kind, "tag": tag}
        names = [name for name in columns if name not in ("k", "p", "t", "v")]
        restorable = range(max(self.first_restorable, self.model.readable), len(self.line))
        if (kind in ("rename", "drop") and not names) or (kind == "widen" and columns.get("a") != "int"):
            return {"op": "optimize"}
        if (kind == "restore" and not restorable) or (kind == "replay" and not self.batches):
            return {"op": "manifests"}
        choices: dict[str, dict[str, Any]] = {
            "add": {"name": f"add {len(self.operations)}", "type": chance.choice(["int", "variant", "string"])},
            "rename": {"name": chance.choice(names or [""]), "to": f"to {len(self.operations)}"},
            "drop": {"name": chance.choice(names or [""])},
            "widen": {"name": "a"},
            "partitioning": {"by": chance.choice(_PARTITIONS)},
            "properties": {"values": {chance.choice(_MODES): chance.choice(["copy-on-write", "merge-on-read"])}},
            "optimize": {"reshred": chance.random() < 0.5, "rewrite_all": chance.random() < 0.2},
            "expire": {"retain": chance.randrange(1, 4)},
            "branch": {"rows": new_rows(chance, self.fresh(6), columns, tag)},
            "restore": {"version": chance.choice(restorable or [0])},
        }
        if kind == "erase":
            return op | {"where": choose(chance, "delete", columns, list(self.model.rows), [0], tag)["where"]}
        return op | choices.get(kind, {})

    # ---- operations

    def _add(self, op: Operation, table: pv.Table) -> None:
        self.model.do(op | {"rows": []})
        table.add_columns({op["name"]: op["type"]})

    def _rename(self, op: Operation, table: pv.Table) -> None:
        self.model.do(op)
        table.rename_column(op["name"], op["to"])

    def _drop(self, op: Operation, table: pv.Table) -> None:
        self.model.do(op)
        table.drop_column(op["name"])

    def _widen(self, op: Operation, table: pv.Table) -> None:
        self.model.do(op)
        table.widen_column(op["name"], "bigint")

    def _partitioning(self, op: Operation, table: Any) -> None:
        table.set_partitioning(op["by"])

    def _properties(self, op: Operation, table: pv.Table) -> None:
        table.set_properties(op["values"])

    def _optimize(self, op: Operation, table: pv.Table) -> None:
        table.optimize(reshred=op.get("reshred", False), rewrite_all=op.get("rewrite_all", False))

    def _manifests(self, op: Operation, table: Any) -> None:
        table.rewrite_manifests()

    def _orphans(self, op: Operation, table: Any) -> None:
        table.remove_orphan_files(older_than=_FUTURE)

    def _expire(self, op: Operation, table: Any) -> None:
        table.expire_snapshots(older_than=_FUTURE, retain_last=op["retain"])
        self.model.readable = max(self.model.readable, len(self.line) - op["retain"])

    def _erase(self, op: Operation, table: pv.Table) -> None:
        self.model.do(op | {"op": "delete"})
        table.erase(sql_condition(op["where"]), force=True)
        # The newest snapshot is not that of before, also if no row was erased.
        self.model.readable = len(self.line) - (pv.open(self.table).version == self.line[-1])

    def _branch(self, op: Operation, table: Any) -> None:
        table.branch(op["tag"])
        on_branch = pv.open(self.table, branch=op["tag"])
        on_branch.append(arrow_columns(op["rows"], self.model.columns))
        assert len(pv.open(self.table)) == len(self.model.rows)
        self.model.do(op | {"op": "append"})
        assert len(pv.open(self.table, branch=op["tag"])) == len(self.model.rows)
        table.fast_forward("main", op["tag"])
        table.drop_reference(op["tag"])

    def _restore(self, op: Operation, table: pv.Table) -> None:
        version = op["version"]
        table.restore(self.line[version])
        del self.line[version + 1 :], self.model.versions[version + 1 :]
        self.model.rows = copy.deepcopy(self.model.versions[version][1])
        self.batches = [(before, batch) for before, batch in self.batches if before < version]

    def _replay(self, op: Operation, table: pv.Table) -> None:
        _, batch = self.chance.choice(self.batches)
        rows = arrow_columns(batch["rows"], self.model.columns)
        assert not table.append(rows, batch=(batch["tag"], 1)).committed, f"{batch['tag']} was committed twice"


def main(minutes: str, seed: str = "") -> None:
    """Run new histories for some minutes."""
    chosen, number = seed or str(random.SystemRandom().randrange(2**32)), 0
    stop = time.monotonic() + 60 * float(minutes)
    while time.monotonic() < stop:
        with (
            tempfile.TemporaryDirectory() as folder,
            reproducible_history(f"{chosen} {number}", Path(folder), 25, IcebergHistory),
        ):
            number += 1
    print(f"seed {chosen}: {number} histories of Iceberg tables, 0 differences to a plain model")


if __name__ == "__main__":
    main(*sys.argv[1:])
