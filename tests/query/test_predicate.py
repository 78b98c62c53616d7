"""Predicates mean what SQL says, and pruning by statistics never contradicts them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.query.predicate import (
    And,
    Compare,
    IsNull,
    Like,
    Not,
    Or,
    PredicateError,
    all_of,
    bind,
    columns_of,
    evaluate,
    is_in,
)
from parquet_variant.query.prune import ColumnStatistics, may_match
from parquet_variant.query.sql_pushdown import parse_predicate


def answers(text, array):
    bound = bind(parse_predicate(text), {"x": array.type})
    return evaluate(bound, {"x": array}).to_pylist()


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("$.a.b:int > 5", "$.a.b:int"),
        ("$.a>5", "$.a"),
        ("not ($.é:decimal(10, 2) > 5)", "$.é:decimal(10, 2)"),
        ('$[\'a b\']["c]\\""][0].d:int > 5', '$[\'a b\']["c]\\""][0].d:int'),
        ("$[*].a:int > 5", "$[*].a:int"),
    ],
)
def test_a_path_with_its_type_is_a_column(text, column):
    assert columns_of(parse_predicate(text)) == {column}


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("v:a.b > 5", "v:$['a']['b']"),
        ("5 < v:`a b`[0]::int", "v:$['a b'][0]:int"),
        ("v:a::decimal(9, 2) in (1, 2)", "v:$['a']:decimal(9,2)"),
        ("v:a::string like 'x%'", "v:$['a']:string"),
        ("order between 1 and 2", "order"),
        ("not (`a``b` is null or \"a`b\" = X'')", "a`b"),
    ],
)
def test_paths_of_sql_and_any_name_are_columns(text, column):
    assert columns_of(parse_predicate(text)) == {column}


@pytest.mark.parametrize("text", ["a.b > 5", "a['b'] > 5"])
def test_other_notations_of_paths_are_reported_how_it_is_written(text):
    with pytest.raises(PredicateError, match=r"a path is written \$\.a\.b:int"):
        parse_predicate(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x > 5", [False, True, None]),
        ("x > 5.5", [False, True, None]),
        ("x = 5.5", [False, False, None]),
        ("x <> 5.5", [True, True, None]),
        ("x >= 5.0", [True, True, None]),
        ("x < 99999999999999999999", [True, True, None]),
        ("x > -1e400", [True, True, None]),
        ("x > 1e-999999999", [True, True, None]),
        ("x = null", [None, None, None]),
        ("not x = null", [None, None, None]),
        ("x in (5, null)", [True, None, None]),
        ("x not in (5, 7)", [False, True, None]),
        ("x between 5 and 5", [True, False, None]),
        ("x is null", [False, False, True]),
        ("x is not null and not (x = 5 or x = 9)", [False, True, False]),
    ],
)
def test_integers_compare_exactly(text, expected):
    assert answers(text, pa.array([5, 6, None])) == expected


def test_decimals_compare_in_their_own_digits():
    array = pa.array([Decimal("1.10"), Decimal("1.11")], pa.decimal128(5, 2))
    assert answers("x > 1.105", array) == [False, True]
    assert answers("x = 1.1", array) == [True, False]
    assert answers("x < 1000000", array) == [True, True]


def test_nan_is_equal_to_itself_and_above_all():
    array = pa.array([1.0, math.nan, None])
    assert answers("x > 1e308", array) == [False, True, None]
    assert answers("x <= 1", array) == [True, False, None]
    assert answers("x <> 1", array) == [False, True, None]
    for op, expected in {"=": [False, True, None], "<": [True, False, None], "<=": [True, True, None]}.items():
        bound = bind(Compare("x", op, math.nan), {"x": array.type})
        assert evaluate(bound, {"x": array}).to_pylist() == expected


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (pa.string(), "it's", "x = 'it''s'"),
        (pa.binary(), b"\n", "x = X'0A'"),
        (pa.bool_(), True, "x = true"),
        (pa.date32(), dt.date(2024, 1, 31), "x = date '2024-01-31'"),
        (pa.date32(), dt.date(2024, 1, 31), "x > '2024-01-30'"),
        (
            pa.timestamp("us", "UTC"),
            dt.datetime(2024, 1, 31, 12, tzinfo=dt.UTC),
            "x = timestamp '2024-01-31T13:00+01:00'",
        ),
        (pa.timestamp("ns"), dt.datetime(2024, 1, 31, 12), "x = '2024-01-31 12:00:00'"),
        (pa.float32(), 0.5, "x = 0.5"),
    ],
)
def test_literals_of_each_type(kind, value, text):
    assert answers(text, pa.array([value], kind)) == [True]


_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@given(
    st.sampled_from([pa.timestamp(unit, tz) for unit in _PER_SECOND for tz in (None, "UTC")]
        + [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]),
    st.integers(0, 86_399), st.integers(0, 10**9 - 1) | st.sampled_from([0, 10**8, 10**6, 1000, 1]),
    st.sampled_from(["=", "<", "<=", ">", ">=", "<>"]),
)  # fmt: skip
def test_times_compare_exactly_in_every_unit(kind, second, nanos, op):
    """Files have timestamps in seconds and milliseconds, too; a literal may lie between two of them."""
    day = 0 if pa.types.is_time(kind) else -5 * 86_400
    per = _PER_SECOND[kind.unit]
    own = (day + second) * per + nanos * per // 10**9
    stored = [own - 1, own, own + 1, None]
    stored = [None if item is None or (not day and not 0 <= item < 86_400 * per) else item for item in stored]
    array = pa.array(stored, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)
    literal = (day + second) * 10**9 + nanos
    signs = [
        None if item is None else (item * (10**9 // per) > literal) - (item * (10**9 // per) < literal)
        for item in stored
    ]
    date = "" if pa.types.is_time(kind) else "1969-12-27 "
    text = f"x {op} '{date}{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.{nanos:09}'"
    wanted = {"=": (0,), "<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1), "<>": (-1, 1)}[op]
    assert answers(text, array) == [None if sign is None else sign in wanted for sign in signs]


def test_times_outside_of_the_unit_are_beyond_all_values():
    nanos = pa.array([0, None], pa.timestamp("ns"))
    assert answers("x < '3000-01-01'", nanos) == answers("x > '1600-01-01'", nanos) == [True, None]
    assert answers("x = '3000-01-01'", nanos) == [False, None]


def test_dictionaries_and_nulls_are_compared_by_their_values():
    assert answers("x like 'a%' and x <> 'a'", pa.array(["a", "ab", None, "b"]).dictionary_encode()) == [
        False, True, None, False,
    ]  # fmt: skip
    assert answers("x = 1", pa.nulls(2)) == [None, None]


def test_float_columns_compare_as_double():
    assert answers("x = 0.1", pa.array([0.1], pa.float32())) == [False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the filter is empty"),
        ("x >", "invalid filter: an operand is missing"),
        ("x > 5 y", "invalid filter: .* Unexpected token .near '\"y\"'"),
        ("x like 5", "invalid filter: .* LIKE '…'"),
        ("x > 'open", "invalid filter: a quote or a comment is not closed"),
        ("x not > 5", "invalid filter"),
        ("(" * 500, "nested"),
        ("x = date 'soon'", "ISO 8601"),
        ("x = timestamp '2024-01-01 00:00:00.1234567'", "more than six fractional digits"),
        ("x = 5abc", "invalid filter"),
        ("lower(x) = 'a'", "compare a column or path with literals"),
        ("x in (select 1)", "invalid filter"),
        ("x = y", "compare a column or path with literals"),
    ],
)
def test_bad_text_is_refused(text, message):
    with pytest.raises(PredicateError, match=message):
        parse_predicate(text)


@pytest.mark.parametrize("text", ["x = 'a'", "y = 5", "x like 'a%'", "x = true"])
def test_what_does_not_fit_the_column_is_refused(text):
    with pytest.raises(PredicateError):
        bind(parse_predicate(text), {"x": pa.int64()})


def test_tuples_are_the_same_predicates():
    assert all_of([("a", ">", 5), ("b", "not in", [1])]) == And((Compare("a", ">", 5), Not(Compare("b", "=", 1))))
    assert all_of([[("a", "==", 5)], [("b", "is not null")]]) == Or((Compare("a", "=", 5), Not(IsNull("b"))))
    with pytest.raises(PredicateError, match="unknown operator"):
        all_of([("a", "~", 5)])


def test_like_knows_its_prefix():
    assert (Like("x", "ab%").prefix, Like("x", "ab%").only_prefix) == ("ab", True)
    assert (Like("x", r"a\%b_").prefix, Like("x", r"a\%b_").only_prefix) == ("a%b", False)


VALUES = {
    "integer": st.integers(-4, 4),
    "double": st.sampled_from([-1.5, -0.0, 0.0, 1.0, 2.5, math.nan, math.inf]),
    "text": st.sampled_from(["", "a", "ab", "abc", "b", "é", "\U0001f600"]),
}
KINDS = {"integer": pa.int64(), "double": pa.float64(), "text": pa.string()}


@st.composite
def cases(draw):
    name = draw(st.sampled_from(sorted(KINDS)))
    literal = VALUES[name]
    atoms = [
        st.builds(Compare, st.just("x"), st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), literal),
        st.just(IsNull("x")),
        st.builds(is_in, st.just("x"), st.lists(literal | st.none(), min_size=1, max_size=3)),
    ]
    if name == "text":
        atoms.append(st.builds(Like, st.just("x"), st.sampled_from(["a%", "ab%", "%", "a_%", "b"])))
    predicate = st.recursive(
        st.one_of(atoms),
        lambda inner: (
            st.builds(Not, inner)
            | st.builds(lambda a, b: And((a, b)), inner, inner)
            | st.builds(lambda a, b: Or((a, b)), inner, inner)
        ),
        max_leaves=4,
    )
    array = pa.array(draw(st.lists(literal | st.none(), max_size=6)), KINDS[name])
    return array, bind(draw(predicate), {"x": KINDS[name]}), draw(st.booleans()), draw(st.booleans())


@given(cases())
def test_pruning_is_never_wrong(case):
    array, predicate, with_bounds, with_counts = case
    values = array.drop_null()
    nan = pa.types.is_floating(array.type) and bool(pc.any(pc.is_nan(values)).as_py())
    plain = values.filter(pc.invert(pc.is_nan(values))) if pa.types.is_floating(array.type) else values
    ordered = sorted(plain, key=lambda scalar: scalar.as_py().encode() if array.type == pa.string() else scalar.as_py())
    bounded = with_bounds and ordered
    statistics = ColumnStatistics(
        lower=ordered[0] if bounded else None,
        upper=ordered[-1] if bounded else None,
        may_be_null=array.null_count > 0 or not with_counts,
        may_be_value=len(values) > 0 or not with_counts,
        may_be_nan=nan or not with_counts,
    )
    if pc.any(evaluate(predicate, {"x": array})).as_py():
        assert may_match(predicate, lambda _: statistics)


def test_pruning_skips_what_bounds_exclude():
    statistics = ColumnStatistics(pa.scalar("bb"), pa.scalar("bd"), may_be_null=False, may_be_nan=False)
    types = {"x": pa.string()}
    skipped = ["x < 'bb'", "x > 'bd'", "x = 'a'", "x like 'c%'", "x not like 'b%'", "x is null", "x in ('a', 'c')",
               "not (x >= 'bb')", "x = 'bc' and x > 'z'", "x = null"]  # fmt: skip
    for text in skipped:
        assert not may_match(bind(parse_predicate(text), types), lambda _: statistics), text
    for text in ["x <= 'bb'", "x like 'bc%'", "x <> 'bc'", "x = 'bc' or x > 'z'", "x is not null"]:
        assert may_match(bind(parse_predicate(text), types), lambda _: statistics), text


@pytest.mark.parametrize(
    "number", ["1" + "0" * 400, "9" * 5000, "0." + "1" * 5000, "1e400", "1e999999999", "-" + "8" * 400]
)
def test_numbers_beyond_all_types(number: str, tmp_path: Path) -> None:
    pv.write(tmp_path / "v.parquet", {"id": [1, -1], "v": pv.parse_json(['{"d":1.5}', '{"d":-1.5}'])})
    for column in ("id", "d"):
        found = (
            pv.open(tmp_path / "v.parquet")
            .scan({"id": "id", "d": "$.d:double"}, f"{column} < {number}", column="v")
            .to_arrow()
        )
        assert found["id"].to_pylist() == ([] if number[0] == "-" else [-1] if number[1] == "." else [1, -1])


def test_a_number_that_has_no_decimal_is_an_error() -> None:
    with pytest.raises(pv.VariantError, match="out of range"):
        parse_predicate("a < 1e99999999999999999999")


SAMPLES = {
    pa.int64(): [-5, 0, 3, 7, 2**62],
    pa.float64(): [-1.5, -0.0, 0.0, 2.5, float("nan"), float("inf")],
    pa.string(): ["", "a", "ab", "é", "\U0001f600"],
    pa.decimal128(9, 2): [Decimal("-1.25"), Decimal(0), Decimal("7.5")],
    pa.date32(): [dt.date(1969, 1, 1), dt.date(2024, 2, 29)],
    pa.timestamp("us", "UTC"): [dt.datetime(1969, 1, 1, tzinfo=dt.UTC), dt.datetime(2024, 2, 29, tzinfo=dt.UTC)],
    pa.bool_(): [False, True],
}


@pytest.mark.parametrize("kind", SAMPLES, ids=str)
@given(data=st.data())
def test_a_list_of_values_means_an_equality_with_any_of_them(kind, data):
    values = data.draw(st.lists(st.sampled_from([*SAMPLES[kind], None]), min_size=2, max_size=6))
    array = pa.array([*SAMPLES[kind], None], kind)
    as_list = bind(is_in("x", values), {"x": kind})
    one_by_one = bind(Or(tuple(Compare("x", "=", value) for value in values)), {"x": kind})
    for wrap in (lambda part: part, Not):
        expected = evaluate(wrap(one_by_one), {"x": array}).to_pylist()
        assert evaluate(wrap(as_list), {"x": array}).to_pylist() == expected
        assert evaluate(wrap(as_list), {"x": array.dictionary_encode()}).to_pylist() == expected
        stored = pc.drop_null(array)
        present = [value for value in stored.to_pylist() if value == value]
        for row, value in enumerate(present):
            bounds = ColumnStatistics(pa.scalar(value, kind), pa.scalar(value, kind), may_be_nan=False)
            matches = evaluate(wrap(one_by_one), {"x": pa.array([value], kind)}).to_pylist() == [True]
            assert may_match(wrap(as_list), lambda _, bounds=bounds: bounds) >= matches, (row, value)


def test_row_groups_without_any_value_of_a_list_are_skipped():
    wanted = bind(is_in("x", [*range(0, 10_000, 2), None]), {"x": pa.int64()})
    between = ColumnStatistics(pa.scalar(10_001), pa.scalar(20_000), may_be_nan=False)
    odd = ColumnStatistics(pa.scalar(4_001), pa.scalar(4_001), may_be_nan=False)
    inside = ColumnStatistics(pa.scalar(4_001), pa.scalar(4_002), may_be_nan=False)
    assert [bool(may_match(wanted, lambda _, part=part: part)) for part in (between, odd, inside)] == [
        False, False, True,
    ]  # fmt: skip
    assert not may_match(Not(wanted), lambda _: inside)  # NULL among the values: never true
    without_null = bind(is_in("x", [4_001, 5]), {"x": pa.int64()})
    assert [bool(may_match(Not(without_null), lambda _, part=part: part)) for part in (odd, inside)] == [False, True]


@pytest.mark.filterwarnings("ignore:.* not compared with a")
@pytest.mark.parametrize("source", ["rows", "parquet", "delta"])
def test_paths_of_a_filter_have_the_type_of_their_values(tmp_path, source):
    pv_rows = [{"n": n, "s": f"s{n}", "mixed": n if n % 2 else "x"} for n in range(100)]
    opened = values = pv.from_python(pv_rows)
    if source != "rows":
        name = "t" if source == "delta" else "a.parquet"
        pv.write(tmp_path / name, {"v": values}, format=source)
        opened = tmp_path / name
    table = pv.open(opened)
    for where, expected in {
        "v:n > 97": [98, 99],
        "$.n in (3, 200) and v:s like 's%'": [3],
        "v:n::bigint between 1 and 2 or not $.n <> 5": [1, 2, 5],
        "v:none is null and n = 7": [7],
        "\"$.n:int\" > 97 and $.s like 's%'": [98, 99],
    }.items():
        assert table.scan({"n": "$.n:int"}, where).to_arrow()["n"].to_pylist() == expected
    assert table.scan({"n": "$.n:int"}, [("$.s", "=", "s4")]).to_arrow()["n"].to_pylist() == [4]
    assert table.scan({"n": "$.n:int"}, "v:mixed > 95").to_arrow()["n"].to_pylist() == [97, 99]
    for conditions, expected in (
        ([("$.mixed", ">", 95)], [97, 99]),
        ([("v:$.mixed", "=", "x"), ("v:$.n:int", "<", np.int64(3))], [0, 2]),
        ([("$.n", "<", 0.5), ("$.n", "<", float("inf")), ("$.s", "like", "s%")], [0]),
        ([("n", "in", [4, 5]), ("$.mixed", "is not null")], [4, 5]),
    ):
        assert table.scan({"n": "$.n:int"}, conditions).to_arrow()["n"].to_pylist() == expected
    with pytest.raises(PredicateError, match="unknown column w: choose from v"):
        table.scan({"n": "$.n:int"}, "w:n > 5")


def test_a_column_of_a_fixed_number_of_bytes_is_compared_with_bytes():
    table = pv.open({"u": pa.array([b"\x01\x7f", b"\x01\x80", None], pa.binary(2))})
    assert table.scan(["u"], [("u", ">", b"\x01\x7f")]).to_arrow()["u"].to_pylist() == [b"\x01\x80"]
    with pytest.raises(pv.PredicateError, match="cannot compare u"):
        table.scan(["u"], [("u", "=", b"\x01")])


def test_filters_take_scalars_of_numpy_and_arrow() -> None:
    at = dt.datetime(2024, 1, 2, 3, 4, 5, 6)
    rows = pa.table(
        {"n": [1, 2], "x": [0.5, 1.5], "s": ["a", "b"], "at": [at, at + dt.timedelta(days=1)], "b": [True, False]}
    )
    table = pv.open(rows)
    for condition in (
        ("n", "=", np.int64(1)),
        ("n", "in", np.array([1, 7])),
        ("x", "<", np.float32(1)),
        ("s", "=", np.str_("a")),
        ("b", "=", np.bool_(True)),
        ("at", "=", np.datetime64(at)),
        ("at", "<", np.datetime64("2024-01-03")),
        ("at", "=", pa.scalar(at)),
        ("n", "not in", [pa.scalar(2)]),
    ):
        assert table.scan(["n"], [condition]).to_pylist() == [{"n": 1}], condition
