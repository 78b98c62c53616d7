"""Engines that run the tasks of a job: threads of this process, or Spark.

Owns the interface, and threads: running tasks, progress, stopping at the first failure, and interrupting running tasks.
`spark.engine` runs tasks on Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextvars import ContextVar, copy_context
from functools import partial, reduce
from itertools import count
from threading import Event
from typing import Protocol, TypeAlias, TypeVar

from parquet_variant.errors import bad_option
from parquet_variant.io.parallel import ThreadPool, thread_count
from parquet_variant.io.progress import BytesRead, ReportTasks, shown

Item = TypeVar("Item")
Result = TypeVar("Result")
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
    parquet_variant.io.engine.InterruptedJobError
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

    def __init__(self, threads: int | None, progress: Progress | None) -> None:
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
        with shown(self.progress) as progress:
            return self._run(progress, step, function, items, BytesRead(progress, step, sizes))

    def _run(
        self,
        progress: ReportTasks | None,
        step: str,
        function: Callable[[int, int, Item], Result],
        items: Sequence[Item],
        read: BytesRead,
    ) -> list[Result]:
        if progress and not read.is_reported:
            progress(step, 0, len(items))
        done, stop = count(1), Event()

        def report(task: int, future: Future[Result]) -> None:
            if progress and not future.cancelled() and future.exception() is None:
                if read.is_reported:
                    read.end(task)
                else:
                    progress(step, next(done), len(items))

        futures: list[Future[Result]] = []
        with ThreadPool(min(self.parallelism, max(len(items), 1))) as pool:
            try:
                for task, item in enumerate(items):
                    work = interruptible(stop, function, partial(read.add, task))
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


def engine_or_threads(engine: Engine | None, threads: int | None, progress: Progress | None) -> Engine:
    """Return the engine that a user passed, or else one that runs tasks in threads.

    >>> engine_or_threads("spark", None, None)
    Traceback (most recent call last):
    parquet_variant.errors.VariantError: engine is 'spark': leave it out, or give an engine of parquet_variant
    """
    if engine is None:
        return ThreadEngine(threads, progress)
    if not hasattr(engine, "reduce"):
        raise bad_option(f"engine is {engine!r}: leave it out, or give an engine of parquet_variant")
    return engine
