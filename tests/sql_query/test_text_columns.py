"""``parse_json(column)`` over JSON text answers as a Variant column does, and each text is parsed once, by the scan."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.cli.app import main

KEYS = ("a", "b", "c d", "l", "o")
QUERIES = [
    "SELECT v FROM t",
    "SELECT id, v:a, v:o.b::string AS s, v:l[0].a::int AS n FROM t",
    "SELECT *, v:a::double AS x FROM t",
    "SELECT t.* EXCLUDE (s), v:a AS x FROM t WHERE v:a::int > 5 AND id > 10",
    "SELECT v:a::string AS k, count(*), sum(v:b::int) FROM t GROUP BY v:a::string",
    "SELECT v:a AS k, count(*) FROM t GROUP BY ALL",
    "SELECT v:a AS k, max(v:b) FROM t GROUP BY v:a HAVING count(*) > 1 ORDER BY k",
    "SELECT DISTINCT v:b FROM t",
    "SELECT variant_typeof(v) AS k, variant_keys(v) AS n, v:l[*].a AS l FROM t",
    "SELECT cardinality(v:l), object_keys(v:o), schema_of_variant(v:o) FROM t",
    "SELECT count(v), count(DISTINCT v:a), min(v:a), max(v:a) FROM t",
    "SELECT min(v:b::int), max(v:b::int) FROM t",
    "SELECT v:a AS x, s FROM t WHERE s IS NOT NULL AND id IN (1, 2, 3, 50)",
    "SELECT t.id, e.key, e.value FROM t, LATERAL variant_explode(v:o) e",
    "SELECT x.id, y.id FROM t x JOIN t y ON x.v:a = y.v:a AND x.id < y.id",
    "SELECT id FROM t WHERE v:a IN (1, 2, 'x') OR v:b IS NULL ORDER BY v:a, id",
    "SELECT id, row_number() OVER (PARTITION BY v:a ORDER BY id) AS n FROM t",
    "SELECT id FROM t WHERE v:a = (SELECT max(v:a) FROM t)",
    "WITH c AS (SELECT id, v AS w FROM t) SELECT id, w:a::int, w:o.b FROM c",
    "SELECT v:a FROM t UNION SELECT v:b FROM t",
    "SELECT try_variant_set(v, '$.z', id) AS w FROM t",
    'SELECT v:"c d"::string AS x FROM t',
    "SELECT CASE WHEN id > 5 THEN v:a ELSE v:b END AS x, coalesce(v:a, v:b) AS y FROM t",
    "SELECT s, v:a::int AS a, count(*) AS n FROM t GROUP BY s, v:a::int",
    "SELECT s, max(id), v:a AS a FROM t GROUP BY s, v:a",
]


def _value(random: random.Random, depth: int = 0) -> Any:
    if depth < 3 and random.random() < 0.4:
        if random.random() < 0.5:
            return [_value(random, depth + 1) for _ in range(random.randrange(4))]
        return {key: _value(random, depth + 1) for key in KEYS if random.random() < 0.6}
    return random.choice([1, 2, 7, -1.5, "x", "1", "", None, True, 10**20, "2024-01-31"])


def _rows(random: random.Random, *, alike: bool) -> list[str | None]:
    """Return texts with NULLs: objects with few types if they are `alike`, otherwise any values."""
    if alike:
        rows: list[Any] = [
            {"a": random.randrange(9), "b": random.choice([1, 5]), "o": {"b": random.choice("xyz")}, "l": [{"a": 3}]}
            for _ in range(60)
        ]
    else:
        rows = [{"a": _value(random), "b": random.randrange(3), "o": _value(random)} for _ in range(50)]
        rows += [_value(random) for _ in range(10)]
    return [None if random.random() < 0.1 else json.dumps(row, indent=random.choice([None, 1])) for row in rows]


def _of_text(query: str, function: str) -> str:
    """Return a query with a call over the column ``s`` in place of each Variant."""
    return re.sub(r"\b(\w\.)?v\b", lambda match: f"{function}({match[1] or ''}s)", query)


def _answer(query: str, source: Any) -> tuple[list[str], list[str]]:
    result = pv.sql(query, t=source)
    return [str(kind) for kind in result.schema.types], sorted(repr(list(row.values())) for row in result.to_pylist())


@pytest.mark.parametrize(
    ("format", "alike"),
    [
        *(("parquet", True), ("parquet", False), ("delta", False), ("iceberg", True), ("vortex", False)),
        *(("string", False), ("string", True), ("large_string", True), ("binary", False), ("view", True)),
    ],
)
def test_paths_into_text_are_those_into_variants(tmp_path: Path, format: Any, alike: bool) -> None:
    generator = random.Random(f"{format} {alike}")
    texts = _rows(generator, alike=alike)
    kinds = {"large_string": pa.large_string(), "binary": pa.binary(), "view": pa.string_view()}
    variants = pv.parse_json(texts)
    strings = pa.array(texts).cast(kinds.get(format, pa.string()))
    source: Any = pa.table({"id": range(len(texts)), "s": strings, "v": pa.array(variants)})
    if format in ("parquet", "delta", "iceberg", "vortex"):
        target = tmp_path / f"t.{format}"
        pv.write(target, source, format=format)
        source = target
    for query in QUERIES:
        of_text = _of_text(query, generator.choice(["parse_json", "try_parse_json"]))
        assert _answer(of_text, source) == _answer(query, source), of_text


def test_distinct_and_set_operations_show_variant_null_as_null_in_any_order() -> None:
    texts = ['{"a": null}', "{}", '{"a": 1}', '{"a": "x"}']
    for rows in (texts, texts[::-1]):
        table = pv.parse_json(rows)
        for query in ("SELECT DISTINCT v:a FROM t", "SELECT v:a FROM t UNION SELECT v:a FROM t"):
            assert sorted(map(str, pv.sql(query, t=table).to_arrow()["a"].to_pylist())) == ['"x"', "1", "None"]


TEXTS = ['{"a": 1}', "bad", '{"a":', None, '{"a": 5}']
ROWS = pa.table({"id": range(5), "s": TEXTS})


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("SELECT parse_json(s):a::int FROM t WHERE id IN (0, 4)", [1, 5]),
        ("SELECT parse_json(s):a FROM t WHERE json_valid(s)", [1, 5]),
        ("SELECT CASE WHEN json_valid(s) THEN parse_json(s):a::int END FROM t", [1, None, None, None, 5]),
        ("SELECT parse_json(x.s):a::int FROM t x JOIN t y ON x.id = y.id AND y.id = 4", [5]),
        ("SELECT try_parse_json(s):a::int FROM t", [1, None, None, None, 5]),
        ("SELECT id FROM t WHERE try_parse_json(s) IS NULL", [1, 2, 3]),
        ("SELECT max(try_parse_json(s):a) FROM t", [5]),
    ],
)
def test_text_that_is_not_json_is_an_error_only_where_its_value_is_needed(query: str, values: list[Any]) -> None:
    assert [value for row in pv.sql(query, t=ROWS).to_pylist() for value in row.values()] == values


@pytest.mark.parametrize(
    "query",
    [
        "SELECT parse_json(s):a::int FROM t",
        "SELECT parse_json(s) FROM t WHERE id < 2",
        "SELECT count(*) FROM t WHERE parse_json(s):a = 1",
        "SELECT sum(parse_json(s):a) FROM t",
        "SELECT id FROM t ORDER BY parse_json(s):a",
    ],
)
def test_text_that_is_not_json_is_an_error(query: str) -> None:
    with pytest.raises(pv.JsonError, match=r"unexpected 'bad'.*, in '") as caught:
        pv.sql(query, t=ROWS)
    assert caught.value.row is None


def test_the_scan_parses_each_text_once_for_all_paths(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    query = "SELECT sum(parse_json(s):a::int) FROM t WHERE parse_json(s):b::string = 'x' AND id > 1"
    assert main(["query", str(tmp_path / "a.parquet"), query, "--explain"]) == 0
    shown = capsys.readouterr().out
    assert "columns     id, parse_json(s):a::int, parse_json(s):b::string\n" in shown
    assert "filters     id > 1\n" in shown
    filtered = "SELECT s, parse_json(s):a::int AS a FROM t WHERE s LIKE '%5}'"
    assert pv.sql(filtered, t=tmp_path / "a.parquet").to_pylist() == [{"s": '{"a": 5}', "a": 5}]


@pytest.mark.parametrize("function", ["parse_json", "try_parse_json"])
def test_a_misspelled_path_into_text_is_named(function: str, tmp_path: Path) -> None:
    rows = pa.table({"s": ['{"amount": 1}', '{"amount": 2}']})
    pq.write_table(rows, tmp_path / "a.parquet")
    for source in (rows, tmp_path / "a.parquet"):
        result = pv.sql(f"SELECT max({function}(s):amont) FROM t", t=source)
        assert result.to_pylist()[0].popitem()[1] is None
        assert [f"did you mean {function}(s):amount?" in warning for warning in result.warnings] == [True]
