"""Bad input at the command line: exit code 1 and one line that says what to do, never a traceback, nothing written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv

Run = Callable[..., Any]


def test_truncated_json(variant: Run, tmp_path: Path) -> None:
    source = tmp_path / "cut.json"
    source.write_text('{"a": 1}\n{"a": [1, 2')
    done = variant("ingest", source, tmp_path / "out")
    assert done.code == 1
    assert "line 2: unexpected end of the text: expected" in done.error
    assert "--on-error quarantine" in done.error
    assert str(source) in done.error
    assert not (tmp_path / "out").exists()


def test_a_bad_element_of_an_array(variant: Run, tmp_path: Path) -> None:
    source = tmp_path / "array.json"
    source.write_text('[{"a": 1},\n\n{"a": tru}]')
    assert "element 2: unexpected 'tru'" in variant("ingest", source, tmp_path / "out").error


def test_invalid_utf8(variant: Run, tmp_path: Path) -> None:
    source = tmp_path / "latin1.json"
    source.write_bytes('{"name": "Málaga"}\n'.encode("latin-1"))
    done = variant("ingest", source, tmp_path / "out")
    assert done.code == 1
    assert "line 1: the string is not UTF-8" in done.error
    assert not (tmp_path / "out").exists()


def test_quarantine_takes_both_and_says_where(variant: Run, tmp_path: Path) -> None:
    source = tmp_path / "mixed.json"
    source.write_bytes(b'{"a": 1}\n{"a":\n{"a": "\xe1"}\n')
    done = variant("ingest", source, tmp_path / "out", "--on-error", "quarantine")
    assert done.code == 0
    assert "1 row in 1 file" in done.out
    assert f"2 bad lines in {tmp_path}/out/_bad_records" in done.out
    assert variant("cat", tmp_path / "out").rows == [{"a": 1}]


@pytest.mark.parametrize("command", ["ingest", "infer"])
def test_an_empty_file(variant: Run, tmp_path: Path, command: str) -> None:
    source = tmp_path / "empty.json"
    source.touch()
    done = variant(command, source, *([tmp_path / "out"] if command == "ingest" else []))
    assert done.code == 1
    assert f"no JSON value in {source}" in done.error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("command", ["inspect", "cat", "validate", "infer", "ingest", "rewrite", "query"])
def test_a_directory_without_files(variant: Run, tmp_path: Path, command: str) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    done = variant(*words_for(command, empty, tmp_path))
    assert done.code == 1
    assert f"the directory {empty} " in done.error


@pytest.mark.parametrize("command", ["inspect", "cat", "validate", "infer", "ingest", "rewrite", "query"])
def test_a_missing_path(variant: Run, tmp_path: Path, command: str) -> None:
    done = variant(*words_for(command, tmp_path / "nope", tmp_path))
    assert done.code == 1
    assert f"{tmp_path}/nope does not exist: check the path" in done.error


@pytest.mark.parametrize("command", ["inspect", "cat", "validate", "rewrite", "query"])
@pytest.mark.parametrize("data", [b"", b"PAR1", b"not a Parquet file", b"PAR1" + b"\xff" * 40 + b"PAR1"])
def test_a_file_that_is_not_parquet(variant: Run, tmp_path: Path, command: str, data: bytes) -> None:
    source = tmp_path / "some.parquet"
    source.write_bytes(data)
    done = variant(*words_for(command, source, tmp_path))
    assert done.code == 1
    assert str(source) in done.error


@pytest.mark.parametrize("command", ["inspect", "cat", "validate", "query", "rewrite"])
def test_a_parquet_file_without_a_variant_column(variant: Run, tmp_path: Path, command: str) -> None:
    source = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"id": [1], "name": ["x"]}), source)
    done = variant(*words_for(command, source, tmp_path))
    assert done.code == 1
    assert "no Variant column: its columns are id, name; make one from JSON" in done.error
    assert str(source) in done.error


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["query", "{table}", "--select", "m=v:properties.mag"], "or use a path, such as $.properties.mag"),
        (["query", "{table}", "SELECT 1 FROM t WHERE v:properties.time > '2026-01-02'"], "epoch_ms(v:properties.time)"),
        (["loads", "{table}"], "hint: no file is recorded: `variant ingest --only-new`"),
        (["compat", "{json}"], "sample.ndjson is not a local Parquet or Vortex file or directory, or a Delta"),
        (["rewrite", "{table}", "{out}", "--schema", "a.b int"], "a field of an object is written a struct<b: int>"),
    ],
    ids=["path of SQL", "date and number", "loads", "compat", "schema"],
)
def test_a_mistake_names_what_to_write(
    variant: Run, tmp_path: Path, earthquakes: Path, usgs_sample: Path, words: list[str], shown: str
) -> None:
    json = tmp_path / "sample.ndjson"
    json.write_bytes(usgs_sample.read_bytes())
    done = variant(*(word.format(table=earthquakes, json=json, out=tmp_path / "out") for word in words))
    assert shown in done.err


def test_a_merge_of_json_into_a_table_with_other_columns(variant: Run, tmp_path: Path) -> None:
    table, source, staged = tmp_path / "table", tmp_path / "a.ndjson", tmp_path / "staged"
    source.write_text('{"id": 1, "n": 2}')
    assert variant("ingest", source, table, "--format", "delta", "--columns", "id").code == 0
    done = variant("merge", table, source, "--on", "target.id = source.v:id::bigint", "--insert", "--dry-run")
    assert "inserted rows of JSON have NULL in id: use --columns" in done.err
    assert variant("ingest", source, staged, "--columns", "id").code == 0
    done = variant("merge", table, staged, "--on", "id", "--matched", "update", "--insert")
    assert (done.code, done.err) == (0, "")


def test_a_parquet_file_among_json(variant: Run, tmp_path: Path) -> None:
    source = tmp_path / "plain.parquet"
    pq.write_table(pa.table({"id": [1]}), source)
    done = variant("ingest", source, tmp_path / "out")
    assert done.code == 1
    assert f"{source} is a Parquet file, not JSON" in done.error
    pv.write(tmp_path / "v.parquet", pv.from_python([{"a": 1}]))
    for options in ((), ("--json-column", "v")):
        assert "`variant rewrite`" in variant("ingest", tmp_path / "v.parquet", tmp_path / "out", *options).error
    done = variant("ingest", tmp_path / "v.parquet", tmp_path / "out", "--json-column", "v")
    assert "column v contains Variants, not JSON text" in done.error


def test_a_destination_inside_a_file(variant: Run, tmp_path: Path) -> None:
    source = tmp_path / "a.ndjson"
    source.write_text('{"a": 1}\n')
    (tmp_path / "plain").write_text("")
    said = f"'{tmp_path / 'plain'}' is a file or inside a file; choose another path"
    for destination in ("plain/x.parquet", "plain/t"):
        done = variant("ingest", source, tmp_path / destination)
        assert done.code == 1 and said in done.error and "free some space" not in done.error
    assert said in variant("query", source, "SELECT v:a FROM t", "-o", tmp_path / "plain/x.csv").error


def test_a_destination_that_cannot_be_made(variant: Run, tmp_path: Path, usgs_sample: Path) -> None:
    done = variant("ingest", usgs_sample, "/proc/nowhere/out")
    assert done.code == 1
    assert "'/proc/nowhere'" in done.error
    assert "create the directory" in done.error


def test_a_destination_that_exists(variant: Run, tmp_path: Path, earthquakes: Path, usgs_sample: Path) -> None:
    file = tmp_path / "file"
    file.write_text("precious")
    for dest in (earthquakes, file):
        done = variant("ingest", usgs_sample, dest)
        assert done.code == 1
        assert str(dest) in done.error
    assert file.read_text() == "precious"
    (parquet,) = earthquakes.glob("*.parquet")
    before = parquet.read_bytes()
    done = variant("rewrite", earthquakes, parquet.parent)
    assert done.code == 1
    assert "exists" in done.error
    assert parquet.read_bytes() == before


def test_errors_for_machines_are_json(variant: Run, tmp_path: Path) -> None:
    source = tmp_path / "bad.json"
    source.write_text("{\n")
    done = variant("ingest", source, tmp_path / "out", "--json")
    error = json.loads(done.err)["error"]
    assert (done.code, error["file"], error["reason"]) == (1, str(source), "unexpected-end")


def test_options_that_do_not_fit_are_named(variant: Run, tmp_path: Path, earthquakes: Path, usgs_sample: Path) -> None:
    out = tmp_path / "out"
    cases = [
        (["ingest", usgs_sample, out, "--policy", "nope"], 1, "unknown policy 'nope'"),
        (["ingest", usgs_sample, out, "--schema", "a nonsense"], 1, "nonsense"),
        (["ingest", usgs_sample, out, "--schema", "missing.ddl"], 1, "schema file missing.ddl"),
        (["ingest", usgs_sample, out, "--schema", "a bigin"], 1, "--schema: unknown type 'bigin'"),
        (["infer", usgs_sample, "--against", "$.id"], 1, "--against: unexpected '$' in a type"),
        (["ingest", usgs_sample, out, "--compression", "nope"], 1, "nope"),
        (["query", earthquakes, "-s", "mag=$.properties["], 1, "$.properties["),
        (["query", earthquakes, "-s", "mag=$.a:nope"], 1, "nope"),
        (["query", earthquakes, "-s", "nope"], 1, "no column nope"),
        (["query", earthquakes, "-s", "$.a", "-s", "$.b.a"], 1, "two columns have the name 'a'"),
        (["query", earthquakes, "-s", "$.a:int", "-w", "a >"], 1, "an operand is missing"),
        (["cat", earthquakes, "--column", "nope"], 1, "nope is not a Variant column: choose from v"),
        (["rewrite", earthquakes, out, "--schema", "a int", "--reinfer"], 2, "exclude each other"),
    ]
    for words, code, text in cases:
        done = variant(*words)
        assert done.code == code, words
        assert text in done.error, words
        assert not out.exists(), words


def words_for(command: str, source: Path, tmp_path: Path) -> list[object]:
    match command:
        case "ingest" | "rewrite":
            return [command, source, tmp_path / "out"]
        case "query":
            return [command, source, "--select", "a=$.a:int"]
        case _:
            return [command, source]
