"""Lists, maps and structs that hold Variants: what is taken out of them has paths, and nothing compares them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("duckdb", reason="DuckDB is not installed")

import parquet_variant as pv
from parquet_variant.errors import VariantError
from parquet_variant.query.variant_functions import FUNCTIONS

Ask = Callable[[str], list[Any]]
ITEMS = "v:items::array<variant>"
FIRST = '{"day":"x","items":[{"n":1},{"n":2}],"kind":"a","n":1,"o":{"p":1}}'
FIRST_LIST = ['{"n":1}', '{"n":"x"}', None]
BOTH = [(1, 1), (1, 2), (2, None)]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        # elements of lists
        (f"SELECT e:n::int FROM t, unnest({ITEMS}) q(e)", [1, 2]),
        (f"SELECT q.e:n::int, e FROM t, unnest({ITEMS}) q(e) WHERE e:n::int > 1", [(2, '{"n":2}')]),
        ("SELECT e:n::int FROM t, unnest(v:items[*]) e", [1, 2]),
        (f"SELECT unnest:n::int FROM t, unnest({ITEMS})", [1, 2]),
        (f"SELECT e:n::int, o FROM t, unnest({ITEMS}) WITH ORDINALITY q(e, o) ORDER BY o", [(1, 1), (2, 2)]),
        (f"SELECT day, e:n::int FROM t LEFT JOIN unnest({ITEMS}) q(e) ON true WHERE day < 3 ORDER BY ALL", BOTH),
        (f"SELECT e:n::int FROM t LATERAL VIEW explode({ITEMS}) q AS e", [1, 2]),
        (f"SELECT day, e:n::int FROM t LATERAL VIEW OUTER explode({ITEMS}) q AS e WHERE day < 3 ORDER BY ALL", BOTH),
        (f"SELECT e:n::int FROM t CROSS JOIN LATERAL explode({ITEMS}) AS q(e)", [1, 2]),
        (f"SELECT unnest({ITEMS}):n::int FROM t", [1, 2]),
        (f"SELECT x:n::int FROM (SELECT explode({ITEMS}) AS x FROM t)", [1, 2]),
        (f"SELECT ({ITEMS})[2]:n::int, len({ITEMS}) FROM t WHERE day < 3", [(2, 2), (None, None)]),
        (f"SELECT ({ITEMS})[1:1] FROM t WHERE day = 1", [['{"n":1}']]),
        (f"SELECT coalesce({ITEMS}, [])[1]:n::int FROM t WHERE day < 3", [1, None]),
        (f"SELECT list_concat({ITEMS}, [v:o])[3]:p::int FROM t WHERE day = 1", [1]),
        # lambdas
        (f"SELECT list_transform({ITEMS}, x -> x:n::int + day) FROM t WHERE day = 1", [[2, 3]]),
        (f"SELECT list_transform({ITEMS}, lambda x, i: x:n)[2]::string FROM t WHERE day = 1", ["2"]),
        (f"SELECT list_filter({ITEMS}, x -> x:n::int > 1)[1]:n::int FROM t WHERE day = 1", [2]),
        (f"SELECT [x:n::int FOR x IN {ITEMS} IF x:n::int > 1] FROM t WHERE day = 1", [[2]]),
        ("SELECT [day + 1 FOR day IN [7, 8]] FROM t WHERE day = 1", [[8, 9]]),
        (f"SELECT list_transform({ITEMS}, x -> {{'x': x:n::int}}) FROM t WHERE day = 1", [[{"x": 1}, {"x": 2}]]),
        # what is made
        ("SELECT {'a': v:o, 'b': day} FROM t WHERE day < 3", [{"a": '{"p":1}', "b": 1}, {"a": None, "b": 2}]),
        ("SELECT {'a': v}.a:n::int FROM t WHERE day = 2", [5]),
        ("SELECT {'a': {'b': v}}['a'].b:n::int FROM t WHERE day = 2", [5]),
        ("SELECT q.x.a:n::int, x.b FROM (SELECT {'a': v, 'b': day} AS x FROM t) q WHERE x.b = 2", [(5, 2)]),
        ("SELECT struct_pack(a := v).a:n::int FROM t WHERE day = 2", [5]),
        ("SELECT row(v:n, day) FROM t WHERE day = 2", [{"element1": "5", "element2": 2}]),
        ("SELECT [v:o, v, NULL] FROM t WHERE day = 2", [[None, '{"kind":"b","n":5}', None]]),
        ("SELECT [v:o, v][2]:n::int, list_value(v)[1]:n::int FROM t WHERE day = 2", [(5, 5)]),
        ("SELECT (MAP {'a': v})['a']:n::int, map(['a'], [v])['a']:n::int FROM t WHERE day = 2", [(5, 5)]),
        ("SELECT (v:o::map<string, variant>)['p']::int FROM t WHERE day = 1", [1]),
        ("SELECT (v:o::struct<p: variant>).p::int FROM t WHERE day = 1", [1]),
        ("SELECT (v:o::variant)['p']::int FROM t WHERE day = 1", [1]),
        ("SELECT array_agg({'d': day, 'v': v} ORDER BY day)[2].v:n::int FROM t", [5]),
        ("SELECT y.v:n::int FROM (SELECT list({'d': day, 'v': v}) AS x FROM t), unnest(x) q(y) WHERE y.d = 2", [5]),
        ("SELECT ARRAY(SELECT v FROM t WHERE day = 2)[1]:n::int", [5]),
        ("SELECT arg_max({'v': v}, day).v:n::string FROM t", ["z"]),
        # a path behind any expression that gives a Variant
        ("SELECT lag(v) OVER (ORDER BY day):n::int FROM t WHERE day < 4", [None, 1, 5]),
        ("SELECT first_value(v) OVER w:kind FROM t WHERE day = 2 WINDOW w AS (ORDER BY day)", ['"b"']),
        ("SELECT any_value(v) FILTER (WHERE day > 1):n::int FROM t", [5]),
        ("SELECT CASE WHEN day = 1 THEN v:o ELSE v END:p FROM t WHERE day < 3", ["1", None]),
        ("SELECT if(day = 1, v:o, v):p::int FROM t WHERE day < 3", [1, None]),
        ("SELECT (SELECT v FROM t WHERE day = 2):n::int", [5]),
        # functions of Variants
        ("SELECT day FROM t WHERE is_variant_null(v:kind) OR is_variant_null(coalesce(v, v:o)) ORDER BY day", [5]),
        ("SELECT schema_of_variant(v:o) FROM t WHERE schema_of_variant(v:n) = 'BIGINT' LIMIT 1", ["OBJECT<p: BIGINT>"]),
        ("SELECT to_json(v:o)->'p' FROM t WHERE day = 1", ["1"]),
        # PIVOT and UNPIVOT
        ("PIVOT (SELECT v:kind::string AS k, day FROM t) ON k USING max(day)", [(3, 2)]),
        ("PIVOT (SELECT v:kind::string AS k, day FROM t) ON k USING max(day) GROUP BY day LIMIT 0", []),
        ("PIVOT (SELECT v:kind::string AS k, day FROM t WHERE day < 2) ON k USING max(day) ORDER BY a", [1]),
        ("WITH x AS (SELECT v:kind::string AS k, day FROM t) SELECT a FROM x PIVOT (max(day) FOR k IN ('a'))", [3]),
        ("UNPIVOT (SELECT v:n::bigint AS n, day FROM t WHERE day = 2) ON n, day", [("n", 5), ("day", 2)]),
        # recursion, joins that only look
        (
            "WITH RECURSIVE w(e,d) AS (SELECT v,0 FROM t WHERE day=1 UNION ALL SELECT e:o,1 FROM w WHERE d<1) FROM w",
            [(FIRST, 0), ('{"p":1}', 1)],
        ),
        ("SELECT * EXCLUDE v FROM t SEMI JOIN u ON t.v:kind::string = u.v:k::string WHERE day = 2", [(2, "b")]),
        ("SELECT x.v:n::int FROM (SELECT * FROM t ANTI JOIN u ON t.v:kind::string = u.v:k::string) x", [None, None]),
    ],
)  # fmt: skip
def test_answers(ask: Ask, query: str, rows: list[Any]) -> None:
    assert ask(query) == rows


HOLDS = "holds Variants"


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        (f"SELECT {ITEMS} = {ITEMS} FROM t", HOLDS),
        ("SELECT v:items[*] < v:items[*] FROM t", f"v:items.*{HOLDS}"),
        ("SELECT list(v) = list(v) FROM t", f"LIST.v.* {HOLDS}"),
        ("SELECT {'a': v} = {'a': v} FROM t", HOLDS),
        ("SELECT DISTINCT {'a': v} FROM t", "holds Variants"),
        (f"SELECT {ITEMS} AS x FROM t ORDER BY x", HOLDS),
        (f"SELECT {ITEMS} AS x, count(*) FROM t GROUP BY x", HOLDS),
        (f"SELECT {ITEMS} AS x, count(*) FROM t GROUP BY ALL", HOLDS),
        ("SELECT max([v]) FROM t", HOLDS),
        ("SELECT list_contains(v:items[*], v) FROM t", HOLDS),
        ("SELECT list_sort(list(v)) FROM t", HOLDS),
        ("SELECT count(DISTINCT [v]) FROM t", HOLDS),
        ("SELECT [v] FROM t UNION SELECT [v] FROM u", "UNION cannot compare"),
        ("SELECT unnest([v], recursive := true) FROM t", HOLDS),
        ("SELECT [[v], [1]] FROM t", "mixes a Variant"),
        ("SELECT * FROM t, explode(v:items)", "the function explode is not allowed in FROM"),
        ("SELECT unnest(v:items) FROM t", "not a list: write v:items::array<variant>"),
        ("SELECT e FROM t, unnest(v:items) q(e)", "not a list: write v:items::array<variant>"),
        ("SELECT 1 FROM t WHERE exists(v:l::array<int>, x -> x = 1)", "write len"),
        ("SELECT e:p FROM t, variant_explode(v:items) e", "e is a table, not a column: .* or write e.value:p"),
        ("SELECT e->>'p' FROM t, variant_explode(v:items) e", "e is a table, not a column: .* or write e.value:p"),
        ("SELECT t:p FROM t", "t is a table, not a column: .* or write t.v:p"),
        ("SELECT v:items[0:1] FROM t", "only arrays have slices"),
        ("SELECT v:items[:1] FROM t", "only arrays have slices"),
        ("SELECT [1, 2][day:day + 1] FROM t", "a slice is written list_slice"),
        ("SELECT v FROM t UNION ALL SELECT 1", "INTEGER -> VARIANT.*cast the Variant"),
        ("PIVOT t ON name USING max(day)", "PIVOT .* v is a Variant: write them over a subquery"),
        ("SELECT * FROM (SELECT v, day FROM t) PIVOT (max(day) FOR day IN (1))", "v is a Variant"),
        ("SELECT day FROM t WHERE day = ?", "parameter"),
        ("SELECT day + 1 :kind FROM t", "parameter"),
        ("EXPLAIN SELECT 1", "--explain"),
    ],
)
def test_errors(ask: Ask, query: str, wrong: str) -> None:
    with pytest.raises(VariantError, match=wrong) as caught:
        ask(query)
    assert not any(inner in str(caught.value) for inner in ("_table_", "$[", "STRUCT", '"t"."'))


def test_describe_names_variants_in_lists_and_structs(events: dict[str, Any]) -> None:
    found = pv.sql(f"DESCRIBE SELECT {ITEMS}, {{'a': v}} FROM t", t=events).to_arrow()
    assert found["column_type"].to_pylist() == ["VARIANT[]", "STRUCT(a VARIANT)"]


def test_variants_in_lists_of_a_table() -> None:
    values = pv.parse_json(['{"n": 1}', '{"n": 2}', '{"n": 3}'])
    lists = pa.ListArray.from_arrays([0, 2, 2, 3], values.storage)
    table = pa.table([lists, [1, 2, 3]], names=["l", "k"])
    found = pv.sql("SELECT k, e:n::int AS n FROM t, unnest(l) q(e) ORDER BY n", t=table).to_pylist()
    assert [(row["k"], row["n"]) for row in found] == [(1, 1), (1, 2), (3, 3)]
    assert [json.loads(value) for value in pv.sql("SELECT l FROM t", t=table).to_pylist()[0]["l"]] == [
        {"n": 1},
        {"n": 2},
    ]
    with pytest.raises(VariantError, match="holds Variants"):
        pv.sql("SELECT l = l FROM t", t=table)


def _stored() -> pa.Table:
    """A struct, a list and a map with Variants in them."""
    variants = pv.parse_json(['{"n": 1}', '{"n": "x"}', None, '{"n": 3}']).to_unshredded().storage
    kind = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])
    element = pa.field("element", kind, metadata={"ARROW:extension:name": "arrow.parquet.variant"})
    values = variants.cast(kind).to_pylist()
    kinds = {
        "id": pa.int64(),
        "s": pa.struct([pa.field("a", pa.int64(), nullable=False), element.with_name("k")]),
        "l": pa.list_(element),
        "m": pa.map_(pa.string(), element.with_name("value")),
    }
    columns = {
        "id": [1, 2, 3],
        "s": [{"a": 1, "k": values[0]}, None, {"a": 3, "k": None}],
        "l": [values[:3], None, []],
        "m": [[("x", values[3])], None, []],
    }
    # The schema apart: the type of an array does not keep what a map's field says.
    return pa.table([pa.array(columns[name], kind) for name, kind in kinds.items()], schema=pa.schema(kinds))


@pytest.mark.parametrize("kind", ["arrow", "parquet", "delta", "vortex"])
def test_stored_in_every_format(tmp_path: Path, kind: str) -> None:
    table: Any = _stored()
    if kind != "arrow":
        path = tmp_path / {"parquet": "t.parquet", "delta": "t", "vortex": "t.vortex"}[kind]
        pv.write(path, table, format=kind)
        table = path
    for query, rows in [
        ("SELECT * FROM t WHERE id = 1", [(1, {"a": 1, "k": '{"n":1}'}, FIRST_LIST, [("x", '{"n":3}')])]),
        ("SELECT s.a, s.k:n::int FROM t ORDER BY id", [(1, 1), (None, None), (3, None)]),
        ("SELECT t.s.k:n::string FROM t WHERE s.k:n::int = 1", ["1"]),
        ("SELECT e:n::string FROM t, unnest(l) q(e) WHERE e IS NOT NULL ORDER BY 1", ["1", "x"]),
        ("SELECT l[2]:n::string, m['x'] FROM t WHERE id = 1", [("x", '{"n":3}')]),
        ("SELECT count(*) FROM t WHERE s IS NULL", [1]),
    ]:  # fmt: skip
        answer = pv.sql(query, t=table).to_arrow()
        found = [tuple(row.values()) for row in answer.to_pylist()]
        assert [row if len(row) > 1 else row[0] for row in found] == rows, query


SPANS = [
    {"r": [{"s": [{"n": n, "k": f"k{n}", "m": n if n else "x"} for n in range(3)]}]},
    {"r": []},
    {"r": [{"s": []}]},
]


@pytest.mark.parametrize("shredded", [False, True])
def test_values_of_nested_explosions_have_their_types(tmp_path, shredded):
    (tmp_path / "a.ndjson").write_text("\n".join(map(json.dumps, SPANS)))
    if shredded:
        pv.ingest(tmp_path / "a.ndjson", tmp_path / "t", schema="r array<struct<s array<struct<n bigint, k string>>>>")
    table = pv.open(tmp_path / "t" if shredded else tmp_path / "a.ndjson")
    explosions = "variant_explode(v:r) a, variant_explode(a.value:s) b"
    found = table.sql(f"SELECT b.value:n, b.value:k, b.value:m, b.value FROM t, {explosions} ORDER BY n").to_arrow()
    assert [str(kind) for kind in found.schema.types] == ["int64", "string", "string", "string"]
    assert [found[name].to_pylist() for name in ("n", "k", "m")] == [[0, 1, 2], ["k0", "k1", "k2"], ['"x"', "1", "2"]]
    assert table.sql(f"SELECT sum(b.value:n + 1) AS n FROM t, {explosions}").to_pylist() == [{"n": 6}]
    lists = "unnest(v:r::array<variant>) AS a(x), unnest(x:s::array<variant>) AS b(y)"
    found = table.sql(f"SELECT y:n, y:k, y:m FROM t, {lists} ORDER BY n").to_arrow()
    assert found.to_pydict() == {"n": [0, 1, 2], "k": ["k0", "k1", "k2"], "m": ['"x"', "1", "2"]}


ROWS = ['{"n": 1, "k": "a", "o": {"x": [1, 2], "d": 1.5}}', '{"n": 5, "k": "b"}']
PLAIN = pa.table({"n": [1, 5, 7], "k": ["a", "q", "r"]})


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT v:n FROM t UNION SELECT n FROM u ORDER BY 1", [1, 5, 7]),
        ("SELECT v:n FROM t UNION ALL SELECT 'all'", ["1", "5", "all"]),
        ("SELECT 7 AS n UNION ALL BY NAME SELECT v:n AS n FROM t", [7, 1, 5]),
        ("SELECT v:k FROM t EXCEPT SELECT k FROM u", ["b"]),
        ("SELECT v:n FROM t WHERE v:k IN (SELECT k FROM u)", [1]),
        ("SELECT n FROM u WHERE n NOT IN (SELECT v:n FROM t)", [7]),
        ("SELECT v:n FROM t WHERE v:n = ANY([1, 3])", [1]),
        ("SELECT n FROM u WHERE n >= ALL (SELECT v:n FROM t)", [5, 7]),
        ("SELECT v:n FROM t WHERE (v:n, v:k) IN ((1, 'a'), (5, 'x'))", [1]),
        ("SELECT [v:n, 2] FROM t", [[1, 2], [5, 2]]),
        ("SELECT {'a': v:k, 'n': v:n} FROM t", [{"a": "a", "n": 1}, {"a": "b", "n": 5}]),
        ("SELECT x.a FROM (SELECT {'a': v:k} AS x FROM t)", ["a", "b"]),
        ("SELECT list(v:k ORDER BY v:n DESC)[1] FROM t", ["b"]),
        ("SELECT coalesce(v:o.d, v:n) * 2 FROM t", [3, 10]),
        ("SELECT CASE WHEN v:n > 1 THEN v:n::int ELSE v:o.d END FROM t", [1.5, 5]),
        ("SELECT count(*) FROM t GROUP BY v:k HAVING count(*) FILTER (v:k = 'a') = 1", [1]),
        ("SELECT v->>'k' FROM t WHERE v->>'n' = '1'", ["a"]),
        ("SELECT v->'o'->'x'->0 FROM t", [1, None]),
        ("SELECT v->'$.o.x' FROM t", ["[1,2]", None]),
    ],
)
def test_variants_of_one_type_are_that_type_next_to_typed_values(query: str, expected: list[object]) -> None:
    assert pv.sql(query, t=pv.parse_json(ROWS), u=PLAIN).to_arrow().column(0).to_pylist() == expected


def test_entries_of_wide_objects_do_not_each_carry_the_names_of_all_objects() -> None:
    objects = pv.VariantArray.from_pylist([{f"key{n}": [{"n": n}] for n in range(500)}] * 4)
    entries = FUNCTIONS["variant_explode"].work(objects.storage)
    assert len(entries.values) == 2000 and entries.nbytes < 2000 * 100
    query = "SELECT sum(e.value[0]:n::int) AS n, count(DISTINCT e.key) AS k FROM t, LATERAL variant_explode(v) e"
    assert pv.sql(query, t=objects).to_pylist() == [{"n": 4 * sum(range(500)), "k": 500}]
