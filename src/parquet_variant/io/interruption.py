"""Tasks in threads that end soon after their job was interrupted.

Owns the word from the job to its tasks. Leaves when to ask to the tasks, and what is cleared up to their contexts.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, copy_context
from threading import Event
from typing import Any

_STOP: ContextVar[Event | None] = ContextVar("stop", default=None)


class InterruptedJobError(Exception):
    """The job was interrupted: what the task would do is not wanted any more."""


def interruptible(stop: Event, work: Callable[..., Any]) -> Callable[..., Any]:
    """The same work, for one call in another thread, within which `check_interrupted` asks `stop`.

    >>> stop = Event()
    >>> stop.set()
    >>> interruptible(stop, check_interrupted)()
    Traceback (most recent call last):
    parquet_variant.io.interruption.InterruptedJobError
    """
    context = copy_context()
    context.run(_STOP.set, stop)
    return lambda *words: context.run(work, *words)


def check_interrupted() -> None:
    """Raise `InterruptedJobError` if the job of this task was interrupted; tasks call it between their steps."""
    stop = _STOP.get()
    if stop is not None and stop.is_set():
        raise InterruptedJobError
