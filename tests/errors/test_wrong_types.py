"""Arguments of wrong types raise errors of ours, whatever their own operators do."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import parquet_variant as pv
from parquet_variant.errors import first_line

WRONG = [b"\xff", np.int64(3), np.float64("nan"), np.array([1, 2]), Decimal("sNaN"), {1: object(), None: {}}, {"a", 1},
         pd.DataFrame(), pd.NA, pl.DataFrame({"x": [1]}), 10**400, range(3), object]  # fmt: skip
ROWS = {"v": pv.parse_json(['{"a": 1}'])}
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "types": lambda value, path: pv.parse_json(['{"a": 1}'], types=value),
    "policy": lambda value, path: pv.infer_shredding_schema(ROWS["v"], value),
    "schema": lambda value, path: pv.write(path, ROWS, format="delta", schema=value),
    "storage_options": lambda value, path: pv.open("s3://bucket/x", storage_options=value),
    "engine of sql": lambda value, path: pv.sql("SELECT 1", engine=value),
    "engine of ingest": lambda value, path: pv.ingest(path, path, engine=value),
    "path": lambda value, path: pv.variant_get(ROWS["v"], value),
    "type": lambda value, path: pv.variant_get(ROWS["v"], "$.a", value),
    "schema_mode": lambda value, path: pv.write(path, ROWS, format="delta", schema_mode=value),
    "readers": lambda value, path: pv.AutoPolicy(readers=value),
    "hints": lambda value, path: pv.HintsPolicy(value),
    "skip": lambda value, path: pv.HintsPolicy(skip=value),
    "skip_regexp": lambda value, path: pv.HintsPolicy(skip_regexp=value),
    "weights": lambda value, path: pv.WorkloadPolicy(value),
    "queries": lambda value, path: pv.WorkloadPolicy.of_queries(value),
    "schema of a policy": lambda value, path: pv.WorkloadPolicy.of_schema(value),
    "number of a policy": lambda value, path: pv.AutoPolicy(min_row_share=value),
    "levels": lambda value, path: pv.ShreddingSchema.variant().limited_to(value),
    "column of memory": lambda value, path: pv.open(ROWS).read(value),
    "engines": lambda value, path: pv.open(ROWS).compat(value),
}


@pytest.mark.parametrize("value", WRONG, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("call", CALLS)
def test_wrong_types(call: str, value: Any, tmp_path: Any) -> None:
    if call == "path" and isinstance(value, range | set | pd.DataFrame):
        return  # the segments of a path
    if isinstance(value, pd.DataFrame) and call in ("readers", "skip", "skip_regexp", "queries"):
        return  # no strings
    if call == "levels" and type(value) in (np.int64, int):
        return
    with pytest.raises(pv.VariantError):
        CALLS[call](value, tmp_path / "t")


TABLE_CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "drop_column": lambda value, table: table.drop_column(value),
    "rename_column": lambda value, table: table.rename_column("n", value),
    "rename_column of": lambda value, table: table.rename_column(value, "n2"),
    "widen_column": lambda value, table: table.widen_column("n", value),
    "widen_column of": lambda value, table: table.widen_column(value, "bigint"),
    "commit_files": lambda value, table: table.commit_files(value),
    "schema": lambda value, table: table.append({"n": [1], **ROWS}, schema=value),
}


@pytest.fixture(scope="module", params=["delta", "iceberg"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> pv.Table:
    path = tmp_path_factory.mktemp("table") / "t"
    pv.write(path, {"n": [1], **ROWS}, format=request.param)
    return pv.open(path)


@pytest.mark.parametrize("value", [None, *WRONG], ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("call", TABLE_CALLS)
def test_wrong_types_for_tables(table: pv.Table, call: str, value: Any) -> None:
    if call == "schema" and value is None:
        return  # the default
    if call == "commit_files" and type(value) not in (bytes, dict, set, int, type):
        return  # no files
    with pytest.raises(pv.VariantError):
        TABLE_CALLS[call](value, table)


def test_other_wrong_values(table: pv.Table) -> None:
    rows = {"n": [1], **ROWS}
    assert table.append(rows, file_bytes=2**63 - 1) is not None
    for work in (
        lambda: table.compat(timeout="1"),
        lambda: table.compat(timeout=float("nan")),
        lambda: table.compat(require={1: "2", None: {}}),
        lambda: table.diff(table, factor=10**400),
        lambda: table.branch("b", max_age_ms=[1]) if table.format == "iceberg" else table.drop_column(None),
        lambda: table.set_sort_order("a\nb") if table.format == "iceberg" else table.drop_column(None),
    ):
        with pytest.raises(pv.VariantError):
            work()
    assert str(table.compat([])) == ""
    report = table.compat(["duckdb"], pythons=["/nowhere/python", "/bin/echo"])
    assert "duckdb" in str(report)


def test_an_error_of_another_library_without_text_is_named_by_its_class() -> None:
    assert first_line(OSError()) == "OSError"
    assert first_line(ValueError("first\nsecond")) == "first"


NOT_TEXT: list[Any] = [5, [5], {}, object(), np.array([1, 2]), float("nan")]


@pytest.mark.parametrize("value", NOT_TEXT, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("read", [pv.Contract.from_yaml, pv.Contract.from_odcs], ids=["from_yaml", "from_odcs"])
def test_a_contract_is_read_from_text(read: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(pv.VariantError, match="give the text"):
        read(value)


@pytest.mark.parametrize("table_format", ["parquet", "delta", "iceberg"])
def test_columns_to_annotate_are_strings(tmp_path: Path, table_format: str) -> None:
    rows = {"id": [1], "v": pv.parse_json(["1"])}
    place = tmp_path / ("t.parquet" if table_format == "parquet" else "t")
    pv.write(place, rows, format=None if table_format == "parquet" else table_format)
    for columns in (5, b"x", object(), [None], np.array([1, 2])):
        with pytest.raises(pv.VariantError, match="give a string or a list of strings"):
            pv.open(place).annotate(columns)
    assert pv.open(place).annotate("v") == ("v",)


def test_modes_and_batches_of_a_wrong_type_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "t"
    place.mkdir()
    pv.write(place / "a.parquet", {"v": pv.parse_json(["1"])})
    for mode in (5, np.array(["overwrite", "error"]), ["error"]):
        with pytest.raises(pv.VariantError, match="mode is"):
            pv.write(place / "a.parquet", {"v": pv.parse_json(["1"])}, mode=mode)
    for change in (pv.open(place).append, pv.open(place).overwrite):
        with pytest.raises(pv.VariantError, match="no batches"):
            change([])
    assert len(pv.open(place)) == 1
