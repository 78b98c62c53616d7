"""Where compiled kernels are kept."""

from __future__ import annotations

from pathlib import Path

import numba
import pytest

from parquet_variant.kernels.compiling import _sources, cache_directory, njit


def test_decorating_leaves_the_settings_of_other_people_alone() -> None:
    before = numba.config.CACHE_DIR
    njit(lambda x: x)
    assert before == numba.config.CACHE_DIR


def test_the_directory_can_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PARQUET_VARIANT_CACHE", str(tmp_path))
    assert Path(cache_directory.__wrapped__("memory")).parent == tmp_path


def test_a_change_in_an_imported_kernel_counts() -> None:
    names = {path.stem for path in _sources("parse_json")}
    assert {"parse_json", "json_scan", "int128", "memory", "compiling"} <= names
    assert "to_json" not in names


@njit
def plus(left, right):
    return left + right


@njit
def sums(number):
    return plus(number, 1) + plus(2, number) + plus(3, 4)


def test_a_function_is_compiled_once_for_all_numbers() -> None:
    assert sums(10) == 11 + 12 + 7
    assert [str(signature) for signature in plus.signatures] == ["(int64, int64)"]
