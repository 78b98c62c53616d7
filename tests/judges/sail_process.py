"""Read Iceberg tables with Sail: a process of its environment (`make judges` creates it), which prints JSON lines.

The arguments are locations of tables; each answer is the rows (id, JSON of the column v), or an error.
"""

import json
import os
import sys


def main() -> None:
    """Print the rows of every table."""
    from pysail.spark import SparkConnectServer
    from pyspark.sql.connect.session import SparkSession

    server = SparkConnectServer()
    server.start(background=True)
    spark = SparkSession.builder.remote(f"sc://localhost:{server.listening_address[1]}").getOrCreate()
    for location in sys.argv[1:]:
        try:
            rows = spark.read.format("iceberg").load(location).selectExpr("id", "to_json(v)").collect()
            answer = {"rows": sorted([row[0], row[1]] for row in rows)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {str(error)[:1000]}"}
        print(json.dumps(answer), flush=True)
    os.execlp("true", "true")  # the server does not end while a client is connected, so another program takes its place


if __name__ == "__main__":
    main()
