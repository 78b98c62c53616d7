"""Hints for paths that no row has, where the key has signs that end a key in SQL, or a dot."""

from pathlib import Path

import pytest

import parquet_variant as pv
from parquet_variant.cli.app import main

ROW = '{"http.status": 200, "log-status": "OK", "user": {"name": "x", "usr.id": 2}, "@timestamp": "2026-01-01"}'


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("v:http.status", "v:['http.status']"),
        ("v:user.usr.id", "v:user['usr.id']"),
        ("v:log", "v:['log-status']"),
        ("v:usr.name", "v:user.name"),
    ],
)
def test_the_key_that_exists_is_named(path: str, meant: str) -> None:
    warnings = pv.sql(f"SELECT {path} AS x FROM t", t=pv.parse_json([ROW])).warnings
    assert warnings == (f"no row has the path {path}: did you mean {meant}?",)


def test_a_key_that_begins_with_a_sign_is_quoted() -> None:
    with pytest.raises(pv.VariantError, match=r"a\['b-c'\] for keys with other signs"):
        pv.sql("SELECT v:@timestamp FROM t", t=pv.parse_json([ROW]))


def test_options_for_odd_keys_need_no_escapes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.ndjson").write_text('{"@timestamp": "2026-01-01T00:00:00Z", "at": "2026-01-01T00:00:00"}\n' * 3)
    assert main(["ingest", str(tmp_path / "a.ndjson"), str(tmp_path / "t")]) == 0
    shown = capsys.readouterr().out
    option = """'$["@timestamp"]:timestamp!'"""
    assert f"all 3 strings at $['@timestamp'] are timestamps: type them with --type {option}" in shown
    assert "all 3 strings at $.at are timestamps: type them with --type '$.at:timestamp_ntz!'" in shown
    assert main(["ingest", str(tmp_path / "a.ndjson"), str(tmp_path / "u"), "--type", option.strip("'")]) == 0
    assert pv.open(tmp_path / "u").scan({"t": "$['@timestamp']"}).schema.field("t").type.tz == "UTC"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT t.log FROM t", "a Variant is written t.v:log|unknown column t.log.* written t.v:log"),
        ("SELECT log FROM t", "the Variant is written v:log, and a string 'log'"),
        ("SELECT v:log", "choose from none, since FROM is missing"),
    ],
)
def test_names_that_are_not_columns(query: str, message: str) -> None:
    with pytest.raises(pv.VariantError, match=message):
        pv.sql(query, t=pv.parse_json([ROW]))


def test_columns_of_csv_are_not_paths(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,kind\n1,x\n")
    with pytest.raises(
        pv.VariantError, match="unknown column v: choose from id, kind; kind is a column, written without v:"
    ):
        pv.sql("SELECT v:kind FROM t", t=tmp_path / "a.csv")
    with pytest.raises(pv.VariantError, match=r"unknown column v: choose from id, kind$"):
        pv.sql("SELECT v:other.kind, variant_get(v, '$.kind', 'int') FROM t", t=tmp_path / "a.csv")


def test_a_path_through_an_array_is_completed() -> None:
    rows = pv.parse_json(['{"id": 1, "items": [{"id": 2}]}'])
    (warning,) = pv.sql("SELECT v:items.id FROM t", t=rows).warnings
    assert warning.endswith("did you mean v:items[*].id?")


def test_a_key_in_single_quotes_is_a_step_of_a_path() -> None:
    rows = pv.parse_json(['{"p": {"Plan Type": 1, "it\'s": 2}}'])
    query = "SELECT v:p.'Plan Type'::int AS a, v:'p'.'it''s' AS b FROM t WHERE v:p.'Plan Type' = 1"
    assert pv.sql(query, t=rows).to_pylist() == [{"a": 1, "b": 2}]
