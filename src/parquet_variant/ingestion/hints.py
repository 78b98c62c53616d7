"""Hints and warnings from a sample of the input of an ingest: options that suit the data, and unlikely partitions.

Warnings about partitions are issued before anything is written, because a table with too many partitions takes long to
write and to remove.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantError
from parquet_variant.inference.profile import PathProfile, Profile
from parquet_variant.ingestion.request import IngestRequest, TextOptions
from parquet_variant.ingestion.sources.input_files import COMPRESSION_RATIO
from parquet_variant.ingestion.sources.splits import Split
from parquet_variant.ingestion.task import first_rows
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.types import VariantType

# The rows of a document are in an array if it has at least this many elements per document.
_MIN_ELEMENTS = 2
_MAX_DEPTH = 3


def root_hints(profile: Profile, text: TextOptions, files: int) -> Iterator[str]:
    """Yield a hint to use ``root`` if every file is one document with the rows in an array; `profile` is without it."""
    root = profile.root
    if (
        root is not None
        and text.layout.root is not None
        and root.element_count
        and set(root.types) == {VariantType.ARRAY}
    ):
        path = text.layout.root.shorthand
        yield (
            f"the value at {path} is an array, and each row is such an array: for one row per element, use "
            f"root='{path}[*]'"
        )
    if root is None or text.layout.root is not None or text.json_column is not None or profile.rows > files:
        return
    largest = max(_arrays_of_objects(root, _MAX_DEPTH), key=lambda array: array.element_count, default=None)
    if largest is not None and largest.element_count >= _MIN_ELEMENTS * profile.rows:
        path = largest.path.shorthand
        yield (
            f"the input is {profile.rows:,} {'document' if profile.rows == 1 else 'documents'} with "
            f"{largest.element_count:,} objects in the array {path}: to ingest these objects as rows, use "
            f"root='{path}[*]'"
        )


def _arrays_of_objects(path: PathProfile, depth: int) -> Iterator[PathProfile]:
    """Yield the paths of arrays that contain objects, up to a depth, not inside other arrays."""
    element = path.element
    if element is not None and 2 * element.types.get(VariantType.OBJECT, 0) >= element.count:
        yield path
    if depth:
        for field in path.fields:
            yield from _arrays_of_objects(field, depth - 1)


MANY_PARTITIONS = 1000
# The sample: the first lines of some splits, which are spread over the input.
_SAMPLE_SPLITS = 16
_SAMPLE_BYTES = 256 << 10


def partition_warnings(request: IngestRequest, tasks: Sequence[Sequence[Split]]) -> Iterator[str]:
    """Yield warnings about over 1,000 partitions, and about partition columns that are null in all sampled rows."""
    if not request.partition_by or request.partition_by.is_derived:
        return
    splits = [split for task in tasks for split in task]
    step = max(1, len(splits) // _SAMPLE_SPLITS)
    sample_splits = splits[::step]
    arrays = []
    for split in sample_splits:
        try:
            first = first_rows([split], ShreddingSchema.variant(), request.text, _SAMPLE_BYTES)
        except VariantError:
            return  # the task raises the error with its position
        if first is not None:
            arrays.append(first.to_unshredded())
    if not sum(map(len, arrays)):
        return
    sample = VariantArray.concat(arrays)
    rows = len(sample)
    values = request.partition_by.values(sample)
    for column in request.partition_by.columns:
        if values[column.name].null_count == rows:
            yield (
                f"partition_by={column.name}: {column.path} has no value of type {column.type} in {rows:,} sampled "
                "rows, so that these rows are in the null partition; check the path and the type"
            )
    read_bytes = sum(min(_text_bytes(split), _SAMPLE_BYTES) for split in sample_splits)
    total_rows = rows * max(1.0, sum(map(_text_bytes, splits)) / max(read_bytes, 1))
    count, is_estimate = _partition_count(values, total_rows)
    if count > MANY_PARTITIONS:
        about = "about " if is_estimate else ""
        names = ", ".join(request.partition_by.names)
        yield (
            f"partition_by={names} makes {about}{count:,} partitions, each with its own files: partition by a value "
            "with fewer distinct values, such as a date"
        )


def _text_bytes(split: Split) -> int:
    """Return the approximate size of the text of a split."""
    return split.size * (COMPRESSION_RATIO if split.part is None and split.file.codec else 1)


def _partition_count(values: dict[str, pa.Array], total_rows: float) -> tuple[int, bool]:
    """Return the number of partitions of the input, and whether it is an estimate.

    The estimate is Chao's lower bound: the partitions in the sample, and f1 * (f1 - 1) / (2 * (f2 + 1)) others, where
    f1 and f2 are the numbers of partitions with one and with two sampled rows.
    """
    # Numbers as names, because Arrow parses names that start with a dot as paths.
    keys = {str(number): column for number, column in enumerate(values.values())}
    counts = pa.table(keys).group_by(list(keys)).aggregate([([], "count_all")])["count_all"].to_pylist()
    seen = len(counts)
    if total_rows <= sum(counts):
        return seen, False
    once, twice = counts.count(1), counts.count(2)
    unseen = once * (once - 1) / (2 * (twice + 1))
    return round(min(seen + unseen, max(total_rows, seen))), unseen > 0
