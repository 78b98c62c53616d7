"""A local server of the page, with rows and SQL.

Owns access control (only this machine, only with the token of the address, only from the page itself). Leaves the page
to `page`, and SQL and its limits to `query_process`.
"""

from __future__ import annotations

import json
import secrets
from http.client import responses as http_responses
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from parquet_variant.errors import VariantError
from parquet_variant.quality.explorer.explore import Exploration
from parquet_variant.quality.explorer.page import page
from parquet_variant.quality.explorer.query_process import QueryProcess

RESULT_ROWS = 200  # The rows of a result that the page shows.
QUERY_SECONDS = 30.0  # The time limit of a query.
_LARGEST_REQUEST = 1 << 20
_HOST = "127.0.0.1"


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
            raise VariantError(
                f"cannot serve on port {port}: {error}; choose another port", reason="bad-port"
            ) from None
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
                self.close_connection = True
                self._send_json(404, {"error": "unknown address, or a missing token: reload the page"})
                return
            length = (self.headers.get("Content-Length") or "").strip()
            if not (length.isascii() and length.isdecimal()) or len(length) > 9 or int(length) > _LARGEST_REQUEST:
                self.close_connection = True
                self._send_json(
                    413, {"error": f"the request needs a Content-Length of at most {_LARGEST_REQUEST:,} bytes"}
                )
                return
            self._send_json(200, _answer(self.rfile.read(int(length)), queries))

        def _send_json(self, status: int, answer: dict[str, Any]) -> None:
            text = json.dumps(answer, ensure_ascii=False)
            self._send(status, "application/json", text.encode(errors="replace"))

        def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
            """Answer a request that http.server cannot parse with JSON."""
            self.close_connection = True
            self._send_json(code, {"error": message or http_responses.get(code, "bad request")})

    return Handler


def _answer(body: bytes, queries: QueryProcess) -> dict[str, Any]:
    """Run the SQL of a request; every outcome is a JSON object."""
    try:
        text = json.loads(body)["sql"]
        if not isinstance(text, str):
            raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError):
        return {"error": 'send {"sql": "SELECT …"}'}
    return queries.answer(text, RESULT_ROWS, QUERY_SECONDS)
