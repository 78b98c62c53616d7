"""A local time that occurs twice is the earlier instant, and one in a gap is after the gap, in every surface."""

import datetime as dt
import random
import re
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.query.selection import TableColumns
from parquet_variant.query.sql_expression import read_expression
from parquet_variant.query.variant_functions import CallContext
from parquet_variant.tables.expressions import is_true, numbered

_ZONES = ["America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Havana", "Pacific/Apia", "Asia/Tehran"]


def _local_times(zone, seed):
    """Return local times around the changes of a year's offsets, and some at random."""
    source, info = random.Random(seed), ZoneInfo(zone)
    hour, times = dt.datetime(source.randrange(1995, 2020), 1, 1, tzinfo=dt.UTC), []
    for _ in range(366 * 24):
        if hour.astimezone(info).utcoffset() != (hour + dt.timedelta(hours=1)).astimezone(info).utcoffset():
            local = hour.astimezone(info).replace(tzinfo=None)
            times += [local + dt.timedelta(minutes=30 * step) for step in (-3, -2, -1, 0, 1)]
        hour += dt.timedelta(hours=1)
    return [*times, dt.datetime(2001, 2, 3, source.randrange(24))]


def _instant(local, zone):
    return local.replace(tzinfo=ZoneInfo(zone)).astimezone(dt.UTC)  # fold=0: the earlier of two


@pytest.mark.parametrize("zone", _ZONES)
def test_local_times_are_the_same_instants_in_every_surface(tmp_path, zone, fuzz_seed=7):
    locals_ = _local_times(zone, fuzz_seed)
    instants = [_instant(local, zone) for local in locals_]
    moments = sorted({instant + dt.timedelta(hours=hours) for instant in instants for hours in (-1, 0, 1)})
    values = pv.VariantArray.from_pylist([{"t": moment} for moment in moments])
    pv.write(tmp_path / "t.parquet", {"v": values}, schema="infer")
    rows = pa.table({"z": pa.array(moments, pa.timestamp("us", "UTC"))})
    sources = [(values, "v:t::timestamp"), (tmp_path / "t.parquet", "v:t::timestamp"), (rows, "z")]
    for local, instant in zip(locals_, instants, strict=True):
        for op, right in (("=", f"TIMESTAMP '{local}'"), (">=", f"'{local}'")):
            expected = [m for m in moments if m == instant or (m > instant and op == ">=")]
            for source, column in sources:
                found = pv.sql(
                    f"SELECT {column} AS m FROM t WHERE {column} {op} {right}", t=source, zone=zone
                ).to_arrow()
                assert [m.astimezone(dt.UTC) for m in found["m"].to_pylist()] == expected, (local, op, column)
            condition = read_expression(
                f"z {op} {right}", {"t": TableColumns([], {"z": rows.schema[0].type})}, zone=zone
            )
            mask = is_true(condition, "t", numbered({"z": rows["z"]}, len(rows)), CallContext(zone=zone))
            assert [m for m, is_found in zip(moments, mask, strict=True) if is_found] == expected, (local, op)


@pytest.mark.parametrize("zone", _ZONES)
def test_casts_of_columns_are_the_same_instants(zone):
    locals_ = _local_times(zone, 3)
    table = pa.table(
        {"n": pa.array(locals_), "s": list(map(str, locals_)), "x": [f"{local}+02:00" for local in locals_]}
    )
    query = "SELECT n::timestamp AS n, s::timestamp AS s, try_cast(x AS timestamp) AS x FROM t"
    found = pv.sql(query, t=table, zone=zone).to_arrow()
    utc = lambda name: [m.astimezone(dt.UTC) for m in found[name].to_pylist()]  # noqa: E731
    assert utc("n") == utc("s") == [_instant(local, zone) for local in locals_]
    assert utc("x") == [(local - dt.timedelta(hours=2)).replace(tzinfo=dt.UTC) for local in locals_]


def test_a_column_of_instants_and_one_of_local_times_compare_by_instant():
    table = pa.table(
        {
            "z": pa.array([dt.datetime(2024, 11, 3, hour, tzinfo=dt.UTC) for hour in (5, 6)]),
            "n": pa.array([dt.datetime(2024, 11, 3, 1)] * 2),
        }
    )
    query = "SELECT z = n AS same, epoch(z)::bigint = epoch(n::timestamp)::bigint AS cast_same FROM t"
    rows = pv.sql(query, t=table, zone="America/New_York").to_pylist()
    assert rows == [{"same": True, "cast_same": True}, {"same": False, "cast_same": False}]


