"""Public names of a package that are loaded on first use.

Owns the two functions that a package's ``__init__`` needs for it. Leaves which names there are to the package.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


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
        owner = import_module(f"parquet_variant.{module}")
        value = owner if module == name else getattr(owner, own_name or name)
        setattr(sys.modules[package], name, value)
        return value

    return get, lambda: sorted(owners)
