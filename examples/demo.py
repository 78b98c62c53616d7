"""The main job, end to end, on real data: JSON in, shredded Parquet out, queried by path. Run it with ``make demo``.

It infers the schema with a distributed job, writes a shredded table, and queries it by path, as a data engineer would
with JSON in a data lake. All output is written to ``demo-output/``.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import parquet_variant as pv
from parquet_variant.inference.explain import explain
from parquet_variant.spark.session import find_java

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "examples" / "usgs_earthquakes.ndjson"
DEST = ROOT / "demo-output" / "earthquakes"

STARTED = time.monotonic()


def main() -> None:
    """Run every step and print its result."""
    shutil.rmtree(DEST, ignore_errors=True)
    say("Starting a local Spark session")
    java = find_java()
    spark = pv.spark.local_session("parquet-variant demo")
    print(f"Spark {spark.version} on Java {java.version} ({java.source})")

    say(f"Ingesting {SOURCE.name}: one Spark job infers the schema, one writes")
    result = pv.ingest(SOURCE, DEST, engine=spark, progress=show_progress)
    print(f"{result.rows:,} rows, {result.bad_records} invalid lines")
    print(f"{result.bytes_read:,} bytes of JSON -> {result.bytes_written:,} bytes of Parquet")

    say("The shredding schema, with reasons")
    print(explain(result.inference))

    say("Typed share of the paths, from the statistics of the files")
    show_files()

    say("Query 1, in Spark: the strongest earthquakes, by path")
    columns = {"mag": ("$.properties.mag", "double"), "place": ("$.properties.place", "string")}
    quakes = pv.open(DEST, engine=spark).scan(columns).to_spark()
    quakes.where("mag > 5.5").orderBy("mag", ascending=False).show(5, truncate=False)

    say("Query 2, in Spark SQL: earthquakes and largest magnitude by kind")
    kinds = {"kind": ("$.properties.type", "string"), "mag": ("$.properties.mag", "double")}
    pv.open(DEST, engine=spark).scan(kinds).to_spark().createOrReplaceTempView("quakes")
    spark.sql(
        "SELECT kind, count(*) AS quakes, max(mag) AS strongest FROM quakes GROUP BY kind ORDER BY quakes DESC"
    ).show()

    say("Query 1 reads only the columns that it needs")
    print(pv.open(DEST).scan(columns, "mag > 5.5").explain())

    say("The first row as JSON")
    first = pv.open(DEST).read()[0]
    print(first.to_json()[:150] + " …")
    spark.stop()
    print(f"\nDone. The table is in {DEST.relative_to(ROOT)}/: try .venv/bin/variant inspect {DEST.relative_to(ROOT)}")


def say(title: str) -> None:
    """Print a heading with the elapsed seconds."""
    print(f"\n== {title} ({time.monotonic() - STARTED:.0f} s)", flush=True)


def show_progress(step: str, done: int, total: int) -> None:
    """Print the name of a job when it starts."""
    if done == 0:
        print(f"  {step}: {total} task{'' if total == 1 else 's'}", flush=True)


def show_files() -> None:
    """Print the typed share of the paths from the statistics of the files."""
    (column,) = pv.open(DEST).inspect().columns
    leaves = [path for path in column.paths if path.typed_share is not None]
    rarest = sorted(leaves, key=lambda path: path.typed_share)[:4]
    print(f"{len(leaves)} typed columns. The columns with the most nulls:")
    for path in rarest:
        print(f"  {dotted(path.path):<38} {path.typed_share:>6.1%} typed, {path.residual_share:.1%} JSON null")


def dotted(path: object) -> str:
    """Return a path in dotted notation."""
    return str(path).replace("['", ".").replace("']", "")


if __name__ == "__main__":
    main()
