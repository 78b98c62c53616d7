"""Files of a snapshot that may hold a match, by partition values and statistics of the log, before any file is opened.

Owns reading statistics of columns as arrays with one entry per file, because a table may have a million files. Leaves
the statistics themselves to `tables.pruning` and the reasoning to `query.prune`. Unknown statistics never prune.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.kernels.arrow_buffers import Mask, from_numpy, scalar, to_numpy
from parquet_variant.query.predicate import Predicate, columns_of
from parquet_variant.query.selection import Selected
from parquet_variant.support import arrow_compute as pc
from parquet_variant.tables.delta.file_locations import partition_column
from parquet_variant.tables.delta.log.snapshot import Snapshot
from parquet_variant.tables.delta.protocol.schema import was_float
from parquet_variant.tables.delta.statistics import StatsTable, decode_bounds_array, read_stats
from parquet_variant.tables.path_bounds import parsed_bounds
from parquet_variant.tables.pruning import (
    FILES_AT_ONCE,
    FileStatistics,
    double_bounds,
    later_maxima,
    may_match_files,
    path_statistics,
    true_or_unknown,
)
from parquet_variant.tables.schema import VARIANT, Field, Place, fields_at


@dataclass(frozen=True)
class Pruned:
    """The files that may hold a match."""

    files: pa.Table  # Rows of `Snapshot.files`.
    total: int  # The number of files before.
    # The number of files that were ruled out.
    by_partition: int = 0
    by_statistics: int = 0


def prune_files(
    current: Snapshot, predicate: Predicate | None, selection: Mapping[str, Selected], place: Place | None
) -> Pruned:
    """Return the files of a snapshot that may hold a match of a bound predicate over some columns.

    `place`: the place of the Variant column, as logical names.
    """
    total = current.num_files
    if predicate is None or not total:
        return Pruned(current.files, total)
    names = columns_of(predicate)
    partitions = {name for name in names if _partition_field(current, selection[name]) is not None}
    statistics = {name: _partition_statistics(current, selection[name]) for name in partitions}
    mask = may_match_files(predicate, statistics, total)
    by_partition = int(total - mask.sum())
    files = current.files.filter(pa.array(mask)) if by_partition else current.files
    stored_columns = names - partitions
    if not stored_columns or not len(files):
        return Pruned(files, total, by_partition)
    selected = {name: selection[name] for name in stored_columns}
    remaining = {name: column.part(mask) for name, column in statistics.items()}
    masks = []
    for start in range(0, len(files), FILES_AT_ONCE):
        part = files.slice(start, FILES_AT_ONCE)
        rows = slice(start, start + len(part))
        part_statistics = {name: column.part(rows) for name, column in remaining.items()}
        part_statistics |= _Statistics(current, part, place, selected).by_column()
        masks.append(may_match_files(predicate, part_statistics, len(part)))
    mask = np.concatenate(masks)
    return Pruned(files.filter(from_numpy(mask)), total, by_partition, int(len(files) - mask.sum()))


def column_bounds(
    current: Snapshot, selected: Selected, place: Place | None
) -> tuple[pa.Array | None, pa.Array | None]:
    """Return the bounds of one column in each file: null, or None for all files, if unknown; see `prune_files`."""
    if _partition_field(current, selected) is not None:
        statistics = _partition_statistics(current, selected)
    else:
        by_column = _Statistics(current, current.files, place, {selected.name: selected}).by_column()
        statistics = by_column.get(selected.name, FileStatistics(current.num_files))
    return statistics.lower, statistics.upper


class _Statistics:
    """Statistics of columns in some files, from the log."""

    def __init__(
        self, current: Snapshot, files: pa.Table, place: Place | None, selection: Mapping[str, Selected]
    ) -> None:
        self.selection, self.count = selection, len(files)
        self.fields = {name: current.schema.get(selected.stored_name) for name, selected in selection.items()}
        way = () if place is None else fields_at(current.schema, place)
        self.place = tuple(field.physical_name for field in way) or None
        places: list[Place] = [(f.physical_name,) for f in self.fields.values() if f is not None]
        places += [self.place] if self.place is not None else []
        self.stats = read_stats(files, current.schema, places)
        self._bounds: dict[str, list[VariantArray]] = {}

    def by_column(self) -> dict[str, FileStatistics]:
        by_column = {}
        for name, selected in self.selection.items():
            field = self.fields[name]
            if selected.path is not None:
                by_column[name] = self._path_statistics(selected)
            elif field is not None:
                by_column[name] = self._column_statistics(field, selected)
        return by_column

    def _column_statistics(self, field: Field, selected: Selected) -> FileStatistics:
        place = (field.physical_name,)
        may_be_null, may_be_value = self._nulls(place)
        lower = upper = None
        if selected.type is not None and field.type != VARIANT:
            lower, upper = _statistic(self.stats, "minValues", place), _statistic(self.stats, "maxValues", place)
        if upper is not None and pa.types.is_timestamp(upper.type):
            upper = later_maxima(upper)
        if selected.type is not None and pa.types.is_floating(selected.type):
            lower, upper = (None if bounds is None else double_bounds(bounds) for bounds in (lower, upper))
            if was_float(field):
                lower = upper = None
        return FileStatistics(self.count, lower, upper, may_be_null, may_be_value)

    def _path_statistics(self, selected: Selected) -> FileStatistics:
        assert self.place is not None
        _, may_be_value = self._nulls(self.place)
        lower, upper = (self._variants(kind) for kind in ("minValues", "maxValues"))
        return path_statistics(selected, lower, upper, self.count, may_be_value)

    def _nulls(self, place: Place) -> tuple[bool | Mask, bool | Mask]:
        """Return whether the column of each file may hold a null, and whether it may hold another value."""
        nulls = _statistic(self.stats, "nullCount", place)
        if nulls is None:
            return True, True
        rows = one_chunk(self.stats.num_records)
        may_be_null = true_or_unknown(pc.not_equal(nulls, scalar(0, nulls.type)))
        may_be_value = true_or_unknown(pc.not_equal(nulls, rows))
        return may_be_null, may_be_value

    def _variants(self, kind: str) -> list[VariantArray]:
        """Return the bounds of the Variant column: those of the log's JSON, then those of checkpoints."""
        if kind not in self._bounds:
            assert self.place is not None
            texts = _statistic(self.stats, kind, self.place)
            variants = []
            if texts is not None:
                variants.append(VariantArray.from_storage(decode_bounds_array(texts)))
            parsed = self.stats.parsed_variant(kind, self.place)
            if parsed is not None:
                variants.append(VariantArray.from_storage(parsed_bounds(parsed)))
            self._bounds[kind] = variants
        return self._bounds[kind]


def _statistic(stats: StatsTable, kind: str, place: Place) -> pa.Array | None:
    try:
        return one_chunk(stats.get(kind, place))
    except (KeyError, pa.ArrowException):
        return None


def _partition_field(current: Snapshot, selected: Selected) -> Field | None:
    if selected.path is not None:
        return None
    field = current.schema.get(selected.stored_name)
    names = {name.lower() for name in current.partition_columns}
    return field if field is not None and field.name.lower() in names else None


def _partition_statistics(current: Snapshot, selected: Selected) -> FileStatistics:
    field = _partition_field(current, selected)
    assert field is not None
    values = partition_column(current.files, field)
    is_null = to_numpy(values.is_null())
    bounds = values.cast(pa.float64()) if pa.types.is_floating(values.type) else values
    return FileStatistics(len(values), bounds, bounds, is_null, ~is_null)
