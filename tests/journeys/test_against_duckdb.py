"""An analyst's questions about real events give the answers of DuckDB, whatever the rows are read from."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv

duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")

# Questions over `FROM t`; `$` is `v:properties` here, and `properties` of a typed table in DuckDB.
QUESTIONS = [
    "SELECT $.type, count(*), max($.mag), sum($.felt), avg($.sig) FROM t GROUP BY 1",
    "SELECT $.net, $.status, count(*) FROM t GROUP BY ROLLUP (1, 2)",
    "SELECT $.net, $.tsunami, count(*) FROM t GROUP BY GROUPING SETS ((1), (2), ())",
    "SELECT mode($.magType), median($.mag), quantile_disc($.nst, 0.9), entropy($.net) FROM t",
    "SELECT $.net, len(list(DISTINCT $.magType)), len(max($.mag, 3)) FROM t GROUP BY 1",
    "SELECT $.net AS n, count(*), min($.time) FROM t WHERE $.mag > 4 GROUP BY n HAVING count(*) > 1",
    "SELECT $.code, rank() OVER w AS r FROM t WINDOW w AS (PARTITION BY $.net ORDER BY $.mag, $.code) QUALIFY r <= 2",
    "SELECT $.code, lag($.mag) OVER (ORDER BY $.time, $.code) FROM t",
    "SELECT $.net, max($.time) - min($.time) FROM t GROUP BY 1 HAVING max($.time) > min($.time)",
    "SELECT avg(gap) FROM (SELECT $.time - lag($.time) OVER (ORDER BY $.time, $.code) AS gap FROM t)",
    "SELECT x - p FROM (SELECT $.time AS x, lead($.time) OVER (ORDER BY $.time, $.code) AS p FROM t) WHERE p - x > 9",
    "SELECT $.net, upper(first($.code ORDER BY $.code)), max($.mag) FILTER ($.mag < 2) * 2 FROM t GROUP BY 1",
    "SELECT count(*) FROM t a JOIN t b ON a.$.code = b.$.code AND a.$.mag <= b.$.mag",
    "SELECT $.alert, arg_max($.code, $.mag), string_agg(DISTINCT $.net, ',' ORDER BY $.net) FROM t GROUP BY 1",
    "SELECT coalesce($.felt, 0), count(*) FROM t GROUP BY 1",
    "SELECT k, count(*) FROM (SELECT $.net AS k FROM t) GROUP BY k ORDER BY k DESC LIMIT 3",
    "SELECT hour(make_timestamp($.time * 1000)), count(*) FROM t GROUP BY 1",
    "SELECT count(*) FROM t WHERE $.mag = (SELECT max($.mag) FROM t)",
    "SELECT count(*) FROM t WHERE $.net IN (SELECT $.net FROM t WHERE $.tsunami = 1)",
]


@pytest.fixture(scope="module", params=["json", "parquet", "unshredded", "delta"])
def events(request: pytest.FixtureRequest, usgs_sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param == "json":
        return usgs_sample
    table = tmp_path_factory.mktemp("events") / "t"
    options: dict[str, Any] = {"delta": {"format": "delta"}, "unshredded": {"schema": "variant"}}.get(request.param, {})
    pv.ingest(usgs_sample, table, **options)
    return table


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answer_is_that_of_duckdb(question: str, events: Path, usgs_sample: Path) -> None:
    result = pv.sql(question.replace("$", "v:properties"), t=events).to_arrow()
    with duckdb.connect() as connection:
        connection.sql(f"CREATE TABLE t AS SELECT * FROM read_json('{usgs_sample}', sample_size = -1)")
        expected = connection.sql(question.replace("$", "properties")).fetchall()
    assert _rows(zip(*(column.to_pylist() for column in result.columns), strict=True)) == _rows(expected)


def _rows(rows: Any) -> list[str]:
    return sorted(repr([_number(value) for value in row]) for row in rows)


def _number(value: Any) -> Any:
    return round(float(value), 6) if isinstance(value, (int, float, Decimal)) else value
