"""Which files of a snapshot may hold a match: partition values and statistics of the log, before any file is opened.

Owns statistics of columns as arrays, one entry a file, since a table may have a million files. Leaves the reasoning
over them to `query.prune`; what is not known never prunes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.parts import one_chunk
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.delta.data.file_partitions import partition_column
from parquet_variant.delta.log.snapshot import Snapshot
from parquet_variant.delta.protocol.schema import was_float
from parquet_variant.delta.statistics.stats_table import StatsTable, read_stats
from parquet_variant.delta.statistics.variant_stats import decode_bounds_array
from parquet_variant.kernels.arrow_buffers import from_numpy, scalar, to_numpy
from parquet_variant.query.predicate import Predicate, columns_of
from parquet_variant.query.selection import Selected
from parquet_variant.tables.path_bounds import parsed_bounds
from parquet_variant.tables.pruning import (
    FILES_AT_ONCE,
    FileStatistics,
    Mask,
    double_bounds,
    later_maxima,
    may_match_files,
    path_statistics,
    true_or_unknown,
)
from parquet_variant.tables.schema import VARIANT, Field, fields_at


@dataclass(frozen=True)
class Pruned:
    """The files that are left."""

    files: pa.Table  # Rows of `Snapshot.files`.
    # How many there were, and how many went for which reason.
    total: int
    by_partition: int = 0
    by_statistics: int = 0


def prune_files(
    current: Snapshot, predicate: Predicate | None, selection: Mapping[str, Selected], place: tuple[str, ...] | None
) -> Pruned:
    """The files of a snapshot that may hold a match.

    `current`: the table.
    `predicate`: a bound predicate, or None.
    `selection`: the columns that the predicate may name.
    `place`: where the variant column is, as logical names; None if there is none.
    """
    total = current.num_files
    if predicate is None or not total:
        return Pruned(current.files, total)
    names = columns_of(predicate)
    partitions = {n for n in names if _partition_field(current, selection[n]) is not None}
    statistics = {name: _partition_statistics(current, selection[name]) for name in partitions}
    kept = may_match_files(predicate, statistics, total)
    by_partition = int(total - kept.sum())
    files = current.files.filter(pa.array(kept)) if by_partition else current.files
    others = names - partitions
    if not others or not len(files):
        return Pruned(files, total, by_partition)
    selected = {name: selection[name] for name in others}
    left = {name: known.part(kept) for name, known in statistics.items()}
    masks = []
    for start in range(0, len(files), FILES_AT_ONCE):
        part = files.slice(start, FILES_AT_ONCE)
        at = slice(start, start + len(part))
        known = {name: each.part(at) for name, each in left.items()}
        known |= _Statistics(current, part, place, selected).by_column()
        masks.append(may_match_files(predicate, known, len(part)))
    mask = np.concatenate(masks)
    return Pruned(files.filter(from_numpy(mask)), total, by_partition, int(len(files) - mask.sum()))


def column_bounds(
    current: Snapshot, selected: Selected, place: tuple[str, ...] | None
) -> tuple[pa.Array | None, pa.Array | None]:
    """Bounds of one column in each file, null or None where unknown; see `prune_files`."""
    if _partition_field(current, selected) is not None:
        statistics = _partition_statistics(current, selected)
    else:
        known = _Statistics(current, current.files, place, {selected.name: selected}).by_column()
        statistics = known.get(selected.name, FileStatistics(current.num_files))
    return statistics.lower, statistics.upper


class _Statistics:
    """Statistics of columns from the statistics of some files."""

    def __init__(
        self, current: Snapshot, files: pa.Table, place: tuple[str, ...] | None, selected: Mapping[str, Selected]
    ) -> None:
        self.files, self.selected, self.count = files, selected, len(files)
        self.fields = {name: current.schema.get(each.column or each.name) for name, each in selected.items()}
        on_way = () if place is None else fields_at(current.schema, place)
        self.place = tuple(field.physical_name for field in on_way) or None
        places: list[tuple[str, ...]] = [(f.physical_name,) for f in self.fields.values() if f is not None]
        places += [self.place] if self.place is not None else []
        self.stats = read_stats(files, current.schema, places)
        self._bounds: dict[str, list[VariantArray]] = {}

    def by_column(self) -> dict[str, FileStatistics]:
        by_column = {}
        for name, each in self.selected.items():
            field = self.fields[name]
            if each.path is not None:
                by_column[name] = self._path_statistics(each)
            elif field is not None:
                by_column[name] = self._column_statistics(field, each)
        return by_column

    def _column_statistics(self, field: Field, each: Selected) -> FileStatistics:
        place = (field.physical_name,)
        null, value = self._nulls(place)
        lower = upper = None
        if each.type is not None and field.type != VARIANT:
            lower, upper = _get(self.stats, "minValues", place), _get(self.stats, "maxValues", place)
        if upper is not None and pa.types.is_timestamp(upper.type):
            upper = later_maxima(upper)
        if each.type is not None and pa.types.is_floating(each.type):
            lower, upper = (None if bounds is None else double_bounds(bounds) for bounds in (lower, upper))
            if was_float(field):
                lower = upper = None
        return FileStatistics(self.count, lower, upper, null, value)

    def _path_statistics(self, each: Selected) -> FileStatistics:
        assert self.place is not None
        _, value = self._nulls(self.place)
        lower, upper = (self._variants(kind) for kind in ("minValues", "maxValues"))
        return path_statistics(each, lower, upper, self.count, value)

    def _nulls(self, place: tuple[str, ...]) -> tuple[bool | Mask, bool | Mask]:
        nulls = _get(self.stats, "nullCount", place)
        if nulls is None:
            return True, True
        rows = one_chunk(self.stats.num_records)
        null = true_or_unknown(pc.not_equal(nulls, scalar(0, nulls.type)))
        value = true_or_unknown(pc.not_equal(nulls, rows))
        return null, value

    def _variants(self, kind: str) -> list[VariantArray]:
        """The bounds of the variant column: those of the log's JSON, then those of checkpoints."""
        if kind not in self._bounds:
            assert self.place is not None
            texts = _get(self.stats, kind, self.place)
            variants = []
            if texts is not None:
                variants.append(VariantArray.from_storage(decode_bounds_array(texts)))
            parsed = self.stats.parsed_variant(kind, self.place)
            if parsed is not None:
                variants.append(VariantArray.from_storage(parsed_bounds(parsed)))
            self._bounds[kind] = variants
        return self._bounds[kind]


def _get(stats: StatsTable, kind: str, place: tuple[str, ...]) -> pa.Array | None:
    try:
        return one_chunk(stats.get(kind, place))
    except (KeyError, pa.ArrowException):
        return None


def _partition_field(current: Snapshot, each: Selected) -> Field | None:
    if each.path is not None:
        return None
    field = current.schema.get(each.column or each.name)
    names = {name.lower() for name in current.partition_columns}
    return field if field is not None and field.name.lower() in names else None


def _partition_statistics(current: Snapshot, each: Selected) -> FileStatistics:
    field = _partition_field(current, each)
    assert field is not None
    values = partition_column(current.files, field)
    null = to_numpy(values.is_null())
    bounds = values.cast(pa.float64()) if pa.types.is_floating(values.type) else values
    return FileStatistics(len(values), bounds, bounds, null, ~null)
