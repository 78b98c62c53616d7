"""The bytes that a scan really asks a filesystem for: the footer, and the column chunks that it names."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs

import parquet_variant as pv


class Recorded:
    """A file that notes which bytes are read."""

    closed = False

    def __init__(self, path, ranges):
        self.file = Path(path).open("rb")  # noqa: SIM115 - closed by close()
        self.ranges = ranges

    def read(self, size=-1):
        start = self.file.tell()
        data = self.file.read(size)
        self.ranges.append((start, start + len(data)))
        return data

    def seek(self, offset, whence=0):
        return self.file.seek(offset, whence)

    def tell(self):
        return self.file.tell()

    def close(self):
        self.closed = True
        self.file.close()

    def seekable(self):
        return True

    readable = seekable

    def writable(self):
        return False


class Recording(fs.FileSystemHandler):
    """The local filesystem, read only, through `Recorded` files."""

    def __init__(self):
        self.base, self.ranges = fs.LocalFileSystem(), []

    def get_type_name(self):
        return "recording"

    def normalize_path(self, path):
        return path

    def get_file_info(self, paths):
        return self.base.get_file_info(paths)

    get_file_info_selector = get_file_info

    def open_input_file(self, path):
        return pa.PythonFile(Recorded(path, self.ranges), "r")

    open_input_stream = open_input_file

    def _refuse(self, *arguments):
        raise NotImplementedError

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _refuse
    move = copy_file = open_output_stream = open_append_stream = _refuse


@pytest.fixture
def recorded():
    handler = Recording()
    return handler, fs.PyFileSystem(handler)


def test_a_scan_asks_for_its_column_chunks_and_one_footer(recorded, tmp_path):
    handler, system = recorded
    path = tmp_path / "a.parquet"
    values = [{"id": n, "text": f"{n * 7919:x}" * 8, "other": f"{n * 104729:x}" * 20} for n in range(20_000)]
    pv.write(path, pv.VariantArray.from_pylist(values), schema="id bigint, text string")
    size = path.stat().st_size
    scan = pv.open(str(path), filesystem=system).scan({"id": "$.id:bigint"}, "id >= 0")
    handler.ranges.clear()
    assert len(scan.to_arrow()) == 20_000
    footers = [start for start, stop in handler.ranges if stop == size]
    data = [(start, stop) for start, stop in handler.ranges if stop != size]
    assert len(footers) == 1
    assert sum(stop - start for start, stop in data) == scan.bytes_read == scan.explain().bytes_read
    assert scan.bytes_read < size / 4
    handler.ranges.clear()
    assert len(pv.open(str(path), filesystem=system).scan({"id": "$.id:bigint"}, "id < 0").to_arrow()) == 0
    assert all(stop == size for _, stop in handler.ranges)
