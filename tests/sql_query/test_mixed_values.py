"""Variants next to other values, in aggregates with an order, and in functions that test types."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

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
    }
    for query, expected in queries.items():
        assert pv.sql(query, t=_SAME, m=_MIXED).to_pylist() == expected, query


def test_numbers_in_order_by_name_variants() -> None:
    for query in (
        "SELECT v:n FROM t UNION ALL SELECT v:n FROM t ORDER BY 1 DESC",
        "SELECT v:n FROM t UNION ALL SELECT v:n FROM t ORDER BY ALL DESC",
        "SELECT * FROM (SELECT v:n FROM t) ORDER BY 1 DESC",
        "SELECT v:n FROM t ORDER BY 1 DESC",
    ):
        result = pv.sql(query, t=_MIXED).to_arrow()["n"].to_pylist()
        assert list(dict.fromkeys(result)) == ['"x"', "1.5", "1"], query
