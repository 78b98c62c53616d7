"""Files that Python serves (fsspec, obstore, a handler of the user): no thread of pyarrow calls Python to read them."""

from __future__ import annotations

import errno
import io
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

import parquet_variant as pv


class _Watched(io.FileIO):
    """A file that notes the threads which read it."""

    def __init__(self, path: str, threads: list[Any]) -> None:
        super().__init__(path)
        self.threads = threads

    def read(self, size: int | None = -1) -> bytes:  # type: ignore[override]
        self.threads.append(threading.current_thread())
        return super().read(size)


class _Handler(fs.FSSpecHandler):
    def __init__(self, opened: Callable[[str], io.FileIO]) -> None:
        super().__init__(pytest.importorskip("fsspec").filesystem("file"))
        self.opened = opened

    def open_input_file(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(self.opened(path), mode="r")


@pytest.mark.parametrize("inside", [False, True])
def test_what_pyarrow_reads_is_in_memory(tmp_path: Path, inside: bool) -> None:
    rows, source = 2000, random.Random(1)
    texts = [f'{{"a":{n},"b":"{source.randbytes(50).hex()}","c":[{{"d":{n}}}]}}' for n in range(rows)]
    values = pv.parse_json(texts)
    for number in range(2):
        pv.write(
            tmp_path / f"{number}.parquet", {"id": range(rows), "v": values}, schema="infer", row_group_bytes=60_000
        )
    assert (tmp_path / "0.parquet").stat().st_size > 64 << 10  # smaller ones are read whole
    threads: list[Any] = []
    system: fs.FileSystem = fs.PyFileSystem(_Handler(lambda path: _Watched(path, threads)))
    place = str(tmp_path)
    if inside:
        system, place = fs.SubTreeFileSystem(str(tmp_path), system), ""
    columns = {"id": "id", "a": "$.a:bigint", "d": "$.c[0].d:bigint", "v": "$"}
    for read in (
        lambda **more: pv.open(place or ".", **more).scan(columns, "a > 100", column="v").to_arrow(),
        lambda **more: pv.open(place or ".", **more).read("v"),
        lambda **more: pv.open(place or ".", **more).to_arrow(),
    ):
        found = read(filesystem=system)
        assert len(found) == (
            2 * (rows - 101) if isinstance(found, pa.Table) and "a" in found.column_names else 2 * rows
        )
    assert threads
    assert not [thread for thread in threads if isinstance(thread, threading._DummyThread)]  # of pyarrow's


class _Failing(io.FileIO):
    """A file of which one read fails."""

    def __init__(self, path: str, remaining: list[int]) -> None:
        super().__init__(path)
        self.remaining = remaining  # the number of reads before the one that fails, in a list that files share

    def read(self, size: int | None = -1) -> bytes:  # type: ignore[override]
        self.remaining[0] -= 1
        if self.remaining[0] == -1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return super().read(size)


def _reason(read: Callable[[], Any]) -> str | None:
    try:
        read()
    except pv.VariantError as error:
        return error.reason
    return None


def test_a_disk_that_cannot_be_read_does_not_make_a_file_damaged(tmp_path: Path) -> None:
    path, remaining = tmp_path / "a.parquet", [0]
    values = pv.parse_json([f'{{"a":{n},"b":"{random.Random(n).randbytes(50).hex()}"}}' for n in range(2000)])
    pv.write(path, values, schema="infer", row_group_bytes=60_000)
    system = fs.PyFileSystem(_Handler(lambda path: _Failing(path, remaining)))
    uses: tuple[Callable[[], Any], ...] = (
        lambda: pv.open(path, filesystem=system).read(),
        lambda: pv.open(path, filesystem=system).to_arrow(),
        lambda: pv.open(path, filesystem=system).scan({"a": "$.a:bigint"}, "$.b > 'a'").to_arrow(),
    )
    for use in uses:
        reasons: list[str | None] = []
        while not reasons or reasons[-1] is not None:
            remaining[0] = len(reasons)
            reasons.append(_reason(use))
        assert set(reasons[:-1]) == {"cannot-read"}
