"""Requests for deletion, and a first look at data: erase, optimize, explore, typed at a shell."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Sh = Callable[[str], Any]


@pytest.mark.parametrize("layout", ["delta", "iceberg"])
def test_a_person_is_erased_from_a_table(sh: Sh, tmp_path: Path, layout: str) -> None:
    assert sh(f"variant ingest events.ndjson table --format {layout} --compression none").code == 0
    where = "--where \"v:user.name::string = 'u7'\""
    done = sh(f"variant delete table {where} --dry-run")
    assert (done.code, "1 row" in done.out) == (0, True)
    done = sh(f"variant erase table {where} --dry-run")
    assert done.lines[0].startswith("1 row in 1 file of ")
    assert "1 older version removed; nothing was changed" in done.lines[0]
    for option in ("--dry-run", "--yes"):
        done = sh(f"variant erase table --where \"v:usr.name::string = 'u7'\" {option}")
        assert (done.code, "did you mean v:user.name?" in done.err) == (1, True)
    assert len(sh("variant history table").lines) > 1
    done = sh(f"variant erase table {where} --yes")
    assert (done.code, done.lines[-1].startswith("1 row erased from ")) == (0, True)
    files = [path for path in (tmp_path / "table").rglob("*") if path.is_file()]
    assert [path.name for path in files if b'"u7"' in path.read_bytes()] == []
    assert sh(f'variant query table "SELECT count(*) FROM t WHERE {where[9:-1]}"').lines[2:] == ["0"]
    assert json.loads(sh(f"variant erase table {where} --yes --json").out)["rows_erased"] == 0


def test_deleted_rows_remain_on_disk_until_vacuum_and_the_command_says_so(sh: Sh, tmp_path: Path) -> None:
    assert sh("variant ingest events.ndjson table --format delta").code == 0
    done = sh("variant delete table --where 'v:user.id::int < 3'")
    assert "of old files remain in storage until variant vacuum" in done.out
    (tmp_path / "new.ndjson").write_text('{"kind": "new"}\n')
    assert sh("variant ingest new.ndjson table --format delta --mode append").code == 0
    assert "of old files remain in storage until variant vacuum" in sh("variant optimize table").out


def test_a_folder_with_other_files_is_ingested(sh: Sh, tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "a.json").write_text('{"at": "2026-01-02T00:00:00Z", "n": 1}\n{"at": "2026-01-03T00:00:00Z", "n": 2}\n')
    (folder / "README.md").write_text("# Logs\n")
    assert "--exclude '*.md'" in sh("variant ingest logs out").err
    done = sh("variant ingest logs out --exclude '*.md'")
    assert (done.code, done.lines[0].startswith("2 rows in 1 file")) == (0, True)
    assert "--type '$.at:timestamp!'" in done.out
    assert len(done.lines) <= 4
    done = sh("variant ingest 'logs/*.json' typed --type '$.at:timestamp!' --quiet")
    assert (done.code, done.out) == (0, "")
    done = sh("variant query typed \"SELECT n FROM typed(t) WHERE at > TIMESTAMP '2026-01-02 12:00:00+00:00'\"")
    assert done.lines[2:] == ["2"]


def test_a_few_rows_are_not_larger_than_unshredded(sh: Sh, tmp_path: Path) -> None:
    row = {f"key{number}": {"a": number, "b": "x"} for number in range(40)}
    (tmp_path / "few.ndjson").write_text(f"{json.dumps(row)}\n" * 5)
    auto = sh("variant ingest few.ndjson auto --json")
    unshredded = sh("variant ingest few.ndjson unshredded --schema variant --json")
    assert json.loads(auto.out)["bytes_written"] <= json.loads(unshredded.out)["bytes_written"]
    assert "no typed columns: all columns of the schema would make the file" in sh("variant ingest few.ndjson b").out


def test_data_is_explored_before_and_after_an_ingest(sh: Sh, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (tmp_path / "events.ndjson").read_text().splitlines()]
    (tmp_path / "pretty.json").write_text("\ufeff" + "\r\n\r\n".join(json.dumps(row, indent=4) for row in rows))
    assert json.loads(sh("variant explore pretty.json --json").out)["rows"] == 30
    assert sh("variant ingest pretty.json events").code == 0
    done = sh("variant explore events -o page.html")
    assert (done.code, "use --serve for rows and SQL" in done.out) == (0, True)
    assert (tmp_path / "page.html").stat().st_size > 10_000
    assert json.loads(sh("variant explore events --json").out)["rows"] == 30
