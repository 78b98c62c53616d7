"""One rule for conditions: scans, deletes, updates and merges take the SQL of queries."""

from __future__ import annotations

import datetime as dt
import json
import pickle
import random
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv

_ROWS = [
    {"id": n, "m": [1, "x", 2.5, None][n % 4], "tags": [f"t{n % 3}"], "s": f"Str{n}", "o": {"k": n}} for n in range(16)
]
_CONDITIONS = [
    "v:m = 1",
    "v:m = 'x' OR v:id = 3",
    "lower(v:s) = 'str3'",
    "variant_contains(v:tags, 't1')",
    "v:id + 1 > 14",
    "v:id % 2 = 0 AND v:m = 1",
    "is_object(v:o) AND v:id < 3",
    "variant_array_length(v:tags) = 1 AND k >= 14",
    "CASE WHEN v:id > 13 THEN true ELSE false END",
    "length(v:s) = 4 AND v:id BETWEEN 2 AND 5",
    "v:o.k * 2 = k + 3",
    "coalesce(v:m, 7) = 1 AND v:id > 3",
]


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    return pa.table({"k": pa.array(range(16)), "v": pv.from_python(_ROWS)})


@pytest.fixture(scope="module", params=["memory", "json", "parquet", "delta", "iceberg", "vortex"])
def source(request: pytest.FixtureRequest, rows: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder, kind = tmp_path_factory.mktemp("conditions"), request.param
    if kind == "memory":
        return rows
    if kind == "json":
        (folder / "rows.ndjson").write_text("\n".join(map(json.dumps, _ROWS)))
        return folder / "rows.ndjson"
    if kind == "vortex":
        pytest.importorskip("vortex")
    path = folder / ("t.vortex" if kind == "vortex" else "t")
    pv.write(path, rows, format=kind)
    return path


@pytest.mark.parametrize("condition", _CONDITIONS)
def test_a_scan_takes_the_conditions_of_queries(source: Any, condition: str) -> None:
    if str(source).endswith(".ndjson"):  # which has no column next to the Variant
        condition = condition.replace("AND k >=", "AND v:id >=").replace("= k +", "= v:id +")
    answer = pv.sql(f"SELECT v:id FROM t WHERE {condition} ORDER BY v:id", t=source)
    assert answer.to_pylist(), "the condition is true for some rows"
    scan = pv.open(source).scan({"id": "$.id"}, condition)
    for read in (scan.to_arrow, lambda: pa.concat_tables(scan.batches())):  # each run counts again
        with warnings.catch_warnings(record=True, action="always") as caught:
            assert read().to_pylist() == answer.to_pylist()
        assert tuple(str(warning.message).replace('"v":', "v:") for warning in caught) == answer.warnings


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
@pytest.mark.parametrize("condition", _CONDITIONS)
def test_changes_take_the_conditions_of_queries(
    table_format: Any, condition: str, rows: pa.Table, tmp_path: Path
) -> None:
    pv.write(tmp_path / "t", rows, format=table_format)
    expected = [row["k"] for row in pv.sql(f"SELECT k FROM t WHERE {condition} ORDER BY k", t=rows).to_pylist()]
    table = pv.open(tmp_path / "t")
    assert table.update({"v:hit": "v:id + k"}, condition).rows_updated == len(expected)
    found = pv.sql("SELECT k, v:hit FROM t WHERE v:hit IS NOT NULL ORDER BY k", t=tmp_path / "t").to_pylist()
    assert [(row["k"], row["hit"]) for row in found] == [(k, 2 * k) for k in expected]
    merge = pv.open(tmp_path / "t").merge(pa.table({"k": [3, 4]}), "target.v:id + 0 = source.k")
    assert merge.when_matched_update({"v:merged": "target.v:id + source.k"}).execute().rows_updated == 2
    assert pv.open(tmp_path / "t").delete(condition).rows_deleted == len(expected)


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_values_that_the_condition_of_a_change_did_not_compare_are_named(table_format: Any, tmp_path: Path) -> None:
    pv.write(tmp_path / "t", pv.from_python([{"n": 1}, {"n": 2}]), format=table_format)
    table = pv.open(tmp_path / "t")
    problem = "2 numbers at v:n were not compared with a string: write a cast, such as v:n::string"
    for result in (table.delete("v:n = '1'", dry_run=True), table.update({"v:n": "3"}, "v:n > '1'")):
        assert [hint.split(",")[:2] for hint in result.hints] == [problem.split(",")]
    with pytest.raises(pv.VariantError, match=f"the condition matches no row: {problem}.*pass force=True"):
        table.erase("v:n = '1'")
    assert table.delete("v:n::string = '1'").rows_deleted == 1


@pytest.mark.filterwarnings("ignore:.* not compared with a")
@pytest.mark.parametrize(
    ("columns", "condition", "ids"),
    [
        ({"n": "k", "id": "$.id"}, "n + 1 > 14", [14, 15]),  # an output column
        ({"id": "$.id", "m": "$.m"}, "m = 'x' AND id > 8", [9, 13]),  # an output column of several types
        ({"id": "$.id", "o": "$.o"}, "o:k + 0 = 5", [5]),
        ({"id": "$.id"}, "lower($.s:string) = 'str3' OR t.k = 2 + 2", [3, 4]),
        ({"id": "$.id"}, "v:m IS NULL OR upper(v:s) = 'STR4'", [4]),
    ],
)
def test_conditions_name_output_columns_and_paths(source: Any, columns: Any, condition: str, ids: list[int]) -> None:
    if str(source).endswith(".ndjson"):
        columns = {name: "$.id" if path == "k" else path for name, path in columns.items()}
        condition = condition.replace("t.k", "v:id")
    scan = pv.open(source).scan(columns, condition)
    assert scan.to_arrow()["id"].to_pylist() == ids
    assert pv.sql("SELECT sum(id) AS n FROM s", s=scan).to_pylist() == [{"n": sum(ids)}]
    if str(source).endswith("/t"):
        sent, tasks = pickle.loads(pickle.dumps((scan, scan.tasks())))  # to another process
        assert [row["id"] for task in tasks for part in sent.read(task) for row in part.to_pylist()] == ids


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("summ(v:id) > 3", "unknown function summ: did you mean sum"),
        ("v:id + 1", "the condition is of type int64: write a condition"),
        ("1 = 1", "the filter names no column"),
        ("nocol + 1 = 2", "unknown column nocol: choose from"),
        ("v:nope + 1 = 2", "no row has the path v:nope"),
        ("lower(v:s) >", "invalid filter"),
        ("k IN (SELECT 1)", "subqueries"),
    ],
)
def test_what_is_not_a_condition_is_refused_before_data_is_read(rows: pa.Table, condition: str, message: str) -> None:
    with pytest.raises(pv.VariantError, match=message) as caught:
        pv.open(rows).scan({"id": "$.id"}, condition)
    assert type(caught.value).__name__ == "PredicateError"


