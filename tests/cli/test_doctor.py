"""`variant doctor`: what is here, and the cure for what is not."""

from __future__ import annotations

from collections.abc import Callable
from importlib import metadata
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pytest

from parquet_variant.errors import VariantError
from parquet_variant.spark import session as java

Run = Callable[..., Any]


def test_it_says_what_is_here(variant: Run) -> None:
    done = variant("doctor", "--json")
    assert done.code == 0
    assert done.json["found"]["pyarrow"] == version("pyarrow")
    assert done.json["found"]["kernels"].startswith(("built", "jit"))


def test_what_is_missing_has_a_cure(variant: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_duckdb(name: str) -> str:
        if name == "duckdb":
            raise PackageNotFoundError(name)
        return "1"

    def no_java() -> None:
        raise VariantError("no Java here", reason="no-java")

    monkeypatch.setattr(metadata, "version", no_duckdb)
    monkeypatch.setattr(java, "find_java", no_java)
    out = variant("doctor").out
    assert "query with SQL: duckdb missing: pip install 'parquet-variant[sql]'" in out
    assert "--engine spark: Java missing: install Java 17" in out
