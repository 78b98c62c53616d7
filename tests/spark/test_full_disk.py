"""A disk that is full while Spark writes: one error that names the place, no task that writes on, the old rows left."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import parquet_variant as pv


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A disk of 2 MB."""
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
        return [row["n"] for file in place.glob("*.vortex") for row in pv.vortex.read(file).to_pylist()]
    read = pv.delta.read if form == "delta" else pv.parquet.read
    return [row["n"] for row in read(place).to_pylist()]


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
    pv.spark.ingest(spark, one, dest, format=form, column="value")
    before = sorted(disk.rglob("*"))
    sources = {"files": many, "frame": spark.read.text(str(many))}[kind]
    options: dict[str, Any] = {"json_column": "value"} if kind == "frame" else {"column": "value"}
    with pytest.raises(pv.VariantError, match="No space left on device") as raised:
        pv.spark.ingest(spark, sources, dest, format=form, mode=mode, split_bytes=1 << 20, **options)
    assert raised.value.reason == "cannot-write"
    assert str(dest) in str(raised.value)
    assert sorted(disk.rglob("*")) == before
    time.sleep(1)  # a task that went on would make its directory again
    assert sorted(disk.rglob("*")) == before
    assert _rows(dest, form) == [1]
