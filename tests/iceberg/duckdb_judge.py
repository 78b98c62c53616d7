"""Run SQL by DuckDB's Iceberg extension in an environment of its own, as a process that answers lines of JSON.

`JUDGE_DUCKDB` names the Python of an environment with duckdb==1.5.5, duckdb-extension-iceberg, duckdb-extension-avro
and duckdb-extension-httpfs of the same version, and pytz; tests of DuckLake load duckdb-extension-ducklake. As a script
it is the process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

PYTHON = os.environ.get("JUDGE_DUCKDB", "")
REASON = "needs JUDGE_DUCKDB: the Python of an environment with duckdb 1.5.5 and its Iceberg extension"


def is_there() -> bool:
    return bool(PYTHON) and Path(PYTHON).exists()


class Judge:
    """A DuckDB process."""

    def __init__(self, catalog: str | None = None) -> None:
        command = [PYTHON, __file__, *([] if catalog is None else [catalog])]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def sql(self, text: str) -> list[list[Any]]:
        """Return the rows of a query, values as JSON has them; raise what DuckDB raises as a RuntimeError."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(text) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        rows: list[list[Any]] = answer["rows"]
        return rows

    def load(self, extension: str) -> bool:
        """Load another extension, if the environment has it; return whether it does."""
        answer = self.sql(f"LOAD '{extension}'") if self._has(extension) else None
        return answer is not None

    def _has(self, extension: str) -> bool:
        command = [PYTHON, "-c", f"import duckdb_extension_{extension}"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(20)
        if self.process.stdout is not None:
            self.process.stdout.close()


def serve(catalog: str | None) -> None:
    import glob
    import sysconfig

    import duckdb

    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    site = sysconfig.get_paths()["purelib"]
    for name in ("avro", "httpfs", "iceberg"):
        (path,) = glob.glob(f"{site}/duckdb_extension_{name}/extensions/*/{name}.duckdb_extension")  # noqa: PTH207
        connection.execute(f"LOAD '{path}'")
    if catalog is not None:
        connection.execute(f"ATTACH '' AS lake (TYPE iceberg, ENDPOINT '{catalog}', AUTHORIZATION_TYPE 'none')")
    for line in sys.stdin:
        text = json.loads(line)
        if text.startswith("LOAD '"):
            name = text[6:-1]
            (path,) = glob.glob(f"{site}/duckdb_extension_{name}/extensions/*/{name}.duckdb_extension")  # noqa: PTH207
            text = f"LOAD '{path}'"
        try:
            rows = [list(row) for row in connection.execute(text).fetchall()]
            answer: dict[str, Any] = {"rows": rows}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer, default=str), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1] if len(sys.argv) > 1 else None)
