"""Hypothesis, imported when a strategy is asked for. Owns the error that says what to install."""

from __future__ import annotations

from types import ModuleType

from parquet_variant.errors import VariantError


def strategies() -> ModuleType:
    """``hypothesis.strategies``; `VariantError` if Hypothesis is not installed."""
    try:
        from hypothesis import strategies as found
    except ImportError:
        raise VariantError(
            "parquet_variant.testing needs Hypothesis: pip install hypothesis", reason="not-installed"
        ) from None
    return found
