"""Names that are loaded on first use: public names, methods that a higher layer implements, and `arrow_compute`.

Owns loading by name, and the message that names the package to install when an optional library is missing. This is
the only module below the command line that imports modules of this package by string. Leaves the tables of names to
the ``__init__`` modules. `tests.packaging.stubs` writes their type stubs from these tables.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from operator import attrgetter
from typing import Any

from parquet_variant.errors import VariantError
from parquet_variant.support.fork_safety import loading

# Optional libraries, and what to install for each.
_SQL = "'parquet-variant[sql]'"
_ICEBERG = "'parquet-variant[iceberg]'"
_CONTRACTS = "'parquet-variant[contracts]'"
_INSTALL = {
    "yaml": _CONTRACTS,
    "open_data_contract_standard": _CONTRACTS,
    "duckdb": _SQL,
    "obstore": "'parquet-variant[delta]'",
    "pyspark": "'parquet-variant[spark]'",
    "vortex": "'parquet-variant[vortex]'",
    "pandas": "pandas",
    **{name: name for name in ("polars", "dlt", "pandera")},
    "ibis": "'ibis-framework[duckdb]'",
    "fastavro": _ICEBERG,
    "pyiceberg": _ICEBERG,
    "sqlalchemy": "'pyiceberg[sql-sqlite]'",
}
# Modules that are public packages themselves.
PACKAGES = frozenset({"files.vortex", "tables.integrations.duckdb", "spark", "testing"})
# Method -> the function that implements it, as ``module:function``; the root package registers them.
_METHODS: dict[str, str] = {}


def lazy_names(package: str, owners: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package.

    `package`: its ``__name__``.
    `owners`: public names separated by spaces, by the module below ``parquet_variant`` that defines them. A module
      that is listed under its own name is a public package.

    >>> get, names = lazy_names("parquet_variant", {"types.path": "VariantPath"})
    >>> get("VariantPath").__name__, names()
    ('VariantPath', ['VariantPath'])
    """
    modules = {name: module for module, names in owners.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        with optional_libraries(f"{'.'.join(['pv', *package.split('.')[1:][-1:]])}.{name}"), loading():
            module = import_module(f"parquet_variant.{modules[name]}")
        value = module if modules[name] in PACKAGES else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted(modules)


def register_methods(classes: Mapping[str, Mapping[str, str]]) -> None:
    """Register the functions that implement methods of a lower layer: names by class and module, separated by spaces.

    A function that has another name than its method follows it: ``method:function``.
    """
    for owners, modules in classes.items():
        for module, names in modules.items():
            for method, _, function in (name.partition(":") for name in names.split()):
                _METHODS.update({f"{owner}.{method}": f"{module}:{function or method}" for owner in owners.split()})


def has_method(name: str) -> bool:
    """Return whether a function is registered for a method."""
    return name in _METHODS


def registered_method(name: str) -> Callable[..., Any]:
    """Return the function that implements a method; it is imported on first use.

    >>> registered_method("VariantArray.to_pylist").__name__
    'python_objects'
    """
    module, _, function = _METHODS[name].partition(":")
    with optional_libraries(name), loading():
        return attrgetter(function)(import_module(f"parquet_variant.{module}"))


@contextmanager
def optional_libraries(user: str) -> Iterator[None]:
    """Raise `VariantError` (``missing-extra``) that names the package to install if an import in the block fails.

    `user`: the feature that needs the library.

    >>> with optional_libraries("pv.sql"):
    ...     raise ModuleNotFoundError(name="duckdb")
    Traceback (most recent call last):
        ...
    parquet_variant.errors.VariantError: pv.sql needs duckdb: run: pip install 'parquet-variant[sql]'
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        package = _INSTALL.get(missing.name or "")
        if package is None:
            raise
        problem = f"{user} needs {missing.name}: run: pip install {package}"
        raise VariantError(problem, reason="missing-extra") from None


class _ArrowCompute:
    """``pyarrow.compute``, imported on first use, since it takes a third of the time that importing pyarrow takes."""

    def __getattr__(self, name: str) -> Any:
        with loading():
            import pyarrow as pa
            import pyarrow.compute

            # Arrow makes shared objects under locks at the first call of a function. A child that is forked meanwhile
            # would wait for them forever.
            pyarrow.compute.cast(pa.nulls(0, pa.int32()), pa.int64())
        return vars(self).setdefault(name, getattr(pyarrow.compute, name))


# Use it as ``pc``, also in place of methods of arrays such as ``cast``, which import it without letting forks wait.
arrow_compute = _ArrowCompute()
