"""Iceberg tables through Spark: one commit per job, streams exactly once, reads of any snapshot with pruning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructType, VariantType

import parquet_variant as pv
from parquet_variant.errors import IcebergError, JsonError, VariantError
from parquet_variant.spark.datasource.options import ReadOptions, WriteOptions
from parquet_variant.spark.datasource.reading import BatchReader, read_schema
from parquet_variant.spark.datasource.source import VariantDataSource
from parquet_variant.spark.datasource.streams import IcebergStreamReader
from parquet_variant.spark.datasource.writing import BatchWriter, StreamWriter

Catalog = dict[str, str]


@pytest.fixture(scope="module")
def source(spark: Any) -> Any:
    spark.dataSource.register(pv.spark.VariantDataSource)
    return spark


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": f"file://{tmp_path}/warehouse"}
    pv.create_namespace("db", catalog=catalog)
    return catalog


def options_of(catalog: Catalog) -> dict[str, str]:
    return {f"catalog.{name}": value for name, value in catalog.items()}


def data_files(directory: Path) -> set[str]:
    return {str(path) for path in directory.rglob("*.parquet")}


def live_files(table: Any, **options: Any) -> set[str]:
    current = pv.open(table, **options).snapshot
    return {entry.file.path.removeprefix("file://") for _, entry in current.live_entries(deletes=False)}


def numbers(table: Any, **options: Any) -> list[int]:
    return sorted(row["n"] for row in pv.open(table, **options).read().to_pylist())


def test_operations_take_tables_of_catalogs(source: Any, tmp_path: Path, catalog: Catalog) -> None:
    lines = tmp_path / "events.ndjson"
    lines.write_text("".join(json.dumps({"n": n, "kind": f"k{n % 2}"}) + "\n" for n in range(20)))
    options: dict[str, Any] = {"format": "iceberg", "catalog": catalog, "partition_by": "kind=$.kind:string"}
    assert pv.ingest(lines, "db.events", engine=source, split_bytes=200, **options).rows == 20
    with pytest.raises(IcebergError, match="already exists"):
        pv.ingest(lines, "db.events", engine=source, **options)
    assert len(pv.open("db.events", catalog=catalog).history()) == 1
    first = pv.open("db.events", catalog=catalog).snapshot.snapshot_id
    assert pv.open("db.events", catalog=catalog, engine=source).delete("v:n::int < 5").rows_deleted == 5
    assert pv.open("db.events", catalog=catalog, engine=source).update({"v:n": "-1"}, "v:n::int = 5").rows_updated == 1
    news = source.sql("""SELECT parse_json('{"n": 100, "kind": "k0"}') AS v, 'k0' AS kind""")
    merge = pv.open("db.events", catalog=catalog, engine=source).merge(news, "target.v:n::int = source.v:n::int")
    assert merge.when_not_matched_insert_all().execute().rows_inserted == 1
    assert pv.open("db.events", catalog=catalog, engine=source).optimize().files_added == 2
    assert numbers("db.events", catalog=catalog) == [-1, *range(6, 20), 100]
    for _ in range(2):
        result = pv.open("db.events", catalog=catalog, engine=source).delete("v:n::int = 100", batch=("job", 7))
    assert (result.rows_deleted, result.committed) == (0, False)
    with pytest.raises(VariantError, match="nope"):
        pv.open("db.events", catalog=catalog, engine=source).delete("v:n::int = 1", nope=3)
    pv.open("db.events", catalog=catalog).tag("old", version=first)
    paths = {"n": ("$.n", "int"), "kind": "kind"}
    typed = pv.open("db.events", catalog=catalog, engine=source).scan(paths, "n > 17 AND kind = 'k1'").to_spark()
    assert [tuple(row) for row in typed.collect()] == [(19, "k1")]
    for version in ({"tag": "old"}, {"version": first}):
        assert pv.open("db.events", catalog=catalog, **version, engine=source).scan().to_spark().count() == 20
    assert pv.open("db.events", catalog=catalog, branch="main", engine=source).scan().to_spark().count() == 15
    with pytest.raises(VariantError, match="versionAsOf also names"):
        pv.open("db.events", catalog=catalog, version=first, tag="old", engine=source).scan().to_spark()
    current = pv.open("db.events", catalog=catalog).snapshot
    query = "SELECT kind, count(*) AS c, sum(v:n::int) AS s FROM t GROUP BY kind ORDER BY kind"
    expected = pv.sql(query, t=current).to_pylist()
    assert [row.asDict() for row in pv.sql(query, engine=source, t=current).collect()] == expected


def test_frames_are_written_and_read(source: Any, tmp_path: Path, catalog: Catalog) -> None:
    frame = source.sql(
        """SELECT id, concat('p', id % 2) AS part, concat('{"n": ', id, '}') AS v, current_timestamp() AS ts,
        named_struct('x', parse_json('[1]')) AS s FROM range(10)"""
    )
    named = options_of(catalog)
    writer = frame.write.format("variant").options(**named).option("column", "v")
    writer.option("partitionBy", "part, bucket(2, id)").mode("append").save("db.events")
    spec = pv.open("db.events", catalog=catalog).snapshot.metadata.spec
    assert [field.name for field in spec.fields] == ["part", "id_bucket"]
    ours = source.read.format("variant").options(**named).load("db.events")
    assert ours.schema.simpleString() == ("struct<id:bigint,part:string,v:variant,ts:timestamp,s:struct<x:variant>>")
    rows = ours.selectExpr("id", "part", "to_json(v) AS v", "to_json(s.x) AS x").orderBy("id").collect()
    assert [tuple(row) for row in rows] == [(n, f"p{n % 2}", f'{{"n":{n}}}', "[1]") for n in range(10)]
    typed = source.read.format("variant").options(**named).option("column", "v")
    typed = typed.option("columns", '{"n": ["$.n", "int"], "file": "_file", "row": "_row_id"}').load("db.events")
    assert typed.selectExpr("count(DISTINCT row)", "count(DISTINCT file)").collect()[0][0] == 10
    # modes, and tables without a catalog
    table = tmp_path / "t"
    one, two = (source.sql(f"SELECT '{{\"n\": {n}}}' AS v") for n in (1, 2))
    pv.write(table, one, schema="n int", format="iceberg")
    with pytest.raises(IcebergError, match="already exists"):
        pv.write(table, two, schema="n int", format="iceberg")
    pv.write(table, two, schema="n int", format="iceberg", mode="append")
    assert numbers(table) == [1, 2]
    for _ in range(2):
        mode = {"mode": "append", "txnAppId": "job", "txnVersion": 1}
        pv.write(table, two, schema="n int", format="iceberg", **mode)
    assert numbers(table) == [1, 2, 2]
    two.write.format("variant").mode("overwrite").save(str(table))  # the path shows the format
    assert numbers(table) == [2]
    assert data_files(table) > live_files(table)
    bad = source.sql("SELECT IF(id = 3, '{', '2') AS v FROM range(0, 5, 1, 1)")
    before = data_files(table)
    with pytest.raises(JsonError, match="row 3"):
        pv.write(table, bad, schema="variant", format="iceberg", mode="append")
    assert data_files(table) == before


def test_a_filter_opens_only_files_that_may_match_and_options_are_checked(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for start in (0, 100, 200):
        rows = {"v": pv.parse_json([f'{{"n": {start + n}}}' for n in range(100)])}
        pv.write(table, rows, format="iceberg", mode="append")
    options = {"path": str(table), "columns": '{"n": "$.n"}', "partitionBytes": "1"}
    schema = StructType().add("n", "long")
    assert len(BatchReader(ReadOptions.of(options), schema).partitions()) == 3
    reader = BatchReader(ReadOptions.of({**options, "where": "n > 250"}), schema)
    (partition,) = reader.partitions()
    assert sorted(n for batch in reader.read(partition) for n in batch["n"].to_pylist()) == list(range(251, 300))
    variants = StructType().add("v", VariantType())
    for name, value, streams in (("snapshotId", "1", True), ("tag", "x", True), ("startingVersion", "1", False)):
        data_source = VariantDataSource({"path": str(table), name: value})
        with pytest.raises(VariantError, match=name):
            (data_source.streamReader if streams else data_source.reader)(variants)
    for wrong, match in (
        ({"branch": "x", "format": "delta"}, "branch"),
        ({"catalog": "x", "format": "delta"}, "catalog"),
        ({"format": "hudi"}, "parquet, delta or iceberg"),
    ):
        with pytest.raises(VariantError, match=match):
            ReadOptions.of({"path": str(table), **wrong})
    with pytest.raises(VariantError, match=r"partition columns of .* are none"):
        BatchWriter(WriteOptions.of({"path": str(table), "partitionBy": "v2=$.n:int"}), variants, False)


def _batch(*texts: str) -> Any:
    return iter([pa.RecordBatch.from_pydict({"v": list(texts)}, schema=pa.schema([pa.field("v", pa.string())]))])


def test_attempts_that_no_message_names_are_not_in_the_table(tmp_path: Path) -> None:
    schema = StructType().add("v", StringType())
    options = WriteOptions.of({"path": str(tmp_path / "t"), "format": "iceberg", "schema": "n int"})
    writer = BatchWriter(options, schema, False)
    writer.write(_batch('{"n": 2}'))
    kept = writer.write(_batch('{"n": 1}'))
    writer.commit([kept, None])
    assert live_files(tmp_path / "t") == {file.path.removeprefix("file://") for file in kept.files}
    assert numbers(tmp_path / "t") == [1]
    failed = BatchWriter(options, schema, False)
    lost = failed.write(_batch('{"n": 3}'))
    failed.abort([lost, None])
    assert len(data_files(tmp_path / "t")) == 2
    with pytest.raises(VariantError, match="has ended"):
        failed.write(_batch('{"n": 3}'))
    assert len(data_files(tmp_path / "t")) == 2


def test_a_repeated_stream_batch_is_committed_once_and_its_files_are_removed(tmp_path: Path, catalog: Catalog) -> None:
    schema = StructType().add("v", StringType())
    given = {"path": "db.events", **options_of(catalog), "schema": "n int", "txnAppId": "app"}

    def writer() -> StreamWriter:
        return StreamWriter(WriteOptions.of(given), schema, False)

    for number, text in ((0, '{"n": 0}'), (1, '{"n": 1}'), (1, '{"n": 1}')):
        # Spark commits with another writer than the tasks have.
        message = writer().write(_batch(text))
        writer().commit([message], number)
    assert numbers("db.events", catalog=catalog) == [0, 1]
    # A driver that another has replaced commits the same batch with the state of the table from before.
    late, replaying = writer(), writer()
    messages = [late.write(_batch('{"n": 2}')), replaying.write(_batch('{"n": 2}'))]
    late.commit([messages[0]], 2)
    pv.open("db.events", catalog=catalog).delete("v:n::int = 0")
    replaying.commit([messages[1]], 2)
    assert numbers("db.events", catalog=catalog) == [1, 2]
    written = [file.path.removeprefix("file://") for message in messages for file in message.files]
    assert [path in data_files(tmp_path / "warehouse") for path in written] == [True, False]


def test_a_stream_reads_every_appended_row_once(tmp_path: Path) -> None:
    table = tmp_path / "t"

    def rows(*values: int) -> dict[str, Any]:
        return {"v": pv.from_python([{"n": n} for n in values])}

    def reader(**options: Any) -> IcebergStreamReader:
        parsed = ReadOptions.of({"path": str(table), "columns": '{"n": ["$.n", "bigint"]}', **options}, stream=True)
        return IcebergStreamReader(parsed, read_schema(parsed))

    def run(start: Any = None, **options: Any) -> tuple[list[list[int]], Any]:
        """Run micro-batches until nothing is new; each is read twice, the second time by a restarted query."""
        stream = reader(**options)
        stream.prepareForTriggerAvailableNow()
        start = stream.initialOffset() if start is None else start
        batches = []
        while (end := stream.latestOffset(start, stream.getDefaultReadLimit())) != start:
            for query in (stream, reader(**options)):
                parts = query.partitions(start, end)
                batches.append(
                    sorted(n for part in parts for batch in query.read(part) for n in batch["n"].to_pylist())
                )
            assert batches.pop() == batches[-1]
            start = end
        return batches, start

    pv.write(table, rows(1), format="iceberg")
    pv.open(table).append(rows(2))
    pv.open(table).delete("v:n::int = 2")
    batches, end = run()
    assert (batches, end) == ([[1]], {"version": 3})
    second = pv.open(table).append(rows(3)).snapshot_id
    pv.open(table).append(rows(4))
    pv.open(table).optimize()
    pv.open(table).append(rows(5))
    assert run(end)[0] == [[3, 4, 5]]
    batches, newest = run(end, maxFilesPerTrigger="1")
    assert batches == [[3], [4], [5]]
    assert run(startingVersion=str(second), maxFilesPerTrigger="2")[0] == [[3, 4], [5]]
    pv.open(table).update({"v:n": "30"}, "v:n::int = 3")
    pv.open(table).append(rows(6))
    with pytest.raises(IcebergError, match="skipChangeCommits"):
        run(newest)
    assert run(newest, skipChangeCommits="true")[0] == [[6]]
    pv.open(table).restore(version=second)
    pv.open(table).append(rows(7))
    with pytest.raises(IcebergError, match="rolled back"):
        run(newest)


def test_a_killed_query_continues_exactly_once(source: Any, tmp_path: Path, catalog: Catalog) -> None:
    table, checkpoint = str(tmp_path / "t"), tmp_path / "checkpoint"
    named = options_of(catalog)

    def run() -> None:
        stream = source.readStream.format("variant").option("maxFilesPerTrigger", 1).load(table)
        writer = stream.writeStream.format("variant").options(**named).option("schema", "n int")
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start("db.copy")
        query.awaitTermination()

    pv.write(table, {"v": pv.from_python([{"n": 0}])}, format="iceberg")
    pv.open(table).append({"v": pv.from_python([{"n": 1}])})
    run()
    last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdigit())
    for path in (checkpoint / "commits").glob(f"*{last}*"):
        path.unlink()
    pv.open(table).append({"v": pv.from_python([{"n": 2}])})
    run()
    assert numbers("db.copy", catalog=catalog) == [0, 1, 2]
    assert data_files(tmp_path / "warehouse") == live_files("db.copy", catalog=catalog)
