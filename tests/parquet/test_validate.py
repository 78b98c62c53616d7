"""Every rule of the specification that a file can break, by name."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.encoding.metadata import encode_metadata

METADATA = encode_metadata(["email", "event_ts", "event_type"])
EMPTY = b"\x01\x00\x00"
BINARY = pa.binary()


def obj(**fields):
    """A value over METADATA."""
    ids = {"email": 0, "event_ts": 1, "event_type": 2}
    parts = [pv.Variant.from_python(field).value for field in fields.values()]
    offsets = [sum(map(len, parts[:n])) for n in range(len(parts) + 1)]
    return bytes([0x02, len(parts), *(ids[name] for name in fields), *offsets]) + b"".join(parts)


def pair(typed, **options):
    return pa.struct([pa.field("value", BINARY), pa.field("typed_value", typed, **options)])


EVENT = pa.struct([
    pa.field("event_type", pair(pa.string()), nullable=False),
    pa.field("event_ts", pair(pa.timestamp("us", "UTC")), nullable=False),
])  # fmt: skip


def write(path, rows, typed=None, metadata=METADATA, value_required=False, annotate=True):
    fields = [pa.field("metadata", BINARY, nullable=False), pa.field("value", BINARY, nullable=not value_required)]
    if typed is not None:
        fields.append(pa.field("typed_value", typed))
    kind = pa.struct(fields)
    data = pa.array([row and {"metadata": metadata, **row} for row in rows], kind)
    pq.write_table(pa.table({"v": data}), path)
    if annotate:
        pv.open(path).annotate(["v"])
    return pv.open(path).validate()


def event(kind=(None, None), time=(None, None)):
    names = ("value", "typed_value")
    return {"event_type": dict(zip(names, kind, strict=True)), "event_ts": dict(zip(names, time, strict=True))}


NOOP = (None, "noop")
VALID_LINES = {
    "fully shredded object": (None, event(NOOP, (None, 1729794114937000))),
    "partially shredded object": (obj(email="user@example.com"), event(NOOP, (None, 1729794146402000))),
    "object with all shredded fields missing": (obj(email="malformed"), event()),
    "not an object": (pv.Variant.from_python("malformed: not an object").value, None),
    "field event_type is missing": (None, event(time=(None, 1729794240241000))),
    "field event_type is null": (None, event((b"\x00", None), (None, 1729794954163000))),
    "field event_ts is not a timestamp": (None, event(NOOP, (pv.Variant.from_python("2024-10-24").value, None))),
    "object is present but empty": (None, event()),
    "value is null": (b"\x00", None),
}
INVALID_LINES = {
    "shredded field is present in value": ((obj(event_type="login"), event(NOOP)), "field-in-both"),
    "shredded field is present in value, typed_value is null": ((obj(event_type="login"), None), "object-not-typed"),
    "typed_value is present and value is not an object": ((b"\x05a", event()), "conflict"),
    "typed_value is null for object": ((b"\x02\x00\x00", None), "object-not-typed"),
    "value is missing where one is required": ((None, None), "missing"),
    "both columns of a field are set": ((None, event((b"\x05a", "a"))), "conflict"),
}


@pytest.mark.parametrize("line", VALID_LINES)
def test_valid_lines_of_the_table_of_objects(line, tmp_path):
    value, typed = VALID_LINES[line]
    report = write(tmp_path / "a.parquet", [{"value": value, "typed_value": typed}, None], EVENT)
    assert report.ok, str(report)


@pytest.mark.parametrize("line", INVALID_LINES)
def test_invalid_lines_of_the_table_of_objects(line, tmp_path):
    (value, typed), reason = INVALID_LINES[line]
    rows = [{"value": b"\x00", "typed_value": None}, None, {"value": value, "typed_value": typed}]
    report = write(tmp_path / "a.parquet", rows, EVENT)
    assert {violation.reason for violation in report.violations} >= {reason}
    assert {violation.row for violation in report.violations} == {2}
    assert {violation.row_group for violation in report.violations} == {0}
    assert report.violations[0].path.startswith("$")
    assert report.to_dict()["ok"] is False
    assert str(tmp_path) in str(report)


ELEMENT = pa.list_(pa.field("element", pair(pa.string()), nullable=False))


@pytest.mark.parametrize(
    ("value", "elements", "reason"),
    [
        (None, [(None, "comedy"), (b"\x00", None)], None),
        (None, [(None, None)], "missing"),
        (None, [(b"\x05a", "a")], "conflict"),
        (b"\x03\x00\x00", None, "array-not-typed"),
        (b"\x05a", [], "conflict"),
    ],
)
def test_rules_on_arrays(value, elements, reason, tmp_path):
    typed = (
        None
        if elements is None
        else [dict(zip(("value", "typed_value"), element, strict=True)) for element in elements]
    )
    report = write(tmp_path / "a.parquet", [{"value": value, "typed_value": typed}], ELEMENT)
    assert [violation.reason for violation in report.violations] == ([reason] if reason else [])


@pytest.mark.parametrize(
    ("data", "metadata", "reason"),
    [
        (b"\x0c", METADATA, "truncated"),
        (b"\x09\xff\xff", METADATA, "bad-utf8"),
        (bytes([0x02, 2, 1, 0, 0, 1, 2, 0, 0]), METADATA, "unsorted-keys"),
        (b"\x00", b"\x02\x00\x00", "bad-version"),
        (b"\x00\x00", METADATA, "trailing-bytes"),
    ],
)
def test_bytes_that_are_not_a_variant(data, metadata, reason, tmp_path):
    report = write(tmp_path / "a.parquet", [{"value": data}], metadata=metadata, value_required=True)
    assert reason in [violation.reason for violation in report.violations]


def test_names_must_be_in_the_dictionary(tmp_path):
    report = write(tmp_path / "a.parquet", [{"value": None, "typed_value": event(NOOP)}], EVENT, metadata=EMPTY)
    assert [violation.reason for violation in report.violations] == ["name-not-in-metadata"]


def test_text_must_be_utf8(tmp_path):
    path = tmp_path / "a.parquet"
    good, bad = b"shredded text", b"shredded \xfftxt"
    pv.write(path, pv.VariantArray.from_pylist([good.decode(), "b"]), schema="string", compression="none")
    path.write_bytes(path.read_bytes().replace(good, bad))
    reasons = [violation.reason for violation in pv.open(path).validate().violations]
    assert "bad-utf8" in reasons


def test_statistics_must_be_true(tmp_path):
    path = tmp_path / "a.parquet"
    pv.write(path, pv.VariantArray.from_pylist([{"a": 1000}, {"a": 5}]), schema="a bigint")
    data = path.read_bytes()
    footer = int.from_bytes(data[-8:-4], "little") + 8
    bound = (1000).to_bytes(8, "little")
    assert bound in data[-footer:]
    path.write_bytes(data[:-footer] + data[-footer:].replace(bound, (900).to_bytes(8, "little")))
    (violation,) = pv.open(path).validate().violations
    assert (violation.reason, violation.path) == ("wrong-statistics", "$['a']")


def schema_reasons(tmp_path, fields, rows=(), annotate=True):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"v": pa.array(list(rows), pa.struct(fields))}), path)
    if annotate:
        pv.open(path).annotate(["v"])
    return [violation.reason for violation in pv.open(path).validate().violations]


META = pa.field("metadata", BINARY, nullable=False)
VALUE = pa.field("value", BINARY)


@pytest.mark.parametrize(
    ("fields", "reasons"),
    [
        ([META, pa.field("value", BINARY, nullable=False)], []),
        ([META, VALUE], ["value-not-required"]),
        ([VALUE, pa.field("metadata", BINARY)], ["metadata-not-required", "value-not-required"]),
        ([META, VALUE, pa.field("typed_value", pa.uint32())], ["unsupported-type"]),
        ([META, VALUE, pa.field("typed_value", pa.time64("ns"))], ["unsupported-type"]),
        ([META, VALUE, pa.field("typed_value", pa.timestamp("ms"))], ["unsupported-type"]),
        ([META, VALUE, pa.field("typed_value", pa.int64(), nullable=False)], ["typed-value-not-optional"]),
        ([META, VALUE, pa.field("typed_value", pa.int64()), pa.field("x", pa.int32())], ["unknown-field"]),
        ([META, VALUE, pa.field("typed_value", pa.int64()), pa.field("_x", pa.int32())], []),
        ([META, VALUE, pa.field("typed_value", pa.struct([("a", pa.int64())]))], ["not-a-group"]),
        ([META, VALUE, pa.field("typed_value", pa.struct([("a", pair(pa.int64()))]))], ["field-not-required"]),
        ([META, VALUE, pa.field("typed_value", pa.list_(pair(pa.int64())))], ["element-not-required"]),
        ([META], ["no-value"]),
        ([VALUE, pa.field("typed_value", pa.int64())], ["no-metadata"]),
        ([pa.field("metadata", pa.string(), nullable=False), VALUE], ["not-binary", "value-not-required"]),
    ],
)
def test_rules_on_the_schema(fields, reasons, tmp_path):
    assert schema_reasons(tmp_path, fields) == reasons


def test_the_annotation_is_asked_for(tmp_path):
    fields = [META, pa.field("value", BINARY, nullable=False)]
    assert schema_reasons(tmp_path, fields, annotate=False) == ["no-annotation"]
    pv.write(tmp_path / "d.parquet", pv.VariantArray.from_pylist([1]), schema="int", layout="draft-object")
    assert [violation.reason for violation in pv.open(tmp_path / "d.parquet").validate().violations] == ["draft-layout"]


def test_violations_are_limited_and_counted(tmp_path):
    path = tmp_path / "a.parquet"
    write(path, [{"value": b"\x05a", "typed_value": event()}] * 50, EVENT)
    report = pv.open(path).validate(limit=10)
    assert (len(report.violations), report.omitted, report.ok) == (10, 40, False)


def test_engines_that_will_not_read_it_are_reported(tmp_path):
    pv.write(tmp_path / "a.parquet", pv.VariantArray.from_pylist([{"\uff5e": 1, "\U0001f600": 2}]), schema="uuid")
    notes = {(note.engine.split()[0], note.why.split(":")[0]) for note in pv.open(tmp_path).validate().engines}
    assert ("spark", "has no UUID columns") in notes
    assert any(engine == "spark" and "UTF-16" in why for engine, why in notes)
    assert any(engine.startswith("polars") for engine, _ in notes)
    pv.open(tmp_path / "a.parquet").rewrite(tmp_path / "b.parquet", layout="unshredded", annotation=False)
    assert not [note for note in pv.open(tmp_path / "b.parquet").validate().engines if "UTF-16" not in note.why]


def test_variants_in_lists_maps_and_structs_are_validated(tmp_path):
    good = pv.shred_variant(pv.VariantArray.from_pylist([{"a": 1}, "x", None, 5]), "a bigint").storage
    table = {
        "l": pa.ListArray.from_arrays([0, 2, 4], good),
        "m": pa.MapArray.from_arrays([0, 1, 4], pa.array(list("pqrs")), good),
        "s": pa.StructArray.from_arrays([good.slice(0, 2)], ["inner"]),
    }
    path = tmp_path / "a.parquet"
    pv.write(path, table, variants=["l.list.element", "m.key_value.value", "s.inner"])
    assert pv.open(path).validate().ok
    bad = pa.array(
        [{"metadata": METADATA, "value": b"\x05a", "typed_value": 1}],
        pa.struct([META, VALUE, pa.field("typed_value", pa.int64())]),
    )
    pq.write_table(pa.table({"l": pa.ListArray.from_arrays([0, 0, 1], bad)}), path)
    pv.open(path).annotate(["l.list.element"])
    (violation,) = pv.open(path).validate().violations
    assert (violation.column, violation.reason) == ("l", "conflict")


@pytest.mark.parametrize(
    ("typed", "value", "reasons"),
    [
        (pa.decimal32(9, 4), Decimal("1.5"), []),
        (pa.decimal64(18, 4), Decimal("1.5"), []),
        (pa.duration("us"), dt.timedelta(1), []),  # INT64 in Parquet; only the file's Arrow schema says more
        (pa.list_(pa.int32()), [1], ["not-a-list"]),
        (pa.binary(16), b"a" * 16, ["unsupported-type"]),
        (pa.binary(4), b"abcd", ["unsupported-type"]),
        (pa.uint32(), 7, ["unsupported-type"]),
        (pa.large_list(pa.field("element", pair(pa.string()), nullable=False)), [{"typed_value": "x"}], []),
    ],
    ids=str,
)
def test_columns_whose_arrow_type_is_unusual(typed, value, reasons, tmp_path):
    report = write(tmp_path / "a.parquet", [{"value": None, "typed_value": value}], typed)
    assert [violation.reason for violation in report.violations] == reasons


def test_large_lists_are_checked_like_lists(tmp_path):
    typed = pa.large_list(pa.field("element", pair(pa.string()), nullable=False))
    rows = [
        {"value": b"\x03\x00\x00", "typed_value": None},
        {"value": None, "typed_value": [{"value": None, "typed_value": None}]},
        {"value": None, "typed_value": [{"value": b"\x05a", "typed_value": "a"}]},
    ]
    report = write(tmp_path / "a.parquet", rows, typed)
    assert sorted((violation.row, violation.path, violation.reason) for violation in report.violations) == [
        (0, "$", "array-not-typed"),
        (1, "$[*]", "missing"),
        (2, "$[*]", "conflict"),
    ]


def test_every_violation_has_its_file_row_group_row_and_path(tmp_path):
    good = {"value": None, "typed_value": event(NOOP)}
    bad = {"value": obj(event_type="login"), "typed_value": event(NOOP)}
    cut = {"value": None, "typed_value": event((b"\x0c", None))}
    kind = pa.struct([pa.field("metadata", BINARY, nullable=False), *pair(EVENT)])
    for name, planted in (("a", {5: bad}), ("b", {2: cut, 7: bad})):
        rows = [{"metadata": METADATA, **planted.get(row, good)} for row in range(9)]
        pq.write_table(pa.table({"v": pa.array(rows, kind)}), tmp_path / f"{name}.parquet", row_group_size=3)
        pv.open(tmp_path / f"{name}.parquet").annotate(["v"])
    report = pv.open(tmp_path).validate()
    found = [
        (violation.file[-9:], violation.row_group, violation.row, violation.path, violation.reason)
        for violation in report.violations
    ]
    assert found == [
        ("a.parquet", 1, 5, "$", "field-in-both"),
        ("b.parquet", 0, 2, "$['event_type']", "truncated"),
        ("b.parquet", 2, 7, "$", "field-in-both"),
    ]


def test_threads_find_the_same_and_in_order(tmp_path):
    good = pv.parse_json([f'{{"a": {number}}}' for number in range(3000)])
    path = tmp_path / "a.parquet"
    bad = [b"\x02\x01"] * 3  # an object whose bytes end
    storage = good.storage
    values = storage.field("value").to_pylist()
    values[10], values[1500], values[2990] = bad
    broken = pa.StructArray.from_arrays(
        [storage.field("metadata").dictionary_decode(), pa.array(values, pa.binary())], names=["metadata", "value"]
    )
    pq.write_table(pa.table({"v": broken}), path, row_group_size=300)
    one, three = (pv.open(path).validate(column="v", threads=threads) for threads in (1, 3))
    assert one.to_dict() == three.to_dict()
    assert [(violation.row, violation.row_group) for violation in three.violations if violation.row] == [
        (10, 0),
        (1500, 5),
        (2990, 9),
    ]
    less = pv.open(path).validate(column="v", limit=len(three.violations) - 1, threads=3)
    assert (less.violations, less.omitted) == (three.violations[:-1], 1)
    pv.write(path, good, row_group_bytes=10_000, mode="overwrite")
    assert pq.read_metadata(path).num_row_groups > 3
    assert pv.open(path).read(threads=3).to_pylist() == pv.open(path).read(threads=1).to_pylist() == good.to_pylist()
    with pytest.raises(pv.VariantError, match="threads is 0"):
        pv.open(path).read(threads=0)


def test_row_groups_are_checked_in_threads_of_which_each_has_a_reader_of_its_own(tmp_path: Path) -> None:
    """More than one thread in one of pyarrow's readers ended the process."""
    texts = [f'{{"a": "{hashlib.shake_128(b"%d" % row).hexdigest(300)}"}}' for row in range(8000)]
    file = tmp_path / "many.parquet"
    pv.write(file, pv.parse_json(texts), schema="a string", row_group_bytes=1 << 19)
    assert pq.ParquetFile(file).metadata.num_row_groups > 5
    for _ in range(10):
        assert pv.open(file).validate(threads=4).ok


