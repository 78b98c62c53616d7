"""Work in threads: results in order, a bounded window, failures, and how many threads there are."""

from __future__ import annotations

import os
import threading
from operator import call
from pathlib import Path

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.errors import VariantError
from parquet_variant.io import parallel
from parquet_variant.io.parallel import available_cpus, cpu_quota, in_order, in_threads, thread_count


def own_threads() -> list[str]:
    return [item.name for item in threading.enumerate() if item.name.startswith("parquet-variant")]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_order_and_few_at_a_time(threads: int) -> None:
    taken: list[int] = []

    def items() -> object:
        for item in range(40):
            taken.append(item)
            yield item

    for number, result in enumerate(in_order(lambda item: item * 2, items(), threads)):  # type: ignore[arg-type]
        assert result == number * 2
        assert len(taken) <= number + 1 + threads + 1
    assert own_threads() == []


def test_a_failure_comes_at_its_place_and_ends_the_work() -> None:
    done: list[int] = []

    def work(item: int) -> int:
        if item == 3:
            raise VariantError("three")
        done.append(item)
        return item

    results = in_order(work, range(1000), threads=2)
    found = []
    with pytest.raises(VariantError, match="three"):
        found.extend(iter(results))
    assert len(done) < 20
    assert own_threads() == []


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_work_on_all_items_gives_each_its_result_or_the_failure(threads: int) -> None:
    assert in_threads(lambda item: item * 2, range(100), threads) == list(range(0, 200, 2))
    assert in_threads(str, [], threads) == []

    def work(item: int) -> int:
        if item == 50:
            raise IndexError("fifty")
        return item

    with pytest.raises(IndexError, match="fifty"):
        in_threads(work, range(100), threads)
    assert own_threads() == []


def test_a_reader_that_leaves_ends_the_work() -> None:
    results = in_order(lambda item: item, range(1000), threads=3)
    assert next(results) == 0
    results.close()
    assert own_threads() == []


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_threads_are_a_number_from_one_on(threads: object, tmp_path: Path) -> None:
    with pytest.raises(VariantError, match="threads is"):
        thread_count(threads)  # type: ignore[arg-type]
    pv.write(tmp_path / "a.parquet", pv.parse_json(["1"]))
    with pytest.raises(VariantError, match="threads is"):
        pv.open(tmp_path).scan({"a": "$:int"}, threads=threads)


def test_a_quota_of_the_control_group_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "CGROUP", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    try:
        for text, cpus in (None, 8), ("max 100000\n", 8), ("250000 100000\n", 3):
            cpu_quota.cache_clear()
            if text is not None:
                (tmp_path / "cpu.max").write_text(text)
            assert available_cpus() == cpus
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1}, raising=False)
        assert available_cpus() == 2
    finally:
        cpu_quota.cache_clear()


def test_scans_give_the_same_rows_with_any_number_of_threads(tmp_path: Path) -> None:
    for number in range(5):
        texts = [f'{{"a": {number * 1000 + row}, "b": "{row % 7}"}}' for row in range(300)]
        table = {"n": pa.array(range(300)), "v": pv.parse_json(texts)}
        pv.write(tmp_path / f"{number}.parquet", table, schema="infer", row_group_bytes=4096)
    columns, where = {"n": "n", "a": "$.a:bigint", "b": "$.b:string"}, "b <> '3' and a > 100"
    expected = pv.open(tmp_path).scan(columns, where, threads=1).to_arrow()
    assert expected.num_rows > 1000
    for threads in (2, 7, None):
        assert pv.open(tmp_path).scan(columns, where, threads=threads).to_arrow().equals(expected)
        query = "SELECT n, v:a::bigint AS a, v:b::string AS b FROM t WHERE v:b::string <> '3' AND v:a::bigint > 100"
        answer = pv.sql(query, t=str(tmp_path), threads=threads).to_arrow()
        assert sorted(answer["a"].to_pylist()) == sorted(expected["a"].to_pylist())
    assert own_threads() == []


def test_a_reader_that_leaves_closes_the_files(tmp_path: Path) -> None:
    for number in range(6):
        pv.write(tmp_path / f"{number}.parquet", pv.parse_json(['{"a": 1}'] * 10), schema="infer")
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0  # noqa: PTH208, PTH112
    for _ in range(3):
        parts = pv.open(tmp_path).scan({"a": "$.a:int"}, threads=3).batches()
        assert next(parts).num_rows == 10
        parts.close()  # type: ignore[attr-defined]
    if before:
        assert len(os.listdir("/proc/self/fd")) <= before + 1  # noqa: PTH208


def test_the_row_of_an_error_counts_from_the_start_of_its_file(tmp_path: Path) -> None:
    texts = ['{"a": 1}'] * 400 + ['{"a": "x"}'] + ['{"a": 2}'] * 400
    pv.write(tmp_path / "a.parquet", pv.parse_json(texts), schema="a int", row_group_bytes=2048)
    for threads in (1, 4):
        with pytest.raises(VariantError) as caught:
            pv.open(tmp_path).scan({"a": "$.a:int"}, errors="raise", threads=threads).to_arrow()
        assert caught.value.row == 400


# ---- items that are read ahead


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
def test_steps_come_in_order_and_failures_after_what_came_before(threads):
    assert list(in_order(call, steps(50), threads, read_ahead=True)) == list(range(50))
    for error, failing in ((ZeroDivisionError, {"fails": 7}), (LookupError, {"breaks": 7})):
        found: list[int] = []
        with pytest.raises(error):
            found.extend(result for result in in_order(call, steps(50, **failing), threads, read_ahead=True))
        assert found == list(range(7))
    with pytest.raises(ZeroDivisionError):  # what fails first in the order of the steps, not in time
        list(in_order(call, steps(50, fails=3, breaks=4), threads, read_ahead=True))


def test_steps_run_at_the_same_time():
    meeting = threading.Barrier(2, timeout=30)
    assert sorted(in_order(call, iter([meeting.wait] * 2), 2, read_ahead=True)) == [0, 1]


def test_steps_are_not_read_far_ahead():
    read = []

    def endless():
        while True:
            read.append(None)
            yield lambda: 1

    results = in_order(call, endless(), 2, read_ahead=True)
    assert [next(results) for _ in range(3)] == [1, 1, 1]
    results.close()
    assert len(read) <= 3 + 2 + 2
