"""The kernels that there are: everything in `kernels` that `compiling.kernel` has made.

Owns looking for them, by importing every module of the package.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module

from parquet_variant.machine_code.functions import Kernel

_PACKAGE = "parquet_variant.kernels"


def find_kernels() -> list[Kernel]:
    """All kernels, those of one module together."""
    package = import_module(_PACKAGE)
    names = sorted(module.name for module in pkgutil.walk_packages(package.__path__, f"{_PACKAGE}."))
    kernels = {}
    for name in names:
        # The instructions of intrinsics are there for compiling only.
        if ".intrinsics" not in name:
            for value in vars(import_module(name)).values():
                if isinstance(value, Kernel) and value.py_func.__module__ == name:
                    kernels[value.symbol] = value
    return list(kernels.values())


def find_kernel(module: str, name: str) -> Kernel:
    """The kernel of a module."""
    kernel = getattr(import_module(module), name)
    assert isinstance(kernel, Kernel)
    return kernel
