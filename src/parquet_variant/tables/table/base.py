"""The state of an open table, and the call of the function that implements an operation for its format.

Owns the options of `pv.open`, and the error for an operation that a format does not have. The registry of
`support.lazy_names` names the functions: ``DeltaTable.delete`` is that of Delta tables.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import Any, ClassVar, Literal, TypeAlias, TypedDict, TypeVar, get_args

from pyarrow import fs

from parquet_variant.errors import VariantError, bad_option, without_secrets
from parquet_variant.files.parquet.writing.conform import WriterOptions
from parquet_variant.io.filesystems import absolute, path_text
from parquet_variant.support.choices import InputFormat, OnError, OnInexact
from parquet_variant.support.lazy_names import has_method, registered_method
from parquet_variant.types.path import VariantPath

_Result = TypeVar("_Result")
# The format of an open table. Rows in memory and Spark DataFrames have no files.
TableFormat: TypeAlias = Literal["parquet", "delta", "iceberg", "vortex", "json", "memory", "spark"]


class TextKeywords(TypedDict, total=False):
    """The keywords of all operations that read JSON text, as documented in `pv.ingest`."""

    sample: float | None
    on_error: OnError
    on_inexact: OnInexact
    exclude: str | Sequence[str]
    input_format: InputFormat
    root: str | VariantPath | None
    json_column: str | None
    infer_types: bool
    types: Mapping[str, str] | str | None
    detect_timestamps: bool | None
    parse: Mapping[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class OpenOptions:
    """The options of `pv.open`, which all operations of the table use."""

    column: str | None = None
    version: int | None = None
    at: Any = None
    branch: str | None = None
    tag: str | None = None
    catalog: Any = None
    partition: Mapping[str, str] | None = None
    storage_options: Mapping[str, str] | None = None
    filesystem: fs.FileSystem | None = None
    engine: Any = None
    allow_outside: bool = False
    text: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_pinned(self) -> bool:
        """Return whether the options name a version, so that the table does not follow new commits."""
        return self.version is not None or self.at is not None or self.tag is not None


class TableBase:
    """The source, the options, and the operations of a format by name."""

    format: ClassVar[TableFormat]
    # Names of parameters that the functions of the format call otherwise.
    _RENAMED: ClassVar[Mapping[str, str]] = {}

    def __init__(self, source: Any, options: OpenOptions) -> None:
        self._source = source
        self._options = options

    @property
    def source(self) -> Any:
        """The path, name or data that the table was opened from."""
        return self._source

    @property
    def options(self) -> OpenOptions:
        """The options with which the table was opened."""
        return self._options

    @property
    def uri(self) -> str:
        """The path or URI of the table, or its name in the catalog."""
        source = self._source
        if isinstance(source, str | os.PathLike):
            return path_text(source)
        return ", ".join(map(path_text, source)) if isinstance(source, list | tuple) else self.format

    @property
    def _name(self) -> str:
        return without_secrets(self.uri)

    def _target(self, operation: str) -> Any:
        """Return the first argument of the function of an operation."""
        return self._source

    def _absolute(self, source: Any) -> Any:
        """Return a path that other processes find, too, if an engine runs the operations there."""
        if self._options.engine is None or self._options.catalog is not None:
            return source
        if isinstance(source, str | os.PathLike):
            return absolute(source)
        return [absolute(path) for path in source] if isinstance(source, list | tuple) else source

    def _run(self, operation: str, /, *arguments: Any, **keywords: Any) -> _Result:  # type: ignore[type-var]
        """Call the function that implements an operation for this format; the caller knows the type of the result.

        Options of `pv.open` are passed on if the function has them. None stands for the default of the function.
        """
        function, target = self._function(operation)
        parameters = signature(function).parameters
        passed = {
            name: value
            for name in ("catalog", "branch", "storage_options", "filesystem", "column", "allow_outside", "text")
            if name in parameters and (value := getattr(self._options, name))
        }
        if self._options.filesystem is not None and target is not self and "filesystem" not in parameters:
            raise bad_option(f"filesystem= is not supported by {operation} of {self._kind}: pass a URI instead")
        passed |= accepted_keywords(function, keywords, self._RENAMED, f"{operation} for {self._kind}")
        if self._options.engine is not None and self.format in ("delta", "iceberg"):
            # Raises for an unknown option before a job runs.
            WriterOptions.of({name: passed[name] for name in passed if name not in parameters and name != "file_bytes"})
        if "engine" in parameters and self._options.engine is not None:
            passed["engine"] = self._engine(passed.pop("progress", None))
            passed.pop("threads", None)
        result: _Result = function(target, *arguments, **passed)
        return result

    def _engine(self, progress: Any) -> Any:
        """Return the engine that runs the tasks of an operation."""
        engine = self._options.engine
        if engine is None or hasattr(engine, "reduce"):
            return engine
        if not type(engine).__module__.startswith("pyspark."):
            raise bad_option(f"engine is {engine!r}: leave it out, or give a SparkSession")
        return registered_method("SparkSession.engine")(engine, progress)

    def _function(self, operation: str) -> tuple[Callable[..., Any], Any]:
        """Return the function of an operation with its first argument: the target, or this table for all formats."""
        own, shared = f"{self.format.title()}Table.{operation}", f"Table.{operation}"
        if has_method(own):
            return registered_method(own), self._target(operation)
        if has_method(shared):
            return registered_method(shared), self
        formats = [name for name in get_args(TableFormat) if has_method(f"{name.title()}Table.{operation}")]
        raise self._unsupported(operation, formats)

    def _unsupported(self, operation: str, formats: Sequence[str]) -> VariantError:
        """Return the error for an operation that only some formats have."""
        shown = {"replace_where": "overwrite with where=", "replace_partitions": "overwrite with partitions="}
        return VariantError(
            f"{self._name}: {shown.get(operation, operation)} is not supported for {self._kind}; it is supported for "
            f"{', '.join(formats)}",
            reason="unsupported-operation",
            file=self._name,
        )

    @property
    def _kind(self) -> str:
        return {"memory": "rows in memory", "spark": "Spark DataFrames"}.get(self.format, f"the format {self.format}")


def accepted_keywords(
    function: Callable[..., Any], keywords: Mapping[str, Any], renamed: Mapping[str, str], operation: str
) -> dict[str, Any]:
    """Return the keyword arguments of a function for the options of an operation, without those left to its defaults.

    `renamed`: the parameters of the function that have other names than the options.
    Raises `VariantError` for an option that the function does not have.
    """
    parameters = signature(function).parameters
    accepts_any = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values())
    passed: dict[str, Any] = {}
    for option, value in keywords.items():
        name = option if option in parameters else renamed.get(option, option)
        if name in parameters:
            if value is not None or name == "threads":
                passed[name] = value
        elif value is not None and name not in ("threads", "progress"):
            if not accepts_any:
                raise bad_option(f"{option}= is not an option of {operation}: leave it out")
            passed[name] = value
    return passed
