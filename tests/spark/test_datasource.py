"""The data source: DataFrames in and out, VARIANT and typed columns, skipping, and commits that are whole."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType, VariantType

import parquet_variant as pv
from parquet_variant.errors import JsonError, VariantError, VariantFileError
from parquet_variant.spark.datasource.options import ReadOptions, WriteOptions
from parquet_variant.spark.datasource.reading import BatchReader
from parquet_variant.spark.datasource.writing import BatchWriter, WrittenFiles
from parquet_variant.spark.engine import choose_column
from parquet_variant.spark.task_errors import from_spark_errors


def _exact(text: str | None) -> object:
    return None if text is None else json.loads(text, parse_float=Decimal, parse_int=Decimal)


def _visible(dest: Path) -> list[str]:
    return sorted(path.name for path in dest.iterdir() if not path.name.startswith(("_", ".")))


@pytest.fixture(scope="module")
def source(spark):
    spark.dataSource.register(pv.spark.VariantDataSource)
    return spark


@pytest.fixture(scope="module")
def events(source, tmp_path_factory):
    """A table of 1,000 rows in two files of several row groups each: n ascending, s sometimes of another type."""
    dest = tmp_path_factory.mktemp("events") / "table"
    frame = source.sql(
        """SELECT id, concat('{"n": ', id, ', "s": ', IF(id % 100 = 7, '[1]', concat('"s', id, '"')), '}') AS v
        FROM range(0, 1000, 1, 2)"""
    )
    pv.write(dest, frame, column="v", schema="n bigint, s string", rowGroupBytes=4_000)
    return dest


# -- writing


def test_a_json_column_is_shredded_and_the_others_pass_through(source, tmp_path):
    frame = source.createDataFrame(
        [(1, '{"a": 1.50}', "x"), (2, None, "y"), (3, '{"a": "n"}', None)], "id long, doc string, tag string"
    )
    writer = frame.write.format("variant").mode("append").option("column", "doc").option("schema", "a decimal(9,2)")
    writer.save(str(tmp_path / "t"))
    array = pv.open(tmp_path / "t").read("doc")
    assert array.schema == pv.ShreddingSchema.from_ddl("a decimal(9,2)")
    assert array.to_pylist() == [{"a": Decimal("1.50")}, None, {"a": "n"}]
    back = (
        source.read.parquet(str(tmp_path / "t")).selectExpr("id", "to_json(doc) AS doc", "tag").orderBy("id").collect()
    )
    assert [(row.id, _exact(row.doc), row.tag) for row in back] == [
        (1, {"a": Decimal("1.5")}, "x"),
        (2, None, "y"),
        (3, {"a": "n"}, None),
    ]


def test_variants_anywhere_come_back_to_spark(source, tmp_path):
    frame = source.sql(
        """SELECT id, parse_json(concat('{"a": ', id, '}')) AS v, parse_json('[true]') AS w,
        named_struct('x', IF(id = 1, NULL, parse_json('"in"')), 'y', id) AS s,
        array(parse_json('1'), NULL) AS l, map('k', parse_json('{"z": null}')) AS m FROM range(3)"""
    )
    frame.write.format("variant").mode("append").option("column", "v").save(str(tmp_path / "t"))
    columns = [
        "id",
        "to_json(v)",
        "to_json(w)",
        "to_json(s.x)",
        "s.y",
        "to_json(l[0])",
        "l[1] IS NULL",
        "to_json(m['k'])",
    ]
    expected = sorted(frame.selectExpr(*columns).collect())
    ours = source.read.format("variant").load(str(tmp_path / "t"))
    assert ours.schema.simpleString() == frame.schema.simpleString()
    assert sorted(ours.selectExpr(*columns).collect()) == expected
    assert sorted(source.read.parquet(str(tmp_path / "t")).selectExpr(*columns).collect()) == expected


def test_without_a_schema_one_is_inferred(source, tmp_path, usgs_sample):
    frame = source.read.text(str(usgs_sample))
    frame.write.format("variant").mode("append").save(str(tmp_path / "file"))
    pv.write(tmp_path / "job", frame)
    schemas = [pv.open(tmp_path / name).read("value").schema for name in ("file", "job")]
    assert schemas[0] == schemas[1] == pv.spark.infer_schema(frame)
    assert schemas[0].get(["properties", "mag"]) is not None


@pytest.mark.parametrize("empty", ["range(0)", "range(3) WHERE id > 5"])
def test_an_empty_frame_writes_its_columns(source, tmp_path, empty):
    frame = source.sql(f"SELECT id, CAST(id AS STRING) AS v FROM {empty}")
    frame.write.format("variant").mode("append").option("schema", "a int").save(str(tmp_path / "t"))
    assert len(_visible(tmp_path / "t")) == 1
    assert (
        source.read.format("variant").load(str(tmp_path / "t")).schema.simpleString() == "struct<id:bigint,v:variant>"
    )
    for format in ("parquet", "delta"):
        pv.write(tmp_path / format, frame, format=format)
        assert pv.open(tmp_path / format).schema.names == ["id", "v"]
        pv.write(tmp_path / format, source.sql("SELECT 1L AS id, '{\"a\": 1}' AS v"), format=format, mode="append")
        assert pv.sql("SELECT id, v:a FROM t", t=tmp_path / format).to_pylist() == [{"id": 1, "a": 1}]


def test_modes_mean_what_spark_users_expect(source, tmp_path):
    dest = str(tmp_path / "t")
    one, two = (source.sql(f"SELECT '{n}' AS v") for n in (1, 2))

    def values():
        return sorted(pv.open(dest).read().to_pylist())

    pv.write(dest, one, schema="variant")
    with pytest.raises(VariantFileError, match="already exists"):
        pv.write(dest, two, schema="variant")
    pv.write(dest, two, schema="variant", mode="ignore")
    assert values() == [1]
    pv.write(dest, two, schema="variant", mode="append")
    assert values() == [1, 2]
    two.write.format("variant").mode("append").option("schema", "variant").save(dest)
    assert values() == [1, 2, 2]
    two.write.format("variant").mode("overwrite").option("schema", "variant").save(dest)
    assert values() == [2]


def test_threads_write_and_two_of_them_make_one_table(source, tmp_path):
    frame, dest = source.sql("SELECT '{\"a\": 1}' AS v"), tmp_path / "t"
    with ThreadPoolExecutor(2) as threads:
        write = partial(pv.write, dest, frame, schema="a int", format="delta", mode="append")
        for done in [threads.submit(write) for _ in range(2)]:
            done.result()
    assert pv.open(dest).read().to_pylist() == [{"a": 1}] * 2


def test_a_thread_finds_the_data_source_once_it_is_registered_there(source, tmp_path):
    frame, dest = source.sql("SELECT '1' AS v"), tmp_path / "t"

    def write():
        source.dataSource.register(pv.spark.VariantDataSource)
        frame.write.format("variant").mode("append").option("schema", "variant").save(str(dest))

    with ThreadPoolExecutor(1) as threads:
        threads.submit(write).result()
    assert pv.open(dest).read().to_pylist() == [1]


def test_a_row_that_is_not_json_fails_the_write_and_leaves_the_table_as_it_was(source, tmp_path):
    dest = tmp_path / "t"
    pv.write(dest, source.sql("SELECT '1' AS v"), schema="variant")
    before = sorted(str(path) for path in dest.rglob("*"))
    bad = source.sql("SELECT IF(id = 3, '{', '2') AS v FROM range(0, 5, 1, 1)")
    with pytest.raises(JsonError, match="column v, row 3 of partition 0"):
        pv.write(dest, bad, schema="variant", mode="overwrite")
    assert sorted(str(path) for path in dest.rglob("*")) == before


def test_what_cannot_be_written_is_named(source, tmp_path):
    frame = source.sql("SELECT 1 AS n, 'x' AS s, 'y' AS t")
    for column, message in (
        (None, "must name the VARIANT or JSON string column; candidates: s, t"),
        ("n", "choose from s, t"),
    ):
        with pytest.raises(VariantError, match=message):
            choose_column(frame.schema, column)
    with pytest.raises(PySparkException, match="unknown write option 'comumn': did you mean 'column'"):
        frame.write.format("variant").mode("append").option("comumn", "s").save(str(tmp_path / "t"))
    assert not (tmp_path / "t").exists()


def _batches(texts):
    return iter([pa.RecordBatch.from_pydict({"v": texts}, schema=pa.schema([pa.field("v", pa.string())]))])


def test_repeated_and_failed_attempts_leave_no_duplicate(tmp_path):
    schema = StructType.fromJson(
        {"type": "struct", "fields": [{"name": "v", "type": "string", "nullable": True, "metadata": {}}]}
    )
    writer = BatchWriter(WriteOptions.of({"path": str(tmp_path / "t"), "schema": "a int"}), schema, False)
    first = writer.write(_batches(['{"a": 1}', '{"a": 2}']))
    second = writer.write(_batches(['{"a": 1}', '{"a": 2}']))  # the same task, run again or at the same time
    with pytest.raises(JsonError):
        writer.write(_batches(['{"a": 1}', "{"]))
    assert first.files != second.files
    assert _visible(tmp_path / "t") == []
    writer.commit([second, None])
    assert pv.open(tmp_path / "t").read().to_pylist() == [{"a": 1}, {"a": 2}]
    assert not (tmp_path / "t" / "_temporary").exists()
    third = BatchWriter(WriteOptions.of({"path": str(tmp_path / "t"), "schema": "a int"}), schema, True)
    staged = third.write(_batches(["3"]))
    third.abort([staged, None])
    assert pv.open(tmp_path / "t").read().to_pylist() == [{"a": 1}, {"a": 2}]
    assert isinstance(staged, WrittenFiles)
    assert not (tmp_path / "t" / "_temporary").exists()


# -- reading


def test_whole_rows_are_what_spark_itself_reads(source, events):
    ours = source.read.format("variant").load(str(events))
    native = source.read.parquet(str(events))
    assert ours.schema == native.schema
    query = ["id", "to_json(v) AS v"]
    assert ours.selectExpr(*query).exceptAll(native.selectExpr(*query)).count() == 0
    assert ours.count() == native.count() == 1000


def test_typed_paths_by_option_by_schema_and_by_call_are_the_same(source, events):
    paths = {"n": ["$.n", "bigint"], "s": ["$.s", "string"]}
    by_option = source.read.format("variant").option("paths", json.dumps(paths)).load(str(events))
    by_schema = (
        source.read.format("variant")
        .schema("n bigint, s string")
        .option("paths", json.dumps({"n": "$.n", "s": "$.s"}))
        .load(str(events))
    )
    by_call = pv.open(events, engine=source).scan({"n": ("$.n", "bigint"), "s": ("$.s", "string")}).to_spark()
    native = source.read.parquet(str(events)).selectExpr(
        "try_variant_get(v, '$.n', 'bigint') AS n", "try_variant_get(v, '$.s', 'string') AS s"
    )
    assert by_option.schema == by_schema.schema == by_call.schema
    for frame in (by_option, by_schema, by_call):
        assert frame.exceptAll(native).count() == 0
        assert frame.count() == 1000


def test_paths_variants_and_ordinary_columns_mix(source, events):
    frame = (
        source.read.format("variant")
        .schema("id bigint, n double, s variant, v variant")
        .option("paths", '{"n": "$.n", "s": "$.s"}')
        .load(str(events))
    )
    row = frame.where("id = 107").selectExpr("n", "to_json(s)", "to_json(v)").collect()
    assert [tuple(item) for item in row] == [(107.0, "[1]", '{"n":107,"s":[1]}')]


@pytest.mark.parametrize("pushdown", ["true", "false"])
def test_a_frame_may_be_filtered_in_many_ways_at_once(source, events, pushdown):
    source.conf.set("spark.sql.python.filterPushdown.enabled", pushdown)
    try:
        frame = (
            pv.open(events, engine=source)
            .scan({"n": ("$.n", "bigint"), "s": ("$.s", "string")})
            .to_spark(reader="python")
        )
        assert frame.where("n > 900").count() == 99
        assert frame.count() == 1000
        assert frame.where("n > 900").union(frame.where("n < 50")).count() == 149
        assert frame.where("n > 900 OR n < 50").count() == 149
        assert frame.where("s IS NULL OR s = 's17'").count() == 1
    finally:
        source.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.fixture(scope="module")
def typed(source, tmp_path_factory):
    """A row group a few rows, each path of another type, with values that are hard on bounds."""
    dest = tmp_path_factory.mktemp("typed") / "table"
    frame = source.sql(
        """SELECT to_variant_object(named_struct(
            'd', IF(id % 50 = 3, double('NaN'), IF(id % 50 = 4, double('-0.0'), id / 7)),
            'f', float(id) / 3, 'm', CAST(id AS DECIMAL(12, 3)) / 8, 'b', id % 2 = 0,
            't', timestamp_seconds(1700000000 + id * 3600),
            'n', timestamp_ntz '2024-01-01 00:00:00' + make_dt_interval(id), 'a', date_add(date '2024-01-01', int(id)),
            's', concat('k', lpad(id, 4, '0')), 'x', CAST(concat(id) AS BINARY)
        )) AS v FROM range(0, 200, 1, 1)"""
    )
    schema = "d double, f float, m decimal(20,5), b boolean, t timestamp, n timestamp_ntz, a date, s string, x binary"
    pv.write(dest, frame, schema=schema, rowGroupBytes=3_000)
    return dest


@pytest.mark.parametrize(
    "where",
    [
        "d > 27", "d = double('NaN')", "d < 1", "d = 0", "d <> 0 AND d < 0.5", "f >= 66", "m > 24.5", "m = 1.125", "b",
        "NOT b AND d > 28", "t > timestamp '2023-11-22 00:00:00Z'", "t <= timestamp '2023-11-14 23:13:20Z'",
        "n >= timestamp_ntz '2024-07-10 00:00:00'", "n = timestamp_ntz '2024-02-01 00:00:00'", "a < date '2024-01-05'",
        "a IN (date '2024-03-01', date '2030-01-01')", "s LIKE 'k019%'", "s >= 'k0190' AND s < 'k0193'", "s = 'k9'",
        "x = X'313939'", "d IS NOT NULL AND a IS NULL", "d <=> 0 OR s <=> NULL",
    ],
)  # fmt: skip
def test_no_type_loses_a_row_to_a_filter(source, typed, where):
    types = {
        "d": "double", "f": "float", "m": "decimal(20,5)", "b": "boolean", "t": "timestamp", "n": "timestamp_ntz",
        "a": "date", "s": "string", "x": "binary",
    }  # fmt: skip
    columns = {name: (f"$.{name}", kind) for name, kind in types.items()}
    native = source.read.parquet(str(typed)).selectExpr(
        *(f"variant_get(v, '$.{name}', '{kind}') AS {name}" for name, kind in types.items())
    )
    expected = sorted(map(str, native.where(where).collect()))
    for engine in ("auto", "python"):
        frame = pv.open(typed, engine=source).scan(columns).to_spark(reader=engine)
        assert sorted(map(str, frame.where(where).collect())) == expected, engine
    ours = where.replace("double('NaN')", "'NaN'")
    if "<=>" not in where and "NaN" not in where and where != "b" and "NOT b" not in where and "Z'" not in where:
        filtered = (
            pv.open(typed, engine=source).scan(columns, where=ours.replace("timestamp_ntz '", "timestamp '")).to_spark()
        )
        assert sorted(map(str, filtered.collect())) == expected


def _reader(events, ddl, **options):
    schema = StructType()
    for name, kind in (column.split() for column in ddl.split(", ")):
        schema = schema.add(name, kind)
    return BatchReader(ReadOptions.of({"path": str(events), "partitionBytes": "1", **options}), schema)


def test_where_skips_row_groups_and_filters_rows(source, events):
    paths = {"paths": '{"n": "$.n", "s": "$.s"}'}
    everything = _reader(events, "n long, s string", **paths).partitions()
    assert len(everything) > 8
    skipping = _reader(events, "n long, s string", where="n > 990 AND s LIKE 's%'", **paths)
    left = skipping.partitions()
    assert len(left) == 1
    rows = [row for part in left for batch in skipping.read(part) for row in batch.column("n").to_pylist()]
    assert rows == list(range(991, 1000))
    frame = pv.open(events, engine=source).scan({"n": ("$.n", "bigint")}, where="n > 990 OR n = 5").to_spark()
    assert frame.count() == 10
    assert frame.where("n < 100").count() == 1


def test_scans_take_the_conditions_and_wildcards_of_scans_without_spark(source, tmp_path):
    texts = ['{"n": 1, "s": "ab", "l": [1, 2]}', '{"n": 2, "s": "AB", "l": []}', '{"n": "3"}']
    pv.write(tmp_path, {"id": [1, 2, 3], "v": pv.parse_json(texts)}, format="delta")
    plain, in_spark = pv.open(tmp_path), pv.open(tmp_path, engine=source)
    for columns, where in (
        ({"n": "$.n:int"}, "upper(v:s::string) = 'AB'"),
        ({"n": "$.n:int", "id": "id"}, "n + id > 3"),
        ({"l": "$.l[*]:int", "m": "$.none[*]:int"}, None),
        ({"l": "$.l[*]:array<int>"}, "length($.s:string) = 2"),
    ):
        rows = in_spark.scan(columns, where).to_spark().toArrow().to_pylist()
        assert sorted(map(str, rows)) == sorted(map(str, plain.scan(columns, where).to_pylist()))
    for columns, where, message in (
        ({"n": "$.n:int"}, "uper(v:s::string) = 'AB'", "unknown function uper"),
        ({"n": "$.n:int"}, "upper(v:s::string", "invalid filter"),
        ({}, None, "columns"),
    ):
        with pytest.raises(pv.VariantError, match=message):
            in_spark.scan(columns, where).to_spark()


@pytest.mark.parametrize("options", [{}, {"paths": '{"n": "$.n"}'}])
@pytest.mark.parametrize(("files", "most"), [(20, 20), (100, 50)])
def test_many_small_files_share_tasks(tmp_path, options, files, most):
    for number in range(files):
        pv.write(tmp_path / f"{number:03d}.parquet", pv.from_python([{"n": number}]), schema="n int")
    schema = StructType().add("n", "long") if options else StructType().add("v", VariantType())
    reader = BatchReader(ReadOptions.of({"path": str(tmp_path), **options}), schema)
    partitions = reader.partitions()
    assert 20 <= len(partitions) <= most
    assert sum(batch.num_rows for part in partitions for batch in reader.read(part)) == files
    if options:
        found = [n for part in partitions for batch in reader.read(part) for n in batch.column("n").to_pylist()]
        assert found == list(range(files))


def test_nothing_matches_and_nothing_is_read(source, events):
    assert _reader(events, "n long", paths='{"n": "$.n"}', where="n > 5000").partitions() == []
    assert pv.open(events, engine=source).scan({"n": ("$.n", "bigint")}, where="n > 5000").to_spark().count() == 0


def test_where_without_columns_filters_whole_rows(source, tmp_path):
    rows = {"id": [1, 2, 3], "v": pv.parse_json(['{"n": 1}', '{"n": 2}', '{"n": 3}']), "w": pv.parse_json(["1"] * 3)}
    pv.write(tmp_path / "files" / "day=1" / "a.parquet", rows)
    pv.write(tmp_path / "table", rows, format="delta")
    for name, where in (("files", "day = 1 and id > 1 and $.n:int < 3"), ("table", "id > 1 and $.n:int < 3")):
        frame = pv.open(tmp_path / name, engine=source).scan(where=where, column="v").to_spark()
        assert frame.columns == ["id", "v", "w", "day"][: 4 if name == "files" else 3]
        assert [(row.id, row.v.toPython()) for row in frame.collect()] == [(2, {"n": 2})]
    assert _reader(tmp_path / "files", "id long, v variant", where="id > 3").partitions() == []


def test_where_that_cannot_be_asked_is_refused(source, events):
    with pytest.raises(VariantError, match="no column m: choose from"):
        _reader(events, "n long", paths='{"n": "$.n"}', where="m > 5").partitions()


def test_files_of_different_schemas_answer_together(source, tmp_path):
    dest = str(tmp_path / "t")
    for schema in ("a bigint", "a string", "variant"):
        frame = source.sql("""SELECT '{"a": 1}' AS v UNION ALL SELECT '{"a": "one"}'""")
        pv.write(dest, frame, schema=schema, mode="append")
    values = (
        pv.open(dest, engine=source)
        .scan({"a": ("$.a", "string")})
        .to_spark()
        .groupBy("a")
        .count()
        .orderBy("a")
        .collect()
    )
    assert [(row.a, row["count"]) for row in values] == [("1", 3), ("one", 3)]
    assert source.read.format("variant").load(dest).count() == 6


def test_what_cannot_be_read_is_one_error(source, events, tmp_path):
    (tmp_path / "x.parquet").write_text("no")
    cases = [
        (tmp_path / "nothing", None, VariantError, "does not exist"),
        (tmp_path / "x.parquet", None, VariantError, "Parquet"),
        (events, {"n": ("$.n", "biggint")}, VariantError, "biggint"),
        (events, {"n": ("$[", "bigint")}, VariantError, r"\$\["),
    ]
    for path, columns, error, message in cases:
        with pytest.raises(error, match=message):
            frame = pv.open(path, engine=source).scan(columns).to_spark()
            with from_spark_errors():
                frame.collect()


# -- streams


def test_a_stream_is_written_once_also_when_a_batch_is_repeated(source, tmp_path):
    incoming, dest, checkpoint = tmp_path / "in", tmp_path / "t", tmp_path / "checkpoint"
    incoming.mkdir()

    def feed(name, *lines):
        (incoming / name).write_text("".join(f"{line}\n" for line in lines))

    def run():
        query = (
            source.readStream.option("maxFilesPerTrigger", 1)
            .text(str(incoming))
            .writeStream.format("variant")
            .option("checkpointLocation", str(checkpoint))
            .option("schema", "a int")
            .trigger(availableNow=True)
            .start(str(dest))
        )
        query.awaitTermination()

    def values():
        return sorted(row["a"] for row in pv.open(dest).read().to_pylist())

    feed("0.txt", '{"a": 0}', '{"a": 1}')
    feed("1.txt", '{"a": 2}')
    run()
    assert values() == [0, 1, 2]
    # The query dies after the files were committed and before Spark wrote that down.
    last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())
    for path in (checkpoint / "commits").glob(f"*{last}*"):
        path.unlink()
    feed("2.txt", '{"a": 3}')
    run()
    assert values() == [0, 1, 2, 3]
    assert not (dest / "_temporary").exists()


def test_registering_allows_the_option_paths(source, events):
    name = "spark.sql.legacy.pathOptionBehavior.enabled"
    source.conf.set(name, "false")
    source.dataSource.register(pv.spark.VariantDataSource)
    reader = source.read.format("variant").schema("n double").option("paths", '{"n": "$.n"}')
    assert reader.load(str(events)).where("n > 997").count() == 2
    assert source.conf.get(name) == "true"


def test_the_type_may_follow_the_path(source, events):
    frame = source.read.format("variant").option("paths", '{"n": "$.n:bigint"}').load(str(events))
    assert (frame.schema.simpleString(), frame.where("n = 7").count()) == ("struct<n:bigint>", 1)


def test_relative_paths_are_the_drivers(source, tmp_path, monkeypatch):
    (tmp_path / "a.ndjson").write_text('{"a": 1}\n{"a": 2}\n')
    monkeypatch.chdir(tmp_path)
    result = pv.ingest("a.ndjson", "table", engine=source)
    assert (result.rows, result.dest) == (2, str(tmp_path / "table"))
    assert pv.open("table", engine=source).scan({"a": ("$.a", "int")}).to_spark(reader="python").count() == 2
    pv.write("copy", pv.open("table", engine=source).scan().to_spark(), schema="a int", sortBy=["$.a"])
    assert pv.open(tmp_path / "copy").read().to_pylist() == [{"a": 1}, {"a": 2}]


def test_columns_of_a_scan_are_names_and_arrow_types_as_without_spark(source, tmp_path):
    pv.write(tmp_path / "t", {"id": [1, 2], "a.b": [3, 4], "v": pv.parse_json(['{"n": 5}', "{}"])}, format="delta")
    for columns in (["id", "a.b"], "id", {"n": ("$.n", pa.int64())}):
        frame = pv.open(tmp_path / "t", engine=source).scan(columns, "id < 2").to_spark()
        assert [row.asDict() for row in frame.collect()] == pv.open(tmp_path / "t").scan(columns, "id < 2").to_pylist()
    for where in ([("id", "<", 2), ("$.n:int", "=", 5)], ("id", "in", [1, 7])):
        frame = pv.open(tmp_path / "t", engine=source).scan("id", where).to_spark()
        assert frame.count() == len(pv.open(tmp_path / "t").scan("id", where).to_pylist()) == 1
    with pytest.raises(VariantError, match="columns is 5"):
        pv.open(tmp_path / "t", engine=source).scan(5)
