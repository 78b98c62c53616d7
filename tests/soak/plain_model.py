"""A table as a dict of rows, and random operations on it: what a Delta table is compared with.

Owns operations as plain data (so that they can be printed, sent to another process and repeated), what each means for
a dict of rows by key, and choosing them at random. Leaves doing them on a Delta table to `on_table`.
"""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

__all__ = ["NULL", "Model", "Operation", "Rows", "choose", "new_rows", "widening_append"]

Operation = dict[str, Any]
Row = dict[str, Any]
Rows = dict[int, Row]
# SQL's NULL in a Variant column, which is not JSON's null.
NULL = {"$": "NULL"}
_COMPARED = {
    "=": lambda a, b: a == b, "<>": lambda a, b: a != b, "<": lambda a, b: a < b, ">=": lambda a, b: a >= b,
}  # fmt: skip
PARTITIONS = ("p0", "p/1", "p 2%=", None)
# Paths of the Variant that conditions ask for, and their types.
PATHS = {"v:n": "bigint", "v:s": "string", "v:o.x": "bigint", "v:id": "bigint"}


def value_of(row: Row, name: str) -> Any:
    """A column, or a path of the Variant cast to its type; None is SQL's NULL."""
    column, _, path = name.partition(":")
    value = row.get(column)
    if not path or value == NULL or value is None:
        return None if value == NULL else value
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    if PATHS[name] == "string" or value is None:
        return value if value is None else str(value)
    return None if isinstance(value, str) else int(value)


def truth(condition: Any, row: Row, other: Row | None = None) -> bool | None:
    """A condition of SQL over a row (``target`` in a merge), and over one of the source: true, false or unknown."""
    if condition is None:
        return True
    kind, *rest = condition
    if kind == "compare":
        name, sign, literal = rest
        value = value_of(row if other is None or not name.startswith("source.") else other, name.split(".", 1)[1]) if (
            name.startswith(("source.", "target."))
        ) else value_of(row, name)  # fmt: skip
        return None if value is None else _COMPARED[sign](value, literal)
    if kind == "null":
        return value_of(row, rest[0]) is None
    if kind == "not":
        inner = truth(rest[0], row, other)
        return None if inner is None else not inner
    left, right = (truth(item, row, other) for item in rest)
    decided = kind == "or"
    if decided in (left, right):
        return decided
    return None if None in (left, right) else not decided


