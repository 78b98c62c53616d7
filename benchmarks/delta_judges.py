"""Who else reads the Delta tables that we write: ``python -m benchmarks.delta_judges`` prints docs/delta.md's table.

Each cell says what a reader answered when asked for the sum of a plain column (PySail: of a path of the Variant, too):
right, the error's first words, or wrong. PySail and DuckDB's extension run in environments of their own
(`PYSAIL_PYTHON`: pysail, pyspark-client; `DUCKDB_DELTA_PYTHON`: duckdb==1.5.5, duckdb-extension-delta); a reader that
is not installed is left out.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import parquet_variant as pv

_SAIL = os.environ.get("PYSAIL_PYTHON") or str(Path(sys.prefix) / "sail/bin/python")
_SAIL_SCRIPT = """
import json, sys
from pysail.spark import SparkConnectServer
from pyspark.sql.connect.session import SparkSession
server = SparkConnectServer(); server.start(background=True)
spark = SparkSession.builder.remote(f"sc://localhost:{server.listening_address[1]}").getOrCreate()
for path in sys.argv[1:]:
    try:
        table = spark.read.format("delta").load(path)
        columns = ["k", "variant_get(v, '$.n', 'int')"] if "v" in table.columns else ["k", "k"]
        rows = table.selectExpr(*columns).collect()
        sums = [sum(row[0] for row in rows), sum(row[1] for row in rows)]
        print(json.dumps(sums[0] if sums[0] == sums[1] else f"WRONG Variants: {sums}"), flush=True)
    except Exception as error:
        print(json.dumps(str(error).strip().splitlines()[0][:200]), flush=True)
"""
_DUCKDB = os.environ.get("DUCKDB_DELTA_PYTHON") or str(Path(sys.prefix) / "duckdb-delta/bin/python")
_DUCKDB_SCRIPT = """
import glob, json, os, sys, duckdb, duckdb_extension_delta
folder = os.path.join(os.path.dirname(duckdb_extension_delta.__file__), "extensions")
(extension,) = glob.glob(os.path.join(folder, "*", "delta.duckdb_extension"))
for path in sys.argv[1:]:
    try:
        connection = duckdb.connect()
        connection.execute(f"LOAD '{extension}'")
        relation = connection.sql(f"FROM delta_scan('{path}')")
        n = "(v::JSON->>'n')::INT" if "v" in relation.columns else "k"
        sums = relation.aggregate(f"sum(k), sum({n})").fetchone()
        print(json.dumps(int(sums[0]) if sums[0] == sums[1] else f"WRONG Variants: {sums}"), flush=True)
    except Exception as error:
        print(json.dumps(" ".join(str(error).split())[:300]), flush=True)
