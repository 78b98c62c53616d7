"""The rules of engines: their data, the verdicts of versions, predictions from footers, and what engines really do."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest
from benchmarks.engine_runs import run_engine, write_fixtures

import parquet_variant as pv
from parquet_variant.cli.app import main
from parquet_variant.files.parquet.validation.engine_rules import (
    READABLE,
    EngineRule,
    Result,
    engine_rules,
    verdict_of,
    version_numbers,
)
from parquet_variant.quality.compatibility import engine_programs

TRAITS = {
    "parquet", "delta", "iceberg", "variantType", "variantShredding", "variantShredding-preview",
    "annotated", "unannotated", "unshredded", "shredded", "draft", "object", "nested", "TIME", "NANOS", "UUID",
    "no_value", "case_twins", "utf16", "inner", "deep", "deletes", "vectorized",
}  # fmt: skip


@pytest.fixture(scope="module")
def fixtures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_fixtures(tmp_path_factory.mktemp("fixtures"))


@pytest.mark.parametrize("rule", engine_rules(), ids=lambda rule: f"{rule.engine}-{rule.versions}-{rule.result}")
def test_rules_have_evidence_and_known_terms(rule: EngineRule) -> None:
    assert re.search(r"20\d\d-\d\d-\d\d", rule.evidence), "evidence has the date on which it was seen"
    run = re.match(r"variant compat with ([\w-]+) [\d., and]+", rule.evidence)
    packages = {engine.package: name for name, engine in engine_programs.ENGINES.items()}
    assert run is None or rule.engine in (run[1], packages.get(run[1]), "clickhouse")
    assert rule.result in get_args(Result)
    assert set(rule.traits) <= TRAITS
    assert rule.why or rule.result == "reads"
    first, last = map(version_numbers, rule.ends)
    assert first <= last
    assert (rule.versions == "any") == (first == ())
    # A release that nobody has tried is never said to read.
    assert rule.versions != "any" or rule.result not in READABLE
    assert not rule.remedy or re.match(r"variant (rewrite|optimize) --[\w-]+( unshredded)?$", rule.remedy)


def test_remedies_help() -> None:
    for rule in engine_rules():
        if not rule.remedy.startswith("variant rewrite"):
            continue
        unshredded = "--layout unshredded" in rule.remedy
        annotation = "unannotated" if "--no-annotation" in rule.remedy else "annotated"
        for version in rule.ends:
            before = {"parquet", "annotated", *rule.traits, *({"shredded"} if unshredded else {"unshredded"})}
            after = {"parquet", annotation, "unshredded"}
            assert verdict_of(rule.engine, version, [before])[0] not in READABLE
            found = verdict_of(rule.engine, version, [after])[0]
            # The evidence for some engines is an issue, which says nothing about other files.
            assert found in READABLE or (found == "unknown" and "#" in rule.evidence), rule


def test_versions_are_compared_by_number() -> None:
    rule = EngineRule("e", "1.9 to 4.0", ("x",), "refuses", "2026-11-27")
    covered = {version: rule.covers(version) for version in ("1.8.9", "1.9", "1.10.2", "4", "4.0.5", "4.0rc1", "4.1")}
    assert [version for version, inside in covered.items() if inside] == ["1.9", "1.10.2", "4", "4.0.5", "4.0rc1"]
    assert EngineRule("e", "any", (), "null", "2026-11-27").covers("0.1")


def test_an_engine_reads_a_file_only_if_a_rule_has_all_traits() -> None:
    assert verdict_of("duckdb", "2.0.1", [{"parquet", "annotated", "shredded", "object"}])[0] == "reads"
    assert verdict_of("duckdb", "2.0.1", [{"parquet", "annotated", "shredded", "inner"}]) == ("unknown", None)
    assert verdict_of("duckdb", "3.0", [{"parquet", "annotated", "shredded"}]) == ("unknown", None)
    assert verdict_of("duckdb", "2.0", [{"parquet", "annotated", "shredded", "object", "case_twins"}])[0] == "differs"
    both = {"parquet", "annotated", "shredded", "object", "case_twins", "no_value"}
    assert verdict_of("duckdb", "2.0", [both])[0] == "refuses"


def test_predictions_run_no_engine_and_read_footers(
    fixtures: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("an engine runs"))
    path = tmp_path / "a.parquet"
    data = fixtures["shredded"].read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    path.write_bytes(b"PAR1" + b"\xff" * (start - 4) + data[start:])  # No page is left.
    found = {result.engine: result.verdict for result in pv.open(path).compat("all").engines}
    assert found["pyarrow 15 to 21"] == "refuses"
    assert found["pyarrow 22 to 26"] == "struct"
    assert found["duckdb 1.5 to 2.0"] == "reads"
    assert found["presto any"] == "unknown"

    def verdicts(name: str, **require: str) -> list[str]:
        return [result.verdict for result in pv.open(fixtures[name]).compat(require=require).engines]

    engines = {"iceberg": "1.11", "presto": "0.298", "trino": "481"}
    assert verdicts("iceberg, shredded", **engines) == ["reads", "null", "refuses"]
    assert verdicts("iceberg, unshredded", **engines) == ["reads", "unknown", "unknown"]
    assert verdicts("delta, shredded", duckdb="1.5.5", databricks="16.4") == ["refuses", "refuses"]
    assert verdicts("delta, preview", duckdb="1.5.5", databricks="16.4") == ["reads", "refuses"]
    assert verdicts("delta, unshredded", duckdb="1.5.5", databricks="15.1") == ["reads", "refuses"]
    assert verdicts("delta, unshredded", databricks="16.4", duckdb="2.0") == ["reads", "unknown"]
    # One file of a directory that an engine does not read is enough.
    pv.write(path, pv.parse_json(['{"a": 1}']), mode="overwrite")
    both = [str(fixtures["TIME"]), str(path)]
    assert [result.verdict for result in pv.open(both).compat(require={"pyarrow": "26"}).engines] == ["struct"]


def test_variants_inside_other_columns_are_not_predicted_as_read(tmp_path: Path) -> None:
    inner = pa.ListArray.from_arrays([0, 1], pv.parse_json(["1"]).storage)
    pv.write(tmp_path / "a.parquet", {"l": inner}, variants=["l.list.element"])
    report = pv.open(tmp_path / "a.parquet").compat(require={"duckdb": "2.0", "pyarrow": "21"})
    assert [result.verdict for result in report.engines] == ["unknown", "refuses"]


def test_required_versions_decide_the_exit_code(fixtures: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    path = str(fixtures["nested"])
    assert main(["compat", path, "--require", "duckdb=2.0"]) == 0
    assert main(["compat", path, "--require", "duckdb=2.0,pyarrow=26"]) == 1
    assert main(["compat", path, "--require", "duckdb=99"]) == 1
    assert main(["compat", path, "--engines", "all"]) == 0
    assert re.search(r"duckdb 1\.5 to 2\.0 +reads", capsys.readouterr().out)
    assert main(["compat", path, "--require", "duckdb=new"]) != 0
    assert "give a version, such as duckdb=4.0" in capsys.readouterr().err
    table: Any = pv.open(path)
    for options, message in (
        ({"require": {"ducky": "1"}}, "did you mean 'duckdb'"),
        ({"require": ["duckdb"]}, "give a dict"),
        ({"require": {"duckdb": "2.0"}, "engines": ["duckdb"]}, "engines= and require= are both given"),
    ):
        with pytest.raises(pv.VariantError, match=message):
            table.compat(**options)
    with pytest.raises(pv.VariantError, match="is 'json': use parquet, delta or iceberg"):
        pv.open("examples/usgs_earthquakes.ndjson").compat("all")


@pytest.mark.slow
@pytest.mark.parametrize("engine", engine_programs.ENGINES)
def test_engines_do_what_the_rules_predict(engine: str, fixtures: dict[str, Path]) -> None:
    """ENGINE_PYTHONS: the Pythons of other environments, separated by colons; their engines are tried on all files."""
    if not any(rule.engine == engine for rule in engine_rules()):
        pytest.skip(f"no rules for {engine}")
    others = [python for python in os.environ.get("ENGINE_PYTHONS", "").split(os.pathsep) if python]
    few = {"nested", "nested, unannotated", "TIME", "case_twins", "no_value", "delta, shredded", "iceberg, shredded"}
    few -= {"case_twins", "no_value"} if engine == "spark" else set()  # A start of the JVM per file.
    runs = list(run_engine(engine, {name: fixtures[name] for name in few}, [sys.executable]))
    runs += [run for python in others for run in run_engine(engine, fixtures, [python])]
    if not runs:
        pytest.skip(f"{engine} is not installed; ENGINE_PYTHONS names the Pythons of other environments")
    assert not [str(run) for run in runs if not run.is_as_predicted]
