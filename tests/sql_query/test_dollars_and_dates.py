"""Keys with a dollar sign, as MongoDB has them, and dates in quotes, which skip files as date literals do."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("duckdb", reason="DuckDB is not installed")

import parquet_variant as pv
from parquet_variant.sql_query.sql import plan_sql

DAYS = [dt.date(2026, 11, day) for day in range(1, 6)]
TIMES = [dt.datetime(2026, 11, day, 12, tzinfo=dt.UTC) for day in range(1, 6)]


@pytest.mark.parametrize(
    ("items", "row"),
    [
        ("v:_id.$oid AS a,v:at.$date.$numberLong::bigint AS b", {"a": "x", "b": 5}),
        ("v:_id.$oid='x' AS a,v:at.$date.$numberLong=5::string AS b", {"a": True, "b": True}),
        ("$$it's$$ AS a, $q$v:_id.$oid$q$ AS b", {"a": "it's", "b": "v:_id.$oid"}),
    ],
)
def test_a_dollar_begins_a_key_or_a_text_in_dollars(items: str, row: dict[str, object]) -> None:
    documents = pv.from_python([{"_id": {"$oid": "x"}, "at": {"$date": {"$numberLong": "5"}}}])
    assert pv.sql(f"SELECT {items} FROM t", t=documents).to_pylist() == [row]
    with_parameter = pv.sql("SELECT v:at.$date.$numberLong=$n AS a FROM t", t=documents, params={"n": "5"})
    assert with_parameter.to_pylist() == [{"a": True}]


@pytest.fixture(scope="module")
def days(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("days") / "t"
    local = pa.array([time.replace(tzinfo=None) for time in TIMES], pa.timestamp("us"))
    table = pa.table({"day": DAYS, "at": pa.array(TIMES, pa.timestamp("us", "UTC")), "local": local, "n": range(5)})
    for row in range(5):
        pv.write(folder, table.slice(row, 1), format="delta", mode="append" if row else "error")
    return str(folder)


@pytest.mark.parametrize(
    ("condition", "rows", "files"),
    [
        ("day = '2026-11-02'", [1], 1),
        ("'2026-11-02' >= day", [0, 1], 2),
        ("day IN ('2026-11-02', '2026-11-05')", [1, 4], 2),
        ("day BETWEEN '2026-11-02' AND '2026-11-03'", [1, 2], 2),
        ("day = '2026-11-2'", [1], 5),  # only forms that need no knowledge of the engine's casts skip files
        ("day = '2026-11-02 13:00:00'", [1], 5),
        ("at > '2026-11-04T00:00:00Z'", [3, 4], 2),
        ("at > '2026-11-04 15:00:00.5+02:00'", [4], 1),
        ("at > '2026-11-04 00:00:00'", [3, 4], 5),
        ("local <= '2026-11-01 12:00:00'", [0], 1),
        ("local < '2026-11-02'", [0], 1),
        ("local < '2026-11-02T00:00:00Z'", [0], 5),
    ],
)
def test_dates_and_timestamps_in_quotes_skip_files(days: str, condition: str, rows: list[int], files: int) -> None:
    query = f"SELECT n FROM t WHERE {condition} ORDER BY n"
    assert [row["n"] for row in pv.sql(query, t=days).to_pylist()] == rows
    (plan,) = plan_sql(query, {"t": days}).plans.values()
    report = plan.explain()
    assert report.files_total - report.files_pruned == files


def test_an_impossible_date_in_quotes_is_refused(days: str) -> None:
    with pytest.raises(pv.VariantError, match="2026-02-30"):
        pv.sql("SELECT n FROM t WHERE day = '2026-02-30'", t=days).to_arrow()


def test_milliseconds_that_are_read_as_seconds_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "a.ndjson"
    file.write_text('{"ts":1700000000000}\n{"ts":1700000000}\n')
    text = "times after the year 9999"
    result = pv.sql("SELECT date_trunc('day', v:ts::timestamp) AS day FROM t", t=file)
    assert [text in warning for warning in result.warnings] == [True]
    assert not pv.sql("SELECT timestamp_millis(v:ts::bigint) AS ts FROM t", t=file).warnings
    pv.ingest(file, tmp_path / "t")
    for source in (file, tmp_path / "t"):
        scan = pv.open(source).scan({"at": ("$.ts", "timestamp")})
        for read in (scan.to_arrow, lambda scan=scan: list(scan.batches()), lambda scan=scan: pa.table(scan)):
            with pytest.warns(UserWarning, match=text) as caught:
                read()
            assert len(caught) == 1
