"""Rows that change at the command line."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import parquet_variant as pv
from parquet_variant.cli.app import main

Run = Callable[..., Any]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = pv.parse_json([json.dumps({"n": n}) for n in range(6)])
    pv.write(tmp_path / "t", {"k": list(range(6)), "v": rows}, format="delta")
    return tmp_path / "t"


def test_erase_without_an_answer_names_the_option(variant: Run, table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    done = variant("erase", table, "--where", "k = 4")
    assert done.code == 2
    assert "standard input is empty and cannot confirm: add --yes (see variant erase --help)" in done.err
    assert len(pv.open(table).read()) == 6
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert variant("erase", table, "--where", "k = 4").code == 0
    assert len(pv.open(table).read()) == 5
    for condition, reason in (("v:n = '4'", "not compared"), ("v:zzz = 4", "no row has the path v:zzz")):
        for option in ("--yes", "--dry-run"):
            done = variant("erase", table, "--where", condition, option)
            assert done.code == 1 and reason in done.error and "; pass --force if the condition is right" in done.error


def test_validate_accepts_what_delta_tables_are_written_with(variant: Run, tmp_path: Path) -> None:
    pv.write(tmp_path / "t", {"v": pv.parse_json(["{}", "null", "[]"])}, format="delta")
    done = variant("validate", tmp_path / "t")
    assert done.code == 0 and "1 file, 3 rows: valid" in done.out, done.out


def test_delete_update_and_merge(variant: Run, table: Path, tmp_path: Path) -> None:
    done = variant("delete", table, "--where", "v:n::int = 5")
    assert done.code == 0, done.err
    assert "1 row deleted; 1 of 1 file opened" in done.out
    done = variant("update", table, "--set", "v:s='q'", "--set", "k=k + 10", "--where", "k = 4", "--json")
    assert (done.code, done.json["rows_updated"]) == (0, 1)
    pv.write(tmp_path / "s", {"k": [1, 77], "v": pv.parse_json(["true", "null"])}, format="delta")
    more = {"k": [1], "x": [1]}
    pv.write(tmp_path / "more", more, format="delta")
    done = variant("merge", table, tmp_path / "more", "--on", "target.k = source.k", "--matched", "update")
    assert "column 'x' is not in the table: name columns with --set" in done.error
    on = "target.k = source.k"
    done = variant("merge", table, tmp_path / "s", "--on", on, "--matched", "update", "--insert", "--json")
    assert (done.code, done.json["rows_updated"], done.json["rows_inserted"]) == (0, 1, 1)
    assert sorted(pv.open(table).to_arrow()["k"].to_pylist()) == [0, 1, 2, 3, 14, 77]
    assert {"n": 4, "s": "q"} in pv.open(table).read().to_pylist()


@pytest.mark.parametrize(
    "words",
    [
        ("delete",), ("delete", "--where", "k = 1", "--all"), ("update", "--set", "k", "--all"),
        ("update", "--set", "k=1"), ("update", "--all"),
    ],
)  # fmt: skip
def test_ambiguous_options_are_refused(variant: Run, table: Path, words: tuple[str, ...]) -> None:
    assert variant(words[0], table, *words[1:]).code == 2
    assert pv.open(table).snapshot.version == 0


def test_a_condition_that_cannot_be_read_is_one_line(variant: Run, table: Path) -> None:
    done = variant("delete", table, "--where", "nowhere = 1")
    assert (done.code, "nowhere" in done.error) == (1, True)


def test_clauses_of_a_merge_have_conditions_and_a_dry_run_changes_nothing(tmp_path, capsys):
    table, news = tmp_path / "t", tmp_path / "news.ndjson"
    pv.write(table, pv.parse_json(['{"id":1,"n":1}', '{"id":2,"n":9}']), format="delta")
    news.write_text('{"id":1,"n":5}\n{"id":2,"n":5}\n{"id":3,"n":5}\n{"id":4,"n":0}\n')
    words = ["merge", str(table), str(news), "--on", "target.v:id::int = source.v:id::int", "--matched", "update"]
    words += ["--matched-where", "source.v:n > target.v:n", "--insert", "--insert-where", "source.v:n > 0"]
    assert main([*words, "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert "1 row updated, 1 row inserted" in printed
    assert "dry run" in printed
    assert len(pv.open(table).read()) == 2
    assert main(words) == 0
    assert sorted((row["id"], row["n"]) for row in pv.open(table).read().to_pylist()) == [(1, 5), (2, 9), (3, 5)]
    assert main([*words[:5], "--matched-where", "TRUE"]) == 2


def test_a_merge_of_json_fills_columns_from_keys(variant: Run, tmp_path: Path) -> None:
    """As every night: rows of an export into a table whose keys are columns."""
    first, news = tmp_path / "a.ndjson", tmp_path / "b.ndjson"
    first.write_text('{"id":1,"at":"2026-01-01T00:00:00Z","s":"x"}\n{"id":2,"at":"2026-01-01T00:00:00Z","s":"x"}\n')
    news.write_text('{"id":2,"at":"2026-01-02T00:00:00Z","s":"y"}\n{"id":3,"at":"no time","s":"z"}\n')
    table, types = tmp_path / "t", {"$.at": "timestamp!"}
    pv.ingest(first, table, format="delta", columns=["id", "at"], types=types)
    words = ["merge", table, news, "--on", "id", "--matched", "update", "--insert"]
    assert "inserted rows of JSON have NULL in id, at: use --columns" in variant(*words).err
    done = variant(*words, "--columns", "id, at", "--matched-where", "source.at > target.at", "--json")
    assert (done.code, done.json["rows_updated"], done.json["rows_inserted"]) == (0, 1, 1), done.err
    rows = pv.sql("SELECT id, day(at) AS day, v FROM t ORDER BY id", t=table).to_pylist()
    assert [(row["id"], row["day"], row["v"]) for row in rows] == [
        (1, 1, '{"s":"x"}'), (2, 2, '{"s":"y"}'), (3, None, '{"at":"no time","s":"z"}'),
    ]  # fmt: skip
    news.write_text('{"Id":7}\n')
    assert "did you mean Id?" in variant(*words, "--columns", "id").error
    assert len(pv.open(table).read()) == 3


def test_a_merge_reads_standard_input_and_pipes(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--on", "target.v:n::int = source.v:n::int", "--matched", "update", "--set", "k=k + 100"]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b'{"n": 2}\n'), isatty=lambda: False))
    assert main(["merge", str(table), "-", *words]) == 0
    os.mkfifo(pipe := tmp_path / "pipe")
    writer = threading.Thread(target=pipe.write_text, args=('{"n": 3}\n',))
    writer.start()
    assert main(["merge", str(table), str(pipe), *words]) == 0
    writer.join()
    assert sorted(pv.open(table).to_arrow()["k"].to_pylist()) == [0, 1, 4, 5, 102, 103]
    assert "1 row updated" in capsys.readouterr().out


@pytest.mark.parametrize("columns", [None, "id"])
def test_a_merge_reads_rows_inside_documents(variant: Run, tmp_path: Path, columns: str | None) -> None:
    table, pages = tmp_path / "orders", tmp_path / "pages.json"
    pages.write_text('{"orders": [{"id": 1, "a": 9}, {"id": 7, "a": 1}]}\n')
    options = {} if columns is None else {"columns": [columns]}
    pv.ingest([{"id": 1, "a": 2}, {"id": 2, "a": 3}], table, format="delta", **options)
    merge = ["merge", table, pages, "--on", columns or "v:id", "--matched", "update", "--insert"]
    merge += [] if columns is None else ["--columns", columns]
    if columns is None:
        done = variant(*merge, "--dry-run")
        assert "the key of every row in source is NULL: check the path; --root '$.items[*]' names" in done.err
    assert variant(*merge, "--root", "$.orders[*]").code == 0
    rows = pv.sql(
        "SELECT id, v:a::int AS a FROM t" if columns else "SELECT v:id::int AS id, v:a::int AS a FROM t", t=table
    )
    assert sorted(row["id"] * 10 + row["a"] for row in rows.to_pylist()) == [19, 23, 71]


def test_merges_of_csv_parse_the_json_in_variant_columns(variant: Run, table: Path, tmp_path: Path) -> None:
    news = tmp_path / "news.csv"
    news.write_text('k,v\n1,"{""n"": 22}"\n2,""\n9,"[1, {}]"\n')
    assert variant("merge", table, news, "--on", "k", "--matched", "update", "--insert").code == 0
    rows = {row["k"]: row["v"] for row in pv.open(table).scan().to_pylist()}
    assert (rows[1], rows[2], rows[9]) == ({"n": 22}, None, [1, {}])
    pv.open(table).merge(str(news), "k").when_matched_update({"v": "source.v"}).execute()  # the path, in Python
    assert {row["k"]: row["v"] for row in pv.open(table).scan().to_pylist()} == rows
    news.write_text("k,v\n1,{}\n2,plain\n")
    done = variant("merge", table, news, "--on", "k", "--matched", "update")
    assert done.code == 1 and "column v: unexpected 'plain'" in done.error and "row 1" in done.error
