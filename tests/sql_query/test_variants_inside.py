"""A Variant inside a list, map, struct or aggregate leaves SQL as the Variant itself does."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("duckdb", reason="DuckDB is not installed")

import parquet_variant as pv

Shape = Any  # None for a Variant, or ("list" | "map" | "struct" | "row", shapes inside)
VALUE = {"a": 42, "b": 'x"y', "c": [1, {"z": None}], "d": {"e": 1.5}, "f": None, "g": True, "odd key": ["\u00e9"]}
PATHS = {
    "v:a": "a",
    "v:b": "b",
    "v:c": "c",
    "v['d']": "d",
    "v:f": "f",
    "v:g": "g",
    "v:`odd key`": "odd key",
    "v:h": "h",
}

shapes = st.recursive(
    st.none(),
    lambda inner: st.one_of(
        st.tuples(st.just("list"), inner),
        st.tuples(st.just("map"), inner),
        st.tuples(st.just("struct"), inner, inner),
        st.tuples(st.just("row"), inner, inner),
    ),
    max_leaves=3,
)


def build(shape: Shape, data: st.DataObject) -> tuple[str, Any]:
    """SQL for a value of a shape, and what its JSON is."""
    if shape is None:
        path = data.draw(st.sampled_from(sorted(PATHS)))
        sql, value = path, VALUE.get(PATHS[path])
    elif shape[0] == "list":
        parts = [build(shape[1], data) for _ in range(data.draw(st.integers(1, 2)))]
        sql, value = f"[{', '.join(text for text, _ in parts)}]", [part for _, part in parts]
    elif shape[0] == "map":
        text, part = build(shape[1], data)
        key = data.draw(st.sampled_from(["k", "", "it''s", 'q"']))
        sql, value = f"MAP {{'{key}': {text}}}", {key.replace("''", "'"): part}
    elif shape[0] == "row":
        parts = [build(inner, data) for inner in shape[1:]]
        sql, value = f"row({', '.join(text for text, _ in parts)}, 7)", [*(part for _, part in parts), 7]
    else:
        parts = [build(inner, data) for inner in shape[1:]]
        names = data.draw(st.sampled_from([("x", "y"), ("metadata", "value"), ("a.b", "select"), ("n m", '"q"')]))
        quoted = ['"' + name.replace('"', '""') + '"' for name in names]
        fields = ", ".join(f"{name} := {text}" for name, (text, _) in zip(quoted, parts, strict=True))
        value = dict(zip(names, (part for _, part in parts), strict=True)) | {"n": 1}
        sql = f"struct_pack({fields}, n := 1)"
    return data.draw(st.sampled_from(WRAPPERS))(sql), value


WRAPPERS = [
    str,
    str,
    lambda sql: f"CASE WHEN true THEN {sql} END",
    lambda sql: f"coalesce(NULL, {sql})",
    lambda sql: f"list_transform([{sql}], w -> w)[1]",
    lambda sql: f"(SELECT {sql})",
    lambda sql: f"if(true, {sql}, NULL)",
    lambda sql: f"map_values(MAP {{'m': {sql}}})[1]",
    lambda sql: f"struct_extract({{'s': {sql}}}, 's')",
    lambda sql: f"list_append([{sql}], {sql})[2]",
    lambda sql: f"flatten([[{sql}]])[1]",
]
OUTSIDE = [
    "SELECT {0} AS x FROM t",
    "SELECT x FROM (SELECT {1} AS x FROM t)",
    "WITH c AS (SELECT {1} AS x FROM t) SELECT x FROM c",
    "SELECT x FROM (SELECT {1} AS x FROM t UNION ALL SELECT {1} FROM t) LIMIT 1",
    "SELECT x FROM (SELECT {1} AS x FROM t EXCEPT ALL SELECT {1} FROM t WHERE false)",
]


@given(shape=shapes, data=st.data())
def test_json_has_the_variants_in_it(shape: Shape, data: st.DataObject) -> None:
    sql, value = build(shape, data)
    events = pv.parse_json([json.dumps(VALUE)])
    asked = data.draw(st.sampled_from(["to_json({0})::varchar", "({0})::json::varchar", "json_array({0})::varchar"]))
    outside = data.draw(st.sampled_from(OUTSIDE[:4]))
    inner = outside.replace("{0}", asked.format(sql)).replace("{1}", sql)
    query = inner if "{0}" in outside else f"SELECT {asked.format('x')} FROM ({inner})"
    found = pv.sql(query, t=events).to_arrow().column(0).to_pylist()[0]
    expected = [value] if "json_array" in asked else value
    missing = expected is None
    assert (found is None or json.loads(found) is None) if missing else json.loads(found) == expected


@given(shape=shapes, data=st.data())
def test_results_hold_json_for_each_variant(shape: Shape, data: st.DataObject) -> None:
    sql, value = build(shape, data)
    events = pv.parse_json([json.dumps(VALUE)])
    found = pv.sql(f"SELECT {sql} AS x FROM t", t=events).to_arrow()["x"].to_pylist()[0]
    assert _without_json(found, shape) == value


def _without_json(found: Any, shape: Shape) -> Any:
    if found is None:
        return None
    if shape is None:  # a value of the only type of its path, or JSON
        return json.loads(found) if isinstance(found, str) and found != VALUE["b"] else found
    if shape[0] == "list":
        return [_without_json(part, shape[1]) for part in found]
    if shape[0] == "map":
        return {key: _without_json(part, shape[1]) for key, part in found}
    parts = [_without_json(part, inner) for part, inner in zip(list(found.values())[:2], shape[1:], strict=True)]
    rest = list(found.items())[2:]
    return [*parts, 7] if shape[0] == "row" else dict(zip(list(found)[:2], parts, strict=True)) | dict(rest)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("v:b::varchar", 'x"y'),
        ("[v:a, v:b]::varchar", "[42, 'x\"y']"),
        ("format('{}', v:a)", "42"),
        ("format('{} {}', v:b, [v:a])", 'x"y [42]'),
        ("printf('%s', v:g)", "true"),
        ("concat(v:a, '-', v:b)", '42-x"y'),
        ("v:a || '!'", "42!"),
        ("concat_ws(',', v:a, v:f, v:g)", "42,true"),
        ("upper(v:b)", 'X"Y'),
        ("substring(v:b, 1, 1)", "x"),
        ("trim(v:b)", 'x"y'),
        ("replace(v:b, 'x', 'z')", 'z"y'),
        ("array_to_string([v:a, v:g], ',')", "42,true"),
        ("{'q': v:a}::varchar", "{'q': 42}"),
        ("({'q': v:a})::struct(q varchar).q", "42"),
        ("(([v:a, v:g])::varchar[])[2]", "true"),
        ("typeof(v:a)", "VARIANT"),
        ("json_object('k', v:c)::varchar", '{"k":[1,{"z":null}]}'),
        ("to_json(struct_insert({'q': v:a}, r := v:b))::varchar", '{"q":42,"r":"x\\"y"}'),
        ("to_json(map_entries(MAP {'q': v:a}))::varchar", '[{"key":"q","value":42}]'),
        ("to_json([v:a] || [v:g])::varchar", "[42,true]"),
        ("to_json(map_from_entries([('q', v:a)]))::varchar", '{"q":42}'),
        ("to_json((v:a, 1))::varchar", "[42,1]"),
        ("to_json(list_prepend(v:a, [v:g]))::varchar", "[42,true]"),
        ("to_json(v:c::array<variant>)::varchar", '[1,{"z":null}]'),
        ("to_json(v:d::map<string, variant>)::varchar", '{"e":1.5}'),
        ("to_json(v::struct<a: variant, g: boolean>)::varchar", '{"a":42,"g":true}'),
    ],
)
def test_functions_take_a_variant_as_its_cast(expression: str, text: str) -> None:
    events = pv.parse_json([json.dumps(VALUE)])
    assert pv.sql(f"SELECT {expression} AS x FROM t", t=events).to_pylist() == [{"x": text}]


def test_aggregates_and_windows() -> None:
    events = pv.parse_json(['{"k": 1, "x": [1]}', '{"k": 1, "x": "s"}', '{"k": 2}'])
    for query, expected in (
        ("SELECT to_json(list(v:x))::varchar AS j FROM t", ['[[1],"s",null]']),
        ("SELECT to_json(list(v:x ORDER BY v:k::int DESC, v:x::string))::varchar AS j FROM t", ['[null,[1],"s"]']),
        ("SELECT list(v:x)::json::varchar AS j FROM t GROUP BY v:k::int ORDER BY v:k::int", ['[[1],"s"]', "[null]"]),
        ("SELECT to_json(list({'q': v:x}) FILTER (v:k::int = 1))::varchar AS j FROM t".replace("(v:k", "(WHERE v:k"),
         ['[{"q":[1]},{"q":"s"}]']),
        ("SELECT json_group_array(v:x)::varchar AS j FROM t", ['[[1],"s",null]']),
        ("SELECT DISTINCT to_json(list(v:x) OVER (PARTITION BY v:k::int))::varchar AS j FROM t ORDER BY j",
         ['[[1],"s"]', "[null]"]),
        ("SELECT string_agg(v:x, '|') AS j FROM t", ["[1]|s"]),
        ("SELECT to_json(variant_group_array(v:x))::varchar AS j FROM t", ['[[1],"s",null]']),
    ):  # fmt: skip
        assert pv.sql(query, t=events).to_arrow()["j"].to_pylist() == expected
