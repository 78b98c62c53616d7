"""A disk that is full while Spark writes: one error that names the place, no task that writes on, the old rows left."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import parquet_variant as pv


@pytest.fixture
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A disk of 2 MB, of one test alone: what a job that failed still holds open takes its space."""
    place = tmp_path_factory.mktemp("disk")
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount")
    if done.returncode:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A line, and 4 MB that do not get small."""
    folder = tmp_path_factory.mktemp("lines")
    one, many = folder / "one.ndjson", folder / "many.ndjson"
    one.write_text('{"n": 1, "noise": ""}\n')
    noise = np.random.default_rng(1).bytes(3_000_000).hex()
    many.write_text("".join(f'{{"n": {n}, "noise": "{noise[n * 600 : n * 600 + 600]}"}}\n' for n in range(10_000)))
    return one, many


def _rows(place: Path, form: str) -> list[int]:
    if form == "vortex":
        return [row["n"] for file in place.glob("*.vortex") for row in pv.open(file).read().to_pylist()]
    return [row["n"] for row in pv.open(place).read().to_pylist()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "mode", "kind"),
    [
        ("parquet", "overwrite", "files"),
        ("delta", "append", "files"),
        ("vortex", "append", "files"),
        # The last: the JVM keeps the space of its half-written file until it ends.
        ("parquet", "append", "frame"),
    ],
)
def test_the_old_rows_stay(
    spark: Any, disk: Path, lines: tuple[Path, Path], tmp_path: Path, form: Any, mode: Any, kind: str
) -> None:
    if form == "vortex":
        pytest.importorskip("vortex", reason="vortex-data is not installed")
    dest, (one, many) = disk / f"{form}-{kind}", lines
    pv.ingest(one, dest, engine=spark, format=form, column="value")
    before = sorted(disk.rglob("*"))
    sources = {"files": many, "frame": spark.read.text(str(many))}[kind]
    options: dict[str, Any] = {"json_column": "value"} if kind == "frame" else {"column": "value"}
    with pytest.raises(pv.VariantError, match="No space left on device") as raised:
        pv.ingest(sources, dest, engine=spark, format=form, mode=mode, split_bytes=1 << 20, **options)
    assert raised.value.reason == "cannot-write"
    assert str(dest) in str(raised.value)
    assert sorted(disk.rglob("*")) == before
    time.sleep(1)  # a task that went on would make its directory again
    assert sorted(disk.rglob("*")) == before
    assert _rows(dest, form) == [1]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "delta"])
def test_a_frame_that_is_written_reports_the_same(spark: Any, disk: Path, lines: tuple[Path, Path], form: Any) -> None:
    one, many = (spark.read.text(str(line)) for line in lines)
    dest = disk / f"{form}-written"
    pv.write(dest, one, format=form, schema="n int")
    before = sorted(disk.rglob("*"))
    with pytest.raises(pv.VariantError, match="No space left on device") as raised:
        pv.write(dest, many.repartition(4), format=form, schema="n int", mode="append")
    assert raised.value.reason == "cannot-write"
    with pytest.raises(Exception, match=r"No space left on device.*\[cannot-write\]"):
        many.repartition(4).write.format("variant").option("format", form).mode("append").save(str(dest))
    time.sleep(3)  # Spark ends the workers of a job that failed after two seconds
    assert sorted(disk.rglob("*")) == before
    assert _rows(dest, form) == [1]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["parquet", "delta"])
def test_a_job_that_is_interrupted_on_a_full_disk_leaves_nothing(
    spark: Any, disk: Path, lines: tuple[Path, Path], form: Any
) -> None:
    one, many = lines
    dest = disk / f"{form}-interrupted"
    pv.ingest(one, dest, engine=spark, format=form)
    before = sorted(disk.rglob("*"))
    ballast = disk / "ballast"
    interrupted = False

    def interrupt(step: str, done: int, total: int) -> None:
        nonlocal interrupted
        if step == "write" and not interrupted:
            interrupted = True
            with ballast.open("wb", buffering=0) as file:
                try:
                    while file.write(bytes(1 << 12)):
                        pass
                except OSError:
                    pass
            os.kill(os.getpid(), signal.SIGINT)

    try:
        with pytest.raises((KeyboardInterrupt, pv.VariantError)):
            pv.ingest(many, dest, engine=spark, format=form, mode="append", split_bytes=1 << 20, progress=interrupt)
    finally:
        ballast.unlink(missing_ok=True)
    assert interrupted
    assert sorted(disk.rglob("*")) == before
    time.sleep(1)
    assert sorted(disk.rglob("*")) == before
    assert _rows(dest, form) == [1]
    assert pv.ingest(one, dest, engine=spark, format=form, mode="append").rows == 1
