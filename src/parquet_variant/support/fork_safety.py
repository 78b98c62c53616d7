"""State that a forked process can still use: a child inherits held locks, but not the threads that would release them.

Owns locks that a child replaces (`in_forked_child`), and imports of other threads: a fork waits for the first use of a
public name (`loading`), in which libraries are loaded that cannot be loaded twice; other unfinished imports are begun
again in the child. Later forks wait for nothing, and no fork takes a lock.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import _bootstrap
from threading import get_ident


def in_forked_child(function: Callable[[], None]) -> Callable[[], None]:
    """Call a function in every forked child, to replace a lock that another thread may have held.

    What the lock protects must be usable at any moment: the child sees it as the other thread left it.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)
    return function


# A fork waits this long for other threads. The limit only matters if an import never ends.
_MAX_SECONDS = 10.0
# The threads that load public names or libraries for the first time, and those that are about to fork.
_loading: set[int] = set()
_forking: set[int] = set()


@contextmanager
def loading() -> Iterator[None]:
    """Let forks of other threads wait while the block imports modules for the first time."""
    thread = get_ident()
    if thread in _loading:
        yield
        return
    try:
        # Each side announces itself before it looks for the other, so that at least one of them waits.
        _loading.add(thread)
        while _forking - {thread}:
            _loading.discard(thread)
            time.sleep(0.001)
            _loading.add(thread)
        yield
    finally:
        _loading.discard(thread)


def _before_fork() -> None:
    _forking.add(get_ident())
    end = time.monotonic() + _MAX_SECONDS
    while _loading - {get_ident()} and time.monotonic() < end:
        time.sleep(0.001)


@in_forked_child
def _forget_other_threads() -> None:
    """Forget the modules that other threads were importing, whose locks (private to importlib, and the same in Python
    3.3 to 3.14) a child would wait for without end.
    """
    _forking.clear()
    _loading.intersection_update({get_ident()})
    locks = getattr(_bootstrap, "_module_locks", {})
    for name, reference in list(locks.items()):
        lock = reference()
        # A lock without an owner may be held for the moment in which a thread takes it.
        if lock is not None and lock.owner != get_ident():
            locks.pop(name, None)
            if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
                del sys.modules[name]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=lambda: _forking.discard(get_ident()))
