"""A local time that occurs twice is the earlier instant, and one in a gap is after the gap, in every surface."""

import datetime as dt
import random
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.query.selection import TableColumns
from parquet_variant.query.sql_expression import read_expression
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
            mask = is_true(condition, "t", numbered({"z": rows["z"]}, len(rows)), zone)
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
