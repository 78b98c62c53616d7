"""Strings that become dates, timestamps, UUIDs or binary: only if their text comes back."""

from __future__ import annotations

import base64
import json
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.inference.typed_strings import suggest_epochs, suggest_types

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
    assert [(string.path, string.type, string.typed, string.untyped) for string in result.typed_strings] == [
        ("$.at", "timestamp", 59, 1),
        ("any path", "date", 60, 0),
    ]
    assert "59 of 60 strings" in str(result.typed_strings[0])
    assert result.schema is not None
    assert result.schema.to_ddl() == "at timestamp, day date"
    assert pv.to_json(pv.open(tmp_path / "out").read()).to_pylist() == [
        json.dumps(json.loads(line), separators=(",", ":")) for line in lines
    ]
    decided = pv.infer(tmp_path / "a.ndjson", types={"$.at": "timestamp"})
    assert "timestamp" in decided.decision("$.at").reason or decided.decision("$.at").shredded


def test_csv_dates_are_typed_unless_disabled(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("d,t\n2026-01-31,2026-01-31 10:00:00\n")
    found = pv.read_json(tmp_path / "a.csv", input_format="csv")[0]
    assert (found["d"].type, found["t"].type) == ("date", "timestamp_ntz")
    plain = pv.read_json(tmp_path / "a.csv", input_format="csv", detect_timestamps=False)[0]
    assert (plain["d"].type, plain["t"].type) == ("string", "string")


# ---- types in any form: timestamp!, timestamp_ntz!, date!, uuid!, number!

EXACT = {
    "date!": lambda text: date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else None,
    "uuid!": lambda text: (
        UUID(text) if re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text) else None
    ),
    "number!": lambda text: (
        Decimal(text) if re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?", text) and _digits(text) <= 38 else None
    ),
}
TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d)(:\d\d(?:\.\d{1,9})?)?([Zz]|[+-]\d\d(?::?\d\d)?)?", re.ASCII)


def _digits(text: str) -> int:
    whole, _, fraction = text.lstrip("-").partition(".")
    return max(len((whole + fraction).lstrip("0")), len(fraction))


def _nanoseconds(text: str, *, zoned: bool) -> int | None:
    """The instant or local time that a string says, in nanoseconds since 1970, by Python's own datetime."""
    match = TIMESTAMP.fullmatch(text)
    if match is None or (match[4] is not None) != zoned:
        return None
    seconds, _, fraction = (match[3] or ":00").partition(".")
    offset = match[4] or "+00"
    minutes = 0
    if offset not in "Zz":
        minutes = (int(offset[1:3]) * 60 + int(offset[3:].lstrip(":") or 0)) * (-1 if offset[0] == "-" else 1)
        if abs(minutes) > 18 * 60 or int(offset[3:].lstrip(":") or 0) > 59:
            return None
    try:
        moment = datetime.fromisoformat(f"{match[1]} {match[2]}{seconds}") - timedelta(minutes=minutes)
    except (ValueError, OverflowError):
        return None
    days = (moment.date() - date(1970, 1, 1)).days
    whole = ((days * 24 + moment.hour) * 60 + moment.minute) * 60 + moment.second
    nanoseconds = whole * 10**9 + int(fraction.ljust(9, "0") or 0)
    return nanoseconds if nanoseconds % 1000 == 0 or abs(nanoseconds) < 2**63 - 10**6 else None


def _expected(text: str, kind: str) -> Any:
    if kind.startswith("timestamp"):
        return _nanoseconds(text, zoned=kind == "timestamp!")
    try:
        return EXACT[kind](text)
    except ValueError:
        return None


def _found(value: pv.Variant) -> Any:
    if value.type == "string":
        return None
    if value.type.startswith("timestamp"):
        ticks = int.from_bytes(value.value[1:9], "little", signed=True)
        return ticks if "nanos" in value.type else ticks * 1000
    found = value.to_python()
    return Decimal(found) if isinstance(found, int) else found


