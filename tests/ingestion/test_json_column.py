"""JSON in a column of tables of any kind: the column becomes Variants, the others stay."""

from __future__ import annotations

import base64
import csv
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv

TEXTS = ['{"a": 1}', None, '{"a":', '{"a": "x", "b": [1]}', "7"]
TABLE = pa.table({"id": [1, 2, 3, 4, 5], "payload": TEXTS, "ts": pa.array(range(5), pa.timestamp("us"))})
EXPECTED = [{"a": 1}, None, None, {"a": "x", "b": [1]}, 7]


def _write(path: Path, kind: str, table: pa.Table = TABLE) -> Path:
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=2)
    elif kind == "vortex":
        pytest.importorskip("vortex", reason="vortex-data is not installed").io.write(table, str(path))
    elif kind == "delta":
        pv.write(path, table.slice(0, 2), format="delta")
        pv.write(path, table.slice(2), format="delta", mode="append")
    elif kind == "csv":
        with path.open("w", newline="") as file:
            rows = (row.values() for row in table.to_pylist())
            csv.writer(file).writerows([table.column_names, *rows])
    else:
        new = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
        with pa.OSFile(str(path), "wb") as file, new(file, table.schema) as writer:
            writer.write_table(table)
    return path


def _rows(dest: Path, column: str = "payload") -> list[object]:
    table = pv.open(dest).to_arrow()
    values = pv.VariantArray.from_arrow(table.column(column)).to_pylist()
    return sorted(zip(table.column("id").to_pylist(), values, strict=True))


@pytest.mark.parametrize("kind", ["parquet", "arrow", "stream", "csv", "delta"])
def test_a_column_of_every_kind_of_table(tmp_path: Path, kind: str) -> None:
    source = _write(tmp_path / f"a.{kind}", kind)
    result = pv.ingest(source, tmp_path / "out", json_column="payload", on_error="null", split_bytes=400)
    assert (result.rows, result.bad_records) == (5, 0)
    table = pv.open(tmp_path / "out").to_arrow()
    assert table.column_names == ["id", "payload", "ts"]
    ids = ["1", "2", "3", "4", "5"] if kind == "csv" else [1, 2, 3, 4, 5]  # CSV says no types
    assert _rows(tmp_path / "out") == list(zip(ids, EXPECTED, strict=True))
    assert kind == "csv" or table.schema.field("ts").type == pa.timestamp("us")


def test_bad_lines_next_to_texts_that_a_writer_had_as_views(tmp_path: Path) -> None:
    pq.write_table(TABLE.append_column("text", pa.array(list("abcde"), pa.string_view())), tmp_path / "a.parquet")
    result = pv.ingest(tmp_path / "a.parquet", tmp_path / "out", json_column="payload", on_error="quarantine")
    assert (result.rows, result.bad_records) == (4, 1)
    assert pv.open(tmp_path / "out").to_arrow()["text"].to_pylist() == ["a", "b", "d", "e"]


@pytest.mark.parametrize("kind", ["parquet", "arrow", "vortex"])
def test_a_field_of_a_struct_becomes_a_column_next_to_it(tmp_path: Path, kind: str) -> None:
    inner = pa.StructArray.from_arrays([pa.array(list("abcde")), TABLE["payload"].combine_chunks()], names=["k", "doc"])
    hidden = pa.array([False, False, False, False, True])
    outer = pa.StructArray.from_arrays([inner, TABLE["id"].combine_chunks()], names=["s", "n"], mask=hidden)
    table = TABLE.drop_columns(["payload"]).append_column("o", outer).append_column("last", TABLE["id"])
    source = _write(tmp_path / f"a.{kind}", kind, table)
    pv.ingest(source, tmp_path / "out", json_column="o.s.doc", on_error="null")
    read = pv.open(tmp_path / "out").to_arrow()
    assert read.column_names == ["id", "ts", "o", "o.s.doc", "last"]
    assert _rows(tmp_path / "out", "o.s.doc") == list(zip(range(1, 6), [*EXPECTED[:4], None], strict=True))
    expected = [{"s": {"k": key}, "n": n} for n, key in enumerate("abcd", 1)]
    assert read["o"].to_pylist() == [*expected, None]
    only = _write(tmp_path / "only.parquet", "parquet", pa.table({"id": [1], "o": [{"s": {"doc": "[2]"}}]}))
    pv.ingest(only, tmp_path / "only", json_column="o.s.doc")
    assert pv.open(tmp_path / "only").to_arrow().column_names == ["id", "o.s.doc"]
    for column in ("o.s.nope", "o.n", "o.n.doc"):
        with pytest.raises(pv.VariantError) as caught:
            pv.ingest(source, tmp_path / "other", json_column=column)
        assert caught.value.reason in ("no-such-column", "not-text")


