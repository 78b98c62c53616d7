"""Iceberg tables in the other surfaces: ingest, SQL, the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv
from parquet_variant.cli.app import main
from parquet_variant.errors import VariantError


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "events.ndjson"
    path.write_text("".join(json.dumps({"n": n, "kind": f"k{n % 2}"}) + "\n" for n in range(20)))
    return path


@pytest.fixture(params=["directory", "catalog"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Any]:
    if request.param == "directory":
        return str(tmp_path / "t"), None
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}/wh"}
    pv.create_namespace("db", catalog=catalog)
    return "db.events", catalog


def test_json_is_ingested_into_tables(lines: Path, place: tuple[str, Any]) -> None:
    dest, catalog = place
    options: dict[str, Any] = {"format": "iceberg", "catalog": catalog, "partition_by": "kind=$.kind:string"}
    first = pv.ingest(lines, dest, **options)
    assert (first.rows, len(first.files)) == (20, 2)
    with pytest.raises(VariantError) as caught:
        pv.ingest(lines, dest, **options)
    assert caught.value.reason == "exists"
    pv.ingest(lines, dest, mode="append", **options)
    assert pv.ingest(lines, dest, mode="ignore", **options).rows == 0
    current = pv.open(dest, catalog=catalog).snapshot
    text = "SELECT kind, count(*) AS c, sum(v:n::int) AS s FROM t GROUP BY kind ORDER BY kind"
    rows = pv.sql(text, t=current).to_pylist()
    assert rows == [{"kind": "k0", "c": 20, "s": 180}, {"kind": "k1", "c": 20, "s": 200}]
    pv.ingest(lines, dest, mode="overwrite", **options)
    assert len(pv.open(dest, catalog=catalog).read()) == 20
    pv.ingest(lines, dest, mode="append", format="iceberg", catalog=catalog)  # by the partition fields of the table
    assert pv.sql(text, t=pv.open(dest, catalog=catalog).snapshot).to_pylist() == rows


def test_a_failed_ingest_leaves_the_table_and_no_files(lines: Path, tmp_path: Path) -> None:
    table = tmp_path / "t"
    pv.ingest(lines, table, format="iceberg")
    before = sorted(p.name for p in table.rglob("*"))
    lines.write_text(lines.read_text() + "{broken\n")
    with pytest.raises(VariantError):
        pv.ingest(lines, table, format="iceberg", mode="append")
    assert sorted(p.name for p in table.rglob("*")) == before
    done = pv.ingest(lines, table, format="iceberg", mode="append", on_error="quarantine")
    assert (done.rows, done.bad_records) == (20, 1)
    assert done.bad_records_path is not None and Path(done.bad_records_path).is_dir()
    assert len(pv.open(table).read()) == 40


def test_a_catalog_is_refused_for_other_formats(lines: Path, tmp_path: Path) -> None:
    with pytest.raises(VariantError) as caught:
        pv.ingest(lines, tmp_path / "t", format="delta", catalog={"type": "rest", "uri": "http://127.0.0.1:1"})
    assert caught.value.reason == "bad-option"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def call(*words: str) -> str:
        capsys.readouterr()
        assert main(list(words)) == 0
        return capsys.readouterr().out

    return call


def test_commands_take_iceberg_tables(run: Callable[..., str], lines: Path, tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    run("ingest", str(lines), table, "--format", "iceberg")
    assert json.loads(run("query", table, "SELECT sum(v:n::int) AS s FROM t", "--json")) == {"s": 190}
    assert len(run("cat", table).splitlines()) == 20
    assert "VARIANT annotation" in run("inspect", table)
    assert "5 rows" in run("delete", table, "--where", "v:n::int < 5", "--dry-run")
    assert json.loads(run("delete", table, "--where", "v:n::int < 5", "--json"))["rows_deleted"] == 5
    run("update", table, "--set", "v:n=0", "--where", "v:n::int > 17")
    source = str(tmp_path / "more")
    run("ingest", str(lines), source, "--format", "iceberg")
    run("merge", table, source, "--on", "target.v:n::int = source.v:n::int", "--insert")
    assert "became" in run("optimize", table)
    history = [json.loads(line) for line in run("history", table, "--json").splitlines()]
    assert [entry["operation"] for entry in history] == ["replace", "append", "overwrite", "delete", "append"]
    first = str(history[-1]["snapshot_id"])
    assert len(run("cat", table, "--version", first).splitlines()) == 20
    assert len(run("cat", table).splitlines()) == 15 + 6
    left_behind = tmp_path / "t" / "data" / "left-behind.parquet"
    left_behind.write_bytes(b"")
    listed = run("vacuum", table, "--hours", "0", "--dry-run")
    assert "4 snapshots would expire" in listed and "left-behind" not in listed
    assert "left-behind" in run("vacuum", table, "--hours", "0", "--dry-run", "--force")
    assert len(run("cat", table, "--version", first).splitlines()) == 20
    assert "4 snapshots expired" in run("vacuum", table, "--hours", "0")
    assert left_behind.exists()
    run("vacuum", table, "--hours", "0", "--force")
    assert not left_behind.exists()
    assert len(run("cat", table).splitlines()) == 21
    run("optimize", table, "--drop-shredding")
    newest = max((tmp_path / "t" / "data").rglob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)
    assert pv.ShreddingSchema.from_parquet(str(newest), "v") == pv.ShreddingSchema.variant()
    assert len(run("cat", table).splitlines()) == 21


def test_commands_take_catalogs(run: Callable[..., str], lines: Path, tmp_path: Path) -> None:
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}/wh"}
    pv.create_namespace("db", catalog=catalog)
    text = json.dumps(catalog)
    run("ingest", str(lines), "db.events", "--format", "iceberg", "--catalog", text)
    assert "3 rows deleted" in run("delete", "db.events", "--where", "v:n::int < 3", "--catalog", text)
    history = [json.loads(line) for line in run("history", "db.events", "--catalog", text, "--json").splitlines()]
    assert len(history) == 2
    table = ["db.events", "--catalog", text]
    old = [*table, "--version", str(history[-1]["snapshot_id"])]
    assert [len(run("cat", *words).splitlines()) for words in (table, old)] == [17, 20]
    assert json.loads(run("query", *table, "SELECT sum(v:n::int) AS s FROM t", "--json")) == {"s": 187}
    assert json.loads(run("query", *old, "-s", "n=$.n:int", "-w", "n < 1", "--json")) == {"n": 0}
    assert "20 rows" in run("inspect", *table)
    assert json.loads(run("validate", *table, "--json"))["ok"]
    page = tmp_path / "page.html"
    assert "page.html" in run("explore", *table, "--html", str(page))
    assert page.stat().st_size > 10_000
    assert str(tmp_path / "c.db") not in page.read_text()


def test_tables_are_explored(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    pv.write(table, {"v": pv.parse_json(['{"n": 1}', '{"n": 2}'])}, format="iceberg")
    first = pv.open(table).snapshot.snapshot_id
    pv.open(table).append({"v": pv.parse_json(['{"n": 3}'])})
    found = pv.open(table).explore()
    document = found.to_dict()
    assert (document["kind"], document["rows"], document["catalog"]) == ("iceberg", 3, None)
    assert [entry["operation"] for entry in document["versions"]] == ["append", "append"]
    assert document["versions"][0]["metrics"] == {"added-data-files": "1", "added-records": "1"}
    assert found.sql("SELECT sum(v:n::int) AS s FROM t").to_pylist() == [{"s": 6}]
    old = pv.open(table, version=first).explore()
    assert (old.to_dict()["rows"], old.sql("SELECT count(*) AS c FROM t").to_pylist()) == (2, [{"c": 2}])
    pv.open(table).delete()
    with pytest.raises(VariantError) as caught:
        pv.open(table).explore()
    assert caught.value.reason == "no-rows"
