"""Functions that change and build Variants mean in SQL what they mean in Python."""

from __future__ import annotations

import datetime as dt
import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.errors import VariantError

ROWS = pv.parse_json(['{"a": 1, "b": [1, 2], "n": null}', '{"a": "x"}', "{}", "5", None])
VALUES = {"1": 1, "'s'": "s", "true": True, "1.5::double": 1.5, "DATE '2024-02-29'": dt.date(2024, 2, 29), "NULL": None}
PATHS = ["$.a", "$.b[0]", "$.b[3]", "$.q", "$.a.z", "$['b']"]


def _answers(expression, rows=ROWS):
    texts = pv.sql(f"SELECT to_json({expression}) AS x FROM t", t=rows).to_arrow()["x"].to_pylist()
    return [None if text is None else json.loads(text) for text in texts]


def _expected(array):
    return [None if value is None else json.loads(value) for value in pv.to_json(array).to_pylist()]


@settings(max_examples=60)
@given(st.sampled_from(sorted(VALUES)), st.sampled_from(PATHS), st.booleans())
def test_edits_mean_what_they_mean_in_python(value, path, switch):
    column = (
        pv.VariantArray.from_pylist([VALUES[value]] * len(ROWS))
        if value != "NULL"
        else pv.VariantArray.from_pylist([None] * len(ROWS))
    )
    quoted = path.replace("'", "''")
    for call, function, arguments in (
        (f"variant_set(v, '{quoted}', {value}, {switch})", pv.variant_set, (path, column, switch)),
        (f"variant_insert(v, '{quoted}', {value})", pv.variant_insert, (path, column)),
        (f"variant_array_append(v, '{quoted}', {value})", pv.variant_array_append, (path, column)),
        (f"variant_delete(v, '{quoted}', '$.n')", pv.variant_delete, (path, "$.n")),
    ):
        assert _answers(f"try_{call}") == _expected(function(ROWS, *arguments, errors="null")), call
        try:
            expected = _expected(function(ROWS, *arguments))
        except VariantError as error:
            with pytest.raises(VariantError) as caught:
                _answers(call)
            assert caught.value.reason == error.reason
        else:
            assert _answers(call) == expected, call


@pytest.mark.parametrize(
    ("expression", "first"),
    [
        ("variant_strip_nulls(v)", {"a": 1, "b": [1, 2]}),
        ("variant_set(variant_delete(v, '$.b', '$.n'), '$.c', v:a)", {"a": 1, "c": 1}),
        ("to_variant_object({'x': 1, 'y': [DATE '2024-01-02']})", {"x": 1, "y": ["2024-01-02"]}),
        ("to_variant_object([v:a, v:b])", [1, [1, 2]]),
        ("variant_from_arrays(['x', 'y'], [1, 2])", {"x": 1, "y": 2}),
        ("variant_from_entries([{'key': 'x', 'value': 1.5}])", {"x": 1.5}),
        ("variant_from_entries([{'key': 'x', 'value': v:b}])", {"x": [1, 2]}),
        ("variant_set(parse_json('{}'), '$.k', parse_json('[1]'))", {"k": [1]}),
        ("coalesce(v:missing, DATE '2024-01-02')", "2024-01-02"),
    ],
)
def test_functions_build_variants(expression, first):
    assert _answers(expression, ROWS[:1]) == [first]


def test_values_of_the_engine_keep_their_types_as_variants():
    types = {
        "1::tinyint": "int8", "1": "int32", "1::bigint": "int64", "1.50": "decimal4", "1::float": "float",
        "1::double": "double", "'x'": "string", "'x'::blob": "binary", "true": "boolean", "DATE '2024-01-02'": "date",
        "TIMESTAMP '2024-01-02'": "timestamp", "TIMESTAMP_NTZ '2024-01-02'": "timestamp_ntz", "TIME '01:02:03'": "time",
        "'00000000-0000-0000-0000-000000000005'::uuid": "uuid", "[1]": "array", "{'a': 1}": "object",
        "99999999999999999999999999999999999999::decimal(38,0)": "decimal16",
    }  # fmt: skip
    for value, name in types.items():
        found = pv.sql(f"SELECT variant_type(to_variant_object({value})) AS x").to_arrow()["x"].to_pylist()
        assert found == [name], value


