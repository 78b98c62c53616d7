"""Options of public functions: the values that they accept, and signatures that list those of a `TypedDict`.

Owns the names of values, which the library and the command line share, and the signature that ``help`` and completion
show. Imports nothing that is slow to load. Leaves the meaning of the options to the functions that accept them.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, Literal, TypeAlias, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

# What to do if the destination holds data. A single file cannot be appended to.
Mode: TypeAlias = Literal["error", "append", "overwrite", "ignore"]
FileMode: TypeAlias = Literal["error", "overwrite"]
# Of tables also ``"replace"``: a new definition that keeps the history.
TableMode: TypeAlias = Literal[Mode, "replace"]
# The format of the input, what to do with a line that is not JSON, and the format of the output.
SchemaOf: TypeAlias = Literal["table", "file"]
InputFormat: TypeAlias = Literal["auto", "ndjson", "array", "documents", "csv"]
OnError: TypeAlias = Literal["fail", "quarantine", "null"]
OnInexact: TypeAlias = Literal["report", "fail"]
# What to do with rows that break a contract.
OnViolation: TypeAlias = Literal["fail", "quarantine", "warn"]
# How strict a contract is that is inferred from data.
ContractLevel: TypeAlias = Literal["loose", "normal", "strict"]
# The forms of a contract in a file, and of the report of a check.
ContractFormat: TypeAlias = Literal["yaml", "json-schema", "odcs", "soda"]
ReportFormat: TypeAlias = Literal["text", "json", "junit", "github"]
OutputFormat: TypeAlias = Literal["parquet", "delta", "iceberg", "vortex"]
PublishFormat: TypeAlias = Literal["iceberg", "delta", "ducklake"]
# How Variants are stored in columns of Parquet and Vortex files, and what to do if typed and untyped columns conflict.
Layout: TypeAlias = Literal["unshredded", "final", "draft-paths", "draft-object"]
VortexLayout: TypeAlias = Literal["auto", "variant", "struct"]
AnyLayout: TypeAlias = Literal[Layout, VortexLayout]
OnConflict: TypeAlias = Literal["error", "typed"]
# What to do with a value that cannot be cast to the type of a path.
Errors: TypeAlias = Literal["null", "raise"]
SqlEngine: TypeAlias = Literal["duckdb", "spark"]
# The order of a list of paths.
SortBy: TypeAlias = Literal["path", "saved", "residual", "typed", "missing"]
PathOrder: TypeAlias = Literal["file", "path", "bytes", "residual", "typed", "missing"]

# How much time the compression of Parquet files may take: points of the frontier of speed and size.
Effort: TypeAlias = Literal["fast", "balanced", "small"]

# The default codec of Parquet files.
DEFAULT_COMPRESSION = "zstd"


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