def test_a_condition_in_sql_skips_what_a_part_of_it_excludes(tmp_path: Path) -> None:
    for number in range(4):
        values = pv.from_python([{"id": number * 10 + n, "s": "a"} for n in range(10)])
        pv.write(tmp_path / f"{number}.parquet", values, schema="infer")
    scan = pv.open(tmp_path).scan({"id": "$.id"}, "v:id > 35 AND upper(v:s) = 'A'")
    assert scan.to_arrow()["id"].to_pylist() == [36, 37, 38, 39]
    assert scan.explain().row_groups_read == 1


@pytest.mark.parametrize("layout", ["shredded", "unshredded", "memory"])
def test_json_null_is_not_a_missing_value_in_any_condition(tmp_path: Path, layout: str) -> None:
    rows = pv.parse_json(['{"n": 1, "l": [null]}', '{"n": null, "l": [2]}', '{"l": []}'])
    source: Any = pa.table({"id": [0, 1, 2], "v": rows})
    if layout != "memory":
        pv.write(tmp_path / "t.parquet", source, schema="infer" if layout == "shredded" else None)
        source = tmp_path / "t.parquet"
    conditions = {
        "v:n IS NULL": [2],
        "v:l[0] IS NULL": [2],
        "v:n IS NOT NULL AND NOT v:n = 5": [0],
        "v:n IS NULL OR v:n < 2": [0, 2],
    }
    for condition, ids in conditions.items():
        found = [row["id"] for row in pv.sql(f"SELECT id FROM t WHERE {condition}", t=source).to_pylist()]
        assert found == pv.open(source).scan(["id"], condition).to_arrow()["id"].to_pylist() == ids
    assert pv.open(source).scan(["id"], [("$.n", "is null")]).to_arrow()["id"].to_pylist() == [2]


