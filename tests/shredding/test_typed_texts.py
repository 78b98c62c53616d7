"""Strings that become dates, timestamps, UUIDs or binary: only if their text comes back."""

from __future__ import annotations

import base64
import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import parquet_variant as pv

KINDS = ("date", "timestamp", "timestamp_ntz", "uuid", "binary")
DIGITS = st.text("0123456789-: .+TZabf=", max_size=32)
TEXTS = (
    DIGITS
    | st.dates().map(str)
    | st.datetimes().map(str)
    | st.datetimes(timezones=st.just(UTC)).map(str)
    | st.datetimes().map(lambda each: each.isoformat() + "Z")
    | st.uuids().map(str)
    | st.uuids().map(lambda each: str(each).upper())
    | st.binary(max_size=9).map(lambda each: base64.b64encode(each).decode())
)


@given(st.lists(TEXTS, min_size=1, max_size=6), st.sampled_from(KINDS))
@settings(max_examples=300, deadline=None)
@example(["2026-02-29", "2024-02-29", "0000-01-01", "2026-13-01", "2026-00-10", "9999-12-31"], "date")
@example(
    ["2026-01-01 00:00:00.100000", "2026-01-01 00:00:00.1", "2026-01-01 24:00:00", "2026-01-01 00:00:60"],
    "timestamp_ntz",
)
@example(["2026-01-01T00:00:00Z", "2026-01-01 00:00:00+02:00", "2026-01-01 00:00:00+00:00"], "timestamp")
@example(["AA==", "AB==", "A===", "", "AAA"], "binary")
def test_the_text_comes_back_or_stays(texts: list[str], kind: str) -> None:
    rows = [json.dumps({"a": text}) for text in texts]
    array = pv.parse_json(rows, types={"$.a": kind})
    plain = pv.parse_json(rows)
    assert pv.to_json(array).to_pylist() == pv.to_json(plain).to_pylist()
    for text, value in zip(texts, array, strict=True):
        expected = _value(text, kind)
        assert (value["a"].to_python() if expected is not None else None) == expected


def _value(text: str, kind: str) -> Any:
    """What the text means, by another way: the value whose JSON is the text, if there is one."""
    try:
        if kind == "date":
            value: Any = date.fromisoformat(text)
        elif kind == "uuid":
            value = UUID(text)
        elif kind == "binary":
            value = base64.b64decode(text, validate=True)
        else:
            value = datetime.fromisoformat(text)
            if (value.tzinfo is None) != (kind == "timestamp_ntz"):
                return None
    except ValueError:
        return None
    return value if pv.Variant.from_python(value).to_json() == json.dumps(text) else None


def test_paths_and_patterns() -> None:
    uuid = "12345678-1234-1234-1234-123456789abc"
    row = {
        "user_id": uuid,
        "a": {"b_id": uuid, "id": uuid, "x.y_id": uuid},
        "items": [{"at": "2026-01-31"}],
        "ids": [uuid],
    }
    array = pv.parse_json([json.dumps(row)], types={"$..*_id": "uuid", "$.items[*].at": "date", "$['ids'][*]": "uuid"})
    assert str(pv.schema_of_variant_agg(array)).count("UUID") == 4
    assert "DATE" in str(pv.schema_of_variant_agg(array))
    assert array[0]["a"]["id"].type == "string"
    first = pv.parse_json('{"at": "2026-01-31"}', types={"$.at": "timestamp", "$.*": "date"})
    assert first["at"].type == "string"  # the first that fits a path counts


@pytest.mark.parametrize(
    ("types", "reason"),
    [
        ({"$.a": "decimal(3,2)"}, "bad-option"),
        ({"$.a": "time"}, "bad-option"),
        ({"a": "date"}, "bad-path"),
        ({"$.a[": "date"}, "bad-path"),
    ],
)
def test_what_cannot_be(types: dict[str, str], reason: str) -> None:
    with pytest.raises(pv.VariantError) as caught:
        pv.parse_json(["1"], types=types)
    assert caught.value.reason == reason


def test_an_ingest_counts_them(tmp_path: Path) -> None:
    lines = [
        json.dumps({"at": f"2026-01-31 00:00:{n:02}+00:00" if n else "yesterday", "day": "2026-01-31"})
        for n in range(60)
    ]
    (tmp_path / "a.ndjson").write_text("\n".join(lines))
    result = pv.ingest(tmp_path / "a.ndjson", tmp_path / "out", types={"$.at": "timestamp"}, detect_timestamps=True)
    assert [(each.path, each.type, each.typed, each.left) for each in result.typed_texts] == [
        ("$.at", "timestamp", 59, 1),
        ("any path", "date", 60, 0),
    ]
    assert "1 stayed text" in str(result.typed_texts[0])
    assert result.schema is not None
    assert result.schema.to_ddl() == "at timestamp, day date"
    assert pv.to_json(pv.parquet.read(tmp_path / "out")).to_pylist() == [
        json.dumps(json.loads(line), separators=(",", ":")) for line in lines
    ]
    decided = pv.infer(tmp_path / "a.ndjson", types={"$.at": "timestamp"})
    assert "timestamp" in decided.decision("$.at").reason or decided.decision("$.at").shredded


def test_csv_dates_are_typed_unless_told_otherwise(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("d,t\n2026-01-31,2026-01-31 10:00:00\n")
    found = pv.read_json(tmp_path / "a.csv", input_format="csv")[0]
    assert (found["d"].type, found["t"].type) == ("date", "timestamp_ntz")
    plain = pv.read_json(tmp_path / "a.csv", input_format="csv", detect_timestamps=False)[0]
    assert (plain["d"].type, plain["t"].type) == ("string", "string")
