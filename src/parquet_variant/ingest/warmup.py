"""`warmup`: compile the kernels ahead of their first use.

Owns the small workload that makes every kernel compile: the public operations over a few values of each type. Kernels
are compiled for the types that they are called with, so that using them is the one list that cannot go stale. Leaves
compiling and the cache to `kernels.compiling`.
"""

from __future__ import annotations

import datetime as dt
import tempfile
import uuid
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.functions.cast_to_variant import cast_to_variant
from parquet_variant.functions.get_variant_element import get_variant_element
from parquet_variant.functions.is_variant_null import is_variant_null
from parquet_variant.functions.parse_json import parse_json
from parquet_variant.functions.schema_of_variant import schema_of_variant
from parquet_variant.functions.shred_variant import shred_variant
from parquet_variant.functions.to_json import to_json
from parquet_variant.functions.unshred_variant import unshred_variant
from parquet_variant.functions.variant_get import try_variant_get
from parquet_variant.functions.variant_type import variant_type
from parquet_variant.ingest.ingest import ingest
from parquet_variant.io.engine import Progress
from parquet_variant.parquet.reading.read import read
from parquet_variant.parquet.scanning.extract import extract
from parquet_variant.parquet.validation.validate import validate
from parquet_variant.parquet.writing.write import write
from parquet_variant.schema.layout import Layout
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.infer import infer

__all__ = ["warmup"]

_DAY = dt.datetime(2024, 2, 29, 12, 30, 15, 123456)
_VALUES = {
    "boolean": True,
    "bigint": 2**40,
    "double": 1.5,
    "decimal(38,2)": Decimal("12345678901234567890123.45"),
    "decimal(9,2)": Decimal("1.25"),
    "date": _DAY.date(),
    "timestamp": _DAY.replace(tzinfo=dt.UTC),
    "timestamp_ntz": _DAY,
    "binary": b"\x00\xff",
    "string": "text",
    "uuid": uuid.UUID(int=7),
}

_JSON = [
    '{"a": [1, 2.5, 1e300, 0.1e-7, "\\u00e9", {"b": null}], "c": {"d": true}, "n": 12345678901234567890}',
    "[]",
    "3",
]
_LAYOUTS: tuple[Layout, ...] = ("final", "draft-paths", "draft-object")


def warmup(progress: Progress | None = None) -> None:
    """Compile the kernels and keep them in the cache, so that nothing waits for it later.

    Parameters
    ----------
    progress
        Called with what is being compiled, the steps done and the steps in all.

    Raises
    ------
    OSError
        If neither the cache nor the temporary directory can be written.
    """
    row = {f"c{number}": value for number, value in enumerate(_VALUES.values())}
    rows = VariantArray.from_pylist([row, {"list": [row, 1, None], "text": "é" * 80}, None, [], {}, "x"])
    columns = ", ".join(f"{name} {kind}" for name, kind in zip(row, _VALUES, strict=True))
    schema = ShreddingSchema.from_ddl(f"{columns}, list array<struct<c1: bigint>>")
    steps: dict[str, Callable[[], object]] = {
        "parse JSON": lambda: [parse_json(_JSON), parse_json(_JSON, schema="a int")],
        "write JSON": lambda: [to_json(rows), to_json(shred_variant(rows, schema))],
        "inference": lambda: infer(rows),
        "shredding": lambda: [_there_and_back(rows, schema, layout) for layout in _LAYOUTS],
        "paths": lambda: _get(rows, shred_variant(rows, schema)),
        "types": lambda: [variant_type(rows), schema_of_variant(rows), is_variant_null(rows)],
        "files": lambda: _files(rows, schema),
    }
    for number, (name, step) in enumerate(steps.items()):
        if progress:
            progress(f"compile: {name}", number, len(steps))
        step()
    if progress:
        progress("compile", len(steps), len(steps))


def _there_and_back(rows: VariantArray, schema: ShreddingSchema, layout: Layout) -> VariantArray:
    shredded = shred_variant(rows, schema, layout=layout)
    to_json(shredded)
    return unshred_variant(shredded)


def _get(*arrays: VariantArray) -> None:
    for array in arrays:
        for number, kind in enumerate(_VALUES):
            cast_to_variant(try_variant_get(array, f"$.c{number}", kind))
            try_variant_get(array, f"$.c{number}", "string")
            get_variant_element(array, f"$.c{number}", kind)
        try_variant_get(array, "$.list[0].c0")
        try_variant_get(array, "$.list[*]", "array<bigint>")


def _files(rows: VariantArray, schema: ShreddingSchema) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/a.parquet"
        write(file, rows, schema=schema)
        validate(file)
        extract(file, {"c1": ("$.c1", "bigint"), "c9": ("$.c9", "string")}, "c1 > 0")
        for use_dictionary in (False, True):  # two kinds of pages
            plain = f"{folder}/{use_dictionary}.parquet"
            pq.write_table(pa.table({"v": parse_json(_JSON).storage}), plain, use_dictionary=use_dictionary)
            extract(plain, {"n": ("$.n", "string")})
        source = Path(folder, "a.json")
        source.write_text("".join(f"{text}\n" for text in _JSON))
        ingest(source, f"{folder}/b", threads=1)
        infer(read(f"{folder}/b"))
