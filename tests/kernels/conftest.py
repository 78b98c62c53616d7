"""Kernels that a test defines."""

from __future__ import annotations

from functools import cache

import pytest

from parquet_variant.kernels.machine_code.entry_points import Jit


@cache
def _code() -> Jit:
    # One for all: what it has loaded lives as long as it does.
    return Jit()


@pytest.fixture
def compiled_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in no library, so that they are compiled, whatever way the process takes."""
    pytest.importorskip("numba", reason="kernels are compiled here, which needs Numba")
    code = _code()
    monkeypatch.setattr("parquet_variant.kernels.machine_code.entry_points.machine_code", lambda: code)
