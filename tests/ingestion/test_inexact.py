"""Numbers that no type of Variant keeps exactly are counted with the position of the first one, or refused."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.kernels.shredding.json_batch import parse_text

EXACT = ["0", "-0.0", "1.10", "1e5", "1.5E-3", "0.1e0", "9" * 38, "-0." + "1" * 38, "0e999999", "1e22", "5e-324"]
INEXACT = [
    "1E400",
    "4.9e-324",
    "-1e999",
    "1e-400",
    "9" * 39,
    "0." + "3" * 39,
    "0.30000000000000004441e0",
    "1" + "0" * 50 + "1",
]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    lines = [f'{{"n": {number}}}' for number in [*EXACT, *INEXACT]]
    (tmp_path / "numbers.ndjson").write_text("\n".join(lines))
    return tmp_path / "numbers.ndjson"


def test_they_are_counted_and_the_first_is_named(source: Path, tmp_path: Path) -> None:
    for format in ("parquet", "delta"):
        result = pv.ingest(source, tmp_path / format, format=format)
        assert result.inexact_numbers == len(INEXACT)
        assert result.first_inexact == f"1E400 at line {len(EXACT) + 1} of {source}"
        assert json.loads(json.dumps(result.to_dict()))["inexact_numbers"] == len(INEXACT)
        assert "lost precision" in repr(result)


def test_they_are_refused_on_request_and_nothing_is_written(source: Path, tmp_path: Path) -> None:
    for options in ({}, {"schema": "n double"}, {"sample": 0.5}):
        with pytest.raises(pv.JsonError) as caught:
            pv.ingest(source, tmp_path / "out", on_inexact="fail", **options)
        assert (caught.value.reason, caught.value.file) == ("inexact-number", str(source))
        assert str(caught.value).startswith(f"line {len(EXACT) + 1}: ")
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("number", EXACT)
def test_exact_numbers_are_not_counted(number: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f"[{number}]\n{number}\n")
    result = pv.ingest(tmp_path / "a.json", tmp_path / "out", on_inexact="fail")
    assert (result.rows, result.inexact_numbers, result.first_inexact) == (2, 0, None)


@given(st.from_regex(r"-?(0|[1-9][0-9]{0,45})(\.[0-9]{1,45})?([eE][+-]?[0-9]{1,3})?", fullmatch=True))
def test_a_number_is_inexact_if_its_json_is_another_number(text: str) -> None:
    data = np.frombuffer(text.encode(), np.uint8)
    start = np.zeros(1, np.int64)
    parsed = parse_text(data, start, start + len(data))
    back = pv.to_json(pv.parse_json([text])).to_pylist()[0]
    is_same = back.strip('"') not in ("Infinity", "-Infinity") and Decimal(back) == Decimal(text)
    assert bool(parsed.inexact) == (not is_same)


@pytest.mark.parametrize("form", ["array", "documents", "gzip", "csv", "small files", "column"])
def test_they_are_found_in_every_input(form: str, tmp_path: Path) -> None:
    path, options = tmp_path / "in" / "a.json", dict[str, Any]()
    path.parent.mkdir()
    sources: Any = path
    match form:
        case "array":
            path.write_text('[{"n": 1}, {"n": 1E400}]')
        case "documents":
            path.write_text('{"n":\n 1}\n{"n":\n1E400}')
        case "gzip":
            path.write_bytes(gzip.compress(b'{"n": 1}\n{"n": 1E400}\n'))
        case "csv":
            path.write_text("n\n1\n1E400\n")
            options = {"input_format": "csv"}
        case "small files":
            sources = path.parent
            path.write_text('{"n": 1}\n{"n": 1E400}\n')
            for number in range(3):
                path.with_name(f"{number}.json").write_text('{"n": 1}\n')
        case "column":
            sources = pa.table({"j": ['{"n": 1}', '{"n": 1E400}']})
            options = {"json_column": "j"}
    result = pv.ingest(sources, tmp_path / "out", **options)
    assert result.inexact_numbers == 1
    assert "1E400" in (result.first_inexact or "").upper()
    with pytest.raises(pv.JsonError, match=r"(?i)1E400"):
        pv.ingest(sources, tmp_path / "other", on_inexact="fail", **options)


def test_doubles_on_request_are_inexact_only_beyond_their_digits(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("0.1\n0.30000000000000004\n0.300000000000000041\n")
    result = pv.ingest(tmp_path / "a.json", tmp_path / "out", parse={"floats": "double"})
    assert result.first_inexact == f"0.300000000000000041 at line 3 of {tmp_path / 'a.json'}"
    assert result.inexact_numbers == 1
