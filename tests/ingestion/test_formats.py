"""Texts that are not JSON lines: documents around the rows, and CSV."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.ingestion.formats.csv_rows import CsvOptions, CsvReader
from parquet_variant.ingestion.formats.wrapped import WrappedSplitter

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('ab"\\{}[],:\n', max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('ab"x', max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.lists(VALUES, max_size=4), min_size=1, max_size=3), VALUES, st.integers(1, 9), st.booleans())
@settings(max_examples=150, deadline=None)
def test_rows_in_documents_are_found_however_the_text_is_cut(
    pages: list[list[object]], other: object, size: int, pretty: bool
) -> None:
    documents = [{"": other, "d": {"items ": other, "items": page, "x": other}} for page in pages]
    text = "\n".join(json.dumps(document, indent=2 if pretty else None) for document in documents).encode()
    splitter = WrappedSplitter(["d", "items"])
    lines = b"".join(splitter.feed(text[at : at + size]) for at in range(0, len(text), size)) + splitter.finish()
    assert [json.loads(line) for line in lines.splitlines()] == [element for page in pages for element in page]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"items": [1, 2}', "malformed"),
        ('{"items": [1, 2', "truncated"),
        ('{"items": 5}', "not-an-array"),
        ('{"items": {"a": 1}}', "not-an-array"),
        ("[1]", "not-an-array"),
        ('{"other": [1]}', "no-rows"),
        ('x {"items": [1]}', "trailing-text"),
        ('{"items": [1]}, 5', "trailing-text"),
        ('{"items": [1]}}', "malformed"),
    ],
)
def test_documents_that_are_not_as_said(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(pv.VariantError) as caught:
        pv.ingest(tmp_path / "a.json", tmp_path / "out", root="$.items[*]")
    assert caught.value.reason == reason
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("text", "root", "rows"),
    [
        ('{"items": [1], "items": [2, 3]}', "$.items[*]", [2, 3]),
        ('{"items": [1], "n": 1, "it\\u0065ms": [2]}{"items": [4]}', "$.items[*]", [2, 4]),
        ('{"a": {"items": [1]}, "a": {"items": [2]}}', "$.a.items[*]", [2]),
        ('{"a": {"items": [1], "items": [2, 3]}, "b": {"items": [4]}}', "$.a.items[*]", [2, 3]),
        ('{"items": [1], "items": null}\n{"items": [5]}', "$.items[*]", [5]),
        ('{"a": [{"items": [1], "items": [2]}]}', "$.a[*].items[*]", [2]),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_last_of_equal_keys_on_the_path_of_the_rows_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, root: str, rows: list[object], size: int
) -> None:
    monkeypatch.setattr("parquet_variant.ingestion.sources.chunks.SPLITTER_BLOCK_BYTES", size)
    (tmp_path / "a.json").write_text(text)
    assert pv.read_json(tmp_path / "a.json", root=root).to_pylist() == rows


def test_rows_that_a_later_key_would_replace_are_refused_once_they_were_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parquet_variant.ingestion.formats.wrapped.HELD_BYTES", 10)
    monkeypatch.setattr("parquet_variant.ingestion.sources.chunks.SPLITTER_BLOCK_BYTES", 16)
    (tmp_path / "a.json").write_text('{"items": [1111, 2222, 3333, 4444], "items": [2]}')
    with pytest.raises(pv.JsonError, match="'items' twice"):
        pv.read_json(tmp_path / "a.json", root="$.items[*]")


@pytest.mark.parametrize(
    ("text", "root"),
    [
        ("[1,2,]", None), ("[1,,2]", None), ("[,]", None), ("[1,2,]", "$[*]"), ("[,1]", "$[*]"),
        ('{"items": [1,2,]}', "$.items[*]"), ('{"items": [,]}', "$.items[*]"),
        ('{"items": [1,\n]}', "$.items[*]"), ('{"x": nope, "items": [1]}', "$.items[*]"),
        ('{"items": [1], "x": [1,]}', "$.items[*]"), ('{"items": [1], "x":}', "$.items[*]"),
        ('{"items": [1],}', "$.items[*]"), ('{"x": "\x01", "items": [1]}', "$.items[*]"),
        ('{"x" 1, "items": [1]}', "$.items[*]"), ('{"items": [1] 5}', "$.items[*]"),
        ('{"x": 01, "items": [1]}', "$.items[*]"), ('{"x": [1}, "items": [1]}', "$.items[*]"),
        ('{"x": {"items": [1,]}, "items": [1]}', "$.items[*]"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [3, 1000])
def test_documents_that_are_not_json_are_refused_inside_and_outside_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, root: str | None, size: int
) -> None:
    monkeypatch.setattr("parquet_variant.ingestion.sources.chunks.SPLITTER_BLOCK_BYTES", size)
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(pv.JsonError):
        pv.read_json(tmp_path / "a.json", root=root)


def test_elements_before_a_fault_are_kept_and_bad_elements_counted(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"items": [1, tru, 3], "n": 2} {"items": [4')
    result = pv.ingest(tmp_path / "a.json", tmp_path / "out", root="$.items[*]", on_error="quarantine")
    assert pv.open(tmp_path / "out").read().to_pylist() == [1, 3]
    assert result.bad_records == 2


@pytest.mark.parametrize(
    ("text", "options", "rows"),
    [
        ('[1, 2, {"a": 3', {}, [1, 2, None]),
        ("[1] [2]", {"input_format": "array"}, [1, None]),
        ('{"a": 1}', {"input_format": "array"}, [None]),
        ('{"items": [1, 2', {"root": "$.items[*]"}, [1, None]),
        ("[1, 2}", {"input_format": "array"}, [1, 2, None]),
    ],
)
def test_what_is_cut_off_is_a_null_row_like_any_bad_line(
    tmp_path: Path, text: str, options: dict[str, str], rows: list[object]
) -> None:
    """`read_json` has no count of bad lines: the fault would not show at all."""
    (tmp_path / "a.json").write_text(text)
    assert pv.read_json(tmp_path / "a.json", on_error="null", **options).to_pylist() == rows
    result = pv.ingest(tmp_path / "a.json", tmp_path / "out", on_error="null", **options)
    assert (result.rows, result.bad_records) == (len(rows), 0)
    assert pv.open(tmp_path / "out").read().to_pylist() == rows


@pytest.mark.parametrize("block", [1 << 20, 7])
@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("[1, 2, 3] x", {"input_format": "array"}),
        ("[1, 2, 3}", {"input_format": "array"}),
        ('{"items": [1, 2, 3], 5}}', {"root": "$.items[*]"}),
    ],
)
def test_what_stands_before_a_fault_is_kept(
    tmp_path: Path, text: str, options: dict[str, str], block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the fault is in the block of text that the rows are in, or in a later one of their chunk."""
    monkeypatch.setattr("parquet_variant.ingestion.sources.chunks.SPLITTER_BLOCK_BYTES", block)
    (tmp_path / "a.json").write_text(text + " " * 20)
    result = pv.ingest(tmp_path / "a.json", tmp_path / "out", on_error="quarantine", **options)
    assert (result.rows, result.bad_records) == (3, 1)
    assert pv.open(tmp_path / "out").read().to_pylist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("root", "expected"),
    [
        ("$[*]", [{"a": [1, 2], "b": {"c": 3}}, {"b": None}]),
        ("$[*].a[*]", [1, 2]),
        ("$[*].b", [{"c": 3}, None]),
        ("$[0].a", [[1, 2]]),
        ("$", [[{"a": [1, 2], "b": {"c": 3}}, {"b": None}]]),
    ],
)
def test_roots(tmp_path: Path, root: str, expected: list[object]) -> None:
    (tmp_path / "a.json").write_text('[{"a": [1, 2], "b": {"c": 3}}, {"b": null}]')
    layout = "documents" if root in ("$", "$[0].a") else "auto"
    assert pv.read_json(tmp_path / "a.json", root=root, input_format=layout).to_pylist() == expected


