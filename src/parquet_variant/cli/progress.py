"""Progress on stderr, for anything that takes longer than a second.

Owns when and how progress is shown: a bar on a terminal, now and then a line anywhere else. Leaves what has been done
to the operation, which calls `Progress.update`.
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
    """The progress of one command, in bytes, over one or more stages.

    An operation calls ``update(stage, done, total)`` as often as it likes; a total of 0 means that it is not known.
    Nothing is shown for the first second.

    Examples
    --------
    >>> with Progress() as progress:
    ...     progress.update("writing", 10, 100)
    """

    def __init__(self) -> None:
        self._begun = self._shown = time.monotonic()
        self._terminal = sys.stderr.isatty()
        self._bar: Any = None
        self._task: Any = None
        self._stage = ""

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, stage: str, done: int, total: int) -> None:
        """Say that `done` of `total` bytes of a stage are behind us."""
        now = time.monotonic()
        if now - self._begun < _FIRST_SECONDS:
            return
        if self._terminal:
            self._draw(stage, done, total)
        elif now - self._shown >= _LINE_SECONDS or (stage != self._stage and done < total):
            self._shown = now
            share = f"{100 * done // total} %, " if total else ""
            print(f"{stage}: {share}{done / 1e6:,.0f} MB, {now - self._begun:.0f} s", file=sys.stderr, flush=True)
        self._stage = stage

    def _draw(self, stage: str, done: int, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeElapsedColumn, TransferSpeedColumn
        from rich.progress import Progress as Bar

        if self._bar is None:
            columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
            self._bar = Bar(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
            self._bar.start()
        if stage != self._stage or self._task is None:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task = self._bar.add_task(stage, total=total or None)
        self._bar.update(self._task, completed=done, total=total or None)
