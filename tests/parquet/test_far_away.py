"""Files on an S3 server on loopback (moto) that answers late: how many requests are made, and how many at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import parquet_variant as pv
from object_store import environment, s3_application, s3_server

PATHS = {"n": "$.n:bigint", "t": "$.t:string"}


class Store:
    """The server; `ranges` are the parts of files that were asked for, `most` how many requests were made at once.

    `asked` are the requests for anything else: what there is, and where.
    """

    def __init__(self, application: Any) -> None:
        self.application, self.lock = application, threading.Lock()
        self.ranges: list[tuple[str, str]] = []
        self.asked: list[str] = []
        self.now = self.most = 0

    def __call__(self, environment: dict[str, Any], start: Any) -> Any:
        with self.lock:
            if (part := environment.get("HTTP_RANGE")) is not None:
                self.ranges.append((environment["PATH_INFO"], part))
                self.now += 1
                self.most = max(self.most, self.now)
            else:
                self.asked.append(
                    " ".join(environment[name] for name in ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING"))
                )
        time.sleep(0.03)
        try:
            return self.application(environment, start)
        finally:
            with self.lock:
                self.now -= part is not None

    def forget(self) -> None:
        self.ranges, self.asked, self.most = [], [], 0


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    store = Store(s3_application())
    with s3_server("lake", store) as endpoint, pytest.MonkeyPatch.context() as patched:
        for name, value in environment(endpoint).items():
            patched.setenv(name, value)
        rows = pv.parse_json([f'{{"n": {n}, "t": "text {n % 50}", "long": "{n:0600}"}}' for n in range(24_000)])
        for number in range(8):
            pv.write(f"s3://lake/small/{number}.parquet", rows[number * 100 : number * 100 + 100], schema="infer")
        options = {"schema": "infer", "compression": "none", "row_group_bytes": 6_000_000}
        pv.write("s3://lake/large.parquet", rows, **options)
        yield store


@pytest.fixture(autouse=True)
def _nothing_before(store: Store) -> None:
    store.forget()


def test_a_small_file_is_one_request_and_many_are_asked_for_at_once(store: Store) -> None:
    assert pv.open("s3://lake/small/").scan(PATHS, "n >= 250 and t like 'text%'").to_arrow().num_rows == 550
    assert sorted(path for path, _ in store.ranges) == [f"/lake/small/{number}.parquet" for number in range(8)]
    assert store.most > 2


def test_of_a_large_file_the_footer_and_neighbours_come_together(store: Store) -> None:
    with_groups = pv.open("s3://lake/large.parquet").scan(PATHS)
    groups = len(with_groups.tasks(1))
    assert groups > 1
    store.forget()
    assert with_groups.to_arrow().num_rows == 24_000
    assert len(store.ranges) <= 1 + 2 * groups
    store.forget()
    assert pv.open("s3://lake/large.parquet").scan(PATHS, "n < 0").to_arrow().num_rows == 0
    assert len(store.ranges) == 1  # the footer says so


def test_a_query_asks_for_a_footer_no_more_than_twice(store: Store) -> None:
    answer = pv.sql("SELECT v:t::string AS t, count(*) AS n FROM 's3://lake/small/' GROUP BY t")
    assert sum(row["n"] for row in answer.to_pylist()) == 800
    assert len(store.ranges) <= 9


def test_a_directory_is_found_in_few_requests(store: Store) -> None:
    for source in ("s3://lake/small/", "s3://lake/small/*.parquet"):
        store.forget()
        assert len(pv.open(source, format="parquet").scan(PATHS).plan.sources) == 8
        assert len(store.asked) <= 10