OFFSETS = st.sampled_from(["", "Z", "z", "+00:00", "+02:00", "-0930", "+05", "+18:00", "-18:01", "+1:00", "+00:60"])
MOMENTS = st.builds(
    lambda moment, separator, fraction, offset: (
        f"{moment:%Y-%m-%d}".rjust(10, "0") + separator + f"{moment:%H:%M:%S}" + fraction + offset
    ),
    st.datetimes(),
    st.sampled_from(["T", " ", "t", "_", ""]),
    st.sampled_from(["", "."]) | st.text("0123456789", min_size=1, max_size=10).map(lambda digits: f".{digits}"),
    OFFSETS,
)
NUMBERS = (
    st.decimals(allow_nan=False, allow_infinity=False).map(str)
    | st.integers().map(str)
    | st.text("0123456789.-+eE", max_size=42)
)


@given(
    st.lists(TEXTS | MOMENTS | NUMBERS, min_size=1, max_size=6),
    st.sampled_from(["date!", "timestamp!", "timestamp_ntz!", "uuid!", "number!"]),
)
@settings(max_examples=400, deadline=None)
@example(
    ["2026-01-02T00:00:00Z", "2026-01-02T00:00Z", "0001-01-01T00:00:00+18:00", "9999-12-31T23:59:59-01"], "timestamp!"
)
@example(["2026-01-02 03:04:05.123456789", "1500-01-01T00:00:00.000000001", "2026-02-30T00:00:00"], "timestamp_ntz!")
@example(["12345678-ABCD-abcd-1234-123456789ABC", "12345678-ABCD-abcd-1234-123456789ABG"], "uuid!")
@example(["0", "-0", "01", "1.", ".5", "1e5", "9" * 38, "9" * 39, "-0." + "0" * 37 + "1", "1." + "0" * 38], "number!")
def test_every_string_in_the_form_of_a_type_is_typed_exactly(texts: list[str], kind: str) -> None:
    array = pv.parse_json([json.dumps({"a": text}) for text in texts], types={"$.a": kind})
    for text, value in zip(texts, array, strict=True):
        assert _found(value["a"]) == _expected(text, kind)
        if _expected(text, kind) is None:
            assert value["a"].to_python() == text


@given(st.lists(TEXTS | MOMENTS | NUMBERS, min_size=1, max_size=6), st.randoms())
def test_a_path_is_suggested_if_all_its_strings_have_a_form(texts: list[str], random: Any) -> None:
    rows = [json.dumps({"a": text, "b": [text], "c": None}) for text in texts]
    fits = [
        kind
        for kind in ("date!", "timestamp!", "timestamp_ntz!", "uuid!", "number!")
        if all(_expected(text, kind) is not None for text in texts)
    ]
    expected = {(path, "date" if kind == "date!" else kind, len(texts)) for kind in fits for path in ("$.a", "$.b[*]")}
    parts = [pv.Profile.of_array(pv.parse_json([row])) for row in random.sample(rows, len(rows))]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merge(part)
    for profile in (pv.Profile.of_array(pv.parse_json(rows)), merged, pv.Profile.from_json(merged.to_json())):
        assert {(found.path, found.type, found.strings) for found in suggest_types(profile)} == expected
    automatic = pv.parse_json(rows, types="auto!")
    assert all((value["a"].type == "string") == (not fits) for value in automatic)


