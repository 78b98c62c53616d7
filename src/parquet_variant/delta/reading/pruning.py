"""Which files of a snapshot may hold a match: partition values and statistics of the log, before any file is opened.

Owns statistics of columns as arrays, one entry a file, since a table may have a million files. Leaves the reasoning
over them to `query.prune`; what is not known never prunes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.parts import one_chunk
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.delta.data.file_partitions import partition_column
from parquet_variant.delta.log.snapshot import Snapshot
from parquet_variant.delta.protocol.schema import was_float
from parquet_variant.delta.statistics.stats_table import StatsTable, read_stats
from parquet_variant.delta.statistics.variant_stats import decode_bounds_array
from parquet_variant.errors import VariantError
from parquet_variant.functions.variant_get import try_variant_get
from parquet_variant.kernels.arrow_buffers import from_numpy, scalar, to_numpy
from parquet_variant.path import VariantPath
from parquet_variant.query.predicate import Predicate, columns_of
from parquet_variant.query.prune import Side, Truth, cast_keeps_order, may_match
from parquet_variant.query.selection import Selected
from parquet_variant.tables.path_bounds import parsed_bounds
from parquet_variant.tables.schema import VARIANT, Field, fields_at
from parquet_variant.types import TYPE_OF_ID, BasicType, VariantType

Mask = npt.NDArray[np.bool_]
# Statistics of so many files are in memory as columns at a time.
FILES_AT_ONCE = 1 << 15
# Writers may cut timestamps to milliseconds; then the true maximum is up to this much later.
_CUT = timedelta(microseconds=999)
_FUNCTIONS = {"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}
_FLOATS = {VariantType.FLOAT, VariantType.DOUBLE}
_DECIMALS = {VariantType.DECIMAL4, VariantType.DECIMAL8, VariantType.DECIMAL16}


@dataclass(frozen=True)
class FileStatistics:
    """What is known of one column in each file."""

    files: int
    # Bounds, null where unknown; doubles for float columns. None if unknown everywhere.
    lower: pa.Array | None = None
    upper: pa.Array | None = None
    # Whether a row may be null, or anything else: for all files, or for each.
    may_be_null: bool | Mask = True
    may_be_value: bool | Mask = True
    # Whether a NaN may be there that the bounds do not show; for all files, or for each.
    may_be_nan: bool | Mask = True

    def may_be(self, side: Side, literal: pa.Scalar) -> Truth:
        """Whether any value, NaN apart, may lie on that side of a literal."""
        bounds = self.lower if side in ("<", "<=") else self.upper
        if bounds is None:
            return True
        if bounds.type == pa.uuid():
            bounds, literal = bounds.cast(pa.binary(16)), literal.cast(pa.binary(16))
        elif pa.types.is_string(bounds.type) or pa.types.is_large_string(bounds.type):
            literal = literal.cast(bounds.type)
        return _or_unknown(pc.call_function(_FUNCTIONS[side], [bounds, literal]))

    def may_equal(self, literal: pa.Scalar) -> bool:
        """Whether any value may equal a literal: nothing but the bounds says so."""
        return True


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
    left = {name: _subset(known, kept) for name, known in statistics.items()}
    masks = []
    for start in range(0, len(files), FILES_AT_ONCE):
        part = files.slice(start, FILES_AT_ONCE)
        at = slice(start, start + len(part))
        known = {name: _subset(each, at) for name, each in left.items()}
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


def may_match_files(predicate: Predicate, statistics: Mapping[str, FileStatistics], files: int) -> Mask:
    """For each file, whether some row may satisfy the predicate; False only if it is certain that none does.

    `statistics`: what is known of columns, by name; of others nothing is.
    `files`: how many files there are.
    """
    answer = may_match(predicate, lambda name: statistics.get(name, FileStatistics(files)))
    return np.full(files, answer) if isinstance(answer, bool) else answer


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
            upper = _later(upper)
        if each.type is not None and pa.types.is_floating(each.type):
            lower, upper = (None if bounds is None else _numbers(bounds) for bounds in (lower, upper))
            if was_float(field):
                lower = upper = None
        return FileStatistics(self.count, lower, upper, null, value)

    def _path_statistics(self, each: Selected) -> FileStatistics:
        assert each.path is not None and self.place is not None
        _, value = self._nulls(self.place)
        names_only = all(isinstance(segment, str) for segment in each.path.segments)
        if each.type is None or pa.types.is_nested(each.type) or not names_only:
            return FileStatistics(self.count, may_be_value=value)
        lower, _ = self._typed("minValues", each.path, each.type)
        upper, maybe_nan = self._typed("maxValues", each.path, each.type)
        if pa.types.is_floating(each.type):
            return FileStatistics(self.count, _numbers(lower), _numbers(upper), True, value, maybe_nan)
        if pa.types.is_timestamp(each.type):
            upper = _later(upper)
        if not (pa.types.is_string(each.type) or pa.types.is_large_string(each.type)):
            # A cast that fails makes a null; one that holds for both bounds holds for all between. Texts need none.
            both = pc.and_(lower.is_valid(), upper.is_valid())
            lower = pc.if_else(both, lower, scalar(None, lower.type))
            upper = pc.if_else(both, upper, scalar(None, upper.type))
        return FileStatistics(self.count, lower, upper, True, value, False)

    def _nulls(self, place: tuple[str, ...]) -> tuple[bool | Mask, bool | Mask]:
        nulls = _get(self.stats, "nullCount", place)
        if nulls is None:
            return True, True
        rows = one_chunk(self.stats.num_records)
        null = _or_unknown(pc.not_equal(nulls, scalar(0, nulls.type)))
        value = _or_unknown(pc.not_equal(nulls, rows))
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

    def _typed(self, kind: str, path: VariantPath, target: pa.DataType) -> tuple[pa.Array, Mask]:
        """The bound of a path as the target type, null where there is none or the cast may change the order.

        And whether the path may hold a NaN: where its bound is a float or double, since writers may leave NaN out.
        """
        answer, nan = pa.nulls(self.count, target), np.zeros(self.count, dtype=bool)
        for bounds in self._variants(kind):
            typed, floating = _bound_at(bounds, path, target)
            answer = pc.if_else(answer.is_null(), typed, answer)
            nan |= floating
        return answer, nan


def _or_unknown(answers: pa.BooleanArray) -> Mask:
    """Where an answer is true or null, which is unknown."""
    return to_numpy(answers.fill_null(scalar(True, pa.bool_())))


def _bound_at(bounds: VariantArray, path: VariantPath, target: pa.DataType) -> tuple[pa.Array, Mask]:
    """The bound of a path as the target type, and where it is a float; null where damaged, since it is then unknown."""
    try:
        at_path = try_variant_get(bounds, VariantPath((str(path),)), "variant")
        keep, floating = _order_kept(at_path.storage, target)
        typed = try_variant_get(at_path, "$", target)
        return pc.if_else(from_numpy(keep), typed, scalar(None, typed.type)).cast(target), floating
    except VariantError:
        if len(bounds) == 1:
            return pa.nulls(1, target), np.zeros(1, dtype=bool)
    middle = len(bounds) // 2
    halves = [_bound_at(bounds[part], path, target) for part in (slice(0, middle), slice(middle, None))]
    return pa.concat_arrays([half[0] for half in halves]), np.concatenate([half[1] for half in halves])


def _numbers(bounds: pa.Array) -> pa.Array:
    """Bounds as doubles; a NaN among them says nothing."""
    bounds = bounds.cast(pa.float64())
    return pc.if_else(pc.is_nan(bounds), scalar(None, pa.float64()), bounds)


def _order_kept(storage: pa.StructArray, target: pa.DataType) -> tuple[Mask, Mask]:
    """Where a scalar's cast to the target never puts a smaller value above a larger one; and where it is a float."""
    values = storage.field("value").cast(pa.large_binary())
    first, second = _leading_bytes(values)
    keep = _headers(_sources(target))[first]
    if pa.types.is_decimal(target) or pa.types.is_integer(target):
        scale = target.scale if pa.types.is_decimal(target) else 0
        keep &= ~_headers(_DECIMALS)[first] | (second <= scale)
    return keep & to_numpy(pc.and_(storage.is_valid(), values.is_valid())), _headers(_FLOATS)[first]


