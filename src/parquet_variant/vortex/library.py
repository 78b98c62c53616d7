"""The `vortex` library, loaded when it is needed.

Owns the error that says what to install, giving what the library raises as ours, without its backtrace, and the way
around its crash.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any

from parquet_variant.errors import VariantError, VariantFileError

__all__ = ["arrow_reader", "batches_of", "open_file", "others_can_read", "vortex", "vortex_errors"]

# The rows of a block that the writer makes. vortex-data 0.91 crashes the process (0.90 fails) when it gives Arrow rows
# of its Variant type from more than one block at once.
_BLOCK_ROWS = 8192
_SECONDS_TO_READ = 600
# On a thread, whose stack has an end: what goes wrong is a recursion without one.
_READ_ALL = """
import sys, threading, vortex
def read():
    for batch in vortex.open(sys.argv[1]).to_arrow():
        pass
    print("read")
threading.stack_size(64 << 20)
thread = threading.Thread(target=read)
thread.start()
thread.join()
"""


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


def arrow_reader(file: Any, **options: Any) -> Any:
    """A reader of an open file's rows as Arrow batches; options are those of the library's ``to_arrow``."""
    if "variant" in str(file.dtype):
        options["batch_size"] = _BLOCK_ROWS
    return file.to_arrow(**options)


def others_can_read(path: Any) -> bool:
    """Whether a reader that does not know of `_BLOCK_ROWS` gets the rows of a file with the Variant type.

    What is read at once is a split of the file. Where one is larger than a block, another process is asked, which may
    crash.
    """
    with vortex_errors(path):
        splits = vortex().open(str(path)).splits()
    if all(end - start <= _BLOCK_ROWS for start, end in splits):
        return True
    try:
        done = subprocess.run(
            [sys.executable, "-c", _READ_ALL, str(path)], capture_output=True, timeout=_SECONDS_TO_READ, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0 and done.stdout.split() == [b"read"]


def batches_of(reader: Any, file: Any) -> Iterator[Any]:
    """The record batches of a reader; only what the library raises is given as a `VariantFileError`."""
    while True:
        with vortex_errors(file):
            batch = next(reader, None)
        if batch is None:
            return
        yield batch