@pytest.mark.parametrize("value", ["(v:t)::date", "(v:t::date)", "((v:t))::date", "(v):t::date"])
def test_a_value_in_parentheses_is_set(tmp_path: Path, value: str) -> None:
    pv.write(tmp_path / "t", {"v": pv.parse_json(['{"t": "2024-01-31"}', "{}"])}, format="delta")
    pv.open(tmp_path / "t").update({"v:d": value}, "v:t IS NOT NULL")
    assert [row["d"] for row in pv.sql("SELECT v:d::string AS d FROM t", t=tmp_path / "t").to_pylist()] == [
        "2024-01-31",
        None,
    ]


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_change_by_a_path_without_a_cast_opens_only_files_that_may_match(table_format: Any, tmp_path: Path) -> None:
    for number in range(4):
        rows = pv.from_python([{"id": number * 10 + n} for n in range(10)])
        mode: Any = "append" if number else "error"
        pv.write(tmp_path / "t", {"v": rows}, format=table_format, schema="id bigint", mode=mode)
    deleted = pv.open(tmp_path / "t").delete("v:id = 35")
    assert (deleted.files_opened, deleted.rows_deleted) == (1, 1)
    source = {"v": pv.from_python([{"id": 12, "new": True}, {"id": 35}])}
    merge = pv.open(tmp_path / "t").merge(source, "target.v:id = source.v:id").when_matched_update_all()
    merged = merge.when_not_matched_insert_all().execute()
    assert (merged.files_opened, merged.rows_updated, merged.rows_inserted) == (2, 1, 1)
    pv.write(tmp_path / "t", {"v": pv.from_python([{"id": "12"}, {"id": 12.5}])}, format=table_format, mode="append")
    assert pv.open(tmp_path / "t").delete("v:id = 12 OR v:id > 39").rows_deleted == 1  # a string is not a number


@pytest.mark.filterwarnings("ignore:.* not compared with a")
@pytest.mark.parametrize("name", ["from", "on", "order", "map", "case", "when", "create", "select", "any", "glob"])
def test_a_column_of_a_filter_with_paths_has_any_word_as_its_name(name: str) -> None:
    table = pv.open(pa.table({name: [1, 2], "v": pv.from_python([{"a": 1}, {"a": "x"}])}))
    for where in (f"{name} = 1 and $.a = 1", f"v:a = 1 or {name} in (1, 5)", f"not {name} is null and v:a < 2"):
        assert table.scan([name], where).to_pylist() == [{name: 1}]
    assert table.scan([name], [(name, "<", 2), ("$.a", "=", 1)]).to_pylist() == [{name: 1}]


