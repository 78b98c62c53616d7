"""Lazy polars frames give what polars gives over all rows, and read only what a query needs."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parquet_variant as pv

COLUMNS = {
    "n": "$.n:bigint", "f": "$.f:double", "d": "$.d:decimal(5,1)", "s": "$.s:string", "b": "$.b:boolean",
    "day": "$.day:date", "at": "$.at:timestamp",
}  # fmt: skip
TEXTS = [
    f'{{"n": {n}, "f": {n / 3}, "d": {n / 2}, "s": "s{n % 7}", "b": {"true" if n % 2 else "false"}, '
    f'"day": "2024-01-{n % 28 + 1:02d}", "at": "2024-01-{n % 28 + 1:02d}T00:00:00Z"}}'
    for n in range(60)
] + ['{"n": null}', '{"n": "x", "f": "NaN", "s": 5}', "{}", "[1]"]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    rows = pv.parse_json(TEXTS)
    file = tmp_path_factory.mktemp("lazy") / "a.parquet"
    pv.write(file, pv.shred_variant(rows, pv.infer_shredding_schema(rows)), row_group_bytes=1000)
    return str(file)


def _filters() -> Any:
    values = {
        "n": st.integers(-5, 70), "f": st.floats(-1, 25) | st.integers(0, 20) | st.just(float("nan")),
        "d": st.integers(0, 30), "s": st.sampled_from(["s0", "s3", "s9", "'"]), "b": st.booleans(),
        "day": st.dates(dt.date(2024, 1, 1), dt.date(2024, 1, 30)),
        "at": st.datetimes(dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 30), timezones=st.just(dt.UTC)),
    }  # fmt: skip

    def comparison(name: str) -> Any:
        operators = st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"])
        sides = st.booleans()
        made = st.tuples(operators, values[name], sides).map(
            lambda made: (
                getattr(pl.lit(made[1]), made[0])(pl.col(name)) if made[2] else getattr(pl.col(name), made[0])(made[1])
            )
        )
        between = st.tuples(values[name], values[name], st.sampled_from(["both", "left", "right", "none"])).map(
            lambda made: pl.col(name).is_between(pl.lit(made[0]), pl.lit(made[1]), closed=made[2])
        )
        return made | between | st.just(pl.col(name).is_null())

    leaves = st.sampled_from(list(values)).flatmap(comparison)
    return st.recursive(
        leaves, lambda inner: st.tuples(inner, inner).map(lambda pair: pair[0] & pair[1])
        | st.tuples(inner, inner).map(lambda pair: pair[0] | pair[1]) | inner.map(lambda one: ~one), max_leaves=4,
    )  # fmt: skip


@settings(max_examples=6 * settings.default.max_examples, deadline=None)
@given(condition=_filters(), rows=st.none() | st.integers(0, 70), after=st.booleans())
def test_filters_are_those_of_polars(path: str, condition: pl.Expr, rows: int | None, after: bool) -> None:
    def ask(frame: pl.LazyFrame) -> pl.DataFrame:
        frame = frame if rows is None or after else frame.head(rows)
        frame = frame.filter(condition)
        return (frame.head(rows) if rows is not None and after else frame).select("n", "s").collect()

    whole = pl.DataFrame(pv.open(path).scan(COLUMNS).to_arrow())
    assert ask(pv.scan_polars(path, COLUMNS)).equals(ask(whole.lazy()))


def test_a_query_reads_its_columns_and_skips(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = []
    scan = pv.Table.scan

    def recorded(table: pv.Table, columns: Any, where: Any = None, **options: Any) -> Any:
        requests.append((list(columns), where))
        return scan(table, columns, where, **options)

    monkeypatch.setattr(pv.Table, "scan", recorded)
    found = pv.scan_polars(path, COLUMNS).filter((pl.col("n") > 50) & (pl.col("s") == "s3")).select("d").collect()
    assert found["d"].to_list() == [26, 29.5]
    assert requests[-1] == (["n", "d", "s"], [("n", ">", 50), ("s", "=", "s3")])


@pytest.mark.parametrize("format", ["delta", "iceberg", "vortex"])
def test_every_format_is_scanned(tmp_path: Path, format: Any) -> None:
    if format == "vortex":
        pytest.importorskip("vortex.expr")
    place = str(tmp_path / ("t.vortex" if format == "vortex" else "t"))
    pv.write(place, {"v": pv.parse_json(TEXTS[:20])}, format=format)
    frame = pv.open(place).lazy({"n": "$.n"}, "n >= 5")
    assert frame.filter(pl.col("n") < 8).collect()["n"].to_list() == [5, 6, 7]


def test_whole_variants_have_the_namespace() -> None:
    frame = pv.scan_polars(pv.parse_json(['{"a": 1}', '{"a": 2}']))
    (name,) = frame.collect_schema().names()
    assert frame.select(pl.col(name).variant.get("$.a", "bigint")).collect().to_series().to_list() == [1, 2]
