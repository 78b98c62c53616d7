"""The connection between scans and DuckDB: Arrow streams of tables, functions over Variants, and errors.

Owns passing batches to DuckDB while they are read, registering functions, and keeping errors that DuckDB reports only
as text. Leaves the query to `rewriting`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.kernels.arrow_buffers import from_numpy
from parquet_variant.ops.columns.sort_keys import CLASS_NAMES, class_codes
from parquet_variant.query.sql_terms import VariantTerm
from parquet_variant.query.variant_functions import FUNCTIONS, VARIANT, call_with, column_of, register_function
from parquet_variant.sql_query.batches import Batches, ScanOptions, values_at
from parquet_variant.sql_query.rewriting.rewriters import Getter
from parquet_variant.support import arrow_compute as pc
from parquet_variant.types.forms import with_fields

_CASTS = {"": "double", "number": "double"} | {name: name for name in ("boolean", "date", "timestamp", "timestamp_ntz")}
_PLURALS = {"binary": "binary values", "timestamp_ntz": "timestamps without time zone"}


class Stream:
    """A planned scan as an Arrow stream that can be read several times; its errors are appended to `failures`."""

    def __init__(self, plan: Batches, failures: list[Exception]) -> None:
        self.plan, self.failures = plan, failures
        # With the extension name DuckDB would convert Variants to its own type; they pass through it as bytes.
        self.schema = pa.schema([_without_extension(field) for field in plan.schema])

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


def _without_extension(field: pa.Field) -> pa.Field:
    return pa.field(field.name, with_fields(field.type, _without_extension), field.nullable)


def register_getters(
    connection: Any,
    getters: list[Getter],
    options: ScanOptions,
    failures: list[Exception],
    classes: dict[str, Counter[str]],
) -> None:
    """Register the functions that the text of a query calls on Variants.

    `classes`: receives for each function of sort keys that are compared how many values of each class it read.
    """
    for getter in getters:
        if getter.term is None:
            function = FUNCTIONS[getter.function]
            work: Callable[..., Any] = function.work
            arguments: tuple[str, ...] = function.arguments
            result: Any = function.result
            if getter.constants:
                work = partial(call_with, work, getter.constants)
            if getter.text:
                work = partial(_compared_keys, getter, classes.setdefault(getter.name, Counter()))
        else:
            work, arguments = partial(_value_at, getter.term, options), (VARIANT,)
            result = VARIANT if getter.term.output is None else getter.term.output
        register_function(connection, getter.name, work, arguments, result, failures)


def _compared_keys(getter: Getter, counts: Counter[str], argument: Any) -> pa.Array:
    """Return the sort keys of the values of some classes, and count the values of each class."""
    keys = FUNCTIONS[getter.function].work(argument)
    codes = class_codes(keys)
    for code, number in zip(*np.unique(codes[codes > 0], return_counts=True), strict=True):
        counts[CLASS_NAMES[int(code)]] += int(number)
    if not getter.classes:
        return keys
    compared = [code for code, name in CLASS_NAMES.items() if name in getter.classes]
    return pc.if_else(from_numpy(np.isin(codes, compared)), keys, pa.scalar(None, keys.type))


def class_warnings(getters: list[Getter], classes: Mapping[str, Counter[str]]) -> list[str]:
    """Return a warning for each Variant some of whose values could not be compared, or are of several types."""
    warnings = {}
    for getter in getters:
        counts = classes.get(getter.name, Counter())
        others = {name: number for name, number in counts.items() if number and name not in getter.classes}
        cast = f"write a cast, such as {getter.text}::{_CASTS.get('/'.join(getter.classes), 'string')}"
        *first, last = (
            "",
            *(
                f"{number:,} {_PLURALS.get(name, f'{name}s') if number > 1 else name}"
                for name, number in sorted(others.items())
            ),
        )
        shown = f"{', '.join(first[1:])} and {last}" if first[1:] else last
        if getter.classes and others:
            was = "was" if sum(others.values()) == 1 else "were"
            message = f"{shown} at {getter.text} {was} not compared with a {' or '.join(getter.classes)}: {cast}"
            warnings[getter.text, getter.classes] = message
        elif len(others) > 1:
            warnings[getter.text, ()] = f"values of several types at {getter.text} ({shown}) were compared: {cast}"
    return list(warnings.values())


def _value_at(term: VariantTerm, options: ScanOptions, argument: Any) -> pa.Array:
    if term.tries:
        options = replace(options, errors="null")
    return values_at(column_of(argument).storage, term.path, term, options)