def test_csv_rows_are_objects(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id;name;n;ok\n007;"a;\n""b""";1.50;TRUE\n8;"";-2e3;\n')
    found = pv.read_json(tmp_path / "a.csv", input_format="csv", delimiter=";")
    assert pv.to_json(found).to_pylist() == [
        '{"id":"007","n":1.5,"name":"a;\\n\\"b\\"","ok":true}',
        '{"id":8,"n":-2000.0,"name":"","ok":null}',
    ]
    plain = pv.read_json(tmp_path / "a.csv", input_format="csv", delimiter=";", header=False)
    assert plain["_c0"].to_pylist() == ["id", "007", 8]


def test_rows_of_other_lengths_are_bad_lines(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('a,b\n1,2\n3\n4,"x\ny"\n7,8,9\n1,2\n')
    with pytest.raises(pv.JsonError, match=r"^row 3: the row has 1 fields"):
        pv.read_json(tmp_path / "a.csv", input_format="csv")
    result = pv.ingest(tmp_path / "a.csv", tmp_path / "out", input_format="csv", on_error="quarantine")
    (file,) = Path(result.bad_records_path or "").iterdir()
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(record["line"], record["text"]) for record in records] == [(3, "3"), (5, "7,8,9")]
    null = pv.read_json(tmp_path / "a.csv", input_format="csv", on_error="null")
    assert null.to_pylist() == [{"a": 1, "b": 2}, None, {"a": 4, "b": "x\ny"}, None, {"a": 1, "b": 2}]


_COMMAS = CsvOptions(delimiter=",", quote_char='"', header=True)
FIELDS = st.text('ab,"\n;1.-\\\té', max_size=5)


@given(st.lists(st.tuples(FIELDS, FIELDS), min_size=1, max_size=6), st.integers(1, 20))
@settings(max_examples=150, deadline=None)
def test_csv_is_the_same_however_it_is_cut(rows: list[tuple[str, str]], size: int) -> None:
    quoted = ['"' + field.replace('"', '""') + '"' for row in rows for field in row]
    lines = ["x,y", *(",".join(quoted[at : at + 2]) for at in range(0, len(quoted), 2))]
    text = "\n".join(lines).encode()
    blocks = iter([text[at : at + size] for at in range(0, len(text), size)])
    found = b"".join(rows.json_lines() for rows in CsvReader(_COMMAS, "a.csv").read(blocks))
    objects = [json.loads(line, parse_float=str, parse_int=str) for line in found.splitlines()]
    assert [tuple(item.values()) for item in objects] == rows


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_csv_of_any_line_end_has_all_rows(end: str, size: int) -> None:
    text = end.join(["a,b", '1,"x', 'y"', "", '5" pipe,2', '"q"",",z"z', "3,4"]).encode()
    blocks = iter([text[at : at + size] for at in range(0, len(text), size)])
    lines = b"".join(rows.json_lines() for rows in CsvReader(_COMMAS, "a.csv").read(blocks)).splitlines()
    assert [tuple(json.loads(line).values()) for line in lines] == [
        (1, f"x{end}y"),
        ('5" pipe', 2),
        ('q",', 'z"z'),
        (3, 4),
    ]


def test_a_header_alone_is_not_a_row() -> None:
    for text in (b"a,b", b'"a","b"', b"a,b\r", b"a,b\r\n\r\n"):
        assert list(CsvReader(CsvOptions(), "a.csv").read(iter([text]))) == []


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_ALL, csv.QUOTE_MINIMAL])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_of_any_delimiter_is_read_as_it_was_written(delimiter: str, quoting: int, end: str) -> None:
    rows = [["x y", "n\nl", 'q"q'], ["\ufeff", "b c", "-"], ["\t", "d;e,f|", "z"], ["last", "\r\n", " s "]]
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator=end).writerows(rows)
    reader = CsvReader(CsvOptions(), "a.csv")
    (read,) = reader.read(iter([text.getvalue().encode()]))
    assert [reader.names, *map(list, zip(*(column.to_pylist() for column in read.table.columns), strict=True))] == rows