def test_a_schema_hints_and_auto_type_strings_and_filters_skip_row_groups(tmp_path: Path) -> None:
    rows = [json.dumps({"when": f"20{n // 100:02}-01-02T00:00:{n % 60:02}Z", "n": f"{n}"}) for n in range(2000)]
    (tmp_path / "a.ndjson").write_text("\n".join(rows))
    cases: list[dict[str, Any]] = [
        {"types": {"$.when": "timestamp!", "$.n": "number!"}},
        {"types": "auto!"},
        {"types": {"auto!": ""}},
        {"schema": "when timestamp!, n bigint!"},
        {"policy": pv.HintsPolicy({"$.when": "timestamp!", "$.n": "bigint!"})},
    ]
    for number, options in enumerate(cases):
        result = pv.ingest(tmp_path / "a.ndjson", tmp_path / f"{number}", row_group_bytes=1 << 14, **options)
        assert result.schema is not None
        assert result.schema.to_ddl() == "n bigint, when timestamp"
        assert {(string.path, string.typed, string.untyped) for string in result.typed_strings} == {
            ("$.n", 2000, 0), ("$.when", 2000, 0)
        }  # fmt: skip
        scan = pv.open(tmp_path / f"{number}").scan({"n": "$.n:bigint"}, "$.when:timestamp >= '2019-01-01'")
        assert sorted(scan.to_arrow()["n"].to_pylist()) == list(range(1900, 2000))
        report = scan.explain()
        assert report.row_groups_read < report.row_groups_total
    suggested = pv.infer(tmp_path / "a.ndjson").suggested_types
    assert [str(item) for item in suggested] == [
        "all 2,000 strings at $.n are numbers: type them with --type '$.n:number!'",
        "all 2,000 strings at $.when are timestamps: type them with --type '$.when:timestamp!'",
    ]
    wide = json.dumps({f"at{n}": ["2026-01-02T00:00:00Z"] * (10 - n) for n in range(8)})
    (tmp_path / "wide.ndjson").write_text(wide)
    for types, notes in (
        ({}, ["all 10 strings at $.at0[*]", "all 9 strings", "all 8 strings", "5 more paths have strings of one type"]),
        ("auto!", ["all 10 strings at $.at0[*] were", "all 9", "all 8", "all strings at 5 more paths were typed"]),
    ):
        result = pv.ingest(tmp_path / "wide.ndjson", tmp_path / "wide", types=types, mode="overwrite")
        assert [line[: len(note)] for line, note in zip(result.string_notes(), notes, strict=True)] == notes
    with pytest.raises(pv.SchemaError) as refused:
        pv.ShreddingSchema.from_ddl("when timestamp!")
    assert refused.value.reason == "bad-ddl"
    with pytest.raises(pv.SchemaError):
        pv.parse_json(rows, schema="when string!")


@pytest.mark.parametrize(
    ("pattern", "typed"),
    [
        ('$["a.b"]', ["a.b"]),
        ("$['a.b']", ["a.b"]),
        ("$['a\\u002eb']", ["a.b"]),
        ('$["tab\\tt"]', ["tab\tt"]),
        ("$['tab\\u0009t']", ["tab\tt"]),
        ('$[ "k:c" ]', ["k:c"]),
        ("$['']", [""]),
        ('$["it\'s"]', ["it's"]),
        ("$['it\\'s']", ["it's"]),
        ("$['*']", ["*"]),
        ("$.*b", ["a.b"]),
        ("$.k?c", ["k:c"]),
        ("$.?", ["*"]),
    ],
)
def test_keys_of_types_are_written_as_in_any_path(pattern: str, typed: list[str]) -> None:
    row = dict.fromkeys(["a.b", "tab\tt", "k:c", "", "it's", "*"], "2026-01-31")
    (value,) = pv.parse_json([json.dumps(row)], types={pattern: "date"})
    assert value is not None
    assert [key for key, item in value.items() if item.type.value == "date"] == typed


@pytest.mark.parametrize("pattern", ["a", "$a", "$[0]", "$['a", "$['a'", "$.", "$['\\q']", '$["a]', "$[a]"])
def test_what_is_not_a_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(pv.PathError) as caught:
        pv.parse_json(["1"], types={pattern: "date"})
    assert caught.value.offset is not None


# ---- numbers since 1970, integers with separators, and booleans


_EPOCH_UNITS = {"timestamp_s!": 1_000_000, "timestamp_ms!": 1_000, "timestamp_us!": 1}
_numbers = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(Decimal),
    st.integers(-10_000_000_000, 10_000_000_000).map(Decimal),
    st.decimals(-(10**10), 10**10, places=3),
    st.decimals(-(10**9), 10**9, places=7),
)


@given(st.lists(st.tuples(_numbers, st.booleans()), min_size=1, max_size=8), st.sampled_from(sorted(_EPOCH_UNITS)))
@example([(Decimal(-(2**63)), True), (Decimal("9223372036.855"), False)], "timestamp_s!")
def test_numbers_since_1970_become_instants_exactly_or_stay(rows: list[tuple[Decimal, bool]], kind: str) -> None:
    texts = [f'{{"t": "{number:f}"}}' if is_text else f'{{"t": {number:f}}}' for number, is_text in rows]
    plain, typed = pv.parse_json(texts).to_pylist(), pv.parse_json(texts, types={"$.t": kind}).to_pylist()
    epoch, first, last = (datetime(*day, tzinfo=UTC) for day in ((1970, 1, 1), (1, 1, 1), (9999, 12, 31)))
    for before, after, (number, _) in zip(plain, typed, rows, strict=True):
        micros = Decimal(number) * _EPOCH_UNITS[kind]
        span = timedelta(microseconds=1)
        if micros == int(micros) and (first - epoch) // span <= micros < (last - epoch) // span + 86_400_000_000:
            assert after["t"] == epoch + timedelta(microseconds=int(micros))
        else:
            assert after == before


