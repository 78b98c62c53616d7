"""An S3 server on loopback (moto) for tests: what S3 does with conditional puts, moto does in this form only."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

KEYS = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}


def environment(endpoint: str) -> dict[str, str]:
    """The variables that tell programs where the server is, and by which keys."""
    return {name.upper(): value for name, value in KEYS.items()} | {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


class OnePutAtATime:
    """A WSGI application whose puts and deletes follow each other.

    moto answers ``If-None-Match: *`` by a look and then a put: two concurrent requests may both
    succeed, which S3 never does, and the first one's object is gone.
    """

    def __init__(self, application: Any) -> None:
        self.application, self.lock = application, threading.Lock()

    def __call__(self, environment: dict[str, Any], start: Any) -> Any:
        if environment["REQUEST_METHOD"] in ("GET", "HEAD"):
            return self.application(environment, start)
        with self.lock:
            return self.application(environment, start)


def s3_application() -> OnePutAtATime:
    """moto's application; skips the test where moto is not installed."""
    server_module = pytest.importorskip("moto.server", reason="moto (its server) is not installed")
    return OnePutAtATime(server_module.DomainDispatcherApplication(server_module.create_backend_app))


@contextmanager
def s3_server(bucket: str, application: Any = None) -> Iterator[str]:
    """The address of a server that has one bucket, until the context ends."""
    application = application or s3_application()
    boto3 = pytest.importorskip("boto3", reason="boto3 is not installed")
    from werkzeug.serving import make_server

    server = make_server("127.0.0.1", 0, application, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        endpoint = f"http://127.0.0.1:{server.server_port}"
        boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **KEYS).create_bucket(Bucket=bucket)
        yield endpoint
    finally:
        server.shutdown()
