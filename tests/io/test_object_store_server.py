"""The S3 server that the tests use answers conditional puts as S3 does: of concurrent puts, one succeeds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from object_store import KEYS, s3_server


@pytest.fixture
def _threads_that_switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_threads_that_switch_often")
def test_of_conditional_puts_at_once_one_wins() -> None:
    obstore = pytest.importorskip("obstore", reason="obstore is not installed")
    from obstore.store import S3Store

    with s3_server("puts") as endpoint, ThreadPoolExecutor(4) as pool:
        store = S3Store("puts", endpoint=endpoint, region="us-east-1", client_options={"allow_http": True}, **KEYS)
        barrier = threading.Barrier(4)

        def put(key: str, writer: int) -> bool:
            barrier.wait()
            try:
                obstore.put(store, key, b"%d" % writer, mode="create")
            except obstore.exceptions.AlreadyExistsError:
                return False
            return True

        for key in map(str, range(20)):
            expected = list(pool.map(put, [key] * 4, range(4)))
            assert expected.count(True) == 1
            assert bytes(obstore.get(store, key).bytes()) == b"%d" % expected.index(True)