def test_data_frames(tmp_path: Path) -> None:
    pl, _ = pytest.importorskip("polars"), pytest.importorskip("pandas")
    for name, rows in (("pl", pl.from_arrow(TABLE)), ("pd", TABLE.to_pandas()), ("pa", TABLE)):
        pv.ingest(rows, tmp_path / name, json_column="payload", on_error="null", threads=2)
        assert _rows(tmp_path / name) == list(zip(range(1, 6), EXPECTED, strict=True))
    options = {"json_column": "payload", "on_error": "null", "partition_by": "k=$.a:string", "format": "delta"}
    pv.ingest(TABLE, tmp_path / "d", **options)
    pv.ingest(TABLE, tmp_path / "d", mode="append", **options)
    assert sorted(pv.open(tmp_path / "d").to_arrow()["id"].to_pylist()) == sorted([1, 2, 3, 4, 5] * 2)
    with pytest.raises(pv.VariantError, match="json_column="):
        pv.ingest(TABLE, tmp_path / "x")


def test_bad_rows_keep_their_number_and_what_is_next_to_them(tmp_path: Path) -> None:
    source = _write(tmp_path / "a.parquet", "parquet")
    result = pv.ingest(source, tmp_path / "out", json_column="payload", on_error="quarantine", split_bytes=300)
    assert (result.rows, result.bad_records) == (4, 1)
    (file,) = Path(result.bad_records_path or "").iterdir()
    record = json.loads(file.read_text())
    assert (record["line"], record["text"]) == (3, '{"a":')
    assert record["columns"] == {"id": 3, "ts": "1970-01-01 00:00:00.000002"}
    assert [row for row, _ in _rows(tmp_path / "out")] == [1, 2, 4, 5]
    with pytest.raises(pv.JsonError, match=r"^row 3: "):
        pv.ingest(source, tmp_path / "no", json_column="payload", split_bytes=300)
    assert not (tmp_path / "no").exists()


def test_what_cannot_be(tmp_path: Path) -> None:
    source = _write(tmp_path / "a.parquet", "parquet")
    for options, reason in (
        ({"json_column": "id"}, "not-text"),
        ({"json_column": "nope"}, "no-such-column"),
        ({"json_column": "payload", "column": "ID"}, "bad-option"),
        ({"json_column": "payload", "partition_by": "ts=$.a"}, "bad-option"),
    ):
        with pytest.raises(pv.VariantError) as caught:
            pv.ingest(source, tmp_path / "out", on_error="null", **options)
        assert caught.value.reason == reason
        assert not (tmp_path / "out").exists()


def test_rows_of_kafka_and_dictionaries_and_views(tmp_path: Path) -> None:
    values = pa.array(['{"z": 1}', None])
    for at, kind in enumerate([pa.binary(), pa.large_binary(), pa.dictionary(pa.int32(), pa.string())]):
        rows = pa.table({"id": [1, 2], "value": values.cast(kind)})
        pv.ingest(rows, tmp_path / str(at), json_column="value", column="v", schema="z bigint")
        assert _rows(tmp_path / str(at), "v") == [(1, {"z": 1}), (2, None)]


def test_elements_of_a_column_are_rows_with_what_is_next_to_them(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3], "payload": ['{"i": [1, 2]}', '{"i": [3]}', '{"i": []}']})
    pv.ingest(rows, tmp_path / "out", json_column="payload", root="$.i[*]")
    assert _rows(tmp_path / "out") == [(1, 1), (1, 2), (2, 3)]


def test_a_large_column_is_sampled_and_read_in_parts(tmp_path: Path) -> None:
    texts = [json.dumps({"n": n, "t": "x" * 50}) for n in range(150_000)]
    pq.write_table(pa.table({"id": range(150_000), "payload": texts}), tmp_path / "a.parquet", row_group_size=40_000)
    result = pv.ingest(
        tmp_path / "a.parquet", tmp_path / "out", json_column="payload", sample=0.05, split_bytes=300_000
    )
    assert result.inference is not None
    assert 0 < result.inference.rows < 50_000
    found = pv.open(tmp_path / "out").scan({"n": ("$.n", "bigint")}, column="payload").to_arrow()
    assert sorted(found["n"].to_pylist()) == list(range(150_000))