@dataclass
class Model:
    """The rows of a table by key, the table's columns, and all its versions.

    Parameters
    ----------
    columns
        Type by name, in order: ``bigint``, ``int``, ``string`` or ``variant``.
    rows
        By the value of column ``k``.
    versions
        Columns and rows of each version.
    readable
        The oldest version whose files vacuum has left.
    """

    columns: dict[str, str]
    rows: Rows = field(default_factory=dict)
    versions: list[tuple[dict[str, str], Rows]] = field(default_factory=list)
    readable: int = 0
    deleted: list[Row] = field(default_factory=list)
    updated: list[tuple[Row, Row]] = field(default_factory=list)
    inserted: list[Row] = field(default_factory=list)

    def commit(self) -> None:
        """The state is a version of the table."""
        self.versions.append((dict(self.columns), copy.deepcopy(self.rows)))

    def do(self, op: Operation) -> bool:
        """Do an operation; whether it makes a version (None-changing ones do not)."""
        self.deleted, self.updated, self.inserted = [], [], []
        done: bool = getattr(self, f"_{op['op']}")(op)
        return done

    def complete(self, row: Row) -> Row:
        """A row with every column of the table."""
        return {name: row.get(name, NULL if kind == "variant" else None) for name, kind in self.columns.items()}

    def _insert(self, row: Row) -> None:
        whole = self.complete(row)
        assert whole["k"] not in self.rows, f"key {whole['k']} is there"
        self.rows[whole["k"]] = whole
        self.inserted.append(whole)

    def _remove(self, keys: list[int]) -> None:
        self.deleted += [self.rows.pop(key) for key in keys]

    def _append(self, op: Operation) -> bool:
        for name, kind in op.get("new", {}).items():
            self.columns[name] = kind
            for row in self.rows.values():
                row[name] = NULL if kind == "variant" else None
        for row in op["rows"]:
            self._insert(row)
        return True

    def _overwrite(self, op: Operation) -> bool:
        self._remove(list(self.rows))
        return self._append(op)

    def _replace_where(self, op: Operation) -> bool:
        self._remove([key for key, row in self.rows.items() if truth(op["where"], row)])
        self._append(op)
        return bool(self.deleted or self.inserted)

    def _replace_partitions(self, op: Operation) -> bool:
        touched = {row.get("p") for row in op["rows"]}
        self._remove([key for key, row in self.rows.items() if row["p"] in touched])
        return self._append(op)

    def _delete(self, op: Operation) -> bool:
        self._remove([key for key, row in self.rows.items() if truth(op["where"], row)])
        return bool(self.deleted)

    def _update(self, op: Operation) -> bool:
        for key in [key for key, row in self.rows.items() if truth(op["where"], row)]:
            self._change(key, op["set"], self.rows[key], None)
        return bool(self.updated)

    def _change(self, key: int, assignments: dict[str, Any], row: Row, source: Row | None) -> None:
        new = copy.deepcopy(row)
        for target, value in assignments.items():
            self._assign(new, target, _evaluated(value, row, source))
        self.updated.append((row, new))
        self.rows[key] = new

    def _assign(self, row: Row, target: str, value: Any) -> None:
        column, _, path = target.partition(":")
        if not path:
            row[column] = NULL if value is None and self.columns[column] == "variant" else value
        elif row[column] != NULL:
            inside = row[column]
            *way, last = path.split(".")
            for step in way:
                inside = inside.setdefault(step, {})
            inside[last] = value

    def _merge(self, op: Operation) -> bool:
        sources = [row | {"v": row.get("v", NULL)} for row in op["rows"]]
        met: set[int] = set()
        before = dict(self.rows)
        for key, row in before.items():
            pairs = [at for at, source in enumerate(sources) if _joins(op["on"], row, source)]
            met |= set(pairs)
            kind = "matched" if pairs else "not_matched_by_source"
            source = sources[pairs[0]] if pairs else None
            clause = next((c for c in op["clauses"] if c["when"] == kind and truth(c["where"], row, source)), None)
            if clause is None:
                continue
            if clause["action"] == "delete":
                self._remove([key])
            else:
                values = clause["set"]
                if values is None:
                    values = {name: ["column", f"source.{name}"] for name in op["columns"]}
                self._change(key, values, row, source)
        for at, source in enumerate(sources):
            if at in met:
                continue
            clause = next(
                (c for c in op["clauses"] if c["when"] == "not_matched" and truth(c["where"], source, source)), None
            )
            if clause is not None:
                self._insert({name: source.get(name) for name in op["columns"]})
        return bool(self.deleted or self.updated or self.inserted)

    def _restore(self, op: Operation) -> bool:
        self.columns, self.rows = copy.deepcopy(self.versions[op["version"]])
        return True

    def _optimize(self, op: Operation) -> bool:
        return False

    def _vacuum(self, op: Operation) -> bool:
        return False

    def _checkpoint(self, op: Operation) -> bool:
        return False

    def _properties(self, op: Operation) -> bool:
        return True

    def _add(self, op: Operation) -> bool:
        return self._append({"new": {op["name"]: op["type"]}, "rows": []})

    def _rename(self, op: Operation) -> bool:
        def renamed(row: dict[str, Any]) -> dict[str, Any]:
            return {op["to"] if name == op["name"] else name: value for name, value in row.items()}

        self.columns = renamed(self.columns)
        self.rows = {key: renamed(row) for key, row in self.rows.items()}
        return True

    def _drop(self, op: Operation) -> bool:
        del self.columns[op["name"]]
        for row in self.rows.values():
            del row[op["name"]]
        return True

    def _widen(self, op: Operation) -> bool:
        self.columns[op["name"]] = "bigint"
        return True


