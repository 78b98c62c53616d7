"""A short soak in every run: writers killed at random, on the local disk and in S3 (moto); `make soak` for longer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fuzz.seeds import SEED
from object_store import KEYS, s3_server
from soak.history import WriterLog, check, soak


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, Any]]:
    with s3_server("soak") as endpoint:
        yield {"endpoint": endpoint, "region": "us-east-1", "client_options": {"allow_http": True}} | KEYS


def _run(table: str, options: dict[str, Any]) -> WriterLog:
    log = soak(table, options, 8, SEED, writers=2)
    versions = check(table, options, log)
    print(f"FUZZ_SEED={SEED}: {versions} versions, {len(log.done)} acknowledged, {log.kills} killed")
    assert log.kills and log.done, f"nothing was tried (FUZZ_SEED={SEED})"
    return log


def test_writers_killed_on_the_local_disk(tmp_path: Path) -> None:
    _run(str(tmp_path / "table"), {})


def test_writers_killed_in_s3(s3: dict[str, Any]) -> None:
    _run("s3://soak/table", s3)


def test_the_check_sees_what_is_lost(tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    log = soak(table, {}, 0, SEED)
    assert check(table, {}, log) == 1
    log.begun["w9-9"] = {"op": "append", "rows": [log.first[0] | {"k": 99}], "tag": "w9-9"}
    log.done["w9-9"] = 0
    with pytest.raises(AssertionError, match="w9-9 was acknowledged in 0 and is nowhere"):
        check(table, {}, log)
