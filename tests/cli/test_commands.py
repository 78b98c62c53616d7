"""What each command does when all is well."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv

Run = Callable[..., Any]


def exact(lines: str) -> list[Any]:
    return [json.loads(line, parse_float=Decimal, parse_int=Decimal) for line in lines.splitlines()]


def test_ingest_and_cat_give_the_sample_back(variant: Run, tmp_path: Path, usgs_sample: Path) -> None:
    done = variant("ingest", usgs_sample, tmp_path / "out", "--json")
    assert done.code == 0
    assert (done.json["rows"], done.json["bad_records"]) == (1707, 0)
    assert "mag: decimal(3,2)" in done.json["schema"]
    assert exact(variant("cat", tmp_path / "out").out) == exact(usgs_sample.read_text())


@pytest.mark.usefixtures("spark")
def test_ingest_through_spark_gives_the_same(variant: Run, tmp_path: Path, usgs_sample: Path) -> None:
    done = variant("ingest", usgs_sample, tmp_path / "out", "--engine", "spark", "--json")
    assert (done.code, done.json["rows"]) == (0, 1707)
    assert exact(variant("cat", tmp_path / "out").out) == exact(usgs_sample.read_text())


@pytest.mark.usefixtures("spark")
def test_errors_of_spark_tasks_are_one_line_too(variant: Run, tmp_path: Path) -> None:
    source = tmp_path / "cut.json"
    source.write_text('{"a": 1}\n{"a": [1, 2')
    done = variant("ingest", source, tmp_path / "out", "--engine", "spark")
    assert done.code == 1
    assert "line 2: " in done.error
    assert str(source) in done.error


@pytest.mark.usefixtures("spark")
def test_ingest_of_one_file_on_spark(variant: Run, tmp_path: Path, usgs_sample: Path) -> None:
    dest = tmp_path / "quakes.parquet"
    assert variant("ingest", usgs_sample, dest, "--engine", "spark").code == 0
    assert dest.is_file() and [path.name for path in tmp_path.iterdir()] == [dest.name]
    assert pq.read_metadata(dest).num_rows == len(usgs_sample.read_text().splitlines())


def test_ingest_takes_what_infer_prints(variant: Run, tmp_path: Path, usgs_sample: Path) -> None:
    ddl = variant("infer", usgs_sample, "--ddl").out
    (tmp_path / "schema.ddl").write_text(ddl)
    (tmp_path / "schema.json").write_text(variant("infer", usgs_sample, "--json").out)
    for number, given in enumerate((ddl, tmp_path / "schema.ddl", tmp_path / "schema.json")):
        done = variant("ingest", usgs_sample, tmp_path / f"out{number}", "--schema", given, "--json")
        assert done.json["schema"] == ddl.strip()
    (parquet,) = (tmp_path / "out0").glob("*.parquet")
    done = variant("ingest", usgs_sample, tmp_path / "again", "--schema", parquet, "--json")
    assert done.json["schema"] == ddl.strip()


@pytest.fixture
def rare_paths(tmp_path: Path) -> Path:
    source, rare = tmp_path / "rare.json", ', "rare": 7'
    source.write_text("".join(f'{{"id": {n}{rare if n % 25 == 0 else ""}}}\n' for n in range(500)))
    return source


def test_infer_says_why(variant: Run, rare_paths: Path) -> None:
    done = variant("infer", rare_paths, "--explain")
    assert done.code == 0
    assert "├─ id  bigint  100.0% typed" in done.out
    explained = variant("infer", rare_paths, "--explain", "--json").json
    assert (explained["ddl"], explained["rows"], explained["policy"]) == ("id bigint", 500, "auto")
    decisions = {decision["path"]: decision for decision in explained["paths"]}
    assert decisions["$['id']"]["type"] == "bigint"
    assert any(decision["type"] is None and decision["reason"] for decision in explained["paths"])


def test_infer_policies_are_steered(variant: Run, tmp_path: Path, rare_paths: Path) -> None:
    def ddl(*words: object) -> str:
        done = variant("infer", rare_paths, "--ddl", *words)
        assert done.code == 0, done.err
        return str(done.out.strip())

    assert ddl("--policy", "spark") == "id bigint"
    assert ddl("--policy", "hints", "--set", 'types={"$.id": "double"}', "--set", "max_columns=0") == "id double"
    queries = tmp_path / "log.sql"
    queries.write_text("SELECT variant_get(v, '$.rare', 'int') FROM t;\n")
    assert ddl("--policy", "workload", "--queries", queries, "--set", "max_columns=1") == "rare bigint"
    done = variant("infer", rare_paths, "--set", "min_row_share=0.01", "--set", "maps.keys=100", "--diff")
    assert done.out == "+ $.rare: bigint, 4.0% of rows (all bigint)\n"
    assert variant("infer", rare_paths, "--diff").out == "no difference\n"
    done = variant("infer", rare_paths, "--against", "id string, gone date")
    assert "shifted  $.id: string -> bigint" in done.out
    assert "dead  $.gone" in done.out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--set", "nope=1"], "unknown constant 'nope' of the policy auto: use min_row_share"),
        (["--set", "max_columns=many"], "max_columns is 'many'"),
        (["--set", "max_columns"], "write NAME=VALUE"),
        (["--set", "maps.nope=1"], "nope"),
        (["--queries", "q.sql"], "--queries needs --policy workload"),
        (["--policy", "workload", "--queries", "q.sql"], "cannot read the queries in q.sql"),
        (["--policy", "workload"], "required arguments"),
        (["--policy", "hints", "--set", 'skip_regexp=["("]'], "("),
    ],
)
def test_policies_that_do_not_fit_are_refused(variant: Run, rare_paths: Path, words: list[str], text: str) -> None:
    done = variant("infer", rare_paths, *words)
    assert done.code == 2 if "NAME=VALUE" in text else 1
    assert text in done.error


def test_infer_reads_parquet_too(variant: Run, earthquakes: Path, usgs_sample: Path) -> None:
    assert variant("infer", earthquakes, "--ddl").out == variant("infer", usgs_sample, "--ddl").out


def test_query_prints_a_grid(variant: Run, earthquakes: Path) -> None:
    done = variant(
        "query",
        earthquakes,
        "--select",
        "mag=$.properties.mag:double",
        "--select",
        "$.id:string",
        "--where",
        "mag > 6.2",
    )
    assert done.out.splitlines() == ["mag  id", "---  ----------", "6.4  us1000chhc"]


def test_query_prints_json(variant: Run, earthquakes: Path) -> None:
    words = ["query", earthquakes, "-s", "m=$.properties.mag:decimal(4,2)", "-s", "at=$.geometry", "-w", "m > 6.2"]
    done = variant(*words, "--json")
    assert done.rows == [{"m": 6.4, "at": {"type": "Point", "coordinates": [121.653, 24.1737, 10.64]}}]
    assert len(variant("query", earthquakes, "-s", "$.id:string", "--limit", 3, "--json").rows) == 3
    assert variant("query", earthquakes, "-s", "$.id:string", "--limit", 0, "--json").rows == []


def test_query_explains_that_it_reads_one_column(variant: Run, earthquakes: Path) -> None:
    report = variant("query", earthquakes, "-s", "mag=$.properties.mag:double", "--explain", "--json").json
    assert list(report["columns"]) == ["v.typed_value.properties.typed_value.mag.typed_value"]
    assert report["bytes_read"] < report["bytes_total"] / 20


def test_query_strict_refuses_what_cannot_be_cast(variant: Run, earthquakes: Path) -> None:
    words = ["query", earthquakes, "-s", "n=$.properties.place:int", "--limit", 1]
    assert variant(*words, "--json").rows == [{"n": None}]
    done = variant(*words, "--strict")
    assert (done.code, "cast" in done.error.lower()) == (1, True)


def test_cat_prints_whole_rows_where_there_are_other_columns(variant: Run, tmp_path: Path) -> None:
    table = {
        "id": pa.array([1, None]),
        "price": pa.array([Decimal("1.10"), None], pa.decimal128(20, 2)),
        "v": pv.parse_json(['{"a": 1.10}', None]),
    }
    pv.write(tmp_path / "a.parquet", table)
    assert variant("cat", tmp_path / "a.parquet").out.splitlines() == [
        '{"id":1,"price":1.1,"v":{"a":1.1}}',
        '{"id":null,"price":null,"v":null}',
    ]
    assert variant("cat", tmp_path / "a.parquet", "--column", "v").out == '{"a":1.1}\nnull\n'


def test_cat_prints_variants_inside_of_structs_and_lists(variant: Run, tmp_path: Path) -> None:
    inner = pv.parse_json(["1", '{"a": "x"}', "null"])
    field = pa.field("element", inner.storage.type, metadata={"ARROW:extension:name": "arrow.parquet.variant"})
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, 3], pa.int32()), inner.storage, type=pa.list_(field))
    pv.write(tmp_path / "a.parquet", pa.table({"id": [1, 2, 3], "many": lists}))
    assert variant("cat", tmp_path / "a.parquet").rows == [
        {"id": 1, "many": [1, {"a": "x"}]},
        {"id": 2, "many": []},
        {"id": 3, "many": [None]},
    ]


def test_inspect_shows_types_and_shares(variant: Run, earthquakes: Path) -> None:
    done = variant("inspect", earthquakes)
    assert done.out.startswith("1 file, 1,707 rows, 1 row group\n")
    (line,) = (line for line in done.out.splitlines() if line.startswith("$.properties.alert "))
    assert line.split()[1:6] == ["string", "1707", "0.7%", "99.3%", "0.0%"]
    assert "30 typed columns of" in done.out
    few = variant("inspect", earthquakes, "--top", "2", "--sort", "bytes").out.splitlines()
    assert few[-2].startswith("$.geometry.coordinates[*] ")
    report = variant("inspect", earthquakes, "--json").json
    assert (report["files"], report["rows"], report["columns"][0]["name"]) == (1, 1707, "v")


def test_inspect_compares_with_what_was_predicted(variant: Run, earthquakes: Path, usgs_sample: Path) -> None:
    report = variant("inspect", earthquakes, "--predict-from", usgs_sample, "--json").json
    shares = {item["path"]: item for item in report["predictions"]}
    assert len(shares) == 30
    assert all(share["predicted"] == pytest.approx(share["actual"]) for share in shares.values())
    assert shares["$['properties']['alert']"]["actual"] == pytest.approx(12 / 1707)
    assert "$.properties.mag" in variant("inspect", earthquakes, "--predict-from", usgs_sample).out


def test_validate_exits_with_1_on_a_violation(
    variant: Run, earthquakes: Path, tmp_path: Path, parquet_test_data: Path
) -> None:
    assert variant("validate", earthquakes).code == 0
    assert variant("validate", earthquakes, "--json").json["ok"] is True
    cases = json.loads((parquet_test_data / "shredded_variant" / "cases.json").read_text())
    invalid = next(case for case in cases if "INVALID" in case.get("notes", "") or case.get("error_message"))
    done = variant("validate", parquet_test_data / "shredded_variant" / invalid["parquet_file"])
    assert (done.code, "violation" in done.out) == (1, True)


def test_rewrite_there_and_back(variant: Run, earthquakes: Path, tmp_path: Path, usgs_sample: Path) -> None:
    chain = [earthquakes]
    for layout in ("unshredded", "draft-paths", "draft-object", "final"):
        chain.append(tmp_path / layout)
        extra = ["--reinfer"] if layout != "unshredded" else []
        done = variant("rewrite", chain[-2], chain[-1], "--layout", layout, *extra, "--json")
        assert (done.code, done.json["rows"]) == (0, 1707)
    assert exact(variant("cat", chain[-1]).out) == exact(usgs_sample.read_text())
    plain = tmp_path / "plain"
    assert variant("rewrite", earthquakes, plain, "--layout", "unshredded", "--no-annotation").code == 0
    assert variant("inspect", plain, "--json").json["columns"][0]["annotated"] == 0


@pytest.mark.usefixtures("spark")
def test_rewrite_through_spark_gives_the_same(
    variant: Run, earthquakes: Path, tmp_path: Path, usgs_sample: Path
) -> None:
    words = ["rewrite", earthquakes, tmp_path / "out", "--layout", "draft-paths", "--reinfer", "--engine", "spark"]
    done = variant(*words, "--json")
    assert done.code == 0, done.err
    assert done.json["rows"] == 1707
    assert exact(variant("cat", tmp_path / "out").out) == exact(usgs_sample.read_text())
    again = variant(*words)
    assert again.code == 1
    assert "already exists" in again.error


def test_a_reader_that_leaves_is_not_a_failure(tmp_path: Path, earthquakes: Path) -> None:
    source = tmp_path / "many.json"
    source.write_text('{"a": "some text to fill the pipe"}\n' * 20_000)
    pv.ingest(source, tmp_path / "out", schema="a string")
    command = [sys.executable, "-m", "parquet_variant.cli", "cat", str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b'{"a":"some text to fill the pipe"}\n'
        process.stdout.close()
        assert process.wait(60) == 0
        assert process.stderr.read() == b""


def test_ingest_sorts_and_makes_filters_on_request(variant: Run, tmp_path: Path) -> None:
    source, dest = tmp_path / "a.ndjson", tmp_path / "table"
    source.write_text("".join(f'{{"id": {n * 7919 % 5000}, "name": "n{n}"}}\n' for n in range(5000)))
    options = ["--sort-by", "$.id", "--bloom-filter", "$.name", "--row-group-bytes", "10000"]
    assert variant("ingest", source, dest, *options).code == 0
    assert [row["id"] for row in variant("cat", dest).rows] == list(range(5000))
    selects = ["--select", "id=$.id:bigint", "--select", "name=$.name:string"]
    for where, groups in (("id = 77", 1), ("name = 'n77'", 1), ("name = 'of nobody'", 0)):
        report = variant("query", dest, *selects, "--where", where, "--explain", "--json").json
        assert report["row_groups_total"] > 10
        assert report["row_groups_read"] <= groups + 1
        assert report["row_groups_read"] >= groups


def test_who_writes_the_pages_is_an_option(variant: Run, tmp_path: Path) -> None:
    source = tmp_path / "a.ndjson"
    source.write_text('{"a": 1}\n{"a": 2}\n')
    made = {}
    for writer in ("native", "pyarrow"):
        assert variant("ingest", source, tmp_path / f"{writer}.parquet", "--writer", writer).code == 0
        made[writer] = pq.ParquetFile(tmp_path / f"{writer}.parquet").metadata.created_by
        assert variant("cat", tmp_path / f"{writer}.parquet").rows == [{"a": 1}, {"a": 2}]
    assert "parquet-cpp" not in made["native"]
    assert "parquet-cpp" in made["pyarrow"]
    refused = variant("ingest", source, tmp_path / "no.parquet", "--writer", "arrow")
    assert refused.code != 0
    assert "use native or pyarrow" in refused.error


def test_rewrite_takes_the_writers_options(variant: Run, earthquakes: Path, tmp_path: Path) -> None:
    target = tmp_path / "rewritten"
    assert variant("rewrite", earthquakes, target, "--writer", "pyarrow", "--row-group-bytes", "1000000").code == 0
    assert all("parquet-cpp-arrow" in pq.ParquetFile(file).metadata.created_by for file in target.rglob("*.parquet"))
    assert variant("cat", target).rows == variant("cat", earthquakes).rows


@pytest.mark.usefixtures("spark")
def test_query_on_spark_without_sql(variant: Run, earthquakes: Path) -> None:
    words = ["query", earthquakes, "-s", "mag=$.properties.mag:double", "-s", "where=$.geometry", "-w", "mag > 6"]
    rows = variant(*words, "--json").rows
    assert len(rows) == 3
    assert variant(*words, "--json", "--engine", "spark").rows == rows
    explained = variant(*words, "--explain", "--json", "--engine", "spark").json
    assert list(explained["readers"]["python"].values()) == ["--where needs the data source"]
    sql = ["query", earthquakes, "SELECT count(*) FROM t WHERE v:properties.mag::double > 6", "--engine", "spark"]
    assert [Path(file).parent for file in variant(*sql, "--explain", "--json").json["readers"]["jvm"]] == [earthquakes]
    assert "jvm     " in variant(*sql, "--explain").out
    assert "unknown column nope: choose from v" in variant(*sql[:2], "SELECT nope FROM t", *sql[3:]).error


def test_standard_input_is_a_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variant: Run) -> None:
    for text, rows in ((b'{"a": 1}\n{"a": 2}\n', 2), (b'{\n "a": 1\n}\n{"a": 2}{"a": 3}', 3)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
        assert variant("ingest", "-", tmp_path / str(rows)).code == 0
        assert pv.open(tmp_path / str(rows)).read()["a"].to_pylist() == list(range(1, rows + 1))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert variant("infer", "-").code == 1
    assert "standard input can be read only once" in variant("ingest", "-", "-", tmp_path / "twice").err


def test_costs_of_a_choice(variant: Run, tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"id": 1, "k": "x"}\n' * 9 + '{"id": "two"}\n')
    words = ("infer", tmp_path / "a.ndjson")
    assert variant(*words, "--explain").out.startswith("10 rows, 2 paths with values, 2 typed (auto): ")
    assert (
        variant(*words, "--sort", "residual", "--top", "1").out.splitlines()[1].startswith("$.id  bigint  90.0% typed")
    )
    assert variant(*words, "--also", "$.k:string").out.startswith("$.k as string: would hold 9 of 9 values; ")
    assert "--also" in variant(*words, "--also", "k").error
    paths = {item["path"]: item for item in variant(*words, "--explain", "--json").json["paths"]}
    assert (paths["$['k']"]["typed"], paths["$['k']"]["missing"]) == (9, 1)


@pytest.mark.parametrize("columns", [["v"], ["id", "v"]])
@pytest.mark.parametrize("form", ["a.parquet", "delta", "a.vortex"])
def test_cat_prints_rows_in_order_whatever_the_threads(variant, tmp_path, columns, form):
    rows = [f'{{"a": {number}, "s": "{"x" * 40}"}}' for number in range(2000)]
    table = {"id": pa.array(range(2000)), "v": pv.parse_json(rows)}
    path = tmp_path / form
    chosen = {name: table[name] for name in columns}
    if form == "delta":
        halves = [{name: column[half] for name, column in chosen.items()} for half in (slice(1000), slice(1000, None))]
        for half in halves:
            pv.write(path, half, format="delta", mode="append")
    elif form == "a.vortex":
        pytest.importorskip("vortex.expr", reason="vortex-data is not installed")
        pv.write(path, chosen, format="vortex")
    else:
        pv.write(path, chosen, schema="a bigint", row_group_bytes=20_000)
    printed = [variant("cat", path, "--threads", threads).rows for threads in (1, 2)]
    assert printed[0] == printed[1]
    assert [row.get("v", row)["a"] for row in printed[0]] == list(range(2000))


def test_infer_counts_the_texts_that_were_to_be_typed(variant: Run, tmp_path: Path) -> None:
    rows = [{"at": "2026-01-31" if number else "soon", "u_id": f"{number:032x}"} for number in range(20)]
    (tmp_path / "a.ndjson").write_text("\n".join(map(json.dumps, rows)))
    words = ("infer", tmp_path / "a.ndjson", "--type", "$.at:date", "--type", "$..*_id:uuid", "--explain")
    unlike = "the format of the others would not be reproduced exactly"
    wanted = [
        f"0 of 20 strings at $..*_id were typed as uuid: {unlike}; uuid! accepts more forms",
        f"19 of 20 strings at $.at were typed as date: {unlike}",
    ]
    assert variant(*words).out.splitlines()[1:3] == wanted
    assert variant(*words, "--json").json["summary"][1:] == wanted
