"""Encodings of columns, chosen once for all tasks of a job, from the first rows of its input.

Owns which rows those are. Leaves the choice to `parquet.writing.encodings`; a task tries only columns that have no
values among them.
"""

from __future__ import annotations

from collections.abc import Sequence

from parquet_variant.errors import VariantError
from parquet_variant.ingest.request import IngestRequest
from parquet_variant.ingest.splits import Split
from parquet_variant.ingest.task import first_rows
from parquet_variant.parquet.writing.conform_table import conform_table
from parquet_variant.parquet.writing.encodings import ColumnEncodings, known_encodings
from parquet_variant.parquet.writing.options import WriterOptions
from parquet_variant.schema.shredding_schema import ShreddingSchema

# As many rows as are tried have rarely more text.
_TEXT_BYTES = 2 << 20


def planned_encodings(
    request: IngestRequest, schema: ShreddingSchema, tasks: Sequence[Sequence[Split]]
) -> ColumnEncodings | None:
    """The encodings of the columns that have values in the first rows; None where each task does better by itself.

    `request`: what is asked for.
    `tasks`: the splits of every task.
    """
    if request.format == "vortex" or (len(tasks) == 1 and not request.partition_by):
        return None
    try:
        rows = first_rows(tasks[0], schema, request.text, _TEXT_BYTES)
    except VariantError:
        return None  # the task says what is wrong, in its words
    if rows is None or not len(rows):
        return None
    options = WriterOptions(
        **{name: request.write[name] for name in ("compression", "compression_level") if name in request.write}
    )
    table, _ = conform_table({request.column: rows}, ())
    return known_encodings(table, options.compression, options.compression_level)
