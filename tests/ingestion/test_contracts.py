"""Ingests with a contract: rows that break it end the job before it commits, are quarantined, or are counted."""

from __future__ import annotations

import gzip
import json
import pickle

import pyarrow as pa
import pytest

import parquet_variant as pv

_CONTRACT = {
    "$": {"type": "object"},
    "$.id": {"type": "integer", "required": True, "min": 0},
    "$.tag": {"type": "string", "values": ["a", "b"]},
}
_BAD = {3: '{"id": -1}', 5: '{"tag": "a"}', 6: '{"id": 7, "tag": "z"}'}


def _lines(count: int = 10) -> list[str]:
    lines = [json.dumps({"id": number, "tag": "a"}) for number in range(count)]
    for number, text in _BAD.items():
        lines[number] = text
    return lines


def _quarantined(result: pv.IngestResult) -> list[dict]:
    import pathlib

    files = sorted(pathlib.Path(result.bad_records_path).iterdir())
    return [json.loads(line) for file in files for line in file.read_text().splitlines()]


def test_violations_end_the_job_before_it_commits(tmp_path) -> None:
    source = tmp_path / "a.ndjson"
    source.write_text("\n".join(_lines()))
    for form in ("parquet", "delta"):
        dest = tmp_path / form
        with pytest.raises(pv.ContractError, match="3 of 10 rows break the contract: ") as error:
            pv.ingest(source, dest, format=form, contract=_CONTRACT)
        assert not dest.exists() or not [p for p in dest.rglob("*") if p.is_file()]
        assert error.value.reason == "contract-violation"
        found = {(v.path.shorthand, v.rule): (v.count, v.examples[0].row) for v in error.value.report.violations}
        assert found == {("$.id", "required"): (1, 6), ("$.id", "min"): (1, 4), ("$.tag", "values"): (1, 7)}
        assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


@pytest.mark.parametrize("name", ["a.ndjson", "a.ndjson.gz", "a.json"])
def test_bad_rows_are_quarantined_with_the_rule_and_the_others_are_written(tmp_path, name) -> None:
    lines = _lines(200)
    text = "\n".join([*lines, "{"]) if name != "a.json" else f"[{','.join(lines)}]"
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    result = pv.ingest(
        tmp_path / name, tmp_path / "out", contract=_CONTRACT, on_violation="quarantine", on_error="quarantine"
    )
    invalid = 0 if name == "a.json" else 1
    assert (result.rows, result.bad_records, result.contract.bad_rows) == (197, 3 + invalid, 3)
    records = {record["line"]: (record["reason"], record["text"]) for record in _quarantined(result)}
    expected = {number + 1: ("contract-violation", text) for number, text in _BAD.items()}
    assert {line: record for line, record in records.items() if line <= 200} == expected
    messages = {record["line"]: record["message"] for record in _quarantined(result)}
    assert messages[4] == "$.id min: expected at least 0, found -1"
    values = pv.open(tmp_path / "out").read().to_pylist()
    assert len(values) == 197 and {row["tag"] for row in values} == {"a"}
    assert result.to_dict()["contract"]["violations"][0]["path"] == "$.id"


def test_small_files_name_their_lines_and_tables_keep_their_columns(tmp_path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.ndjson").write_text('{"id": 1}\n' * 2 + ('{"id": -5}\n' if number == 1 else ""))
    result = pv.ingest(tmp_path, tmp_path / "out", contract=_CONTRACT, on_violation="quarantine")
    (record,) = _quarantined(result)
    assert (record["file"].rpartition("/")[2], record["line"], result.rows) == ("1.ndjson", 3, 6)
    rows = pa.table({"n": [1, 2, 3], "j": _lines()[2:5]})
    result = pv.ingest(
        rows, tmp_path / "table", json_column="j", contract=_CONTRACT, on_violation="quarantine", threads=1
    )
    (record,) = _quarantined(result)
    assert (record["columns"], result.rows) == ({"n": 2}, 2)


def test_violations_are_counted_with_warn_and_presence_needs_all_rows(tmp_path) -> None:
    source = tmp_path / "a.ndjson"
    source.write_text("\n".join(_lines()))
    result = pv.ingest(source, tmp_path / "warn", contract=_CONTRACT, on_violation="warn", split_bytes=64)
    assert (result.rows, result.bad_records) == (10, 0)
    assert [(v.rule, v.count, v.share) for v in result.contract.violations] == [
        ("required", 1, 0.1),
        ("min", 1, 0.1),
        ("values", 1, 0.1),
    ]
    rare = {"$.tag": {"presence": 0.95}}
    for action in ("fail", "quarantine"):
        with pytest.raises(pv.ContractError, match=r"\$\.tag presence: expected present in at least 95"):
            pv.ingest(source, tmp_path / "rare", contract=rare, on_violation=action)
    assert pv.ingest(source, tmp_path / "rare", contract={"$.tag": {"presence": 0.9}}).contract


def test_the_options_are_checked_before_anything_is_read(tmp_path) -> None:
    with pytest.raises(pv.VariantError, match="on_violation is 'stop': use fail, quarantine or warn"):
        pv.ingest("none.ndjson", tmp_path, contract=_CONTRACT, on_violation="stop")
    with pytest.raises(pv.VariantError, match="unknown rule 'minimum'"):
        pv.ingest("none.ndjson", tmp_path, contract={"$.a": {"minimum": 1}})
