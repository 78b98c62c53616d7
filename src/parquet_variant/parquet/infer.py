"""`infer`: what to shred of files, JSON or Parquet, and why; nothing is written.

Owns telling the two kinds of file apart, and the profile of Parquet files. Leaves JSON to `ingest_job` and the choice
to `shredding.infer`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from parquet_variant.parquet.columns import choose_column
from parquet_variant.parquet.files import locate, open_file
from parquet_variant.parquet.ingest_job import Progress, Sources, run_infer
from parquet_variant.parquet.ingest_task import OnError
from parquet_variant.parquet.read import row_group_arrays
from parquet_variant.parquet.sources import Format, expand_sources, resolve
from parquet_variant.parquet.threads import ThreadEngine
from parquet_variant.shredding.infer import InferenceResult
from parquet_variant.shredding.infer import infer as infer_profile
from parquet_variant.shredding.profile import Profile

__all__ = ["infer"]


def infer(
    sources: Sources,
    policy: Any = None,
    *,
    sample: float = 1.0,
    column: str | None = None,
    on_error: OnError = "fail",
    input_format: Format = "auto",
    parse: Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> InferenceResult:
    """Choose what to shred of files, as `ingest` would.

    Parameters
    ----------
    sources
        JSON files as for `ingest`, or Parquet files with a Variant column.
    policy
        A policy or its name; see `infer_shredding_schema`.
    sample
        Share of the JSON text to read, above 0 up to 1.
    column
        The Variant column of Parquet files, if they have several.
    on_error
        ``"fail"``: a bad line of JSON is an error; ``"quarantine"``: it is passed over.
    input_format, parse, threads, progress
        As for `ingest`.

    Returns
    -------
    InferenceResult
        The schema, and a decision with its reason for every path.

    Raises
    ------
    VariantFileError
        For a source that is missing or cannot be read, or sources without a value.
    JsonError
        For a bad line, if `on_error` is ``"fail"``.
    VariantError
        For an unknown policy.

    Examples
    --------
    >>> result = infer("examples/usgs_earthquakes.ndjson")
    >>> result.rows, result.decision("$.properties.mag").shredded
    (1707, True)
    """
    files = expand_sources(sources)
    if not all(map(_is_parquet, files)):
        return run_infer(
            ThreadEngine(threads, progress),
            files,
            policy=policy,
            sample=sample,
            on_error=on_error,
            input_format=input_format,
            parse=parse,
        )
    profile = Profile()
    for source in locate(files):
        with open_file(source) as file:
            for _, array in row_group_arrays(file, choose_column(file.schema, column, file.name)):
                profile = profile.merge(Profile.of_array(array))
    return infer_profile(profile, policy)


def _is_parquet(file: str | os.PathLike[str]) -> bool:
    filesystem, path = resolve(os.fspath(file))
    with filesystem.open_input_stream(path, compression=None) as stream:
        return bool(stream.read(4) == b"PAR1")