def test_validity_of_bytes_is_reported():
    assert pv.sql("SELECT is_valid_variant(v) AS x FROM t", t=ROWS).to_arrow()["x"].to_pylist() == [True] * 4 + [None]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("variant_sett(v, '$.a', 1)", "unknown function variant_sett: did you mean variant_set"),
        ("lowerr(v:a::string)", "unknown function lowerr: did you mean lower"),
        ("variant_set(v, '$.a')", r"write variant_set\(variant, path, value, create_if_missing\)"),
        ("variant_delete(v, 5)", r"write variant_delete\(variant, path, …\)"),
        ("variant_set(5, '$.a', 1)", r"write variant_set\(variant"),
        ("variant_from_arrays(['a', 'a'], [1, 2])", "a name is repeated"),
    ],
)
def test_wrong_calls_say_what_to_write(expression, message):
    with pytest.raises(VariantError, match=message):
        pv.sql(f"SELECT {expression} AS x FROM t", t=ROWS)


NULL_PATHS = [
    "variant_get(v, NULL)", "variant_get(v, NULL, 'int')", "try_variant_get(v, NULL, 'int')", "variant_exists(v, NULL)",
    "variant_extract(v, NULL)", "variant_extract_string(v, NULL)", "variant_keys(v, NULL)", "variant_type(v, NULL)",
    "variant_array_length(v, NULL)", "get(v, NULL)", "get_path(v, NULL)", "variant_get(NULL, '$.a', 'int')",
    "variant_get(v, CAST(NULL AS VARCHAR))", "variant_keys(v, NULL::string)", "is_integer(NULL)", "as_integer(NULL)",
    "variant_keys(NULL)", "schema_of_variant(NULL::variant)",
]  # fmt: skip


@pytest.mark.parametrize("call", NULL_PATHS)
def test_a_null_path_gives_null(call: str) -> None:
    rows = pv.sql(f"SELECT {call} AS x, count(*) OVER () AS n FROM t", t=pv.parse_json(['{"a": 1}', None]))
    assert rows.to_pylist() == [{"x": None, "n": 2}] * 2
    assert pv.sql(f"SELECT 1 AS one FROM t WHERE {call} = 1", t=pv.parse_json(['{"a": 1}'])).to_pylist() == []


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("variant_strip_nulls(NULL)", [None, None]),
        ("variant_strip_nulls(variant_get(v, NULL, 'variant'), false)", [None, None]),
        ("variant_set(NULL::variant, '$.a', 1)", [None, None]),
        ("variant_set(v, CAST(NULL AS VARCHAR), 1)", [None, None]),
        ("variant_delete(v, CAST(NULL AS VARCHAR))", [{"a": 1}, None]),
        ("is_variant_null(NULL::variant)", [False, False]),
        ("coalesce(v:a, NULL::variant)", [1, None]),
    ],
)
def test_a_null_is_a_variant_where_a_variant_is_needed(expression: str, expected: list[object]) -> None:
    assert _answers(expression, pv.parse_json(['{"a": 1}', None])) == expected


def test_a_cast_to_variant_is_a_variant() -> None:
    rows = pv.parse_json(['{"a": [1]}', None])
    united = pv.sql("SELECT v FROM t UNION ALL SELECT 5::variant UNION ALL SELECT NULL::variant", t=rows).to_pylist()
    assert sorted(map(str, (row["v"] for row in united))) == ["5", "None", "None", '{"a":[1]}']
    assert _answers("{'b': [1, 2.5]}::variant", rows[:1]) == [{"b": [1, 2.5]}]
    paths = "SELECT ({'b': DATE '2024-01-02'}::variant):b AS x, variant_type(TRY_CAST('a' AS VARIANT)) AS y"
    assert pv.sql(paths).to_pylist() == [{"x": '"2024-01-02"', "y": "string"}]
    schemas = "SELECT schema_of_variant_agg(x) AS s FROM (SELECT v:a AS x FROM t UNION ALL SELECT NULL::variant)"
    assert pv.sql(schemas, t=rows).to_pylist() == [{"s": "ARRAY<BIGINT>"}]


@pytest.mark.parametrize("inside", ["[to_variant_object({0})]", "{{'q': {0}::variant}}", "MAP {{'q': {0}::variant}}"])
@pytest.mark.parametrize(("value", "name"), [("DATE '2024-01-02'", "date"), ("'ab'::blob", "binary")])
def test_variants_inside_other_values_keep_their_types(inside: str, value: str, name: str) -> None:
    query = f"SELECT schema_of_variant(to_variant_object({inside.format(f'({value})')})) AS s"
    assert name.upper() in pv.sql(query).to_pylist()[0]["s"]
    built = f"SELECT variant_type(variant_from_arrays(['k'], [({value})::variant]), '$.k') AS s"
    assert pv.sql(built).to_pylist() == [{"s": name}]


