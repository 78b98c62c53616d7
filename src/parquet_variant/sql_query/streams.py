"""What an engine reads of a query's tables: an Arrow stream each, read anew as often as it is asked for.

Owns handing batches to DuckDB while they are read, the functions it calls on Variants, and bringing our errors back
through it. Leaves the query to `rewriting`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa

from parquet_variant.array.parts import one_chunk
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.encoding.cast.forms import with_fields
from parquet_variant.encoding.cast.targets import VARIANT_STORAGE
from parquet_variant.functions.is_variant_null import is_variant_null
from parquet_variant.functions.schema_of_variant import schema_of_variant
from parquet_variant.functions.to_json import to_json
from parquet_variant.query.sql_terms import VariantTerm
from parquet_variant.sql_query.batches import Batches, ScanOptions, values_at
from parquet_variant.sql_query.rewriting import Getter


class Stream:
    """A planned scan as an Arrow stream that may be read several times; `failure` is what went wrong in it."""

    def __init__(self, plan: Batches, failures: list[Exception]) -> None:
        self.plan, self.failures = plan, failures
        # The extension's name would make DuckDB convert Variants to its own: they go through it as bytes.
        self.schema = pa.schema([_unmarked(field) for field in plan.schema])

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.RecordBatchReader.from_batches(self.schema, self._batches()).__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for table in self.plan.batches():
                yield pa.record_batch([one_chunk(column) for column in table.columns], schema=self.schema)
        except Exception as error:
            self.failures.append(error)
            raise


def _unmarked(field: pa.Field) -> pa.Field:
    return pa.field(field.name, with_fields(field.type, _unmarked), field.nullable)


def register_getters(connection: Any, getters: list[Getter], options: ScanOptions, failures: list[Exception]) -> None:
    """Make the functions known that a query calls on Variants."""
    if not getters:
        return
    import duckdb

    variant = duckdb.sqltype("STRUCT(metadata BLOB, value BLOB)")
    for getter in getters:
        if getter.term is None:
            work: Any = partial(_call, getter.function)
            kind: Any = "BOOLEAN" if getter.function == "is_variant_null" else "VARCHAR"
        else:
            work = _getter(getter.term, options, failures)
            kind = variant if getter.term.output is None else _duckdb_type(connection, getter.term.output)
        connection.create_function(getter.name, work, [variant], kind, type="arrow", null_handling="special")


_FUNCTIONS: dict[str, Callable[[VariantArray], pa.Array]] = {
    "is_variant_null": is_variant_null,
    "schema_of_variant": schema_of_variant,
    "to_json": to_json,
}


def _call(function: str, column: Any) -> pa.Array:
    answer: pa.Array = _FUNCTIONS[function](VariantArray(one_chunk(column)))
    return answer.cast(pa.string()) if pa.types.is_large_string(answer.type) else answer


def _duckdb_type(connection: Any, kind: pa.DataType) -> Any:
    name = "_type_probe"
    connection.register(name, pa.table([pa.nulls(0, kind)], names=["a"]))
    duckdb_type = connection.table(name).types[0]
    connection.unregister(name)
    return duckdb_type


def _getter(term: VariantTerm, options: ScanOptions, failures: list[Exception]) -> Callable[[Any], pa.Array]:
    def get(argument: Any) -> pa.Array:
        try:
            column = one_chunk(argument)
            if pa.types.is_null(column.type):
                column = pa.nulls(len(column), VARIANT_STORAGE)
            return values_at(column, term.path, term, options)
        except Exception as error:
            failures.append(error)
            raise

    return get