NESTED = [{"a": 1}, {"b": [1, {"c": None}]}, None]


def test_dicts_in_a_column_of_pandas_are_the_values_of_the_json_column(tmp_path):
    frame = pytest.importorskip("pandas").DataFrame({"id": [1, 2, 3], "attrs": NESTED})
    pv.ingest(frame, tmp_path / "out", json_column="attrs")
    assert pv.open(tmp_path / "out").to_arrow(["id"])["id"].to_pylist() == [1, 2, 3]
    assert pv.open(tmp_path / "out").read().to_pylist() == NESTED


def test_structs_in_an_arrow_column_are_the_values_of_the_json_column(tmp_path):
    pv.ingest(pa.table({"attrs": [{"a": 1}, {"a": None}, None]}), tmp_path / "out", json_column="attrs")
    assert pv.open(tmp_path / "out").read().to_pylist() == [{"a": 1}, {"a": None}, None]


def test_a_list_of_dicts_is_ingested_as_rows(tmp_path):
    assert pv.ingest(NESTED[:2], tmp_path / "out").rows == 2
    assert pv.open(tmp_path / "out").read().to_pylist() == NESTED[:2]
    pv.ingest([{"a": 1}], tmp_path / "table", format="delta", column="event")
    assert pv.open(tmp_path / "table").column == "event"


