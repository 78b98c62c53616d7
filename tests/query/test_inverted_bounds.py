"""Statistics whose minimum is above their maximum prove nothing, in every format."""

from __future__ import annotations

import datetime
import json
import uuid
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.inference.statistics import LeafStatistics
from parquet_variant.query.predicate import Compare, In
from parquet_variant.query.prune import ColumnStatistics, may_match
from parquet_variant.tables.pruning import FileStatistics, may_match_files

PAIRS = [
    (pa.int64(), 10, 20, 15),
    (pa.string(), "a", "é", "b"),
    (pa.float64(), -1.5, 2.5, 0.0),
    (pa.decimal128(9, 2), Decimal("1.00"), Decimal("9.99"), Decimal("5.00")),
    (pa.date32(), datetime.date(2020, 1, 1), datetime.date(2021, 1, 1), datetime.date(2020, 6, 1)),
    (pa.timestamp("us", "UTC"), *(datetime.datetime(2020, 1, day, tzinfo=datetime.UTC) for day in (1, 9, 5))),
    (pa.binary(), b"a", b"z", b"m"),
]


@pytest.mark.parametrize("case", PAIRS, ids=lambda case: str(case[0]))
@pytest.mark.parametrize("op", ["=", "<", "<=", ">", ">=", "<>"])
def test_inverted_bounds_of_one_part_and_of_many_files_skip_nothing(case, op):
    kind, low, high, literal = case
    compare = Compare("n", op, pa.scalar(literal, kind))
    inverted = ColumnStatistics(pa.scalar(high, kind), pa.scalar(low, kind), may_be_null=False, may_be_nan=False)
    assert may_match(compare, lambda _: inverted)
    files = FileStatistics(2, pa.array([high, low], kind), pa.array([low, high], kind), False, True, False)
    assert may_match_files(compare, {"n": files}, 2).tolist() == [True, True]
    assert LeafStatistics(3, 0, pa.scalar(high, kind), pa.scalar(low, kind)) == LeafStatistics(3, 0)
    outside = Compare("n", ">", pa.scalar(high, kind))
    assert may_match_files(outside, {"n": files}, 2).tolist() == [True, False]


def test_inverted_bounds_of_uuids_are_unknown():
    low, high = (uuid.UUID(int=number).bytes for number in (1, 9))
    columns = [
        pa.ExtensionArray.from_storage(pa.uuid(), pa.array(pair, pa.binary(16))) for pair in ([high, low], [low, high])
    ]
    files = FileStatistics(2, *columns)
    assert files.lower.storage.to_pylist() == [None, low]
    assert files.upper.storage.to_pylist() == [None, high]


def test_an_inverted_row_group_makes_the_bounds_of_the_file_unknown():
    good = LeafStatistics(5, 0, pa.scalar(0), pa.scalar(9))
    assert good.merge(LeafStatistics(5, 0, pa.scalar(20), pa.scalar(10))) == LeafStatistics(10, 0)


def test_keys_are_searched_in_files_with_inverted_bounds():
    lower, upper = pa.array([20, 0]), pa.array([10, 9])
    files = FileStatistics(2, lower, upper)
    assert may_match_files(In("n", pa.array([5])), {"n": files}, 2).tolist() == [True, True]
    assert may_match_files(In("n", pa.array([15])), {"n": files}, 2).tolist() == [True, False]


def _set_bounds(table: Path, column: str, low: object, high: object) -> None:
    (log,) = (table / "_delta_log").glob("*.json")
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            stats = json.loads(action["add"]["stats"])
            stats["minValues"][column], stats["maxValues"][column] = low, high
            action["add"]["stats"] = json.dumps(stats)
    log.write_text("".join(json.dumps(action) + "\n" for action in actions))


@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.decimal128(9, 2)], ids=str)
def test_booleans_are_not_bounds_of_numbers(kind: pa.DataType, tmp_path: Path) -> None:
    rows = {"x": pa.array([1, 2, 3], kind), "v": pv.from_python([1, 2, 3])}
    pv.write(tmp_path / "t", rows, format="delta")
    _set_bounds(tmp_path / "t", "x", False, True)
    assert len(pv.open(tmp_path / "t").scan(["x"], "x >= 2").to_arrow()) == 2


def test_a_delta_table_with_inverted_statistics_loses_no_row(tmp_path: Path) -> None:
    table = tmp_path / "t"
    pv.write(table, {"id": np.arange(10), "v": pv.from_python([{"n": number} for number in range(10)])}, format="delta")
    _set_bounds(table, "id", 20, 10)
    assert pv.open(table).scan(["id"], "id = 5").to_arrow()["id"].to_pylist() == [5]
    pv.open(table).delete("id = 5")
    assert sorted(pv.open(table).scan(["id"]).to_arrow()["id"].to_pylist()) == [0, 1, 2, 3, 4, 6, 7, 8, 9]
