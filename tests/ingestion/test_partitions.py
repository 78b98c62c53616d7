"""JSON paths become directories or partition columns; every reader gets them back typed, and prunes by them."""

from __future__ import annotations

import gzip
import json
import warnings
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

import parquet_variant as pv
from parquet_variant.files.parquet.format import files
from parquet_variant.ingestion.partition_by import PartitionBy
from parquet_variant.io.directories import partition_texts, typed_partitions
from parquet_variant.support.options import OutputFormat
from parquet_variant.tables import partitions

_ROWS = [
    {"ts": "2026-01-01T10:00:00", "kind": "a", "n": 1},
    {"ts": "2026-01-01T11:00:00", "kind": "b/c", "n": 2},
    {"ts": "2026-01-02T10:00:00", "kind": "a", "n": 3},
    {"kind": "a", "n": 4},
    {"ts": "2026-01-02T12:00:00", "n": 5},
]
_BY = ["day=$.ts:date", "kind=$.kind"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "rows.ndjson"
    path.write_text("".join(json.dumps(row) + "\n" for row in _ROWS))
    return path


def _expected() -> list[tuple[date | None, str | None, int]]:
    days = [datetime.fromisoformat(row["ts"]).date() if "ts" in row else None for row in _ROWS]
    return [(day, row.get("kind"), row["n"]) for day, row in zip(days, _ROWS, strict=True)]


def _found(rows: list[dict]) -> list[tuple]:
    return sorted(((row["day"], row["kind"], row["n"]) for row in rows), key=lambda row: row[2])


@pytest.mark.parametrize("format", ["parquet", "delta"])
@pytest.mark.parametrize("by", [_BY, {"day": "$.ts:date", "kind": ("$.kind", "string")}], ids=["texts", "mapping"])
def test_rows_are_where_their_paths_say_and_come_back_with_typed_columns(source, tmp_path, format, by):
    dest = tmp_path / "table"
    result = pv.ingest(source, dest, format=format, partition_by=by)
    assert result.rows == len(_ROWS)
    table = pv.open(str(dest)).scan({"day": "day", "kind": "kind", "n": "$.n:int"}).to_arrow()
    assert table.schema.field("day").type == pa.date32()
    assert _found(table.to_pylist()) == _expected()
    assert {str(Path(file).parent) for file in result.files} == {
        "day=2026-01-01/kind=a", "day=2026-01-01/kind=b%2Fc", "day=2026-01-02/kind=a",
        "day=__HIVE_DEFAULT_PARTITION__/kind=a", "day=2026-01-02/kind=__HIVE_DEFAULT_PARTITION__",
    }  # fmt: skip


def test_whole_rows_have_the_columns_and_so_has_sql(source, tmp_path):
    dest = tmp_path / "table"
    pv.ingest(source, dest, partition_by=_BY)
    table = pv.open(dest).to_arrow()
    assert table.column_names == ["v", "day", "kind"]
    assert pv.open(dest).to_arrow(["kind", "v"]).column_names == ["kind", "v"]
    assert len(pv.open(dest).read()) == len(_ROWS)
    counted = pv.sql("SELECT day, count(*) AS n FROM t WHERE kind = 'a' GROUP BY day ORDER BY day NULLS LAST", t=dest)
    assert pa.table(counted).to_pylist() == [
        {"day": date(2026, 1, 1), "n": 1}, {"day": date(2026, 1, 2), "n": 1}, {"day": None, "n": 1},
    ]  # fmt: skip


def test_other_engines_see_the_same_partitions(source, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    dest = tmp_path / "table"
    pv.ingest(source, dest, partition_by=_BY)
    counts = {("2026-01-01", "a"): 1, ("2026-01-01", "b/c"): 1, ("2026-01-02", "a"): 1, (None, "a"): 1}
    found = ds.dataset(str(dest), partitioning="hive").to_table(columns=["day", "kind"]).to_pylist()
    assert {(row["day"], row["kind"]) for row in found} == {*counts, ("2026-01-02", None)}
    rows = duckdb.sql(f"SELECT kind, count(*) FROM read_parquet('{dest}/**/*.parquet') GROUP BY 1").fetchall()
    assert dict(rows) == {"a": 3, "b/c": 1, None: 1}


@pytest.mark.parametrize(
    ("where", "numbers", "files"),
    [
        ("day = '2026-01-02'", [3, 5], 2),
        ("day > '2026-01-01' and kind = 'a'", [3], 1),
        ("day is null", [4], 1),
        ("kind = 'nobody'", [], 0),
        ("not (kind = 'a')", [2], 1),
        ("day = '2026-01-01' or n = 5", [1, 2, 5], 5),
    ],
)
def test_a_filter_opens_only_the_partitions_that_it_allows(source, tmp_path, where, numbers, files, monkeypatch):
    from parquet_variant.files.parquet.scanning import scan as scanning

    dest = tmp_path / "table"
    pv.ingest(source, dest, partition_by=_BY)
    query = pv.open(dest).scan({"n": "$.n:int", "day": "day"}, where)
    opened = []
    monkeypatch.setattr(scanning, "open_file", lambda each, real=scanning.open_file: opened.append(each) or real(each))
    assert sorted(query.to_arrow().column("n").to_pylist()) == numbers
    # A filter on what is in the files may open more, never fewer.
    assert len({item.path for item in opened}) <= files
    everything = pv.open(dest).scan({"n": "$.n:int", "day": "day"}, where, skipping=False).to_arrow()
    assert sorted(everything.column("n").to_pylist()) == numbers


@pytest.mark.parametrize("table_format", ["parquet", "delta", "iceberg"])
@pytest.mark.parametrize("threads", [1, 3])
def test_more_partitions_than_files_that_may_be_open(table_format, threads, tmp_path, monkeypatch):
    monkeypatch.setattr(partitions, "MAX_OPEN_FILES", 3)
    for task in range(3):
        lines = (json.dumps({"k": number % 10, "n": number}) + "\n" for number in range(100 * task, 100 * task + 100))
        (tmp_path / f"rows-{task}.ndjson").write_text("".join(lines))
    result = pv.ingest(
        f"{tmp_path}/*.ndjson", tmp_path / "out", partition_by="k=$.k:int", format=table_format, threads=threads
    )
    assert result.rows == 300
    table = pv.open(tmp_path / "out").scan({"k": "k", "n": "$.n:int"}).to_arrow()
    assert sorted(table.column("n").to_pylist()) == list(range(300))
    assert all(row["k"] == row["n"] % 10 for row in table.to_pylist())


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_a_write_of_many_partitions_keeps_to_the_open_files_of_a_process(table_format, tmp_path, monkeypatch):
    resource = pytest.importorskip("resource", reason="the system does not limit the open files of a process")
    monkeypatch.setattr(partitions, "MAX_OPEN_FILES", 40)
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    in_use = max(int(path.name) for path in Path("/dev/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (in_use + 100, usual[1]))
    try:
        pv.write(tmp_path / "t", {"k": [*range(120)] * 2, "n": [*range(240)]}, format=table_format, partition_by="k")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)
    assert sorted(pv.open(tmp_path / "t").to_arrow()["n"].to_pylist()) == list(range(240))


@pytest.mark.filterwarnings("ignore:partition_by=kind")
def test_an_overwrite_removes_partitions_that_are_gone(source, tmp_path):
    dest = tmp_path / "table"
    pv.ingest(source, dest, partition_by=_BY)
    one = tmp_path / "one.ndjson"
    one.write_text('{"ts": "2026-03-01T00:00:00", "n": 9, "kind": null}\n')
    pv.ingest(one, dest, partition_by=_BY, mode="overwrite")
    assert pv.open(dest).scan({"day": "day"}).to_arrow().to_pylist() == [{"day": date(2026, 3, 1)}]


def test_optimize_and_rewrite_keep_the_partitions_and_put_no_column_into_files(source, tmp_path):
    dest = tmp_path / "table"
    for mode in ("error", "append"):
        pv.ingest(source, dest, partition_by=_BY, mode=mode)
    pv.open(dest).optimize()
    pv.open(dest).rewrite(tmp_path / "copy", layout="unshredded")
    for place in (dest, tmp_path / "copy"):
        found = pv.open(place).scan({"day": "day", "kind": "kind", "n": "$.n:int"}).to_arrow().to_pylist()
        assert _found(found) == sorted(_expected() * 2, key=lambda row: row[2])
        for file in place.rglob("*.parquet"):
            assert pa.parquet.read_schema(file).names == ["v"]


def test_a_delta_table_keeps_its_partition_columns(source, tmp_path):
    dest = tmp_path / "table"
    pv.ingest(source, dest, partition_by=_BY, format="delta")
    pv.ingest(source, dest, partition_by=_BY, mode="append", format="delta")
    assert len(pv.open(dest).scan({"n": "$.n:int"}, "kind = 'a'").to_arrow()) == 6
    with pytest.raises(pv.TableError, match=r"partition columns of .* are day, kind, not other"):
        pv.ingest(source, dest, partition_by="other=$.n:int", mode="append", format="delta")


@pytest.mark.parametrize(
    ("by", "message"),
    [
        ("day", "write NAME=PATH:TYPE"),
        ("=$.a", "write NAME=PATH:TYPE"),
        ({"day": "ts"}, "no path for day"),
        ("v=$.a", "share the name"),
        (["a=$.x", "A=$.y"], "twice"),
        ("a=$.x:array<int>", "partition by string"),
        ("a=$.x:double", "partition by string"),
        ("a=$.x[*]:int", "many values"),
        ("a=$.x:nonsense", "nonsense"),
    ],
)
def test_what_cannot_be_a_partition_is_an_error_before_anything_is_read(by, message, tmp_path):
    with pytest.raises(pv.VariantError, match=message.replace("[*]", ".*")):
        pv.ingest(tmp_path / "not there", tmp_path / "out", partition_by=by)
    with pytest.raises(pv.VariantError, match="partition_by= is not supported"):
        pv.ingest(tmp_path / "not there", tmp_path / "out", format="vortex", partition_by="a=$.a")


@pytest.mark.parametrize(
    ("texts", "kind", "values"),
    [
        (["1", "-2", None], pa.int32(), [1, -2, None]),
        (["1", "3000000000"], pa.int64(), [1, 3_000_000_000]),
        (["1", "99999999999999999999"], pa.decimal128(20, 0), [Decimal(1), Decimal(10**20 - 1)]),
        (
            ["12345678901234567890", "12345678901234567891"],
            pa.decimal128(20, 0),
            [Decimal(12345678901234567890), Decimal(12345678901234567891)],
        ),
        (["-" + "9" * 38, "007"], pa.decimal128(38, 0), [Decimal("-" + "9" * 38), Decimal(7)]),
        (["9" * 39, "1"], pa.string(), ["9" * 39, "1"]),
        (["3000000000", "2.5"], pa.string(), ["3000000000", "2.5"]),
        (["12345678901234567890", "2.5"], pa.string(), ["12345678901234567890", "2.5"]),
        (
            ["12345678901234567890.1", "12345678901234567890.2"],
            pa.string(),
            ["12345678901234567890.1", "12345678901234567890.2"],
        ),
        (["1e400", "2.50"], pa.string(), ["1e400", "2.50"]),
        (["1e5", "2.50"], pa.float64(), [1e5, 2.5]),
        (["\u0661"], pa.string(), ["\u0661"]),
        (["1", "2.5"], pa.float64(), [1.0, 2.5]),
        (["2026-01-31", "2026-02-28"], pa.date32(), [date(2026, 1, 31), date(2026, 2, 28)]),
        (["2026-01-31", "2026-02-30"], pa.string(), ["2026-01-31", "2026-02-30"]),
        (["2026-01-31 10:00:00"], pa.timestamp("us"), [datetime(2026, 1, 31, 10)]),
        (["1", "x"], pa.string(), ["1", "x"]),
        (["true"], pa.string(), ["true"]),
        ([None], pa.string(), [None]),
        (["nan"], pa.string(), ["nan"]),
    ],
)
def test_the_type_is_the_narrowest_that_all_values_have(texts, kind, values):
    found = [dict(partition)["k"] for partition in typed_partitions([{"k": text} for text in texts])]
    assert [value.type for value in found] == [kind] * len(texts)
    assert [value.as_py() for value in found] == values


@pytest.mark.parametrize(
    ("type_name", "values", "kind"),
    [
        ("string", ["001", "1", "01"], pa.string()),
        ("string", ["12345678901234567890", "12345678901234567891", "2026-01-31"], pa.string()),
        ("boolean", [True, False, True], pa.bool_()),
        ("decimal(10,2)", [Decimal("1.00"), Decimal("-2.50"), Decimal("0.05")], pa.decimal128(10, 2)),
        ("date", [date(2026, 1, 31), date(2026, 2, 1), date(1999, 12, 31)], pa.date32()),
        ("bigint", [1, 2, 3], pa.int32()),
    ],
)
@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_declared_types_come_back(type_name, values, kind, mode, tmp_path):
    source, dest = tmp_path / "rows.ndjson", tmp_path / "out"
    keys = [value if isinstance(value, (str, bool, int)) else str(value) for value in values]
    rows = [{"k": key, "n": n} for n, key in enumerate(keys)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows[:1]))
    pv.ingest(source, dest, partition_by=f"k=$.k:{type_name}")
    source.write_text("".join(json.dumps(row) + "\n" for row in (rows if mode == "overwrite" else rows[1:])))
    pv.ingest(source, dest, partition_by=f"k=$.k:{type_name}" if mode == "overwrite" else (), mode=mode)
    for read in (dest, f"{dest}/k=*/*.parquet", f"{dest}/k=*"):
        table = pv.open(read).scan({"k": "k", "n": "$.n:int"}).to_arrow()
        assert table.schema.field("k").type == kind
        assert dict(zip(table["n"].to_pylist(), table["k"].to_pylist(), strict=True)) == dict(enumerate(values))
    assert pv.open(dest).to_arrow().schema.field("k").type == kind
    literal = f"DATE '{keys[1]}'" if kind == pa.date32() else f"'{keys[1]}'" if kind == pa.string() else values[1]
    found = pv.sql(f"SELECT count(*) AS n FROM '{dest}' WHERE k = {literal}").to_pylist()
    assert found == [{"n": values.count(values[1])}]
    pv.open(dest).optimize()
    assert pv.open(dest).to_arrow().schema.field("k").type == kind


def test_an_overwrite_declares_its_own_types_and_values_of_another_type_are_inferred(tmp_path):
    source, dest = tmp_path / "rows.ndjson", tmp_path / "out"
    source.write_text('{"k": "01"}\n')
    pv.ingest(source, dest, partition_by="k=$.k:string")
    pv.ingest(source, dest, partition_by="k=$.k", mode="overwrite")
    assert pv.open(dest).to_arrow()["k"].to_pylist() == [1]
    source.write_text('{"k": true}\n')
    pv.ingest(source, dest, partition_by="k=$.k:boolean", mode="overwrite")
    assert pv.open(dest).to_arrow()["k"].to_pylist() == [True]
    pv.write(dest / "k=maybe" / "a.parquet", pv.from_python([1]))
    assert sorted(pv.open(dest).to_arrow()["k"].to_pylist()) == ["maybe", "true"]
    (dest / "_partition_types.json").write_text('{"k": "nonsense"}')
    with pytest.raises(pv.VariantFileError, match="types of partition columns"):
        pv.open(dest).to_arrow()


def test_files_outside_of_a_partition_are_null_there(tmp_path):
    for place in ("", "k=1/", "k=1/l=x/"):
        (tmp_path / place).mkdir(exist_ok=True)
        pv.write(tmp_path / f"{place}a.parquet", pv.from_python([place]))
    found = pv.open(tmp_path).scan({"k": "k", "l": "l", "v": "$:string"}).to_arrow().to_pylist()
    assert sorted(found, key=lambda row: row["v"]) == [
        {"k": None, "l": None, "v": ""}, {"k": 1, "l": None, "v": "k=1/"}, {"k": 1, "l": "x", "v": "k=1/l=x/"},
    ]  # fmt: skip
    assert partition_texts(["a=", "=b", "c==d"]) == {"a": "", "c": "=d"}


def test_names_with_every_kind_of_character_come_back(tmp_path):
    names = ["a b", "a=b", "ä/ö", "%", "a%2Fb", "x:y", "'q'", "{z}"]
    source = tmp_path / "rows.ndjson"
    source.write_text("".join(json.dumps({"k": name}) + "\n" for name in names))
    pv.ingest(source, tmp_path / "out", partition_by={"odd name/=": "$.k"})
    found = pv.open(tmp_path / "out").scan({"k": "odd name/=", "v": "$.k:string"}).to_arrow().to_pylist()
    assert sorted(row["k"] for row in found) == sorted(names)
    assert all(row["k"] == row["v"] for row in found)


def test_nothing_is_partitioned_by_nothing():
    assert not PartitionBy.of(())
    assert PartitionBy.of({}).names == ()


@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_many_partitions_and_null_partitions_warn_before_anything_is_written(tmp_path: Path, format: str) -> None:
    source = tmp_path / "a.ndjson"
    source.write_text(
        "".join(
            f'{{"id": {n}, "day": "2026-01-{n % 28 + 1:02d}", "k": {n % 200}, "ts": "2026-01-02T03:04:{n % 7:02d}Z"}}\n'
            for n in range(3000)
        )
    )
    for by, words in [
        (["id=$.id:int"], r"3,000 partitions"),
        (["day=$.day:date", "k=$.k:int"], r"1,400 partitions"),
        (["day=$.dya:date"], r"dya.* has no value of type date32"),
        (["day=$.day:int"], r"day.* has no value of type int32"),
        (["day=$.ts"], r"points in time, .* write day=\$\.ts:date for a partition per day"),
        (["day=$.ts:timestamp"], r"points in time, .* write day=\$\.ts:date"),
    ]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match=words):
                pv.ingest(source, tmp_path / "out", format=format, partition_by=by)
        assert not (tmp_path / "out").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pv.ingest(source, tmp_path / "out", format=format, partition_by=["k=$.k:int", "day=$.ts:date"])


def test_the_number_of_partitions_is_estimated_from_a_sample(tmp_path: Path) -> None:
    lines = "".join(f'{{"id": {n}, "pad": "{"x" * 200}"}}\n' for n in range(40_000))
    for name, data in (("a.ndjson", lines.encode()), ("a.ndjson.gz", gzip.compress(lines.encode()))):
        (tmp_path / name).write_bytes(data)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match=r"about [\d,]+ partitions"):
                pv.ingest(tmp_path / name, tmp_path / "out", partition_by="id=$.id:int")


