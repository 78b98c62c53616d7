"""File sizes, same codec: ours against Spark's and DuckDB's shredded files and unshredded Variant."""

from __future__ import annotations

from pathlib import Path

from benchmarks.data import data_sets
from benchmarks.files import our_file, unshredded_file
from benchmarks.works import ingest


def table() -> str:
    """The sizes as Markdown; goal: at most 0.85 of the peers'."""
    lines = [
        "### sizes: shredded files, zstd, bytes",
        "",
        "| data | ours | unshredded | Spark | DuckDB, automatic | ours ÷ Spark | ours ÷ DuckDB | goal ≤ 0.85 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for data in data_sets():
        ours, plain = Path(our_file(data)).stat().st_size, Path(unshredded_file(data)).stat().st_size
        ingest._spark_native(data)
        spark = sum(part.stat().st_size for part in _out("spark-native").glob("*.parquet"))
        ingest._duckdb(data, same_schema=False)
        duck = _out("duckdb.parquet").stat().st_size
        met = "met" if max(ours / spark, ours / duck) <= 0.85 else "missed"
        lines.append(
            f"| {data.name} | {ours:,} | {plain:,} | {spark:,} | {duck:,} | {ours / spark:.2f} | {ours / duck:.2f} "
            f"| {met} |"
        )
    return "\n".join([*lines, ""])


def _out(name: str) -> Path:
    from benchmarks.data import scratch

    return scratch() / "out" / name
