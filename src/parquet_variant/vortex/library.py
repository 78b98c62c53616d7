"""The `vortex` library, loaded when it is needed.

Owns the error that says what to install, and giving what the library raises as ours, without its backtrace.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from parquet_variant.errors import VariantError, VariantFileError

__all__ = ["batches_of", "open_file", "vortex", "vortex_errors"]


def vortex() -> ModuleType:
    """The library.

    Raises
    ------
    VariantError
        If it is not installed (``not-installed``).
    """
    try:
        library = import_module("vortex")
        import_module("vortex.expr")
    except ImportError:
        raise VariantError(
            "Vortex files need vortex-data: pip install 'parquet-variant[vortex]'", reason="not-installed"
        ) from None
    return library


@contextmanager
def vortex_errors(file: Any) -> Iterator[None]:
    """Give what the library raises as a `VariantFileError` with the file."""
    try:
        yield
    except (VariantError, MemoryError):
        raise
    except Exception as error:
        message = (str(error).splitlines() or [type(error).__name__])[0]
        raise VariantFileError(f"Vortex says: {message}", file=str(file), reason="vortex-failed") from None


def open_file(path: Any) -> Any:
    """An open Vortex file.

    Raises
    ------
    VariantFileError
        If there is none, or it is none.
    """
    library = vortex()
    name = os.fspath(path)
    if "://" not in name and not os.path.isfile(name):  # noqa: PTH113 - a name, perhaps of a remote file
        raise VariantFileError(f"there is no file {name}", file=name, reason="no-such-file")
    with vortex_errors(name):
        return library.open(name)


def batches_of(reader: Any, file: Any) -> Iterator[Any]:
    """The record batches of a reader; only what the library raises is given as a `VariantFileError`."""
    while True:
        with vortex_errors(file):
            batch = next(reader, None)
        if batch is None:
            return
        yield batch