def test_paths_of_filters_are_compared_with_points_in_time_as_paths_of_queries() -> None:
    days = [dt.date(2024, 1, 5), dt.date(2024, 1, 15), None]
    moments = [day and dt.datetime(day.year, day.month, day.day, 3) for day in days]
    rows = [{"day": day, "n": n, "t": n and n.replace(tzinfo=dt.UTC)} for day, n in zip(days, moments, strict=True)]
    table = pa.table({"k": [1, 2, 3], "v": pv.from_python(rows)})
    for path, literal in [
        ("day", "'2024-01-10'"),
        ("day", "date '2024-01-10'"),
        ("n", "'2024-01-10 03:00:00'"),
        ("n", "timestamp '2024-01-10 03:00:00'"),
        ("t", "timestamp '2024-01-10 03:00:00'"),
        ("t", "date '2024-01-10'"),
    ]:
        for where in (f"$.{path} < {literal}", f"v:{path} < {literal}", f"$.{path} < {literal} AND upper('a') = 'A'"):
            assert pv.open(table).scan(["k"], where).to_arrow()["k"].to_pylist() == [1], where
    for condition in (("$.day", "<", days[1]), ("$.n", "<", moments[1]), ("$.t", "<", moments[1])):
        assert pv.open(table).scan(["k"], [condition]).to_arrow()["k"].to_pylist() == [1]


@pytest.mark.filterwarnings("ignore:.* not compared with a")
def test_a_filter_by_a_path_into_a_variant_inside_a_struct(tmp_path: Path) -> None:
    values = pv.from_python([{"a": 1}, {"a": "x"}, {"a": 3}])
    struct = pa.StructArray.from_arrays([values.storage], fields=[values.arrow_field.with_name("v")])
    pv.write(tmp_path / "t.parquet", pa.table({"k": [1, 2, 3], "s": struct}))
    table = pv.open(tmp_path / "t.parquet")
    for where in ("$.a > 2", [("$.a", ">", 2)], "$.a:int > 2", "k + 0 > 2 and $.a = 3"):
        assert table.scan(["k"], where, column="s.v").to_arrow()["k"].to_pylist() == [3]


_LITERALS = {
    "i": ["5", "1.5", "-3", "1099511627776"],
    "d": ["0.5", "5", "1e10"],
    "s": ["'x'", "'5'", "''"],
    "t": ["timestamp '2024-01-10 12:00:00'", "'2024-01-10 12:00:00'", "date '2024-01-10'"],
    "n": ["timestamp '2024-01-10 03:00:00'", "'2024-01-10 03:00:00'"],
    "day": ["date '2024-01-10'", "'2024-01-10'"],
    "m": ["1", "'x'", "2.5", "true"],
    "k": ["5", "30.5"],
}


def _filter(generator: random.Random, depth: int = 0) -> str:
    """Return a filter, in which ``{}`` is the start of a path."""
    if depth < 2 and generator.random() < 0.5:
        parts = [_filter(generator, depth + 1) for _ in range(2)]
        return f"({parts[0]} {generator.choice(['and', 'or'])} {parts[1]})"
    key = generator.choice(list(_LITERALS))
    place, (a, b) = key if key == "k" else f"{{}}{key}", generator.choices(_LITERALS[key], k=2)
    comparison = f"{place} {generator.choice(['=', '<>', '<', '>='])} {a}"
    others = [f"{place} is null", f"{place} not in ({a}, {b})", f"{place} between {a} and {b}", f"not {comparison}"]
    return generator.choice([comparison, *others])


