"""The runs behind the table of engines in `Table.validate`: `python -m benchmarks.engine_runs [--python PYTHON]`.

Writes a file for each trait that matters to an engine, tries the engines on it by `Table.compat`, and stores what they
did in ``parquet/validation/engine_runs.json``. Engines that are not installed keep the result of their last run. A
limit that a run does not show is not reported by `validate`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import tempfile
import uuid
from pathlib import Path

import pyarrow as pa

import parquet_variant as pv
from parquet_variant.files.parquet.validation.validate import ENGINE_LIMITS, RUNS_FILE

# The engine of a limit -> its name in `Table.compat`.
ENGINES = {
    "DuckDB 2.0": "duckdb",
    "polars 2.1": "polars",
    "pyarrow 22 and newer": "pyarrow",
    "Spark 4.3": "spark",
    "Sail 0.7": "sail",
    "ClickHouse": "chdb",
}


def write_subjects(folder: Path) -> dict[str, Path]:
    """Write one file per trait, and return the files."""
    nanos = pa.array([1], pa.timestamp("ns")).cast(pa.timestamp("ns", "UTC"))
    rows = {
        "annotated": (pv.parse_json(['{"a": 1, "s": "x"}', '{"a": "x"}']), "a bigint, s string"),
        "nested": (pv.parse_json(['{"o": {"a": 1}, "xs": [1]}', "{}"]), "o struct<a bigint>, xs array<bigint>"),
        "TIME": (pv.from_python([datetime.time(1, 2, 3)]), "time"),
        "NANOS": (pv.cast_to_variant(nanos), "timestamp_nanos"),
        "UUID": (pv.from_python([uuid.UUID(int=5)]), "uuid"),
        "case_twins": (pv.parse_json(['{"xs": [{"n": 1, "N": 2}]}']), "xs array<struct<n bigint, N bigint>>"),
    }
    files = {}
    for trait, (values, schema) in rows.items():
        files[trait] = folder / f"{trait}.parquet"
        try:
            pv.write(files[trait], {"v": values}, schema=schema)
        except pv.VariantError as error:
            print(f"{trait}: {error}")
            del files[trait]
    return files


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine_runs")
    parser.add_argument("--python", action="append", default=[], help="the Python of another environment")
    parser.add_argument("--engine", action="append", help="only this engine, by its name in Table.compat")
    options = parser.parse_args()
    runs = json.loads(RUNS_FILE.read_text()) if RUNS_FILE.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        files = write_subjects(Path(folder))
        for limit in ENGINE_LIMITS:
            engine = ENGINES.get(limit.engine)
            if engine is None or limit.trait not in files or (options.engine and engine not in options.engine):
                continue
            (result,) = (
                pv.open(files[limit.trait]).compat(engines=[engine], pythons=options.python, timeout=600).engines
            )
            if result.verdict != "not installed" and "no answer" not in result.detail:
                # Without the time, which differs in each run, and without the command, which the limit names.
                detail = re.sub(r"[,;] ([0-9,]+ rows? in|readable after).*", "", result.detail).replace(folder, "")
                runs[f"{limit.engine}: {limit.trait}"] = {
                    "engine": result.engine, "verdict": result.verdict, "detail": detail,
                }  # fmt: skip
                print(f"{result.engine}, {limit.trait}: {result.verdict}: {detail}", flush=True)
    RUNS_FILE.write_text(json.dumps(dict(sorted(runs.items())), indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