def _headers(kinds: Collection[VariantType]) -> Mask:
    """For each possible first byte of a value, whether it begins one of some scalar types."""
    headers = np.zeros(256, dtype=bool)
    for number, info in TYPE_OF_ID.items():
        headers[number << 2 | BasicType.PRIMITIVE] = info.type in kinds
    headers[BasicType.SHORT_STRING :: 4] = VariantType.STRING in kinds
    return headers


def _sources(target: pa.DataType) -> set[VariantType]:
    """The Variant types whose order a cast to the target keeps; of decimals, those of a scale that it holds."""
    decimal = pa.decimal128(38, 0)
    stored = {info.type: decimal if info.type in _DECIMALS else info.arrow for info in TYPE_OF_ID.values()}
    return {
        kind
        for kind, arrow in stored.items()
        if arrow is not None and kind != VariantType.BINARY and cast_keeps_order(arrow, target)
    }


def _leading_bytes(values: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    offsets = np.frombuffer(values.buffers()[1], dtype=np.int64)[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(values.buffers()[2] or b"", dtype=np.uint8)
    leading = []
    for k in range(2):
        at = offsets[:-1] + k
        inside = at < offsets[1:]
        byte = np.zeros(len(values), dtype=np.uint8)
        byte[inside] = data[at[inside]]
        leading.append(byte)
    return leading[0], leading[1]


def _later(upper: pa.Array) -> pa.Array:
    """Maxima of timestamps that may have been cut; unknown if one is at the end of time."""
    try:
        return pc.add_checked(upper, pa.scalar(_CUT, pa.duration("us")).cast(pa.duration(upper.type.unit)))
    except pa.ArrowInvalid:
        return pa.nulls(len(upper), upper.type)


def _get(stats: StatsTable, kind: str, place: tuple[str, ...]) -> pa.Array | None:
    try:
        return one_chunk(stats.get(kind, place))
    except (KeyError, pa.ArrowException):
        return None


def _subset(known: FileStatistics, kept: Mask | slice) -> FileStatistics:
    """The statistics of some of the files."""
    numbers = np.arange(known.files)[kept]
    parts = {
        name: value.take(pa.array(numbers)) if isinstance(value, pa.Array) else value[numbers]
        for name in ("lower", "upper", "may_be_null", "may_be_value", "may_be_nan")
        if not ((value := getattr(known, name)) is None or isinstance(value, bool))
    }
    return replace(known, files=len(numbers), **parts)


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
