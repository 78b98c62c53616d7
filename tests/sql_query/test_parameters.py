"""Parameters: ``?`` with a list, and ``$name`` with a dict."""

from __future__ import annotations

import datetime as dt
import uuid
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.errors import VariantError

ROWS = pv.parse_json(['{"a": 1, "s": "it\'s"}', '{"a": 2, "s": "?"}', '{"a": 3.5}'])


@pytest.mark.parametrize(
    ("query", "params", "values"),
    [
        ("SELECT v:a::double AS x FROM t WHERE v:a::int >= ? AND v:s::string = ?", [2, "?"], [2.0]),
        ("SELECT v:a::double AS x FROM t WHERE v:s = $s -- ?", {"s": "it's"}, [1.0]),
        ("SELECT v:a::double AS x FROM t WHERE v:a > $low AND v:a < $high AND $low = 1", {"low": 1, "high": 3}, [2.0]),
        ("SELECT $2 + $1 AS x", [1, 10], [11]),
        ("SELECT '?' || ? AS x", ["y"], ["?y"]),
        ("SELECT v:s:: string AS x FROM t WHERE v:a = ? LIMIT ?", [2, 1], ["?"]),
        ("WITH c AS (SELECT ? AS x) SELECT x FROM c WHERE x = ?", [5, 5], [5]),
        ("SELECT variant_get(v, '$.a', 'int') AS x FROM t WHERE v:s LIKE ?", ["it%"], [1]),
        ("SELECT v:a::int AS x FROM t WHERE v:a = ?", [np.int64(2)], [2]),
        ("SELECT v:a::int AS x FROM t WHERE list_contains(?, v:a::int)", [np.array([2, 5])], [2]),
    ],
)
def test_parameters_are_values(query, params, values):
    assert pv.sql(query, t=ROWS, params=params).to_arrow()["x"].to_pylist() == values


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, -7, 2**62, 1.5, -2.0, float("inf"), "", "a'b\\c\"$x?", b"\x00\xff", Decimal("-1.50"), [1, 2], [],
        dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 1, 2, 3, 4), dt.datetime(2024, 2, 29, tzinfo=dt.UTC),
        dt.time(1, 2, 3), uuid.UUID(int=5),
    ],
)  # fmt: skip
def test_each_type_of_value_is_kept(value):
    found = pv.sql("SELECT ? AS x", params=[value]).to_arrow()["x"][0].as_py()
    assert found == value or (isinstance(value, uuid.UUID) and str(found) == str(value))


def test_parameters_are_pushed_down_and_compared_exactly(tmp_path):
    pv.write(tmp_path / "t.parquet", {"v": ROWS, "k": pa.array([1, 2, 3])})
    query = "SELECT v:a::double AS x FROM t WHERE k = ?"
    assert pv.sql(query, t=tmp_path / "t.parquet", params=(3,)).to_pylist() == [{"x": 3.5}]


@pytest.mark.parametrize(
    ("query", "params", "message"),
    [
        ("SELECT ?", [], "parameter number 1, and params has 0 values"),
        ("SELECT 1", [1], "does not use the parameter 0"),
        ("SELECT $a", {"b": 1}, r"parameter \$a, and params has 1 values"),
        ("SELECT ?", "text", "give a list of values"),
        ("SELECT ?", [object()], "a parameter is object"),
        ("SELECT ?", None, "give its value with params="),
    ],
)
def test_parameters_that_do_not_match_are_an_error(query, params, message):
    with pytest.raises(VariantError, match=message):
        pv.sql(query, params=params)


def test_bytes_are_written_in_hexadecimal_digits() -> None:
    rows = {"b": pa.array([b"\x00\xff", b"a", None]), "x": [1, 2, 3]}
    query = "SELECT x, b = x'61' AS y FROM t WHERE b IN (X'00fF', X'61')"
    assert pv.sql(query, t=rows).to_pylist() == [{"x": 1, "y": False}, {"x": 2, "y": True}]
    assert pv.open(rows).scan(["x"], "b = X'00ff' or b = x''").to_pylist() == [{"x": 1}]
    for text in ("X'0'", "x'0g'"):
        with pytest.raises(pv.VariantError, match="two hexadecimal digits per byte"):
            pv.sql(f"SELECT {text}")
        with pytest.raises(pv.VariantError, match="two hexadecimal digits per byte"):
            pv.open(rows).scan(["x"], f"b = {text}")


def test_decimals_of_38_digits_and_nanoseconds_are_not_rounded() -> None:
    big = Decimal("-12345678901234567890123456789012345678")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    time = pandas.Timestamp(1704067200000000001)
    rows = {
        "d": pa.array([big, Decimal(1)], pa.decimal128(38, 0)),
        "t": pa.array([time.value, time.value - 1], pa.timestamp("ns")),
        "z": pa.array([time.value, time.value - 1], pa.timestamp("ns", "UTC")),
        "v": pv.parse_json([f'{{"d": {big}}}', '{"d": 1}']),
        "id": [0, 1],
    }
    for value, condition in ((big, "d = ?"), (big, "v:d::decimal(38,0) = ?"), (time, "t = ?")):
        assert pv.sql(f"SELECT id FROM t WHERE {condition}", t=rows, params=[value]).to_pylist() == [{"id": 0}]
    opened = pv.open(rows)
    for where in (
        ("d", "=", big),
        ("$.d", "=", big),
        ("t", "=", time),
        ("t", ">=", time),
        ("z", "=", time),
        ("d", "<", Decimal(0)),
    ):
        assert opened.scan(["id"], [where]).to_pylist() == [{"id": 0}], where
    for value in (Decimal("NaN"), time.tz_localize("UTC")):
        with pytest.raises(VariantError, match="a parameter is"):
            pv.sql("SELECT ?", params=[value])
    assert opened.scan(["id"], [("d", "=", Decimal("NaN"))]).to_pylist() == []
    for times in ([time, None], pandas.Series([time, None], dtype=object), pandas.Series([time, None])):
        assert pv.open({"t": times}).to_arrow()["t"].cast("int64").to_pylist() == [time.value, None]