@pytest.mark.filterwarnings("ignore:.* not compared with a")
@pytest.mark.parametrize("form", ["memory", "parquet", "shredded"])
def test_filters_of_scans_agree_with_queries(form: str, tmp_path: Path) -> None:
    generator = random.Random(form)
    rows = []
    for _ in range(40):
        day = dt.date(2024, 1, generator.randrange(8, 13))
        noon = dt.datetime(2024, 1, day.day, 12, tzinfo=dt.UTC)
        row = {"i": generator.choice([5, -3, 2**40]), "d": generator.choice([0.5, 5.0, 1e10]), "day": day, "t": noon}
        row |= {"s": generator.choice(["x", "5", ""]), "m": generator.choice([1, "x", 2.5, None, True])}
        row["n"] = dt.datetime(2024, 1, generator.randrange(8, 13), 3)
        rows.append(
            {key: generator.choice([value] * 8 + [None]) for key, value in row.items() if generator.random() < 0.9}
        )
    source: Any = pa.table({"k": range(40), "v": pv.from_python(rows)})
    if form != "memory":
        schema = "i bigint, d double, s string, t timestamp, day date" if form == "shredded" else None
        pv.write(tmp_path / "t.parquet", source, schema=schema)
        source = tmp_path / "t.parquet"
    for _ in range(60):
        text = _filter(generator)
        zone = generator.choice(["UTC", "America/New_York"])
        expected = pv.sql(
            f"SELECT k FROM t WHERE {text.format(*['v:'] * 20)} ORDER BY k", t=source, zone=zone
        ).to_arrow()
        found = pv.open(source).scan(["k"], text.format(*["$."] * 20), zone=zone).to_arrow()
        assert found["k"].to_pylist() == expected["k"].to_pylist(), (text, zone)


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_values_that_a_change_of_other_rows_did_not_compare_are_named(table_format: Any, tmp_path: Path) -> None:
    pv.write(tmp_path / "t", pv.from_python([{"n": 1}, {"n": "1"}, {"n": "2"}]), format=table_format)
    table = pv.open(tmp_path / "t")
    counted = table.erase("v:n = '1'", dry_run=True)
    assert (counted.rows_erased, [hint.split(":")[0] for hint in counted.hints]) == (1, ["1 number at v"])
    assert "was not compared with a string" in str(counted)
    result = table.delete("v:n = '1'")
    assert (result.rows_deleted, [hint.split(":")[0] for hint in result.hints]) == (1, ["1 number at v"])
    merge = table.merge(pa.table({"k": ["2"]}), "target.v:n = source.k").when_matched_update({"v:hit": "true"})
    result = merge.execute()
    assert result.rows_updated == 1 and "not compared with a string" in " ".join(result.hints)
    assert table.delete("v:n::string = '1'").hints == ()
    table.append(pv.from_python([{"n": 1}, {"n": "7"}]))
    erased = table.erase("v:n = '7'", force=True)
    assert (erased.rows_erased, [hint.split(":")[0] for hint in erased.hints]) == (1, ["1 number at v"])


@pytest.mark.parametrize("table_format", ["memory", "parquet", "delta", "json"])
def test_a_scan_that_another_engine_or_query_reads_says_which_values_were_not_compared(
    table_format: Any, tmp_path: Path
) -> None:
    source: Any = pv.from_python([{"n": 1}, {"n": "1"}])
    if table_format == "json":
        source = tmp_path / "t.ndjson"
        source.write_text('{"n": 1}\n{"n": "1"}\n')
    elif table_format != "memory":
        pv.write(tmp_path / "t.parquet", source, format=table_format)
        source = tmp_path / "t.parquet"
    scan = pv.open(source).scan({"n": "$.n"}, "v:n = '1'")
    with pytest.warns(UserWarning, match="1 number at v:n was not compared with a string: write a cast, such as v:n::"):
        assert len(pa.table(scan)) == 1
    with warnings.catch_warnings(record=True, action="always") as caught:
        answer = pv.sql("SELECT n FROM s", s=scan)
    said = [*answer.warnings, *(str(warning.message) for warning in caught)]
    assert len(answer) == 1 and "not compared with a string" in " ".join(said)


def test_columns_of_a_list_have_the_types_of_their_values_and_may_be_compared(rows: pa.Table) -> None:
    table = pv.open(rows)
    for columns in (["$.id"], "$.id"):
        assert table.scan(columns).schema.field("$.id").type == pa.int64()
        assert table.scan(columns, "$.id = 5").to_arrow()["$.id"].to_pylist() == [5]
    with pytest.warns(UserWarning, match="not compared with a string"):
        assert table.scan(["$.m"], "$.m = 'x'").to_arrow().num_rows > 0
