"""The process that runs the SQL of a served page.

Owns the limits of a query: its time, its memory and the size of its answer. DuckDB stops at neither limit inside one
call of a function, such as ``repeat('x', 2000000000)``, so the process is killed, and the next query starts another.
Leaves SQL to `explore`, and access control to `serve`.
"""

from __future__ import annotations

import json
import mmap
import os
import pickle
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.errors import VariantError
from parquet_variant.ops.interop.display import display_texts
from parquet_variant.quality.explorer.explore import Exploration

MEMORY_BYTES = 2 << 30  # What a query may allocate.
ANSWER_BYTES = 8 << 20  # The size of an answer.
_GRACE_SECONDS = 2.0  # The time in which the engine can stop a query by itself.


class QueryProcess:
    """Runs queries over the table ``t`` of a page, one at a time, in a process that is replaced after a limit."""

    def __init__(self, exploration: Exploration) -> None:
        self._table = pickle.dumps(exploration)
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def answer(self, query: str, rows: int, seconds: float) -> dict[str, Any]:
        """Run a query, and return its columns and at most `rows` rows as strings, or ``{"error": …}``."""
        with self._lock:
            process = self._started()
            assert process.stdin is not None
            assert process.stdout is not None
            begun, timer = time.monotonic(), threading.Timer(seconds + _GRACE_SECONDS, process.kill)
            timer.start()
            try:
                process.stdin.write(json.dumps({"query": query, "rows": rows, "seconds": seconds}).encode() + b"\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except OSError:
                line = b""
            finally:
                timer.cancel()
            if line.endswith(b"\n"):
                answer: dict[str, Any] = json.loads(line)
                if answer.pop("is_last"):
                    self._end(process)
                return answer
            self._end(process)
            if time.monotonic() - begun > seconds:
                return {"error": f"the query was stopped after {seconds:g} seconds: narrow it with WHERE or LIMIT"}
            return {"error": "the process of the query ended, probably without memory: narrow it with WHERE or LIMIT"}

    def close(self) -> None:
        """End the process; a query that runs is answered with an error."""
        if self._process is not None:
            self._end(self._process)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            packages = str(Path(__file__).parents[3])
            paths = [packages, *filter(None, [os.environ.get("PYTHONPATH")])]
            process = subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            )
            assert process.stdin is not None
            process.stdin.write(self._table)
            self._process = process
        return self._process

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        self._process = None
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def _answer(exploration: Exploration, query: str, rows: int, seconds: float) -> dict[str, Any]:
    """Run a query; every outcome, an unexpected error included, is a JSON object."""
    try:
        table = exploration.sql(query, rows=rows + 1, seconds=seconds)
        if table.nbytes > ANSWER_BYTES:
            return {"error": f"the answer has {table.nbytes:,} bytes, more than {ANSWER_BYTES:,}: select fewer columns"}
        columns = [display_texts(one_chunk(column)) for column in table.slice(0, rows).columns]
        return {
            "columns": table.column_names,
            "rows": [list(row) for row in zip(*columns, strict=True)],
            "more": table.num_rows > rows,
        }
    except VariantError as error:
        return {"error": str(error)}
    except (MemoryError, pa.ArrowMemoryError):
        return {"error": f"the query needs more than {MEMORY_BYTES:,} bytes of memory: narrow it with WHERE or LIMIT"}
    except Exception as error:  # a traceback would end the process
        return {"error": f"unexpected {type(error).__name__}: {error}"}


def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer the queries of a `QueryProcess` until it closes the pipe."""
    exploration: Exploration = pickle.load(requests)
    _answer(exploration, "SELECT 1 FROM t LIMIT 1", 1, 60.0)  # loads the engine, which is not part of a query's memory
    # The address space is limited to its present size and `MEMORY_BYTES` more, where the system can.
    size = _address_space()
    with suppress(ImportError, OSError, ValueError):
        import resource

        if size:
            resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY_BYTES, size + MEMORY_BYTES))
    for line in requests:
        answer = _answer(exploration, **json.loads(line))
        # Allocators keep what a large query took: the next one gets a process of its own rather than what is left.
        answer["is_last"] = _address_space() > size + MEMORY_BYTES // 2
        answers.write(json.dumps(answer, ensure_ascii=False).encode(errors="replace") + b"\n")
        answers.flush()


def _address_space() -> int:
    """Return the bytes of this process's address space, 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
    except OSError:
        return 0


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer)
