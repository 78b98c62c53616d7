"""The rows of a DataFrame as Spark sends them to a writing task, as columns with shredded Variants.

Owns which column becomes the Variant, the batches' size, the parsing of JSON text, and the schema where none is given.
Leaves what is done with the columns to the writers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StringType, StructType, VariantType

from parquet_variant.array.parts import one_chunk
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import JsonError, VariantError
from parquet_variant.functions.parse_json import parse_json
from parquet_variant.functions.shred_variant import infer_shredding_schema, shred_variant
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.spark.arrow_variant import from_spark, is_spark_variant

# Spark sends 10,000 rows at a time; larger batches share dictionaries and amortise the kernels' set-up.
_BATCH_BYTES = 16 << 20
# Rows that a file's schema is inferred from where none is given.
_SAMPLE_BYTES = 64 << 20


def choose_column(schema: StructType, name: str | None) -> tuple[str, bool]:
    """The column that becomes the Variant, and whether it holds JSON text.

    Raises `VariantError` with reason ``"bad-column"`` if there is no such column, none at all, or more than one and no
    name.
    """
    types = {field.name: field.dataType for field in schema.fields}
    variants = [column for column, kind in types.items() if isinstance(kind, VariantType)]
    texts = [column for column, kind in types.items() if isinstance(kind, StringType)]
    if name is not None:
        if name not in (*variants, *texts):
            listed = ", ".join(variants + texts) or "none"
            raise VariantError(
                f"column {name!r} is not a VARIANT or string column: choose from {listed}", reason="bad-column"
            )
        return name, name in texts
    candidates = variants or texts
    if len(candidates) != 1:
        listed = ", ".join(candidates) or "none"
        raise VariantError(
            f"the option column must name the VARIANT or JSON string column; candidates: {listed}", reason="bad-column"
        )
    return candidates[0], not variants


class Frame:
    """What a task needs to know of the DataFrame; pickled into every task.

    Parameters
    ----------
    schema
        The DataFrame's schema.
    column
        The VARIANT or JSON string column; by default the only one.
    shredding
        What to shred of it; None if the first rows are to choose.
    """

    def __init__(self, schema: StructType, column: str | None, shredding: ShreddingSchema | None) -> None:
        self.schema = schema
        self.column, self.is_json = choose_column(schema, column)
        self.shredding = shredding

    def columns(self, batches: Iterable[pa.RecordBatch], task: int) -> Iterator[dict[str, Any]]:
        """The columns to write, by name: VARIANTs and the JSON text as `VariantArray`, the chosen one shredded.

        Raises `JsonError` for a row that is no JSON, with its number in the partition.
        """
        tables = _joined(batches, _BATCH_BYTES)
        shredding = self.shredding
        if shredding is None:
            head: list[pa.Table] = []
            while sum(table.nbytes for table in head) < _SAMPLE_BYTES and (table := next(tables, None)) is not None:
                head.append(table)
            if not head:
                return
            sample = [self._columns(table, None, task, 0)[self.column] for table in head]
            shredding = infer_shredding_schema(VariantArray.concat(sample))
            tables = chain(head, tables)
        done = 0
        for table in tables:
            yield self._columns(table, shredding, task, done)
            done += len(table)

    def _columns(self, table: pa.Table, schema: ShreddingSchema | None, task: int, first_row: int) -> dict[str, Any]:
        """The columns by name: VARIANTs and the JSON text as `VariantArray`, the chosen one shredded."""
        columns: dict[str, Any] = {}
        for name, column in zip(table.schema.names, table.columns, strict=True):
            array = one_chunk(column)
            if is_spark_variant(array.type):
                array = from_spark(array)
                if name == self.column and schema is not None:
                    array = shred_variant(array, schema)
            elif name == self.column:
                array = self._parse(array, schema, task, first_row)
            columns[name] = array
        return columns

    def _parse(self, text: pa.Array, schema: ShreddingSchema | None, task: int, first_row: int) -> VariantArray:
        try:
            return parse_json(text, schema=schema, dictionary="batch")
        except JsonError as error:
            where = f"column {self.column}, row {first_row + (error.row or 0)} of partition {task}"
            raise JsonError(f"{where}: {error.message}", reason=error.reason, offset=error.offset) from None


def _joined(batches: Iterable[pa.RecordBatch], size: int) -> Iterator[pa.Table]:
    """The batches put together to at least `size` bytes."""
    waiting: list[pa.RecordBatch] = []
    waiting_bytes = 0
    for batch in batches:
        waiting.append(batch)
        waiting_bytes += batch.nbytes
        if waiting_bytes >= size:
            yield pa.Table.from_batches(waiting).combine_chunks()
            waiting, waiting_bytes = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting).combine_chunks()
