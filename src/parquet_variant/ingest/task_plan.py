"""`TaskPlan`: what a job found, once, for all its tasks.

Owns what is sent along with the splits. Leaves finding it to `job`, and following it to `task` and the destinations.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from parquet_variant.parquet.writing.encodings import ColumnEncodings
from parquet_variant.schema.shredding_schema import ShreddingSchema

__all__ = ["TaskPlan"]


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """What the job found for all its tasks.

    Parameters
    ----------
    schema
        What to shred.
    threads
        How many threads a task has: more than one where there are fewer tasks than cores.
    encodings
        How columns are encoded, for Parquet files; None leaves it to the tasks.
    fields
        All columns of the rows, if the JSON is a column of a table.
    """

    schema: ShreddingSchema
    threads: int = 1
    encodings: ColumnEncodings | None = None
    fields: tuple[pa.Field, ...] = ()
