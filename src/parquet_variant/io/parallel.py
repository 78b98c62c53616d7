"""Work in threads with results in order, and engines that run the tasks of a job, in threads or on Spark.

Owns the default number of threads, and the window of running work, with a bounded number of results in memory. Owns
the interface of engines, and threads: running tasks, stopping at the first failure, and interrupting running tasks; and
the progress on stderr: a bar on a terminal and in a notebook, otherwise a line every ten seconds. `spark.engine` runs
tasks on Spark.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import ContextVar, copy_context
from functools import cache, partial, reduce
from itertools import chain, count, islice
from pathlib import Path
from threading import Event, Lock
from typing import Any, Protocol, TypeAlias, TypeVar

from parquet_variant.errors import bad_option, check_count

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


# A function of the name of the step, the number of finished tasks and the total number of tasks.
ReportTasks: TypeAlias = Callable[[str, int, int], None]
LINE_SECONDS = 10.0


class ShownProgress:
    """Shows the progress of a job with one or more steps; call it with ``(step, done, total)``.

    On a terminal and in a notebook it is a bar, which is removed at the end. Elsewhere it is a line every ten seconds,
    so that a log shows that the job is alive, and a quick failure logs only its error.

    >>> with ShownProgress() as progress:
    ...     progress("write", 1, 4)
    """

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._step, self._text, self._seconds = "start", "", self._begun
        self._done = threading.Event()
        self._printer: threading.Thread | None = None
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> ShownProgress:
        if not sys.stderr.isatty() and "ipykernel" not in sys.modules:
            self._printer = threading.Thread(target=self._print_lines, daemon=True)
            self._printer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        if self._printer is not None:
            self._printer.join()
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, step: str, done: int, total: int) -> None:
        """Report that `done` of `total` tasks of a step are complete."""
        self._show(step, done, total, f"{done} of {total}" if total > 1 else "")

    def show_bytes(self, step: str, read: int, total: int, rows: int) -> None:
        """Report that `read` of `total` stored bytes of the input of a step were read, which contain `rows` rows.

        >>> progress = ShownProgress()
        >>> progress.show_bytes("write", 20_000_000, 80_000_000, 5000)
        """
        seconds = max(time.monotonic() - self._seconds, 1e-3) if step == self._step else 0.0
        text = f"{read / 1e6:.1f} of {total / 1e6:.1f} MB"
        if rows and seconds:
            text += f", {rows / seconds:,.0f} rows/s"
        if read and seconds:
            text += f", {seconds * (total - read) / read:.0f} s left"
        self._show(step, read, total, text)

    def _show(self, step: str, done: int, total: int, text: str) -> None:
        is_new = step != self._step
        if is_new:
            self._step, self._seconds = step, time.monotonic()
        self._text = text
        if self._printer is not None:
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        if self._bar is None:
            labels = TextColumn("{task.description}"), TextColumn("{task.fields[text]}")
            columns = (SpinnerColumn(), labels[0], BarColumn(), labels[1], TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
        if is_new or self._task is None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(step, total=total, text=text)
        self._bar.update(self._task, completed=done, total=total, text=text)

    def _print_lines(self) -> None:
        while not self._done.wait(LINE_SECONDS):
            text = f": {self._text}" if self._text else ""
            print(f"{self._step}{text}, {time.monotonic() - self._begun:.0f} s", file=sys.stderr, flush=True)


def shown(progress: ReportTasks | bool | None) -> AbstractContextManager[ReportTasks | None]:
    """Return the function that a user passed, or one that shows the progress of a step if the user passed True."""
    if isinstance(progress, bool):
        return ShownProgress() if progress else nullcontext()
    return nullcontext(progress)


_STOP: ContextVar[Event | None] = ContextVar("stop", default=None)
_READ: ContextVar[Callable[[int, int], None] | None] = ContextVar("read", default=None)


class InterruptedJobError(Exception):
    """The job was interrupted, so the result of the task is not needed."""


def interruptible(
    stop: Event, function: Callable[..., Result], read: Callable[[int, int], None] | None = None
) -> Callable[..., Result]:
    """Return a function that runs another one, for one call in another thread, with `check_interrupted` bound to
    `stop` and `report_read` to `read`.

    >>> stop = Event()
    >>> stop.set()
    >>> interruptible(stop, check_interrupted)()
    Traceback (most recent call last):
    parquet_variant.io.parallel.InterruptedJobError
    """
    context = copy_context()
    context.run(_STOP.set, stop)
    context.run(_READ.set, read)
    return lambda *arguments: context.run(function, *arguments)


def check_interrupted() -> None:
    """Raise `InterruptedJobError` if the job of this task was interrupted. Tasks call it between their steps."""
    stop = _STOP.get()
    if stop is not None and stop.is_set():
        raise InterruptedJobError


def report_read(stored_bytes: int, rows: int) -> None:
    """Report that the task has read some more bytes of its input, with their rows, to who watches the job."""
    if (report := _READ.get()) is not None:
        report(stored_bytes, rows)


# What a user passes: True shows the progress.
Progress: TypeAlias = ReportTasks | bool


class Engine(Protocol):
    """Runs the tasks of a job."""

    @property
    def parallelism(self) -> int:
        """Number of tasks that run at the same time."""

    @property
    def local(self) -> Engine:
        """An engine in this process, for small tasks: this one, unless it runs tasks elsewhere."""
        return self

    def run(
        self, step: str, function: Callable[[int, int, Item], Result], items: Sequence[Item], sizes: Sequence[int] = ()
    ) -> list[Result]:
        """Run ``function(task, attempt, item)`` for every item and return the results in order.

        `sizes`: the stored bytes that each task reads; then `report_read` counts for the progress.
        """

    def reduce(
        self,
        step: str,
        function: Callable[[int, int, Item], Result],
        items: Sequence[Item],
        merge: Callable[[Result, Result], Result],
        sizes: Sequence[int] = (),
    ) -> Result:
        """Run the tasks and merge their results, in any order."""
        return reduce(merge, self.run(step, function, items, sizes))


class ThreadEngine(Engine):
    """An engine that runs tasks in threads (default: one per CPU that this process may use).

    Raises `VariantError` for fewer threads than 1.

    >>> ThreadEngine(2, None).reduce("add", lambda task, attempt, item: item * 10, [1, 2, 3], lambda a, b: a + b)
    60
    """

    parallelism = 1

    def __init__(self, threads: int | None = None, progress: Progress | None = None) -> None:
        self.parallelism = thread_count(threads)
        if not (progress is None or isinstance(progress, bool) or callable(progress)):
            raise bad_option(
                f"progress is {progress!r}: give True, or a function of a step, a number of tasks and their total"
            )
        self.progress = progress

    def run(
        self, step: str, function: Callable[[int, int, Item], Result], items: Sequence[Item], sizes: Sequence[int] = ()
    ) -> list[Result]:
        """Run the tasks and return their results in order. The first failure stops tasks that have not started."""
        futures: list[Future[Result]] = []
        done, stop, lock = count(1), Event(), Lock()
        stored, rows = [0] * len(sizes), 0  # The stored bytes that each task has read, and the rows in them.
        with shown(self.progress) as progress, ThreadPool(min(self.parallelism, max(len(items), 1))) as pool:
            show_bytes = getattr(progress, "show_bytes", None) if sum(sizes) else None
            if progress and show_bytes is None:
                progress(step, 0, len(items))

            def add(task: int, more_bytes: int, more_rows: int) -> None:
                nonlocal rows
                if show_bytes is not None:
                    with lock:
                        stored[task] = min(stored[task] + more_bytes, sizes[task])
                        rows += more_rows
                        show_bytes(step, sum(stored), sum(sizes), rows)

            def report(task: int, future: Future[Result]) -> None:
                if progress and not future.cancelled() and future.exception() is None:
                    if show_bytes is None:
                        progress(step, next(done), len(items))
                    else:
                        add(task, sizes[task], 0)

            try:
                for task, item in enumerate(items):
                    work = interruptible(stop, function, partial(add, task))
                    futures.append(pool.submit(work, task, 0, item))
                    futures[-1].add_done_callback(partial(report, task))
                wait(futures, return_when=FIRST_EXCEPTION)
            except BaseException:
                stop.set()  # Ctrl-C: nobody waits for the running tasks
                raise
            finally:
                # After a failure or an interrupt, waiting tasks must not start.
                pool.shutdown(wait=False, cancel_futures=True)
        failed = next((future for future in futures if not future.cancelled() and future.exception()), None)
        return [future.result() for future in ([failed] if failed else futures)]
