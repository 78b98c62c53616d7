"""The analyst's hour: questions about JSON, typed at a shell."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

Sh = Callable[[str], Any]

pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("duckdb", reason="DuckDB is not installed")


@pytest.fixture(params=["events.ndjson", "events", "table"])
def source(request: pytest.FixtureRequest, sh: Sh) -> str:
    """The events as JSON, as Parquet files, and as a Delta table."""
    if request.param == "events":
        assert sh("variant ingest events.ndjson events").code == 0
    if request.param == "table":
        assert sh("variant ingest events.ndjson table --format delta").code == 0
    return str(request.param)


def test_how_many_of_each_kind(sh: Sh, source: str) -> None:
    done = sh(f'variant query {source} "SELECT v:kind, count(*) AS n FROM t GROUP BY v:kind ORDER BY v:kind"')
    assert done.err == ""
    assert [line.replace('"', "") for line in done.lines[2:]] == ["buy 10", "click 10", "view 10"]


def test_the_largest_and_the_distinct_values(sh: Sh, source: str) -> None:
    done = sh(
        f'variant query {source} "SELECT max(v:mag) m, count(DISTINCT v:mixed) d FROM t WHERE v:user.id > 3" --json'
    )
    row = json.loads(done.out)
    assert (float(row["m"]), row["d"]) == (14.5, 26)


def test_columns_without_paths(sh: Sh, source: str) -> None:
    done = sh(f'variant query {source} "SELECT kind, max(mag) AS m FROM typed(t) GROUP BY kind ORDER BY m"')
    assert [line.split()[0] for line in done.lines[2:]] == ["click", "view", "buy"]
    assert [line.split()[0] for line in sh(f"variant schema {source}").lines[2:]] == [
        "items",
        "kind",
        "mag",
        "mixed",
        "id",
        "name",
    ]


def test_a_misspelled_path_is_corrected(sh: Sh, source: str) -> None:
    done = sh(f'variant query {source} "SELECT v:usr.id FROM t"')
    assert done.code == 0
    assert "did you mean v:user.id?" in done.err
    done = sh(f"variant query {source} -s '$.user.nmae:string'")
    assert "did you mean $.user.name?" in done.err
    assert "did you mean" not in sh(f"variant query {source} -s '$.user.name:string'").err


@pytest.mark.parametrize("ending", ["csv", "parquet", "ndjson", "arrow"])
def test_a_result_as_a_file(sh: Sh, tmp_path: Path, source: str, ending: str) -> None:
    query = (
        "SELECT v:user.id::int AS id, v:kind::string || chr(10) AS kind, v:items AS items FROM t ORDER BY id LIMIT 2"
    )
    for line in (
        f'variant query {source} "{query}" -o out.{ending}',
        f"variant query {source} \"COPY ({query}) TO 'out.{ending}'\"",
    ):
        done = sh(line)
        assert (done.code, done.err) == (0, "")
        assert _rows(tmp_path / f"out.{ending}") == [(0, "click\n", [{"n": 0}]), (1, "view\n", [{"n": 1}])]


def _rows(path: Path) -> list[tuple[int, str, object]]:
    if path.suffix == ".csv":
        table = list(csv.reader(io.StringIO(path.read_text(), newline="")))[1:]
        return [(int(row[0]), row[1], json.loads(row[2])) for row in table]
    if path.suffix == ".ndjson":
        return [tuple(json.loads(line).values()) for line in path.read_text().splitlines()]
    import parquet_variant as pv

    table = pq.read_table(path) if path.suffix == ".parquet" else pa.ipc.open_file(path).read_all()
    items = pv.to_json(pv.VariantArray.from_arrow(table, "items")).to_pylist()
    return list(zip(table["id"].to_pylist(), table["kind"].to_pylist(), map(json.loads, items), strict=True))


def test_a_failed_query_leaves_the_old_file(sh: Sh, tmp_path: Path) -> None:
    (tmp_path / "out.csv").write_text("old")
    assert sh('variant query events.ndjson "SELECT v:kind::int FROM t" --strict -o out.csv').code == 1
    assert (tmp_path / "out.csv").read_text() == "old"
    assert sh('variant query events.ndjson "SELECT 1" -o out.xyz').code == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["events.ndjson", "out.csv"]


def test_values_with_line_breaks_stay_in_their_row(sh: Sh) -> None:
    done = sh("variant query events.ndjson \"SELECT 'a' || chr(10) || 'b' AS s, 1.5::double AS n, 10 AS m\"")
    assert done.out.splitlines() == ["s       n   m", "----  ---  --", "a\\nb  1.5  10"]


def test_decimals_have_digits(sh: Sh) -> None:
    done = sh('variant query events.ndjson "SELECT 0::decimal(18, 16) AS a, 1.5::decimal(38, 9) AS b"')
    assert done.lines[2:] == ["0.0000000000000000 1.500000000"]


def test_the_elements_of_arrays(sh: Sh, source: str) -> None:
    done = sh(f'variant query {source} "SELECT sum(e.value:n::int) AS s FROM t, LATERAL variant_explode(v:items) e"')
    assert done.lines[2:] == ["435"]
    done = sh(f'variant query {source} "SELECT array_size(v:items) AS n, variant_type(v:user) AS k FROM t LIMIT 1"')
    assert done.lines[2:] == ["1 object"]


def test_json_operators_are_paths(sh: Sh) -> None:
    for text in ("v->>'kind'", "v->>'$.kind'", "v->'kind'", "v:kind::string"):
        assert sh(f'variant query events.ndjson "SELECT {text} AS k FROM t"').lines[2:5] == ["click", "view", "buy"]
    query = "SELECT v->'user'->>'name' AS n FROM t WHERE v->'user'->'id' = 1 LIMIT 1"
    assert sh(f'variant query events.ndjson "{query}"').lines[2:] == ["u1"]


def test_a_change_with_a_misspelled_path_fails(sh: Sh) -> None:
    assert sh("variant ingest events.ndjson table --format delta").code == 0
    for command in ("delete table", "update table --set v:kind=\"'x'\""):
        done = sh(f"variant {command} --where \"v:usr.name::string = 'u1'\"")
        assert done.code == 1
        assert "matches no row" in done.err
        assert "did you mean v:user.name?" in done.err
        assert sh(f"variant {command} --where \"v:user.name::string = 'nobody'\"").code == 0


def test_sets_of_values_without_casts(sh: Sh, source: str) -> None:
    both = "SELECT v:kind FROM t WHERE v:mag > 10 UNION SELECT v:kind FROM t ORDER BY kind DESC LIMIT 2"
    assert [line.strip('"') for line in sh(f'variant query {source} "{both}"').lines[2:]] == ["view", "click"]
    left = "SELECT v:mixed, v:kind FROM t EXCEPT SELECT v:mixed, v:kind FROM t WHERE v:user.id > 2 ORDER BY 1"
    assert len(sh(f'variant query {source} "{left}"').lines) == 5
    common = sh(f'variant query {source} "SELECT v:mixed FROM t INTERSECT SELECT v:user.id FROM t"')
    assert len(common.lines[2:]) == 15


def test_the_fields_of_an_object(sh: Sh, source: str) -> None:
    done = sh(f'variant query {source} "SELECT v:user.*, v:kind FROM t ORDER BY id LIMIT 1" --json')
    assert {name: str(value) for name, value in json.loads(done.out).items()} == {
        "id": "0",
        "name": "u0",
        "kind": "click",
    }
    assert sh(f'variant query {source} "SELECT v.* FROM t LIMIT 1"').lines[0].split() == [
        "items",
        "kind",
        "mag",
        "mixed",
        "user",
    ]
    assert "list the fields" in sh(f'variant query {source} "SELECT v:kind.* FROM t"').err


def test_functions_as_users_of_duckdb_know_them(sh: Sh) -> None:
    rows = pa.array(['{"a":[{"b":"hello","c":null}]}', '{"a":[{"b":"x"}],"b":42,"c":{"d":"world"}}'])
    import parquet_variant as pv

    for query, expected in {
        "variant_keys(v, 'c')": [None, ["d"]],
        "variant_keys(v, ['', 'c'])": [[["a"], None], [["a", "b", "c"], ["d"]]],
        "variant_keys(v:a)": [[], []],
        "variant_array_length(v, ['a', 'c'])": [[1, None], [1, 0]],
        "array_size(v:c)": [None, None],
        "variant_exists(v, 'a[0].c')": [True, False],
        "variant_extract_string(v, 'c')": [None, '{"d":"world"}'],
        "variant_extract(v:a, 1)": ['{"b":"hello","c":null}', '{"b":"x"}'],  # as in DuckDB, from 1
        "get(v:a, 0)": ['{"b":"hello","c":null}', '{"b":"x"}'],  # as in Snowflake, from 0
        "variant_extract(v:a, 2)": [None, None],
        "variant_contains(v, 'hello')": [True, False],
        "variant_contains(v, parse_json('{}'))": [True, True],
        "nullif(v:b, 42)": [None, None],
        "TRY_CAST(v:c.d AS BIGINT)": [None, None],
        'v:c = parse_json(\'{"d": "world"}\')': [None, True],
    }.items():
        result = pv.sql(f"SELECT {query} AS x FROM t", t=pv.parse_json(rows))
        assert result.to_arrow()["x"].to_pylist() == expected, query
    grouped = pv.sql("SELECT variant_group_array(x) AS a FROM (VALUES (1), (NULL), (2)) t(x)")
    assert grouped.to_pylist() == [{"a": "[1,null,2]"}]


def test_keys_with_escapes(sh: Sh, tmp_path: Path) -> None:
    (tmp_path / "keys.ndjson").write_text('{"tab\\tt": 5, "a\\\\b": 6, "o\'k": 7}\n')
    query = "SELECT v:['tab\\u0009t'] a, v['tab\\tt'] b, v:['a\\\\\\\\b'] c, v:['o''k'] d FROM t"
    assert sh(f'variant query keys.ndjson "{query}"').lines[2:] == ["5 5 6 7"]


def test_a_misspelled_path_in_python(sh: Sh) -> None:
    import parquet_variant as pv

    assert sh("variant ingest events.ndjson events").code == 0
    events = pv.open("events").read()
    assert events["$.user.name"][:2].to_pylist() == ["u0", "u1"]
    for read in (
        lambda: events["$.user.nmae"],
        lambda: events["user"]["nmae"],
        lambda: pv.open("events").scan({"name": "$.user.nmae:string"}).to_arrow(),
        lambda: pv.open("events").scan({"kind": "$.kind:string"}, where="$.user.nmae:string = 'u1'").to_arrow(),
    ):
        with pytest.warns(UserWarning, match=r"did you mean \$\.(user\.)?name\?"):
            read()
    assert pv.sql("SELECT v:usr.name FROM e", e=events).warnings == (
        "no row has the path v:usr.name: did you mean v:user.name?",
    )


def test_new_rows_are_merged_into_a_table(sh: Sh, tmp_path: Path) -> None:
    assert sh("variant ingest events.ndjson table --format delta").code == 0
    (tmp_path / "new.ndjson").write_text('{"user": {"id": 3}, "kind": "return"}\n{"user": {"id": 99}}\n')
    merge = "variant merge table new.ndjson --matched update --insert --on"
    done = sh(f"{merge} 'target.v:user.idd::int = source.v:user.id::int'")
    assert (done.code, "did you mean v:user.id?" in done.err) == (1, True)
    done = sh(f"{merge} 'target.v:user.id::int = source.v:user.id::int'")
    assert done.lines[0].startswith("1 row updated, 1 row inserted")
    assert "of old files remain in storage until variant vacuum" in done.lines[-1]
    assert sh("variant query table \"SELECT count(*) FROM t WHERE v:kind = 'return'\"").lines[2:] == ["1"]
    assert sh("variant infer new.ndjson --against table").code == 0


def test_messages_use_the_words_of_the_command_line(sh: Sh, tmp_path: Path) -> None:
    strict = sh('variant query events.ndjson "SELECT v:kind::int FROM t" --strict')
    assert (strict.code, "omit --strict" in strict.err, "try_variant_get" in strict.err) == (1, True, False)
    (tmp_path / "api.json").write_text(json.dumps({"items": [{"id": number} for number in range(20)]}))
    assert "use --root '$.items[*]'" in sh("variant ingest api.json api --root '$.items'").err
    assert "no document has a value at $.itms" in sh("variant ingest api.json other --root '$.itms'").err
    assert "$.items[*]" in sh("variant ingest api.json one").err


def test_the_result_of_an_ingest_in_a_notebook(sh: Sh) -> None:
    import parquet_variant as pv

    result = pv.ingest("events.ndjson", "events")
    html = result._repr_html_()
    assert all(text in html for text in ("30 rows", "events", "kind"))


@pytest.mark.parametrize(
    ("query", "advice"),
    [
        ("SELECT kind FROM t", "written v:kind"),
        ("SELECT user.name FROM t", "written v:user.name"),
        ("SELECT v.user.name FROM t", "v:user.name"),
        ("SELECT v.user.* FROM t", "v:user.*"),
        ("SELECT list_contains(v:items, 1) FROM t", "v:items::array<string>"),
        ("SELECT count(*) FROM t WHERE 'a' = ANY(v:items)", "v:items::array<string>"),
        ("SELECT count(*) FROM t WHERE 'a' IN v:items", "v:items::array<string>"),
        ("SELECT 1 FROM t a JOIN t b USING (v:kind)", "ON a.v:kind"),
        ("SHOW TABLES", "DESCRIBE SELECT * FROM typed(t)"),
        ("SUMMARIZE t", "SUMMARIZE SELECT * FROM typed(t)"),
        ("SELECT sum(v:user.idd) FROM t", "did you mean v:user.id?"),
        ("SELECT max(v:user.nmae) - 1 FROM t", "did you mean v:user.name?"),
        ("SELECT v:kind + 1 FROM t", "+ does not accept VARCHAR, INTEGER"),
        ("SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY v:mixed) FROM t", "v:mixed::double"),
        ("SELECT * EXCLUDE (list) FROM typed(t)", 'Column "list" in EXCLUDE list'),
    ],
)
def test_an_error_says_what_to_write(sh: Sh, query: str, advice: str) -> None:
    done = sh(f'variant query events.ndjson "{query}"')
    assert (done.code, advice in done.err, done.err.count("\n")) == (1, True, 1), done.err


def test_what_an_analyst_asks_first(sh: Sh, source: str) -> None:
    for query, lines in {
        "DESCRIBE typed(t)": 6,
        "SUMMARIZE typed(t)": 6,
        "WITH a AS (SELECT v FROM t) SELECT v:kind, avg(v:mag) FROM a GROUP BY ALL": 3,
        "SELECT v:kind, count(*) FROM t GROUP BY ROLLUP (v:kind)": 4,
        "SELECT v:kind, mode(v:mixed) FROM t GROUP BY 1": 3,
        "SELECT v['kind'], v:user['id'] FROM t QUALIFY row_number() OVER (PARTITION BY v:kind ORDER BY v:mag) = 1": 3,
        "PIVOT (SELECT v:kind AS kind, v:mag > 5 AS big FROM t) ON kind USING count(*)": 2,
        "SELECT v:kind FROM t WHERE v:kind ILIKE 'B%' AND v:mag BETWEEN 1 AND 5": 3,
        "SELECT CASE WHEN v:mag > 5 THEN 'big' ELSE 'small' END AS s, count(*) AS n FROM t GROUP BY s ORDER BY n": 2,
        "SELECT v:kind FROM t LIMIT 10%": 3,
    }.items():
        done = sh(f'variant query {source} "{query}"')
        others = "warning: 15 values of another type are NULL in the typed column mixed" if "SUMMARIZE" in query else ""
        assert (done.code, len(done.lines) - 2, others in done.err) == (0, lines, True), query
        assert done.err.count("\n") == bool(others), done.err


def test_paths_of_json_are_selected_without_a_copy(sh: Sh, source: str) -> None:
    done = sh(f"variant query {source} -s '$.kind' -s '$.mag' -s 'x=$.user.nope' -w '$.user.id:int >= 28'")
    assert (done.code, done.lines[0], done.lines[2:]) == (0, "kind mag x", ["view 14.0 -", "buy 14.5 -"])
    assert sh(f"variant query {source} -s '$.mixed' --limit 2").lines[2:] == ['"s0"', "1"]


def test_columns_of_csv_are_selected_by_name(sh: Sh, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("id,name\n1,a\n2,b\n")
    assert sh("variant query x.csv -s id -w \"name = 'b'\"").lines[2:] == ["2"]
    assert "choose from id, name" in sh("variant query x.csv -s nope").err
    assert "a path is written $.kind" in sh("variant query events.ndjson -s kind").err


def test_the_command_as_a_module(sh: Sh) -> None:
    done = sh(f'"{sys.executable}" -m parquet_variant query events.ndjson "SELECT count(*) FROM t" | tail -1')
    assert done.lines == ["30"]
