"""Stores of obstore: from a URL and the options of the user.

Owns endpoints and names of schemes. Leaves files in a store to `storage`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlparse

from parquet_variant.errors import TableError
from parquet_variant.io.filesystems import with_known_scheme

# Options of the connection, which obstore takes apart from those of the store.
_CLIENT_OPTIONS = frozenset({
    "allow_http", "allow_invalid_certificates", "connect_timeout", "default_content_type", "default_headers",
    "http1_only", "http2_keep_alive_interval", "http2_keep_alive_timeout", "http2_keep_alive_while_idle", "http2_only",
    "pool_idle_timeout", "pool_max_idle_per_host", "proxy_ca_certificate", "proxy_excludes", "proxy_url",
    "root_certificate", "timeout", "user_agent",
})  # fmt: skip
_ENDPOINTS = ("endpoint", "aws_endpoint", "endpoint_url", "aws_endpoint_url")


def open_store(uri: str, options: Mapping[str, Any]) -> Any:
    """Return the store of a URL; Hadoop's scheme names and an endpoint in the query, as in pyarrow, are accepted."""
    parts = urlparse(with_known_scheme(uri))
    query = dict(parse_qsl(parts.query))
    configuration = dict(options)
    client = {name: configuration.pop(name) for name in list(configuration) if name in _CLIENT_OPTIONS}
    if client:
        configuration["client_options"] = client | dict(configuration.get("client_options") or {})
    if "endpoint_override" in query:
        host = query["endpoint_override"]
        configuration.setdefault("endpoint", host if "://" in host else f"{query.get('scheme', 'https')}://{host}")
    if "region" in query:
        configuration.setdefault("region", query["region"])
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    from_environment = next((os.environ[name] for name in names if os.environ.get(name)), "")
    if parts.scheme == "s3":
        endpoint = next((configuration[name] for name in _ENDPOINTS if name in configuration), from_environment)
        if endpoint:
            configuration.setdefault("endpoint", endpoint)
        if endpoint.startswith("http://"):
            # An explicit http endpoint implies the permission to use it.
            configuration["client_options"] = {"allow_http": True} | dict(configuration.get("client_options") or {})
    try:
        return obstore_library().store.from_url(parts._replace(query="").geturl(), **configuration)
    except (TableError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of obstore is not an Exception
        line = str(error).split("\n", maxsplit=1)[0]
        raise TableError(
            f"cannot open {uri}: {line}; tables can be on local disks and in s3, gs, az and abfss stores",
            reason="bad-uri",
            file=uri,
        ) from None


def obstore_library() -> Any:
    """Return the module obstore. Raises `TableError`: reason ``"missing-extra"``."""
    try:
        import obstore
        import obstore.store
    except ImportError:
        raise TableError(
            "tables in object stores need obstore: pip install 'parquet-variant[delta]'", reason="missing-extra"
        ) from None
    return obstore
