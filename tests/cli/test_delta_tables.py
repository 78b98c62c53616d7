"""Delta tables at the command line: in, out, back in time, and care."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv

pytest.importorskip("deltalake", reason="deltalake is not installed")

Run = Callable[..., Any]


@pytest.fixture
def table(variant: Run, tmp_path: Path) -> Path:
    """A table of two versions with rows: 100, then 50 more."""
    source, dest = tmp_path / "a.json", tmp_path / "table"
    for start, stop, mode in ((0, 100, "error"), (100, 150, "append")):
        source.write_text("".join(f'{{"n": {n}, "s": "row {n}"}}\n' for n in range(start, stop)))
        done = variant("ingest", source, dest, "--format", "delta", "--mode", mode, "--json")
        assert (done.code, done.json["rows"]) == (0, stop - start), done.err
    return dest


def numbers(done: Any) -> list[int]:
    assert done.code == 0, done.err
    return sorted(row["n"] for row in done.rows)


def test_cat_reads_any_version(variant: Run, table: Path) -> None:
    assert numbers(variant("cat", table)) == list(range(150))
    newest = variant("history", table, "--json").rows[0]["version"]
    assert numbers(variant("cat", table, "--version", newest - 1)) == list(range(100))
    assert numbers(variant("cat", table, "--column", "v")) == list(range(150))


def test_cat_takes_variant_columns_alone(variant: Run, tmp_path: Path) -> None:
    """As it does of Parquet files: an ordinary column stands in whole rows."""
    pv.write(tmp_path / "t", {"k": pa.array([1]), "v": pv.parse_json(["2"])}, format="delta")
    done = variant("cat", tmp_path / "t", "--column", "k")
    assert (done.code, done.out) == (1, "")
    assert "k is not a Variant column" in done.err


def test_query_prunes_files(variant: Run, table: Path) -> None:
    words = ["query", table, "-s", "n=$.n:bigint", "-w", "n >= 148"]
    assert variant(*words, "--json").rows == [{"n": 148}, {"n": 149}]
    report = variant(*words, "--explain", "--json").json
    assert json.dumps(report)
    assert variant(*words, "--explain").code == 0


def test_inspect_and_validate_take_the_live_files(variant: Run, table: Path) -> None:
    assert variant("inspect", table, "--json").json["files"] == 2
    assert variant("optimize", table).code == 0
    assert variant("inspect", table, "--json").json["files"] == 1
    report = variant("validate", table, "--json").json
    assert (report["ok"], report["files"], report["rows"]) == (True, 1, 150)


def test_a_table_that_is_there_is_not_written_over(variant: Run, table: Path, tmp_path: Path) -> None:
    done = variant("ingest", tmp_path / "a.json", table, "--format", "delta")
    assert (done.code, "Delta table" in done.error) == (1, True)
    done = variant("ingest", tmp_path / "a.json", table, "--format", "parquet", "--mode", "append")
    assert (done.code, "Delta table" in done.error) == (1, True)


def test_optimize_vacuum_history_restore(variant: Run, table: Path) -> None:
    done = variant("optimize", table)
    assert done.code == 0
    assert "2 files" in done.out
    assert "became 1 file" in done.out
    assert variant("optimize", table).out.startswith("nothing to do")
    assert numbers(variant("cat", table)) == list(range(150))

    done = variant("vacuum", table, "--hours", 0)
    assert (done.code, "retention" in done.error) == (1, True)
    assert "2 files would be deleted" in variant("vacuum", table, "--hours", 0, "--force", "--dry-run").out

    versions = [row["version"] for row in variant("history", table, "--json").rows]
    assert versions == sorted(versions, reverse=True)
    assert variant("history", table).out.splitlines()[0].split() == ["version", "timestamp", "operation", "engineInfo"]
    done = variant("restore", table, "--version", versions[-1])
    assert done.code == 0, done.err
    assert numbers(variant("cat", table)) == list(range(100))
    assert variant("restore", table).code == 2


def test_shredding_is_switched_off_and_dropped(variant: Run, table: Path) -> None:
    assert variant("table", "set", table, "delta.enableVariantShredding=false").code == 0
    assert pv.open(table).snapshot.shredding_enabled is False
    done = variant("optimize", table, "--drop-shredding")
    assert done.code == 0, done.err
    assert numbers(variant("cat", table)) == list(range(150))
    (files,) = {column["layouts"].get("unshredded") for column in _live_files(variant, table)}
    assert files
    assert variant("table", "set", table, "delta.enableVariantShredding").code == 2


def test_a_path_that_is_not_a_table_is_named(variant: Run, tmp_path: Path, earthquakes: Path) -> None:
    for command in (["history"], ["vacuum"], ["restore", "--version", 0]):
        done = variant(command[0], earthquakes, *command[1:])
        assert (done.code, str(earthquakes) in done.error) == (1, True), command
    done = variant("query", earthquakes, "-s", "$.id", "--version", 0)
    assert (done.code, "version" in done.error) == (1, True)


@pytest.mark.usefixtures("spark")
def test_optimize_takes_directories_and_tables_to_spark(variant: Run, tmp_path: Path) -> None:
    rows = pv.parse_json([f'{{"n": {n}, "s": "text {n}"}}' for n in range(100)])
    for number in range(2):
        pv.write(tmp_path / "files" / f"{number}.parquet", rows, schema="n bigint")
        pv.write(tmp_path / "table", {"v": rows}, format="delta", mode="append", schema="n bigint")
    for place in ("files", "table"):
        done = variant("optimize", tmp_path / place, "--engine", "spark", "--json")
        assert done.code == 0, done.err
        assert (done.json["files_removed"], done.json["files_added"], done.json["drift"]["pays"]) == (2, 1, True)
        assert len(variant("cat", tmp_path / place).out.splitlines()) == 200
    assert variant("optimize", tmp_path / "table", "--drop-shredding", "--engine", "spark").code == 2


def test_optimize_judges_and_rewrites_a_directory(variant: Run, tmp_path: Path) -> None:
    for number in range(3):
        rows = pv.parse_json([f'{{"n": {n}, "s": "text {n}"}}' for n in range(100)])
        pv.write(tmp_path / f"{number}.parquet", rows, schema="n bigint")
    judged = variant("optimize", tmp_path, "--dry-run").out
    assert judged.startswith("re-shredding pays: it saves ")
    assert "hot  $.s: not shredded -> string" in judged
    done = variant("optimize", tmp_path, "--json").json
    assert (done["files_removed"], done["files_added"], done["drift"]["pays"]) == (3, 1, True)
    assert variant("optimize", tmp_path).out == "nothing to do\n"
    assert variant("optimize", tmp_path, "--drop-shredding").code == 2


@pytest.mark.parametrize("format", ["parquet", "delta", "iceberg"])
def test_reshredding_says_what_changed_and_what_it_saves(variant: Run, tmp_path: Path, format: str) -> None:
    table, old, new = tmp_path / "t", tmp_path / "old.ndjson", tmp_path / "new.ndjson"
    old.write_text("".join(f'{{"n": {n}}}\n' for n in range(200)))
    new.write_text("".join(f'{{"n": {n}, "note": "a longer text {n}"}}\n' for n in range(100)))
    for file, mode in ((old, "error"), (new, "append")):
        words = ("ingest", file, table, "--format", format, "--mode", mode, "--schema", "n bigint")
        assert variant(*words).code == 0
    reported = variant("optimize", table, "--reshred", "--dry-run", "--json").json
    drift = reported["drift"]
    assert reported["files_removed"] == 0
    assert (drift["origin"]["rows"], drift["origin"]["total_rows"], drift["pays"]) == (300, 300, True)
    assert drift["origin"]["since"].startswith("20")
    assert [(found["path"], found["change"]) for found in drift["drifts"]] == [("$['note']", "hot")]
    assert drift["saved_bytes"] == drift["drifts"][0]["bytes_saved"] > 0
    done = variant("optimize", table, "--reshred").out
    assert f"saves {drift['saved_bytes']:,} bytes" in done
    assert "compared with the schema of 300 of 300 rows, in use since 20" in done
    assert variant("optimize", table, "--reshred", "--dry-run").out.startswith("no drift")


def _live_files(variant: Run, table: Path) -> list[dict[str, Any]]:
    (newest,) = sorted(table.glob("*.parquet"), key=lambda file: file.stat().st_mtime)[-1:]
    columns: list[dict[str, Any]] = variant("inspect", newest, "--json").json["columns"]
    return columns


def test_the_preview_name_is_an_option(variant: Run, earthquakes: Path, tmp_path: Path, usgs_sample: Path) -> None:
    made, plain = tmp_path / "made", tmp_path / "plain"
    assert variant("ingest", usgs_sample, made, "--format", "delta", "--preview").code == 0
    assert "variantShredding-preview" in pv.open(made).snapshot.protocol.reader_features
    assert variant("ingest", usgs_sample, tmp_path / "x", "--preview").code == 2
    pv.write(plain, {"v": pv.parse_json(["1"])}, format="delta", properties={"delta.enableVariantShredding": "false"})
    assert variant("table", "set", plain, "delta.enableVariantShredding=true", "--preview").code == 0
    assert "variantShredding-preview" in pv.open(plain).snapshot.protocol.writer_features


def test_the_compression_is_that_of_the_table_unless_an_option_names_one(variant: Run, tmp_path: Path) -> None:
    table, source = tmp_path / "table", tmp_path / "a.ndjson"
    source.write_text('{"a": 1}')
    pv.write(table, pv.parse_json(["1"]), format="delta", properties={"delta.parquet.compression.codec": "snappy"})
    for options, codec in (((), "SNAPPY"), (("--compression", "lz4"), "LZ4"), (("--compression", "zstd"), "ZSTD")):
        before = set(table.glob("*.parquet"))
        assert variant("ingest", source, table, "--format", "delta", "--mode", "append", *options).code == 0
        (added,) = set(table.glob("*.parquet")) - before
        assert pq.ParquetFile(added).metadata.row_group(0).column(0).compression == codec
    for options, message in (
        (("--format", "vortex", "--compression", "zstd"), "--compression applies to Parquet files, not to Vortex"),
        (("--format", "vortex", "--bloom-filter", "$.a"), "--bloom-filter applies to Parquet files, not to Vortex"),
        (("--exact",), "--exact applies to Vortex files"),
    ):
        refused = variant("ingest", source, tmp_path / "x", *options)
        assert refused.code == 2
        assert message in refused.err


def test_rewrite_to_a_table_takes_the_columns_of_all_files_and_directories(variant: Run, tmp_path: Path) -> None:
    for number, rows in enumerate([{"n": [1]}, {"v": pv.parse_json(["{}"]), "n": [2]}, {"x": ["y"], "n": [3]}]):
        pv.write(tmp_path / "files" / f"k={number}" / "a.parquet", rows if number == 1 else pa.table(rows))
    for format in ("delta", "iceberg"):
        assert variant("rewrite", tmp_path / "files", tmp_path / format, "--format", format).code == 0
        table = pv.open(tmp_path / format)
        assert sorted(table.schema.names) == ["k", "n", "v", "x"]
        expected = [(0, 1, None), (1, 2, None), (2, 3, "y")]
        rows = table.to_arrow(["k", "n", "x"]).to_pylist()
        assert sorted((row["k"], row["n"], row["x"]) for row in rows) == expected
    pv.write(tmp_path / "files" / "k=3" / "a.parquet", pa.table({"n": ["three"]}))
    done = variant("rewrite", tmp_path / "files", tmp_path / "other", "--format", "delta")
    assert done.code == 1 and "k=3/a.parquet" in done.err and "cast it in one of the files" in done.err


def test_a_change_names_the_values_that_its_condition_did_not_compare(variant: Run, tmp_path: Path) -> None:
    pv.write(tmp_path / "t", pv.from_python([{"n": 1}, {"n": "1"}]), format="delta")
    done = variant("delete", tmp_path / "t", "--where", "v:n = '1'")
    assert done.code == 0 and done.out.startswith("1 row deleted")
    assert "1 number at v:n was not compared with a string" in done.err
