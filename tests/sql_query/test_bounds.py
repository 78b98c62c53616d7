"""``SELECT min(a), max(b) FROM t`` reads no values where the footers prove the answer, and answers the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.files.parquet.scanning.scan import Scan
from parquet_variant.sql_query.sql import plan_sql

_ROWS = {
    "typed": ['{"n": 5, "s": "b", "d": 1.5}', '{"n": -7, "s": "a"}', '{"s": "c"}', None],
    "higher": ['{"n": 900, "s": "z", "d": 2.5}'],
    "nulls": ['{"s": "q"}', '{"n": null}', None],
    "mixed": ['{"n": 5000, "s": "b"}', '{"n": "70000"}', '{"n": 1}'],
    "texts": ['{"n": "12"}', '{"n": {"a": 1}}'],
}
_SCHEMA = "n bigint, s string, d double"
_BOUNDS = "min(v:n::{0}) AS low, max(v:n::{0}) AS high"


def _written(folder: Path, names: list[str], **options: object) -> str:
    for number, name in enumerate(names):
        values = pv.parse_json(_ROWS[name])
        pv.write(folder / f"{number}.parquet", {"v": values}, schema=_SCHEMA, **options)
    return str(folder)


def _both(what: str, path: str) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """The answer, and that of the same query with a condition, for which all rows are read."""
    return pv.sql(f"SELECT {what} FROM t", t=path).to_pylist(), pv.sql(
        f"SELECT {what} FROM t WHERE 1=1", t=path
    ).to_pylist()


def _rows_given(what: str, path: str) -> int | None:
    (plan,) = plan_sql(f"SELECT {what} FROM t", {"t": path}).plans.values()
    return sum(map(len, plan.batches())) if isinstance(plan, Scan) and plan.only_bounds else None


@pytest.mark.parametrize(
    ("names", "rows"),
    [
        (["typed"], 2),
        (["typed", "higher"], 4),
        (["nulls"], 2),
        (["typed", "mixed", "nulls"], 2 + 3 + 2),
        (["mixed", "texts"], 5),
    ],
)
@pytest.mark.parametrize("kind", ["bigint", "int", "smallint"])
def test_bounds_come_from_footers_that_prove_them(tmp_path: Path, names: list[str], rows: int, kind: str) -> None:
    path, what = _written(tmp_path, names), _BOUNDS.format(kind)
    found, expected = _both(what, path)
    assert found == expected
    assert _rows_given(what, path) == rows
    spans = _both("max(v:n::bigint) - min(v:n::bigint) + 1 AS span", path)
    assert spans[0] == spans[1]


def test_a_cast_that_fails_for_a_bound_is_not_a_proof(tmp_path: Path) -> None:
    pv.write(tmp_path / "a.parquet", {"v": pv.parse_json(['{"n": 300}', '{"n": 4}'])}, schema="n bigint")
    found, expected = _both(_BOUNDS.format("tinyint"), str(tmp_path))
    assert found == expected == [{"low": 4, "high": 4}]
    assert _rows_given(_BOUNDS.format("tinyint"), str(tmp_path)) == 2


@pytest.mark.parametrize("what", ["min(v:s::string) AS a", "max(v:d::double) AS a", "min(v:n::double) AS a"])
def test_texts_that_may_be_cut_and_doubles_are_read(tmp_path: Path, what: str) -> None:
    path = _written(tmp_path, ["typed", "higher"])
    found, expected = _both(what, path)
    assert found == expected
    assert _rows_given(what, path) == 5


@pytest.mark.parametrize(
    "what",
    ["min(v:n::int) + count(*)", "min(v:n::int, 2)", "min(DISTINCT v:n::int)", "min(v:n::int) FILTER (v:n::int > 0)",
     "sum(v:n::int)", "max(v:n::int + 1)", "min(v:n::int) OVER ()", "count(v:n::int)"],
)  # fmt: skip
def test_what_asks_for_more_reads_all_rows(tmp_path: Path, what: str) -> None:
    path = _written(tmp_path, ["typed", "higher"])
    assert _rows_given(what, path) is None
    found, expected = _both(what, path)
    assert found == expected


@pytest.mark.parametrize(
    "rest", ["GROUP BY v:s::string", "LIMIT 0", "TABLESAMPLE 1 ROWS", "JOIN t u ON 1 = 1", "HAVING 1 = 0"]
)
def test_what_stands_behind_the_table_reads_all_rows(tmp_path: Path, rest: str) -> None:
    path = _written(tmp_path, ["typed", "higher"])
    plans = plan_sql(f"SELECT max(t.v:n::int) AS a FROM t {rest}", {"t": path}).plans
    assert not any(isinstance(plan, Scan) and plan.only_bounds for plan in plans.values())


def test_files_of_other_writers_are_read(tmp_path: Path) -> None:
    path = _written(tmp_path, ["typed", "higher"], writer="pyarrow")
    found, expected = _both(_BOUNDS.format("bigint"), path)
    assert found == expected
    assert _rows_given(_BOUNDS.format("bigint"), path) == 5


def test_ordinary_columns_dates_partitions_and_row_groups(tmp_path: Path) -> None:
    rows = 3000
    days = pa.array(range(rows), pa.int32()).cast(pa.date32())
    at = pa.array(range(rows), pa.int64()).cast(pa.timestamp("us", "UTC"))
    table = {"day": days, "at": at, "v": pv.parse_json([f'{{"n": {n}}}' for n in range(rows)])}
    for part in (3, 4):
        folder = tmp_path / f"p={part}"
        folder.mkdir()
        pv.write(folder / "a.parquet", table, schema="n bigint", row_group_bytes=1 << 14)
    what = "min(day) AS a, max(at) AS b, max(v:n::bigint) AS c, min(p) AS d"
    found, expected = _both(what, str(tmp_path))
    assert found == expected
    assert found[0]["c"] == rows - 1
    groups = sum(pq.read_metadata(file).num_row_groups for file in tmp_path.glob("*/*.parquet"))
    assert _rows_given(what, str(tmp_path)) == 2 * groups
    (plan,) = plan_sql(f"SELECT {what} FROM t", {"t": str(tmp_path)}).plans.values()
    assert isinstance(plan, Scan) and plan.only_bounds
    report = plan.explain()
    assert (report.row_groups_read, report.row_groups_total, report.bytes_read) == (0, groups, 0)
    assert groups > 2