@pytest.mark.parametrize("format", ["parquet", "iceberg"])
def test_rows_appended_to_a_partitioned_table_go_to_its_partitions(tmp_path: Path, format: OutputFormat) -> None:
    (tmp_path / "a.ndjson").write_text("".join(f'{{"id": {n}, "day": "2026-01-0{n % 3 + 1}"}}\n' for n in range(9)))
    dest = tmp_path / "table"
    pv.ingest(tmp_path / "a.ndjson", dest, format=format, partition_by="day=$.day:date")
    if format == "parquet":
        (dest / "_partition_types.json").unlink()
    else:
        pv.open(dest).set_properties({"parquet-variant.partition-by.day": None})
    pv.ingest(tmp_path / "a.ndjson", dest, format=format, mode="append")
    folders = {path.parent.name for path in dest.rglob("*.parquet")}
    assert folders == {f"day=2026-01-0{n}" for n in (1, 2, 3)}
    (tmp_path / "b.ndjson").write_text('{"id": 1}\n')
    (tmp_path / "c.ndjson").write_text('{"id": 1, "day": "monday"}\n')
    for source, options, reason in [
        ("b.ndjson", {}, "missing-column"),
        ("c.ndjson", {}, "bad-cast"),
        ("a.ndjson", {"partition_by": "id=$.id:int"}, "bad-option"),
    ]:
        with pytest.raises(pv.VariantError) as caught:
            pv.ingest(tmp_path / source, dest, format=format, mode="append", **options)
        assert caught.value.reason == reason
    assert pv.open(dest).read().to_pylist().count({"id": 4, "day": "2026-01-02"}) == 2
    assert len(pv.open(dest).read()) == 18


