"""`variant doctor`: what is here, and the cure for what is not."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import pytest

from parquet_variant.cli.commands import doctor

Run = Callable[..., Any]


def test_it_says_what_is_here(variant: Run) -> None:
    done = variant("doctor", "--json")
    assert done.code == 0
    assert done.json["found"]["pyarrow"] == version("pyarrow")
    assert done.json["found"]["kernels"].startswith(("built", "jit"))


def test_what_is_missing_has_a_cure(variant: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "duckdb" else "1")
    monkeypatch.setattr(doctor, "_java", lambda: None)
    out = variant("doctor").out
    assert "query with SQL: duckdb missing: pip install 'parquet-variant[sql]'" in out
    assert "--engine spark: Java missing: install Java 17" in out
