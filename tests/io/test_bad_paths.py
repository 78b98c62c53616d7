"""Paths that no filesystem has are one error of ours, wherever a path is taken."""

import io
import os

import pytest
from pyarrow import fs

import parquet_variant as pv

BAD = {
    "nul": "a\0b",
    "surrogate": "a\ud800",
    "undecodable": "a\udcff",
    "long": "$.a" * 2000,
    "name": "x" * 300,
    "nothing": "s3://",
}
ARRAY = pv.parse_json(['{"a": 1}'])
TAKERS = {
    "read": (lambda path: pv.open(path).read()),
    "scan": lambda path: pv.open(path).scan({"a": "$.a:bigint"}),
    "inspect": (lambda path: pv.open(path).inspect()),
    "write": lambda path: pv.write(path, ARRAY),
    "annotate": (lambda path: pv.open(path).annotate()),
    "rewrite": lambda path: pv.open(path).rewrite(path),
    "optimize": (lambda path: pv.open(path).optimize()),
    "infer": pv.infer,
    "ingest": lambda path: pv.ingest("examples/usgs_earthquakes.ndjson", path),
    "read_json": pv.read_json,
    "sql": lambda path: pv.sql("SELECT 1 FROM t", t=path),
    "sql_view": lambda path: pv.open(path).sql_view(),
    "delta": (lambda path: pv.open(path).read()),
    "delta write": lambda path: pv.write(path, ARRAY, format="delta"),
    "vortex": (lambda path: pv.open(path).read()),
    "vortex write": lambda path: pv.write(path, ARRAY, format="vortex"),
}


@pytest.mark.parametrize("take", TAKERS)
@pytest.mark.parametrize("path", BAD)
def test_a_path_that_cannot_be_is_refused(take, path, monkeypatch, tmp_path, usgs_sample):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(usgs_sample.parent)
    with pytest.raises(pv.VariantError) as caught:
        TAKERS[take](BAD[path])
    str(caught.value).encode()  # can be printed
    assert str(caught.value).isprintable()
    assert [item.name for item in tmp_path.iterdir()] == ["examples"]


@pytest.mark.parametrize("path", [None, 3, b"a.parquet", io.BytesIO(b""), ["a.parquet", None], [[3]]])
def test_an_invalid_path_is_refused(path):
    for take in ((lambda path: pv.open(path).read()), TAKERS["scan"], (lambda path: pv.open(path).inspect())):
        with pytest.raises(pv.VariantFileError) as caught:
            take(path)
        assert caught.value.reason in ("bad-path", "no-such-file")


def test_a_user_whom_nobody_knows_is_a_name(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    pv.write("~nobody-knows.parquet", ARRAY)
    assert pv.open("~nobody-knows.parquet").read() == ARRAY


def test_a_uri_on_a_filesystem_that_is_given_is_refused(tmp_path):
    uri = (tmp_path / "a.parquet").as_uri()
    for take in (
        lambda uri, filesystem: pv.open(uri, filesystem=filesystem).read(),
        lambda uri, filesystem: pv.write(uri, ARRAY, filesystem=filesystem),
    ):
        with pytest.raises(pv.VariantFileError, match="has its own filesystem"):
            take(uri, filesystem=fs.LocalFileSystem())


def test_only_files_are_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    pv.write(tmp_path / "a.parquet", ARRAY)
    for name in ("pipe", "folder", "folder/", "new/"):
        path = f"{tmp_path}/{name}"
        with pytest.raises(pv.VariantFileError) as caught:
            pv.write(path, ARRAY, mode="overwrite")
        assert caught.value.reason == "bad-path"
    with pytest.raises(pv.VariantFileError):
        pv.write("", ARRAY)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a.parquet", "folder", "pipe"]
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("name", ["ab:c", "a b%20#?=&", "\n", "día=1", "=", "{x}", "'\"", "$(x)", "\u202e", "file:x"])
def test_odd_names_are_names(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    file = f"{name}.parquet"
    pv.write(file, ARRAY)
    assert pv.open(file).read() == ARRAY
    assert pv.sql("SELECT v:a::int AS a FROM t", t=file).to_arrow()["a"].to_pylist() == [1]
    pv.open(file).rewrite(f"{name}/b.parquet")
    assert pv.open(name).read() == ARRAY
    (tmp_path / f"{name}.ndjson").write_text('{"a": 1}\n')
    pv.ingest(f"{name}.ndjson", f"{name}2")
    assert pv.open(f"{name}2").read() == ARRAY
    if ":" not in name:  # for a table's path that is a URL
        pv.write(f"{name}3", {"v": ARRAY}, format="delta")
        assert pv.open(f"{name}3").read() == ARRAY


@pytest.mark.parametrize("name", ["\ud800", "a\nb", "\x1b[2J", "\u202ea", "\r", "\0"])
def test_messages_can_be_printed_whatever_they_quote(name, tmp_path):
    pv.write(tmp_path / "a.parquet", ARRAY)
    with pytest.raises(pv.VariantError) as caught:
        pv.open(tmp_path / "a.parquet").read(name)
    assert str(caught.value).isprintable()


def test_a_pipe_is_not_said_to_be_missing(tmp_path):
    os.mkfifo(tmp_path / "pipe.parquet")
    with pytest.raises(pv.VariantError, match=r"pipe\.parquet is not a regular file: copy its content to a file"):
        pv.open(tmp_path / "pipe.parquet", format="parquet").read()
