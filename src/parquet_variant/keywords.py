"""Keywords of public functions: those that got another name, and those that are declared in a table of their own.

Owns the warning for an old name, and the signature that spells the keywords of a table out. Leaves what a keyword means
to the functions.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
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


class _Default:
    def __repr__(self) -> str:
        return "..."


_UNSAID = _Default()


def with_keywords(table: type, *owners: Callable[..., Any]) -> Callable[[F], F]:
    """Let `help` and completion see the keywords of a TypedDict in the place of a function's ``**options``.

    `owners`: functions and classes whose parameters of these names have the defaults.

    >>> from typing import TypedDict
    >>> class Sizes(TypedDict, total=False):
    ...     width: int
    ...     height: int
    >>> def drawn(width=80): ...
    >>> @with_keywords(Sizes, drawn)
    ... def draw(name, **options): ...
    >>> signature(draw)
    <Signature (name, *, width: 'int' = 80, height: 'int' = ...)>
    """
    defaults = {
        name: each.default
        for owner in owners
        for name, each in signature(owner).parameters.items()
        if each.default is None or isinstance(each.default, (bool, int, float, str, tuple))
    }

    def decorate(function: F) -> F:
        own = signature(function)
        named = [each for each in own.parameters.values() if each.kind is not Parameter.VAR_KEYWORD]
        more = [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=defaults.get(name, _UNSAID),
                annotation=getattr(kind, "__forward_arg__", kind),
            )
            for name, kind in table.__annotations__.items()
            if name not in own.parameters
        ]
        function.__signature__ = own.replace(parameters=[*named, *more])  # type: ignore[attr-defined]
        return function

    return decorate
