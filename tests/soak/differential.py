"""Random histories of all operations on one Delta table, each step compared with a plain dict of rows.

Owns the kinds of tables, the choice of the next operation, and what is compared: rows, skipping, older versions,
changes, row ids. ``python -m soak.differential MINUTES [SEED]`` runs new histories for that long (`make soak`).
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import parquet_variant as pv
from parquet_variant.tables.delta.dml.changeable import DeltaTable
from parquet_variant.tables.delta.log.file_actions import iter_adds
from soak.on_table import arrow_columns, perform, plain, rows_of, sql_condition
from soak.plain_model import Model, Operation, choose, condition, new_rows, truth, widening_append

__all__ = ["History"]

_ROWS = {"append": 6, "overwrite": 1, "replace_where": 2, "replace_partitions": 1, "delete": 4, "update": 6, "merge": 7}
_OTHERS = {"optimize": 2, "restore": 2, "vacuum": 1, "checkpoint": 1, "properties": 1, "add": 1, "merge_schema": 1}


class History:
    """A table and its model, after some operations at random.

    Parameters
    ----------
    folder
        Where the table goes.
    seed
        Decides everything.
    """

    def __init__(self, folder: Path, seed: str) -> None:
        self.chance = random.Random(seed)
        self.table = str(folder / "table")
        self.operations: list[Operation] = []
        self.next_key = 0
        chance = self.chance
        self.mapping = chance.choice(["none", "none", "name", "id"])
        self.widening = chance.random() < 0.3
        self.tracked = chance.random() < 0.3
        self.fed = chance.random() < 0.4
        self.properties: dict[str, Any] = {
            "delta.checkpointInterval": chance.choice([3, 5, 100]),
            "delta.enableDeletionVectors": chance.random() < 0.5,
            "delta.enableChangeDataFeed": self.fed,
            "delta.enableRowTracking": self.tracked,
            "delta.columnMapping.mode": self.mapping,
            "delta.enableTypeWidening": self.widening,
            "delta.checkpointPolicy": chance.choice(["classic", "v2"]),
            "delta.enableInCommitTimestamps": chance.random() < 0.3,
            "delta.enableVariantShredding": chance.random() < 0.7,
        }
        self.properties = {name: value for name, value in self.properties.items() if value not in (False, "none")}
        self.model = Model({"k": "bigint", "p": "string", "a": "int", "t": "string", "v": "variant"})
        self.partition_by = ["p"] if chance.random() < 0.5 else []
        rows = new_rows(chance, self.fresh(12), self.model.columns, "first")
        options = {"properties": self.properties, "partition_by": self.partition_by}
        pv.write(self.table, arrow_columns(rows, self.model.columns), format="delta", **options)
        self.model.do({"op": "append", "rows": rows})
        self.model.commit()
        self.ids: dict[int, tuple[int, int]] = {}
        self.compare(0)

    def fresh(self, most: int) -> list[int]:
        """Keys that no row ever had."""
        start, self.next_key = self.next_key, self.next_key + self.chance.randrange(1, most)
        return list(range(start, self.next_key))

    def step(self) -> None:
        """Run one more operation and compare the results."""
        op = self.choose()
        self.operations.append(op)
        before, version = dict(self.model.columns), len(self.model.versions) - 1
        made = self.model.do(op)
        reported = perform(op, self.table, before)
        now = pv.open(self.table).snapshot.version
        if op["op"] in ("optimize", "vacuum", "checkpoint"):
            # Whether there is anything to do, they know.
            for _ in range(version, now):
                self.model.commit()
        else:
            assert now == version + made, f"{version} became {now}, {version + made} was expected"
            assert reported == now
            if made:
                self.model.commit()
        if op["op"] == "vacuum" and op["now"]:
            self.model.readable = now
        self.compare(now)
        if made and op["op"] not in ("restore", "properties"):
            self.compare_changes(now, op)

    def choose(self) -> Operation:
        """The next operation."""
        chance, columns = self.chance, self.model.columns
        weights = _ROWS | _OTHERS | ({"rename": 1, "drop": 1} if self.mapping != "none" else {})
        weights |= {"widen": 1} if self.widening and columns.get("a") == "int" else {}
        if not self.partition_by:
            del weights["replace_partitions"]
        (kind,) = chance.choices(list(weights), list(weights.values()))
        tag = f"t{len(self.operations)}"
        if kind in _ROWS:
            op = choose(chance, kind, columns, list(self.model.rows), self.fresh(6), tag)
            return op | ({"file_bytes": 2000} if kind == "append" and chance.random() < 0.2 else {})
        if kind == "merge_schema":
            return widening_append(chance, columns, self.fresh(6), tag, f"new{len(self.operations)}")
        if kind == "restore":
            return {"op": kind, "version": chance.randrange(self.model.readable, len(self.model.versions))}
        if kind == "vacuum":
            return {"op": kind, "now": chance.random() < 0.4}
        if kind == "optimize":
            return {"op": kind, "reshred": chance.random() < 0.3}
        if kind == "properties":
            return {"op": kind, "values": self.changed_properties()}
        if kind == "add":
            return {"op": kind, "name": f"add {len(self.operations)}", "type": chance.choice(["int", "variant"])}
        if kind in ("rename", "drop"):
            free = [name for name in columns if name not in ("k", "v", *self.partition_by)]
            if not free or (kind == "drop" and len(free) == 1):
                return {"op": "checkpoint"}
            name = chance.choice(free)
            if kind == "rename" and name == "p":
                return {"op": "checkpoint"}
            if kind == "drop" and name == "p":
                name = free[-1] if free[-1] != "p" else None
                if name is None:
                    return {"op": "checkpoint"}
            return {"op": kind, "name": name, "to": f"{name[:3]}_{len(self.operations)}"}
        return {"op": kind, "name": "a"} if kind == "widen" else {"op": kind}

    def changed_properties(self) -> dict[str, Any]:
        """A change of properties that no row shows."""
        name = self.chance.choice(
            ["delta.enableDeletionVectors", "delta.enableVariantShredding", "delta.checkpointInterval", "owner",
             "delta.dataSkippingNumIndexedCols"]
        )  # fmt: skip
        if name == "owner":
            return {name: "me"}
        return {name: self.chance.randrange(1, 4) if name[-4:] in ("rval", "Cols") else self.chance.random() < 0.6}

    # ---- comparing

    def compare(self, version: int) -> None:
        """The table has the rows of the model, by all ways to read it."""
        self.same(self.rows(), self.model.rows, f"version {version}")
        old = self.chance.randrange(self.model.readable, version + 1)
        columns, rows = self.model.versions[old]
        self.same(self.rows(version=old, columns=columns), rows, f"version {old} read at {version}")
        self.compare_skipping()
        if self.tracked:
            self.compare_ids(version)

    def rows(self, columns: dict[str, str] | None = None, **options: Any) -> list[dict[str, Any]]:
        """What the table holds."""
        columns = self.model.columns if columns is None else columns
        found = pv.open(self.table, **options).to_arrow()
        assert found.column_names == list(columns), (found.column_names, list(columns))
        return rows_of(found, [name for name, kind in columns.items() if kind == "variant"])

    def same(self, found: list[dict[str, Any]], wanted: dict[int, dict[str, Any]], where: str) -> None:
        """Every row once, as it should be."""
        keys = Counter(row["k"] for row in found)
        assert keys == Counter(list(wanted)), f"{where}: keys {keys - Counter(list(wanted))} too many, " + str(
            Counter(list(wanted)) - keys
        )
        for row in found:
            assert plain(row) == plain(wanted[row["k"]]), f"{where}: {row} is not {wanted[row['k']]}"

    def compare_skipping(self) -> None:
        """A condition with skipping gives what the model says."""
        asked = condition(self.chance, self.model.columns)
        wanted = sorted(key for key, row in self.model.rows.items() if truth(asked, row))
        text = f"SELECT k FROM t WHERE {sql_condition(asked)}"
        found = sorted(pv.sql(text, t=self.table).to_arrow()["k"].to_pylist())
        assert found == wanted, f"{text}: {found} is not {wanted}"

    def compare_ids(self, version: int) -> None:
        """Row ids differ, a row keeps its id, and an unchanged row its commit version."""
        current = pv.open(self.table).snapshot
        found: dict[int, tuple[int, int]] = {}
        plan = DeltaTable(current).plan({})
        for file in iter_adds(current.files):
            rows = plan.read_rows(file, None)
            names = rows.column_names[-2:]
            found |= zip(rows["k"].to_pylist(), zip(*(rows[n].to_pylist() for n in names), strict=True), strict=True)
        assert len({ids[0] for ids in found.values()}) == len(found), "row ids are not unique"
        assert all(None not in ids for ids in found.values()), f"rows without ids: {found}"
        if self.operations and self.operations[-1]["op"] != "restore":
            kept = set(self.ids) & set(found) - {row["k"] for row in self.model.inserted}
            for key in kept:
                assert found[key][0] == self.ids[key][0], f"row {key} had id {self.ids[key]}, has {found[key]}"
                touched = key in {new["k"] for _, new in self.model.updated}
                expected = version if touched else self.ids[key][1]
                assert found[key][1] == expected, f"row {key} is of version {found[key][1]}, not {expected}"
        self.ids = found

    def compare_changes(self, version: int, op: Operation) -> None:
        """Compare the changes of a version with the model; change types are compared if the table has change data."""
        found = pv.open(self.table).changes(since=version, until=version)
        variants = [name for name, kind in self.model.columns.items() if kind == "variant"]
        counts: Counter[str] = Counter()
        for row in rows_of(found, variants):
            kind = row.pop("_change_type")
            assert row.pop("_commit_version") == version
            del row["_commit_timestamp"]
            counts[f"{kind} {_text(row)}"] += 1
        model = self.model
        columns = model.complete
        if self.fed and op["op"] in ("delete", "update", "merge"):
            wanted = Counter([f"delete {_text(columns(row))}" for row in model.deleted])
            wanted += Counter(f"insert {_text(columns(row))}" for row in model.inserted)
            for old, new in model.updated:
                wanted[f"update_preimage {_text(columns(old))}"] += 1
                wanted[f"update_postimage {_text(columns(new))}"] += 1
            assert counts == wanted, f"changes of {version}: {counts - wanted} too many, {wanted - counts} missing"
        net: Counter[str] = Counter()
        for line, count in counts.items():
            kind, _, row = line.partition(" ")
            net[row] += count if kind in ("insert", "update_postimage") else -count
        expected: Counter[str] = Counter()
        for sign, rows in ((1, model.inserted), (-1, model.deleted), (-1, [old for old, _ in model.updated]),
                           (1, [new for _, new in model.updated])):  # fmt: skip
            for row in rows:
                expected[_text(columns(row))] += sign
        clean = [{row: count for row, count in rows.items() if count} for rows in (net, expected)]
        assert clean[0] == clean[1], f"changes of {version} come to {clean[0]}, not {clean[1]}"


def _text(row: dict[str, Any]) -> str:
    return repr(plain(row))


@contextmanager
def reproducible_history(
    seed: str, folder: Path, steps: int, kind: Callable[[Path, str], History] | None = None
) -> Iterator[None]:
    """Run a history; an error in it names the seed and the last operations."""
    history = (kind or History)(folder, seed)
    try:
        for _ in range(steps):
            history.step()
        yield
    except BaseException as error:
        lines = "\n".join(str(op) for op in history.operations[-4:])
        error.add_note(f"seed {seed!r}, properties {history.properties}, by {history.partition_by}, "
                       f"step {len(history.operations)}; the last operations:\n{lines}")  # fmt: skip
        raise


def run(seed: str, steps: int = 25) -> int:
    """One history in a folder of its own; the operations done."""
    with tempfile.TemporaryDirectory() as folder, reproducible_history(seed, Path(folder), steps):
        return steps


def main(minutes: str, seed: str = "") -> None:
    """New histories for some minutes."""
    chosen = seed or str(random.SystemRandom().randrange(2**32))
    stop, number, steps = time.monotonic() + 60 * float(minutes), 0, 0
    while time.monotonic() < stop:
        steps += run(f"{chosen} {number}")
        number += 1
    print(f"seed {chosen}: {number} histories, {steps} operations on tables, 0 differences to a plain model")


if __name__ == "__main__":
    main(*sys.argv[1:])
