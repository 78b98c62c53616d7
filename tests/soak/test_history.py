"""A short soak in every run: writers killed at random, on the local disk and in S3 (moto); `make soak` for longer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fuzz.seeds import SEED
from soak.history import Told, check, soak


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, Any]]:
    server_module = pytest.importorskip("moto.server", reason="moto (its server) is not installed")
    boto3 = pytest.importorskip("boto3", reason="boto3 is not installed")
    server = server_module.ThreadedMotoServer("127.0.0.1", port=0)
    server.start()
    try:
        endpoint = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", **keys).create_bucket(Bucket="soak")
        yield {"endpoint": endpoint, "region": "us-east-1", "client_options": {"allow_http": True}} | keys
    finally:
        server.stop()


def _run(table: str, options: dict[str, Any]) -> Told:
    told = soak(table, options, 8, SEED, writers=2)
    versions = check(table, options, told)
    print(f"FUZZ_SEED={SEED}: {versions} versions, {len(told.done)} acknowledged, {told.kills} killed")
    assert told.kills and told.done, f"nothing was tried (FUZZ_SEED={SEED})"
    return told


def test_writers_killed_on_the_local_disk(tmp_path: Path) -> None:
    _run(str(tmp_path / "table"), {})


def test_writers_killed_in_s3(s3: dict[str, Any]) -> None:
    _run("s3://soak/table", s3)


def test_the_check_sees_what_is_lost(tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    told = soak(table, {}, 0, SEED)
    assert check(table, {}, told) == 1
    told.begun["w9-9"] = {"op": "append", "rows": [told.first[0] | {"k": 99}], "tag": "w9-9"}
    told.done["w9-9"] = 0
    with pytest.raises(AssertionError, match="w9-9 was acknowledged in 0 and is nowhere"):
        check(table, {}, told)
