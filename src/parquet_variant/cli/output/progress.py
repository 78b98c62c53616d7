"""Progress on stderr, for anything that takes longer than a second.

Owns when and how progress is shown: a bar on a terminal, now and then a line anywhere else. Leaves what has been done
to the operation, which calls it.
"""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import Any

LINE_SECONDS = 10.0


class Progress:
    """Shows how far a command is, over one or more steps; call it with ``(step, done, total)``.

    A bar on a terminal, which goes when the command is done. Elsewhere a line every ten seconds, whether or not
    anything has been called: a log shows that the command is alive, and of a quick failure only the error.

    >>> with Progress() as progress:
    ...     progress("write", 1, 4)
    """

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._state = ("start", 0, 0)
        self._done = threading.Event()
        self._printer: threading.Thread | None = None
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> Progress:
        if not sys.stderr.isatty():
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
        """Say that `done` of `total` parts of a step are behind us."""
        if self._printer is None:
            self._draw(step, done, total)
        self._state = (step, done, total)

    def _print_lines(self) -> None:
        while not self._done.wait(LINE_SECONDS):
            step, done, total = self._state
            counts = f": {done} of {total}" if total > 1 else ""
            print(f"{step}{counts}, {time.monotonic() - self._begun:.0f} s", file=sys.stderr, flush=True)

    def _draw(self, step: str, done: int, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        if self._bar is None:
            columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            self._bar = Bar(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
            self._bar.start()
        if step != self._state[0] or self._task is None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(step, total=total)
        self._bar.update(self._task, completed=done, total=total)
