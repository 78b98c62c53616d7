"""Uncast Variants in GROUP BY, DISTINCT, ORDER BY, joins and comparisons: one order, in every layout."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("duckdb", reason="DuckDB is not installed")

import parquet_variant as pv
from parquet_variant import Variant
from parquet_variant.errors import VariantError
from parquet_variant.ops.columns.sort_keys import equal_forms, number_key, sort_key, sort_keys

numbers = st.one_of(
    st.integers(-(10**37), 10**37),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(-(10**20), 10**20, places=5, allow_nan=False, allow_infinity=False),
)


@given(left=numbers, right=numbers)
def test_numbers_are_ordered_by_value(left: Any, right: Any) -> None:
    exact = [Decimal(repr(number)) if isinstance(number, float) else Decimal(number) for number in (left, right)]
    keys = [number_key(number) for number in (left, right)]
    assert (keys[0] < keys[1], keys[0] == keys[1]) == (exact[0] < exact[1], exact[0] == exact[1])


def test_infinities_and_nan_are_outside_of_the_numbers() -> None:
    in_order = [
        float("-inf"),
        -1e308,
        -1,
        -1e-300,
        0.0,
        1e-300,
        Decimal("0.1"),
        1,
        10**37,
        1e308,
        float("inf"),
        float("nan"),
    ]
    assert all(number_key(low) < number_key(high) for low, high in pairwise(in_order))
    assert number_key(0.0) == number_key(-0.0) == number_key(0)


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "a\0", "a\0b", "b", "\xe9"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["", "a", "a\0", "b"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def _order(value: Any) -> Any:
    """The documented order, as Python can compare it."""
    if value is None or isinstance(value, bool):
        return (0,) if value is None else (1, value)
    if isinstance(value, int):
        return (2, value)
    if isinstance(value, str):
        return (3, value.encode())
    if isinstance(value, list):
        return (4, [_order(element) for element in value])
    return (5, [(key.encode(), _order(part)) for key, part in sorted(value.items(), key=lambda item: item[0].encode())])


@given(left=plain, right=plain)
def test_nested_values_are_ordered_by_their_parts(left: Any, right: Any) -> None:
    if left is None or right is None:
        assert sort_key(Variant.from_python(None)) is None
        return
    keys = [sort_key(Variant.from_python(value)) for value in (left, right)]
    assert keys[0] is not None
    assert keys[1] is not None
    assert (keys[0] < keys[1], keys[0] == keys[1]) == (_order(left) < _order(right), _order(left) == _order(right))


def test_types_are_ordered_as_documented() -> None:
    values = [
        False, True, -1, "", "z", b"", dt.date(1900, 1, 1), dt.time(0), dt.datetime(1900, 1, 1, tzinfo=dt.UTC),
        dt.datetime(1900, 1, 1), uuid.UUID(int=0), [], [None], [1], {}, {"a": 1},
    ]  # fmt: skip
    keys = [sort_key(Variant.from_python(value)) for value in values]
    assert keys == sorted(key for key in keys if key is not None)
    assert len(set(keys)) == len(keys)


_SCALARS: list[Variant | None] = [
    value
    for array in (
        pa.array([1, 2, None, 10**18]),
        pa.array([1.0, 0.1, 1e300, float("nan"), float("-inf"), -0.0]),
        pa.array([0.1, 1.0, 3e38], pa.float32()),
        pa.array([Decimal(f"{10**27}.1234567890"), Decimal(1), Decimal(f"{10**27}")], pa.decimal128(38, 10)),
        pa.array([1_000, 1_001, 2**62], pa.timestamp("ns", "UTC")),
        pa.array([1, 2**60], pa.timestamp("us", "UTC")),
        pa.array([1_000, 1_001], pa.timestamp("ns")),
        pa.array([1], pa.timestamp("us")),
        pa.array(["a", "x" * 64, "\xe9"]),
    )
    for value in pv.cast_to_variant(array)
]
_VALUES = st.sampled_from(_SCALARS) | st.builds(
    lambda a, b: Variant.from_python({"a": [a], "b": b}), *[st.sampled_from(_SCALARS)] * 2
)


@given(st.lists(_VALUES, min_size=2, max_size=6))
def test_forms_have_equal_bytes_where_keys_are_equal(values: list[Variant | None]) -> None:
    array = pv.VariantArray.from_variants(values)
    forms = equal_forms(array)
    keys = sort_keys(array).to_pylist()
    assert sort_keys(forms).to_pylist() == keys
    shown = [None if form is None else form.to_bytes() for form in forms]
    assert [[a == b for a in shown] for b in shown] == [[a == b for a in keys] for b in keys]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([0.1, 0.1, 2.5], pa.float32()),
        pa.array([Decimal(f"{10**27}.5")] * 2 + [Decimal("2.5")]),
        pa.array([1, 1, 2**60 + 1], pa.timestamp("ns", "UTC")),
        pa.array([2**60, 2**60, 1], pa.timestamp("us", "UTC")),
        pa.array([1, 1, 2], pa.timestamp("ns")),
    ],
)
def test_aggregates_of_equal_variants_return_their_values(array: pa.Array) -> None:
    values = pv.cast_to_variant(array)
    texts = pv.to_json(values).to_pylist()
    query = "SELECT mode(v), list(DISTINCT v), variant_group_array(v) FROM t"
    mode, distinct, group = _rows(query, pa.table({"v": values}))[0]
    assert (mode, sorted(distinct), group) == (texts[0], sorted(set(texts)), f"[{','.join(texts)}]")


MIXED = [
    {"k": 1, "n": 1}, {"k": 1.0, "n": 2}, {"k": "1", "n": 3}, {"k": None, "n": 4}, {"n": 5}, {"k": True, "n": 6},
    {"k": [1], "n": 7}, {"k": [1.0], "n": 8}, {"k": {"a": 1}, "n": 9}, {"k": 1e0, "n": 10}, {"k": "a", "n": 11},
]  # fmt: skip
TYPED = [{"k": f"k{number % 3}", "n": number, "f": number / 2} for number in range(12)]


def _table(rows: list[Any], layout: str, path: Path) -> Any:
    values = pv.parse_json([json.dumps(row) for row in rows])
    if layout == "arrow":
        return values
    if layout == "delta":
        pv.write(path / "t", {"v": values}, format="delta")
        return path / "t"
    pv.write(path / "a.parquet", {"v": values}, **({"schema": "infer"} if layout == "shredded" else {}))
    return path / "a.parquet"


@pytest.fixture(params=["arrow", "unshredded", "shredded", "delta"])
def mixed(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return _table(MIXED, request.param, tmp_path)


@pytest.fixture(params=["arrow", "unshredded", "shredded", "delta"])
def typed(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return _table(TYPED, request.param, tmp_path)


def _rows(query: str, table: Any) -> list[Any]:
    columns = [column.to_pylist() for column in pv.sql(query, t=table).to_arrow().columns]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT count(*) AS c, min(v:n::int) AS m FROM t GROUP BY v:k ORDER BY m",
         [(3, 1), (1, 3), (2, 4), (1, 6), (2, 7), (1, 9), (1, 11)]),
        ("SELECT v:k::variant AS k, min(v:n::int) AS m FROM t GROUP BY k ORDER BY m LIMIT 3",
         [("1", 1), ('"1"', 3), (None, 4)]),
        ("SELECT v:n::int FROM t ORDER BY v:k, v:n::int", [6, 1, 2, 10, 3, 11, 7, 8, 9, 4, 5]),
        ("SELECT v:n::int FROM t ORDER BY v:k DESC NULLS LAST, v:n::int DESC", [9, 8, 7, 11, 3, 10, 2, 1, 6, 5, 4]),
        ("SELECT count(DISTINCT v:k) FROM t", [6]),
        ("SELECT count(*) FROM (SELECT DISTINCT v:k FROM t)", [7]),
        ("SELECT v:n::int FROM t WHERE v:k = 1 ORDER BY 1", [1, 2, 10]),
        ("SELECT v:n::int FROM t WHERE v:k = '1'", [3]),
        ("SELECT v:n::int FROM t WHERE v:k > 1 ORDER BY 1", []),
        ("SELECT v:n::int FROM t WHERE v:k <> 1 ORDER BY 1", []),
        ("SELECT v:n::int FROM t WHERE v:k IN (1, 'a') ORDER BY 1", [1, 2, 10, 11]),
        ("SELECT v:n::int FROM t WHERE v:k NOT IN (1, 'a') ORDER BY 1", [3]),
        ("SELECT v:n::int FROM t WHERE v:k BETWEEN '0' AND 'z' ORDER BY 1", [3, 11]),
        ("SELECT v:n::int FROM t WHERE v:k IS NOT DISTINCT FROM NULL ORDER BY 1", [4, 5]),
        ("SELECT v:n::int FROM t WHERE v:k = parse_json('[1]') ORDER BY 1", [7, 8]),
        ("SELECT v:n::int FROM t WHERE v:k = parse_json('{\"a\": 1.0}')", [9]),
        ("SELECT v:n::int FROM t WHERE v:k = v:n::int", [1]),
        ("SELECT v:n::int FROM t WHERE v:k IN (SELECT v:k FROM t WHERE v:n::int = 7) ORDER BY 1", [7, 8]),
        ("SELECT a.v:n::int, b.v:n::int FROM t a JOIN t b ON a.v:k = b.v:k AND a.v:n::int < b.v:n::int ORDER BY 1, 2",
         [(1, 2), (1, 10), (2, 10), (7, 8)]),
        ("SELECT max(v:k), min(v:k) FROM t", [('{"a":1}', "true")]),
        ("SELECT min_by(v:n::int, v:k), max_by(v:n::int, v:k) FROM t", [(6, 9)]),
        ("SELECT list(v:n::int ORDER BY v:k, v:n::int) FROM t", [[6, 1, 2, 10, 3, 11, 7, 8, 9, 4, 5]]),
        ("SELECT v:n::int, rank() OVER (ORDER BY v:k) AS r FROM t WHERE v:k IS NOT NULL QUALIFY r < 3 ORDER BY 1",
         [(1, 2), (2, 2), (6, 1), (10, 2)]),
        ("SELECT v:n::int, count(*) OVER (PARTITION BY v:k) AS c FROM t ORDER BY 1 LIMIT 4",
         [(1, 3), (2, 3), (3, 1), (4, 2)]),
        ("SELECT m FROM (SELECT v:k AS k, count(*) AS m FROM t GROUP BY k) ORDER BY k LIMIT 2", [1, 3]),
        ("SELECT m FROM (SELECT v:k AS k, count(*) AS m FROM t GROUP BY ALL) WHERE k = 1.0", [3]),
        ("SELECT count(*) FROM t GROUP BY v:k HAVING v:k = 1", [3]),
        ("SELECT DISTINCT ON (v:k) v:n::int FROM t WHERE v:k = 1 ORDER BY v:k, v:n::int", [1]),
        ("SELECT count(*) FROM t GROUP BY ROLLUP (v:k) ORDER BY grouping(v:k), v:k", [1, 3, 1, 1, 2, 1, 2, 11]),
        ("SELECT v:k, count(*) FROM t WHERE v:n::int < 4 GROUP BY GROUPING SETS ((v:k), ()) ORDER BY ALL",
         [("1", 2), ('"1"', 1), (None, 3)]),
        ("SELECT count(*) FROM (SELECT v:k, v:n, count(*) FROM t GROUP BY CUBE (v:k, v:n))", [30]),
        ("SELECT count(*) FROM t GROUP BY (v:k) HAVING v:k >= parse_json('[1]') ORDER BY (v:k)", [2]),
        ("SELECT mode(v:k) FROM t", ["1"]),
        ("SELECT mode() WITHIN GROUP (ORDER BY v:k) FROM t", ["1"]),
        ("SELECT mode(v:k) OVER (PARTITION BY v:n::int > 2) FROM t WHERE v:n::int < 4 ORDER BY 1", ["1", "1", '"1"']),
        ("SELECT len(list(DISTINCT v:k)), len(array_agg(DISTINCT v:k)) FROM t WHERE v:k IS NOT NULL", [(7, 7)]),
        ("SELECT max(v:k, 2), min(v:k, 2) FROM t WHERE v:n::int IN (1, 6, 8, 9)",
         [(['{"a":1}', "[1]"], ["true", "1"])]),
        ("SELECT count(DISTINCT (v:k, v:n::int > 4)) FROM t", [9]),
        ("SELECT arg_max(v:k, v:n), arg_max(v:n, v:k, 2) FROM t WHERE v:n::int > 7", [('"a"', [9, 8])]),
        ("SELECT v:n::int, count(*) OVER w FROM t WINDOW w AS (PARTITION BY v:k) ORDER BY 1 LIMIT 2", [(1, 3), (2, 3)]),
        ("SELECT v:n::int FROM t WHERE v:k = ANY (SELECT v:k FROM t WHERE v:n::int = 7) ORDER BY 1", [7, 8]),
        ("SELECT round(entropy(v:k), 3) FROM t", [2.419]),
        ("SELECT k FROM (SELECT v:k AS k, 1 AS one FROM t) q ORDER BY ALL LIMIT 3", ["true", "1", "1"]),
        ("SELECT * FROM (SELECT v:k AS k, v:n::int AS n FROM t WHERE n IN (1, 6, 9)) q ORDER BY ALL DESC",
         [('{"a":1}', 9), ("1", 1), ("true", 6)]),
    ],
)  # fmt: skip
def test_mixed_values(mixed: Any, query: str, rows: list[Any]) -> None:
    assert _rows(query, mixed) == rows


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT v:k::string, count(*) FROM t GROUP BY v:k::string ORDER BY 1", [("k0", 4), ("k1", 4), ("k2", 4)]),
        ("SELECT count(*) FROM t GROUP BY v:k ORDER BY v:k", [4, 4, 4]),
        ("SELECT count(*) FROM t WHERE v:k = 'k1' AND v:n > 3", [3]),
        ("SELECT count(*) FROM t WHERE v:k = 5", [0]),
        ("SELECT count(*) FROM t WHERE v:k > 5", [0]),
        ("SELECT count(*) FROM t WHERE v:n = '5'", [0]),
        ("SELECT count(*) FROM t WHERE v:n = 5.0", [1]),
        ("SELECT count(*) FROM t WHERE v:f = 2.5 OR v:f = 1", [2]),
        ("SELECT count(*) FROM t WHERE v:n = v:f", [1]),
        ("SELECT count(*) FROM t WHERE v:n = v:k", [0]),
        ("SELECT count(*) FROM t a JOIN t b ON a.v:k = b.v:k", [48]),
        ("SELECT count(DISTINCT v:k), count(DISTINCT v:f) FROM t", [(3, 12)]),
        ("SELECT max(v:n)::int, min(v:k)::string FROM t", [(11, "k0")]),
        ("SELECT v:k LIKE 'k%', upper(v:k), v:k || '!', length(v:k) FROM t LIMIT 1", [(True, "K0", "k0!", 2)]),
    ],
)
def test_values_of_one_type(typed: Any, query: str, rows: list[Any]) -> None:
    assert _rows(query, typed) == rows


NUMBERS = ['{"i": 9007199254740993, "f": 9007199254740992e0, "d": 0.1, "t": 1e-7, "s": "NaN", "w": 9.5}', '{"q": 1}']

TRUE_OF_NUMBERS = [
    "v:i > v:f", "v:i <> v:f::double", "v:i::bigint > v:f", "v:i > 9007199254740992e0", "v:f < 9007199254740993",
    "v:d = v:d::float", "v:d = v:d::double", "v:t = v:t::float", "v:i < v:s::double", "v:d < v:s::float",
    "v:i <> 0.0000000000000000000000000000000000001", "v:w < 12345678901234567890123456789012345678",
    "v:i IN (1, 9007199254740993.0)", "v:i NOT IN (0, 9007199254740992e0)", "v:d BETWEEN 0.1 AND 1e-1",
]  # fmt: skip


@pytest.mark.parametrize("row", ["", '{"i": "", "f": "", "d": "", "t": "", "w": ""}'], ids=["one type", "mixed"])
@pytest.mark.parametrize("layout", ["arrow", "unshredded", "shredded"])
def test_numbers_of_two_types_compare_by_value(layout: str, row: str, tmp_path: Path) -> None:
    values = pv.parse_json(NUMBERS + ([row] if row else []))
    schema = {"schema": "infer"} if layout == "shredded" else {}
    pv.write(tmp_path / "a.parquet", {"v": values}, **schema)
    table = values if layout == "arrow" else tmp_path / "a.parquet"
    for condition in TRUE_OF_NUMBERS:
        rows = pv.sql(f"SELECT {condition} AS answer FROM t", t=table).to_arrow()["answer"].to_pylist()
        assert rows[:2] == [True, None], condition


def test_moments_of_a_known_type_are_compared_with_variants() -> None:
    moments = [dt.date(2026, 1, 2), dt.datetime(2026, 1, 2), dt.datetime(2026, 1, 2, tzinfo=dt.UTC), "2026-01-02", None]
    values = pv.from_python([{"m": moment, "s": "2026-01-02"} for moment in moments])
    for kind, row in (("date", 0), ("timestamp_ntz", 1), ("timestamp", 2)):
        for op, answer in (("=", True), ("<=", True), ("<", False), ("<>", False)):
            rows = pv.sql(f"SELECT v:m {op} v:s::{kind} AS answer FROM t", t=values).to_arrow()["answer"].to_pylist()
            assert rows == [answer if number == row else None for number in range(5)]  # other types are not compared


TIMES = [{"s": f"2026-0{month}-02T03:04:05Z", "d": f"2026-0{month}-03"} for month in (1, 2, 3)]


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ("SELECT sum(month(v:s)) FROM t", 6),
        ("SELECT max(extract(hour FROM v:s)) FROM t", 3),
        ("SELECT count(DISTINCT date_trunc('year', v:s)) FROM t", 1),
        ("SELECT max(strftime(v:s + INTERVAL 1 DAY, '%m-%d')) FROM t", "03-03"),
        ("SELECT max(date_diff('hour', v:s, v:d)) FROM t", 21),
        ("SELECT max(date_format(v:d, 'yyyy-MM')) FROM t", "2026-03"),
        ("SELECT count(*) FROM t WHERE v:s BETWEEN '2026-02-01' AND '2026-03-01'", 1),
        ("SELECT count(*) FROM t WHERE v:s IN ('2026-02-02T03:04:05Z', 'x')", 1),
        ("SELECT count(*) FROM t WHERE v:d > '2026-01-03'", 2),
        ("SELECT count(*) FROM t WHERE v:s > DATE '2026-02-01'", 2),
        ("SELECT count(*) FROM t WHERE v:s > TIMESTAMP '2026-02-01'", 2),
        ("SELECT count(*) FROM t WHERE v:s < now() AND v:d > current_date - 1000000", 3),
    ],
)
def test_points_in_time_in_strings_and_typed(query: str, value: Any, tmp_path: Path) -> None:
    strings = _table(TIMES, "shredded", tmp_path)
    types = {"$.s": "timestamp!", "$.d": "date"}
    (tmp_path / "times.ndjson").write_text("".join(json.dumps(row) + "\n" for row in TIMES))
    pv.ingest(tmp_path / "times.ndjson", tmp_path / "typed", types=types)
    if "'x'" not in query:  # which is not a timestamp
        assert _rows(query, tmp_path / "typed") == [value]
    if "DATE" in query or "TIMESTAMP" in query or "now" in query:
        with pytest.raises(VariantError, match="no string equals a point in time: write v:s::timestamp"):
            pv.sql(query, t=strings)
    else:
        assert _rows(query, strings) == [value]


def test_a_path_with_one_type_has_that_type(tmp_path: Path) -> None:
    table = _table(TYPED, "shredded", tmp_path)
    found = pv.sql("SELECT v:k, v:n, v:f, v, max(v:n) AS m, sum(v:n) AS s FROM t GROUP BY ALL", t=table).schema
    assert [field.type for field in found][:3] == [pa.string(), pa.int64(), found.field("f").type]
    assert pa.types.is_decimal(found.field("f").type) or pa.types.is_floating(found.field("f").type)
    assert found.field("m").type == pa.int64()
    rows = pv.sql("SELECT v:k, count(*) AS c FROM t GROUP BY v:k ORDER BY v:k", t=table).to_pylist()
    assert rows == [{"k": f"k{number}", "c": 4} for number in range(3)]
    report = pv.sql("SELECT v:n + 1 AS x FROM t WHERE v:n = 3", t=table).to_pylist()
    assert report == [{"x": 4}]


def test_one_value_of_another_type_makes_it_a_variant(tmp_path: Path) -> None:
    values = pv.parse_json([json.dumps(row) for row in [*TYPED, {"k": 7}]])
    pv.write(tmp_path / "b" / "a.parquet", {"v": values}, schema="k string, n bigint")
    assert pv.sql("SELECT v:k FROM t LIMIT 1", t=tmp_path / "b").to_pylist() == [{"k": '"k0"'}]
    other = pv.parse_json(['{"k": 1}'])
    pv.write(tmp_path / "c" / "a.parquet", {"v": pv.parse_json(['{"k": "x"}'])}, schema="k string")
    pv.write(tmp_path / "c" / "b.parquet", {"v": other}, schema="k bigint")
    assert sorted(pv.sql("SELECT v:k FROM t", t=tmp_path / "c").to_arrow()["k"].to_pylist()) == ['"x"', "1"]


@pytest.mark.parametrize("query", ["SELECT sum(v:k) FROM t", "SELECT v:k + 1 FROM t", "SELECT [v:k] = [v:k] FROM t"])
def test_what_has_no_meaning_says_which_cast_to_write(query: str) -> None:
    with pytest.raises(VariantError, match="::"):
        pv.sql(query, t=pv.parse_json(['{"k": 1}', '{"k": "a"}']))