def test_texts_outside_of_their_bounds_that_are_not_utf8_are_reported(tmp_path):
    path = tmp_path / "a.parquet"
    array = pv.shred_variant(pv.parse_json([f'"{letter * 8}"' for letter in "az"]), "string")
    pv.write(path, array, compression="none")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"z" * 8, b"z" * 7 + b"\xff", 1))
    report = pv.open(path).validate()
    assert {violation.reason for violation in report.violations} >= {"wrong-statistics", "bad-utf8"}, str(report)


@pytest.mark.parametrize(
    ("schema", "is_renamed"),
    [
        ("n bigint, N bigint", True),
        ("a array<struct<n: bigint, N: bigint>>", True),
        ("o struct<n: bigint, o: struct<x: int, X: int>>", True),
        ("n bigint, m bigint", False),
        ("a array<struct<n: bigint>>", False),
    ],
)
def test_fields_that_duckdb_renames_and_clickhouse_fills_are_noted(tmp_path, schema, is_renamed):
    rows = ['{"n": 1, "N": 2, "m": 3, "a": [{"n": 1, "N": 2}], "o": {"n": 1, "o": {"x": 1, "X": 2}}}']
    path = tmp_path / "a.parquet"
    pv.write(path, pv.parse_json(rows), schema=schema)
    notes = [note.why for note in pv.open(path).validate().engines]
    assert any("renames a field" in why for why in notes) == is_renamed
    assert any("missing object or array" in why for why in notes) == ("<" in schema)
    [(text,)] = duckdb.sql(f"SELECT v::JSON FROM '{path}'").fetchall()
    assert (json.loads(text) != pv.open(path).read().to_pylist()[0]) == is_renamed


def test_unshredded_files_of_delta_tables_need_no_annotation(tmp_path):
    rows = {"v": pv.parse_json(["{}", "null", "[]"])}
    pv.write(tmp_path / "t", rows, format="delta")
    opened = pv.open(tmp_path / "t")
    assert opened.validate().violations == []
    assert [violation.reason for violation in pv.open(opened.data_files()).validate().violations] == ["no-annotation"]
    pv.write(tmp_path / "i", rows, format="iceberg")
    assert pv.open(tmp_path / "i").validate().violations == []
