"""Locks that a forked process can still take: a child inherits a held lock, but not the thread that would release it.

Owns `cached_property` without a lock, locks that a fork replaces (`in_forked_child`) or waits for (`hold_during_fork`),
and waiting for imports. Importing this module registers the hook for imports.
"""

from __future__ import annotations

import _imp
import os
import sys
import threading
import time
from collections.abc import Callable
from importlib import _bootstrap
from typing import Any, Generic, Protocol, TypeVar, overload

Value = TypeVar("Value")

# Packages whose modules are imported on first use, possibly by a thread while another thread forks.
_LAZY_PACKAGES = sys.stdlib_module_names | {
    "parquet_variant",
    "pyarrow",
    "numpy",
    "pandas",
    "duckdb",
    "sqlglot",
    "llvmlite",
    "numba",
}
# A fork waits this long for other threads. The limit only matters if an import or a compilation never ends.
_FORK_SECONDS = 10.0


class Lock(Protocol):
    """A lock, such as `threading.RLock()` returns."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock; return False if another thread holds it and `blocking` is False."""

    def release(self) -> None:
        """Release the lock."""


_LOCKS: list[Lock] = []
_held: list[Lock] = []


class cached_property(Generic[Value]):  # noqa: N801 - the name of the standard library's decorator
    """A property that is computed on first use and stored in the instance.

    Python 3.11 computes `functools.cached_property` under a lock that all instances share. If another thread computes
    one while the process forks, the child can never read that property. Here threads that come first together compute
    the value more than once, and all get the same object.

    Examples
    --------
    >>> class Circle:
    ...     @cached_property
    ...     def area(self) -> float:
    ...         return 3.14
    >>> circle = Circle()
    >>> circle.area, vars(circle)
    (3.14, {'area': 3.14})
    """

    def __init__(self, function: Callable[[Any], Value]) -> None:
        self._function = function
        self._name = function.__name__
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Value: ...
    def __get__(self, instance: object | None, owner: type | None = None) -> cached_property[Value] | Value:
        """Return the value, or the property itself when it is looked up on the class."""
        if instance is None:
            return self
        values = instance.__dict__
        # Python looks into the instance first, so that this runs only before the value is stored.
        value: Value = values.setdefault(self._name, self._function(instance))
        return value


def in_forked_child(function: Callable[[], None]) -> Callable[[], None]:
    """Call a function in every forked child, to replace a lock that another thread may have held.

    What the lock protects must be usable at any moment: the child sees it as the other thread left it.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)
    return function


def hold_during_fork(lock: Lock) -> None:
    """Let a fork wait until no thread holds a lock, because what it protects is unusable while a thread changes it.

    The lock must be one that its thread can take again (`threading.RLock`).
    """
    _LOCKS.append(lock)


class _ImportLock:
    """The lock under which importlib makes the locks of modules, taken only while no other thread imports."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock; return False if another thread imports a module that a child may need."""
        _imp.acquire_lock()
        this_thread = threading.get_ident()
        # Module locks are private to importlib, but the same in Python 3.3 to 3.14. A lock exists while its module is
        # imported, and has no owner for a moment before it is taken.
        for name, reference in list(getattr(_bootstrap, "_module_locks", {}).items()):
            lock = reference()
            if lock is not None and name.partition(".")[0] in _LAZY_PACKAGES and lock.owner != this_thread:
                _imp.release_lock()
                return False
        return True

    def release(self) -> None:
        """Release the lock."""
        _imp.release_lock()


def _take_locks() -> bool:
    """Take all locks, or none of them if another thread has one."""
    # The hook of logging waits for its lock after the lock of imports is taken here: another thread must not have it.
    of_logging = getattr(sys.modules.get("logging"), "_lock", None)
    for lock in [*_LOCKS, *filter(None, [of_logging]), _ImportLock()]:
        if not lock.acquire(blocking=False):
            _release_locks()
            return False
        _held.append(lock)
    return True


def _release_locks() -> None:
    while _held:
        _held.pop().release()


def _before_fork() -> None:
    """Wait until a child can import and compile: it would wait forever for a lock of a thread that it does not have."""
    deadline = time.monotonic() + _FORK_SECONDS
    while not _take_locks() and time.monotonic() < deadline:
        time.sleep(0.001)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_release_locks, after_in_child=_release_locks)
