"""Progress on stderr, for anything that takes longer than a second.

Owns when and how progress is shown: a bar on a terminal, now and then a line anywhere else. Leaves what has been done
to the operation, which calls it.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

__all__ = ["Progress"]

_FIRST_SECONDS = 1.0
_LINE_SECONDS = 10.0


class Progress:
    """Shows how far a command is, over one or more steps; call it with ``(step, done, total)``.

    Nothing is shown for the first second, and at least the step's name after it.

    Examples
    --------
    >>> with Progress() as progress:
    ...     progress("write", 1, 4)
    """

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._shown = self._begun
        self._terminal = sys.stderr.isatty()
        self._bar: Any = None
        self._task: Any = None
        self._step = ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, step: str, done: int, total: int) -> None:
        """Say that `done` of `total` parts of a step are behind us."""
        if self._terminal:
            self._draw(step, done, total)
        else:
            self._print(step, done, total)
        self._step = step

    def _print(self, step: str, done: int, total: int) -> None:
        now = time.monotonic()
        waited = now - self._shown
        if waited >= _LINE_SECONDS or (step != self._step and now - self._begun >= _FIRST_SECONDS):
            self._shown = now
            print(f"{step}: {done} of {total}, {now - self._begun:.0f} s", file=sys.stderr, flush=True)

    def _draw(self, step: str, done: int, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bar

        if self._bar is None:
            columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            self._bar = Bar(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
            self._bar.start()
        if step != self._step or self._task is None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(step, total=total)
        self._bar.update(self._task, completed=done, total=total)
