"""Signatures of public functions whose keyword arguments are declared in a `TypedDict`.

Owns the signature that lists such keywords for `help` and completion. Leaves their meaning to the functions.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


class _UnknownDefault:
    """The default of a keyword that no owner declares; `help` prints it as ``...``."""

    def __repr__(self) -> str:
        return "..."


_UNKNOWN_DEFAULT = _UnknownDefault()


def with_keywords(table: type, *owners: Callable[..., Any]) -> Callable[[F], F]:
    """Replace a function's ``**options`` in its signature by the keywords of a `TypedDict`.

    `owners`: functions and classes whose parameters of the same names have the defaults.

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
        name: parameter.default
        for owner in owners
        for name, parameter in signature(owner).parameters.items()
        if parameter.default is None or isinstance(parameter.default, (bool, int, float, str, tuple))
    }

    def decorate(function: F) -> F:
        declared = signature(function)
        named = [parameter for parameter in declared.parameters.values() if parameter.kind is not Parameter.VAR_KEYWORD]
        keywords = [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=defaults.get(name, _UNKNOWN_DEFAULT),
                annotation=getattr(kind, "__forward_arg__", kind),
            )
            for name, kind in table.__annotations__.items()
            if name not in declared.parameters
        ]
        function.__signature__ = declared.replace(parameters=[*named, *keywords])  # type: ignore[attr-defined]
        return function

    return decorate