def test_a_csv_row_that_cannot_be_takes_no_other_with_it(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'a,b\n1,\xff\n2\n\n3,x\n\xfe\n4,"y\n5,z\n')
    result = pv.ingest(tmp_path / "a.csv", tmp_path / "out", input_format="csv", on_error="quarantine")
    assert (result.rows, result.bad_records) == (1, 4)
    assert pv.open(tmp_path / "out").read().to_pylist() == [{"a": 3, "b": "x"}]
    (file,) = Path(result.bad_records_path or "").iterdir()
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(record["line"], record["reason"], record["text"]) for record in records] == [
        (2, "bad-utf8", "1,\ufffd"),
        (3, "field-count", "2"),
        (5, "bad-utf8", "\ufffd"),
        (6, "truncated", '4,"y\n5,z'),
    ]


# Files, and their rows as SQL and ingests return them; None where both refuse the file.
_CSV_FILES: list[tuple[str, bytes, list[dict[str, object]] | None]] = [
    ("a.csv", b"code,n\nNA,1\nNULL,2\nn/a,3\nnan,4\n#N/A,5\nNone,6\n,7\n\"\",8\n", [
        {"code": code, "n": n} for n, code in enumerate(["NA", "NULL", "n/a", "nan", "#N/A", "None", None, ""], 1)
    ]),
    ("a.csv", b"zip,n\n007,1\n010,2\n", [{"zip": "007", "n": 1}, {"zip": "010", "n": 2}]),
    ("a.csv", b"id;price\n1;2,5\n2;\n", [{"id": 1, "price": "2,5"}, {"id": 2, "price": None}]),
    ("a.csv", b"1|x\n2|y\n", [{"_c0": 1, "_c1": "x"}, {"_c0": 2, "_c1": "y"}]),
    ("a.csv", b",n,\n0,x,a\n1,y,b\n", [{"_c0": 0, "n": "x", "_c2": "a"}, {"_c0": 1, "n": "y", "_c2": "b"}]),
    ("a.csv", b"a,b\n'x,y',1\n'z',2\n", [{"a": "x,y", "b": 1}, {"a": "z", "b": 2}]),
    ("a.tsv", b"a\tb\n1,2\t3\n4,5\t6\n", [{"a": "1,2", "b": 3}, {"a": "4,5", "b": 6}]),
    ("a.TSV", b"a\n1\n", [{"a": 1}]),
    ("a.csv", b"\xef\xbb\xbfa,b\r\n1,\"x\r\ny\"\r\n", [{"a": 1, "b": "x\r\ny"}]),
    ("a.csv", b"n\n12345678901234567890123\n1\n", [{"n": 12345678901234567890123}, {"n": 1}]),
    ("a.csv", b"n\n%d1\n%d2\n" % (10**40, 10**40), [{"n": f"{10**40}1"}, {"n": f"{10**40}2"}]),
    ("a.csv", b"b\nTRUE\nfalse\n", [{"b": True}, {"b": False}]),
    ("a.csv", b'a,b\n1,"x\n2,y\n', None),
    ("a.csv", b'a,b\n1,"x\n2,"y"\n3,z\n', None),
    ("a.csv", b'a,b\n"1"2,"y"\n3,z\n', None),
    ("a.csv", "a,b\n1,café\n2,x\n".encode("latin-1"), None),
    ("a.csv", b"a,a\n1,2\n", None),
    ("a.csv", b"a,b\n1\n2,3\n2,3\n", None),
    ("a.csv", "a,b\n1,2\n".encode("utf-16"), None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "rows"), _CSV_FILES)
