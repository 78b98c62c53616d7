"""Keywords that got another name: the old one works for a release, and warns.

Owns the warning. Leaves what a keyword means to the functions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
# What overwrite= became.
REPLACED = ("mode", {True: "overwrite", False: "error"})


def renamed(**names: str | tuple[str, Mapping[Any, Any]]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function take old keywords.

    `**names`: the new name of each old one; with it the new values of old ones, where those have changed too.
    Raises `TypeError` on the call, if both names are given.

    >>> @renamed(errors=("on_error", {"raise": "fail"}))
    ... def read(*, on_error="fail"):
    ...     return on_error
    >>> with warnings.catch_warnings(record=True, action="always") as told:
    ...     read(errors="raise"), str(told[0].message)
    ('fail', 'read: errors= is now on_error=; the old name goes with the next release')
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        name = function.__qualname__.removesuffix(".__init__")

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for old in names.keys() & kwargs.keys():
                target = names[old]
                new, values = (target, {}) if isinstance(target, str) else target
                if new in kwargs:
                    raise TypeError(f"{name}: {old}= is now {new}=: give one of them")
                value: Any = kwargs.pop(old)
                warnings.warn(
                    f"{name}: {old}= is now {new}=; the old name goes with the next release",
                    DeprecationWarning,
                    stacklevel=2,
                )
                kwargs[new] = values.get(value, value) if values else value
            return function(*args, **kwargs)

        return call

    return decorate
