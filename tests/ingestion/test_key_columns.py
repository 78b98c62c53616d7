"""Keys of the rows as typed columns, with the rest of each row as one Variant, in every format."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.support.options import OutputFormat

ROWS: list[Any] = [
    {"id": 1, "ts": "2026-01-02T00:00:00Z", "user": {"n": 1}, "price": 1.5, "kind": "a"},
    {"id": 2, "ts": "2026-01-02T01:00:00+01:00", "user": [2], "price": 2, "kind": "b", "x": None},
    {"id": "three", "ts": "yesterday", "user": None, "price": 1e-3, "kind": "c"},
    {"id": None, "ts": None, "kind": {"id": 4}},
    {"id": 5},
    {},
    [{"id": 6}],
    7,
]
TIME = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)
COLUMNS = {
    "id": [1, 2, None, None, 5, None, None, None],
    "ts": [TIME, TIME, *[None] * 6],
    "v": [
        {"kind": "a"},
        {"kind": "b", "x": None},
        {"id": "three", "ts": "yesterday", "kind": "c"},
        {"kind": {"id": 4}},
        {},
        {},
        [{"id": 6}],
        7,
    ],
}
OPTIONS: dict[str, Any] = {"columns": ["id", "ts", "user", "price"], "types": {"$.ts": "timestamp!"}}


def _written(path: Path, rows: list[Any] = ROWS) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("format", ["parquet", "delta", "iceberg", "vortex"])
@pytest.mark.parametrize("in_memory", [False, True])
def test_keys_become_columns_and_nothing_is_lost(tmp_path: Path, format: Any, in_memory: bool) -> None:
    if format == "vortex":
        pytest.importorskip("vortex", reason="vortex-data is not installed")
    source: Any = pa.table({"j": list(map(json.dumps, ROWS))}) if in_memory else _written(tmp_path / "a.ndjson")
    names = {"json_column": "j"} if in_memory else {}
    result = pv.ingest(source, tmp_path / "t", format=format, rest="v", **OPTIONS, **names)
    table = pv.open(tmp_path / "t").to_arrow()
    assert table.column_names == ["id", "ts", "user", "price", "v"]
    kinds = {"id": "bigint", "ts": "timestamp", "user": "variant", "price": "decimal(38,9)"}
    assert result.to_dict()["columns"] == kinds
    assert [str(table.schema.field(name).type) for name in ("id", "ts", "price")] == [
        "int64",
        "timestamp[us, tz=UTC]",
        "decimal128(38, 9)",
    ]
    for name, values in COLUMNS.items():
        column = table.column(name)
        is_variant = name == "v"
        assert (pv.VariantArray(column.combine_chunks()).to_pylist() if is_variant else column.to_pylist()) == values
    assert pv.VariantArray(table.column("user").combine_chunks()).to_pylist() == [{"n": 1}, [2], *[None] * 6]
    assert sorted(hint.partition(":")[0] for hint in result.hints) == [
        "1 string at $.id does not have the type bigint of the column",
        "1 string at $.ts does not have the type timestamp of the column",
    ]
    answer = pv.sql("SELECT sum(id) AS n, count(v:kind) AS kinds FROM t", t=str(tmp_path / "t")).to_pylist()
    assert answer == [{"n": 8, "kinds": 4}]


@pytest.mark.parametrize("format", ["parquet", "delta", "iceberg"])
def test_appends_have_the_types_of_the_columns(tmp_path: Path, format: Any) -> None:
    pv.ingest(_written(tmp_path / "a.ndjson"), tmp_path / "t", format=format, **OPTIONS)
    rows = [{"id": "x", "ts": "2026-01-02T00:00:00Z", "user": 1, "price": 7, "new": 1}] * 3
    again = {"columns": OPTIONS["columns"], "mode": "append"}
    result = pv.ingest(_written(tmp_path / "b.ndjson", rows), tmp_path / "t", format=format, **again)
    assert [hint.partition(":")[0] for hint in result.hints] == [
        "3 strings at $.id do not have the type bigint of the column"
    ]
    answer = pv.sql(
        "SELECT count(ts) AS ts, sum(price) AS price, count(v:id) AS ids, count(user) AS users, count(*) AS n FROM t",
        t=str(tmp_path / "t"),
    ).to_pylist()
    assert json.loads(json.dumps(answer, default=float)) == [{"ts": 5, "price": 24.501, "ids": 4, "users": 6, "n": 11}]


@pytest.mark.parametrize("format", ["parquet", "delta", "iceberg", "vortex"])
def test_an_append_that_leaves_the_columns_of_keys_empty_names_the_option(tmp_path: Path, format: Any) -> None:
    if format == "vortex":
        pytest.importorskip("vortex", reason="vortex-data is not installed")
    source, table = _written(tmp_path / "a.ndjson", [{"id": 1, "ts": "x", "kind": "a"}]), tmp_path / "t"
    by: Any = {} if format == "vortex" else {"partition_by": "kind=$.kind"}
    pv.ingest(source, table, format=format, columns=["id", "ts"], **by)
    again: Any = {"format": format, "mode": "append", **by}
    assert pv.ingest(source, table, **again, columns=["id", "ts"]).hints == ()
    assert pv.ingest([{"kind": "b", "n": 1}], table, **again).hints == ()
    for options, columns in [({}, ["id", "ts"]), ({"columns": "ts"}, ["ts", "id"]), ({"schema": "id int"}, ["id"])]:
        result = pv.ingest(source, table, **again, **options)
        assert [hint.rpartition("use ")[2] for hint in result.hints] == [f"columns={columns}"]


@pytest.mark.parametrize("format", ["parquet", "delta", "iceberg"])
def test_a_key_can_be_a_partition_column_of_the_table(tmp_path: Path, format: Any) -> None:
    rows = [{"kind": kind, "n": n} for n, kind in enumerate("aabbc")]
    source = _written(tmp_path / "a.ndjson", rows)
    pv.ingest(source, tmp_path / "t", format=format, partition_by="kind=$.kind")
    pv.ingest(source, tmp_path / "t", format=format, mode="append", columns="kind")
    answer = pv.sql("SELECT kind, count(*) AS n, count(v:kind) AS kept FROM t GROUP BY kind", t=str(tmp_path / "t"))
    counts = {row["kind"]: (row["n"], row["kept"]) for row in answer.to_pylist()}
    assert counts == {"a": (4, 2), "b": (4, 2), "c": (2, 1)}


def test_a_list_of_dicts_and_a_schema_with_the_types_of_keys(tmp_path: Path) -> None:
    result = pv.ingest(ROWS[:2], tmp_path / "t", columns="id", schema="id int, kind string")
    table = pv.open(tmp_path / "t").to_arrow()
    assert (table.column_names, table.column("id").type) == (["id", "v"], pa.int32())
    assert result.schema is not None and result.schema.to_ddl() == "kind string"


def test_values_beyond_a_decimal_remain_and_are_counted(tmp_path: Path) -> None:
    """They were NULL in the column without a word, because they are numbers."""
    rows = [{"n": n / 7, "m": n / 4} for n in range(100)] + [{"n": 1e-7 / 3, "m": "long"}] * 3
    source = _written(tmp_path / "a.ndjson", rows)
    source.write_text(source.read_text().replace('"long"', "123456789012345678901234567890.5"))
    result = pv.ingest(source, tmp_path / "t", columns=["n", "m"])
    table = pv.open(tmp_path / "t").to_arrow()
    assert [str(table[name].type) for name in ("n", "m")] == ["decimal128(38, 18)", "decimal128(38, 2)"]
    lost = {name: table[name].null_count for name in ("n", "m")}
    kept = pv.sql("SELECT count(v:n) AS n, count(v:m) AS m FROM t", t=str(tmp_path / "t")).to_pylist()
    assert [lost] == kept == [{"n": 3, "m": 0}]
    assert [hint.partition(":")[0] for hint in result.hints] == [
        "3 numbers at $.n do not have the type decimal(38,18) of the column",
    ]


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    source = _written(tmp_path / "a.ndjson")
    for options, message in [
        ({"columns": ["idd"]}, "columns= names idd, and no sampled row has this key: did you mean id[?]"),
        (
            {"columns": ["zzzzz"]},
            "columns= names zzzzz, and no sampled row has this key: name a key of the rows, not a path",
        ),
        ({"columns": ["id"], "schema": "kind string"}, "columns= names id, which schema= lacks"),
        ({"columns": ["id"], "rest": "id"}, "share the name 'id': choose another name with rest="),
        ({"columns": ["id"], "partition_by": "id=$.kind"}, "share the name 'id'"),
        ({"columns": ["id"], "sort_by": "$.id"}, r"sort_by= names \$.id, which columns= takes out of the Variant"),
        ({"columns": ["ts"], "partition_by": "d=$.ts:date"}, r"partition_by= names \$.ts, which columns= takes out"),
        ({"columns": [3]}, "columns"),
        ({"columns": ["id", ""]}, "columns= is .id,.: it must be one or several strings"),
    ]:
        with pytest.raises(pv.VariantError, match=message):
            pv.ingest(source, tmp_path / "t", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "t").exists()
    pv.ingest(source, tmp_path / "t", columns=["id"], sort_by="id")
    assert pv.open(tmp_path / "t").to_arrow()["id"].to_pylist()[:3] == [1, 2, 5]


def test_columns_that_a_directory_lacks_are_not_appended_to_it(tmp_path: Path) -> None:
    """Files with more columns than the first one were appended, and their values were not found."""
    source = _written(tmp_path / "a.ndjson")
    pv.ingest(source, tmp_path / "t", columns=["id"], rest="data")
    for options in ({}, {"columns": ["id"]}, {"columns": ["id", "ts"], "rest": "data"}):
        with pytest.raises(pv.SchemaError, match=r"has the columns id, data, and the new rows have (v|ts), too: give"):
            pv.ingest(source, tmp_path / "t", mode="append", **options)  # type: ignore[arg-type]
    pv.ingest(source, tmp_path / "t", mode="append", columns=["id"], rest="data")
    pv.ingest(source, tmp_path / "t", mode="append", column="data")
    counts = pv.sql("SELECT count(id) AS ids, count(data:id) AS others FROM t", t=tmp_path / "t").to_pylist()
    assert counts == [{"ids": 6, "others": 7}]  # JSON null is a value, and one id of each load is text
    for number in range(4):  # whichever file is the first by its name
        pv.ingest(source, tmp_path / "t", mode="append", column="data")
        pv.ingest(source, tmp_path / "t", mode="append", columns=["id"], rest="data")
        pv.open(tmp_path / "t").append({"id": [number], "data": pv.parse_json(["1"])})
    assert pv.open(tmp_path / "t").to_arrow()["id"].type == pa.int64()
    pv.ingest(source, tmp_path / "t", mode="overwrite")
    assert pv.open(tmp_path / "t").to_arrow().column_names == ["v"]


def test_merges_name_the_path_of_a_key_in_the_source(tmp_path: Path) -> None:
    table = tmp_path / "t"
    pv.ingest(_written(tmp_path / "a.ndjson"), table, format="delta", columns=["id"], rest="data")
    source = str(_written(tmp_path / "b.ndjson", [{"id": 1, "kind": "new"}]))
    with pytest.raises(pv.VariantError, match=r"unknown column source\.id: choose from data; .* source\.data:id"):
        pv.open(table).merge(source, "target.id = source.id").when_matched_update_all().execute()
    pv.open(table).merge(source, "target.id = source.data:id").when_matched_update_all().execute()
    answer = pv.sql("SELECT data:kind::string AS kind FROM t WHERE id = 1", t=str(table)).to_pylist()
    assert answer == [{"kind": "new"}]


@pytest.mark.parametrize("format", ["parquet", "delta", "iceberg"])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_column_has_the_file_of_each_row(tmp_path: Path, format: OutputFormat, threads: int) -> None:
    expected = list[tuple[str, int]]()
    for number in range(9):  # small files, which are otherwise read together, and a larger one
        rows = range(number, number + (50_000 if number == 4 else number))
        path = tmp_path / "in" / f"{number}.ndjson"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f'{{"n":{n}}}\n' for n in rows))
        expected += [(str(path), n) for n in rows]
    dest = tmp_path / "table"
    pv.ingest(tmp_path / "in", dest, format=format, file_column="file", threads=threads, split_bytes=100_000)
    found = pv.open(dest).scan({"file": "file", "n": ("$.n", "bigint")}).to_arrow()
    assert sorted(zip(found["file"].to_pylist(), found["n"].to_pylist(), strict=True)) == sorted(expected)


def test_the_column_of_files_is_next_to_the_columns_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,p\n1,"{""n"":1}"\n2,"{""n"":2}"\n')
    pv.ingest(tmp_path / "a.csv", tmp_path / "t", json_column="p", file_column="file", on_error="null")
    assert pv.open(tmp_path / "t").to_arrow(["id", "file"]).to_pylist() == [
        {"id": number, "file": str(tmp_path / "a.csv")} for number in ("1", "2")
    ]
    for name in ("id", "p"):
        with pytest.raises(pv.VariantError, match="file_column="):
            pv.ingest(tmp_path / "a.csv", tmp_path / "u", json_column="p", file_column=name)
    assert not (tmp_path / "u").exists()
