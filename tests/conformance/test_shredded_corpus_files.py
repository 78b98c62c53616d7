"""Apache's corpus of shredded files, through file read, extract, rewrite and validate."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import parquet_variant as pv
from parquet_variant.errors import ConflictError, SchemaError

CORPUS = (
    Path(os.environ.get("PARQUET_TEST_DATA") or Path(__file__).parents[2] / ".." / "shared" / "parquet-testing")
    / "shredded_variant"
)
if not (CORPUS / "cases.json").is_file():
    pytest.skip(f"no corpus in {CORPUS}: set PARQUET_TEST_DATA", allow_module_level=True)

CASES = [case for case in json.loads((CORPUS / "cases.json").read_text()) if "parquet_file" in case]
VALID = [case for case in CASES if "error_message" not in case]
REFUSED = [case for case in CASES if "error_message" in case]


def name(case):
    return Path(case["parquet_file"]).stem


def expected(case):
    files = case.get("variant_files") or [case["variant_file"]]
    return [None if file is None else pv.Variant.from_bytes((CORPUS / file).read_bytes()) for file in files]


def steps(variant):
    """All paths of a value with what is there."""
    todo = [(pv.VariantPath(), variant)]
    while todo:
        path, value = todo.pop()
        yield path, value
        if value.type == "object":
            todo += [(path / key, child) for key, child in value.items()]
        elif value.type == "array":
            todo += [(path / index, child) for index, child in enumerate(value)]


@pytest.mark.parametrize("case", VALID, ids=name)
def test_read_gives_the_value(case):
    assert list(pv.parquet.read(CORPUS / case["parquet_file"])) == expected(case)


@pytest.mark.parametrize("case", VALID, ids=name)
def test_extract_gives_every_part(case):
    values = expected(case)
    paths = {str(path) for value in values if value is not None for path, _ in steps(value)}
    answer = pv.parquet.extract(CORPUS / case["parquet_file"], {path: path for path in paths})
    for path in paths:
        found = list(pv.VariantArray(answer[path]))
        assert found == [None if value is None else value.get(path) for value in values], path


@pytest.mark.parametrize("layout", ["unshredded", "final", "draft-paths", "draft-object"])
@pytest.mark.parametrize("case", VALID, ids=name)
def test_rewrite_keeps_the_value(case, layout, tmp_path):
    dest = tmp_path / "a.parquet"
    (info,) = pv.parquet.rewrite(CORPUS / case["parquet_file"], dest, layout=layout)
    rewritten = pv.parquet.read(dest)
    assert list(rewritten) == expected(case)
    assert info.rows == len(rewritten)
    if layout in ("unshredded", "final"):
        report = pv.parquet.validate(dest)
        assert report.ok, str(report)


@pytest.mark.parametrize("case", REFUSED, ids=name)
def test_what_must_fail_fails(case, tmp_path):
    path = CORPUS / case["parquet_file"]
    with pytest.raises((ConflictError, SchemaError)):
        list(pv.parquet.read(path))
    with pytest.raises((ConflictError, SchemaError)) as caught:
        pv.parquet.rewrite(path, tmp_path / "a.parquet", layout="unshredded")
    assert caught.value.file == str(path)
    assert not list(tmp_path.iterdir())
    assert not pv.parquet.validate(path).ok


def test_conflicts_can_be_read_on_request():
    for case in REFUSED:
        if "conflict" in case["error_message"]:
            array = pv.parquet.read(CORPUS / case["parquet_file"], on_conflict="typed")
            assert len(list(array)) == len(array) > 0


def test_validate_finds_only_the_invalid_file():
    invalid = [name(case) for case in VALID if not pv.parquet.validate(CORPUS / case["parquet_file"]).ok]
    assert invalid == ["case-084-INVALID"]


def test_an_unsigned_column_is_refused_by_name():
    with pytest.raises(SchemaError, match=r"var\.typed_value.*false.*case-127") as caught:
        pv.parquet.read(CORPUS / "case-127.parquet")
    assert caught.value.file == str(CORPUS / "case-127.parquet")
