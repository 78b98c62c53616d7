"""`Table.compat` runs other engines on a copy of the user's file, and finds values that they change."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.cli.app import main
from parquet_variant.quality.compatibility.run import copy_of, first_difference


def _verdicts(report: Any) -> dict[str, str]:
    return {result.engine.split()[0]: result.verdict for result in report.engines}


def test_verdicts_of_engines_and_the_command_that_helps(tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    file = tmp_path / "a.parquet"
    pv.write(file, {"id": [1, 2], "v": pv.parse_json(['{"a": 1}', '{"a": 2.5}'])}, schema="a bigint")
    before = file.read_bytes()
    report = pv.open(file).compat(engines=["pyarrow", "duckdb", "polars"])
    assert _verdicts(report) == {"pyarrow": "struct", "duckdb": "equal", "polars": "refused"}
    polars = report.engines[2]
    assert f"variant rewrite {file} DEST --no-annotation" in polars.detail
    pv.open(file).rewrite(tmp_path / "b.parquet", annotation=False)
    assert _verdicts(pv.open(tmp_path / "b.parquet").compat(engines=["polars"])) == {"polars": "struct"}
    assert file.read_bytes() == before


def test_a_key_that_duckdb_renames_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb")
    file = tmp_path / "twins.parquet"
    twins = pv.parse_json(['{"xs": [{"n": 1, "N": 2}]}'] * 3)
    pv.write(file, twins, schema="xs array<struct<n bigint, N bigint>>")
    assert main(["compat", str(file), "--engine", "duckdb", "--engine", "chdb", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["engines"]
    assert [set(entry) for entry in found] == [{"engine", "verdict", "detail"}] * 2
    assert found[0]["engine"].startswith("duckdb ")
    assert found[0]["verdict"] == "differs"
    assert "n_1" in found[0]["detail"]
    assert "--layout unshredded" in found[0]["detail"]
    assert found[1]["verdict"] in ("not installed", "struct")


def test_differences_are_found_in_variants_and_other_columns(tmp_path: Path) -> None:
    decimals = pa.array([Decimal("1.25"), Decimal("2.75")], pa.decimal128(12, 2))
    variants = pv.from_python([{"d": Decimal("1.25")}, None])
    pv.write(tmp_path / "a.parquet", {"d": decimals, "v": variants}, schema="d decimal(12,2)")
    with copy_of(pv.open(tmp_path / "a.parquet")) as subject:
        rows = subject.rows
        assert first_difference(subject, rows) is None
        truncated = rows.set_column(0, "d", decimals.cast(pa.decimal128(12, 0), safe=False))
        assert "column d: row 0 is" in str(first_difference(subject, truncated))
        shortened = pa.chunked_array([pv.from_python([{"d": Decimal("1.2")}, None]).storage])
        assert "1 of 2 values differ: row 0" in str(first_difference(subject, rows.set_column(1, "v", shortened)))
        no_null = pa.chunked_array([pv.parse_json(['{"d": 1.25}', "null"]).storage])
        assert "null instead of SQL NULL" in str(first_difference(subject, rows.set_column(1, "v", no_null)))
        assert first_difference(subject, rows.slice(1)) == "1 rows instead of 2"


def test_tables_are_compared_and_invalid_input_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("deltalake")
    pv.write(tmp_path / "t", {"v": pv.parse_json(["1", "2"])}, format="delta")
    report = pv.open(tmp_path / "t").compat(engines=["delta-rs"])
    assert _verdicts(report) == {"delta-rs": "refused"}
    with pytest.raises(pv.VariantError, match="unknown engine for delta data"):
        pv.open(tmp_path / "t").compat(engines=["vortex"])
    with pytest.raises(pv.VariantError, match="does not exist"):
        pv.open(tmp_path / "missing.parquet").compat()
    hung = pv.open(tmp_path / "t").compat(engines=["delta-rs"], timeout=0.01)
    assert hung.engines[0].verdict in ("refused", "not installed")
