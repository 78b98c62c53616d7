"""`ingest --format vortex`, `cat` and `query` over Vortex files: the same answers as over Parquet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import parquet_variant as pv

from .conftest import Run

pytest.importorskip("vortex.expr", reason="vortex-data is not installed")

SELECT = ["--select", "mag=$.properties.mag:double", "--select", "place=$.properties.place:string"]


def meanings(texts: list[str]) -> list[str]:
    return sorted(json.dumps(json.loads(text), sort_keys=True) for text in texts)


@pytest.fixture(scope="module", params=["one.vortex", "directory"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, usgs_sample: Path) -> Path:
    from parquet_variant.cli.app import main

    dest: Path = tmp_path_factory.mktemp("vortex") / request.param
    assert main(["ingest", str(usgs_sample), str(dest), "--format", "vortex"]) == 0
    return dest


def test_ingest_keeps_every_row(variant: Run, table: Path, usgs_sample: Path) -> None:
    if table.suffix == ".vortex":
        assert table.is_file()
        assert [item.name for item in table.parent.iterdir()] == [table.name]
        assert pv.open(table).inspect().columns[0].layouts == {"variant": 1}
    else:
        assert {item.suffix for item in table.iterdir()} == {".vortex", ""}
    done = variant("cat", table)
    assert meanings(done.out.splitlines()) == meanings(usgs_sample.read_text().splitlines())


def test_query_answers_as_over_parquet(variant: Run, table: Path, earthquakes: Path) -> None:
    for more in (["--where", "mag > 5"], ["--where", "place like '%Japan%' and mag is not null"], ["--limit", "3"]):
        ours, parquet = (variant("query", path, *SELECT, *more, "--json") for path in (table, earthquakes))
        assert ours.code == parquet.code == 0
        assert ours.rows == parquet.rows
        assert ours.rows
    sql = "SELECT v:properties.type::string AS kind, count(*) AS n FROM t GROUP BY kind ORDER BY kind"
    pytest.importorskip("duckdb", reason="DuckDB is not installed")
    assert variant("query", table, sql, "--json").rows == variant("query", earthquakes, sql, "--json").rows


def test_explain_names_what_is_read(variant: Run, table: Path, tmp_path: Path) -> None:
    report = variant("query", table, *SELECT, "--where", "mag > 5", "--explain", "--json").json
    assert (report["rows_total"], list(report["columns"]), report["layouts"]) == (1707, ["v"], ["variant"])
    dest = tmp_path / f"struct{table.suffix}"
    assert variant("rewrite", table, dest, "--layout", "struct").code == 0
    table = dest
    report = variant("query", table, *SELECT, "--where", "mag > 5", "--explain", "--json").json
    assert (report["files_total"], report["rows_total"]) == (1, 1707)
    assert sorted(report["columns"]) == ["v.properties.mag", "v.properties.place"]
    text = variant("query", table, *SELECT, "--where", "mag > 5", "--explain").out
    assert "v.properties.mag" in text


def test_modes(variant: Run, tmp_path: Path) -> None:
    source = tmp_path / "a.ndjson"
    source.write_text('{"n": 1}\n{"n": "two"}\n')
    for name in ("t.vortex", "t"):
        ingest = ["ingest", source, tmp_path / name, "--format", "vortex"]
        assert variant(*ingest).code == 0
        assert "exists" in variant(*ingest).error
        assert variant(*ingest, "--mode", "ignore").code == 0
        assert variant(*ingest, "--mode", "overwrite").code == 0
        assert variant("cat", tmp_path / name).rows == [{"n": 1}, {"n": "two"}]
    assert (
        "cannot be appended to a file"
        in variant(*ingest[:2], tmp_path / "t.vortex", *ingest[3:], "--mode", "append").error
    )
    assert variant(*ingest, "--mode", "append").code == 0
    assert len(variant("cat", tmp_path / "t").rows) == 4
    answer = variant("query", tmp_path / "t", "--select", "n=$.n:string", "--where", "n = 'two'", "--json")
    assert answer.rows == [{"n": "two"}] * 2


def test_bad_lines(variant: Run, tmp_path: Path) -> None:
    source = tmp_path / "a.ndjson"
    source.write_text('{"n": 1}\n{"n": \n')
    assert variant("ingest", source, tmp_path / "t.vortex", "--format", "vortex").code == 1
    assert [item.name for item in tmp_path.iterdir()] == ["a.ndjson"]
    quarantine = ["--format", "vortex", "--on-error", "quarantine"]
    assert variant("ingest", source, tmp_path / "t.vortex", *quarantine, "--json").json["bad_records"] == 1
    assert variant("cat", tmp_path / "t.vortex").rows == [{"n": 1}]
    bad = [json.loads(line) for line in (tmp_path / "t.vortex.bad_records.ndjson").read_text().splitlines()]
    assert [(record["line"], record["text"]) for record in bad] == [(2, '{"n": ')]
    assert variant("ingest", source, tmp_path / "t", *quarantine, "--json").json["bad_records"] == 1
    assert variant("cat", tmp_path / "t").rows == [{"n": 1}]


def test_what_is_refused(variant: Run, table: Path, tmp_path: Path) -> None:
    assert "file" in variant("cat", tmp_path / "none.vortex").error
    assert "column 'x'" in variant("query", table, "--select", "x").error
    assert "no versions" in variant("query", table, *SELECT, "--version", "1").error
    assert "cannot cast" in variant("query", table, "--select", "place=$.properties.place:bigint", "--strict").error
    assert "Vortex" in variant("validate", table).error
    assert "--predict-from" in variant("inspect", table, "--predict-from", "x").error
    assert "--layout" in variant("ingest", tmp_path, tmp_path / "p", "--layout", "struct").error


@pytest.mark.parametrize("name", ["one.vortex", "directory"])
@pytest.mark.parametrize("layout", ["variant", "struct"])
def test_layouts(variant: Run, tmp_path: Path, layout: str, name: str) -> None:
    rows = [{"n": number, "s": f"row {number}", "l": [number, "x"]} for number in range(300)]
    (tmp_path / "a.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dest = tmp_path / name
    ingest = ["ingest", tmp_path / "a.ndjson", dest, "--format", "vortex", "--layout", layout]
    assert variant(*ingest).code == 0
    assert variant("cat", dest).rows == rows
    expected = variant("inspect", dest, "--json").json["columns"][0]
    assert expected["layouts"] == {layout: 1}
    assert expected["types"]["$['n']"] == ["bigint"]
    assert list(expected["in_bytes"]) == (["$['l']"] if layout == "variant" else [])
    assert layout in variant("inspect", dest).out
    asked = ["query", dest, "--select", "n=$.n:bigint", "--where", "n > 500"]
    assert variant(*asked, "--json").rows == []
    explained = variant(*asked, "--explain", "--json").json
    assert explained["layouts"] == [layout]
    assert (explained["row_groups_total"], explained["row_groups_read"], explained["rows_read"]) == (1, 0, 0)
    assert "row groups  0 of 1\n" in variant(*asked, "--explain").out
