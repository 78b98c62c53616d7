"""Engines that run the tasks of a job: threads of this process, or Spark.

Owns the interface, and threads: running tasks, progress, stopping at the first failure, and interrupting running tasks.
`spark.engine` runs tasks on Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextvars import ContextVar, copy_context
from functools import reduce
from itertools import count
from threading import Event
from typing import Protocol, TypeAlias, TypeVar

from parquet_variant.errors import bad_option
from parquet_variant.io.parallel import ThreadPool, thread_count

Item = TypeVar("Item")
Result = TypeVar("Result")
_STOP: ContextVar[Event | None] = ContextVar("stop", default=None)


class InterruptedJobError(Exception):
    """The job was interrupted, so the result of the task is not needed."""


def interruptible(stop: Event, function: Callable[..., Result]) -> Callable[..., Result]:
    """Return a function that runs another one, for one call in another thread, with `check_interrupted` bound to
    `stop`.

    >>> stop = Event()
    >>> stop.set()
    >>> interruptible(stop, check_interrupted)()
    Traceback (most recent call last):
    parquet_variant.io.engine.InterruptedJobError
    """
    context = copy_context()
    context.run(_STOP.set, stop)
    return lambda *arguments: context.run(function, *arguments)


def check_interrupted() -> None:
    """Raise `InterruptedJobError` if the job of this task was interrupted. Tasks call it between their steps."""
    stop = _STOP.get()
    if stop is not None and stop.is_set():
        raise InterruptedJobError


# Called with the name of the step, the number of finished tasks and the total number of tasks.
Progress: TypeAlias = Callable[[str, int, int], None]


class Engine(Protocol):
    """Runs the tasks of a job."""

    @property
    def parallelism(self) -> int:
        """Number of tasks that run at the same time."""

    @property
    def local(self) -> Engine:
        """An engine in this process, for small tasks."""

    def run(self, step: str, function: Callable[[int, int, Item], Result], items: Sequence[Item]) -> list[Result]:
        """Run ``function(task, attempt, item)`` for every item and return the results in order."""

    def reduce(
        self,
        step: str,
        function: Callable[[int, int, Item], Result],
        items: Sequence[Item],
        merge: Callable[[Result, Result], Result],
    ) -> Result:
        """Run the tasks and merge their results, in any order."""


class ThreadEngine:
    """An engine that runs tasks in threads (default: one per CPU that this process may use).

    Raises `VariantError` for fewer threads than 1.

    >>> ThreadEngine(2, None).reduce("add", lambda task, attempt, item: item * 10, [1, 2, 3], lambda a, b: a + b)
    60
    """

    def __init__(self, threads: int | None, progress: Progress | None) -> None:
        self.parallelism = thread_count(threads)
        if progress is not None and not callable(progress):
            raise bad_option(f"progress is {progress!r}: give a function of a step, a number of tasks and their total")
        self.progress = progress

    @property
    def local(self) -> ThreadEngine:
        """This engine."""
        return self

    def run(self, step: str, function: Callable[[int, int, Item], Result], items: Sequence[Item]) -> list[Result]:
        """Run the tasks and return their results in order. The first failure stops tasks that have not started."""
        if self.progress:
            self.progress(step, 0, len(items))
        done, stop = count(1), Event()

        def report(future: Future[Result]) -> None:
            if self.progress and not future.cancelled() and future.exception() is None:
                self.progress(step, next(done), len(items))

        futures: list[Future[Result]] = []
        with ThreadPool(min(self.parallelism, max(len(items), 1))) as pool:
            try:
                for task, item in enumerate(items):
                    futures.append(pool.submit(interruptible(stop, function), task, 0, item))
                    futures[-1].add_done_callback(report)
                wait(futures, return_when=FIRST_EXCEPTION)
            except BaseException:
                stop.set()  # Ctrl-C: nobody waits for the running tasks
                raise
            finally:
                # After a failure or an interrupt, waiting tasks must not start.
                pool.shutdown(wait=False, cancel_futures=True)
        failed = next((future for future in futures if not future.cancelled() and future.exception()), None)
        return [future.result() for future in ([failed] if failed else futures)]

    def reduce(
        self,
        step: str,
        function: Callable[[int, int, Item], Result],
        items: Sequence[Item],
        merge: Callable[[Result, Result], Result],
    ) -> Result:
        """Run the tasks and merge their results."""
        return reduce(merge, self.run(step, function, items))


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
