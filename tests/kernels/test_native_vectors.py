"""What kernels allocate for themselves, export, and sort."""

from __future__ import annotations

import gc
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_variant.kernels.buffer_pool import adopt, adopt_bytes
from parquet_variant.kernels.machine_code.functions import kernel
from parquet_variant.kernels.memory import store_u8
from parquet_variant.kernels.native_vectors import (
    Memory,
    allocate,
    export_bytes,
    export_table,
    export_vector,
    filled_vector,
    new_table,
    new_vector,
    reserve,
    reserve_bytes,
    reserve_rows,
    sort_with,
)

INTEGERS = st.integers(-(2**63), 2**63 - 1)


@kernel
def _count_up(memory: Memory, size: int) -> tuple[tuple[int, int], tuple[int, int, int], tuple[int, int]]:
    vector, table, marks = new_vector(memory, 1), new_table(memory, 1, 3), filled_vector(memory, 5, 7)
    room = 1
    text = allocate(memory, room)
    for i in range(size):
        vector = reserve(vector, i + 1)
        table = reserve_rows(table, i + 1)
        text, room = reserve_bytes(text, room, i + 1)
        vector[i] = i
        for column in range(3):
            table[i, column] = marks[column] * i + column
        store_u8(text + i, i & 0x7F)
    return export_vector(vector, size), export_table(table, size), export_bytes(text, size)


@kernel
def _too_much(memory: Memory) -> tuple[int, int]:
    return export_vector(new_vector(memory, 1 << 50), 1)


def _resident_megabytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmRSS:\s*(\d+)", status)[1]) >> 10  # type: ignore[index]


@pytest.mark.usefixtures("compiled_here")
@pytest.mark.parametrize("size", [0, 1, 2, 1000])
def test_what_grows_keeps_its_entries_and_is_taken_over(size: int) -> None:
    vector, table, text = _count_up(size)
    numbers = np.arange(size)
    assert adopt(*vector).tolist() == numbers.tolist()
    assert adopt(*table).tolist() == [[7 * n, 7 * n + 1, 7 * n + 2] for n in range(size)]
    assert adopt_bytes(*text).tolist() == (numbers & 0x7F).tolist()


@pytest.mark.usefixtures("compiled_here")
def test_a_view_keeps_what_was_taken_over_and_the_last_one_releases_it() -> None:
    rest = adopt(*_count_up(1000)[0])[990:]
    gc.collect()
    assert rest.tolist() == list(range(990, 1000))
    before = _resident_megabytes()
    for _ in range(200):
        vector, table, text = _count_up(100_000)
        adopt(*vector), adopt(*table), adopt_bytes(*text)
    assert _resident_megabytes() - before < 300  # 640 MB went through


@pytest.mark.usefixtures("compiled_here")
def test_memory_that_is_not_there_is_an_error() -> None:
    with pytest.raises(MemoryError, match="work on fewer rows"):
        _too_much()


@given(st.lists(INTEGERS, max_size=200), st.integers(0, 5), st.integers(0, 5))
def test_a_run_is_sorted_and_nothing_next_to_it(values: list[int], before: int, after: int) -> None:
    array = np.array([5] * before + values + [-5] * after, np.int64)
    sort_with(array, array, before, before + len(values))
    assert array.tolist() == [5] * before + sorted(values) + [-5] * after


@given(st.lists(st.tuples(INTEGERS, INTEGERS), unique_by=lambda pair: pair[0], max_size=200))
def test_values_go_along_with_their_ranks(pairs: list[tuple[int, int]]) -> None:
    ranks, values = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    sort_with(ranks, values, 0, len(pairs))
    assert list(zip(ranks.tolist(), values.tolist(), strict=True)) == sorted(pairs)


@pytest.mark.machine_code
def test_long_runs_are_sorted() -> None:
    values = np.random.default_rng(7).integers(-(2**62), 2**62, 300_000)
    expected = np.sort(values)
    sort_with(values, values, 0, len(values))
    assert np.array_equal(values, expected)


@kernel
def _vector_of(memory: Memory, size: int) -> None:
    new_vector(memory, size)


@kernel
def _table_of(memory: Memory, rows: int) -> None:
    new_table(memory, rows, 4)


@pytest.mark.usefixtures("compiled_here")
@pytest.mark.parametrize("rows", [-1, 1 << 45, (1 << 58) + 1, (1 << 60) + 1, (1 << 63) - 1])
def test_a_size_that_would_wrap_around_is_refused(rows: int) -> None:
    for make in (_vector_of, _table_of):
        with pytest.raises(MemoryError):
            make(rows)
