"""Work in threads whose results come in order, with no more of them in memory than threads ask for.

Owns how many threads there are by default, and the window of work that is under way. Leaves what the work is to its
callers, and jobs with progress to `engine`.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, TypeVar

from parquet_variant.errors import VariantError

Item = TypeVar("Item")
Result = TypeVar("Result")
CGROUP = Path("/sys/fs/cgroup")
_POOLS = count()
# Some engines start as many as they are told, whatever there is to do.
_MOST_THREADS = 1024
_END: Any = object()


def thread_count(threads: int | None) -> int:
    """The number of threads that a user asked for, or the default: the CPUs that this process may use.

    Raises `VariantError` for fewer than 1.
    """
    if threads is None:
        return available_cpus()
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise VariantError(f"threads is {threads!r}: give 1 or more", reason="bad-option")
    return min(threads, _MOST_THREADS)


def available_cpus() -> int:
    """The CPUs that this process may use: by its affinity, and by the quota of its control groups, rounded up.

    >>> 1 <= available_cpus() <= os.cpu_count()
    True
    """
    affinity = getattr(os, "sched_getaffinity", None)
    cpus = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    quota = cpu_quota()
    return cpus if quota is None else max(1, min(cpus, quota))


@cache
def cpu_quota() -> int | None:
    """The tightest CPU quota of this process's control groups, version 2 or 1; None without one.

    Read once a process: the twenty files that say it take longer than a small scan.
    """
    limits = []
    for folder in _own_groups():
        with suppress(OSError, ValueError):
            allowed, period = (folder / "cpu.max").read_text().split()[:2]
            if allowed != "max":
                limits.append(-(-int(allowed) // int(period)))
        with suppress(OSError, ValueError):
            allowed, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
            if int(allowed) > 0:
                limits.append(-(-int(allowed) // int(period)))
    return min(limits, default=None)


def _own_groups() -> Iterator[Path]:
    """The folders of this process's control groups and of those around them."""
    lines = []
    with suppress(OSError):
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    for line in lines:
        number, controllers, name = line.split(":", 2)
        if number != "0" and "cpu" not in controllers.split(","):
            continue
        root = CGROUP if number == "0" else CGROUP / controllers
        folder = root / name.lstrip("/")
        yield from (folder, *(each for each in folder.parents if each.is_relative_to(root)))
    yield from (CGROUP, CGROUP / "cpu")


class ThreadPool(ThreadPoolExecutor):
    """A pool none of whose threads outlives a `shutdown` that waits, whenever Ctrl-C came."""

    def __init__(self, threads: int) -> None:
        self._names = f"parquet-variant-{next(_POOLS)}"
        super().__init__(threads, thread_name_prefix=self._names)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As of any executor."""
        super().shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            # An interrupt while a thread starts keeps the executor from noting that there is one.
            for thread in threading.enumerate():
                if thread.name.startswith(f"{self._names}_") and thread.is_alive():
                    thread.join()


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int, ahead: int = 1, *, read_ahead: bool = False
) -> Generator[Result, None, None]:
    """The result of each item, in the order of the items.

    `work`: called in a thread, unless there is one thread or one item.
    `items`: taken as they are needed.
    `threads`: how many work at the same time.
    `ahead`: results that may wait beside them: no more than ``threads + ahead`` are in memory.
    `read_ahead`: take the next item in a thread, too, where that is work of its own, such as decompressing.
    Raises `Exception`: what an item's work, or taking an item, raised, after the results before it.

    >>> list(in_order(lambda item: item * 10, range(5), threads=2))
    [0, 10, 20, 30, 40]
    """
    waiting = iter(items)
    first = [] if read_ahead else list(islice(waiting, 2))
    if threads == 1 or (len(first) < 2 and not read_ahead):
        yield from map(work, chain(first, waiting))
        return
    pool = ThreadPool(threads + read_ahead)
    under_way: deque[Future[Result]] = deque()
    try:
        for started in _started(pool, work, chain(first, waiting), read_ahead):
            under_way.append(started)
            if len(under_way) >= threads + ahead:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:  # also when the reader leaves, or one has failed: what runs is waited for, the rest never begins
        pool.shutdown(wait=True, cancel_futures=True)


def _started(
    pool: ThreadPoolExecutor, work: Callable[[Item], Result], items: Iterator[Item], read_ahead: bool
) -> Iterator[Future[Result]]:
    """The work on each item, begun as the item is taken; if taking one fails, that is the last."""
    try:
        for item in _read_ahead(pool, items) if read_ahead else items:
            yield pool.submit(work, item)
    except Exception as error:
        failed: Future[Result] = Future()
        failed.set_exception(error)
        yield failed


def _read_ahead(pool: ThreadPoolExecutor, items: Iterator[Item]) -> Iterator[Item]:
    """The items, each taken in a thread while the one before it is worked on."""
    taken = pool.submit(next, items, _END)
    while (item := taken.result()) is not _END:
        taken = pool.submit(next, items, _END)
        yield item
