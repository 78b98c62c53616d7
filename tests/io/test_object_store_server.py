"""The S3 server that the tests use answers conditional puts as S3 does: of those that come at once, one is told yes."""

from __future__ import annotations

import threading

import pytest

from object_store import KEYS, s3_server


def test_of_conditional_puts_at_once_one_wins() -> None:
    boto3 = pytest.importorskip("boto3", reason="boto3 is not installed")
    with s3_server("puts") as endpoint:
        for key in map(str, range(20)):
            barrier, won = threading.Barrier(4), []

            def put(writer: int, key: str = key, barrier: threading.Barrier = barrier, won: list[int] = won) -> None:
                client = boto3.session.Session().client("s3", endpoint_url=endpoint, region_name="us-east-1", **KEYS)
                barrier.wait()
                try:
                    client.put_object(Bucket="puts", Key=key, Body=b"%d" % writer, IfNoneMatch="*")
                    won.append(writer)
                except client.exceptions.ClientError as error:
                    assert error.response["Error"]["Code"] == "PreconditionFailed"

            threads = [threading.Thread(target=put, args=(writer,)) for writer in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **KEYS)
            assert [client.get_object(Bucket="puts", Key=key)["Body"].read()] == [b"%d" % writer for writer in won]
