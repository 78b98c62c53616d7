"""Passwords and signatures of URLs stand in no error, report, page or line of a command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv
from parquet_variant.cli.app import main
from parquet_variant.cli.output import one_line
from parquet_variant.errors import without_secrets
from parquet_variant.ingestion.result import IngestResult

SECRET = "hunter2"
URLS = [
    f"s3://AKID:{SECRET}@bucket:port/x.parquet",
    f"s3://AKID:ab/{SECRET}@bucket/x.parquet?endpoint_override=nowhere",
    f"unknown://user:{SECRET}@host/x.parquet",
    f"http://user:{SECRET}@host/x.parquet?v=1",
    f"https://host/x.parquet?X-Amz-Signature={SECRET}&X-Amz-Credential={SECRET}",
    f"/nowhere/x.parquet?X-Amz-Security-Token={SECRET}",
    f"/nowhere/x.parquet?pwd={SECRET}&auth={SECRET}&jwt={SECRET}&sas={SECRET};jsessionid={SECRET}",
    f"/nowhere/x.vortex?sig={SECRET}",
    f"nowhere/x.json?AWSAccessKeyId={SECRET}",
    f"foo://user:{SECRET}@host/x.parquet?v=1&X-Amz-Signature={SECRET}",
    f"ftp://host/x.parquet?X-Amz-Signature={SECRET}&v=1",
    f"/nowhere/x.parquet%3FX-Amz-Signature%3D{SECRET}%26v%3D1",
    f"/nowhere/https%253A%252F%252Fh%252Fx%253FX-Amz-Signature%253D{SECRET}%2526v=1",
    f"postgresql://user:a@{SECRET}@host/db",
    f"foo%3A%2F%2Fuser%3A{SECRET}%40host%2Fx.parquet",
    f"foo%253A%252F%252Fuser%253A{SECRET}%2540host%252Fx.parquet",
    f"foo://host/x.parquet#access_token={SECRET}",
]
WAYS: dict[str, Callable[[str], Any]] = {
    "read": (lambda path: pv.open(path).read()),
    "scan": lambda url: pv.open(url).scan({"a": "$.a:int"}),
    "inspect": (lambda path: pv.open(path).inspect()),
    "validate": (lambda path: pv.open(path).validate()),
    "optimize": (lambda path: pv.open(path).optimize()),
    "schema": lambda url: pv.ShreddingSchema.from_parquet(url, "v"),
    "ingest": lambda url: pv.ingest(url, "/nowhere/at/all"),
    "read_json": pv.read_json,
    "delta": (lambda path: pv.open(path).to_arrow()),
    "history": (lambda path: pv.open(path).history()),
    "vortex": lambda url: pv.open(url).scan({"a": "$.a:int"}),
    "sql": lambda url: pv.sql("select v:a from t", t=url).to_arrow(),
    "sql path": lambda url: pv.sql(f"select v:a from '{url}'").to_arrow(),
    "explore": lambda path: pv.open(path).explore(),
}


@pytest.mark.parametrize("url", [*URLS[2:3], *URLS[5:]])
@pytest.mark.parametrize("way", WAYS)
def test_errors(way: str, url: str) -> None:
    with pytest.raises(pv.VariantError) as caught:
        WAYS[way](url)
    for shown in (str(caught.value), repr(caught.value), caught.value.message, str(caught.value.file)):
        assert SECRET not in shown
    cause: BaseException | None = caught.value
    while cause is not None:
        assert SECRET not in str(cause) + repr(cause)
        cause = cause.__cause__ or cause.__context__


@pytest.mark.parametrize("url", URLS)
def test_every_spelling(url: str) -> None:
    assert SECRET not in without_secrets(f"cannot read '{url}': gone")
    assert SECRET not in one_line(OSError(5, f"cannot read {url}"))
    assert SECRET not in one_line(KeyError(url))


@pytest.mark.parametrize("command", ["cat", "query", "inspect", "validate", "infer", "history"])
def test_commands(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    for url in (URLS[2], URLS[5]):
        assert main([command, url]) in (1, 2)
        shown = capsys.readouterr()
        assert SECRET not in shown.out + shown.err


@pytest.mark.parametrize("header", ["b'Bearer {}\\n'", "b'{}\\n'", "'token {}\\n'"])
def test_headers(header: str) -> None:
    assert SECRET not in without_secrets(f"Invalid header value {header.format(SECRET)}")
    assert SECRET not in without_secrets(f"Unauthorized: Bearer {SECRET}")


def test_text_that_is_not_a_secret_stays() -> None:
    kept = ("s3://bucket/a@b/c.parquet", "s3://host:9000/a@b", "is this a question? yes=no", "a@b.org: no ://")
    for text in (*kept, "day=a%2Fb%40c", "the bearer token is missing"):
        assert without_secrets(text) == text


def test_reports(tmp_path: Path) -> None:
    result = IngestResult(f"s3://k:{SECRET}@b/x", (), 1, 1, f"s3://k:{SECRET}@b/x/_bad_records", 1, 1, None)
    assert SECRET not in repr(result) + str(result.to_dict())
    (tmp_path / "x.json").write_text('{"a":1}\n')
    found = pv.open(tmp_path / "x.json").explore()
    found.source = f"s3://k:{SECRET}@b/x.json?X-Amz-Signature={SECRET}"
    assert SECRET not in repr(found) + found.to_html()
