"""Work in threads with results in order, and a bounded number of results in memory.

Owns the default number of threads, and the window of running work. `engine` runs jobs with progress.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, TypeVar

from parquet_variant.errors import check_count

Item = TypeVar("Item")
Result = TypeVar("Result")
CGROUP = Path("/sys/fs/cgroup")
_POOLS = count()
# Upper limit, because some engines start all threads regardless of the amount of work.
_MAX_THREADS = 1024
_END: Any = object()


def thread_count(threads: int | None) -> int:
    """Return the number of threads that a user passed, or the default: the CPUs that this process may use.

    Raises `VariantError` for fewer than 1.
    """
    if threads is None:
        return available_cpus()
    check_count("threads", threads, 1, None)
    return min(threads, _MAX_THREADS)


def available_cpus() -> int:
    """Return the number of CPUs that this process may use, by its affinity and by its control group quota, rounded up.

    >>> 1 <= available_cpus() <= os.cpu_count()
    True
    """
    affinity = getattr(os, "sched_getaffinity", None)
    cpus = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    quota = cpu_quota()
    return cpus if quota is None else max(1, min(cpus, quota))


@cache
def cpu_quota() -> int | None:
    """Return the smallest CPU quota of the control groups (version 2) of this process; None without a quota.

    It is read once per process, because reading its files takes longer than a small scan.
    """
    name = ""
    with suppress(OSError, ValueError):
        lines = Path("/proc/self/cgroup").read_text().splitlines()
        name = next((line.removeprefix("0::/") for line in lines if line.startswith("0::/")), "")
    folder, limits = CGROUP / name, list[int]()
    for group in {folder, *(parent for parent in folder.parents if parent.is_relative_to(CGROUP)), CGROUP}:
        with suppress(OSError, ValueError):
            allowed, period = (group / "cpu.max").read_text().split()[:2]
            if allowed != "max":
                limits.append(-(-int(allowed) // int(period)))
    return min(limits, default=None)


class ThreadPool(ThreadPoolExecutor):
    """A pool whose threads have all ended after a `shutdown` that waits, even if Ctrl-C interrupted their start."""

    def __init__(self, threads: int) -> None:
        self.size = threads
        self._names = f"parquet-variant-{next(_POOLS)}"
        super().__init__(threads, thread_name_prefix=self._names)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Shut the pool down like any executor."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            # An interrupt while a thread starts prevents the executor from registering it.
            for thread in threading.enumerate():
                if thread.name.startswith(f"{self._names}_") and thread.is_alive():
                    thread.join()

    def run_all(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """Return the result for each item; this thread works, too, and each thread takes the next item when it is free.

        It has one future per thread, because a future per item takes longer than the work on a small column.
        """
        remaining = deque(enumerate(items))
        results: list[Any] = [None] * len(remaining)

        def run() -> None:
            while True:
                try:
                    place, item = remaining.popleft()
                except IndexError:
                    return
                results[place] = function(item)

        futures = [self.submit(run) for _ in range(min(self.size, len(remaining) - 1))]
        try:
            run()
            for future in futures:
                future.result()
        finally:
            remaining.clear()
            wait(futures)
        return results


def in_threads(function: Callable[[Item], Result], items: Iterable[Item], threads: int) -> list[Result]:
    """Return the result for each item, computed in some threads.

    >>> in_threads(lambda item: item * 10, range(3), threads=2)
    [0, 10, 20]
    """
    if threads == 1:
        return list(map(function, items))
    with ThreadPool(threads - 1) as pool:
        return pool.run_all(function, items)


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], threads: int, ahead: int = 1, *, read_ahead: bool = False
) -> Generator[Result, None, None]:
    """Yield the result for each item, in the order of the items.

    `function`: called in a thread, unless there is one thread or one item.
    `items`: iterated as items are needed.
    `threads`: the number of threads.
    `ahead`: additional results that may wait: at most ``threads + ahead`` are in memory.
    `read_ahead`: iterate the items in a thread, too, if that is expensive, such as decompressing.
    Raises `Exception`: the error of the function, or of iterating the items, after the results before it.

    >>> list(in_order(lambda item: item * 10, range(5), threads=2))
    [0, 10, 20, 30, 40]
    """
    remaining = iter(items)
    first = [] if read_ahead else list(islice(remaining, 2))
    if threads == 1 or (len(first) < 2 and not read_ahead):
        yield from map(function, chain(first, remaining))
        return
    pool = ThreadPool(threads + read_ahead)
    under_way: deque[Future[Result]] = deque()
    try:
        for future in _started(pool, function, chain(first, remaining), read_ahead):
            under_way.append(future)
            if len(under_way) >= threads + ahead:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:  # also if the reader stops or an item failed: wait for running work, and cancel the other
        pool.shutdown(wait=True, cancel_futures=True)


def grouped(items: Iterable[Item], size_of: Callable[[Item], int], limit: int) -> list[list[Item]]:
    """Group consecutive items up to a total size, so that many small ones make few tasks; a larger item is alone.

    >>> grouped([3, 4, 9, 1], lambda item: item, 8)
    [[3, 4], [9], [1]]
    """
    groups, filled = list[list[Item]](), 0
    for item in items:
        size = size_of(item)
        if not groups or filled + size > limit:
            groups.append([])
            filled = 0
        groups[-1].append(item)
        filled += size
    return groups


def _started(
    pool: ThreadPoolExecutor, function: Callable[[Item], Result], items: Iterator[Item], read_ahead: bool
) -> Iterator[Future[Result]]:
    """Yield the future of each item, started as the item is read; an error while reading an item is the last future."""
    try:
        if read_ahead:  # Read each item in a thread while the previous one is being processed.
            next_item = pool.submit(next, items, _END)
            while (item := next_item.result()) is not _END:
                next_item = pool.submit(next, items, _END)
                yield pool.submit(function, item)
        else:
            for item in items:
                yield pool.submit(function, item)
    except Exception as error:
        failed: Future[Result] = Future()
        failed.set_exception(error)
        yield failed
