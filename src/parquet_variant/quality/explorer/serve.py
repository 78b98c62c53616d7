"""A local server of the page, with rows and SQL, and the process that runs the SQL.

Owns access control (only this machine, only with the token of the address, only from the page itself), and the limits
of a query: its time, its memory and the size of its answer. DuckDB stops at neither limit inside one call of a
function, such as ``repeat('x', 2000000000)``, so the process is killed, and the next query starts another. Leaves the
page to `page`, and SQL to `explore`.
"""

from __future__ import annotations

import json
import mmap
import os
import pickle
import secrets
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.client import responses as http_responses
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.errors import VariantError
from parquet_variant.ops.interop.display import display_texts
from parquet_variant.quality.explorer.explore import Exploration
from parquet_variant.quality.explorer.page import page

RESULT_ROWS = 200  # The rows of a result that the page shows.
QUERY_SECONDS = 30.0  # The time limit of a query.
_LARGEST_REQUEST = 1 << 20
_HOST = "127.0.0.1"
MEMORY_BYTES = 2 << 30  # What a query may allocate.
ANSWER_BYTES = 8 << 20  # The size of an answer.
_GRACE_SECONDS = 2.0  # The time in which the engine can stop a query by itself.


class ExploreServer:
    """A server of one page on 127.0.0.1, which only reads the table; the port 0 stands for any free port.

    Raises `VariantError` if the port is in use (``bad-port``).
    """

    def __init__(self, exploration: Exploration, port: int = 0) -> None:
        self.token = secrets.token_urlsafe(18)
        self.limits = {"rows": RESULT_ROWS, "seconds": QUERY_SECONDS}  # The page shows them.
        document = exploration.to_dict() | {"live": self.token, "limits": self.limits}
        self._queries = QueryProcess(exploration)
        try:
            self._server = ThreadingHTTPServer((_HOST, port), _handler(page(document), self.token, self._queries))
        except (OSError, OverflowError) as error:
            problem = f"cannot serve on port {port}: {error}; choose another port"
            raise VariantError(problem, reason="bad-port") from None
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        """The address of the page, with the token that every request needs."""
        return f"http://{_HOST}:{self._server.server_address[1]}/{self.token}/"

    def serve_forever(self) -> None:
        """Serve until `close` or Ctrl-C."""
        self._server.serve_forever(poll_interval=0.2)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._queries.close()


def _handler(html: str, token: str, queries: QueryProcess) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60  # Seconds for a client to send its request.
        server_version, sys_version = "variant-explore", ""

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing, since the address has the token."""

        def _allowed(self) -> bool:
            # Pages of other sites can send requests here, also under a host name that resolves to 127.0.0.1.
            port = self.server.server_address[1]  # type: ignore[index]
            hosts = {f"{_HOST}:{port}", f"localhost:{port}"}
            origin = self.headers.get("Origin")
            is_own_page = origin is None or origin in {f"http://{host}" for host in hosts}
            return is_own_page and self.headers.get("Host") in hosts

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("X-Frame-Options", "DENY")
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            if not self._allowed() or not secrets.compare_digest(self.path.encode(), f"/{token}/".encode()):
                self._send_json(404, {"error": "unknown address"})
                return
            self._send(200, "text/html; charset=utf-8", html.encode())

        def do_POST(self) -> None:
            sent = self.headers.get("X-Token") or ""
            if (
                not self._allowed()
                or not secrets.compare_digest(sent.encode(), token.encode())
                or not secrets.compare_digest(self.path.encode(), f"/{token}/sql".encode())
            ):
                self.send_error(404, "unknown address, or a missing token: reload the page")
                return
            length = (self.headers.get("Content-Length") or "").strip()
            if not (length.isascii() and length.isdecimal()) or len(length) > 9 or int(length) > _LARGEST_REQUEST:
                self.send_error(413, f"the request needs a Content-Length of at most {_LARGEST_REQUEST:,} bytes")
                return
            try:
                text = json.loads(self.rfile.read(int(length)))["sql"]
                if not isinstance(text, str):
                    raise TypeError
            except (ValueError, KeyError, TypeError, RecursionError):
                self._send_json(200, {"error": 'send {"sql": "SELECT …"}'})
                return
            self._send_json(200, queries.answer(text, RESULT_ROWS, QUERY_SECONDS))

        def _send_json(self, status: int, answer: dict[str, Any]) -> None:
            text = json.dumps(answer, ensure_ascii=False)
            self._send(status, "application/json", text.encode(errors="replace"))

        def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
            """Answer an invalid request, also one that http.server cannot parse, with JSON."""
            self.close_connection = True
            self._send_json(code, {"error": message or http_responses.get(code, "bad request")})

    return Handler


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
                start_new_session=True,  # Ctrl-C is for this process, which ends the other one
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
