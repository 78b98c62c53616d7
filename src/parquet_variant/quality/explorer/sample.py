"""A bounded sample of rows from any source, and its figures for every path.

Owns how much is read, and the figures by path that footers do not have: types, distinct values, and the cost of typing
a path, and examples of values: the first distinct ones of every type at every path, as short JSON. Leaves profiling and
the choice of a schema to `inference`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.files.parquet.operations.inspect import inspect
from parquet_variant.files.parquet.writing.write import write
from parquet_variant.inference.columns import best_column
from parquet_variant.inference.explain import slow_paths
from parquet_variant.inference.path_profile import PathProfile
from parquet_variant.inference.policies.auto import AutoPolicy
from parquet_variant.inference.policies.decision import InferenceResult
from parquet_variant.inference.profile import Profile
from parquet_variant.ops.conversions import to_json
from parquet_variant.ops.value_edits import variant_normalize
from parquet_variant.quality.samples import SAMPLE_ROW_GROUPS, SAMPLE_ROWS, evenly, first_rows
from parquet_variant.quality.sources import DataFile
from parquet_variant.types import VariantType
from parquet_variant.types.path import WILDCARD, Segment, VariantPath

# Rows that are searched at most, and about the number of values in them.
_SEARCHED_ROWS = 400
_VALUES = 5_000
# Examples of a type at a path, and the characters of an example.
_EXAMPLES = 3
_TEXT = 60

# For each path, for each type: the number of a row, and JSON.
Examples: TypeAlias = dict[tuple[Segment, ...], dict[str, list[tuple[int, str]]]]


def examples_of(rows: VariantArray, values: int) -> Examples:
    """Return examples from the first rows; `values` is the number of values in all rows.

    >>> import parquet_variant as pv
    >>> examples_of(pv.parse_json(['{"a": [1, 2.5]}', '{"a": [1]}']), 6)[("a", WILDCARD)]
    {'int8': [(0, '1')], 'decimal4': [(0, '2.5')]}
    """
    count = min(_SEARCHED_ROWS, -(-_VALUES * len(rows) // max(values, 1)))
    examples: Examples = {}
    for row, root in enumerate(rows[:count].to_unshredded()):
        remaining: list[tuple[tuple[Segment, ...], Any]] = [] if root is None else [((), root)]
        while remaining:  # parents first
            path, value = remaining.pop()
            of_type = examples.setdefault(path, {}).setdefault(str(value.type), [])
            if len(of_type) < _EXAMPLES:
                text = value.to_json()
                text = text if len(text) <= _TEXT else text[: _TEXT - 1] + "…"
                of_type += [(row, text)] * (text not in (other for _, other in of_type))
            children: Iterable[tuple[Segment, Any]] = ()
            if value.type == VariantType.OBJECT:
                children = value.items()
            elif value.type == VariantType.ARRAY:
                children = ((WILDCARD, element) for element in value)
            remaining += reversed([((*path, segment), child) for segment, child in children])
    return examples


SAMPLE_BYTES = 8 << 20
# The largest number of paths whose columns are written and measured, not estimated.
_MEASURED = 2_000


@dataclass(slots=True)
class PathSample:
    """Figures of one path in the sample."""

    count: int
    row_share: float  # The share of rows with a value.
    kinds: dict[str, int]  # Values by type; numbers that fit one exact type count as that type.
    # The type of the best typed column, as DDL; ``"object"``, ``"array"``, or None if there are only nulls.
    column: str | None
    distinct: int  # Estimated number of distinct scalars.
    int_range: tuple[int | None, int | None]
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


def parquet_rows(files: Sequence[DataFile]) -> VariantArray:
    """Read rows from the beginning of some files, and only their pages."""
    sampled = evenly(files, SAMPLE_ROW_GROUPS)
    parts: list[VariantArray] = []
    for file in sampled:
        with file.open() as (opened, column):
            rows = opened.facts.rows(opened.facts.groups[:1])
            if column is None or not rows:
                continue
            leaves = [leaf.leaf for leaf in column.node.leaves() if leaf.leaf is not None]
            size = SAMPLE_BYTES // len(sampled)
            row_bytes = opened.facts.plain_size(leaves, [0]) // rows + 1
            limit = max(min(SAMPLE_ROWS // len(sampled), size // row_bytes), 1)
            for values in first_rows(opened, column, 0, limit, leaves):
                parts.append(values.to_unshredded())
                size -= parts[-1].storage.nbytes
                if size <= 0:
                    break
    if any(part.storage.type != parts[0].storage.type for part in parts):  # files of several writers
        parts = [variant_normalize(part) for part in parts]
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
    decisions = {decision.path: decision for decision in result.decisions}
    paths: dict[VariantPath, PathSample] = {}
    for of_path in profile:  # parents first
        path, parent = of_path.path, paths.get(of_path.path.parent)
        decision = decisions.get(path)
        if decision is not None:
            paths[path] = _of_profile(of_path, decision.reason)
            paths[path].is_typed = decision.shredded
        else:  # the reason of the nearest path above with a decision
            paths[path] = _of_profile(of_path, "" if parent is None else parent.reason)
    texts = to_json(rows)
    for segments, examples in examples_of(rows, profile.values).items():
        if (sample := paths.get(VariantPath(segments))) is not None:
            sample.examples = examples
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
    return PathSample(
        profile.count,
        profile.row_share,
        {str(kind): count for kind, count in profile.types.items()},
        None if best is None else best.name,
        profile.distinct if best is not None and best.arrow is not None else 0,
        profile.int_range or (None, None),
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