def test_a_list_of_variants_and_other_values_holds_variants() -> None:
    rows = pv.parse_json(['{"a": "x"}', '{"a": [1]}'])
    assert _answers("[v:a, 1, 'x', NULL]", rows) == [["x", 1, "x", None], [[1], 1, "x", None]]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("coalesce(v:missing, 'n')", "n"),
        ("ifnull(v:missing, 5)", 5),
        ("CASE WHEN v:a IS NULL THEN v:missing ELSE DATE '2024-01-02' END", dt.date(2024, 1, 2)),
        ("coalesce(v:missing, [1])", [1]),
        ("coalesce(v:missing, [v:a])", "[[1]]"),
        ("coalesce(v:missing, v:gone)", None),
    ],
)
def test_a_path_that_no_row_has_leaves_the_type_of_the_other_values(expression: str, expected: object) -> None:
    found = pv.sql(f"SELECT {expression} AS x FROM t", t=pv.parse_json(['{"a": [1]}'])).to_pylist()
    assert found == [{"x": expected}]


def test_a_typed_literal_is_cast_after_it_has_its_type() -> None:
    row = pv.sql("SELECT TIMESTAMP '2024-01-02 05:00:00'::date AS d, DATE '2024-1-2'::string || '!' AS s").to_pylist()[
        0
    ]
    assert row == {"d": dt.date(2024, 1, 2), "s": "2024-01-02!"}


def test_variants_inside_other_values_are_arguments_of_functions() -> None:
    table = pv.parse_json(['{"a": [1, 2]}', '{"a": [[3], 3]}'])
    assert pv.sql("SELECT variant_contains(v:a, [v:a[1]]) AS x FROM t", t=table).to_pylist() == [{"x": True}] * 2
    assert pv.sql("SELECT variant_contains(v:a, [v:a]) AS x FROM t", t=table).to_pylist() == [{"x": False}] * 2
    assert pv.sql("SELECT to_json(variant_group_array([v:a[1]])) AS x FROM t", t=table).to_pylist() == [
        {"x": "[[2],[3]]"}
    ]


def test_aggregates_of_variants_take_filters_windows_orders_and_other_keys():
    rows = pv.VariantArray.from_pylist([{"k": "a", "n": [1]}, {"k": "b", "n": 2}, {"k": "a", "n": {"z": None}}])
    table = pa.table({"v": rows, "i": [1, 2, 3]})
    for query, expected in {
        "SELECT variant_group_array(v:n ORDER BY i DESC) FROM t": ['[{"z":null},2,[1]]'],
        "SELECT variant_group_array(i) FILTER (i > 1) FROM t": ["[2,3]"],
        "SELECT variant_group_array(DISTINCT v:k) FROM t": ['["a","b"]'],
        "SELECT variant_group_array(v:n) OVER (ORDER BY i) FROM t": ["[[1]]", "[[1],2]", '[[1],2,{"z":null}]'],
        "SELECT variant_group_array(i), v:k FROM t GROUP BY ALL ORDER BY 1": ["[1,3]", "[2]"],
        "SELECT variant_group_object(i, v:n ORDER BY i) FROM t": ['{"1":[1],"2":2,"3":{"z":null}}'],
        "SELECT variant_group_object(v:k, i) FILTER (i < 3) FROM t": ['{"a":1,"b":2}'],
        "SELECT variant_group_object(v:k, i):b FROM t WHERE i < 3": ["2"],
        "SELECT variant_group_object(v:k, v) FROM t WHERE i > 3": [None],
        "SELECT variant_from_arrays(list(v:k), list(i)) FROM t WHERE i < 3": ['{"a":1,"b":2}'],
    }.items():
        assert pv.sql(query, t=table).to_arrow().column(0).to_pylist() == expected, query
    with pytest.raises(VariantError, match="3 names for 3 values, or a name is repeated or NULL"):
        pv.sql("SELECT variant_group_object(v:k, i) FROM t", t=table)


def test_variant_comparator_orders_and_equals_as_variants_do():
    texts = ["true", "1", "1.0", "-5", '"b"', '"a"', "[1]", "{}", "null"]
    table = pa.table({"v": pv.parse_json(texts), "i": range(9)})
    query = "SELECT i FROM t ORDER BY {}, i"
    assert (
        pv.sql(query.format("variant_comparator(v)"), t=table)
        .to_arrow()
        .equals(pv.sql(query.format("v"), t=table).to_arrow())
    )
    assert pv.sql("SELECT count(DISTINCT variant_comparator(v, '$')) AS n FROM t", t=table).to_pylist() == [{"n": 7}]


def test_a_function_of_variants_over_a_list_suggests_a_cast_to_variant():
    with pytest.raises(VariantError, match=r"variant_array_length\(x::variant\)"):
        pv.sql("SELECT variant_array_length([1, 2])")
