"""The progress of a job on stderr: a bar on a terminal and in a notebook, otherwise a line every ten seconds."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, TypeAlias

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
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
            texts = TextColumn("{task.description}"), TextColumn("{task.fields[text]}")
            columns = (SpinnerColumn(), texts[0], BarColumn(), texts[1], TimeElapsedColumn())
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


class BytesRead:
    """Adds up what the tasks of a step have read and reports it to a `ShownProgress`.

    `sizes`: the stored bytes of the input of each task.
    """

    def __init__(self, progress: ReportTasks | None, step: str, sizes: Sequence[int]) -> None:
        self._report = getattr(progress, "show_bytes", None) if sum(sizes) else None
        self._step, self._sizes = step, sizes
        self._read, self._rows = [0] * len(sizes), 0
        self._lock = threading.Lock()

    @property
    def is_reported(self) -> bool:
        """Whether anybody is interested."""
        return self._report is not None

    def add(self, task: int, read: int, rows: int) -> None:
        """Add bytes that a task has read, and the rows in them."""
        if self._report is not None:
            with self._lock:
                self._read[task] = min(self._read[task] + read, self._sizes[task])
                self._rows += rows
                self._report(self._step, sum(self._read), sum(self._sizes), self._rows)

    def end(self, task: int) -> None:
        """Add what a task has not reported, once it has ended."""
        self.add(task, self._sizes[task] if self._sizes else 0, 0)
