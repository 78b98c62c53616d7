"""Figures of a shredded data set that footers and residual columns prove.

Owns combining the facts of files, and which paths they describe completely. Leaves the facts of one footer and the
values in residual columns to `footers`, and figures to `value_figures`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from parquet_variant.files.parquet.format.facts import leaf_type
from parquet_variant.inference.statistics import LeafStatistics
from parquet_variant.quality.footers import (
    PathFacts,
    Residual,
    ResidualValues,
    VariantFacts,
    has_old_list,
    read_residuals,
    total,
    variant_facts,
)
from parquet_variant.quality.samples import evenly
from parquet_variant.quality.sources import DataSet
from parquet_variant.quality.value_figures import PathFigures, Range, ValueFigures, add_all, arrow_type_name
from parquet_variant.types.path import VariantPath, outer_paths

# Footers of more files are not read: their number is then estimated from these.
_MAX_FILES = 4096


@dataclass(frozen=True, slots=True)
class _Coverage:
    """The shredded paths of a file, those with incomplete figures, and those below which other paths are unknown."""

    shredded: frozenset[VariantPath]
    unproved: frozenset[VariantPath]
    unknown_below: frozenset[VariantPath]

    def proves(self, path: VariantPath) -> bool:
        """Return whether the file proves the figures of a path, shredded or not."""
        if path in self.shredded:
            return path not in self.unproved
        outer = next((outer for outer in reversed(outer_paths(path)) if outer in self.shredded), None)
        return outer is not None and outer not in self.unknown_below


@dataclass(slots=True)
class FooterFigures:
    """The figures that footers and residual columns prove, for all files together."""

    figures: dict[VariantPath, PathFigures] = field(default_factory=dict)  # Incomplete unless `is_proved`.
    rows: int = 0
    null_rows: int | None = 0  # None if unknown.
    files: list[VariantFacts] = field(default_factory=list)
    # Bytes that were read.
    footer_bytes: int = 0
    residual_bytes: int = 0
    is_complete: bool = True  # Whether the footers of all files were read, and all have a known layout.
    coverages: set[_Coverage] = field(default_factory=set)
    # The paths whose ``value`` columns were read, and their values with the name of the file.
    read_paths: frozenset[VariantPath] = frozenset()
    residuals: list[tuple[str, ResidualValues]] = field(default_factory=list)

    def is_proved(self, path: VariantPath) -> bool:
        """Return whether the figures of a path are complete; of a path without figures, that it does not exist."""
        return self.is_complete and all(coverage.proves(path) for coverage in self.coverages)

    @property
    def is_closed(self) -> bool:
        """Whether every path that exists has figures."""
        return self.is_complete and not any(coverage.unproved or coverage.unknown_below for coverage in self.coverages)


def footer_figures(data: DataSet, residual_limit: int) -> FooterFigures:
    """Return what the footers of a data set prove.

    `residual_limit`: number of bytes of residual columns to read at most; the smallest are read.
    """
    result = FooterFigures()
    files = evenly(data.files, _MAX_FILES)
    result.is_complete = len(files) == len(data.files)
    for file in files:
        with file.open() as (opened, column):
            result.footer_bytes += opened.metadata.serialized_size
            facts = None if column is None else variant_facts(file, opened, column)
            if facts is not None:
                result.files.append(facts)
            elif column is not None:
                result.is_complete = False
                continue
            result.rows += opened.rows
            result.null_rows = total([result.null_rows, opened.rows if facts is None else facts.null_rows])
    result.read_paths, result.residual_bytes = _affordable(result.files, residual_limit)
    for facts in result.files:
        _add_file(result, facts)
    return result


def _affordable(files: Sequence[VariantFacts], limit: int) -> tuple[frozenset[VariantPath], int]:
    """Return the paths whose ``value`` columns can be read within a limit, the smallest first, and their bytes."""
    sizes: Counter[VariantPath] = Counter()
    needed = 0  # Values need the column with the names of fields.
    for facts in files:
        if open_paths := facts.open_paths():
            sizes.update(open_paths)
            needed += facts.columns.size(node for node in facts.column.node.children if node.name == "metadata")
    paths = set[VariantPath]()
    for path, size in sorted(sizes.items(), key=lambda entry: entry[1]):
        if needed + size > limit:
            break
        needed += size
        paths.add(path)
    return frozenset(paths), needed if paths else 0


def _add_file(result: FooterFigures, facts: VariantFacts) -> None:
    unproved: set[VariantPath] = set()
    unknown_below: set[VariantPath] = set()
    read = frozenset(path for path in result.read_paths if path in facts.paths and not has_old_list(facts, path))
    for path, of_path in facts.paths.items():
        figures, is_complete = _of_path(path, of_path, facts)
        is_unread = of_path.residual is Residual.OPEN and path not in read
        if is_unread or not is_complete:
            unknown_below.add(path)
            # If every value is a shredded object, the ``value`` column has only their other fields.
            if not is_complete or not of_path.is_object or of_path.typed != facts.places(path):
                unproved.add(path)
        add_all(result.figures, [(path, figures)])
    for residual in read_residuals(facts, read):
        result.residuals.append((facts.file.source.path, residual))
        if not _add_residual(result.figures, residual, facts.paths[residual.path]):
            unproved.add(residual.path)
    result.coverages.add(_Coverage(frozenset(facts.paths), frozenset(unproved), frozenset(unknown_below)))


def _add_residual(figures: dict[VariantPath, PathFigures], residual: ResidualValues, facts: PathFacts) -> bool:
    """Add the figures of values in a ``value`` column; return False if they contradict the typed columns."""
    parts = ValueFigures.of_array(residual.values).by_path(residual.path)
    objects = 0
    if facts.is_object and residual.path in parts:
        # An object next to a shredded object has its other fields, and is not another value.
        objects = parts[residual.path].types.pop("object", 0)
    for path, part in parts.items():
        if residual.path.has_wildcard or path.has_wildcard:
            part.rows = None
        elif path == residual.path:
            part.rows = part.count
    add_all(figures, parts.items())
    return facts.typed is None or objects <= facts.typed


def _of_path(path: VariantPath, of_path: PathFacts, facts: VariantFacts) -> tuple[PathFigures, bool]:
    """Return the figures of the typed values and of the nulls of a path, and whether they are complete.

    Values in a ``value`` column that the footer does not describe are not included.
    """
    figures, typed = PathFigures(), of_path.group.typed
    name = None if typed is None else _type_name(of_path)
    if of_path.stored is None or of_path.typed is None or (name is None and of_path.typed):
        return figures, False
    types: Counter[str] = Counter({name: of_path.typed} if name is not None else {})
    if of_path.residual is Residual.NULLS:
        types["null"] += of_path.stored
    figures.types = +types
    figures.rows = None if path.has_wildcard else figures.count
    figures.elements = of_path.elements or 0
    if typed is not None and typed.leaf is not None:
        figures.ranges = _ranges(facts.columns.statistics(typed))
        figures.string_bytes = of_path.text_bytes if name in ("string", "binary") and of_path.typed else 0
    return figures, of_path.elements is not None


def _type_name(of_path: PathFacts) -> str | None:
    typed = of_path.group.typed
    if typed is None or typed.leaf is None:
        return of_path.group.type_name
    arrow = leaf_type(typed)
    return None if arrow is None else arrow_type_name(arrow)


def _ranges(bounds: LeafStatistics) -> dict[str, Range]:
    low, high = bounds.lower, bounds.upper
    if low is None or high is None:
        return {}
    kind = low.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return {"number": (low.as_py(), high.as_py())}
    if pa.types.is_date(kind):
        return {"date": (low.as_py(), high.as_py())}
    if pa.types.is_timestamp(kind):
        name = "timestamp" if kind.tz is not None else "timestamp_ntz"
        micros = kind if kind.unit == "us" else pa.timestamp("us", kind.tz)
        return {name: (low.cast(micros, safe=False).as_py(), high.cast(micros, safe=False).as_py())}
    return {}
