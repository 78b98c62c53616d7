"""Files of a snapshot that may hold a match, by partition values and statistics of the log, before any file is opened.

Owns reading statistics of columns as arrays with one entry per file, because a table may have a million files. Leaves
the statistics themselves to `tables.pruning` and the reasoning to `query.prune`. Unknown statistics never prune.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.kernels.arrow_buffers import Mask, from_numpy, scalar, to_numpy
from parquet_variant.query.predicate import Predicate, columns_of
from parquet_variant.query.selection import Selected
from parquet_variant.support import arrow_compute as pc
from parquet_variant.tables import pruning
from parquet_variant.tables.delta.file_locations import partition_column
from parquet_variant.tables.delta.log.snapshot import Snapshot
from parquet_variant.tables.delta.protocol.actions import was_float
from parquet_variant.tables.delta.statistics import StatsTable, decode_bounds_array, read_stats
from parquet_variant.tables.pruning import parsed_bounds
from parquet_variant.tables.schema import VARIANT, Place, fields_at


def prune_files(
    current: Snapshot, predicate: Predicate | None, selection: Mapping[str, Selected], place: Place | None
) -> pruning.Pruned:
    """Return the files of a snapshot that may hold a match of a bound predicate over some columns.

    `place`: the place of the Variant column, as logical names.
    """
    pruned = pruning.Pruned(current.files, current.num_files)
    if predicate is None or not current.num_files:
        return pruned
    names, remaining = columns_of(predicate), []
    for start in range(0, current.num_files, pruning.FILES_AT_ONCE):
        files = current.files.slice(start, pruning.FILES_AT_ONCE)
        by_name = {name: _partition_statistics(current, files, selection[name]) for name in names}
        statistics = {name: column for name, column in by_name.items() if column is not None}
        mask = pruning.may_match_files(predicate, statistics, len(files))
        candidates = files if mask.all() else files.filter(from_numpy(mask))
        pruned.by_partition += len(files) - len(candidates)
        selected = {name: selection[name] for name in names - statistics.keys()}
        if selected and len(candidates):
            statistics = {name: column.part(mask) for name, column in statistics.items()}
            statistics |= _statistics(current, candidates, place, selected)
            mask = pruning.may_match_files(predicate, statistics, len(candidates))
            pruned.by_statistics += len(candidates) - int(mask.sum())
            candidates = candidates.filter(from_numpy(mask))
        remaining.append(candidates)
    pruned.files = pa.concat_tables(remaining)
    return pruned


def _statistics(
    current: Snapshot, files: pa.Table, place: Place | None, selection: Mapping[str, Selected]
) -> dict[str, pruning.FileStatistics]:
    """Return the statistics of stored columns in some files, from the log."""
    fields = {name: current.schema.get(selected.stored_name) for name, selected in selection.items()}
    variant = tuple(f.physical_name for f in (() if place is None else fields_at(current.schema, place)))
    places = [(f.physical_name,) for f in fields.values() if f is not None]
    stats = read_stats(files, current.schema, [*places, *([variant] if variant else [])])
    bounds: list[list[VariantArray]] = []
    by_column = {}
    for name, selected in selection.items():
        field = fields[name]
        if selected.path is not None:
            bounds = bounds or [_variants(stats, kind, variant) for kind in ("minValues", "maxValues")]
            by_column[name] = pruning.path_statistics(
                selected, bounds[0], bounds[1], len(files), _nulls(stats, variant)[1]
            )
        elif field is not None:
            column, lower, upper = (field.physical_name,), None, None
            if selected.type is not None and field.type != VARIANT:
                lower, upper = _statistic(stats, "minValues", column), _statistic(stats, "maxValues", column)
            if upper is not None and pa.types.is_timestamp(upper.type):
                upper = pruning.later_maxima(upper)
            if selected.type is not None and pa.types.is_floating(selected.type):
                is_known = not was_float(field)
                lower, upper = (
                    pruning.double_bounds(bound) if is_known and bound is not None else None for bound in (lower, upper)
                )
            by_column[name] = pruning.FileStatistics(len(files), lower, upper, *_nulls(stats, column))
    return by_column


def _nulls(stats: StatsTable, place: Place) -> tuple[bool | Mask, bool | Mask]:
    """Return whether the column of each file may hold a null, and whether it may hold another value."""
    nulls = _statistic(stats, "nullCount", place)
    if nulls is None:
        return True, True
    may_be_null = pruning.true_or_unknown(pc.not_equal(nulls, scalar(0, nulls.type)))
    return may_be_null, pruning.true_or_unknown(pc.not_equal(nulls, one_chunk(stats.num_records)))


def _variants(stats: StatsTable, kind: str, place: Place) -> list[VariantArray]:
    """Return the bounds of the Variant column: those of the log's JSON, then those of checkpoints."""
    texts, parsed = _statistic(stats, kind, place), stats.parsed_variant(kind, place)
    sources = [] if texts is None else [decode_bounds_array(texts)]
    sources += [] if parsed is None else [parsed_bounds(parsed)]
    return [VariantArray.from_storage(source) for source in sources]


def _statistic(stats: StatsTable, kind: str, place: Place) -> pa.Array | None:
    try:
        return one_chunk(stats.get(kind, place))
    except (KeyError, pa.ArrowException):
        return None


def _partition_statistics(current: Snapshot, files: pa.Table, selected: Selected) -> pruning.FileStatistics | None:
    """Return the statistics of a partition column; None for other columns and for paths."""
    field = None if selected.path is not None else current.schema.get(selected.stored_name)
    if field is None or field.name.lower() not in {name.lower() for name in current.partition_columns}:
        return None
    values = partition_column(files, field)
    is_null = to_numpy(values.is_null())
    bounds = values.cast(pa.float64()) if pa.types.is_floating(values.type) else values
    return pruning.FileStatistics(len(values), bounds, bounds, is_null, ~is_null)
