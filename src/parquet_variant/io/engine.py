"""Engines that run the tasks of a job, in threads of this process or on Spark, and the progress that they report.

Owns the interface, and threads: running tasks, stopping at the first failure, and interrupting running tasks; and the
progress on stderr: a bar on a terminal and in a notebook, otherwise a line every ten seconds. `spark.engine` runs tasks
on Spark.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar, copy_context
from functools import partial, reduce
from itertools import count
from threading import Event, Lock
from typing import Any, Protocol, TypeAlias, TypeVar

from parquet_variant.errors import bad_option
from parquet_variant.io.parallel import ThreadPool, thread_count

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
