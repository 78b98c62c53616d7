"""Where compiled kernels are kept."""

from __future__ import annotations

import gc
from pathlib import Path

import numba
import pytest
from numba import types

from parquet_variant.kernels.compiling import _sources, cache_directory, helper, njit


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


def test_a_function_is_compiled_once_for_all_numbers() -> None:
    number, one, two = types.int64, types.literal(1), types.literal(2)
    for arguments in ((number, one), (one, number), (one, two), (number, number)):
        plus.get_call_template(arguments, {})

    assert [str(signature) for signature in plus.signatures] == ["(int64, int64)"]


def test_helpers_are_for_kernels_only() -> None:
    @helper
    def twice(number):
        return 2 * number

    @njit
    def four_times(number):
        return twice(twice(number))

    assert four_times(3) == 12
    with pytest.raises(TypeError, match="twice is a helper of kernels"):
        twice(3)


@pytest.mark.parametrize("collects", [True, False])
def test_the_garbage_collector_is_left_as_it_was(collects: bool) -> None:
    @njit
    def divided(left, right):
        return left // right

    @njit
    def does_not_compile(number):
        return number.nothing

    before = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        assert divided(7, 2) == 3
        with pytest.raises(numba.TypingError, match="nothing"):
            does_not_compile(1)
        assert gc.isenabled() == collects
    finally:
        (gc.enable if before else gc.disable)()
