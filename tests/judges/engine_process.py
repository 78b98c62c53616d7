"""Run SQL in a Spark session with other table formats: a process that reads JSON lines and writes JSON lines.

The process runs in an environment of its own (`make judges` creates it), so it imports nothing from this repository.
Each input line is ``{"sql": …}`` or ``{"python": …}``; the answer is ``{"rows": […]}`` or ``{"error": …}``. Python code
runs with ``spark`` in scope and leaves its result in ``result``.
"""

import json
import os
import sys
from typing import Any


def start_session(configuration: dict[str, str]) -> Any:
    """Start a local Spark session with the given options."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    options = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.ui.showConsoleProgress": "false",
        # Short queries on a busy machine: less compilation, one thread that collects garbage.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        **configuration,
    }
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def answer(spark: Any, request: dict[str, str]) -> dict[str, Any]:
    """Run one request and return its rows, or the first lines of its error."""
    try:
        if "python" in request:
            scope: dict[str, Any] = {"spark": spark}
            exec(request["python"], scope)
            return {"rows": scope.get("result")}
        frame = spark.sql(request["sql"])
        return {"rows": [list(row) for row in frame.collect()]}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {str(error)[:2000]}"}


def main() -> None:
    """Answer requests until the input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print does not mix with the answers
    spark = start_session(json.loads(sys.argv[1]))
    spark.sparkContext.setLogLevel("ERROR")
    print(json.dumps({"rows": [[spark.version]]}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(spark, json.loads(line)), default=str), file=answers, flush=True)


if __name__ == "__main__":
    main()
