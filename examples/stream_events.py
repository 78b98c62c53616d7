"""Messages as Kafka has them (`value`, binary) into a shredded Delta table, every message once, and what drifts.

Run: python examples/stream_events.py LOGS/ TABLE CHECKPOINT

The source is a directory that log files of JSON lines come into; for Kafka only `messages` differs. Run it again, also
after it was killed: it goes on where it was, and no message is in the table twice or not at all. A second stream reads
what the first has committed, and reports how it drifts from what the table shreds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import parquet_variant as pv
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.drift import find_drift


def messages(spark: Any, logs: str) -> Any:
    """What Kafka's source gives: ``spark.readStream.format("kafka").option("subscribe", "events")…``."""
    return spark.readStream.text(logs).selectExpr("CAST(value AS BINARY) AS value")


def shredded(spark: Any, logs: str, saved: Path) -> ShreddingSchema:
    """What the table shreds: inferred from what is there on the first run, and the same ever after."""
    if not saved.exists():
        saved.parent.mkdir(parents=True, exist_ok=True)
        first = spark.read.text(logs).selectExpr("try_parse_json(value) AS event")
        saved.write_text(pv.spark.infer_schema(first).to_json())
    return ShreddingSchema.from_json(saved.read_text())


def main(logs: str, table: str, checkpoint: str) -> None:
    """Take in what is new, then report on it; leave out `trigger` to go on for ever."""
    spark = pv.spark.local_session()
    spark.dataSource.register(pv.spark.VariantDataSource)
    schema = shredded(spark, logs, Path(checkpoint) / "schema.json")

    # What is no JSON stays as it came, in the column `bad`.
    events = messages(spark, logs).selectExpr(
        "try_parse_json(CAST(value AS STRING)) AS event",
        "CASE WHEN try_parse_json(CAST(value AS STRING)) IS NULL THEN value END AS bad",
    )
    taken = events.writeStream.format("variant").option("format", "delta").option("schema", schema.to_json())
    taken.option("checkpointLocation", f"{checkpoint}/events").trigger(availableNow=True).start(
        table
    ).awaitTermination()

    def report(batch: Any, number: int) -> None:
        bad = batch.where("bad IS NOT NULL").count()
        found = pv.spark.profile(batch, "event")
        print(f"batch {number}: {found.rows} messages, {bad} of them no JSON; {find_drift(schema, found)}", flush=True)

    new = spark.readStream.format("variant").load(table).writeStream.foreachBatch(report)
    new.option("checkpointLocation", f"{checkpoint}/drift").trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
