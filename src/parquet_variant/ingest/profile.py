"""`profile` and `infer`: what is at which path of JSON or Parquet files, and what to shred of it; `read_json`: rows.

Owns these operations, which write nothing, and telling the two kinds of file apart. Leaves JSON to `job` and `task`,
the profile itself to `shredding.profile`, and the choice to `shredding.infer`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, Unpack

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.choices import InputFormat
from parquet_variant.errors import VariantFileError, check_choice, check_names
from parquet_variant.ingest.job import profile_sources
from parquet_variant.ingest.request import Sources, TextKeywords, TextOptions
from parquet_variant.ingest.sources import expand_sources, whole_splits
from parquet_variant.ingest.task import read_arrays
from parquet_variant.io.engine import Progress, ThreadEngine
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.parquet.format.files import locate
from parquet_variant.parquet.reading.read import profile_column
from parquet_variant.renamed import renamed
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.infer import infer as infer_from_profile
from parquet_variant.shredding.policies.decision import InferenceResult
from parquet_variant.shredding.profile import Profile


def profile(
    sources: Sources,
    *,
    column: str | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    **text: Unpack[TextKeywords],
) -> Profile:
    """Count what is at which path: types, shares, ranges, lengths.

    Parameters
    ----------
    sources
        JSON files as for `ingest`, or Parquet files with a Variant column.
    column
        The Variant column of Parquet files, if they have several.
    threads, progress
        As for `ingest`.
    **text
        How JSON is read. ``sample``: share of the text, above 0 up to 1, by default all of it; ``on_error``:
        ``"fail"``, or a bad line is passed over (``"quarantine"``) or SQL NULL (``"null"``); ``input_format``,
        ``root``, ``json_column``, ``types``, ``detect_timestamps``, ``parse`` as for `ingest`.

    Raises
    ------
    VariantFileError
        For a source that is missing or cannot be read, or sources without a value.
    JsonError
        For a bad line, if `on_error` is ``"fail"``.

    Examples
    --------
    >>> paths = profile("examples/usgs_earthquakes.ndjson")
    >>> paths.rows, len(list(paths))
    (1707, 34)
    """
    files = [os.fspath(sources)] if isinstance(sources, str | os.PathLike) else list(sources)
    check_names("option", text, TextKeywords.__annotations__)
    text.setdefault("sample", 1.0)
    of_text = TextOptions.of(**text)
    if of_text.json_column is None:
        files = expand_sources(files)
    if of_text.json_column is not None or not all(map(_is_parquet, files)):
        return profile_sources(ThreadEngine(threads, progress), files, of_text)
    total = Profile()
    for source in locate(files):
        total = total.merge(profile_column(source, column))
    return total


def _is_parquet(file: str) -> bool:
    filesystem, path = filesystem_of(file)
    with filesystem.open_input_stream(path, compression=None) as stream:
        return bool(stream.read(4) == b"PAR1")


def infer(sources: Sources, policy: Any = None, **options: Any) -> InferenceResult:
    """Choose what to shred of files, as `ingest` would.

    Parameters
    ----------
    sources
        JSON files as for `ingest`, or Parquet files with a Variant column.
    policy
        A policy or its name; see `infer_shredding_schema`.
    **options
        As for `profile`: ``sample``, ``column``, ``on_error``, ``input_format``, ``root``, ``json_column``,
        ``parse``, ``threads``, ``progress``.

    Returns
    -------
    InferenceResult
        The schema, and a decision with its reason for every path.

    Raises
    ------
    VariantFileError
        For a source that is missing or cannot be read, or sources without a value.
    JsonError
        For a bad line, if ``on_error`` is ``"fail"``.
    VariantError
        For an unknown policy.

    Examples
    --------
    >>> result = infer("examples/usgs_earthquakes.ndjson")
    >>> result.rows, result.decision("$.properties.mag").shredded
    (1707, True)
    """
    return infer_from_profile(profile(sources, **options), policy)


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
