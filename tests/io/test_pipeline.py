"""Steps done by several threads: their results in order, and what fails."""

from __future__ import annotations

import threading

import pytest

from parquet_variant.io.pipeline import results_in_order


def steps(count, fails=None, breaks=None):
    def step(number):
        if number == fails:
            raise ZeroDivisionError
        return number

    for number in range(count):
        if number == breaks:
            raise LookupError
        yield lambda number=number: step(number)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_order_and_failures_after_what_came_before(threads):
    assert list(results_in_order(steps(50), threads)) == list(range(50))
    for error, failing in ((ZeroDivisionError, {"fails": 7}), (LookupError, {"breaks": 7})):
        found: list[int] = []
        with pytest.raises(error):
            found.extend(result for result in results_in_order(steps(50, **failing), threads))
        assert found == list(range(7))
    with pytest.raises(ZeroDivisionError):  # what fails first in the order of the steps, not in time
        list(results_in_order(steps(50, fails=3, breaks=4), threads))


def test_steps_run_at_the_same_time():
    meeting = threading.Barrier(2, timeout=30)
    assert sorted(results_in_order(iter([meeting.wait] * 2), 2)) == [0, 1]


def test_steps_are_not_read_far_ahead():
    read = []

    def endless():
        while True:
            read.append(None)
            yield lambda: 1

    results = results_in_order(endless(), 2)
    assert [next(results) for _ in range(3)] == [1, 1, 1]
    results.close()
    assert len(read) <= 3 + 2 + 2