def test_an_append_lists_the_directory_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, folder = tmp_path / "rows.json", tmp_path / "out"
    rows.write_text('{"a": 1, "k": "x"}\n')
    pv.ingest(rows, folder, partition_by="k=$.k")
    listed, list_files = [], files.list_files
    monkeypatch.setattr(files, "list_files", lambda source, *rest: listed.append(source) or list_files(source, *rest))
    pv.ingest(rows, folder, mode="append")
    assert listed == [str(folder)]
    assert [file.rpartition("/")[0] for file in pv.open(folder).data_files()] == [f"{folder}/k=x"] * 2


@pytest.mark.parametrize("format", ["parquet", "delta", "iceberg"])
def test_columns_next_to_json_are_partition_columns_of_the_table(tmp_path: Path, format: OutputFormat) -> None:
    (tmp_path / "a.ndjson").write_text('{"n":1,"region":"EU"}\n{"n":2,"region":"US"}\n')
    (tmp_path / "b.csv").write_text('region,payload\nEU,"{""n"":3}"\nAsia,"{""n"":4,""region"":""EU""}"\n')
    dest = tmp_path / "table"
    pv.ingest(tmp_path / "a.ndjson", dest, format=format, column="payload", partition_by="region=$.region")
    pv.ingest(tmp_path / "b.csv", dest, format=format, json_column="payload", mode="append")
    rows = pv.open(dest).scan({"region": "region", "n": ("$.n", "bigint")}).to_arrow().to_pylist()
    found = sorted((row["n"], row["region"]) for row in rows)
    assert found == [(1, "EU"), (2, "US"), (3, "EU"), (4, "Asia")]


