"""A bounded sample of rows from any source, and its figures for every path.

Owns how much is read, and the figures by path that footers do not have: types, distinct values, and the cost of typing
a path, and examples of values: the first distinct ones of every type at every path, as short JSON. Leaves decoding rows
to `arrays.tapes`, and profiling and the choice of a schema to `inference`.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import nested_array
from parquet_variant.arrays.tapes import array_tapes
from parquet_variant.arrays.variant_array import VariantArray, trusted_array
from parquet_variant.files.parquet.format.columns import VariantColumn, choose_column
from parquet_variant.files.parquet.format.files import OpenFile, ParquetSource, open_file
from parquet_variant.files.parquet.operations.inspect import inspect
from parquet_variant.files.parquet.writing.write import write
from parquet_variant.inference.explain import slow_paths
from parquet_variant.inference.path_profile import PathProfile
from parquet_variant.inference.policies.auto import AutoPolicy
from parquet_variant.inference.policies.column_types import best_column
from parquet_variant.inference.policies.decision import InferenceResult
from parquet_variant.inference.profile import Profile
from parquet_variant.kernels.records import KIND
from parquet_variant.kernels.shredding.json_batch import shredded_rows
from parquet_variant.kernels.tapes.tape import PATH, Tape, path_ids
from parquet_variant.layouts.parquet_reader import open_parquet
from parquet_variant.ops.conversions import to_json
from parquet_variant.ops.parse_json import parse_json
from parquet_variant.ops.value_edits import variant_normalize
from parquet_variant.types import TYPE_OF_ID, PrimitiveId, VariantType
from parquet_variant.types.path import WILDCARD, Segment, VariantPath

# Rows that are searched at most, and about the number of values in them.
_SEARCHED_ROWS = 400
_VALUES = 12_000
# Examples of a type at a path, and the characters of an example.
_EXAMPLES = 3
_TEXT = 60

# For each path, for each type: the number of a row, and JSON.
Examples: TypeAlias = dict[tuple[Segment, ...], dict[str, list[tuple[int, str]]]]


def examples_of(rows: VariantArray, values: int) -> Examples:
    """Return examples from the first rows.

    `values`: the number of values in all rows.

    >>> import parquet_variant as pv
    >>> examples_of(pv.parse_json(['{"a": [1, 2.5]}', '{"a": [1]}']), 6)[("a", WILDCARD)]
    {'int8': [(0, '1')], 'decimal4': [(0, '2.5')]}
    """
    count = min(_SEARCHED_ROWS, -(-_VALUES * len(rows) // max(values, 1)))
    examples: Examples = {}
    for tape in islice(array_tapes(rows[:count], 0), 1):
        segments = _segments(tape)
        for (path, type_name), rows_by_text in _distinct_texts(tape).items():
            of_path = examples.setdefault(segments[path], {})
            of_path[type_name] = [(row, text) for text, row in rows_by_text.items()]
    return examples


def _segments(tape: Tape) -> list[tuple[Segment, ...]]:
    """Return the segments of each path of a tape."""
    keys = [key.decode("utf-8", "replace") for key in tape.key_list]
    segments: list[tuple[Segment, ...]] = [()]
    for parent, key in tape.paths[1:, [PATH.PARENT, PATH.KEY]].tolist():
        segments.append((*segments[parent], WILDCARD if key < 0 else keys[key]))
    return segments


def _distinct_texts(tape: Tape) -> dict[tuple[int, str], dict[str, int]]:
    """Return the first distinct texts with their rows, by path id and type."""
    kinds = tape.nodes[:, 0] & 0xFF
    type_names = [str(_type_of(kind)) for kind in range(KIND.OBJECT + 1)]
    paths = path_ids(tape.nodes[:, 0]).tolist()
    row_numbers = np.repeat(np.arange(tape.rows), np.diff(tape.row_start)).tolist()
    distinct: dict[tuple[int, str], dict[str, int]] = {}
    for kind, path, row, text in zip(kinds.tolist(), paths, row_numbers, _node_texts(tape), strict=True):
        rows_by_text = distinct.setdefault((path, type_names[kind]), {})
        if len(rows_by_text) < _EXAMPLES:
            rows_by_text.setdefault(text, row)
    return distinct


def _type_of(kind: int) -> VariantType:
    if kind < KIND.ARRAY:
        return TYPE_OF_ID[PrimitiveId(kind)].type
    return VariantType.ARRAY if kind == KIND.ARRAY else VariantType.OBJECT


def _node_texts(tape: Tape) -> list[str]:
    """Return the beginning of the JSON of each node of a tape."""
    kinds, ends = tape.nodes[:, 0] & 0xFF, tape.nodes[:, 3].tolist()
    scalars, containers = np.flatnonzero(kinds < KIND.ARRAY), np.flatnonzero(kinds >= KIND.ARRAY)
    texts = [""] * len(kinds)
    for number, text in zip(scalars.tolist(), _scalar_texts(tape, scalars), strict=True):
        texts[number] = _shortened(text)
    keys = tape.paths[path_ids(tape.nodes[:, 0]), PATH.KEY].tolist()
    names = [json.dumps(key.decode("utf-8", "replace"), ensure_ascii=False) + ":" for key in tape.key_list]
    for number in reversed(containers.tolist()):  # children before parents
        is_object = kinds[number] == KIND.OBJECT
        text, separator, child = "{" if is_object else "[", "", number + 1
        while child < ends[number] and len(text) <= _TEXT:
            text += separator + (names[keys[child]] if is_object else "") + texts[child]
            separator, child = ",", ends[child]
        texts[number] = _shortened(text + ("}" if is_object else "]"))
    return texts


def _scalar_texts(tape: Tape, scalars: np.ndarray[tuple[int], np.dtype[np.intp]]) -> list[str]:
    """Return the JSON of scalar nodes, each as a row."""
    nodes = tape.nodes[scalars]
    nodes[:, 0] &= 0xFFFF  # the path of the root
    nodes[:, 3] = np.arange(1, len(nodes) + 1)
    as_rows = replace(tape, nodes=nodes, row_start=np.arange(len(nodes) + 1))
    texts: list[str] = to_json(trusted_array(shredded_rows(as_rows).storage())).to_pylist()
    return texts


def _shortened(text: str) -> str:
    return text if len(text) <= _TEXT else text[: _TEXT - 1] + "…"


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
