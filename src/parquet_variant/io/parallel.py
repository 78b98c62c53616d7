"""Work in threads whose results come in order, with no more of them in memory than threads ask for.

Owns how many threads there are by default, and the window of work that is under way. Leaves what the work is to its
callers, and jobs with progress to `thread_engine`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import TypeVar

from parquet_variant.errors import VariantError

__all__ = ["available_cpus", "cpu_quota", "in_order", "thread_count"]

Item = TypeVar("Item")
Result = TypeVar("Result")
_CGROUP = Path("/sys/fs/cgroup")


def thread_count(threads: int | None) -> int:
    """The number of threads that a user asked for, or the default: the CPUs that this process may use.

    Raises
    ------
    VariantError
        For fewer than 1.
    """
    if threads is None:
        return available_cpus()
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise VariantError(f"threads is {threads!r}: give 1 or more", reason="bad-option")
    return threads


def available_cpus() -> int:
    """The CPUs that this process may use: by its affinity, and by the quota of its control groups, rounded up.

    Examples
    --------
    >>> 1 <= available_cpus() <= os.cpu_count()
    True
    """
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    quota = cpu_quota()
    return count if quota is None else max(1, min(count, quota))


@cache
def cpu_quota() -> int | None:
    """The tightest CPU quota of this process's control groups, version 2 or 1; None without one.

    Read once a process: the twenty files that say it take longer than a small scan.
    """
    found = []
    for folder in _own_groups():
        with suppress(OSError, ValueError):
            allowed, period = (folder / "cpu.max").read_text().split()[:2]
            if allowed != "max":
                found.append(-(-int(allowed) // int(period)))
        with suppress(OSError, ValueError):
            allowed, period = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
            if int(allowed) > 0:
                found.append(-(-int(allowed) // int(period)))
    return min(found, default=None)


def _own_groups() -> Iterator[Path]:
    """The folders of this process's control groups and of those around them."""
    lines = []
    with suppress(OSError):
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    for line in lines:
        number, controllers, name = line.split(":", 2)
        if number != "0" and "cpu" not in controllers.split(","):
            continue
        root = _CGROUP if number == "0" else _CGROUP / controllers
        folder = root / name.lstrip("/")
        yield from (folder, *(each for each in folder.parents if each.is_relative_to(root)))
    yield from (_CGROUP, _CGROUP / "cpu")


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int, ahead: int = 1
) -> Generator[Result, None, None]:
    """The result of each item, in the order of the items.

    Parameters
    ----------
    work
        Called in a thread, unless there is one thread or one item.
    items
        Taken as they are needed.
    threads
        How many work at the same time.
    ahead
        Results that may wait beside them: no more than ``threads + ahead`` are in memory.

    Examples
    --------
    >>> list(in_order(lambda item: item * 10, range(5), threads=2))
    [0, 10, 20, 30, 40]
    """
    waiting = iter(items)
    first = list(islice(waiting, 2))
    if threads == 1 or len(first) < 2:
        yield from map(work, chain(first, waiting))
        return
    waiting = chain(first, waiting)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="parquet-variant")
    under_way: deque[Future[Result]] = deque()
    try:
        for item in waiting:
            under_way.append(pool.submit(work, item))
            if len(under_way) >= threads + ahead:
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:  # also when the reader leaves, or one has failed: what runs is waited for, the rest never begins
        pool.shutdown(wait=True, cancel_futures=True)