def test_sql_and_ingests_read_csv_alike(
    tmp_path: Path, name: str, text: bytes, rows: list[dict[str, object]] | None
) -> None:
    file = tmp_path / name
    file.write_bytes(text)
    if rows is None:
        with pytest.raises(pv.VariantError, match=r"row|header|UTF-16"):
            pv.sql("SELECT * FROM t", t=file)
        with pytest.raises(pv.VariantError, match=r"row|header|UTF-16"):
            pv.ingest(file, tmp_path / "out")
        return
    assert pv.sql("SELECT * FROM t", t=file).to_arrow().to_pylist() == rows
    pv.ingest(file, tmp_path / "out")
    assert pv.open(tmp_path / "out").read().to_pylist() == rows


def test_columns_of_long_integers_and_fractions_are_strings_in_sql(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n\n9007199254740993\n9007199254740992\n0.5\n")
    rows = pv.sql("SELECT * FROM t", t=tmp_path / "a.csv").to_pylist()
    assert rows == [{"n": "9007199254740993"}, {"n": "9007199254740992"}, {"n": "0.5"}]


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,x\n2,y\n", "a;b\n1,5;x\n2,5;y\n", "a\tb\n1\tx,y\n2\tz,w\n", "a|b|c\n1|2|3\n4|5|6\n",
        "1,x\n2,y\n3,z\n", "a,b\n'x,y',1\n'z,w',2\n", 'a,b\n"x;y",1\n"z;w",2\n', "a,b\nx,y\nz,w\n",
        "d,n\n2024-01-01,1\n2024-01-02,2\n",
    ],
)  # fmt: skip
def test_the_detected_options_are_those_of_duckdb(tmp_path: Path, text: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    (tmp_path / "a.csv").write_text(text)
    query = f"SELECT Delimiter, HasHeader, Quote FROM sniff_csv('{tmp_path / 'a.csv'}')"
    sniffed = duckdb.connect().execute(query).fetchone()
    found = CsvOptions().detected(text.encode(), "a.csv")
    assert (found.delimiter, found.header) == sniffed[:2]
    assert sniffed[2] in (found.quote_char, "", "(empty)")


def test_types_of_strings_accept_the_forms_of_warehouses() -> None:
    rows = ['{"t": "2026-03-01 00:00:00 UTC", "d": "20260301", "n": "1,234"}', '{"d": "20261301", "n": "x"}']
    types = {"$.t": "timestamp!", "$.d": "date!", "$.n": "INT!"}
    first, second = pv.parse_json(rows, types=types).to_pylist()
    assert first == {"t": datetime(2026, 3, 1, tzinfo=UTC), "d": date(2026, 3, 1), "n": 1234}
    assert second == {"d": "20261301", "n": "x"}
    assert pv.variant_get(pv.parse_json(rows), "$.t", "timestamp").to_pylist()[0] == first["t"]
    assert pv.parse_json(rows, types={"$.d": "date"}).to_pylist()[0]["d"] == "20260301"


def test_the_null_of_copy_is_null_on_request(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("id\tname\n1\t\\N\n2\tb\n")
    assert pv.sql(f"SELECT name FROM '{tmp_path}/a.tsv'").to_pylist() == [{"name": r"\N"}, {"name": "b"}]
    rows = pv.read_json(tmp_path / "a.tsv", null_values=[r"\N"])
    assert rows.to_pylist() == [{"id": 1, "name": None}, {"id": 2, "name": "b"}]
