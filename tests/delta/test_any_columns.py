"""Tables with columns of any types and nesting, changed in every way: a dict of rows says what has to be there."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import parquet_variant as pv
from random_tables import PRIMITIVES, fields

KINDS = tuple(
    kind
    for kind in PRIMITIVES
    if str(kind) in "bool int8 int16 int32 int64 float double date32[day] timestamp[us] timestamp[us, tz=UTC] string "
    "large_string binary decimal128(9, 2) decimal128(38, 9)"
)
NAMES = ["a", "b c", "d.e", "Ü", "x,y", "select", "a-b", "`t`", "(z)"]
VARIANT = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
MARK = {"ARROW:extension:name": "arrow.parquet.variant"}
VALUES = pv.parse_json(["1", '{"a": [1, {"b": null}]}', "null"]).to_unshredded().storage.cast(VARIANT).to_pylist()
OPERATIONS = ["append", "update", "set null", "delete", "merge", "replace", "optimize", "checkpoint", "restore"]


@st.composite
def variants(draw: st.DrawFn) -> tuple[pa.Field, st.SearchStrategy[Any]]:
    """A Variant, alone or in a struct, list or map."""
    field, values = pa.field("k", VARIANT, metadata=MARK), st.none() | st.sampled_from(VALUES)
    shape = draw(st.sampled_from(["alone", "struct", "list", "map"]))
    if shape == "struct":
        fixed = st.fixed_dictionaries({"k": values, "n": st.integers(0, 9)})
        return pa.field("x", pa.struct([field, pa.field("n", pa.int64(), False)])), st.none() | fixed
    if shape == "list":
        return pa.field("x", pa.list_(field.with_name("element"))), st.none() | st.lists(values, max_size=3)
    if shape == "map":
        pairs = st.lists(st.tuples(st.sampled_from("ab"), values), max_size=2, unique_by=lambda pair: pair[0])
        return pa.field("x", pa.map_(pa.string(), field.with_name("value"))), st.none() | pairs
    return field, values


def comparable(rows: Any) -> list[str]:
    return sorted(repr(tuple(row.values())) for row in rows)


class _Table:
    """A Delta table of drawn columns, and its rows by id."""

    def __init__(self, folder: str, data: st.DataObject) -> None:
        self.path, self.data = str(Path(folder) / "t"), data
        mapping = data.draw(st.sampled_from(["none", "name", "id"]), "mapping")
        names = [name for name in NAMES if mapping != "none" or not set(name) & set(" ,;{}()=")]
        drawn = data.draw(st.lists(fields(KINDS, 2) | variants(), min_size=1, max_size=4), "columns")
        self.columns = {
            name: (field.with_name(name).with_nullable(True), st.none() | values)
            for name, (field, values) in zip(data.draw(st.permutations(names)), drawn, strict=False)
        }
        self.schema = pa.schema([pa.field("id", pa.int64()), *(field for field, _ in self.columns.values())])
        switches = ["enableDeletionVectors", "enableChangeDataFeed", "enableRowTracking", "enableInCommitTimestamps"]
        properties = {f"delta.{name}": True for name in switches if data.draw(st.booleans(), name)}
        if mapping != "none":
            properties["delta.columnMapping.mode"] = mapping
        self.rows: dict[int, dict[str, Any]] = {}
        self.next = 0
        rows = self.fresh(4)
        pv.write(self.path, self.arrow(rows), format="delta", properties=properties | {"delta.checkpointInterval": 3})
        self.take(rows)
        self.versions = {0: dict(self.rows)}

    def arrow(self, rows: list[dict[str, Any]]) -> pa.Table:
        return pa.table([pa.array([row[f.name] for row in rows], f.type) for f in self.schema], schema=self.schema)

    def fresh(self, count: int, ids: list[int] | None = None) -> list[dict[str, Any]]:
        if ids is None:
            ids, self.next = list(range(self.next, self.next + count)), self.next + count
        drawn = st.fixed_dictionaries({name: values for name, (_, values) in self.columns.items()})
        return [{"id": key, **self.data.draw(drawn, f"row {key}")} for key in ids]

    def take(self, rows: list[dict[str, Any]]) -> None:
        self.rows |= {row["id"]: row for row in rows}

    def do(self, operation: str) -> None:
        rest = self.data.draw(st.integers(0, 2), "rest")
        hit = [key for key in self.rows if key % 3 == rest]
        where = f"id % 3 = {rest}"
        name = self.data.draw(st.sampled_from(list(self.columns)), "column")
        quoted = f"`{name.replace('`', '``')}`"
        if operation == "append":
            self.take(rows := self.fresh(self.data.draw(st.integers(0, 3))))
            pv.open(self.path).append(self.arrow(rows))
        elif operation in ("update", "set null"):
            value = "NULL" if operation == "set null" else quoted
            pv.open(self.path).update({quoted: value}, where)
            if operation == "set null":
                self.take([self.rows[key] | {name: None} for key in hit])
        elif operation == "delete":
            pv.open(self.path).delete(where)
            self.rows = {key: row for key, row in self.rows.items() if key not in hit}
        elif operation == "merge":
            self.take(rows := self.fresh(0, hit[:2]) + self.fresh(1))
            merge = pv.open(self.path).merge(self.arrow(rows), "target.id = source.id")
            merge.when_matched_update_all().when_not_matched_insert_all().execute()
        elif operation == "replace":
            rows = self.fresh(0, [key for key in range(self.next, self.next + 3) if key % 3 == rest])
            self.next += 3
            pv.open(self.path).overwrite(self.arrow(rows), where=where)
            self.rows = {key: row for key, row in self.rows.items() if key not in hit}
            self.take(rows)
        elif operation == "restore":
            version = self.data.draw(st.sampled_from(list(self.versions)), "version")
            pv.open(self.path).restore(version=version)
            self.rows = dict(self.versions[version])
        else:
            getattr(pv.open(self.path), operation)()
        self.versions[pv.open(self.path).snapshot.version] = dict(self.rows)

    def check(self) -> None:
        expected = pv.sql("SELECT * FROM t", t=self.arrow(list(self.rows.values()))).to_arrow()
        answer = pv.sql("SELECT * FROM t", t=self.path).to_arrow()
        assert comparable(answer.to_pylist()) == comparable(expected.to_pylist())
        whole = pv.open(self.path).to_arrow()
        assert comparable(pv.sql("SELECT * FROM t", t=whole).to_arrow().to_pylist()) == comparable(expected.to_pylist())
        names = [field.name for field in self.schema if field.type != VARIANT]
        scanned = pv.sql("SELECT * FROM t", t=pv.open(self.path).scan(names).to_arrow()).to_arrow()
        assert comparable(scanned.to_pylist()) == comparable(expected.select(names).to_pylist())


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(data=st.data())
def test_any_columns_after_any_change_are_those_of_a_dict_of_rows(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table = _Table(folder, data)
        table.check()
        for operation in data.draw(st.lists(st.sampled_from(OPERATIONS), min_size=1, max_size=4), "operations"):
            table.do(operation)
            table.check()
