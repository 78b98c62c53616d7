"""Variants next to other values, in aggregates with an order, and in functions that test types."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv

_SAME = pv.parse_json(['{"x":"a","n":1}', '{"x":"b","n":2}', '{"d":1.5}'])
_MIXED = pv.parse_json(['{"x":"a","n":1.5}', '{"x":1,"n":"x"}', '{"n":1}'])


@pytest.mark.parametrize(
    ("query", "same", "mixed"),
    [
        ("coalesce(v:x, 'none')", ["a", "b", "none"], ['"a"', "1", '"none"']),
        ("coalesce(v:n, 0)", [1, 2, 0], ["1.5", '"x"', "1"]),
        ("CASE WHEN v:n = 1 THEN 'one' ELSE v:x END", ["one", "b", None], ['"a"', "1", '"one"']),
        ("CASE v:n WHEN 1 THEN 'p' WHEN 'x' THEN 'q' ELSE 'r' END", ["p", "r", "r"], ["r", "q", "p"]),
        ("string_agg(v:n, ',' ORDER BY v:n DESC)", ["2,1"], ["x,1.5,1"]),
        ("list(v:n ORDER BY v:n)", [[1, 2, None]], [["1", "1.5", '"x"']]),
        ("string_agg(DISTINCT v:n, '')", None, None),
        ("count(DISTINCT v:n)", [2], [3]),
        ("is_integer(v:n)", [True, True, None], [False, False, True]),
        ("as_varchar(v:x)", ["a", "b", None], ["a", None, None]),
        ("as_decimal(v:n, 5, 2)", [1, 2, None], [Decimal("1.5"), None, 1]),
        ("as_object(v:n)", [None] * 3, [None] * 3),
    ],
)
def test_one_type_or_variants(query: str, same: Any, mixed: Any) -> None:
    for rows, expected in ((_SAME, same), (_MIXED, mixed)):
        for errors in ("null", "raise"):  # as_… never raises
            result = pv.sql(f"SELECT {query} AS c FROM t", t=rows, errors=errors).to_arrow()["c"].to_pylist()
            assert len(result) == 1 if expected is None else result == expected


def test_set_operations_with_all_count_rows() -> None:
    for operation, expected in (("INTERSECT ALL", ["1", "1"]), ("EXCEPT ALL", ['"1"', "1"]), ("EXCEPT", ['"1"'])):
        left, right = pv.parse_json(["1", "1", "1", '"1"']), pv.parse_json(["1", "1", "2", "[1]"])
        result = pv.sql(f"SELECT v FROM a {operation} SELECT v FROM b", a=left, b=right)
        assert sorted(result.to_arrow()["v"].to_pylist()) == sorted(expected)


def test_tries_are_null_where_failed_casts_are_errors() -> None:
    for text in ("TRY_CAST(v:x AS INT)", "try_variant_get(v, '$.x', 'int')", "v:x?::int"):
        result = pv.sql(f"SELECT {text} AS c FROM t", t=_MIXED, errors="raise").to_arrow()
        assert result["c"].to_pylist() == [None, 1, None]
    with pytest.raises(pv.VariantError, match="cannot cast"):
        pv.sql("SELECT v:x::int FROM t", t=_MIXED, errors="raise")


def test_a_subquery_gives_variants_whatever_the_data() -> None:
    query = "SELECT variant_type(x) AS k, x:y AS y FROM (SELECT coalesce(v:n, v:d) AS x FROM t) ORDER BY 1 LIMIT 1"
    assert pv.sql(query, t=_SAME).to_pylist() == [{"k": "decimal4", "y": None}]


def test_a_subquery_has_the_type_in_the_result() -> None:
    queries = {
        "WITH q AS (SELECT v:x, v:n FROM t) SELECT x, sum(n) AS n FROM q WHERE x > 'A' GROUP BY x ORDER BY x": [
            {"x": "a", "n": 1},
            {"x": "b", "n": 2},
        ],
        "SELECT * FROM (SELECT v:x, v:n FROM t) ORDER BY 2 DESC LIMIT 1": [{"x": "b", "n": 2}],
        "SELECT v:x FROM t UNION SELECT v:x FROM t ORDER BY 1 DESC LIMIT 1": [{"x": "b"}],
        "SELECT v:n FROM t EXCEPT SELECT v:n FROM m ORDER BY 1 LIMIT 1": [{"n": 2}],
        "SELECT v:x FROM t UNION ALL SELECT v:x FROM m ORDER BY x LIMIT 1": [{"x": "1"}],
        "SELECT count(*) AS c FROM (SELECT lead(v:x, 1, 'none') OVER (ORDER BY v:n) IS NULL AS c FROM t) WHERE c": [
            {"c": 1}
        ],
        "SELECT lag(v:x, 1, 'none') OVER (ORDER BY v:x) AS x FROM m ORDER BY v:x LIMIT 1": [{"x": '"none"'}],
        "SELECT MAP {'k': v:x, 'l': 'z'}['k'] || '!' AS x FROM t ORDER BY x LIMIT 1": [{"x": "a!"}],
        "SELECT MAP {'k': v:n}['k'] + map(['k'], [v:n])['k'] AS x FROM t ORDER BY x LIMIT 1": [{"x": 2}],
        "SELECT MAP {'k': v:x, 'l': 1}['l'] AS x, cardinality(MAP()) AS n FROM m LIMIT 1": [{"x": "1", "n": 0}],
    }
    for query, expected in queries.items():
        assert pv.sql(query, t=_SAME, m=_MIXED).to_pylist() == expected, query


def test_lists_rows_and_correlated_paths_have_one_type() -> None:
    rows = pv.parse_json(['{"n": 1, "k": "a", "l": ["a", "b"]}', '{"n": 2, "k": "b", "l": ["a"]}'])
    for query, expected in {
        "SELECT (SELECT max(e.x) FROM unnest(t.v:l::array<string>) e(x) WHERE e.x <> t.v:k) FROM t": ["b", "a"],
        "SELECT (SELECT max(x) FROM unnest(v:l::array<string>) e(x) WHERE x <> v:k) FROM t": ["b", "a"],
        "SELECT v:n FROM t WHERE (v:n, v:k) IN (SELECT u.v:n, u.v:k FROM t u WHERE u.v:n > 1)": [2],
        "SELECT [{'a': v:n, 'b': v:k}, {'a': 7, 'b': 'z'}][1].a + 1 FROM t": [2, 3],
        "SELECT [0] || [v:n] || [9] FROM t": [[0, 1, 9], [0, 2, 9]],
        "SELECT list_concat([0], [v:n], [9]) FROM t": [[0, 1, 9], [0, 2, 9]],
        "SELECT map_concat(MAP {'a': v:n}, MAP {'b': v:n})['b'] + 1 FROM t": [2, 3],
        "SELECT list_reverse(list_append([v:n], 9)) FROM t": [[9, 1], [9, 2]],
        "SELECT flatten([list_prepend(v:n, [v:n]), [v:n]]) FROM t": [[1, 1, 1], [2, 2, 2]],
        "SELECT struct_insert({'a': v:n}, b := v:k).b || '!' FROM t": ["a!", "b!"],
        "SELECT struct_insert({'a': v:n::int}, b := v:n).b + 1 FROM t": [2, 3],
        "SELECT s.k || '!' FROM (SELECT {'k': v:k, 'n': v:n::int} AS s FROM t) GROUP BY s.k": ["a!", "b!"],
        "SELECT list_transform(l, e -> e + 1) FROM (SELECT list_filter([v:n, 3], e -> e > 1) AS l FROM t)": [
            [4],
            [3, 4],
        ],
        "SELECT [e * 2 FOR e IN [v:n]] FROM t": [[2], [4]],
        "SELECT (CASE WHEN v:n > 0 THEN 9007199254740993 ELSE 2.5e0 END) = v:n FROM t": [False, False],
        "SELECT unnest([{'a': v:n}, {'a': 7}]) FROM t": [{"a": 1}, {"a": 2}, {"a": 7}, {"a": 7}],
        "SELECT unnest([v:n, 7], recursive := true) + 1 FROM t": [2, 3, 8, 8],
        "SELECT x + 1 FROM t, unnest([v:n, 7]) e(x)": [2, 3, 8, 8],
        "SELECT x.a + 1 FROM t, unnest([{'a': v:n}]) e(x)": [2, 3],
        "SELECT (v:l::array<variant> || [v:k])[1]:x IS NULL FROM t": [True, True],
    }.items():
        assert sorted(pv.sql(query, t=rows).to_arrow().column(0).to_pylist(), key=str) == sorted(expected, key=str)


def test_numbers_in_order_by_name_variants() -> None:
    for query in (
        "SELECT v:n FROM t UNION ALL SELECT v:n FROM t ORDER BY 1 DESC",
        "SELECT v:n FROM t UNION ALL SELECT v:n FROM t ORDER BY ALL DESC",
        "SELECT * FROM (SELECT v:n FROM t) ORDER BY 1 DESC",
        "SELECT v:n FROM t ORDER BY 1 DESC",
    ):
        result = pv.sql(query, t=_MIXED).to_arrow()["n"].to_pylist()
        assert list(dict.fromkeys(result)) == ['"x"', "1.5", "1"], query


MIXED = pv.parse_json(['{"q": 5}', '{"q": "996"}', '{"q": 3000}', '{"q": "x"}', '{"q": null}', "{}", '{"q": [1]}'])
NOT_NUMBERS = "1 array and 2 strings at v:q were not compared with a number: write a cast, such as v:q::double"


@pytest.mark.parametrize("layout", ["memory", "unshredded", "shredded"])
@pytest.mark.parametrize(
    ("condition", "found", "warning"),
    [
        ("v:q > 2390", [3000], NOT_NUMBERS),
        ("NOT (v:q > 2390)", [5], NOT_NUMBERS),
        ("v:q <> 5", [3000], NOT_NUMBERS),
        ("v:q NOT IN (5, 6)", [3000], NOT_NUMBERS),
        ("v:q BETWEEN 1 AND 10", [5], NOT_NUMBERS),
        ("3000 <= v:q", [3000], NOT_NUMBERS),
        ("v:q IN (5, 'x')", [5, "x"], "1 array at v:q was not compared with a number or string"),
        ("v:q >= 'a'", ["x"], "1 array and 2 numbers at v:q were not compared with a string"),
        ("CASE v:q WHEN 'x' THEN true END", ["x"], "1 array and 2 numbers at v:q were not compared with a string"),
    ],
)
def test_values_are_compared_within_the_type_of_the_other_operand(tmp_path, layout, condition, found, warning):
    source = MIXED
    if layout != "memory":
        source = tmp_path / "t.parquet"
        pv.write(source, {"v": MIXED}, schema="q bigint" if layout == "shredded" else None)
    result = pv.sql(f"SELECT v:q FROM t WHERE {condition}", t=source)
    texts = [str(value) for value in result.to_arrow()["q"].to_pylist()]
    assert [text if text == "x" else json.loads(text) for text in texts] == found
    assert len(result.warnings) == 1
    assert result.warnings[0].startswith(warning)


def test_variants_of_two_paths_are_compared_within_their_types():
    rows = pv.parse_json(['{"a": 1, "b": 2}', '{"a": 1, "b": "2"}', '{"a": "1", "b": "2"}', '{"a": [1], "b": 2}'])
    row = pv.sql("SELECT list(v:a < v:b) AS less, list(v:a <> v:b) AS other, list(v:a = v:b) AS same FROM t", t=rows)
    assert row.to_pylist() == [
        {"less": [True, None, True, None], "other": [True, None, True, None], "same": [False] * 4}
    ]


def test_a_value_of_another_class_is_distinct_from_null():
    rows = pv.parse_json(['{"i": 1, "s": "x"}', '{"i": 2, "m": 3}', '{"m": "x"}', '{"s": null}'])
    table = pa.table({"v": rows.storage, "k": pa.array([None, 3, None, None], pa.int64())})
    expected = {
        "v:i IS NOT DISTINCT FROM v:s": [False, False, True, True],
        "v:i IS DISTINCT FROM v:s": [True, True, False, False],
        "v:m IS NOT DISTINCT FROM v:i": [False, False, False, True],
        "v:m IS NOT DISTINCT FROM k": [True, True, False, True],
        "v:m IS DISTINCT FROM 3": [True, False, True, True],
        "v:s IS DISTINCT FROM NULL": [True, False, False, False],
    }
    for condition, answers in expected.items():
        assert pv.sql(f"SELECT {condition} AS c FROM t", t=table).to_arrow()["c"].to_pylist() == answers, condition


_CLEAN = ['{"id": 1, "a": null, "b": "x"}', '{"id": 2, "a": "y", "n": null}', '{"id": 3, "a": "z", "n": 3}']
_OTHER_TYPES = '{"id": -1, "a": [1], "b": {"q": 2}, "n": "s"}'


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("list(coalesce(v:a, v:b) ORDER BY v:id)", ["x", "y", "z"]),
        ("list(ifnull(v:n, 0) ORDER BY v:id)", [0, 0, 3]),
        ("any_value(v:a)", "y"),
        ("arg_min(v:a, v:id)", "y"),
        ("max_by(v:n, v:id)", 3),
        ("list(v:a = v:n ORDER BY v:id)", [None, None, False]),
        ("list(v:a IN (v:n, 'z') ORDER BY v:id)", [None, None, True]),
        ("list(v:a IS NOT DISTINCT FROM v:n ORDER BY v:id)", [True, False, False]),
    ],
)
def test_an_answer_does_not_depend_on_the_types_of_other_rows(expression, expected):
    for rows in (_CLEAN, [*_CLEAN, _OTHER_TYPES]):
        query = f"SELECT to_json({expression}) AS x FROM t WHERE v:id > 0"
        assert json.loads(pv.sql(query, t=pv.parse_json(rows)).to_pylist()[0]["x"]) == expected


def test_ignored_nulls_are_also_those_of_json():
    query = "SELECT last_value(v:a IGNORE NULLS) OVER (ORDER BY v:id DESC) AS x FROM t QUALIFY v:id = 1"
    for rows in (_CLEAN, [*_CLEAN, _OTHER_TYPES]):
        assert pv.sql(query, t=pv.parse_json(rows)).to_arrow()["x"][0].as_py().strip('"') == "y"


def test_between_is_two_comparisons_each_within_its_type():
    values = (1, 0, "x"), (5, 7, "x"), ("b", "a", "c")
    rows = pv.parse_json([json.dumps(dict(zip(("n", "lo", "hi"), row, strict=True))) for row in values])
    expected = {
        "v:n BETWEEN 0 AND 'x'": [None, None, None],
        "v:n BETWEEN 2 AND 'x'": [False, None, None],
        "NOT v:n BETWEEN 2 AND ''": [True, None, True],
        "v:n BETWEEN v:lo AND v:hi": [None, False, True],
        "v:n BETWEEN v:lo AND 5": [True, False, None],
        "v:n BETWEEN NULL AND 4": [None, False, None],
    }
    for condition, answers in expected.items():
        assert pv.sql(f"SELECT {condition} AS c FROM t", t=rows).to_arrow()["c"].to_pylist() == answers, condition


def test_the_extremes_of_values_of_several_types_give_a_warning():
    result = pv.sql("SELECT max(v:q) AS m FROM t", t=MIXED)
    assert "values of several types at v:q (1 array, 2 numbers and 2 strings) were compared" in result.warnings[0]
    (warning,) = pv.sql("SELECT max(v:q::double) AS m FROM t", t=MIXED).warnings
    assert warning.startswith('2 values at v:q::double could not be cast and are NULL, such as string "x": read')


COMPUTED = pv.parse_json(['{"b": true, "n": 2, "k": "", "o": {"p": 1}}', '{"b": false, "n": 0, "k": "z"}', '{"n": 5}'])


@pytest.mark.parametrize("layout", ["memory", "unshredded", "shredded"])
@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("count(*) FILTER (v:b IS TRUE)", [1]),
        ("count(*) FILTER (v:b IS NOT TRUE)", [2]),
        ("v:b IS FALSE", [False, True, False]),
        ("(v:n) + 1", [3, 1, 6]),
        ("((v:n)) * (2 + (v:n))", [8, 0, 35]),
        ("10 / nullif(v:n, 0)", [5.0, None, 2.0]),
        ("sum(CASE WHEN v:n > 1 THEN v:n END)::int", [7]),
        ("sum(if(v:n > 1, v:n, v:n))::int", [7]),
        ("coalesce(v:missing, v:n, 0) + 1", [3, 1, 6]),
        ("nullif(v:k, '')", [None, "z", None]),
        ("max(CASE WHEN v:n < 1 THEN v:k END)", ["z"]),
        ("nullif(v:n, 0) > 1", [True, None, True]),
    ],
)
def test_values_of_one_type_are_computed_with_inside_other_expressions(tmp_path, layout, expression, values):
    source = COMPUTED
    if layout != "memory":
        source = tmp_path / "t.parquet"
        schema = "b boolean, n bigint, k string" if layout == "shredded" else None
        pv.write(source, {"v": COMPUTED}, schema=schema)
    assert pv.sql(f"SELECT {expression} AS x FROM t", t=source).to_arrow()["x"].to_pylist() == values


def test_only_booleans_of_values_of_several_types_are_true_or_false():
    rows = pv.parse_json(['{"b": true}', '{"b": "true"}', '{"b": 1}', "{}", '{"b": null}'])
    result = pv.sql("SELECT v:b IS TRUE AS yes, v:b IS NOT FALSE AS maybe FROM t", t=rows)
    assert result.to_arrow()["yes"].to_pylist() == [True, False, False, False, False]
    assert result.to_arrow()["maybe"].to_pylist() == [True] * 5
    assert "1 number and 1 string at v:b were not compared with a boolean" in result.warnings[0]


def test_json_functions_in_from_take_variants():
    query = "SELECT j.key, j.value FROM t, json_each(v:o) j"
    assert pv.sql(query, t=COMPUTED).to_pylist() == [{"key": "p", "value": "1"}]


BIG = 12345678901234567890123456789012345678


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        (f"d = {BIG}.0", 1),
        (f"d > {BIG - 1}.5", 1),
        (f"d BETWEEN {BIG - 1}.5 AND {BIG}", 1),
        (f"d IN ({BIG}, 1.5)", 1),
        ("d > e", 2),
        ("e = 0.12345678901234567890123456789012345678", 1),
        ("e > 0.12345678901234567890123456789012345677", 1),
        ("v:d::decimal(38,0) = 12345678901234567890123456789012345678.0", 1),
        ("v:e::decimal(38,38) >= 0.12345678901234567890123456789012345678", 1),
    ],
)
def test_decimals_of_38_digits_are_compared_exactly(condition, rows):
    big, small = [str(BIG), str(BIG - 1)], [f"0.{BIG}", f"0.{BIG - 1}"]
    table = pa.table({"d": pa.array(big).cast(pa.decimal128(38, 0)), "e": pa.array(small).cast(pa.decimal128(38, 38))})
    table = table.append_column("j", pa.array([f'{{"d": {d}, "e": {e}}}' for d, e in zip(big, small, strict=True)]))
    query = f"SELECT count(*) AS n FROM (SELECT *, parse_json(j) AS v FROM t) WHERE {condition}"
    assert pv.sql(query, t=table).to_pylist() == [{"n": rows}]
