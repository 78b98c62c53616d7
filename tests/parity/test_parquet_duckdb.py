"""DuckDB reads the files that we write, and we read the files that it writes, with equal JSON."""

from __future__ import annotations

import json
from decimal import Decimal

import pyarrow as pa
import pytest

import parquet_variant as pv

duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed")
if int(duckdb.__version__.split(".")[0]) < 2:
    pytest.skip("needs DuckDB 2 or newer", allow_module_level=True)

ROWS = [
    '{"a":1,"b":"x","c":[1,2,"z"],"d":{"e":1.5,"f":null}}',
    '{"a":"n/a","g":true}',
    '[1,{"a":2},[]]',
    None,
    '"s"',
    "12345678901234567890",
    "1.25",
    '{"z":1,"a":2,"d":{"e":2.5,"zz":[]},"":"empty","é":1,"\U0001f600":{"x.y":0}}',
    "{}",
    "[]",
    "true",
]
SCHEMAS = [
    None,
    "a bigint, b string, c array<int>, d struct<e: decimal(9,2)>",
    "a decimal(30,2), d struct<e: double, zz: array<string>>, `é` tinyint",
    "a struct<q: int>, b date",
    "array<struct<a: int>>",
    "string",
]


def value(text):
    """JSON as a value: numbers exact, so that 1.50 and 1.5 are one."""
    return None if text is None else json.loads(text, parse_float=Decimal, parse_int=Decimal)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_duckdb_reads_ours(schema, tmp_path):
    path = tmp_path / "a.parquet"
    info = pv.write(path, pv.parse_json(pa.array(ROWS)), schema=schema)
    kind, *_ = duckdb.sql(f"select v from '{path}'").types
    assert str(kind) == "VARIANT"
    assert [value(row) for (row,) in duckdb.sql(f"select v::json::varchar from '{path}'").fetchall()] == [
        value(row) for row in ROWS
    ]
    assert info.rows == len(ROWS)


def test_duckdb_reads_ours_in_structs_lists_and_maps(tmp_path):
    storage = pv.shred_variant(pv.parse_json(ROWS), "a bigint").storage
    lists = pa.ListArray.from_arrays(list(range(len(ROWS) + 1)), storage)
    keys = pa.array([f"k{n}" for n in range(len(ROWS))])
    maps = pa.MapArray.from_arrays(list(range(len(ROWS) + 1)), keys, storage)
    struct = pa.StructArray.from_arrays([storage, keys], ["x.y", "k"])
    path = tmp_path / "a.parquet"
    info = pv.write(
        path, {"l": lists, "m": maps, "v": pv.VariantArray(storage)}, variants=["l.list.element", "m.key_value.value"]
    )
    assert set(info.variants) == {("l", "list", "element"), ("m", "key_value", "value"), ("v",)}
    query = f"select l[1]::json::varchar, map_values(m)[1]::json::varchar, v::json::varchar from '{path}'"
    for found, row in zip(duckdb.sql(query).fetchall(), ROWS, strict=True):
        assert [value(item) for item in found] == [value(row)] * 3
    inner = tmp_path / "b.parquet"
    tagged = pa.field("x.y", storage.type, metadata=pv.VariantArray(storage).arrow_field.metadata)
    table = pa.table([struct.cast(pa.struct([tagged, pa.field("k", pa.string())]))], names=["s"])
    pv.write(inner, table)
    found = duckdb.sql(f"""select (s."x.y")::json::varchar from '{inner}'""").fetchall()
    assert [value(each) for (each,) in found] == [value(row) for row in ROWS]


