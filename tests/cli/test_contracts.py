"""`variant contract`, `variant check` and `variant ingest --contract`: output, exit codes and errors."""

from __future__ import annotations

import io
import json
import sys
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

import parquet_variant as pv
from parquet_variant.cli.app import main

_CONTRACT = "version: 1\npaths:\n  $.id: {type: integer, required: true, min: 0}\n  $.tag: {values: [a, b]}\n"


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text(_CONTRACT)
    (tmp_path / "good.ndjson").write_text('{"id": 1, "tag": "a"}\n{"id": 2}\n')
    (tmp_path / "bad.ndjson").write_text('{"id": 1}\n{"id": -1, "tag": "secret,\\n%"}\n{"tag": "b"}\n')
    return tmp_path


def test_check_reports_violations_in_every_form_and_by_its_exit_code(data, capsys) -> None:
    assert main(["check", "good.ndjson", "--contract", "c.yaml"]) == 0
    assert capsys.readouterr().out.startswith("good.ndjson: 2 rows satisfy the contract\n")
    assert main(["check", "bad.ndjson", "--contract", "c.yaml"]) == 1
    text = capsys.readouterr().out
    assert "$.id required: expected present; missing 1 time in 33.33% of rows\n    line 3 of bad.ndjson\n" in text
    assert main(["check", "bad.ndjson", "--contract", "c.yaml", "--json", "--no-values"]) == 1
    text = capsys.readouterr().out
    report = json.loads(text)
    assert [(v["path"], v["rule"], v["examples"][0]["row"]) for v in report["violations"]] == [
        ("$.id", "required", 3),
        ("$.id", "min", 2),
        ("$.tag", "values", 2),
    ]
    assert "secret" not in text and (report["rows"], report["bad_rows"]) == (3, 2)
    assert main(["check", "bad.ndjson", "--contract", "c.yaml", "--format", "junit", "-o", "report.xml"]) == 1
    suite = ElementTree.parse("report.xml").getroot()[0]
    assert suite.get("failures") == "3" and [case[0].get("type") for case in suite] == ["required", "min", "values"]
    assert main(["check", "bad.ndjson", "--contract", "c.yaml", "--format", "github"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and lines[0].startswith("::error file=bad.ndjson,line=3,title=$.id required::")
    assert main(["check", "good.ndjson", "--contract", "c.yaml", "--format", "github"]) == 0
    assert capsys.readouterr().out.startswith("::notice title=contract::good.ndjson: 2 rows satisfy")


def test_what_cannot_be_checked_ends_with_2_and_what_to_do(data, capsys, monkeypatch) -> None:
    (data / "odd.yaml").write_text("version: 1\npaths:\n  $.a: {typ: string}\n")
    for words, message in (
        (["check", "good.ndjson"], "Missing option '--contract'"),
        (["check", "good.ndjson", "--contract", "none.yaml"], "cannot read the contract none.yaml: it does not exist"),
        (["check", "good.ndjson", "--contract", "odd.yaml"], "line 3: unknown rule 'typ': did you mean 'type'"),
        (["check", "none", "--contract", "c.yaml"], "none does not exist"),
        (["check", "good.ndjson", "--contract", "c.yaml", "--partition", "x"], "write NAME=VALUE"),
        (["contract", "none"], "none does not exist"),
    ):
        assert main(words) == 2
        assert message in capsys.readouterr().err
    (data / "broken.ndjson").write_text('{"id": 1}\n{')
    assert main(["check", "broken.ndjson", "--contract", "c.yaml"]) == 1
    assert "line 2" in capsys.readouterr().err
    stdin = SimpleNamespace(buffer=io.BytesIO(b'{"id": -5}\n'), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", stdin)
    assert main(["check", "-", "--contract", "c.yaml"]) == 1
    assert "line 1 of standard input: -5" in capsys.readouterr().out


def test_a_contract_is_inferred_in_every_format_and_used_by_ingest(data, capsys) -> None:
    assert main(["contract", "good.ndjson", "--level", "strict", "-o", "strict.yaml"]) == 0
    assert capsys.readouterr().err == "wrote strict.yaml\n"
    assert pv.Contract.load("strict.yaml") == pv.open("good.ndjson").contract("strict")
    assert main(["contract", "good.ndjson", "--format", "json-schema"]) == 0
    assert json.loads(capsys.readouterr().out)["properties"]["id"] == {"type": "integer", "minimum": 0}
    assert main(["contract", "good.ndjson", "--format", "odcs", "--name", "orders"]) == 0
    assert pv.Contract.from_odcs(capsys.readouterr().out).name == "orders"
    words = ["ingest", "bad.ndjson", "out", "--contract", "c.yaml"]
    assert main(words) == 1
    assert "or write with --on-violation quarantine" in capsys.readouterr().err and not (data / "out").exists()
    assert main([*words, "--on-violation", "quarantine"]) == 0
    assert "2 bad lines in " in capsys.readouterr().out
    assert main([*words, "--on-violation", "warn", "--mode", "overwrite", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["contract"]["bad_rows"] == 2
