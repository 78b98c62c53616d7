"""Zones and threads that DuckDB has not, or not so."""

import datetime as dt

import pyarrow as pa
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


LOCAL = ['{"id": 1, "t": "2024-07-01 14:00:00", "l": ["2024-07-01 14:00:00"], "n": "x"}', '{"id": 2, "n": "5"}']
NOON = dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC)
SOURCES = ["array", "json", "parquet", "delta", "iceberg", "vortex"]


@pytest.fixture(params=[*SOURCES, *(f"scan of {name}" for name in SOURCES)])
def source(request, tmp_path):
    """Values with local times, in each form that a query can name."""
    name = request.param.removeprefix("scan of ")
    if name == "vortex":
        pytest.importorskip("vortex", reason="vortex-data is not installed")
    path, values = tmp_path / {"json": "t.ndjson", "vortex": "t.vortex"}.get(name, "t"), pv.parse_json(LOCAL)
    if name == "json":
        path.write_text("\n".join(LOCAL))
    elif name != "array":
        pv.write(path, {"v": values}, format=name)
    found = values if name == "array" else path
    return pv.open(found).scan({"v": "$"}) if name != request.param else found


def test_casts_of_a_query_have_its_zone_whatever_it_reads(source):
    query = """SELECT v:t::timestamp AS t, hour(v:t) AS h, v:l[*]::array<timestamp> AS l, v:id::int AS id FROM t
        WHERE v:t::timestamp = TIMESTAMP '2024-07-01 14:00:00'"""
    (row,) = pv.sql(query, t=source, zone="Europe/Berlin").to_pylist()
    assert row == {"t": NOON, "h": 14, "l": [NOON], "id": 1}


def test_casts_of_a_query_fail_or_not_whatever_it_reads(source):
    for query in ("SELECT v:n::int AS x FROM t", "SELECT sum(v:n::int) AS x FROM t"):
        assert pv.sql(query, t=source).to_pylist()[-1] == {"x": 5}
        with pytest.raises(pv.VariantError, match="cannot cast"):
            pv.sql(query, t=source, errors="raise").to_arrow()
    tried = "SELECT try_cast(v:n AS int) AS x, count(*) OVER () AS n FROM t ORDER BY v:id"
    assert pv.sql(tried, t=source, errors="raise").to_pylist() == [{"x": None, "n": 2}, {"x": 5, "n": 2}]
    assert pv.sql("SELECT count(*) AS n FROM t", t=source, errors="raise").to_pylist() == [{"n": 2}]


def test_a_scan_keeps_its_zone_and_the_query_has_its_own():
    values = pv.open(pa.table({"v": pv.parse_json(LOCAL).storage}))
    scan = values.scan({"t": "$.t:timestamp", "v": "$"}, "t > timestamp '2024-01-01'", zone="Europe/Berlin")
    query = "SELECT t, v:t::timestamp AS u FROM s WHERE t = TIMESTAMP '2024-07-01 12:00:00' AND v:id::int = 1"
    assert pv.sql(query, s=scan).to_pylist() == [{"t": NOON, "u": NOON + dt.timedelta(hours=2)}]
