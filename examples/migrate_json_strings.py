"""Convert a column of JSON strings in a Parquet file to a shredded Variant column; other columns are kept.

Run: python examples/migrate_json_strings.py strings.parquet payload events.parquet
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.parquet as pq

import parquet_variant as pv


def main(source: str, column: str, dest: str) -> None:
    """Infer a schema from a sample, write row group by row group, and print the sizes."""
    file = pq.ParquetFile(source)
    schema = pv.infer_shredding_schema(pv.parse_json(next(file.iter_batches(10_000, columns=[column]))[column]))
    with pv.VariantWriter(dest) as writer:
        for batch in file.iter_batches():
            columns = {name: batch[name] for name in batch.schema.names}
            columns[column] = pv.parse_json(batch[column], schema=schema)
            writer.write_batch(columns)
    before, after = Path(source).stat().st_size, Path(dest).stat().st_size
    print(f"{file.metadata.num_rows:,} rows, {before:,} bytes before, {after:,} after; typed: {schema.to_ddl()[:200]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
