"""Files that were opened before: read without their footer, and never with that of another file."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import parquet_variant as pv
from parquet_variant.errors import KernelsError
from parquet_variant.files.parquet.format import files, footer_cache
from parquet_variant.files.parquet.format.files import locate, open_file


@pytest.fixture
def forgetful(monkeypatch):
    """An empty memory, in which files count from the moment they are written."""
    monkeypatch.setattr(footer_cache, "FOOTERS", footer_cache.FooterCache())
    monkeypatch.setattr(footer_cache, "SETTLED_NS", 0)


def write(path, *texts):
    pv.write(path, pv.parse_json(list(texts), schema="a bigint, b string"))
    return path


def values(path):
    return pv.open(path).scan({"a": "$.a:bigint", "b": "$.b:string"}).to_arrow().to_pylist()


def known(path):
    """What is known of a file, after a look at it."""
    open_file(locate(path)[0]).close()
    with open_file(locate(path)[0]) as file:
        kept = [facts for facts, _ in footer_cache.FOOTERS.files.values()]
        return file.facts if any(facts is file.facts for facts in kept) else None


@pytest.mark.usefixtures("forgetful")
def test_a_file_is_known_the_second_time(tmp_path):
    path = write(tmp_path / "a.parquet", '{"a": 1, "b": "x"}', '{"a": 2}')
    time.sleep(0.05)
    first = known(path)
    assert first is not None
    assert known(path) is first
    expected = [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
    assert [values(path) for _ in range(3)] == [expected] * 3
    assert pv.open(path).scan({"a": "$.a:string"}, "a = '2'").to_arrow().to_pylist() == [{"a": "2"}]
    assert pv.open(path).scan({"a": "$.a:string"}).to_arrow().to_pylist() == [{"a": "1"}, {"a": "2"}]
    assert [reader.handle.stream for reader in first.idle_readers] == [None]  # no file stays open


@pytest.mark.usefixtures("forgetful")
@pytest.mark.parametrize("in_place", [True, False])
def test_a_file_of_the_same_size_and_time_is_another_file(tmp_path, in_place):
    path, other = write(tmp_path / "a.parquet", '{"a": 1}'), write(tmp_path / "b.parquet", '{"a": 2}')
    assert path.stat().st_size == other.stat().st_size
    time.sleep(0.05)
    assert values(path) == values(path) == [{"a": 1, "b": None}]
    assert known(path) is not None
    before = path.stat()
    if in_place:
        path.write_bytes(other.read_bytes())
    else:
        other.replace(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert values(path) == values(path) == [{"a": 2, "b": None}]


@pytest.mark.usefixtures("forgetful")
def test_a_file_with_another_schema_takes_the_place(tmp_path):
    path = write(tmp_path / "a.parquet", '{"a": 1}')
    time.sleep(0.05)
    assert values(path) == [{"a": 1, "b": None}]
    path.unlink()
    pv.write(path, pv.parse_json(['{"b": "y", "a": 3}', "null"]))
    assert values(path) == [{"a": 3, "b": "y"}, {"a": None, "b": None}]


def test_a_file_that_may_change_within_a_tick_of_the_clock_is_not_kept(tmp_path):
    path, other = write(tmp_path / "a.parquet", '{"a": 1}'), write(tmp_path / "b.parquet", '{"a": 2}')
    assert values(path) == [{"a": 1, "b": None}]
    assert known(path) is None
    path.write_bytes(other.read_bytes())  # perhaps with the same inode, size and times
    assert values(path) == [{"a": 2, "b": None}]


@pytest.mark.usefixtures("forgetful")
def test_a_file_that_changes_between_two_looks_is_not_kept(tmp_path):
    path, other = write(tmp_path / "a.parquet", '{"a": 1}'), write(tmp_path / "b.parquet", '{"a": 2}')
    time.sleep(0.05)
    fingerprint = footer_cache.fingerprint_of(str(path))
    found = known(path)
    other.replace(path)
    assert footer_cache.FOOTERS.get(str(path), fingerprint) is None
    footer_cache.FOOTERS.files.clear()
    footer_cache.FOOTERS.add(str(path), fingerprint, found, found.metadata.serialized_size)
    assert not footer_cache.FOOTERS.files


@pytest.mark.usefixtures("forgetful")
def test_threads_share_what_is_known_but_no_reader(tmp_path):
    texts = [f'{{"a": {number}, "b": "{number % 7}"}}' for number in range(5000)]
    path = write(tmp_path / "a.parquet", *texts)
    time.sleep(0.05)
    expected = values(path)
    with ThreadPoolExecutor(8) as pool:
        assert all(found == expected for found in pool.map(lambda _: values(path), range(40)))
    assert len(known(path).idle_readers) <= 2


@pytest.mark.usefixtures("forgetful")
def test_what_is_kept_is_bounded(tmp_path, monkeypatch):
    paths = [write(tmp_path / f"{number}.parquet", f'{{"a": {number}}}') for number in range(5)]
    time.sleep(0.05)
    monkeypatch.setattr(footer_cache.FOOTERS, "max_files", 3)
    found = [known(path) for path in paths]
    assert [known(path) is each for path, each in zip(paths[2:], found[2:], strict=True)] == [True] * 3
    assert known(paths[0]) is not found[0]
    size = found[0].metadata.serialized_size
    monkeypatch.setattr(footer_cache, "MAX_FOOTER_BYTES", 2 * size + 1)
    assert known(write(tmp_path / "new.parquet", '{"a": 9}')) is not None
    assert footer_cache.FOOTERS.bytes <= 2 * size + 1
    kept = footer_cache.FOOTERS.files.values()
    assert footer_cache.FOOTERS.bytes == sum(each.metadata.serialized_size for each, _ in kept)
    for number in range(40):
        pv.open(paths[0]).scan({"a": "$.a:bigint", f"x{number}": "$.b:string"}).to_arrow()
    assert len(known(paths[0]).plans) <= 16


@pytest.mark.parametrize("threads", [1, 2])
def test_a_process_that_has_read_a_file_ends_well(tmp_path, threads):
    path = write(tmp_path / "a.parquet", *(f'{{"a": {number}, "b": "{number}"}}' for number in range(20_000)))
    os.utime(path, (1, 1))
    code = (
        f"import pyarrow as pa; pa.set_cpu_count({threads})\n"
        "import parquet_variant as pv\n"
        "from parquet_variant.files.parquet.format import footer_cache; footer_cache.SETTLED_NS = 0\n"
        f"for _ in range(4): pv.open({str(path)!r}).scan({{'a': '$.a:bigint', 'b': '$.b:string'}}).to_arrow()\n"
        "assert footer_cache.FOOTERS.files"
    )
    for _ in range(4):
        subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.usefixtures("forgetful")
def test_a_reader_that_failed_is_not_lent_again(tmp_path):
    path = write(tmp_path / "a.parquet", *(f'{{"a": {number}, "b": "{number}"}}' for number in range(1000)))
    with open_file(locate(path)[0]) as file:
        chunk = file.metadata.row_group(0).column(file.metadata.num_columns - 1)
        start, size = chunk.data_page_offset, chunk.total_compressed_size
    with Path(path).open("r+b") as stream:
        stream.seek(start)
        stream.write(b"\xff" * size)
    time.sleep(0.05)
    for _ in range(2):
        with pytest.raises(pv.VariantFileError, match="cannot read"):
            values(path)
    assert next(reversed(footer_cache.FOOTERS.files.values()))[0].idle_readers == []


@pytest.mark.usefixtures("forgetful")
def test_kernels_that_cannot_be_loaded_are_not_damage_of_the_file(tmp_path, monkeypatch):
    path = write(tmp_path / "a.parquet", '{"a": 1}')
    refused = KernelsError("the library of kernels is truncated", reason="other-kernels")

    def check_chunks(*_: object) -> None:
        raise refused

    monkeypatch.setattr(files, "check_chunks", check_chunks)
    with pytest.raises(KernelsError) as caught:
        values(path)
    assert caught.value is refused
