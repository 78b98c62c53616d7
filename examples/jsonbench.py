"""The first query of JSONBench in ten lines: ingest events, then count them by collection.

Run: python examples/jsonbench.py events.ndjson bluesky
"""

from __future__ import annotations

import sys

import parquet_variant as pv

if __name__ == "__main__":
    source, table = sys.argv[1:]
    print(pv.ingest(source, table, mode="overwrite").rows, "events")
    query = "SELECT v:commit.collection::string AS event, count(*) AS n FROM t GROUP BY event ORDER BY n DESC"
    print(pv.sql(query, t=table))
