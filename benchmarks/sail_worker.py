"""PySail behind a pipe: runs in its own environment, whose PySpark client is older than ours; no import of ours.

Owns the server and the session. Reads one JSON command a line, ``{"write": [ndjson, directory]}`` or
``{"query": [directory, expression, …]}``, and answers each with one line: the first row, or the error.
"""

from __future__ import annotations

import json
import os
import sys
import warnings


def main() -> None:
    os.sched_setaffinity(0, {0})  # one core, as the other contenders have
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the server prints does not get into the answers
    warnings.simplefilter("ignore")
    from pysail.spark import SparkConnectServer
    from pyspark.sql import SparkSession

    server = SparkConnectServer()
    server.start(background=True)
    session = SparkSession.builder.remote(f"sc://localhost:{server.listening_address[1]}").getOrCreate()
    print(json.dumps("ready"), file=answers)
    for line in sys.stdin:
        command = json.loads(line)
        try:
            if "write" in command:
                source, directory = command["write"]
                session.read.text(source).selectExpr("parse_json(value) AS v").write.parquet(directory)
                answer: object = []
            else:
                directory, *expressions = command["query"]
                answer = list(session.read.parquet(directory).selectExpr(*expressions).collect()[0])
        except Exception as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), file=answers)
    server.stop()


if __name__ == "__main__":
    main()