"""


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        tables = {name: make(Path(folder) / str(at), change) for at, (name, change) in enumerate(_TABLES.items())}
        expected = {name: sum(pv.open(path).to_arrow()["k"].to_pylist()) for name, path in tables.items()}
        answers = {judge: ask(list(tables.values())) for judge, ask in _JUDGES.items()}
        asked = {judge: found for judge, found in answers.items() if found is not None}
        print("| table | " + " | ".join(asked) + " |")
        print("|---" * (len(asked) + 1) + "|")
        for at, name in enumerate(tables):
            cells = [_verdict(found[at], expected[name]) for found in asked.values()]
            print(f"| {name} | " + " | ".join(cells) + " |")


def make(path: Path, change: Callable[[Path], Any]) -> Path:
    """A table of ten rows, and what the feature asks for on top."""
    change(path)
    return path


def _rows() -> dict[str, Any]:
    return {"k": list(range(10)), "v": pv.parse_json([json.dumps({"n": n, "s": f"x{n}"}) for n in range(10)])}


def _write(path: Path, **properties: Any) -> None:
    pv.write(path, _rows(), format="delta", properties=properties)


def _plain(path: Path, **properties: Any) -> None:
    pv.write(path, {"k": list(range(10))}, format="delta", properties=properties)


def _plain_vectors(path: Path) -> None:
    _plain(path, **{"delta.enableDeletionVectors": True})
    pv.open(path).delete("k < 3")


def _then(change: Callable[[Path], Any], **properties: Any) -> Callable[[Path], Any]:
    def run(path: Path) -> None:
        _write(path, **properties)
        change(path)

    return run


def _deleted(path: Path) -> None:
    pv.open(path).delete("v:n::int < 3")


_TABLES: dict[str, Callable[[Path], Any]] = {
    "no variants": _plain,
    "no variants, deletion vectors": _plain_vectors,
    "no variants, column mapping": lambda path: _plain(path, **{"delta.columnMapping.mode": "name"}),
    "unshredded": lambda path: _write(path, **{"delta.enableVariantShredding": False}),
    "shredded": _write,
    "shredded, by the preview's name": lambda path: pv.write(path, _rows(), format="delta", preview=True),
    "rows deleted, files rewritten": _then(_deleted),
    "rows deleted, deletion vectors": _then(_deleted, **{"delta.enableDeletionVectors": True}),
    "column mapping": lambda path: _write(path, **{"delta.columnMapping.mode": "name"}),
    "row tracking, in-commit timestamps": lambda path: _write(
        path, **{"delta.enableRowTracking": True, "delta.enableInCommitTimestamps": True}
    ),
    "V2 checkpoint": _then((lambda path: pv.open(path).checkpoint()), **{"delta.checkpointPolicy": "v2"}),
}


def _each(ask: Callable[[Path], Any]) -> Callable[[list[Path]], list[Any]]:
    def run(paths: list[Path]) -> list[Any]:
        found = []
        for path in paths:
            try:
                found.append(ask(path))
            except BaseException as error:  # Rust panics are no Exceptions.
                found.append(str(error).strip().splitlines()[0][:60])
        return found

    return run


def _deltalake_log(path: Path) -> Any:
    import deltalake

    table = deltalake.DeltaTable(str(path))
    rows = pv.open(path).to_arrow()["k"].to_pylist()
    return sum(rows) if table.version() == pv.open(path).snapshot.version else "another version"


def _deltalake_data(path: Path) -> Any:
    import deltalake

    return sum(deltalake.DeltaTable(str(path)).to_pyarrow_table(columns=["k"])["k"].to_pylist())


def _polars(path: Path) -> Any:
    import polars

    return int(polars.scan_delta(str(path)).select("k").collect()["k"].sum())


def _elsewhere(python: str, script: str, paths: list[Path]) -> list[Any] | None:
    """The answers of a reader in another environment; None without a reader."""
    if not Path(python).exists():
        return None
    # A file: with `python -c`, PySpark's client looks for a whole Spark.
    file = paths[0].parent / "judge.py"
    file.write_text(script)
    command = [python, str(file), *map(str, paths)]
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=clean, check=False)
    found = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
    return found + ["no answer"] * (len(paths) - len(found)) if found else None  # It did not start.


def _verdict(answer: Any, expected: int) -> str:
    if isinstance(answer, int):
        return "yes" if answer == expected else f"WRONG ({answer}, not {expected})"
    text = str(answer)
    named = sorted(
        {word for word in ("variantShredding", "deletionVectors", "columnMapping", "v2Checkpoint") if word in text}
    )
    return "no: " + (", ".join(named) if named else text[:60].replace("|", "/"))


_JUDGES: dict[str, Callable[[list[Path]], list[Any] | None]] = {
    "delta-rs, log": _each(_deltalake_log),
    "delta-rs, data": _each(_deltalake_data),
    "polars": _each(_polars),
    "PySail": partial(_elsewhere, _SAIL, _SAIL_SCRIPT),
    "DuckDB's extension": partial(_elsewhere, _DUCKDB, _DUCKDB_SCRIPT),
}

if __name__ == "__main__":
    main()
