"""Hints of SQL: a key at another depth, and a regular expression that is not valid."""

from __future__ import annotations

import pyarrow as pa
import pytest

import parquet_variant as pv


@pytest.mark.parametrize(
    ("path", "meant"), [("v:b", "v:a.b"), ("v:c", "v:l[*].c"), ("v:x.b", "v:a.b"), ("v:a.b", None), ("v:n", None)]
)
def test_a_key_at_another_depth_is_suggested(path: str, meant: str | None) -> None:
    rows = pv.parse_json(['{"a":{"b":1},"l":[{"c":1}],"n":null}'] * 5)
    for query in (f"SELECT {path} AS x FROM t WHERE {path} = 99", f"SELECT count(*) AS n FROM t WHERE {path} = 99"):
        hints = pv.sql(query, t=rows).warnings
        assert hints == (() if meant is None else (f"no row has the path {path}: did you mean {meant}?",))
    if meant is not None:
        with pytest.raises(pv.VariantError) as caught:
            pv.sql(f"SELECT sum({path}) AS x FROM t", t=rows)
        assert str(caught.value) == f"no row has the path {path}: did you mean {meant}?"


@pytest.mark.parametrize("pattern", ["(", "*", "[a", "a{2,1}", "\\"])
def test_a_regular_expression_that_is_not_valid_is_named(pattern: str) -> None:
    with pytest.raises(pv.VariantError, match="regular expression is not valid"):
        pv.sql(f"SELECT regexp_matches(v:s, '{pattern}') AS x FROM t", t=pv.parse_json(['{"s":"x("}']))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT js:a FROM t", r"js is not a Variant, but a string: write parse_json\(js\):a"),
        ("SELECT max(v:123) FROM t", r"a key of digits is written in brackets and quotes: v:\['123'\]"),
        ("SELECT is_variant_null(js) FROM t", "is_variant_null takes a Variant, such as v:a"),
        ("SELECT variant_sett(v, '$.a', 1) FROM t", "unknown function variant_sett: did you mean variant_set"),
        ("SELECT js FROM t WHERE js IN 'a', 'b'", r"IN takes its values in parentheses: write x IN \('a', 'b'\)$"),
        ("SELECT js FROM t WHERE count(*) > 1", "cannot contain aggregates: write the condition in HAVING"),
        ("SELECT js, count(*) FROM t", "add it to GROUP BY, or write GROUP BY ALL$"),
        ("SELECT row_number() FROM t", r"write OVER \(…\) after the function$"),
        ("SELECT date_trunc('dya', now()) FROM t", "use year, quarter, month"),
        ("SELECT date_trunc(now(), 'day') FROM t", r"the unit comes first, as in date_trunc\('month', x\)$"),
        ("SELECT datediff(today(), today()) FROM t", r"the unit comes first, as in date_diff\('day', start, end\)$"),
        ("SELECT percentile(v:a, 0.5) FROM t", r"did you mean quantile_cont\?$"),
        ("SELECT to_timestamp(js) FROM t", r"text becomes a time with a cast, as in x::timestamp$"),
    ],
)
def test_a_wrong_path_names_the_remedy(query: str, message: str) -> None:
    with pytest.raises(pv.VariantError, match=message):
        pv.sql(query, t=pa.table({"js": ['{"a": 1}'], "v": pv.parse_json(['{"123": 1}'])}))


@pytest.mark.parametrize(
    "item",
    ["CASE WHEN v:b THEN 1 END", "if(v:b, 1, 2)", "count_if(v:b)", "bool_or(v:b)", "NOT v:b", "v:b AND true"],
)
def test_a_condition_of_several_types_names_the_cast_to_boolean(item: str) -> None:
    with pytest.raises(pv.VariantError, match=r"as in v:b::boolean$"):
        pv.sql(f"SELECT {item} AS x FROM t", t=pv.parse_json(['{"b":true}', '{"b":"x"}']))


@pytest.mark.parametrize("items", ["* EXCLUDE (v)", "t.* EXCLUDE (v)", "* EXCLUDE (v), 1 AS x"])
def test_a_star_that_leaves_no_column_is_refused(items: str) -> None:
    with pytest.raises(pv.VariantError, match="EXCLUDE leaves no column of t"):
        pv.sql(f"SELECT {items} FROM t", t=pv.parse_json(['{"a":1}']))
    rows = pa.table({"v": [1], "n": [2]})
    assert pv.sql("SELECT * EXCLUDE (v) FROM t", t=rows).to_pylist() == [{"n": 2}]


def test_dates_without_quotes_and_the_name_of_the_file_have_a_remedy() -> None:
    rows = pv.parse_json(['{"ts": "2026-01-06", "n": 2010}'])
    with pytest.raises(pv.VariantError, match="2026 - 01 - 05 is a subtraction: write a date in quotes"):
        pv.sql("SELECT count(*) FROM t WHERE v:ts > 2026-01-05", t=rows)
    assert pv.sql("SELECT v:n::int - 10 - 10 AS n FROM t", rows).to_pylist() == [{"n": 1990}]
    with pytest.raises(pv.VariantError, match="variant ingest --file-column filename"):
        pv.sql("SELECT filename FROM t", t=rows)


def test_keys_with_several_dots_and_versions_in_sql_have_a_remedy() -> None:
    rows = pv.parse_json(['{"addr": {"com.acme.Addr": {"zip": 1}}, "name": "x"}'])
    result = pv.sql("SELECT sum(v:addr.com.acme.Addr.zip::int) FROM t", t=rows)
    assert "did you mean v:addr['com.acme.Addr'].zip?" in str(result.warnings)
    for clause in ("VERSION AS OF 0", "AT (VERSION => 0)"):
        with pytest.raises(pv.VariantError, match=r"pv.open\(…, version=0\), or variant query --version"):
            pv.sql(f"SELECT count(*) FROM t {clause}", t=rows)


def test_date_format_refuses_the_letters_of_strftime() -> None:
    rows = pv.parse_json(['{"ts": "2026-01-06T00:00:00Z"}'])
    with pytest.raises(pv.VariantError, match="write strftime"):
        pv.sql("SELECT date_format(v:ts, '%Y-%m') FROM t", t=rows)
    query = "SELECT date_format(v:ts, 'yyyy-MM') AS d, strftime(v:ts::timestamp, '%Y-%m') AS s FROM t"
    assert pv.sql(query, t=rows).to_pylist() == [{"d": "2026-01", "s": "2026-01"}]


def test_two_tables_t_are_refused() -> None:
    rows = pv.parse_json(["{}"])
    with pytest.raises(pv.VariantError, match="the second argument is the table t, and t= is another one"):
        pv.sql("SELECT 1 AS a FROM t", rows, t=rows)
