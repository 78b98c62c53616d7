"""A bounded sample of rows from any source, and its figures for every path.

Owns how much is read, and the figures by path that footers do not have: types, distinct values, and the cost of typing
a path. Leaves example values to `examples`, and profiling and the choice of a schema to `shredding`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.parts import nested_array
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.explorer.examples import examples_of
from parquet_variant.files.parquet.format.columns import VariantColumn, choose_column
from parquet_variant.files.parquet.format.files import OpenFile, ParquetSource, open_file
from parquet_variant.files.parquet.operations.inspect import inspect
from parquet_variant.files.parquet.writing.write import write
from parquet_variant.inference.explain import slow_paths
from parquet_variant.inference.policies.auto import AutoPolicy
from parquet_variant.inference.policies.column_types import best_column
from parquet_variant.inference.policies.decision import InferenceResult
from parquet_variant.inference.profile import Profile
from parquet_variant.inference.profile_path import PathProfile
from parquet_variant.layouts.parquet_reader import open_parquet
from parquet_variant.ops.conversions import to_json
from parquet_variant.ops.parse_json import parse_json
from parquet_variant.ops.value_edits import variant_normalize
from parquet_variant.path import Segment, VariantPath

_ROWS = 20_000
_BYTES = 8 << 20
_ROW_GROUPS = 8
# The largest number of paths whose columns are written and measured, not estimated.
_MEASURED = 2_000


@dataclass(slots=True)
class PathSample:
    """Figures of one path in the sample."""

    # Number of values, and the share of rows with a value.
    count: int
    row_share: float
    kinds: dict[str, int]  # Values by type; numbers that fit one exact type count as that type.
    # The type of the best typed column, as DDL; ``"object"``, ``"array"``, or None if there are only nulls.
    column: str | None
    distinct: int  # Estimated number of distinct scalars.
    # The range of integers.
    lower: int | None
    upper: int | None
    bytes: int  # Encoded bytes of the values in a residual.
    typed_bytes: int | None = None  # Compressed bytes of a typed column; None if not measured.
    reason: str = ""  # The reason for the decision of the ``auto`` policy.
    is_typed: bool = False  # Whether the ``auto`` policy types the path.
    # Examples by type: number of the row, and JSON.
    examples: dict[str, list[tuple[int, str]]] = field(default_factory=dict)


@dataclass(slots=True)
class Sample:
    """Figures of a sample."""

    # Number of rows, and their bytes as JSON.
    rows: int
    text_bytes: int
    paths: dict[VariantPath, PathSample]  # Every path, parents first.
    ddl: str  # The schema that the ``auto`` policy chooses.
    unshredded_bytes: int  # Compressed bytes of the sample without typed columns.
    shredded_bytes: int
    residual_ratio: float  # Compressed bytes per byte of residual.
    slow_paths: list[str]  # Paths that DuckDB would read slowly under that schema, with the reasons.


def parquet_rows(sources: Sequence[ParquetSource], column: str | None) -> VariantArray:
    """Read rows from the beginning of some files."""
    step = max(len(sources) // _ROW_GROUPS, 1)
    sampled = sources[::step][:_ROW_GROUPS]
    parts: list[VariantArray] = []
    for source in sampled:
        with open_file(source) as file:
            variant = choose_column(file.schema, column, file.name)
            parts += _first_rows(file, variant, _ROWS // len(sampled), _BYTES // len(sampled))
    if any(part.storage.type != parts[0].storage.type for part in parts):  # files of several writers
        parts = [variant_normalize(part) for part in parts]
    return VariantArray.concat(parts) if parts else VariantArray.from_pylist([])


def _first_rows(file: OpenFile, variant: VariantColumn, rows: int, size: int) -> Iterator[VariantArray]:
    """Yield the first rows of a file, and read only their pages."""
    leaves = [leaf.leaf for leaf in variant.node.leaves() if leaf.leaf is not None]
    with file.source.filesystem.open_input_file(file.name) as stream:
        # The metadata of a row has the keys of many rows: as a dictionary it is not repeated.
        names = [file.metadata.schema.column(leaf).path for leaf in leaves]
        dictionary = [name for name in names if name == ".".join((*variant.path, "metadata"))]
        opened = open_parquet(
            stream, metadata=file.metadata, buffer_size=1 << 16, pre_buffer=False, read_dictionary=dictionary
        )
        reader: Any = opened.reader
        groups = list(range(file.metadata.num_row_groups))[:1]
        row_bytes = max((_row_bytes(file.metadata.row_group(number), leaves) for number in groups), default=1)
        rows = max(min(rows, size // row_bytes), 1)
        for batch in reader.iter_batches(min(rows, 1024), groups, column_indices=leaves, use_threads=False):
            table = file.in_file_types(pa.Table.from_batches([batch]), leaves)
            part = VariantArray(nested_array(table, variant.path)).to_unshredded()
            yield part
            rows -= len(part)
            size -= part.storage.nbytes
            if rows <= 0 or size <= 0:
                return


def _row_bytes(group: Any, leaves: Sequence[int]) -> int:
    """Return the mean of the decompressed bytes of a row."""
    return int(sum(group.column(leaf).total_uncompressed_size for leaf in leaves)) // max(group.num_rows, 1) + 1


def json_rows(lines: Iterable[pa.Array]) -> VariantArray:
    """Parse rows from chunks of text, and skip invalid JSON."""
    parts: list[VariantArray] = []
    rows, size = _ROWS, _BYTES
    for chunk in lines:
        text = chunk[:rows]
        while len(text) > 1 and text.nbytes > size:
            text = text[: len(text) // 2]
        array = parse_json(text, errors="null")
        assert isinstance(array, VariantArray)
        parts.append(VariantArray(array.storage.filter(array.storage.is_valid())))
        rows, size = rows - len(text), size - text.nbytes
        if rows <= 0 or size <= 0:
            break
    return VariantArray.concat(parts) if parts else VariantArray.from_pylist([])


def sample_of(rows: VariantArray) -> Sample:
    """Compute the figures of every path in some rows.

    >>> import parquet_variant as pv
    >>> sample = sample_of(pv.parse_json(['{"a": 1, "b": "x"}', '{"a": "one"}'] * 50))
    >>> a = sample.paths[VariantPath(("a",))]
    >>> a.count, a.kinds, a.column, sorted(a.examples)
    (100, {'int8': 50, 'string': 50}, 'string', ['int8', 'string'])
    """
    profile = Profile.of_array(rows)
    result = AutoPolicy().choose(profile)
    decisions = {decision.path.segments: decision for decision in result.decisions}
    reasons: dict[tuple[Segment, ...], str] = {}  # that of the path, or of the nearest path above with a decision
    paths: dict[VariantPath, PathSample] = {}
    by_segments: dict[tuple[Segment, ...], PathSample] = {}
    stack = [(profile.root, VariantPath())] if profile.root is not None else []
    while stack:  # parents first
        path_profile, path = stack.pop()
        segments = path.segments
        decision = decisions.get(segments)
        reason = reasons.get(segments[:-1], "") if decision is None else decision.reason
        reasons[segments] = reason
        paths[path] = by_segments[segments] = _of_profile(path_profile, reason)
        paths[path].is_typed = decision is not None and decision.shredded
        for child in reversed(path_profile.children):
            assert child.segment is not None
            stack.append((child, path / child.segment))
    texts = to_json(rows)
    for segments, examples in examples_of(rows, profile.values).items():
        if (of_path := by_segments.get(segments)) is not None:
            of_path.examples = examples
    with tempfile.TemporaryDirectory(prefix="parquet-variant-") as folder:
        unshredded, residual = _write_sample(rows, None, Path(folder) / "unshredded.parquet")[:2]
        shredded = unshredded
        if any(sample.is_typed for sample in paths.values()):
            shredded = _write_sample(rows, result, Path(folder) / "shredded.parquet")[0]
        if len(paths) <= _MEASURED:
            wide = AutoPolicy(min_row_share=0.0, max_columns=_MEASURED).choose(profile)
            for path, size in _write_sample(rows, wide, Path(folder) / "wide.parquet")[2].items():
                if path in paths:
                    paths[path].typed_bytes = size
    plain = max(rows.to_unshredded().storage.field("value").nbytes, 1)
    return Sample(
        len(rows),
        texts.nbytes,
        paths,
        result.schema.to_ddl(),
        unshredded,
        shredded,
        min(residual / plain, 1.0),
        slow_paths(result),
    )


def _of_profile(profile: PathProfile, reason: str) -> PathSample:
    best = best_column(profile)
    low, high = profile.int_range or (None, None)
    return PathSample(
        profile.count,
        profile.row_share,
        {str(kind): count for kind, count in profile.types.items()},
        None if best is None else best.name,
        profile.distinct if best is not None and best.arrow is not None else 0,
        low,
        high,
        profile.encoded_bytes,
        reason=reason,
    )


def _write_sample(
    rows: VariantArray, result: InferenceResult | None, file: Path
) -> tuple[int, int, dict[VariantPath, int]]:
    """Write the sample, and return its bytes in the file, those of its residual, and those of each path."""
    if not len(rows):
        return 0, 0, {}
    write(file, rows, schema=None if result is None else result.schema)
    report = inspect(str(file)).columns[0]
    by_path = {VariantPath.parse(entry.path): entry.bytes for entry in report.paths}
    total = sum(by_path.values()) + report.metadata_bytes
    return total, by_path[VariantPath()], by_path
