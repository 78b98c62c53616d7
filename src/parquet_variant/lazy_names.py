"""Public names of a package that are loaded on first use, and what to install where a library for that is missing.

Owns the two functions that a package's ``__init__`` needs for it. Leaves which names there are to the package.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

# Libraries that are not always there, and what to install for each.
_SQL = "'parquet-variant[sql]'"
_ICEBERG = "'parquet-variant[iceberg]'"
_TO_INSTALL = {
    "sqlglot": _SQL,
    "duckdb": _SQL,
    "pandas": "pandas",
    "polars": "polars",
    "fastavro": _ICEBERG,
    "pyiceberg": _ICEBERG,
}


def lazy_names(package: str, owners: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package.

    `package`: its ``__name__``.
    `owners`: public name to the module that owns it, below ``parquet_variant``; with ``module:name`` where it has
      another name there. A name that is its own owner is a package.

    >>> get, names = lazy_names("parquet_variant", {"VariantPath": "path"})
    >>> get("VariantPath").__name__, names()
    ('VariantPath', ['VariantPath'])
    """

    def get(name: str) -> Any:
        if name not in owners:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package])
        module, _, own_name = owners[name].partition(":")
        with optional_libraries(f"{package.replace('parquet_variant', 'pv')}.{name}"):
            owner = import_module(f"parquet_variant.{module}")
        value = owner if module == name else getattr(owner, own_name or name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted(owners)


@contextmanager
def optional_libraries(user: str) -> Iterator[None]:
    """Imports that ``user`` needs: a missing library is a `VariantError` (``missing-extra``) that says what to install.

    >>> with optional_libraries("pv.sql"):
    ...     raise ModuleNotFoundError(name="sqlglot")
    Traceback (most recent call last):
        ...
    parquet_variant.errors.VariantError: pv.sql needs sqlglot: run: pip install 'parquet-variant[sql]'
    """
    try:
        yield
    except ModuleNotFoundError as missing:
        what = _TO_INSTALL.get(missing.name or "")
        if what is None:
            raise
        from parquet_variant.errors import VariantError

        problem = f"{user} needs {missing.name}: run: pip install {what}"
        raise VariantError(problem, reason="missing-extra") from None
