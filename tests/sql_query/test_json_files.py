"""SQL over JSON files: only the fields that a query names are read, and the rows are those of `read_json`."""

from __future__ import annotations

from pathlib import Path

import pytest

import parquet_variant as pv

ROWS = [{"id": i, "user": {"login": f"u{i % 7}", "tags": [i, str(i)]}, "rest": "x" * 50} for i in range(3_000)]


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """Two files, so that threads read several chunks."""
    for number in range(2):
        path = tmp_path / f"{number}.ndjson"
        path.write_text("".join(pv.Variant.from_python(row).to_json() + "\n" for row in ROWS[number::2]))
    return tmp_path


def test_the_answers_are_those_of_the_values(events: Path) -> None:
    source = f"{events}/*.ndjson"
    values = pv.read_json(source)
    for query in (
        "SELECT count(*) AS n FROM t",
        "SELECT v:user.login::string AS login, count(*) AS n FROM t GROUP BY login ORDER BY login",
        "SELECT v:user.tags[1] AS tag, v:nope AS nope FROM t WHERE v:id::int = 2999",
        (
            "SELECT a.v:id::int AS i, b.v:user AS u FROM t a, t b "
            "WHERE a.v:id::int = b.v:id::int + 1 AND b.v:id::int < 3 ORDER BY i"
        ),
        "SELECT v FROM t ORDER BY v:id::int LIMIT 2",
        "SELECT sum(v:id) AS total, max(v:user.login) AS last FROM t",
    ):
        assert pv.sql(query, t=source, threads=2).to_pylist() == pv.sql(query, t=values).to_pylist(), query
    assert len(pv.read_json(source, threads=1)) == len(values) == len(ROWS)


def test_a_wrong_line_is_named_and_files_without_values_have_no_rows(events: Path, tmp_path: Path) -> None:
    with (events / "1.ndjson").open("a") as file:
        file.write('{"id": }\n')
    with pytest.raises(pv.JsonError, match=r"line 1501.*1\.ndjson"):
        pv.sql("SELECT max(v:id::int) FROM t", t=f"{events}/*.ndjson")
    empty = tmp_path / "empty.ndjson"
    empty.write_text("\n")
    assert pv.sql("SELECT count(*) AS n FROM t", t=str(empty)).to_pylist() == [{"n": 0}]


def test_a_path_that_no_line_has_is_reported(events: Path) -> None:
    answer = pv.sql("SELECT v:user.logn::string AS login FROM t LIMIT 1", t=f"{events}/*.ndjson")
    assert any("login" in warning for warning in answer.warnings)
