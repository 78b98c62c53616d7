"""`read_json`: JSON files to an array in memory.

Owns the public operation. Leaves files to `sources`, and their text to `functions.parse_json`.
"""

from __future__ import annotations

from typing import Any, Literal

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import JsonError, VariantError, VariantFileError
from parquet_variant.functions.parse_json import parse_json, try_parse_json
from parquet_variant.ingest.lines import split_lines
from parquet_variant.ingest.request import Sources
from parquet_variant.ingest.sources import Chunk, Format, expand_sources, open_chunks
from parquet_variant.schema.shredding_schema import ShreddingSchema

__all__ = ["read_json"]


def read_json(
    sources: Sources,
    *,
    schema: ShreddingSchema | str | None = None,
    errors: Literal["raise", "null"] = "raise",
    input_format: Format = "auto",
    **parse: Any,
) -> VariantArray:
    """Read JSON files into one array, a value a row.

    Parameters
    ----------
    sources
        Files, directories, globs or URIs of NDJSON or JSON arrays; plain, gzip, zstd, bz2 or lz4.
    schema
        What to shred, as an object or DDL; nothing by default.
    errors
        ``"raise"``: a bad line is an error; ``"null"``: it is SQL NULL.
    input_format
        ``"ndjson"``, ``"array"``, ``"documents"`` (over many lines, or several on one) or ``"auto"``.
    **parse
        Options of `parse_json`.

    Raises
    ------
    VariantFileError
        For a source that is missing or cannot be read.
    JsonError
        For a bad line, with file and line, unless ``errors="null"``.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> quakes = pv.read_json("examples/usgs_earthquakes.ndjson")
    >>> len(quakes), quakes["properties"]["mag"][0].to_python()
    (1707, 2)
    """
    if errors not in ("raise", "null"):
        raise VariantError(f"errors is {errors!r}: use 'raise' or 'null'", reason="bad-option")
    chunks = (chunk for file in expand_sources(sources) for chunk in open_chunks(file, format=input_format))
    parts = [_parsed(chunk, schema, errors == "null", parse) for chunk in chunks]
    filled = [part for part in parts if len(part)]
    if not filled:
        raise VariantFileError("no JSON value in the sources: name files that hold some", reason="no-rows")
    return VariantArray.concat(filled)


def _parsed(chunk: Chunk, schema: Any, null: bool, parse: dict[str, Any]) -> VariantArray:
    lines = split_lines(chunk)
    try:
        found = (try_parse_json if null else parse_json)(lines.text, schema=schema, **parse)
    except JsonError as error:
        line = chunk.first_line + int(lines.number[error.row or 0])
        raise JsonError(
            f"{chunk.unit} {line}: {error.message}", reason=error.reason, file=chunk.file, offset=error.offset
        ) from None
    assert isinstance(found, VariantArray)
    chunk.release()
    return found