def test_tables_below_the_directory_are_kept(source, tmp_path):
    dest = tmp_path / "out"
    pv.ingest(source, dest)
    pv.write(dest / "delta", {"n": [1]}, format="delta")
    pv.write(dest / "iceberg", {"n": [2]}, format="iceberg")
    rows = len(pv.open(dest).read())
    pv.open(dest).optimize(reshred=True)
    pv.ingest(source, dest, mode="overwrite")
    assert len(pv.open(dest).read()) == rows
    assert pv.open(dest / "delta").to_arrow()["n"].to_pylist() == [1]
    assert pv.open(dest / "iceberg").to_arrow()["n"].to_pylist() == [2]


@pytest.mark.parametrize("name", [".a", "_x", "..", "_", "é.b", "a=b"])
@pytest.mark.parametrize("format", ["parquet", "delta"])
def test_partition_columns_whose_names_engines_would_hide_are_read(tmp_path, name, format):
    (tmp_path / "a.ndjson").write_text('{"k": "x", "n": 1}\n{"k": "y", "n": 2}\n')
    pv.ingest(tmp_path / "a.ndjson", tmp_path / "out", partition_by={name: "$.k:string"}, format=format)
    query = f'SELECT "{name}" AS k, v:n::int AS n FROM t ORDER BY n'
    assert pv.sql(query, t=tmp_path / "out").to_pylist() == [{"k": "x", "n": 1}, {"k": "y", "n": 2}]
    folders = [path.name for path in (tmp_path / "out").iterdir() if "=" in path.name]
    assert len(folders) == 2
    assert not any(folder.startswith((".", "_")) for folder in folders)


