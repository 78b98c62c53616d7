"""JSONTestSuite: what must be read is read as Python's `json` reads it; what must be refused is, with an offset."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from parquet_variant.encoding.json_reader import JsonOptions, parse_json
from parquet_variant.errors import JsonError


def _exact(text: str | bytes) -> Any:
    return json.loads(text, parse_float=Decimal)


def test_every_y_file_is_read_as_python_reads_it(json_test_suite: Path) -> None:
    files = sorted(json_test_suite.glob("y_*.json"))
    assert len(files) > 80
    for file in files:
        text = file.read_bytes()
        for floats in ("decimal", "double"):
            variant = parse_json(text, JsonOptions(floats=floats)).validate()  # type: ignore[arg-type]
            assert json.loads(variant.to_json()) == json.loads(text), file.name
        assert _exact(parse_json(text).to_json()) == _exact(text), file.name


def test_every_n_file_is_refused_with_an_offset_inside_the_text(json_test_suite: Path) -> None:
    files = sorted(json_test_suite.glob("n_*.json"))
    assert len(files) > 80
    for file in files:
        text = file.read_bytes()
        with pytest.raises(JsonError) as caught:
            parse_json(text)
        assert caught.value.offset is not None, file.name
        assert 0 <= caught.value.offset <= len(text), file.name
        assert "\n" not in str(caught.value)


def test_100000_open_arrays_are_too_deep_not_a_crash(json_test_suite: Path) -> None:
    text = (json_test_suite / "n_structure_100000_opening_arrays.json").read_bytes()
    with pytest.raises(JsonError, match="deeper than max_depth=1000") as caught:
        parse_json(text)
    assert (caught.value.reason, caught.value.offset) == ("depth", 1000)
    with pytest.raises(JsonError) as caught:
        parse_json(text, JsonOptions(max_depth=1_000_000))
    assert caught.value.reason == "unexpected-end"