def test_several_places_of_json_in_json(tmp_path: Path) -> None:
    rows = [{"a": "[1]", "b": {"c": '{"x": 1.5}'}}, {"a": 7, "b": {}}, {"b": {"c": "true"}}, {"a": "{oops"}]
    (tmp_path / "a.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    places = ["a", "$.b.c"]
    result = pv.ingest(tmp_path / "a.ndjson", tmp_path / "out", json_column=places, on_error="quarantine")
    assert result.bad_records == 1
    expected = [{"a": [1], "b": {"c": {"x": Decimal("1.5")}}}, {"a": 7, "b": {}}, {"b": {"c": True}}]
    assert pv.open(tmp_path / "out").read().to_pylist() == expected
    pv.ingest(tmp_path / "a.ndjson", tmp_path / "null", json_column=places, on_error="null")
    assert pv.open(tmp_path / "null").read().to_pylist() == [*expected, None]
    with pytest.raises(pv.JsonError, match=r"line 4: the string at \$\.a"):
        pv.ingest(tmp_path / "a.ndjson", tmp_path / "fail", json_column=places)
    with pytest.raises(pv.VariantError, match="name the path of strings"):
        pv.ingest(tmp_path / "a.ndjson", tmp_path / "root", json_column=["a", "$"])


ELEMENTS = [
    {"m": [{"c": '{"x": 1.50}'}, {"c": "[2]", "d": "no"}, 7, {"c": None}], "t": [["1", '{"y": 1e2}'], ["2", "3"], []]},
    {"m": "[1]"},
    {"m": [], "t": [["4"]]},
    None,
    ["[]"],
]


@pytest.mark.parametrize(
    ("place", "first"),
    [
        ("$.m[*].c", {"m": [{"c": {"x": Decimal("1.50")}}, {"c": [2], "d": "no"}, 7, {"c": None}]}),
        ("$.t[*][1]", {"t": [["1", {"y": 100.0}], ["2", 3], []]}),
        ("$.t[1][0]", {"t": [["1", '{"y": 1e2}'], [2, "3"], []]}),
        ("$.t[*][*]", {"t": [[1, {"y": 100.0}], [2, 3], []]}),
        ("$.t[9][0]", {}),
        ("$.x[*]", {}),
    ],
)
def test_json_in_the_elements_of_arrays(tmp_path: Path, place: str, first: dict[str, Any]) -> None:
    (tmp_path / "a.ndjson").write_text("".join(json.dumps(row) + "\n" for row in ELEMENTS * 3))
    if place.startswith("$.x"):
        with pytest.raises(pv.VariantError, match=r"json_column= names \$\.x\[\*\], and no row has this path"):
            pv.ingest(tmp_path / "a.ndjson", tmp_path / "out", json_column=place)
        return
    pv.ingest(tmp_path / "a.ndjson", tmp_path / "out", json_column=place)
    expected: list[Any] = [ELEMENTS[0] | first, *ELEMENTS[1:]]
    if place == "$.t[*][*]":
        expected[2] = {"m": [], "t": [[4]]}
    assert pv.open(tmp_path / "out").read().to_pylist() == expected * 3


JSONS = pa.array(['{"a": 1}', None, '{"a": "x"}'])
SEVERAL = pa.table(
    {
        "id": [1, 2, 3],
        "j": JSONS,
        "k": pa.array([b"[1]", b"2", b"{oops"]),
        "m": [[{"c": '{"t": 1}'}, {"c": None}], [], None],
        "e": pa.ExtensionArray.from_storage(pa.json_(), JSONS),
        "n": pa.ListArray.from_arrays([0, 2, 2, 3], pa.ExtensionArray.from_storage(pa.json_(), JSONS)),
    }
)


def _all_columns(dest: Path) -> dict[str, list[object]]:
    table = pv.open(dest).to_arrow()
    columns = {field.name: pv.cast_to_variant(table.column(field.name)).to_pylist() for field in table.schema}
    order = sorted(range(len(table)), key=lambda row: columns["id"][row])
    return {name: [values[row] for row in order] for name, values in columns.items()}


@pytest.mark.parametrize("format", ["parquet", "delta", "iceberg", "vortex"])
@pytest.mark.parametrize("in_memory", [True, False])
def test_several_columns_and_arrow_json_next_to_them(tmp_path: Path, format: Any, in_memory: bool) -> None:
    if format == "vortex":
        pytest.importorskip("vortex", reason="vortex-data is not installed")
    pq.write_table(SEVERAL, tmp_path / "a.parquet")
    source = SEVERAL if in_memory else tmp_path / "a.parquet"
    with pytest.raises(pv.JsonError, match=r"column k: unexpected 'oops'.* or skip invalid lines"):
        pv.ingest(source, tmp_path / "fail", json_column=["j", "k"], format=format)
    values = {"id": [1, 2, 3], "j": [{"a": 1}, None, {"a": "x"}], "k": [[1], 2, None]}
    pv.ingest(source, tmp_path / "null", json_column=["j", "k"], format=format, on_error="null")
    columns = _all_columns(tmp_path / "null")
    assert {name: columns[name] for name in values} == values
    assert columns["e"] == values["j"]
    assert columns["n"] == [[{"a": 1}, None], [], [{"a": "x"}]]
    result = pv.ingest(source, tmp_path / "bad", json_column=["j", "k"], format=format, on_error="quarantine")
    assert (result.rows, result.bad_records) == (2, 1)
    columns = _all_columns(tmp_path / "bad")
    assert {name: columns[name] for name in values} == {name: column[:2] for name, column in values.items()}
    pv.ingest(source, tmp_path / "nested", json_column=["j", "m[*].c"], format=format)
    columns = _all_columns(tmp_path / "nested")
    assert columns["m"] == [[{"c": {"t": 1}}, {"c": None}], [], None]
    assert columns["j"] == values["j"]


def test_columns_that_cannot_be_json(tmp_path: Path) -> None:
    for names, message in {
        ("j", "zz"): "has no column zz: its columns are id, j",
        ("j", "id"): "column id is int64, not strings or bytes",
        ("m[*].x",): r"json_column= names \$\[\*\]\.x, and no row has this path",
        ("m[*].c", "n[*].c"): "only one column can have strings with JSON in its elements",
        ("j", ""): "must be one or several strings, such as 'payload'",
    }.items():
        with pytest.raises(pv.VariantError, match=message):
            pv.ingest(SEVERAL, tmp_path / "out", json_column=list(names))
    assert not (tmp_path / "out").exists()


def test_an_element_that_is_not_json_makes_its_line_invalid(tmp_path: Path) -> None:
    rows = [{"m": ["1", "2"]}, {"m": ["3", "oops"]}, {"m": []}, {"m": ["4"]}]
    (tmp_path / "a.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(pv.JsonError, match=r"line 2: the string at \$\.m\[\*\]: unexpected 'oops'"):
        pv.ingest(tmp_path / "a.ndjson", tmp_path / "fail", json_column="$.m[*]")
    result = pv.ingest(tmp_path / "a.ndjson", tmp_path / "out", json_column="$.m[*]", on_error="quarantine")
    assert (result.rows, result.bad_records) == (3, 1)
    assert pv.open(tmp_path / "out").read().to_pylist() == [{"m": [1, 2]}, {"m": []}, {"m": [4]}]


@pytest.mark.parametrize("root", ["$.a.r[*]", "$.a.r[*].v[*]", "$.a.r[*].v"])
@pytest.mark.parametrize("one_line", [True, False])
def test_json_in_rows_at_a_root(tmp_path: Path, root: str, one_line: bool) -> None:
    document = {"n": 1, "a": {"r": [{"v": [["1", '{"x": 1}'], ["2", "3"]]}, {"v": []}, {"w": "4"}]}}
    (tmp_path / "a.json").write_text(json.dumps(document, indent=None if one_line else 1))
    place = "$.v[*][1]" if root == "$.a.r[*]" else "$[1]" if root.endswith("v[*]") else "$[*][1]"
    pv.ingest(tmp_path / "a.json", tmp_path / "out", root=root, json_column=place)
    arrays = [["1", {"x": 1}], ["2", 3]]
    expected = [{"v": arrays}, {"v": []}, {"w": "4"}] if root == "$.a.r[*]" else [arrays, []]
    assert pv.open(tmp_path / "out").read().to_pylist() == (arrays if root.endswith("v[*]") else expected)


def test_base64_of_an_object_or_an_array_is_decoded(tmp_path: Path) -> None:
    values = [b'{"a": 1}', b'["x"]', b"{oops", b"e"]
    texts = [base64.b64encode(value).decode() for value in values]
    (tmp_path / "a.ndjson").write_text("".join(json.dumps({"value": text}) + "\n" for text in [*texts, "[1]"]))
    result = pv.ingest(tmp_path / "a.ndjson", tmp_path / "out", json_column="value", on_error="quarantine")
    assert result.bad_records == 2
    assert pv.open(tmp_path / "out").read().to_pylist() == [{"value": {"a": 1}}, {"value": ["x"]}, {"value": [1]}]
    table = pa.table({"id": [1, 2], "value": texts[:2]})
    pv.ingest(table, tmp_path / "column", json_column="value")
    assert pv.open(tmp_path / "column").read().to_pylist() == [{"a": 1}, ["x"]]


@pytest.mark.parametrize("format", ["parquet", "delta", "iceberg"])
def test_every_column_of_json_is_shredded(tmp_path: Path, format: Any) -> None:
    rows = range(500)
    texts = {"a": [json.dumps({"x": row}) for row in rows], "b": [json.dumps({"y": f"text {row}"}) for row in rows]}
    table = pa.table({"id": rows, **texts, "m": [[{"c": json.dumps({"z": row})}] for row in rows]})
    for mode in ("error", "append"):
        pv.ingest(table, tmp_path / "t", json_column=["a", "b", "m[*].c"], format=format, mode=mode)  # type: ignore[arg-type]
    for file in (tmp_path / "t").rglob("*.parquet"):
        schemas = {name: pv.ShreddingSchema.from_parquet(file, name).to_ddl() for name in ("a", "b", "m")}
        assert schemas == {"a": "x bigint", "b": "y string", "m": "array<struct<c: struct<z: bigint>>>"}
    answer = pv.sql("SELECT count(b:y) AS n, sum(a:x) AS x FROM t", t=str(tmp_path / "t")).to_pylist()
    assert answer == [{"n": 1000, "x": 249500}]


def test_quoted_empty_fields_of_csv_are_null_in_columns_of_json_and_of_other_types(tmp_path: Path) -> None:
    """Some programs, such as Salesforce, quote all fields."""
    lines = '"id","amount","name","payload"\n"1","2.5","","{""a"": 1}"\n"2","","x",""\n'
    (tmp_path / "a.csv").write_text(lines)
    pv.ingest(tmp_path / "a.csv", tmp_path / "t", json_column="payload", infer_types=True)
    rows = pv.sql("SELECT id, amount, name, payload:a::int AS a FROM t", t=tmp_path / "t").to_pylist()
    expected = {"id": [1, 2], "amount": [2.5, None], "name": ["", "x"], "a": [1, None]}
    assert {name: [row[name] for row in rows] for name in expected} == expected
    assert pv.sql("SELECT * EXCLUDE payload FROM t", t=tmp_path / "a.csv").to_pylist() == [
        {name: row[name] for name in ("id", "amount", "name")} for row in rows
    ]


def test_a_key_names_strings_with_json_in_a_directory_of_json_files(tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    dump.mkdir()
    (dump / "notes.md").write_text("# notes")
    line = json.dumps({"topic": "orders", "payload": json.dumps({"id": 7})})
    (dump / "a.ndjson").write_text(f'{line}\n{{"topic": "orders", "payload": null}}\n')
    for source in (dump, dump / "*.ndjson"):
        pv.ingest(source, tmp_path / "rows", json_column="payload", exclude="*.md", mode="overwrite")
        rows = pv.open(tmp_path / "rows").read().to_pylist()
        assert rows == [{"topic": "orders", "payload": {"id": 7}}, {"topic": "orders", "payload": None}]
