"""Stream messages in the form of Kafka (`value`, binary) into a shredded Delta table, exactly once, and report drift.

Run: python examples/stream_events.py LOGS/ TABLE CHECKPOINT

The source is a directory of log files with JSON lines; for Kafka only `messages` differs. When the program is run
again, also after it was killed, it continues: every message is in the table exactly once. A second stream reads the
committed messages and reports how they drift from the shredding schema.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import parquet_variant as pv
from parquet_variant.inference.infer import find_drift
from parquet_variant.layouts.shredding_schema import ShreddingSchema


def messages(spark: Any, logs: str) -> Any:
    """Return a stream like ``spark.readStream.format("kafka").option("subscribe", "events")…``."""
    return spark.readStream.text(logs).selectExpr("CAST(value AS BINARY) AS value")


def shredding_schema(spark: Any, logs: str, saved: Path) -> ShreddingSchema:
    """Return the shredding schema: inferred from the first files on the first run, and then loaded."""
    if not saved.exists():
        saved.parent.mkdir(parents=True, exist_ok=True)
        first = spark.read.text(logs).selectExpr("try_parse_json(value) AS event")
        saved.write_text(pv.spark.infer_schema(first).to_json())
    return ShreddingSchema.from_json(saved.read_text())


def main(logs: str, table: str, checkpoint: str) -> None:
    """Append new messages, then report on them. Without `trigger` the streams run until they are stopped."""
    spark = pv.spark.local_session()
    spark.dataSource.register(pv.spark.VariantDataSource)
    schema = shredding_schema(spark, logs, Path(checkpoint) / "schema.json")

    # Invalid JSON is kept unchanged in the column `bad`.
    events = messages(spark, logs).selectExpr(
        "try_parse_json(CAST(value AS STRING)) AS event",
        "CASE WHEN try_parse_json(CAST(value AS STRING)) IS NULL THEN value END AS bad",
    )
    writer = events.writeStream.format("variant").option("format", "delta").option("schema", schema.to_json())
    writer.option("checkpointLocation", f"{checkpoint}/events").trigger(availableNow=True).start(
        table
    ).awaitTermination()

    def report(batch: Any, number: int) -> None:
        bad = batch.where("bad IS NOT NULL").count()
        profile = pv.open(batch, column="event").profile()
        print(f"batch {number}: {profile.rows} messages, {bad} invalid; {find_drift(schema, profile)}", flush=True)

    new = spark.readStream.format("variant").load(table).writeStream.foreachBatch(report)
    new.option("checkpointLocation", f"{checkpoint}/drift").trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
