"""The main job, end to end, on real data: JSON in, shredded Parquet out, queried by path. Run it with ``make demo``.

It does what a data engineer does with JSON in a lake: discover the schema as a distributed job, write a shredded table,
read answers out of it by path. All that it writes is in ``demo-output/``.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import parquet_variant as pv
from parquet_variant.shredding.explain import explain

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "examples" / "usgs_earthquakes.ndjson"
DEST = ROOT / "demo-output" / "earthquakes"

BEGUN = time.monotonic()


def main() -> None:
    """Run every step and print what it gives."""
    shutil.rmtree(DEST, ignore_errors=True)
    say("Starting a local Spark session")
    java = pv.spark.find_java()
    spark = pv.spark.local_session("parquet-variant demo")
    print(f"Spark {spark.version} on Java {java.version} ({java.source})")

    say(f"Ingesting {SOURCE.name}: one Spark job discovers the schema, one writes")
    result = pv.spark.ingest(spark, SOURCE, DEST, progress=show_progress)
    print(f"{result.rows:,} rows, {result.bad_records} bad lines")
    print(f"{result.bytes_read:,} bytes of JSON -> {result.bytes_written:,} bytes of Parquet")

    say("What was shredded, and why")
    print(explain(result.inference))

    say("What the files say: how much of each path is typed")
    show_files()

    say("Query 1, in Spark: the strongest earthquakes, by path")
    columns = {"mag": ("$.properties.mag", "double"), "place": ("$.properties.place", "string")}
    quakes = pv.spark.read(spark, DEST, columns)
    quakes.where("mag > 5.5").orderBy("mag", ascending=False).show(5, truncate=False)

    say("Query 2, in Spark SQL: how many of each kind, with the largest magnitude")
    kinds = {"kind": ("$.properties.type", "string"), "mag": ("$.properties.mag", "double")}
    pv.spark.read(spark, DEST, kinds).createOrReplaceTempView("quakes")
    spark.sql(
        "SELECT kind, count(*) AS quakes, max(mag) AS strongest FROM quakes GROUP BY kind ORDER BY quakes DESC"
    ).show()

    say("What query 1 reads: its columns, not the others")
    print(pv.parquet.scan(DEST, columns, "mag > 5.5").explain())

    say("And back: the first row as JSON, as it was")
    first = pv.parquet.read(DEST)[0]
    print(first.to_json()[:150] + " …")
    spark.stop()
    print(f"\nDone. The table is in {DEST.relative_to(ROOT)}/: try .venv/bin/variant inspect {DEST.relative_to(ROOT)}")


def say(title: str) -> None:
    """Print a heading, and the seconds so far."""
    print(f"\n== {title} ({time.monotonic() - BEGUN:.0f} s)", flush=True)


def show_progress(step: str, done: int, total: int) -> None:
    """Print which job begins."""
    if done == 0:
        print(f"  {step}: {total} task{'' if total == 1 else 's'}", flush=True)


def show_files() -> None:
    """Print the typed share of the paths, as the files' statistics have it."""
    (column,) = pv.parquet.inspect(DEST).columns
    leaves = [path for path in column.paths if path.typed_share is not None]
    rarest = sorted(leaves, key=lambda path: path.typed_share)[:4]
    print(f"{len(leaves)} typed columns. The ones that are null most often:")
    for path in rarest:
        print(f"  {dotted(path.path):<38} {path.typed_share:>6.1%} typed, {path.residual_share:.1%} JSON null")


def dotted(path: object) -> str:
    """The path as people write it, where it has no odd names."""
    return str(path).replace("['", ".").replace("']", "")


if __name__ == "__main__":
    main()