def test_partitions_of_others_whose_names_begin_with_an_underscore_are_read(tmp_path):
    (tmp_path / "t" / "_x=1").mkdir(parents=True)
    (tmp_path / "t" / "_old").mkdir()
    for folder in ("_x=1", "_old"):
        pv.write(tmp_path / "t" / folder / "a.parquet", pv.parse_json(['{"n": 1}']))
    assert pv.sql("SELECT _x FROM t", t=tmp_path / "t").to_pylist() == [{"_x": 1}]


_PATHS = {
    "day=$.ts:date": [{"ts": "2026-03-01T10:00:00Z", "n": 1}, {"ts": "2026-03-02", "n": 2}, {"n": 3}],
    "k=$.a['b:c']": [{"a": {"b:c": "x"}, "n": 1}, {"a": {"b:c": "01"}, "n": 2}, {"n": 3}],
    "k=$.a[0]:decimal(9,2)": [{"a": [1.5], "n": 1}, {"a": ["x"], "n": 2}, {"n": 3}],
    "k=$.a:boolean": [{"a": True, "n": 1}, {"a": False, "n": 2}, {"n": 3}],
}


@pytest.mark.parametrize("format", ["parquet", "delta", "iceberg"])
@pytest.mark.parametrize("by", _PATHS)
def test_an_append_partitions_by_the_paths_of_the_first_load(tmp_path: Path, format: OutputFormat, by: str) -> None:
    rows, name = _PATHS[by], by.partition("=")[0]
    for number, part in enumerate((rows[:1], rows[1:])):
        (tmp_path / f"{number}.ndjson").write_text("".join(json.dumps(row) + "\n" for row in part))
    made, dest = tmp_path / "made", tmp_path / "dest"
    pv.ingest(sorted(tmp_path.glob("*.ndjson")), made, format=format, partition_by=by)
    for number in range(2):
        given = {"partition_by": by} if number == 0 else {"mode": "append"}
        pv.ingest(tmp_path / f"{number}.ndjson", dest, format=format, **given)
        if format == "parquet":
            pv.open(dest).optimize()
    tables = [pv.open(path).scan({"k": name, "n": "$.n:int"}).to_arrow().sort_by("n") for path in (made, dest)]
    assert tables[0].equals(tables[1])
    assert {path.parent.name for path in made.rglob("*.parquet")} == {p.parent.name for p in dest.rglob("*.parquet")}


def test_transforms_of_iceberg_and_types_of_numbers_have_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text('{"n": "12.50"}\n')
    with pytest.raises(pv.VariantError, match="transforms are set with `Table"):
        pv.ingest(tmp_path / "a.ndjson", tmp_path / "t", format="iceberg", partition_by="bucket(4, n)")
    with pytest.raises(pv.VariantError, match="use number! for strings with numbers"):
        pv.ingest(tmp_path / "a.ndjson", tmp_path / "t", types={"$.n": "decimal(10,2)!"})
    pv.write(tmp_path / "d", {"attrs": pv.parse_json(["{}"])}, format="delta")
    with pytest.raises(pv.VariantError, match="the table has no Variant column 'v': give column= or schema= for attrs"):
        pv.ingest(tmp_path / "a.ndjson", tmp_path / "d", mode="append")
