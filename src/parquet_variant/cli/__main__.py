"""The process `variant`, and ``python -m parquet_variant.cli``.

Owns what may be done to a process that is the command's own. Leaves the command to `app`.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from typing import NoReturn

from parquet_variant.cli.app import main


class _NoPandas:
    """A finder of modules that knows of one that is not there."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("left out", name=name)


def _leave_pandas_out() -> None:
    """Let pyarrow find no pandas: it would import it, for half a second, to see whether anything is of its types."""
    import pyarrow as pa

    sys.meta_path.insert(0, _NoPandas)
    try:
        pa.array([0])  # pyarrow looks once
    finally:
        sys.meta_path.remove(_NoPandas)


def run() -> NoReturn:
    """Run one command, and end the process; only the help and the version need no Arrow."""
    # What imports make is kept: looking through it for garbage takes a tenth of a short command.
    gc.set_threshold(200_000, 20, 20)
    if not {"-h", "--help", "--version"} & set(sys.argv[1:]) and len(sys.argv) > 1:
        _leave_pandas_out()
    _end(main())


def _end(code: int) -> NoReturn:
    """End the process now: to take apart what it imported is a fifth of a short command."""
    if any(not each.daemon for each in threading.enumerate() if each is not threading.main_thread()):
        sys.exit(code)  # which waits for them
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        code = code or 1
    os._exit(code)


if __name__ == "__main__":
    run()
