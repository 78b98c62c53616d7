"""Files that Python serves (fsspec, obstore, a handler of the user): no thread of pyarrow calls Python to read them."""

from __future__ import annotations

import io
import random
import threading
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
    def __init__(self, threads: list[Any]) -> None:
        super().__init__(pytest.importorskip("fsspec").filesystem("file"))
        self.threads = threads

    def open_input_file(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(_Watched(path, self.threads), mode="r")


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
    system: fs.FileSystem = fs.PyFileSystem(_Handler(threads))
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
