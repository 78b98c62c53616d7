"""What runs the tasks of a job: threads of this process, which kernels and pyarrow let run at the same time, or Spark.

Owns the interface, and threads: running tasks, progress, stopping at the first failure, and the word from the job to
its tasks that it was interrupted. Leaves Spark to `spark.engine`, and what the tasks do to whoever hands them in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextvars import ContextVar, copy_context
from functools import reduce
from itertools import count
from threading import Event
from typing import Protocol, TypeAlias, TypeVar

from parquet_variant.io.parallel import ThreadPool, thread_count

Item = TypeVar("Item")
Result = TypeVar("Result")
_STOP: ContextVar[Event | None] = ContextVar("stop", default=None)


class InterruptedJobError(Exception):
    """The job was interrupted: what the task would do is not wanted any more."""


def interruptible(stop: Event, work: Callable[..., Result]) -> Callable[..., Result]:
    """The same work, for one call in another thread, within which `check_interrupted` asks `stop`.

    >>> stop = Event()
    >>> stop.set()
    >>> interruptible(stop, check_interrupted)()
    Traceback (most recent call last):
    parquet_variant.io.engine.InterruptedJobError
    """
    context = copy_context()
    context.run(_STOP.set, stop)
    return lambda *words: context.run(work, *words)


def check_interrupted() -> None:
    """Raise `InterruptedJobError` if the job of this task was interrupted; tasks call it between their steps."""
    stop = _STOP.get()
    if stop is not None and stop.is_set():
        raise InterruptedJobError


# Called with the name of the step, the tasks done and the tasks in all.
Progress: TypeAlias = Callable[[str, int, int], None]


class Engine(Protocol):
    """What runs the tasks of a job."""

    @property
    def parallelism(self) -> int:
        """Tasks that run at the same time."""

    @property
    def local(self) -> Engine:
        """An engine in this process, for work that is done sooner than handed out."""

    def run(self, step: str, work: Callable[[int, int, Item], Result], items: Sequence[Item]) -> list[Result]:
        """Run ``work(task, attempt, item)`` for every item and give the results in order."""

    def reduce(
        self,
        step: str,
        work: Callable[[int, int, Item], Result],
        items: Sequence[Item],
        merge: Callable[[Result, Result], Result],
    ) -> Result:
        """Run the same and merge the results, in any order."""


class ThreadEngine:
    """An engine that runs tasks in threads.

    Parameters
    ----------
    threads
        How many work at the same time; by default the CPUs that this process may use.
    progress
        Called with the step, the tasks done and the tasks in all.

    Raises
    ------
    VariantError
        For fewer threads than 1.

    Examples
    --------
    >>> ThreadEngine(2, None).reduce("add", lambda task, attempt, item: item * 10, [1, 2, 3], lambda a, b: a + b)
    60
    """

    def __init__(self, threads: int | None, progress: Progress | None) -> None:
        self.parallelism = thread_count(threads)
        self.progress = progress

    @property
    def local(self) -> ThreadEngine:
        """This engine."""
        return self

    def run(self, step: str, work: Callable[[int, int, Item], Result], items: Sequence[Item]) -> list[Result]:
        """Run the tasks and give their results in order; the first that fails stops those that have not begun."""
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
                    futures.append(pool.submit(interruptible(stop, work), task, 0, item))
                    futures[-1].add_done_callback(report)
                wait(futures, return_when=FIRST_EXCEPTION)
            except BaseException:
                stop.set()  # Ctrl-C: nobody waits for what tasks have begun
                raise
            finally:
                # What has not begun need not begin after a failure or an interrupt.
                pool.shutdown(wait=False, cancel_futures=True)
        failed = next((future for future in futures if not future.cancelled() and future.exception()), None)
        return [future.result() for future in ([failed] if failed else futures)]

    def reduce(
        self,
        step: str,
        work: Callable[[int, int, Item], Result],
        items: Sequence[Item],
        merge: Callable[[Result, Result], Result],
    ) -> Result:
        """Run the tasks and merge their results."""
        return reduce(merge, self.run(step, work, items))
