"""Comparison of shredding schemas by the size of the files that they give.

Shredding a few rows can make a file larger: every column has metadata in the footer, and its values are compressed
apart from the other values of their rows. No estimate from a profile predicts that, so small data is written with
several schemas.

Owns the candidates and the comparison. `ingestion` decides when it is worth the time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.files.parquet.writing.write import write
from parquet_variant.inference.policies.decision import InferenceResult, schema_of_leaves
from parquet_variant.io.parallel import in_order
from parquet_variant.layouts.shredding_schema import ShreddingSchema

# Numbers of columns that are tried if all columns of a result make the file larger.
_FEWER_COLUMNS = (40, 20, 5)


def compared_with_unshredded(
    result: InferenceResult, files: Sequence[VariantArray], options: Mapping[str, Any], threads: int = 1
) -> InferenceResult:
    """Return the result, or with fewer columns or none if the files would be larger than unshredded.

    `files`: the rows of each file.
    `options`: the options of `pv.write` for the file.

    >>> import parquet_variant as pv
    >>> from parquet_variant.inference.infer import infer
    >>> rows = pv.parse_json(['{"name": "%d", "url": "https://example.com/%d"}' % (n, n) for n in range(40)])
    >>> compared_with_unshredded(infer(rows), [rows], {}).schema.to_ddl()
    'variant'
    """
    unshredded = ShreddingSchema.variant()
    if result.schema == unshredded:
        return result
    with tempfile.TemporaryDirectory() as directory:
        file_bytes = partial(_file_bytes, directory, files, options)
        shredded_bytes, unshredded_bytes = in_order(file_bytes, (result.schema, unshredded), threads)
        if shredded_bytes <= unshredded_bytes:
            return result
        candidates = (schema for schema in _fewer_columns(result) if file_bytes(schema) <= unshredded_bytes)
        schema = next(candidates, unshredded)
    share = shredded_bytes / unshredded_bytes - 1
    return result.narrowed(schema, f"all columns of the schema would make the file {share:.0%} larger than without any")


def _fewer_columns(result: InferenceResult) -> list[ShreddingSchema]:
    """Return schemas with the columns that save most."""
    saved = {decision.path: decision.bytes_saved for decision in result.decisions}
    leaves = sorted(result.schema.leaves(), key=lambda leaf: (-saved.get(leaf[0], 0), str(leaf[0])))
    return [schema_of_leaves(dict(leaves[:count])) for count in _FEWER_COLUMNS if count < len(leaves)]


def _file_bytes(
    directory: str, files: Sequence[VariantArray], options: Mapping[str, Any], schema: ShreddingSchema
) -> int:
    paths = [f"{directory}/{schema.kind}-{hash(schema)}-{number}.parquet" for number in range(len(files))]
    return sum(write(path, rows, schema=schema, **options).bytes for path, rows in zip(paths, files, strict=True))