@pytest.mark.parametrize(
    ("kind", "texts", "values"),
    [
        ("bigint!", ["12", "-1,234", f"{2**63 - 1:,}", f"{-(2**63):,}"], [12, -1234, 2**63 - 1, -(2**63)]),
        *(("bigint!", [text], [text]) for text in ("12,34", "01", "1.5", "", "0,123", "1,234,", ",123", "1,2345")),
        *(("bigint!", [text], [text]) for text in ("1,2a4", "-,123", f"{2**63:,}", f"{10**27:,}", str(2**63))),
        ("bigint!", [f"{-(2**63) - 1:,}", "1,234,567"], [f"{-(2**63) - 1:,}", 1234567]),
        ("boolean!", ["true", "false", "TRUE", "fals", "truer", ""], [True, False, "TRUE", "fals", "truer", ""]),
    ],
)
def test_spelled_values_are_typed_and_others_stay(kind: str, texts: list[str], values: list[Any]) -> None:
    rows = [json.dumps({"n": text}) for text in texts]
    assert [row["n"] for row in pv.parse_json(rows, types={"$.n": kind}).to_pylist()] == values


def test_booleans_and_grouped_integers_are_suggested_with_counts() -> None:
    rows = [{"ok": "true", "n": "1,234", "m": "950", "p": "1,234", "z": "1"}]
    rows += [{"ok": "false", "n": "-9,876,543", "m": "1,000", "p": "1.5", "z": "2"}]
    texts = list(map(json.dumps, rows))
    profile = pv.Profile.of_array(pv.parse_json(texts[:1])).merge(pv.Profile.of_array(pv.parse_json(texts[1:])))
    assert list(map(str, suggest_types(profile))) == [
        "all 2 strings at $.m are integers: type them with --type '$.m:bigint!'",
        "all 2 strings at $.n are integers: type them with --type '$.n:bigint!'",
        "all 2 strings at $.ok are booleans: type them with --type '$.ok:boolean!'",
        "all 2 strings at $.z are numbers: type them with --type '$.z:number!'",
    ]
    assert pv.parse_json(texts, types="auto!").to_pylist() == [
        {"ok": True, "n": 1234, "m": 950, "p": "1,234", "z": 1},
        {"ok": False, "n": -9876543, "m": 1000, "p": "1.5", "z": 2},
    ]


def test_an_ingest_counts_epochs_and_shreds_them(tmp_path: Path) -> None:
    source = tmp_path / "a.ndjson"
    source.write_text("".join(json.dumps({"t": 1_700_000_000_000 + row}) + "\n" for row in range(200)))
    result = pv.ingest(source, tmp_path / "t", types={"$.t": "timestamp_ms!"})
    assert result.schema is not None
    assert result.schema.to_ddl() == "t timestamp"
    assert result.string_notes() == ["all 200 values at $.t were typed as timestamp_ms!"]


@pytest.mark.parametrize(
    ("name", "numbers", "kind"),
    [
        ("created_at", [1767225600, 1767225601], "timestamp_s!"),
        ("ts", [1767225600123, None], "timestamp_ms!"),
        ("eventTime", [1767225600123456], "timestamp_us!"),
        ("updated_ms", [1767225600123], "timestamp_ms!"),
        ("user_id", [1767225600, 1767225601], None),
        ("format", [1767225600], None),
        ("ts", [1767225600, 5], None),
        ("ts", [1767225600, 1767225600123], None),
        ("ts", [1767225600, 1767225600.5], None),
        ("ts", [1767225600, "x"], None),
    ],
)
def test_numbers_that_count_the_time_have_a_hint(name: str, numbers: list[Any], kind: str | None) -> None:
    rows = [json.dumps({"a": {name: number}}) for number in numbers]
    found = suggest_epochs(pv.Profile.of_array(pv.parse_json(rows)))
    count = sum(number is not None for number in numbers)
    assert [(item.path, item.type, item.strings) for item in found] == [(f"$.a.{name}", kind, count)] * bool(kind)
    if kind is not None:
        assert pv.parse_json(rows, types={f"$.a.{name}": kind})[0]["a"][name].type == "timestamp"
