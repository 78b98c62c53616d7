"""A Parquet file with a column of JSON text becomes one with a shredded Variant column; the other columns stay.

Run: python examples/migrate_json_strings.py strings.parquet payload events.parquet
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow.parquet as pq

import parquet_variant as pv


def main(source: str, column: str, dest: str) -> None:
    """Infer one schema from a sample, write row group by row group, and say what it saved."""
    file = pq.ParquetFile(source)
    schema = pv.infer_shredding_schema(pv.parse_json(next(file.iter_batches(10_000, columns=[column]))[column]))
    with pv.parquet.VariantWriter(dest) as writer:
        for batch in file.iter_batches():
            columns = {name: batch[name] for name in batch.schema.names}
            columns[column] = pv.parse_json(batch[column], schema=schema)
            writer.write_batch(columns)
    before, after = Path(source).stat().st_size, Path(dest).stat().st_size
    print(f"{file.metadata.num_rows:,} rows, {before:,} bytes before, {after:,} after; typed: {schema.to_ddl()[:200]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
