"""`infer`: what to shred of files, JSON or Parquet, and why; nothing is written.

Owns the one-call form. Leaves reading the files to `profile` and the choice to `shredding.infer`.
"""

from __future__ import annotations

from typing import Any

from parquet_variant.ingest.profile import profile
from parquet_variant.ingest.request import Sources
from parquet_variant.shredding.infer import infer as infer_from_profile
from parquet_variant.shredding.policies.decision import InferenceResult


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