def _evaluated(value: Any, row: Row, source: Row | None) -> Any:
    kind, *rest = value
    if kind == "literal":
        return rest[0]
    side, _, name = rest[0].rpartition(".") if rest[0].startswith(("source.", "target.")) else ("", "", rest[0])
    found = value_of(source if side == "source" and source is not None else row, name)
    if kind == "column":
        return copy.deepcopy(found)
    return None if found is None else found + rest[1]


def _joins(on: list[list[str]], row: Row, source: Row) -> bool:
    pairs = [(value_of(row, left), value_of(source, right)) for left, right in on]
    return all(left is not None and right is not None and left == right for left, right in pairs)


# ---- at random


def variant_value(chance: random.Random, key: int, tag: str) -> Any:
    """A value of the Variant column."""
    if chance.random() < 0.06:
        return NULL
    value: dict[str, Any] = {"id": key, "by": tag}
    if chance.random() < 0.9:
        value["n"] = chance.choice([chance.randrange(-20, 20), chance.randrange(20), None, Decimal("2.5"), "odd"])
    if chance.random() < 0.8:
        value["s"] = chance.choice(["a", "b", "ü" * 40, ""])
    if chance.random() < 0.5:
        value["o"] = {"x": chance.randrange(10)}
    if chance.random() < 0.2:
        value["l"] = [key, {"deep": None}]
    return value


def new_rows(chance: random.Random, keys: list[int], columns: dict[str, str], tag: str) -> list[Row]:
    """Rows with these keys."""
    rows = []
    for key in keys:
        row: Row = {}
        for name, kind in columns.items():
            if name == "k":
                row[name] = key
            elif name == "p":
                row[name] = chance.choice(PARTITIONS)
            elif kind == "variant":
                row[name] = variant_value(chance, key, tag)
            elif kind == "string":
                row[name] = chance.choice(["x", "y", tag, None])
            else:
                row[name] = chance.choice([None, chance.randrange(-9, 9), key % 7])
        rows.append(row)
    return rows


def condition(chance: random.Random, columns: dict[str, str], depth: int = 0, side: str = "") -> Any:
    """A condition that some rows meet."""
    kind = chance.random()
    if depth < 2 and kind < 0.35:
        return [chance.choice(["and", "or"]), condition(chance, columns, depth + 1, side),
                condition(chance, columns, depth + 1, side)]  # fmt: skip
    if depth < 2 and kind < 0.42:
        return ["not", condition(chance, columns, depth + 1, side)]
    names = [name for name, each in columns.items() if each != "variant"] + (list(PATHS) if "v" in columns else [])
    name = chance.choice(names)
    if kind < 0.5:
        return ["null", side + name] if not side else ["compare", f"{side}k", ">=", chance.randrange(80)]
    if name in ("k", "v:id"):
        literal: Any = chance.randrange(90)
    elif PATHS.get(name, columns.get(name)) == "string":
        literal = chance.choice(["a", "x", "p0", "p 2%=", "p/1", "ü" * 40])
    else:
        literal = chance.randrange(-9, 15)
    return ["compare", side + name, chance.choice(list(_COMPARED)), literal]


def assignments(chance: random.Random, columns: dict[str, str], tag: str, source: bool = False) -> dict[str, Any]:
    """What an update sets, which does not change a key."""
    values: dict[str, Any] = {}
    if "v" in columns:
        values["v:by"] = ["literal", tag]
        if chance.random() < 0.4:
            values["v:o.x"] = ["plus", "k", 1]
        if chance.random() < 0.3:
            values["v:n"] = ["column", "source.k"] if source else ["column", "v:o.x"]
    for name, kind in columns.items():
        if name == "k" or chance.random() < 0.6:
            continue
        if name == "p":
            values[name] = ["literal", chance.choice(PARTITIONS)]
        elif kind == "string":
            values[name] = chance.choice([["literal", tag], ["literal", None]])
        elif kind != "variant":
            values[name] = chance.choice([["literal", chance.randrange(9)], ["plus", name, 1], ["literal", None]])
    if not values:
        number = next((name for name, kind in columns.items() if kind in ("int", "bigint") and name != "k"), None)
        values = {number: ["literal", 3]} if number is not None else {"k": ["column", "k"]}
    return values


