"""Zones and threads that DuckDB has not, or not so."""

import datetime as dt

import pytest

import parquet_variant as pv

ARRAY = pv.parse_json(['{"a": [1]}', None])


@pytest.mark.parametrize(
    ("zone", "utc_hour"),
    [("+01:00", 23), ("-03:00", 3), ("Z", 0), ("UTC+1", 23), ("UT+2", 22), ("PST", 7), ("GMT-3", 3)],
)
def test_zones_of_spark_are_zones_in_sql(zone, utc_hour):
    """DuckDB does not know the offsets, and what it gave of abbreviations could not be read."""
    array = pv.parse_json(['{"t": "2020-06-01 00:00:00"}'])
    query = "SELECT v:t::timestamp AS a, cast('2020-06-01 00:00:00' AS timestamptz) AS b FROM t"
    row = pv.sql(query, t=array, zone=zone).to_arrow().to_pylist()[0]
    assert [item.astimezone(dt.UTC).hour for item in row.values()] == [utc_hour] * 2


@pytest.mark.parametrize("zone", ["+18:01", "-00:30", "+15:00", "true", "\ud800", None])
def test_zones_that_duckdb_lacks_are_refused_in_sql(zone):
    with pytest.raises(pv.VariantError) as caught:
        pv.sql("SELECT v:t::timestamp AS a FROM t", t=ARRAY, zone=zone).to_arrow()
    assert caught.value.reason == "bad-zone"


@pytest.mark.parametrize("threads", [2**31, 2**63 - 1])
def test_more_threads_than_an_engine_can_start_are_not_started(threads):
    assert pv.sql("SELECT count(*) AS n FROM t", t=ARRAY, threads=threads).to_arrow()["n"].to_pylist() == [2]
