"""The process `variant`, and ``python -m parquet_variant.cli``.

Owns settings that are allowed only because the process runs nothing else. Leaves the command to `app`.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import threading
import warnings
from contextlib import suppress
from typing import NoReturn

from parquet_variant.cli.app import main
from parquet_variant.cli.output import INTERRUPTED, StandardOutput, report_failure, report_warning


class _NoPandas:
    """An import hook that reports pandas as missing."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("not needed by this command", name=name)


def run() -> NoReturn:
    """Run one command and end the process."""
    # Objects of imports live until the end: collecting garbage among them takes a tenth of a short command.
    gc.set_threshold(200_000, 20, 20)
    sys.stdout = StandardOutput(sys.stdout)
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")  # print(file=None) uses stdout
    warnings.showwarning = lambda message, *_: report_warning(str(message))
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        if not {"-h", "--help", "--version"} & set(sys.argv[1:]) and len(sys.argv) > 1:
            # pyarrow checks for pandas types once, and imports pandas for it, which takes half a second.
            import pyarrow as pa

            sys.meta_path.insert(0, _NoPandas)
            pa.array([0])
            sys.meta_path.remove(_NoPandas)
        code = main()
    except KeyboardInterrupt:
        code = report_failure("interrupted", INTERRUPTED, as_json="--json" in sys.argv)
    _end(code)


def _interrupt(*_: object) -> None:
    """Raise `KeyboardInterrupt`, and end the process if the SQL engine has not stopped after a second."""

    def end() -> None:
        # DuckDB does not stop inside one call of a function, such as `repeat('x', 2000000000)`.
        if any(thread.name.startswith("parquet-variant-duckdb") for thread in threading.enumerate()):
            os._exit(report_failure("interrupted", INTERRUPTED, as_json="--json" in sys.argv))

    timer = threading.Timer(1.0, end)
    timer.daemon = True
    timer.start()
    raise KeyboardInterrupt


def _end(code: int) -> NoReturn:
    """End the process without freeing its modules, which takes a fifth of a short command."""
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        sys.exit(code)  # waits for these threads
    atexit._run_exitfuncs()
    with suppress(OSError):  # `main` has flushed and reported it; stderr is flushed with each line
        sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    run()
