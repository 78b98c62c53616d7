"""`variant diff`: any two sides of one table or of two paths, its three exit codes, and hidden values."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv

Run = Callable[..., Any]


@pytest.fixture
def lines(tmp_path: Path) -> tuple[Path, Path]:
    """Two days of events; on the second, ids are strings."""
    files = tmp_path / "a.ndjson", tmp_path / "b.ndjson"
    for number, file in enumerate(files):
        rows = [{"id": str(n) if number else n, "day": f"2026-01-3{number}", "secret": "s3cr3t"} for n in range(40)]
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return files


def test_versions_times_and_partitions_of_a_table(variant: Run, lines: tuple[Path, Path], tmp_path: Path) -> None:
    table, first, second = tmp_path / "t", *lines
    pv.ingest(first, table, format="delta", partition_by="day=$.day:date")
    pv.ingest(second, table, format="delta", mode="append", partition_by="day=$.day:date")
    expected = [("$['id']", "type")]
    for options, count in (
        (["--version", "0"], 40),
        (["--version", "0", "--version", "1"], 40),
        (["--partition", "day=2026-01-30", "--partition", "day=2026-01-31"], 40),
    ):
        result = variant("diff", table, *options, "--json")
        assert result.code == 1, result.err
        findings = result.json["findings"]
        assert [(finding["path"], finding["change"]) for finding in findings] == expected
        assert findings[0]["count"] == count
    newest = pv.open(table).history()[0]["timestamp"].isoformat()
    assert variant("diff", table, "--version", "1", "--at", newest).code == 0
    assert variant("diff", table, "--at", newest).out.endswith("no differences\n")


def test_files_of_two_formats_and_standard_input(
    variant: Run, lines: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = lines
    pv.ingest(first, tmp_path / "p")
    pv.ingest(second, tmp_path / "i", format="iceberg")
    assert variant("diff", first, tmp_path / "p").code == 0
    result = variant("diff", tmp_path / "p", tmp_path / "i", "--ignore", "$.day")
    assert result.code == 1
    assert "type  $.id: integer -> string (40 values) [values]" in result.out
    assert "+ row 0 of " in result.out
    hidden = variant("diff", first, second, "--no-values")
    assert hidden.code == 1
    assert "row 0" in hidden.out
    assert '"0"' not in hidden.out


def test_wrong_usage_is_not_a_difference(variant: Run, lines: tuple[Path, Path], tmp_path: Path) -> None:
    first, second = map(str, lines)
    for words, message in (
        ([first], "one path: give a second one"),
        ([first, second, first], "3 paths: give two"),
        ([first, second, "--version", "1"], "given once for two paths"),
        ([first, second, "--partition", "day"], "invalid --partition 'day': write NAME=VALUE"),
        ([first, second, "--factor", "1"], "factor is 1.0: it must be above 1"),
        ([first, str(tmp_path / "missing")], "does not exist"),
        ([first, "--version", "1"], "has no versions"),
    ):
        result = variant("diff", *words)
        assert result.code == 2, words
        assert message in result.error