def test_updates_and_deletes_take_the_earlier_instant(tmp_path):
    instants = [dt.datetime(2024, 11, 3, hour, tzinfo=dt.UTC) for hour in (5, 6)]
    pv.write(tmp_path / "t", pa.table({"k": [1, 2], "z": instants}), format="delta")
    zone = "America/New_York"
    pv.open(tmp_path / "t").delete("z = TIMESTAMP '2024-11-03 01:00:00'", zone=zone)
    assert pv.sql("SELECT k FROM t", t=tmp_path / "t").to_pylist() == [{"k": 2}]
    for local in ("TIMESTAMP_NTZ '2024-11-03 01:00:00'", "TIMESTAMP '2024-11-03 01:00:00'"):
        pv.open(tmp_path / "t").update({"z": local}, zone=zone)
        assert pv.open(tmp_path / "t").to_arrow()["z"].to_pylist() == [instants[0]]


_HAVANA = "America/Havana"  # where midnight of 2024-11-03 occurs twice
_MIDNIGHT = dt.datetime(2024, 11, 3, 4, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("condition", "params", "expected"),
    [
        ("z >= DATE '2024-11-03'", None, range(4, 8)),
        ("z = TIMESTAMP_NTZ '2024-11-03 00:00:00'", None, [4]),
        ("z < '2024-11-03'::date", None, range(4)),
        ("z IN (DATE '2024-11-03', TIMESTAMP '2024-11-03 00:00:00')", None, [4]),
        ("z BETWEEN '2024-11-03' AND z", None, range(4, 8)),
        ("z BETWEEN DATE '2024-11-03' AND TIMESTAMP_NTZ '2024-11-03 00:30:00'", None, [4]),
        ("z = ?", [dt.datetime(2024, 11, 3)], [4]),
        ("z >= ?", [dt.date(2024, 11, 3)], range(4, 8)),
        ("z = coalesce(n::timestamp_ntz, n)", None, [0, 1, 2, 3, 4, 6, 7]),
        ("z = CASE WHEN true THEN n ELSE now() END", None, [0, 1, 2, 3, 4, 6, 7]),
        ("coalesce(z, '2024-11-03') = least(z, '2024-11-03'::date)", None, range(5)),
        ("z = strptime('2024-11-03', '%Y-%m-%d')", None, [4]),
        ("z = make_timestamptz(2024, 11, 3, 0, 0, 0)", None, [4]),
        ("z = n AT TIME ZONE 'America/Havana'", None, [0, 1, 2, 3, 4, 6, 7]),
        ("z = TIMESTAMP_NTZ '2024-11-03 01:00:00' AT TIME ZONE 'America/New_York'", None, [5]),
        ("date_trunc('day', z) = TIMESTAMP '2024-11-03 00:00:00'", None, range(4, 8)),
        ("date_trunc('day', z) = DATE '2024-11-03'", None, range(4, 8)),
        ("date_trunc('hour', z) = z", None, range(8)),
    ],
)
def test_dates_and_times_without_a_zone_are_the_earlier_instants(condition, params, expected):
    moments = [_MIDNIGHT + dt.timedelta(hours=hours) for hours in range(-4, 4)]
    locals_ = [moment.astimezone(ZoneInfo(_HAVANA)).replace(tzinfo=None) for moment in moments]
    plain = pa.table({"i": list(range(8)), "z": pa.array(moments), "n": pa.array(locals_)})
    values = pv.VariantArray.from_pylist(plain.to_pylist())
    for table, text in ((plain, condition), (pa.table({"v": values}), _as_paths(condition))):
        found = pv.sql(f"SELECT {'i' if table is plain else 'v:i::int AS i'} FROM t WHERE {text}",
                       t=table, zone=_HAVANA, params=params)  # fmt: skip
        assert sorted(found.to_arrow()["i"].to_pylist()) == list(expected), text


def _as_paths(condition):
    text = condition.replace("n::timestamp_ntz", "n")
    return re.sub(r"\bz\b", "v:z::timestamp", re.sub(r"\bn\b", "v:n::timestamp_ntz", text))


def test_a_time_zone_by_name_takes_the_earlier_instant_in_a_session_in_utc():
    table = pa.table({"n": pa.array([dt.datetime(2024, 11, 3, 1), dt.datetime(2024, 3, 10, 2, 30)])})
    found = pv.sql("SELECT n AT TIME ZONE 'America/New_York' AS z FROM t", t=table).to_arrow()["z"].to_pylist()
    assert [moment.astimezone(dt.UTC) for moment in found] == [
        dt.datetime(2024, 11, 3, 5, tzinfo=dt.UTC), dt.datetime(2024, 3, 10, 7, 30, tzinfo=dt.UTC)]  # fmt: skip


