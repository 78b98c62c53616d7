"""Memory that batches hand on to each other: one holder at a time."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import parquet_variant as pv
from parquet_variant.kernels import buffer_pool
from parquet_variant.kernels.buffer_pool import acquire, acquire_result, release


@pytest.fixture
def empty_pool(monkeypatch) -> None:
    """No blocks of other tests: they would be given out instead of the test's own."""
    for pool in ("spare_blocks", "returned_blocks"):
        monkeypatch.setattr(buffer_pool, pool, [])


@pytest.mark.usefixtures("empty_pool")
def test_a_released_array_is_acquired_again_and_no_other() -> None:
    first, second = acquire(np.int64, 20_000, 4), acquire(np.int64, 20_000, 4)
    first[:], second[:] = 1, 2
    assert first.min() == 1
    assert first.shape == (20_000, 4)
    address = first.ctypes.data
    release(first[:10])
    del first
    again = [acquire(np.int32, 100_000) for _ in range(20)]
    assert address in [array.ctypes.data for array in again]
    assert len({array.ctypes.data for array in again}) == 20
    assert second.max() == 2


@pytest.mark.machine_code
def test_batches_that_are_parsed_one_after_the_other_do_not_share_values() -> None:
    arrays = [pv.parse_json([f'{{"n": {n}, "s": "{"x" * n}"}}'] * 50) for n in range(30)]
    for n, array in enumerate(arrays):
        assert array.to_pylist() == [{"n": n, "s": "x" * n}] * 50


@pytest.mark.parametrize(
    "other", [lambda array: array, lambda array: array[:3], lambda array: array.view(np.uint8), np.asarray]
)
def test_what_is_released_twice_goes_to_one_holder(other: Callable[[np.ndarray], np.ndarray]) -> None:
    array = acquire(np.int64, 50_000)
    view = other(array)
    release(array)
    first = acquire(np.int64, 50_000)
    release(array, view)
    release(view)
    second, third = acquire(np.int64, 50_000), acquire(np.int64, 50_000)
    assert not any(np.shares_memory(*pair) for pair in ((first, second), (first, third), (second, third)))
    first[:], second[:], third[:] = 1, 2, 3
    assert (first.min(), first.max(), second.max()) == (1, 1, 2)


@pytest.mark.usefixtures("empty_pool")
def test_what_is_lent_comes_back_when_nothing_uses_it_any_more() -> None:
    first = acquire_result(np.int64, 30_000)
    column = pa.Array.from_buffers(pa.int64(), 30_000, [None, pa.py_buffer(first)])
    first[:], address = 1, first.ctypes.data
    del first
    others = [acquire_result(np.int64, 30_000) for _ in range(5)]
    assert address not in [array.ctypes.data for array in others]
    assert pc.min_max(column).as_py() == {"min": 1, "max": 1}
    del column
    assert address in [array.ctypes.data for array in [acquire_result(np.int64, 30_000) for _ in range(100)]]


@pytest.mark.usefixtures("empty_pool")
def test_no_more_memory_than_the_limit_is_kept() -> None:
    arrays = [acquire_result(np.uint8, 60 << 20) for _ in range(4)]
    del arrays
    assert len(buffer_pool.returned_blocks) == 2


def test_memory_of_others_is_not_taken() -> None:
    array = np.arange(40_000)
    release(array, array[5:])
    assert not any(np.shares_memory(acquire(np.int64, 40_000), array) for _ in range(20))


def test_threads_that_release_the_same_array_do_not_share_it() -> None:
    for _ in range(50):
        array = acquire(np.int64, 40_000)
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(release, [array] * 4))
        held = [acquire(np.int64, 40_000) for _ in range(20)]
        assert len({item.ctypes.data for item in held}) == 20


@pytest.mark.parametrize("shape", [(0,), (0, 4), (1,)])
def test_an_array_may_be_empty(shape: tuple[int, ...]) -> None:
    array = acquire(np.int64, *shape)
    assert array.shape == shape
    release(array)


def test_more_than_there_is_is_an_error() -> None:
    with pytest.raises(MemoryError, match="work on fewer rows"):
        acquire(np.int64, 1 << 55)


def _parses() -> None:
    assert pv.parse_json(["[1, 2]"] * 100).to_pylist() == [[1, 2]] * 100


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_a_pool_of_its_own() -> None:
    _parses()
    child = multiprocessing.get_context("fork").Process(target=_parses)
    child.start()
    child.join(60)
    assert child.exitcode == 0


@pytest.mark.usefixtures("empty_pool")
def test_small_arrays_do_not_take_the_places_of_large_ones() -> None:
    large = acquire(np.uint8, 9 << 20)
    address = large.ctypes.data
    for array in [acquire(np.uint8, 1024) for _ in range(100)]:
        release(array)
    release(large)
    del large
    assert acquire(np.uint8, 1024).ctypes.data != address
    assert address in [acquire(np.uint8, 9 << 20).ctypes.data for _ in range(1)]


def _takes(monkeypatch, *, held: int, asked: int) -> bool:
    """Return whether the only block, of a size, is returned to a request for another size."""
    monkeypatch.setattr(buffer_pool, "spare_blocks", [])
    array = acquire(np.uint8, held)
    address = array.ctypes.data
    release(array)
    return acquire(np.uint8, asked).ctypes.data == address


@pytest.mark.parametrize("size", [300_000, 1 << 20, (4 << 20) - 1, 5 << 20, 16 << 20, 40 << 20])
def test_batches_of_about_one_size_share_a_block(monkeypatch, size: int) -> None:
    assert _takes(monkeypatch, held=size, asked=size)
    assert _takes(monkeypatch, held=size, asked=size - size // 64) or _takes(
        monkeypatch, held=size - size // 64, asked=size
    )
    around = 1 << size.bit_length()  # no border of a class is where chunks of text have theirs
    assert _takes(monkeypatch, held=around - around // 100, asked=around + around // 100)


def test_a_small_request_leaves_a_large_block_alone(monkeypatch) -> None:
    assert not _takes(monkeypatch, held=40 << 20, asked=4 << 20)
    assert _takes(monkeypatch, held=40 << 20, asked=20 << 20)


def test_of_too_many_blocks_the_smallest_goes(monkeypatch) -> None:
    monkeypatch.setattr(buffer_pool, "spare_blocks", [])
    small = [acquire(np.uint8, 512 << 10) for _ in range(40)]
    large = acquire(np.uint8, 9 << 20)
    address = large.ctypes.data
    release(*small)
    release(large)
    assert acquire(np.uint8, 9 << 20).ctypes.data == address
