"""Rows that are appended to directories of files, or replace their rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.cli.app import main
from parquet_variant.files.parquet.format.files import locate
from parquet_variant.ingestion.destinations import parquet


def rows(*values, **columns):
    return {"v": pv.from_python(list(values)), **columns}


@pytest.mark.parametrize("kind", ["parquet", "vortex"])
def test_rows_are_appended_to_a_directory_and_replace_its_rows(kind, tmp_path):
    pv.write(tmp_path / f"a.{kind}", rows({"a": 1}, id=pa.array([1])), schema="a bigint")
    table = pv.open(tmp_path)
    done = table.append(rows({"a": 2}, {"b": "x"}, id=pa.array([2, 3])))
    assert (done.rows, len(done.files), done.committed) == (2, 1, True)
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 2, 3]
    assert sorted(map(repr, table.read().to_pylist())) == ["{'a': 1}", "{'a': 2}", "{'b': 'x'}"]
    table.overwrite(rows({"a": 9}, id=pa.array([9])))
    assert table.to_arrow()["id"].to_pylist() == [9] and table.read().to_pylist() == [{"a": 9}]


def test_an_appended_file_is_shredded_as_most_rows_are(tmp_path):
    pv.write(tmp_path / "a.parquet", rows({"a": 1}, {"a": 1}), schema="a bigint")
    pv.write(tmp_path / "0.parquet", rows({"a": "x"}), schema="a string")
    (file,) = pv.open(tmp_path).append(rows({"a": 2})).files
    assert pv.open(file).paths() == {"$.a": "bigint"}
    (file,) = pv.open(tmp_path).append(rows({"b": 2}), schema="b int").files
    assert pv.open(file).paths() == {"$.b": "int"}


def test_rows_are_put_into_the_partitions_of_the_directory(tmp_path):
    pv.write(tmp_path / "day=2026-01-31" / "a.parquet", rows({"a": 1}))
    table = pv.open(tmp_path)
    day = pa.array(["2026-01-31", "2026-02-01", None]).cast(pa.date32())
    assert len(table.append(rows({"a": 2}, {"a": 3}, {"a": 4}, day=day)).files) == 3
    found = table.scan({"day": "day", "a": "$.a:int"}).to_arrow().sort_by("a")
    assert found["day"].cast(pa.string()).to_pylist() == ["2026-01-31", "2026-01-31", "2026-02-01", None]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (rows({"a": 2}), "missing-column"),
        (rows({"a": 2}, id=pa.array([1]), more=pa.array([1])), "unknown-column"),
        (rows({"a": 2}, id=pa.array(["x"])), "type-mismatch"),
        ({"v": pa.array(["x"]), "id": pa.array([1])}, "type-mismatch"),
    ],
)
def test_rows_with_other_columns_are_refused(data, reason, tmp_path):
    pv.write(tmp_path / "a.parquet", rows({"a": 1}, id=pa.array([1])))
    with pytest.raises(pv.SchemaError) as caught:
        pv.open(tmp_path).append(data)
    assert caught.value.reason == reason
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]


def test_a_single_file_is_not_appended_to(tmp_path):
    pv.write(tmp_path / "a.parquet", rows({"a": 1}))
    with pytest.raises(pv.VariantFileError, match="is a file"):
        pv.open(tmp_path / "a.parquet").append(rows({"a": 1}))
    with pytest.raises(pv.VariantError, match="supported for delta, iceberg") as caught:
        pv.open(tmp_path).delete("v:a::int = 1")
    assert caught.value.reason == "unsupported-operation"


@pytest.mark.parametrize("kind", ["parquet", "vortex"])
def test_files_of_partitions_count_and_staged_and_hidden_files_do_not(kind, tmp_path):
    visible = ["a=1/1", "_a=1/2", "3"]
    for name in (*visible, "_temporary/job/00000-0/4", "_quarantine/5", ".cache/6", ".a=1/7", "_8", ".9"):
        pv.write(tmp_path / f"{name}.{kind}", rows({"n": int(name[-1])}))
    for path in (tmp_path, f"{tmp_path}/**/*.{kind}"):
        table = pv.open(path)
        assert sorted(table.data_files()) == sorted(f"{tmp_path}/{name}.{kind}" for name in visible)
        assert sorted(row["n"] for row in table.read().to_pylist()) == [1, 2, 3]
    assert pv.open(f"{tmp_path}/_quarantine/*.{kind}").read().to_pylist() == [{"n": 5}]


def test_every_file_that_is_read_is_replaced_and_published_and_no_other_file(tmp_path):
    table, source = tmp_path / "t", tmp_path / "in.ndjson"
    for name in ("a.parquet", "B.PARQUET", "c.parq", "d.pq", "_backup/e.parquet", ".f.parquet"):
        pv.write(table / name, rows({"n": name}))
    (table / ".a.parquet.crc").touch()
    source.write_text('{"n": "new"}\n')
    read = ["B.PARQUET", "a.parquet", "c.parq", "d.pq"]
    assert [value["n"] for value in pv.open(table).read().to_pylist()] == read
    pv.open(table).publish("iceberg", to=tmp_path / "published")
    assert sorted(value["n"] for value in pv.open(tmp_path / "published").read().to_pylist()) == read
    pv.ingest(source, table, mode="overwrite")
    assert pv.open(table).read().to_pylist() == [{"n": "new"}]
    kept = {path.name for path in table.rglob("*") if path.is_file() and not path.name.startswith("part-")}
    assert kept == {"_SUCCESS", "e.parquet", ".f.parquet"}


@pytest.mark.parametrize("format", ["delta", "iceberg"])
def test_a_data_file_of_a_table_is_not_replaced_by_a_single_file(format, tmp_path):
    table, other, lines = tmp_path / "t", tmp_path / "other.parquet", tmp_path / "in.ndjson"
    pv.write(table, rows({"a": 1}), format=format)
    pv.write(other, rows({"a": 2}))
    lines.write_text("3\n")
    (data,) = table.rglob("*.parquet")
    for replace in (
        lambda: pv.write(data, rows({"a": 2}), mode="overwrite"),
        lambda: pv.open(other).rewrite(data, mode="overwrite"),
        lambda: pv.ingest(lines, data, mode="overwrite", one_file=True),
        lambda: pv.open(data).annotate(),
    ):
        with pytest.raises(pv.VariantFileError, match="is inside the table") as caught:
            replace()
        assert caught.value.reason == "bad-option"
    assert pv.open(table).read().to_pylist() == [{"a": 1}]


def _changed_once(monkeypatch: pytest.MonkeyPatch, module: str, name: str, change: Callable[[], object]) -> None:
    """Let another job change a directory after the first call of a function, which lists its files or plans."""
    function, calls = getattr(import_module(module), name), []

    def called(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        calls.append(name)
        if len(calls) == 1:
            change()
        return result

    monkeypatch.setattr(import_module(module), name, called)


READS: dict[str, tuple[str, str, Callable[[Path], Iterable[Any]]]] = {
    "to_arrow": ("files.parquet.reading.read", "locate", lambda path: pv.open(path).to_arrow()["k"]),
    "read": (
        "files.parquet.reading.read",
        "locate",
        lambda path: [row["n"] for row in pv.open(path).read().to_pylist()],
    ),
    "scan": ("files.parquet.scanning.scan", "locate", lambda path: pv.open(path).scan({"n": "$.n:int"}).to_arrow()[0]),
    "sql of a table": (
        "sql_query.sql",
        "plan_sql",
        lambda path: pv.sql("SELECT v:n::int FROM t", t=path).to_arrow()[0],
    ),
    "sql of a path": ("sql_query.sql", "plan_sql", lambda path: pv.sql(f"SELECT k FROM '{path}'").to_arrow()[0]),
}


@pytest.mark.parametrize("read", READS)
def test_files_that_an_overwrite_replaces_meanwhile_are_listed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    module, name, rows_of = READS[read]
    if name == "plan_sql":
        pytest.importorskip("duckdb")

    def ingest(number: int, mode: str) -> None:
        (tmp_path / "rows.ndjson").write_text(f'{{"k": {number}, "n": {number}}}\n')
        pv.ingest(tmp_path / "rows.ndjson", tmp_path / "t", schema="k bigint, n bigint", columns=["k"], mode=mode)

    ingest(7, "error")
    _changed_once(monkeypatch, f"parquet_variant.{module}", name, lambda: ingest(1, "overwrite"))
    assert [int(str(value)) for value in rows_of(tmp_path / "t")] == [1]


def test_an_optimize_is_planned_again_if_another_one_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    for number in range(3):
        pv.write(path / f"{number}.parquet", rows({"n": number}))
    optimize = pv.open(path).optimize
    _changed_once(monkeypatch, "parquet_variant.files.parquet.operations.rewrite", "pack_files", optimize)
    assert optimize().files_removed == 0
    assert len(list(path.glob("*.parquet"))) == 1
    assert sorted(row["n"] for row in pv.open(path).read().to_pylist()) == [0, 1, 2]


def test_a_directory_with_files_of_two_formats_is_refused(tmp_path):
    pv.write(tmp_path / "day=1" / "a.parquet", rows({"a": 1}))
    pv.write(tmp_path / "b.vortex", rows({"a": 2}))
    (tmp_path / "x.json").write_text('{"a": 3}')
    for read in (
        lambda: pv.open(tmp_path),
        lambda: pv.open(tmp_path.as_uri()),
        lambda: len(pv.open(tmp_path, format="parquet")),
        lambda: pv.open(tmp_path, format="vortex").read(),
        lambda: pv.sql(f"SELECT * FROM '{tmp_path}'"),
        lambda: pv.ingest(tmp_path / "x.json", tmp_path, mode="append"),
        lambda: pv.ingest(tmp_path / "x.json", tmp_path, mode="append", format="vortex"),
    ):
        with pytest.raises(pv.VariantError, match=r"day=1/a\.parquet.*b\.vortex") as caught:
            read()
        assert caught.value.reason == "two-formats"
    (tmp_path / "_b.vortex").write_bytes((tmp_path / "b.vortex").read_bytes())
    assert len(pv.open(f"{tmp_path}/**/*.parquet")) == len(pv.open(f"{tmp_path}/*.vortex")) == 1
    (tmp_path / "b.vortex").unlink()
    assert pv.open(tmp_path).format == "parquet"


@pytest.mark.parametrize(
    "read",
    [
        lambda scan: [row for part in scan.batches() for row in part.to_pylist()],
        lambda scan: scan.to_arrow().to_pylist(),
        lambda scan: pa.table(scan).to_pylist(),
    ],
)
def test_a_scan_is_planned_again_if_its_files_are_replaced_before_the_first_rows(read, tmp_path):
    pv.write(tmp_path / "a.parquet", rows({"a": 1}), schema="a int")
    scan = pv.open(tmp_path).scan({"a": "$.a:int"}, "v:b > 5")
    everything = pv.open(tmp_path).scan({"a": "$.a:int"})
    pv.open(tmp_path).overwrite(rows({"a": 2, "b": "5"}, {"a": 3, "b": 7}))
    assert read(everything) == [{"a": 2}, {"a": 3}]
    with pytest.warns(UserWarning) as caught:
        read(scan)
    assert len(caught) == 1


def test_a_query_by_paths_lists_a_directory_again_if_it_is_overwritten(tmp_path, monkeypatch, capsys):
    pv.write(tmp_path / "a.parquet", rows({"a": 1}), schema="a int")
    begun = pv.Scan.begun

    def overwritten(scan):
        monkeypatch.undo()
        pv.open(tmp_path).overwrite(rows({"a": 2}))
        return begun(scan)

    monkeypatch.setattr(pv.Scan, "begun", overwritten)
    assert main(["query", str(tmp_path), "--select", "a=$.a:int", "--json"]) == 0
    assert capsys.readouterr().out == '{"a":2}\n'


@pytest.mark.parametrize("kinds", [("parquet", "vortex"), ("vortex", "parquet")])
def test_files_are_not_rewritten_into_a_directory_with_files_of_the_other_format(kinds, tmp_path):
    source, dest = (tmp_path / kind for kind in kinds)
    for folder in (source, dest):
        pv.write(folder / f"a.{folder.name}", rows({"a": 1}))
    with pytest.raises(pv.VariantError, match=r"Parquet files .* and Vortex files") as caught:
        pv.open(source).rewrite(dest, format=kinds[0], mode="overwrite")
    assert caught.value.reason == "two-formats" and len(list(dest.iterdir())) == 1
    with pytest.raises(pv.VariantError, match=r"Parquet files .* and Vortex files"):
        pv.open(source).rewrite(source, format=kinds[1])
    pv.open(source).rewrite(dest, format=kinds[1], mode="overwrite")
    assert pv.open(dest).read().to_pylist() == [{"a": 1}]


def test_an_append_finds_the_files_again_that_a_commit_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pv.write(tmp_path / "a.parquet", {"k": [1]})
    found = [locate(tmp_path)]
    (tmp_path / "a.parquet").rename(tmp_path / "b.parquet")
    monkeypatch.setattr(parquet, "locate", lambda path: found.pop() if found else locate(path))
    pv.open(tmp_path).append({"k": [2]})
    assert not found and sorted(pv.open(tmp_path).to_arrow()["k"].to_pylist()) == [1, 2]
