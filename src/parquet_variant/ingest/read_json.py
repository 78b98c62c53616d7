"""`read_json`: JSON files to an array in memory.

Owns the public operation. Leaves files to `sources`, and their text to `task`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.choices import InputFormat
from parquet_variant.errors import VariantFileError, check_choice
from parquet_variant.ingest.request import Sources, TextOptions
from parquet_variant.ingest.sources import whole_splits
from parquet_variant.ingest.task import read_arrays
from parquet_variant.renamed import renamed
from parquet_variant.schema.shredding_schema import ShreddingSchema


@renamed(errors=("on_error", {"raise": "fail"}))
def read_json(
    sources: Sources,
    *,
    schema: ShreddingSchema | str | None = None,
    on_error: Literal["fail", "null"] = "fail",
    input_format: InputFormat = "auto",
    root: str | None = None,
    types: Mapping[str, str] | None = None,
    detect_timestamps: bool | None = None,
    **parse: Any,
) -> VariantArray:
    """Read JSON files into one array, a value a row.

    Parameters
    ----------
    sources
        Files, directories, globs or URIs of NDJSON or JSON arrays; plain, gzip, zstd, bz2 or lz4.
    schema
        What to shred, as an object or DDL; nothing by default.
    on_error
        ``"fail"``: a bad line is an error; ``"null"``: it is SQL NULL.
    input_format
        ``"ndjson"``, ``"array"``, ``"documents"`` (over many lines, or several on one), ``"csv"``, ``"xml"`` or
        ``"auto"``.
    root
        Where the rows are in documents, such as ``$.items[*]``.
    types, detect_timestamps
        Strings that are to be dates, timestamps, UUIDs or binary; see `pv.parquet.ingest`.
    **parse
        Options of `parse_json`, of CSV or XML; see `pv.parquet.ingest`.

    Raises
    ------
    VariantFileError
        For a source that is missing or cannot be read.
    JsonError
        For a bad line, with file and line, unless ``on_error="null"``.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> quakes = pv.read_json("examples/usgs_earthquakes.ndjson")
    >>> len(quakes), quakes["properties"]["mag"][0].to_python()
    (1707, 2)
    """
    check_choice("on_error", on_error, ("fail", "null"))
    options = TextOptions.of(on_error=on_error, input_format=input_format, root=root, parse=parse,
        types=types, detect_timestamps=detect_timestamps,
    )  # fmt: skip
    schema = None if schema is None else ShreddingSchema.of(schema)
    filled = [rows.variants for rows in read_arrays(whole_splits(sources), schema, options) if len(rows)]
    if not filled:
        raise VariantFileError("no JSON value in the sources: name files that hold some", reason="no-rows")
    return VariantArray.concat(filled)
