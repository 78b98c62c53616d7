"""Pruning by the log: never wrong, as sharp as the reasoning over one file, and before any file is opened."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.query.predicate import (
    And,
    Compare,
    Constant,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    bind,
    columns_of,
    evaluate,
)  # fmt: skip
from parquet_variant.query.prune import ColumnStatistics, may_match
from parquet_variant.tables.pruning import FileStatistics, may_match_files

OPERATORS = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])


def predicates(literals: st.SearchStrategy[Any], patterns: bool = False) -> st.SearchStrategy[Predicate]:
    leaf = st.builds(Compare, st.just("x"), OPERATORS, literals) | st.just(IsNull("x"))
    if patterns:
        leaf |= st.builds(Like, st.just("x"), st.sampled_from(["a%", "ab%", "%b", "a", "b_%", "%"]))
    return st.recursive(
        leaf,
        lambda inner: (
            st.builds(Not, inner)
            | st.builds(lambda *p: And(p), inner, inner)
            | st.builds(lambda *p: Or(p), inner, inner)
        ),
        max_leaves=4,
    )


NUMBERS = st.integers(-5, 5)
TEXTS = st.text("ab", max_size=3)
DOUBLES = st.sampled_from([float("nan"), float("inf"), -1.5, 0.0, -0.0, 2.5])
CASES = [
    (pa.int64(), NUMBERS, predicates(NUMBERS | st.sampled_from([2.5, 10**30, None]))),
    (pa.string(), TEXTS, predicates(TEXTS, patterns=True)),
    (pa.float64(), DOUBLES, predicates(DOUBLES)),
]


@pytest.mark.parametrize(("kind", "values", "filters"), CASES, ids=["long", "string", "double"])
@given(data=st.data())
def test_the_columnar_reasoning_agrees_with_the_reasoning_over_one_file(
    kind: Any, values: st.SearchStrategy[Any], filters: st.SearchStrategy[Predicate], data: st.DataObject
) -> None:
    files = data.draw(st.lists(st.lists(values | st.none(), max_size=4), min_size=1, max_size=5))
    known = data.draw(st.lists(st.tuples(*[st.booleans()] * 4), min_size=len(files), max_size=len(files)))
    predicate = bind(data.draw(filters), {"x": kind})
    lower, upper, null, value = [], [], [], []
    for rows, (has_low, has_high, has_null, has_value) in zip(files, known, strict=True):
        ordered = sorted(v for v in rows if v is not None and v == v)
        lower.append(ordered[0] if ordered and has_low else None)
        upper.append(ordered[-1] if ordered and has_high else None)
        null.append(not has_null or None in rows)
        value.append(not has_value or any(v is not None for v in rows))
    statistics = FileStatistics(
        len(files), pa.array(lower, kind), pa.array(upper, kind), np.array(null), np.array(value)
    )
    found = may_match_files(predicate, {"x": statistics}, len(files))
    for index, rows in enumerate(files):
        matches = any(evaluate(predicate, {"x": pa.array(rows, kind)}).to_pylist()) if rows else False
        assert found[index] or not matches, "a file with a match was pruned"
        one = ColumnStatistics(
            None if lower[index] is None else pa.scalar(lower[index], kind),
            None if upper[index] is None else pa.scalar(upper[index], kind),
            null[index], value[index], True,
        )  # fmt: skip
        expected = may_match(predicate, lambda _, one=one: one)
        assert expected or not matches
        assert found[index] == expected


def test_what_is_unknown_never_prunes() -> None:
    predicate = Compare("x", ">", pa.scalar(3))
    assert may_match_files(predicate, {}, 3).tolist() == [True] * 3
    assert may_match_files(predicate, {"x": FileStatistics(2)}, 2).tolist() == [True] * 2
    assert may_match_files(Constant("x", None), {}, 1).tolist() == [False]
    assert columns_of(predicate) == {"x"}


SCALARS = (
    st.integers(-3, 3)
    | st.sampled_from([Decimal("1.5"), Decimal("-2.25"), 2**40, 0.1, -1.5, float("nan"), float("inf")])
    | st.sampled_from(["", "a", "ab", "b" * 40, "1", "true", "2020-01-01"])
    | st.booleans()
    | st.none()
    | st.sampled_from([datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 1)])
)
ROWS = st.dictionaries(st.sampled_from(["a", "b"]), SCALARS | st.dictionaries(st.just("c"), SCALARS), max_size=2)
FILTERS = st.sampled_from(
    [
        ("long", "x > 1"), ("long", "x = 0"), ("long", "x <> 0"), ("long", "not (x < 2)"), ("long", "x is null"),
        ("long", "x >= 1.5"), ("double", "x > 1.4"), ("double", "x <= -1.5"), ("double", "x = 0"), ("int", "x < 3"),
        ("decimal(10,2)", "x > 1.4"), ("decimal(4,0)", "x < 2"), ("float", "x > 0.05"), ("string", "x = 'a'"),
        ("string", "x like 'b%'"), ("string", "x > 'aa'"), ("string", "x < '1'"), ("boolean", "x = true"),
        ("timestamp", "x >= '2020-01-01'"), ("timestamp_ntz", "x < '2020-01-02'"), ("date", "x = '2020-01-01'"),
        ("long", "x > 1 or x is null"), ("string", "x is not null and not x like 'a%'"),
    ]
)  # fmt: skip


@settings(max_examples=3 * settings.default.max_examples)
@given(
    st.lists(st.lists(ROWS, min_size=1, max_size=4), min_size=1, max_size=4),
    FILTERS,
    st.sampled_from(["$.a", "$.b", "$.a.c"]),
    st.booleans(),
)
def test_a_scan_with_skipping_equals_a_scan_without(
    tmp_path_factory: pytest.TempPathFactory,
    files: list[list[dict[str, Any]]],
    asked: tuple[str, str],
    path: str,
    shredded: bool,
) -> None:
    kind, where = asked
    table = tmp_path_factory.mktemp("t") / "t"
    schema = "a bigint, b string" if shredded else None
    for number, rows in enumerate(files):
        data = {"k": [number] * len(rows), "v": pv.VariantArray.from_pylist(rows)}
        options = {"schema": schema} if schema else {}
        pv.write(table, data, format="delta", mode="append", **options)
        if number == 0 and not shredded:
            pv.open(table).set_properties({"delta.enableVariantShredding": "false"})
    columns = {"x": (path, kind), "k": "k"}
    plain = pv.open(table).scan(columns, where, skipping=False).to_arrow()
    query = pv.open(table).scan(columns, where)
    assert query.to_arrow().to_pylist().__repr__() == plain.to_pylist().__repr__()


def log_only(table: Path) -> None:
    """Deletes every data file: a scan that opens one fails."""
    for file in table.rglob("*.parquet"):
        if "_delta_log" not in file.parts:
            file.unlink()


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ("id >= 25", 1), ("id < 10", 1), ("id = 15", 1), ("id > 99", 0), ("id between 5 and 12", 2),
        ("k < 10", 1), ("k >= 10 and id < 20", 1), ("mag > 29.4", 1), ("name like 'n0002%'", 1), ("id is null", 3),
        ("id <> 5", 3), ("not (id >= 10)", 1), ("id < 5 or id > 28", 2), ("k is null", 0),
    ],
)  # fmt: skip
def test_files_are_pruned_before_any_is_opened(make_table: Callable[..., Path], where: str, left: int) -> None:
    table = make_table(10, 10, 10)
    columns = {"id": "$.id:long", "mag": "$.mag:double", "name": "$.name:string", "k": "k"}
    if "between" in where:
        where = "id >= 5 and id <= 12"
    whole = pv.open(table).scan(columns, where, skipping=False).to_arrow()
    query = pv.open(table).scan(columns, where)
    assert query.to_arrow().sort_by("k").to_pylist() == whole.sort_by("k").to_pylist()
    log_only(table)
    pruned = pv.open(table).scan(columns, where).plan.pruned
    assert (pruned.total, len(pruned.files)) == (3, left)
    assert len(pv.open(table).scan(columns, where).tasks(1)) == left


def test_explain_reports_what_was_pruned_and_why(make_table: Callable[..., Path]) -> None:
    table = make_table(10, 10, 10, partition_by=["p"])
    report = pv.open(table).scan({"id": "$.id:long"}, "p = 'p1' and id >= 20").explain()
    assert (report.files_total, report.files_by_partition, report.files_by_statistics) == (6, 3, 2)
    assert report.inside.files_total == 1
    assert "1 of 6 opened" in str(report)
    assert report.to_dict()["files_pruned"] == 5


def test_many_files_are_pruned_in_parts(make_table: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table(4, 4, 4, 4, partition_by=["p"])
    monkeypatch.setattr("parquet_variant.tables.pruning.FILES_AT_ONCE", 3)
    query = pv.open(table).scan({"id": "$.id:long"}, "(p = 'p1' or id = 2) and id < 10 and id >= 2")
    assert len(query.plan.pruned.files) == 4
    assert sorted(query.to_arrow()["id"].to_pylist()) == [2, 3, 5, 7, 9]


def test_files_without_statistics_are_kept(make_table: Callable[..., Path]) -> None:
    table = make_table(10, 10)
    commit = table / "_delta_log" / f"{1:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for stats in (
        None,
        "{",
        '{"minValues":{"v":"%%%"}}',
        '{"minValues":{"v":7},"maxValues":[]}',
        '{"maxValues":{"v":""}}',
    ):
        for line in lines:
            if "add" in line:
                line["add"]["stats"] = stats
        commit.write_text("".join(json.dumps(line) + "\n" for line in lines))
        query = pv.open(table).scan({"id": "$.id:long"}, "id >= 5 and id < 9")
        assert len(query.plan.pruned.files) == 2
        assert sorted(query.to_arrow()["id"].to_pylist()) == [5, 6, 7, 8]


def shredded_bounds(storage: pa.StructArray) -> pa.Array:
    return pv.shred_variant(pv.VariantArray(storage), "`$['id']` bigint, `$['name']` string").storage


def test_shredded_statistics_of_a_checkpoint_prune_too(make_table: Callable[..., Path]) -> None:
    table = make_table(10, 10, properties={"delta.checkpoint.writeStatsAsJson": "false"})
    name = table / pv.open(table).checkpoint(stats_parsed=True)
    for file in (table / "_delta_log").glob("*.json"):
        file.unlink()
    rows = pq.ParquetFile(name).read()
    add = rows["add"].combine_chunks()
    stats = pc.struct_field(add, "stats_parsed")
    for kind in ("minValues", "maxValues"):
        bounds = pc.struct_field(stats, kind)
        changed = shredded_bounds(pc.struct_field(bounds, "v"))
        bounds = pa.StructArray.from_arrays([pc.struct_field(bounds, "k"), changed], ["k", "v"])
        names = [f.name for f in stats.type]
        children = [bounds if n == kind else pc.struct_field(stats, n) for n in names]
        stats = pa.StructArray.from_arrays(children, names, mask=add.is_null())
    names = [f.name for f in add.type]
    children = [stats if n == "stats_parsed" else pc.struct_field(add, n) for n in names]
    add = pa.StructArray.from_arrays(children, names, mask=add.is_null())
    pq.write_table(rows.set_column(rows.column_names.index("add"), "add", add), name)
    assert "typed_value" in str(pq.ParquetFile(name).schema)
    for where, left in (("id >= 12", 1), ("id = 3", 1), ("name < 'n00010'", 1), ("id > 99", 0)):
        query = pv.open(table).scan({"id": "$.id:long", "name": "$.name:string"}, where)
        assert len(query.plan.pruned.files) == left, where
        assert (
            query.to_arrow().num_rows
            == pv.open(table)
            .scan({"id": "$.id:long", "name": "$.name:string"}, where, skipping=False)
            .to_arrow()
            .num_rows
        )


def test_timestamps_at_the_end_of_time_are_kept(tmp_path: Path) -> None:
    last = pa.array([2**63 - 1, 0], pa.int64()).cast(pa.timestamp("us", "UTC"))
    v = pv.cast_to_variant(pa.StructArray.from_arrays([last], ["t"]))
    pv.write(tmp_path / "t", {"t": last, "v": v}, format="delta", schema="t timestamp")
    for where in ("x >= '2020-01-01'", "t >= '2020-01-01'"):
        query = pv.open(tmp_path / "t").scan({"x": "$.t:timestamp", "t": "t"}, where)
        assert query.to_arrow().num_rows == 1, where


def test_statistics_in_the_byte_order_of_the_rfcs_examples_prune_too(make_table: Callable[..., Path]) -> None:
    table = make_table(10)
    commit = table / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    low = "0S&u501fk+ze0(tB98CpzF6vU0rJl95HpNdvjbtatpi(cu0wW^cTu"
    high = "0S&u500&]LC42A9vqZe}wb#-i1}-a+cT!xdbWhT9cTx}7v<+K"
    lines[-1]["add"]["stats"] = json.dumps({"numRecords": 10, "minValues": {"v": low}, "maxValues": {"v": high}})
    commit.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for where, left in (("c > 100", 0), ("c >= 100", 1), ("c < 1", 0), ("a < 'min'", 0), ("a > 'variant'", 0)):
        query = pv.open(table).scan({"a": "$.a:string", "c": "$.b.c:int"}, where)
        assert len(query.plan.pruned.files) == left, where
