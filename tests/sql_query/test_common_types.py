"""Uncast paths have the type of all their values, whatever the rows are read from."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.sql_query.binding import bind_table
from parquet_variant.types.path import VariantPath

_ROWS = [
    {"kind": "a", "n": 1, "x": 1, "d": 1.5, "deep": {"ok": True}, "none": None},
    {"kind": "b", "n": 2**40, "x": "1", "d": 12.25, "deep": {"ok": False}, "none": None},
    {"kind": "a", "x": None, "d": 3},
]
_QUERY = "SELECT v:kind, sum(v:n) AS n, max(v:d) AS d, min(v:x) AS x FROM t GROUP BY v:kind ORDER BY v:kind"
_PLAIN = [
    {"kind": "a", "n": 1, "d": Decimal("3.00"), "x": "1"},
    {"kind": "b", "n": 2**40, "d": Decimal("12.25"), "x": '"1"'},
]


@pytest.mark.parametrize("source", ["json", "array", "chunks", "files", "delta", "iceberg"])
def test_every_source_proves_the_type(source: str, tmp_path: Path) -> None:
    lines = [json.dumps(row) for row in _ROWS]
    file = tmp_path / "rows.ndjson"
    file.write_text("\n".join(lines))
    data: object = file
    if source == "array":
        data = pv.shred_variant(pv.parse_json(lines), "kind string, n bigint")
    elif source == "chunks":
        data = pa.Table.from_batches([pa.record_batch({"v": pv.parse_json([line])}) for line in lines])
    elif source != "json":
        data = tmp_path / "out"
        pv.ingest(file, data, **({} if source == "files" else {"format": source}))
    result = pv.sql(_QUERY, t=data)
    assert result.to_pylist() == _PLAIN
    assert result.schema.field("kind").type == pa.string()
    assert pv.sql("SELECT v:deep.ok, v:deep, v:none FROM t LIMIT 1", t=data).to_pylist() == [
        {"ok": True, "deep": '{"ok":true}', "none": "null"}
    ]


@pytest.mark.parametrize("source", ["json", "array", "files"])
def test_json_null_is_null_in_a_typed_result(source: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.ndjson"
    file.write_text('{"n": 2, "k": "x"}\n{"n": null, "k": null}\n{"k": "y"}\n')
    data: object = {"json": file, "array": pv.read_json(file), "files": tmp_path / "out"}[source]
    if source == "files":
        pv.ingest(file, data)
    query = "SELECT v:n, v:k, v:n + 1 AS m FROM t ORDER BY v:n"
    assert [list(row.values()) for row in pv.sql(query, t=data).to_pylist()] == [
        [2, "x", 3], [None, None, None], [None, "y", None]
    ]  # fmt: skip
    query = (
        "SELECT count(v:n) AS c, count(*) FILTER (v:n IS NULL) AS i, count(*) FILTER (is_variant_null(v:n)) AS j FROM t"
    )
    assert pv.sql(query, t=data).to_pylist() == [{"c": 2, "i": 1, "j": 1}]
    inner = "SELECT variant_type(v:k) AS k, variant_exists(v, 'n') AS e FROM t ORDER BY v:k NULLS LAST"
    assert [row["e"] for row in pv.sql(inner, t=data).to_pylist()][:1] == [True]
    query = "SELECT count(*) AS c FROM (SELECT v:n AS n FROM t) WHERE n IS NOT NULL"
    assert pv.sql(query, t=data).to_pylist() == [{"c": 2}]


def test_types_are_known_behind_subqueries(tmp_path: Path) -> None:
    file = tmp_path / "rows.ndjson"
    file.write_text("".join(json.dumps(row) + "\n" for row in _ROWS))
    for query, rows in {
        "WITH a AS (SELECT v FROM t) SELECT v:kind, sum(v:n) FROM a GROUP BY 1 ORDER BY v:kind": [
            ("a", 1),
            ("b", 2**40),
        ],
        "SELECT o:ok FROM (SELECT v:deep AS o FROM t) ORDER BY 1": [(False,), (True,), (None,)],
        "SELECT k FROM (SELECT v:kind AS k FROM t) GROUP BY k ORDER BY k DESC": [("b",), ("a",)],
        "WITH a AS (SELECT v:kind AS k FROM t) SELECT k, count(*) FROM a GROUP BY 1 HAVING k = 'a' ORDER BY k": [
            ("a", 2)
        ],
        "SELECT v:kind, (SELECT max(v:n) FROM t) FROM t ORDER BY 1 LIMIT 1": [("a", 2**40)],
    }.items():
        result = pv.sql(query, t=file)
        assert [tuple(row.values()) for row in result.to_pylist()] == rows, query


def test_elements_of_arrays_are_typed(tmp_path: Path) -> None:
    rows = [{"items": [{"n": 1, "x": 1}, {"n": 2, "x": "a"}], "tags": ["a", "b"]}, {"items": [], "tags": None}, {}]
    (tmp_path / "rows.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pv.ingest(tmp_path / "rows.ndjson", tmp_path / "files")
    for source in (tmp_path / "rows.ndjson", tmp_path / "files", pv.read_json(tmp_path / "rows.ndjson")):
        query = "SELECT e.value:n, e.value:x FROM t, LATERAL variant_explode(v:items) e ORDER BY e.value:n"
        assert pv.sql(query, t=source).to_pylist() == [{"n": 1, "x": "1"}, {"n": 2, "x": '"a"'}]
        query = "SELECT upper(value) AS tag, count(*) AS c FROM t, flatten(v:tags) GROUP BY value ORDER BY value"
        assert pv.sql(query, t=source).to_pylist() == [{"tag": "A", "c": 1}, {"tag": "B", "c": 1}]


@pytest.mark.parametrize("source", ["array", "files", "delta"])
def test_parsed_text_has_the_types_of_its_values(source: str, tmp_path: Path) -> None:
    texts = ['{"a": 1, "l": [{"n": 2}]}', '{"a": 2, "l": [{"n": 3}], "x": "b"}', "{oops", None]
    rows = pv.from_python([{"p": text} for text in texts])
    data: object = pa.table({"s": pa.array(texts, pa.string()), "v": rows})
    if source != "array":
        pv.write(tmp_path / "out", data, format="parquet" if source == "files" else source)
        data = tmp_path / "out"
    for query, expected in {
        "SELECT sum(try_parse_json(s):a), avg(try_parse_json(v:p):a) FROM t": [(3, 1.5)],
        "SELECT try_parse_json(s):a + 1 FROM t WHERE try_parse_json(s):a > 1": [(3,)],
        "SELECT sum(try_parse_json(v:p::string):a) FROM t": [(3,)],
        "SELECT sum(try_parse_json(x.s):l[0].n) FROM (SELECT s FROM t) x": [(5,)],
        "WITH x AS (SELECT try_parse_json(s) AS p FROM t) SELECT sum(p:a), max(p:x) FROM x": [(3, "b")],
        "SELECT sum(e.value:n) FROM t, LATERAL variant_explode(try_parse_json(s):l) e": [(5,)],
    }.items():
        assert [tuple(row.values()) for row in pv.sql(query, t=data).to_pylist()] == expected, query


def test_a_renamed_column_is_not_read_by_its_old_name(tmp_path: Path) -> None:
    rows = {"v": pv.parse_json(['{"a": 1}']), "w": pv.parse_json(['{"a": "x"}'])}
    pv.write(tmp_path / "t", rows, format="iceberg")
    pv.open(tmp_path / "t").rename_column("v", "old")
    pv.open(tmp_path / "t").rename_column("w", "v")
    row = pv.sql("SELECT v:a FROM t", t=tmp_path / "t").to_pylist()[0]
    assert row["a"].strip('"') == "x"


def test_only_the_typed_column_is_read(tmp_path: Path) -> None:
    pv.write(tmp_path / "e.parquet", pv.parse_json(['{"kind": "a"}'] * 3), schema="kind string")
    from parquet_variant.sql_query.sql import columns_text, plan_sql

    planned = plan_sql(
        "SELECT v:kind, count(*) FROM t WHERE v:kind > 'A' GROUP BY v:kind", {"t": tmp_path / "e.parquet"}
    )
    assert [columns_text(use) for use in planned.rewritten.uses] == [["v:kind::string"]]


def test_paths_of_a_union_have_the_type_that_both_sides_have(tmp_path: Path) -> None:
    rows = [json.dumps({"n": n, "k": "xy"[n], "x": n, "e": [{"m": n}], "text": '{"p": 1}'}) for n in range(2)]
    (tmp_path / "rows.ndjson").write_text("\n".join(rows))
    mixed = pa.table({"v": pv.parse_json([*rows, '{"x": "1"}'])})
    sources = {"t": tmp_path / "rows.ndjson", "m": mixed}
    both = "(SELECT * FROM t UNION ALL FROM t UNION ALL BY NAME SELECT v FROM m)"
    for query, expected in {
        f"SELECT v:k, sum(v:n) AS n FROM {both} GROUP BY ALL ORDER BY 1": [("x", 0), ("y", 3), (None, None)],
        f"SELECT sum(i.value:m) FROM {both} q, variant_explode(q.v:e) i": [(3,)],
        f"SELECT sum(parse_json(v:text):p) FROM {both} WHERE v:n = 1": [(3,)],
        "SELECT sum(w:m) FROM (SELECT v:e[0] AS w FROM t UNION SELECT v:e[0] FROM m)": [(1,)],
        f"SELECT v:x FROM {both} WHERE v:n IS NULL": [('"1"',)],
    }.items():
        assert [tuple(row.values()) for row in pv.sql(query, **sources).to_pylist()] == expected, query
    with pytest.raises(pv.VariantError, match="v:x is a Variant"):
        pv.sql(f"SELECT sum(v:x) FROM {both}", **sources)


def test_the_paths_of_an_unshredded_column_are_inspected_in_one_scan(tmp_path: Path) -> None:
    values = {"v": pv.parse_json(['{"a": 1, "b": "x"}', '{"a": 2, "c": true}'])}
    scans = {}
    for name, options in (("plain", {}), ("shredded", {"schema": "a int"})):
        pv.write(tmp_path / f"{name}.parquet", values, **options)
        bound, made = bind_table(tmp_path / f"{name}.parquet", "t"), []

        def counted(*arguments: Any, bound: Any = bound, made: list[Any] = made) -> Any:
            made.append(arguments)
            return bound.scan_stored(*arguments)

        table = replace(bound, scan_stored=counted)
        types = [table.common_type("v", VariantPath((key,))) for key in "abcd"]
        assert types == [pa.int64() if name == "plain" else pa.int32(), pa.string(), pa.bool_(), None]
        scans[name] = len(made)
    assert scans == {"plain": 1, "shredded": 3}  # a scan of a shredded column reads only the path