@pytest.mark.parametrize(
    "options",
    ["", ", shredding {'v': 'STRUCT(a BIGINT, b VARCHAR, d STRUCT(e DOUBLE))'}", ", shredding {'v': 'VARCHAR'}"],
    ids=["automatic", "struct", "text"],
)
def test_we_read_what_duckdb_shreds(options, tmp_path):
    path = tmp_path / "duck.parquet"
    # DuckDB 2.0 cannot write integers from 2^63 on, and calls a shredded field with an empty key "element1".
    rows = [row and row.replace('"":"empty",', "") for row in ROWS if row != "12345678901234567890"]
    connection = duckdb.connect()
    connection.execute("create table t(i integer, j varchar)")
    connection.executemany("insert into t values (?, ?)", list(enumerate(rows)))
    connection.execute("create table w as select i, j::json::variant v from t order by i")
    connection.execute(f"copy w to '{path}' (format parquet{options})")
    array = pv.open(path).read()
    assert array.is_shredded
    # DuckDB makes doubles of decimals: equal as numbers here, since each fits a double.
    assert [None if item is None else value(item.to_json()) for item in array] == [value(row) for row in rows]
    answer = pv.open(path).scan({"i": "i", "a": "$.a:bigint", "e": "$.d.e:double"}, "a is not null").to_arrow()
    assert answer.to_pydict() == {"i": [0, 6], "a": [1, 2], "e": [1.5, 2.5]}
    dest = tmp_path / "ours.parquet"
    pv.open(path).rewrite(dest, layout="unshredded")
    assert pv.open(dest).read() == array


def test_duckdb_reads_what_rewrite_makes(tmp_path):
    source, dest = tmp_path / "a.parquet", tmp_path / "b.parquet"
    pv.write(source, pv.parse_json(ROWS), schema="a bigint, c array<int>", layout="draft-paths")
    pv.open(source).rewrite(dest, layout="final")
    found = duckdb.sql(f"select v::json::varchar from '{dest}'").fetchall()
    assert [value(row) for (row,) in found] == [value(row) for row in ROWS]


def test_a_file_without_annotation_is_a_struct_to_duckdb(tmp_path):
    path = tmp_path / "a.parquet"
    pv.write(path, pv.parse_json(ROWS), annotation=False)
    assert "STRUCT" in str(duckdb.sql(f"select v from '{path}'").types[0])
    assert pv.open(path).annotate() == ("v",)
    assert str(duckdb.sql(f"select v from '{path}'").types[0]) == "VARIANT"


def test_the_kernel_reads_rows_that_duckdb_shredded(tmp_path, monkeypatch):
    """Names several times in a dictionary, fields in any order: none of it is left to the slow reference."""
    rows = [
        json.dumps({"id": n, "z": "x" * (n % 5), "a": {"q": n, "b": [n, {"id": n}]}, f"k{n % 9}": n, "m": None})
        for n in range(300)
    ]
    connection = duckdb.connect()
    connection.execute("SET variant_minimum_shredding_size = 0")
    connection.register("rows", pa.table({"j": rows}))
    path = tmp_path / "a.parquet"
    connection.execute(f"COPY (SELECT j::JSON::VARIANT AS v FROM rows) TO '{path}' (FORMAT parquet)")
    array = pv.open(path).read()
    assert array.is_shredded

    def refuse(*_):
        raise AssertionError("a row went to the reference")

    monkeypatch.setattr("parquet_variant.layouts.reference.rows.variants_of_storage", refuse)
    assert [value(row) for row in pv.to_json(array).to_pylist()] == [value(row) for row in rows]


def test_a_field_twice_by_two_ids_of_one_name_is_refused():
    metadata = bytes.fromhex("01020001026161")  # two names, both "a"
    twice = bytes.fromhex("020200010002040c010c02")  # {a: 1, a: 2}
    once = bytes.fromhex("02010100020c02")  # {a: 2}, by the second id
    typed = pa.array([{"b": {"value": None, "typed_value": 1}}], pa.struct([
        pa.field("b", pa.struct([("value", pa.binary()), ("typed_value", pa.int64())]), nullable=False)
    ]))  # fmt: skip
    for residual, good in ((twice, False), (once, True)):
        storage = pa.StructArray.from_arrays(
            [pa.array([metadata]), pa.array([residual]), typed], ["metadata", "value", "typed_value"]
        )
        array = pv.VariantArray(storage)
        if good:
            assert pv.to_json(array).to_pylist() == ['{"a":2,"b":1}']
        else:
            with pytest.raises(pv.VariantError):
                pv.unshred_variant(array)
