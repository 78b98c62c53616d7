"""Write the archive of Spark's classes that every JVM of the tests shares, and otherwise loads and verifies itself.

That is half of the CPU time of a short session. The file is empty where Spark does not start. A JVM ignores an archive
that another JVM wrote, or that is of other jars.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Without the optimizing compiler, JVMs that live for seconds need half of the CPU time. An archive is of one collector.
JVM_FLAGS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def write_archive(archive: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        staged = Path(folder, "classes.jsa")
        flags = f"{JVM_FLAGS} -Xlog:disable -XX:ArchiveClassesAtExit={staged}"
        # The JVM writes the archive after Python's end. The call returns when both have closed the pipes.
        session = subprocess.run(
            [sys.executable, __file__, "--session", folder], capture_output=True, text=True, check=False, timeout=600,
            env=os.environ | {"SPARK_SUBMIT_OPTS": flags},
        )  # fmt: skip
        if staged.exists():
            new = archive.with_suffix(".new")
            new.write_bytes(staged.read_bytes())
            new.replace(archive)  # in one step, because tests may be running
        else:
            print(f"Spark's tests are slow or skipped, because its classes are not archived: {session.stderr[-1000:]}")
            archive.write_bytes(b"")


def use_spark(folder: str) -> None:
    """Do what many tests do, so that its classes are loaded."""
    import parquet_variant as pv
    from parquet_variant.spark.session import local_session

    source = Path(folder, "events.ndjson")
    source.write_text('{"a": 1, "b": ["x"]}\n{"a": 2, "c": {"d": 1.5}}\n')
    spark = local_session("classes", cores=1, memory="1g", **{"spark.sql.warehouse.dir": f"{folder}/warehouse"})
    pv.ingest(source, f"{folder}/events", engine=spark)
    pv.ingest(source, f"{folder}/table", engine=spark, format="delta")
    for name in ("events", "table"):
        table = pv.open(f"{folder}/{name}", engine=spark)
        table.scan({"a": "$.a:int"}, where="a > 1").to_spark().groupBy("a").count().orderBy("a").collect()
    variants = spark.read.text(str(source)).selectExpr("parse_json(value) v")
    variants.selectExpr("v", "variant_get(v, '$.a', 'int') a").write.parquet(f"{folder}/parquet")
    frame = spark.read.parquet(f"{folder}/parquet").select("a")
    frame.join(frame.groupBy("a").count(), "a").mapInArrow(lambda batches: batches, "a int, count bigint").count()
    stream = spark.readStream.format("text").load(f"{folder}/*.ndjson").writeStream.trigger(availableNow=True)
    stream.format("parquet").start(f"{folder}/stream", checkpointLocation=f"{folder}/state").awaitTermination()
    spark.stop()


if __name__ == "__main__":
    if sys.argv[1] == "--session":
        use_spark(sys.argv[2])
    else:
        write_archive(Path(sys.argv[1]))
