"""The words of the command line: help without words, errors as JSON, hints as options, limits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.mark.parametrize("words", [[], ["table"]])
def test_no_words_are_a_question_for_help(variant: Run, words: list[str]) -> None:
    done = variant(*words)
    assert (done.code, done.err) == (0, "")
    assert "Commands:" in done.out


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        (["query", "--json"], 2, "usage"),
        (["--json", "nope"], 2, "usage"),
        (["inspect", "no-such.parquet", "--json"], 1, "no-such-file"),
        (["infer", "no-such.json", "--json", "--set", "min_row_share=2"], 1, "bad-policy"),
    ],
)
def test_every_error_is_json_where_json_was_asked_for(variant: Run, words: list[str], code: int, reason: str) -> None:
    done = variant(*words)
    assert (done.code, done.out) == (code, "")
    assert json.loads(done.err)["error"]["reason"] == reason


def test_a_hint_is_an_option(variant: Run, tmp_path: Path) -> None:
    source = tmp_path / "bad.ndjson"
    source.write_text('{"a": 1}\n{"a":\n')
    assert "--on-error quarantine" in variant("ingest", source, tmp_path / "out").error


@pytest.mark.parametrize("limit", [0, 1, 3, 5000])
def test_cat_stops_at_its_limit(variant: Run, earthquakes: Path, limit: int) -> None:
    whole = variant("cat", earthquakes).out.splitlines()
    assert variant("cat", earthquakes, "--limit", limit).out.splitlines() == whole[:limit]


@pytest.mark.parametrize(
    ("policy", "setting"),
    [
        ("auto", "min_row_share=2"),
        ("auto", "max_columns=-1"),
        ("auto", "max_depth=1.5"),
        ("auto", "min_type_share=true"),
        ("auto", "maps.filled=7"),
        ("spark", "min_share=-0.1"),
    ],
)
def test_a_constant_that_cannot_be_is_refused(variant: Run, usgs_sample: Path, policy: str, setting: str) -> None:
    done = variant("infer", usgs_sample, "--policy", policy, "--set", setting)
    assert done.code == 1
    assert f"{setting.partition('=')[0].rpartition('.')[2]} is " in done.error


def test_threads_are_as_many_as_asked_for(variant: Run, usgs_sample: Path, tmp_path: Path) -> None:
    one = variant("infer", usgs_sample, "--ddl", "--threads", 1)
    assert (one.code, one.out) == (0, variant("infer", usgs_sample, "--ddl", "--threads", 3).out)
    assert variant("ingest", usgs_sample, tmp_path / "out", "--threads", 2).code == 0
    assert variant("ingest", usgs_sample, tmp_path / "no", "--threads", 0).code == 2


def test_a_destination_that_ends_in_parquet_is_one_file(variant: Run, usgs_sample: Path, tmp_path: Path) -> None:
    dest = tmp_path / "q.parquet"
    assert variant("ingest", usgs_sample, dest).code == 0
    assert dest.is_file()
    assert len(variant("cat", dest).rows) == 1707
    done = variant("ingest", usgs_sample, dest)
    assert (done.code, "use --mode overwrite" in done.error) == (1, True)


@pytest.mark.parametrize("hours", ["nan", "inf", "1e300"])
def test_hours_that_are_none_are_wrong_usage(variant: Run, tmp_path: Path, hours: str) -> None:
    result = variant("vacuum", str(tmp_path), "--hours", hours)
    assert result.code == 2
    assert "--hours" in result.err


def test_queries_that_are_not_there_tell_no_secret(variant: Run, usgs_sample: Path) -> None:
    words = ("--policy", "workload", "--queries", "https://user:hidden@host/q.sql?sig=hidden")
    result = variant("infer", str(usgs_sample), *words)
    assert result.code == 1
    assert "hidden" not in result.err


def test_an_ingest_reports_in_few_lines_or_not_at_all(variant: Run, usgs_sample: Path, tmp_path: Path) -> None:
    done = variant("ingest", usgs_sample, tmp_path / "out")
    assert done.code == 0
    assert len(done.out.splitlines()) <= 3
    assert "30 typed columns: " in done.out
    assert f"variant inspect {tmp_path / 'out'}" in done.out
    quiet = variant("ingest", usgs_sample, tmp_path / "quiet", "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")


def test_hints_of_an_ingest_are_options(variant: Run, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps({"items": [{"n": n} for n in range(20)]}))
    (folder / "notes.md").write_text("# Notes\n")
    failed = variant("ingest", folder, tmp_path / "out")
    assert "--exclude '*.md'" in failed.error
    done = variant("ingest", folder, tmp_path / "out", "--exclude", "*.md")
    assert done.code == 0
    assert "variant: hint: " in done.err
    assert "--root '$.items[*]'" in done.err
    assert "--root '$.items[*]'" in variant("infer", folder / "a.json").err
    assert variant("infer", folder / "a.json", "--root", "$.items[*]").err == ""
    for name in ("rows.ndjson", "rows.CSV.gz"):
        assert f"{name} has the name of a JSON or CSV file" in variant("ingest", folder, tmp_path / name).error
    assert variant("ingest", folder, tmp_path / "rows", "--exclude", "*.md", "--root", "$.items[*]").err == ""
    rows, table = tmp_path / "rows.ndjson", tmp_path / "table"
    rows.write_text('{"id": 1, "a b": 2}\n')
    assert variant("ingest", rows, table, "--columns", "id,a b").err == ""
    assert "use --columns 'id,a b'" in variant("ingest", rows, table, "--mode", "append").err


def test_options_and_commands_of_other_tools_name_those_here(variant: Run) -> None:
    assert "(id = 1): choose from --where, --all" in variant("delete", "t", "id = 1").error
    assert "'x' is not an integer" in variant("cat", "t", "--limit", "x").error
    assert "--parse 'delimiter=;'" in variant("ingest", "a.csv", "t", "--delimiter", ";").error
    assert "No such command 'export': use variant query PATH SQL -o out.csv" in variant("export", "t", "x.csv").error


def test_a_merge_on_a_key_of_json_names_the_path(variant: Run, tmp_path: Path) -> None:
    rows, keys, table = tmp_path / "a.ndjson", tmp_path / "a.csv", tmp_path / "t"
    rows.write_text('{"id": 1}\n')
    keys.write_text("id\n1\n")
    variant("ingest", rows, table, "--format", "delta")
    words = [keys, "--matched", "update", "--on", "id"]
    error = variant("merge", table, rows, *words[1:]).error
    assert "no column id: write the path, --on 'v:id', or fill it with" in error
    error = variant("merge", table, *words, "--columns", "id").error
    assert "--columns fills columns from keys of JSON: leave it out for a source that has columns" in error
