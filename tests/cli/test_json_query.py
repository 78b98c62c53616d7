"""`variant query` on JSON that was never ingested: a file, several, compressed, standard input; SQL and paths."""

from __future__ import annotations

import gzip
import io
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv

Run = Callable[..., Any]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "rows.ndjson"
    file.write_text('{"n": 1, "s": "a"}\n{"n": 5, "s": "b"}\n{"s": "c"}\n')
    return file


def test_paths_and_sql_give_what_they_give_of_parquet(variant: Run, source: Path) -> None:
    done = variant("query", source, "-s", "n=$.n:int", "-s", "s=$.s:string", "-w", "n > 1", "--json")
    assert done.rows == [{"n": 5, "s": "b"}]
    assert variant("query", source, "SELECT max(v:n::int) AS n FROM t", "--json").rows == [{"n": 5}]
    assert variant("query", f"SELECT count(*) AS c FROM '{source}'", "--json").rows == [{"c": 3}]


def test_compressed_and_pretty_printed(variant: Run, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.json.gz", "wt") as file:
        file.write('{\n  "n": 1\n}\n{\n  "n": 2\n}\n')
    done = variant("query", tmp_path / "a.json.gz", "-s", "n=$.n:int", "--json")
    assert done.rows == [{"n": 1}, {"n": 2}]


def test_standard_input(variant: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'[{"n": 7}, {"n": 8}]')))
    assert variant("query", "-", "-s", "n=$.n:int", "--json").rows == [{"n": 7}, {"n": 8}]


def test_a_bad_line_is_an_error(variant: Run, source: Path) -> None:
    with source.open("a") as file:
        file.write('{"n":\n')
    assert "line 4" in variant("query", source, "-s", "n=$.n:int").error


def test_python(source: Path) -> None:
    assert pv.sql(f"SELECT sum(v:n::int) AS n FROM '{source}'").to_pylist() == [{"n": 6}]
    assert pv.sql("SELECT count(*) AS c FROM t", t=source).to_pylist() == [{"c": 3}]


def test_columns_roots_and_csv_at_the_command_line(variant: Run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id;payload\n1;"{""n"": 1}"\n2;\n')
    words = (tmp_path / "a.csv", "--json-column", "payload", "--parse", "delimiter=;")
    assert variant("infer", *words, "--ddl").out == "n bigint\n"
    variant("ingest", *words[:1], tmp_path / "out", *words[1:])
    assert variant("cat", tmp_path / "out").rows == [{"id": "1", "payload": {"n": 1}}, {"id": "2", "payload": None}]
    (tmp_path / "w.json").write_text('{"items": [{"n": 1}, {"n": 2}]}')
    variant("ingest", tmp_path / "w.json", tmp_path / "w", "--root", "$.items[*]")
    assert variant("cat", tmp_path / "w").rows == [{"n": 1}, {"n": 2}]
    variant("ingest", tmp_path / "a.csv", tmp_path / "c", "--input-format", "csv", "--parse", "delimiter=;")
    assert variant("cat", tmp_path / "c").rows[0] == {"id": 1, "payload": '{"n": 1}'}


def test_cat_and_explore_take_json(variant: Run, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert variant("cat", source, "--limit", "1", "--threads", "1").rows == [{"n": 1, "s": "a"}]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'[{"n": 7}, {"n": 8}]')))
    assert variant("cat", "-").rows == [{"n": 7}, {"n": 8}]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'[{"n": 7}, {"n": 8}]')))
    assert variant("explore", "-", "--json").json["rows"] == 2


def test_pipes_are_read_by_every_command(variant: Run, tmp_path: Path) -> None:
    for number, words in enumerate([["cat", "{}"], ["query", "{}", "SELECT v:n FROM t"], ["infer", "{}", "--ddl"]]):
        pipe = tmp_path / f"pipe{number}"
        os.mkfifo(pipe)
        thread = threading.Thread(target=pipe.write_bytes, args=[b'{"n": 7}\n'])
        thread.start()
        done = variant(*(str(pipe) if word == "{}" else word for word in words))
        thread.join()
        assert done.code == 0 and ("7" in done.out or "n bigint" in done.out)


def test_milliseconds_that_are_read_as_seconds_are_reported(variant: Run, tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"ts":1700000000000}\n')
    done = variant("query", tmp_path / "a.ndjson", "-s", "at=$.ts:timestamp", "--json")
    assert "times after the year 9999" in done.err and len(done.rows) == 1