_SHOWN = "(SELECT {} FROM t WHERE false {} SELECT {} FROM s)"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT i FROM t WHERE z IN (SELECT n FROM s)", [1]),
        ("SELECT i FROM t WHERE z NOT IN (SELECT n FROM s)", [0, 2, 3]),
        ("SELECT i FROM t WHERE z = (SELECT max(n) FROM s)", [1]),
        ("SELECT i FROM t WHERE (SELECT d FROM s) >= z", [0]),
        ("SELECT i FROM t WHERE z >= ALL (SELECT n FROM s)", [1, 2, 3]),
        ("SELECT i FROM t WHERE z IN (SELECT z FROM t WHERE i = 3 UNION SELECT n FROM s)", [1, 3]),
        ("SELECT i FROM t JOIN s ON t.z = s.s", [1]),
        ("SELECT i FROM t, s WHERE CASE z WHEN n THEN true END", [1]),
        ("SELECT i FROM t WHERE CASE z WHEN '2024-11-03 00:30:00' THEN true END", [1]),
        ("SELECT i FROM t, s WHERE (z, i) IN ((n, 1), (n, 2))", [1]),
        ("SELECT i FROM t, s WHERE [z, z] = [n, n]", [1]),
        ("SELECT i FROM t, s WHERE z - n = INTERVAL 0 SECOND", [1]),
        ("SELECT i FROM t, s WHERE date_diff('minute', n, z) = 0", [1]),
        (f"SELECT i FROM t WHERE z IN {_SHOWN.format('z', 'UNION', 'n')}", [1]),
        (f"SELECT i FROM t WHERE z IN (SELECT z FROM {_SHOWN.format('z', 'UNION BY NAME', 'n AS z')})", [1]),
        ("SELECT i FROM t JOIN (SELECT z FROM t EXCEPT SELECT n FROM s) USING (z)", [0, 2, 3]),
        ("SELECT i FROM t JOIN (SELECT n FROM s INTERSECT SELECT z FROM t) q(z) USING (z)", [1]),
    ],
)
def test_local_times_of_subqueries_set_operations_and_rows_are_the_earlier_instants(query, expected):
    early = _MIDNIGHT + dt.timedelta(minutes=30)
    moments = [early + dt.timedelta(hours=hours) for hours in (-1, 0, 1, 2)]
    local = early.astimezone(ZoneInfo(_HAVANA)).replace(tzinfo=None)
    t = pa.table({"i": list(range(4)), "z": pa.array(moments)})
    s = pa.table({"n": pa.array([local]), "s": [str(local)], "d": [local.date()]})
    assert sorted(pv.sql(query, t=t, s=s, zone=_HAVANA).to_arrow()["i"].to_pylist()) == expected


_COMPARED = [
    "list_contains([n], z)", "list_contains([z], n)", "list_position([n], z) = 1", "array_has_any([n], [z])",
    "{'a': z} = {'a': n}", "row(z) = row(n)", "struct_pack(a := z) = struct_pack(a := n)", "(z, 1) IN ((n, 1))",
    "z = n::date + n::time", "z = CAST(n AS date) + TIME '01:00:00'", "s.n = z", "z IN (s.n)",
]  # fmt: skip


@pytest.mark.parametrize("condition", _COMPARED)
def test_local_times_in_lists_structs_and_sums_are_the_earlier_instants(tmp_path, condition):
    local = dt.datetime(2024, 11, 3, 1)
    columns = {
        "z": pa.array([dt.datetime(2024, 11, 3, hour, tzinfo=dt.UTC) for hour in (5, 6)]),
        "n": pa.array([local] * 2),
        "s": pa.array([{"n": local}] * 2),
        "k": [5, 6],
    }
    pv.write(tmp_path / "a.parquet", {**columns, "v": pv.parse_json(["1", "2"])})
    for source in (pa.table(columns), tmp_path / "a.parquet"):
        query = f"SELECT k FROM t WHERE {condition}"
        assert pv.sql(query, t=source, zone="America/New_York").to_pylist() == [{"k": 5}]


def test_local_times_of_subqueries_are_the_earlier_instants():
    table = pa.table(
        {
            "z": pa.array([dt.datetime(2024, 11, 3, hour, tzinfo=dt.UTC) for hour in (5, 6)]),
            "n": pa.array([dt.datetime(2024, 11, 3, 1)] * 2),
            "k": [5, 6],
        }
    )
    for query in (
        "SELECT DISTINCT a.k FROM t a JOIN (SELECT n FROM t) b ON a.z = b.n",
        "WITH w AS (SELECT k, z, n AS m FROM t) SELECT k FROM w WHERE z = m",
        "SELECT k FROM (SELECT k, z, max(n) AS m FROM t GROUP BY ALL) WHERE m = z",
    ):
        assert pv.sql(query, t=table, zone="America/New_York").to_pylist() == [{"k": 5}], query


@pytest.mark.parametrize("join", ["JOIN (SELECT n AS z FROM t) b USING (z)", "NATURAL JOIN (SELECT n AS z FROM t) b"])
def test_joins_by_name_of_instants_and_local_times_are_refused(join):
    times = {"z": pa.array([dt.datetime(2024, 11, 3, 5, tzinfo=dt.UTC)]), "n": pa.array([dt.datetime(2024, 11, 3, 5)])}
    query = f"SELECT count(*) AS rows FROM (SELECT z FROM t) a {join}"
    assert pv.sql(query, t=pa.table(times)).to_pylist() == [{"rows": 1}]  # UTC has no local time twice
    with pytest.raises(pv.VariantError, match=r"join ON a\.z = b\.z"):
        pv.sql(query, t=pa.table(times), zone="America/New_York")