def clauses(chance: random.Random, columns: dict[str, str], given: list[str], tag: str) -> list[dict[str, Any]]:
    """The clauses of a merge, at least one."""
    found: list[dict[str, Any]] = []

    def maybe(share: float, side: str) -> Any:
        return condition(chance, {"k": "bigint"}, 2, side) if chance.random() < share else None

    if chance.random() < 0.3:
        found.append({"when": "matched", "action": "delete", "set": None, "where": maybe(0.9, "target.")})
    if chance.random() < 0.8:
        every = chance.random() < 0.5
        found.append(
            {"when": "matched", "action": "update", "set": None if every else assignments(chance, columns, tag, True),
             "where": maybe(0.3, "source.")}
        )  # fmt: skip
    if chance.random() < 0.8 or not found:
        found.append({"when": "not_matched", "action": "insert", "set": None, "where": maybe(0.3, "source.")})
    if chance.random() < 0.15:
        found.append({"when": "not_matched_by_source", "action": "delete", "set": None, "where": maybe(1, "target.")})
    if chance.random() < 0.15:
        found.append(
            {"when": "not_matched_by_source", "action": "update", "set": assignments(chance, columns, tag),
             "where": maybe(1, "target.")}
        )  # fmt: skip
    return found


def choose(chance: random.Random, kind: str, columns: dict[str, str], keys: list[int], fresh: list[int], tag: str,
           ) -> Operation:  # fmt: skip
    """An operation on rows.

    Parameters
    ----------
    chance
        The random source.
    kind
        Which one.
    columns
        Of the table.
    keys, fresh
        Keys that rows have, and some that no row ever had.
    tag
        In new values, so that written values identify their writer.
    """
    rows = new_rows(chance, fresh, columns, tag)
    if kind in ("append", "overwrite", "replace_partitions"):
        return {"op": kind, "rows": rows, "tag": tag}
    if kind == "replace_where":
        part = chance.choice(PARTITIONS[:-1])
        where = ["compare", "p", "=", part] if chance.random() < 0.5 else ["compare", "k", ">=", min(fresh)]
        return {"op": kind, "where": where, "rows": [row | {"p": part} for row in rows], "tag": tag}
    if kind in ("delete", "update"):
        where = condition(chance, columns)
        if chance.random() < 0.7 and keys:
            # Most of the time a few rows, or histories would be of empty tables.
            low = chance.choice(keys)
            where = ["and", ["and", ["compare", "k", ">=", low], ["compare", "k", "<", low + 9]], where]
        found: Operation = {"op": kind, "where": where, "tag": tag}
        return found | ({"set": assignments(chance, columns, tag)} if kind == "update" else {})
    assert kind == "merge", kind
    some = sorted({*chance.sample(keys, min(len(keys), chance.randrange(6))), *fresh})
    given = [name for name in columns if name == "k" or name == "p" or chance.random() < 0.7]
    on = chance.choice([[["k", "k"]], [["k", "k"]], [["k", "k"], ["p", "p"]]])
    if len(on) > 1:
        some = fresh  # A key whose partition differs would be inserted a second time.
    if "v" in columns and chance.random() < 0.2:
        some, on = fresh, [["v:id", "k"]]
    rows = new_rows(chance, some, {name: columns[name] for name in given}, tag)
    return {"op": kind, "rows": rows, "columns": given, "on": on, "tag": tag,
            "clauses": clauses(chance, columns, given, tag)}  # fmt: skip


def widening_append(chance: random.Random, columns: dict[str, str], fresh: list[int], tag: str, name: str) -> Operation:
    """An append of rows with one more column, `name`; the other parameters are those of `choose`."""
    op = choose(chance, "append", columns, [], fresh, tag)
    new = {name: chance.choice(["int", "string", "variant", "bigint"])}
    for row, more in zip(op["rows"], new_rows(chance, [0] * len(op["rows"]), new, tag), strict=True):
        row |= more
    return op | {"new": new}
