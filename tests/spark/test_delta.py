"""Delta tables through Spark: one commit a job, streams exactly once, reads of any version with pruning."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from pyspark.sql.types import StringType, StructType, VariantType

import parquet_variant as pv
from parquet_variant.errors import JsonError, TableError, VariantError
from parquet_variant.spark.datasource.options import ReadOptions, WriteOptions
from parquet_variant.spark.datasource.reading import BatchReader
from parquet_variant.spark.datasource.source import VariantDataSource
from parquet_variant.spark.datasource.writing import BatchWriter, StreamWriter


def _exact(text: str) -> object:
    return json.loads(text, parse_float=Decimal, parse_int=Decimal)


def _data_files(table):
    return {path.name for path in table.rglob("*.parquet") if "_delta_log" not in path.parts}


def _live_files(table):
    return set(pv.open(table).snapshot.files["path"].to_pylist())


@pytest.fixture(scope="module")
def source(spark):
    spark.dataSource.register(pv.spark.VariantDataSource)
    return spark


def test_ingest_makes_and_grows_a_table_in_one_commit_each(source, tmp_path, usgs_sample):
    table = tmp_path / "t"
    lines = usgs_sample.read_text().splitlines()
    result = pv.ingest(usgs_sample, table, engine=source, format="delta", split_bytes=400_000)
    assert (result.rows, len(result.files)) == (len(lines), 4)
    back = pv.to_json(pv.open(table).read()).to_pylist()
    assert [_exact(text) for text in back] == [_exact(line) for line in lines]
    with pytest.raises(TableError, match="already"):
        pv.ingest(usgs_sample, table, engine=source, format="delta")
    assert pv.ingest(usgs_sample, table, engine=source, format="delta", mode="ignore").rows == 0
    pv.ingest(usgs_sample, table, engine=source, format="delta", mode="append")
    assert pv.open(table).snapshot.version == 1
    assert len(pv.open(table).read()) == 2 * len(lines)


def test_a_failed_ingest_leaves_no_table_and_quarantine_counts(source, tmp_path):
    (tmp_path / "bad.json").write_text('{"a": 1}\n{\n')
    with pytest.raises(JsonError, match="line 2"):
        pv.ingest(tmp_path / "bad.json", tmp_path / "t", engine=source, format="delta", schema="a int")
    assert not (tmp_path / "t").exists()
    result = pv.ingest(tmp_path / "bad.json", tmp_path / "t", engine=source, format="delta", on_error="quarantine")
    assert (result.rows, result.bad_records) == (1, 1)
    assert pv.open(tmp_path / "t").read().to_pylist() == [{"a": 1}]


def test_frames_go_in_and_come_out(source, tmp_path):
    table = str(tmp_path / "t")
    frame = source.sql(
        """SELECT id, concat('p', id % 2) AS part, concat('{"n": ', id, '}') AS v, current_timestamp() AS ts,
        named_struct('x', parse_json('[1]')) AS s FROM range(10)"""
    )
    writer = frame.write.format("variant").option("format", "delta").option("column", "v").option("partitionBy", "part")
    writer.mode("append").save(table)
    current = pv.open(table).snapshot
    assert current.partition_columns == ("part",)
    ours = source.read.format("variant").load(table)
    assert ours.schema.simpleString() == ("struct<id:bigint,part:string,v:variant,ts:timestamp,s:struct<x:variant>>")
    rows = ours.selectExpr("id", "part", "to_json(v) AS v", "to_json(s.x) AS x", "ts").orderBy("id").collect()
    expected = frame.selectExpr("id", "part").orderBy("id").collect()
    assert [(row.id, row.part) for row in rows] == [tuple(row) for row in expected]
    assert [row.v for row in rows] == [f'{{"n":{n}}}' for n in range(10)]
    assert {row.x for row in rows} == {"[1]"}
    typed = source.read.format("variant").schema("n bigint, part string").option("columns", '{"n": "$.n"}')
    values = typed.option("column", "v").load(table).where("n > 6 AND part = 'p1'").collect()
    assert sorted(tuple(row) for row in values) == [(7, "p1"), (9, "p1")]


def test_modes_and_versions(source, tmp_path):
    table = tmp_path / "t"
    one, two = (source.sql(f"SELECT '{{\"a\": {n}}}' AS v") for n in (1, 2))
    pv.write(table, one, schema="a int", format="delta")
    with pytest.raises(TableError, match="already"):
        pv.write(table, two, schema="a int", format="delta")
    pv.write(table, two, schema="a int", format="delta", mode="append")
    pv.write(table, two, schema="a int", format="delta", mode="overwrite")
    newest = pv.open(table).snapshot.version

    def values(**options):
        frame = source.read.format("variant").options(**options).load(str(table))
        return sorted(row[0] for row in frame.selectExpr("variant_get(v, '$.a', 'int')").collect())

    assert values() == [2]
    assert values(versionAsOf=newest - 1) == [1, 2]
    assert values(versionAsOf=newest - 2) == [1]


@pytest.mark.parametrize(
    ("option", "value", "streams"),
    [("versionAsOf", "0", True), ("timestampAsOf", "x", True), ("startingVersion", "0", False)],
)
def test_options_of_streams_and_of_batches_are_distinguished(tmp_path, option, value, streams):
    pv.write(tmp_path / "t", {"v": pv.from_python([1])}, format="delta")
    source = VariantDataSource({"path": str(tmp_path / "t"), option: value})
    with pytest.raises(VariantError, match=option):
        (source.streamReader if streams else source.reader)(StructType().add("v", VariantType()))


def test_a_filter_opens_only_the_files_that_may_match(source, tmp_path):
    table = tmp_path / "t"
    for start in (0, 100, 200):
        frame = source.sql(f"SELECT concat('{{\"n\": ', id + {start}, '}}') AS v FROM range(100)")
        pv.write(table, frame, schema="n bigint", format="delta", mode="append")
    options = {"path": str(table), "columns": '{"n": "$.n"}', "partitionBytes": "1"}
    schema = StructType().add("n", "long")
    assert len(BatchReader(ReadOptions.of(options), schema).partitions()) == 3
    assert len(BatchReader(ReadOptions.of({**options, "where": "n > 250"}), schema).partitions()) == 1
    frame = pv.open(table, engine=source).scan({"n": ("$.n", "bigint")}, where="n > 250").to_spark()
    assert sorted(row.n for row in frame.collect()) == list(range(251, 300))


def test_a_failed_write_leaves_the_version_and_no_files(source, tmp_path):
    table = tmp_path / "t"
    pv.write(table, source.sql("SELECT '1' AS v"), schema="variant", format="delta")
    before = (pv.open(table).snapshot.version, _data_files(table))
    bad = source.sql("SELECT IF(id = 3, '{', '2') AS v FROM range(0, 5, 1, 1)")
    with pytest.raises(JsonError, match="row 3"):
        pv.write(table, bad, schema="variant", format="delta", mode="append")
    assert (pv.open(table).snapshot.version, _data_files(table)) == before


def _batch(*texts):
    import pyarrow as pa

    return iter([pa.RecordBatch.from_pydict({"v": list(texts)}, schema=pa.schema([pa.field("v", pa.string())]))])


def test_attempts_that_no_message_names_are_not_in_the_table(tmp_path):
    schema = StructType().add("v", StringType())
    options = WriteOptions.of({"path": str(tmp_path / "t"), "format": "delta", "schema": "a int"})
    writer, failed = (BatchWriter(options, schema, False) for _ in range(2))
    lost, kept = failed.write(_batch('{"a": 1}')), writer.write(_batch('{"a": 1}'))
    writer.commit([kept, None])
    assert _live_files(tmp_path / "t") == {kept.files[0].path}
    assert pv.open(tmp_path / "t").read().to_pylist() == [{"a": 1}]
    assert _data_files(tmp_path / "t") > _live_files(tmp_path / "t")
    failed.abort([lost, None])
    assert _data_files(tmp_path / "t") == _live_files(tmp_path / "t")


def test_a_repeated_stream_batch_is_committed_once_and_its_files_go(tmp_path):
    schema = StructType().add("v", StringType())
    given = {"path": str(tmp_path / "t"), "format": "delta", "schema": "a int", "txnAppId": "app"}
    for number, text in ((0, '{"a": 0}'), (1, '{"a": 1}'), (1, '{"a": 1}')):
        writer = StreamWriter(WriteOptions.of(given), schema, False)
        writer.commit([writer.write(_batch(text))], number)
    assert sorted(row["a"] for row in pv.open(tmp_path / "t").read().to_pylist()) == [0, 1]
    assert _data_files(tmp_path / "t") == _live_files(tmp_path / "t")
    assert pv.open(tmp_path / "t").snapshot.txns["app"].version == 1


def test_the_checkpoint_of_a_stream_may_be_in_its_new_table(tmp_path):
    checkpoint = tmp_path / "t" / "_checkpoint"
    checkpoint.mkdir(parents=True)
    (checkpoint / "metadata").write_text("id")
    given = {"path": str(tmp_path / "t"), "format": "delta", "schema": "a int", "checkpointLocation": str(checkpoint)}
    writer = StreamWriter(WriteOptions.of(given), StructType().add("v", StringType()), False)
    writer.commit([writer.write(_batch('{"a": 1}'))], 0)
    assert pv.open(tmp_path / "t").read().to_pylist() == [{"a": 1}]


def test_a_killed_query_goes_on_exactly_once(source, tmp_path):
    incoming, table, checkpoint = tmp_path / "in", tmp_path / "t", tmp_path / "checkpoint"
    incoming.mkdir()

    def feed(name, *numbers):
        (incoming / name).write_text("".join(f'{{"a": {number}}}\n' for number in numbers))

    def run():
        query = (
            source.readStream.option("maxFilesPerTrigger", 1)
            .text(str(incoming))
            .writeStream.format("variant")
            .option("format", "delta")
            .option("checkpointLocation", str(checkpoint))
            .option("schema", "a int")
            .trigger(availableNow=True)
            .start(str(table))
        )
        query.awaitTermination()

    feed("0.txt", 0, 1)
    feed("1.txt", 2)
    run()
    last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())
    for path in (checkpoint / "commits").glob(f"*{last}*"):
        path.unlink()
    feed("2.txt", 3)
    run()
    assert sorted(row["a"] for row in pv.open(table).read().to_pylist()) == [0, 1, 2, 3]
    assert _data_files(table) == _live_files(table)


def test_a_table_streams_what_is_there_and_then_what_is_appended(source, tmp_path):
    table, copy, checkpoint = str(tmp_path / "t"), str(tmp_path / "copy"), str(tmp_path / "checkpoint")

    def append(*numbers):
        frame = source.createDataFrame([(f'{{"a": {number}}}', number) for number in numbers], "v string, id int")
        pv.write(table, frame, column="v", schema="a int", format="delta", mode="append")

    def run(**options):
        stream = source.readStream.format("variant").options(**options).load(table)
        writer = stream.writeStream.format("variant").option("format", "delta").option("schema", "a int")
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start(copy)
        query.awaitTermination()

    def values():
        rows = pv.open(copy).to_arrow()
        return sorted(zip(rows["id"].to_pylist(), [row["a"] for row in pv.open(copy).read().to_pylist()], strict=True))

    append(1, 2)
    append(3)
    run()
    assert values() == [(1, 1), (2, 2), (3, 3)]
    append(4)
    append(5)
    pv.open(table).optimize()
    run()
    assert values() == [(n, n) for n in (1, 2, 3, 4, 5)]
    pv.write(table, source.sql("SELECT '1' AS v, 1 AS id"), column="v", format="delta", mode="overwrite")
    with pytest.raises(Exception, match="removes rows"):
        run()


def test_a_commit_of_which_nobody_knows_keeps_its_files(spark, tmp_path):
    import pyarrow as pa
    from pyspark.sql.types import StringType, StructType

    from parquet_variant.spark.datasource.options import WriteOptions
    from parquet_variant.spark.datasource.writing import BatchWriter

    def files():
        return sorted(path.name for path in tmp_path.rglob("*") if path.is_file() and "_delta_log" not in path.parts)

    schema = StructType().add("j", StringType())
    options = WriteOptions.of({"path": str(tmp_path / "t"), "format": "delta", "schema": "n int"})
    batch = pa.record_batch({"j": ['{"n": 1}']})
    writer = BatchWriter(options, schema, False)
    message = writer.write(iter([batch]))
    # A task of a job that is over, however it ends, leaves nothing of its own.
    writer.abort([message])
    kept = files()
    assert len(kept) == 1
    with pytest.raises(pv.VariantError, match="has ended"):
        writer.write(iter([batch]))
    assert files() == kept
    # No commit was tried where a task has no message.
    writer.abort([message, None])
    assert files() == []
