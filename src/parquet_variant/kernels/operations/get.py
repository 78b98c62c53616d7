"""Find values inside Variant bytes, one column at a time: by key, by index, or all children; and read them.

Owns the walk over encoded values. A value is represented by its start and by the address that its bytes must not pass.
A start of ``ABSENT`` means no value, a start of ``BROKEN`` a value that was reached through malformed bytes. Every
bound is checked before a byte is read. Leaves columns and rows to `arrays.value_positions`, and casting slots to
`ops.columns.slot_casts`.
"""

from __future__ import annotations

from typing import NamedTuple

from parquet_variant.encoding.scalars import MICROS_PER_DAY
from parquet_variant.kernels.machine_code.functions import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int32s, Int64s, Int64Table, UInt8s
from parquet_variant.kernels.memory import KIND, equal, load_s16, load_u8, load_uint, prefetch
from parquet_variant.kernels.values.reading import (
    Container,
    container,
    metadata_header,
    scalar_of_size,
    value_kind,
    value_size,
)

ABSENT, BROKEN = 0, -1
# Kinds of slots in addition to those of the tape: no value, and malformed bytes.
MISSING, MALFORMED = 254, 255

# Results of `resolve_key` that are not ids.
_NOT_THERE, _NO_DICTIONARY, _TWICE = -1, -2, -3

_MAX_SCALE = 38


@kernel
def resolve_key(meta_offsets: Int64s, meta_address: int, key_address: int, key_size: int, ids: Int64s) -> None:
    """Fill the id of a key in each metadata; negative for a missing key, malformed metadata or a duplicate key."""
    for m in range(len(ids)):
        at, stop = meta_address + meta_offsets[m], meta_address + meta_offsets[m + 1]
        _, size, offsets_at, width, names_at, _ = metadata_header(at, stop)
        # As in the scalar form, only the offsets must be complete: names after the end are not keys.
        ids[m] = _NOT_THERE if names_at else _NO_DICTIONARY
        low = load_uint(offsets_at, width) if size else 0
        for i in range(size):
            high = load_uint(offsets_at + (i + 1) * width, width)
            if high - low == key_size and names_at + high <= stop and equal(names_at + low, key_address, key_size):
                ids[m] = i if ids[m] == _NOT_THERE else _TWICE
            low = high


# Index of a field whose key is duplicated.
_REPEATED = -2
# One match of an id.
_MATCH = 1 << 32
# Values that are loaded ahead: a column is larger than the cache, and the sizes of its values vary.
_AHEAD = 8
# Number of children of a value of another type, and of a malformed container.
_OTHER_TYPE, _BAD_CONTAINER = -1, -2


class Keys(NamedTuple):
    """The keys to find in objects."""

    ids: Int64Table  # ``int64[keys, dictionaries]``, as filled by `resolve_key`.
    # Where the UTF-8 bytes of each key are.
    addresses: Int64s
    sizes: Int64s


@helper
def _container(at: int, stop: int, basic: int) -> Container:
    """Return the parts of an object (basic type 2) or array (3); the count is _OTHER_TYPE or _BAD_CONTAINER if none."""
    if at < stop and load_u8(at) & 3 != basic:
        return Container(False, _OTHER_TYPE, 0, 0, 0, 0, 0, 0)
    parts = container(at, stop)
    return parts if parts.ok else Container(False, _BAD_CONTAINER, 0, 0, 0, 0, 0, 0)


@helper(inline=True)
def _child(children: Container, index: int) -> int:
    """Return the address of a child; BROKEN if it is not before the end of the values."""
    width = children.offset_width
    offset = load_uint(children.offsets + index * width, width)
    return children.values + offset if offset < children.size else BROKEN


@helper(inline=True)
def _field(ids_at: int, id_size: int, count: int, field_id: int) -> int:
    """Return the index of the field with an id, -1 or _REPEATED; a loop without an early exit is vectorized."""
    matches = 0  # the number of matches, and in the lower half the sum of their indices
    if id_size == 1:
        for i in range(count):
            matches += _MATCH + i if load_u8(ids_at + i) == field_id else 0
    elif id_size == 2:
        signed_id = field_id - (1 << 16) if field_id >= 1 << 15 else field_id
        for i in range(count):
            matches += _MATCH + i if load_s16(ids_at + 2 * i) == signed_id else 0
    else:
        for i in range(count):
            matches += _MATCH + i if load_uint(ids_at + i * id_size, id_size) == field_id else 0
    if matches < 2 * _MATCH:
        return matches - _MATCH if matches else -1
    return _REPEATED


@helper
def _field_by_name(
    ids_at: int, id_size: int, count: int, meta_at: int, meta_stop: int, key_address: int, key_size: int
) -> int:
    """Return the index of the field with a name, -1 or _REPEATED, for dictionaries with a duplicate name."""
    _, size, offsets_at, width, names_at, _ = metadata_header(meta_at, meta_stop)
    position = -1
    for i in range(count):
        field_id = load_uint(ids_at + i * id_size, id_size)
        if field_id >= size:
            continue
        low, high = (
            load_uint(offsets_at + field_id * width, width),
            load_uint(offsets_at + (field_id + 1) * width, width),
        )
        is_inside = high - low == key_size and names_at + high <= meta_stop
        if is_inside and equal(names_at + low, key_address, key_size):
            position = i if position == -1 else _REPEATED
    return position


@kernel
def find_keys(
    starts: Int64s,
    stops: Int64s,
    metas: Int32s,
    keys: Keys,
    meta_offsets: Int64s,
    meta_address: int,
    out_starts: Int64Table,
    out_stops: Int64Table,
) -> None:
    """Find the values of some keys (first axis of the outputs) in each object; absent in any other value."""
    for i in range(len(starts)):
        prefetch(starts[min(i + _AHEAD, len(starts) - 1)])
        at, meta = starts[i], metas[i]
        children = Container(True, 0, 0, 0, 0, 0, 0, 0)
        if at > 0:
            children = _container(at, stops[i], 2)
        count, ids_at, id_size = children.count, children.ids, children.id_width
        is_broken = at < 0 or count == _BAD_CONTAINER or (count > 0 and meta < 0)
        for k in range(len(keys.ids)):
            out_starts[k, i] = BROKEN if is_broken else ABSENT
            out_stops[k, i] = 0
            if is_broken or count <= 0:
                continue
            key_id = keys.ids[k, meta]
            if key_id == _NO_DICTIONARY:
                out_starts[k, i] = BROKEN
                continue
            if key_id == _NOT_THERE:
                continue
            if key_id == _TWICE:
                index = _field_by_name(
                    ids_at, id_size, count, meta_address + meta_offsets[meta], meta_address + meta_offsets[meta + 1],
                    keys.addresses[k], keys.sizes[k],
                )  # fmt: skip
            else:
                index = _field(ids_at, id_size, count, key_id)
            if index == _REPEATED:
                out_starts[k, i] = BROKEN  # the specification does not allow duplicate keys
            elif index >= 0:
                out_starts[k, i] = _child(children, index)
                out_stops[k, i] = children.values + children.size


@kernel
def find_index(starts: Int64s, stops: Int64s, index: int, out_starts: Int64s, out_stops: Int64s) -> None:
    """Find the element at a position of each array; absent in any other value."""
    for i in range(len(starts)):
        at = starts[i]
        out_starts[i] = at if at < 0 else ABSENT
        out_stops[i] = 0
        if at <= 0:
            continue
        children = _container(at, stops[i], 3)
        if children.count == _BAD_CONTAINER:
            out_starts[i] = BROKEN
        elif index < children.count:
            out_starts[i] = _child(children, index)
            out_stops[i] = children.values + children.size


@kernel
def count_children(starts: Int64s, stops: Int64s, basic: int, counts: Int64s) -> int:
    """Fill the number of fields of each object (2) or elements of each array (3); -1 for any other value.

    Returns the first malformed position, or -1.
    """
    for i in range(len(starts)):
        counts[i] = -1
        if starts[i] < 0:
            return i
        if starts[i] > 0:
            count = _container(starts[i], stops[i], basic).count
            if count == _BAD_CONTAINER:
                return i
            counts[i] = count
    return -1


@kernel
def find_children(
    starts: Int64s,
    stops: Int64s,
    metas: Int32s,
    basic: int,
    offsets: Int64s,
    sizes: Int64s,
    out_starts: Int64s,
    out_stops: Int64s,
    out_parents: Int64s,
    out_ids: Int64s,
) -> int:
    """Find every field or element, in order; a field with its dictionary id.

    Returns the first malformed position, or -1.

    ``sizes`` is the number of names of each metadata. Children that share bytes are refused, because a few bytes could
    otherwise represent any number of values.
    """
    for i in range(len(starts)):
        at = offsets[i]
        if offsets[i + 1] == at:
            continue
        children = _container(starts[i], stops[i], basic)
        end = children.values + children.size
        names = sizes[metas[i]] if basic == 2 and metas[i] >= 0 else 0
        room = children.size
        for j in range(children.count):
            child = _child(children, j)
            if child == BROKEN:
                return i
            child_end = value_end(child, end)
            room -= child_end - child
            if child_end < 0 or room < 0:
                return i
            out_starts[at + j] = child
            out_stops[at + j] = end
            out_parents[at + j] = i
            if basic == 2:
                out_ids[at + j] = load_uint(children.ids + j * children.id_width, children.id_width)
                if out_ids[at + j] >= names:
                    return i
    return -1


@kernel
def value_end(at: int, stop: int) -> int:
    """Return where the value at an address ends; -1 if it is malformed or ends after ``stop``."""
    size = value_size(at, stop)
    return -1 if size < 0 else at + size


@kernel
def measure(starts: Int64s, stops: Int64s, sizes: Int64s) -> int:
    """Fill the size of each value, 0 for an absent value. Returns the first malformed position, or -1."""
    for i in range(len(starts)):
        sizes[i] = 0
        if starts[i] != ABSENT:
            end = value_end(starts[i], stops[i]) if starts[i] > 0 else -1
            if end < 0:
                return i
            sizes[i] = end - starts[i]
    return -1


@kernel
def read_slots(starts: Int64s, stops: Int64s, kinds: UInt8s, a: Int64s, b: Int64s, scales: UInt8s) -> int:
    """Read each value into ``kind``, payload ``a`` and ``b`` (as on the tape) and decimal scale.

    Arrays and objects have their address in ``a`` and their bytes in ``b``. Returns the first malformed position or -1.
    """
    broken = -1
    for i in range(len(starts)):
        prefetch(starts[min(i + _AHEAD, len(starts) - 1)])
        at = starts[i]
        kinds[i] = MISSING
        a[i] = 0
        b[i] = 0
        scales[i] = 0
        if at == ABSENT:
            continue
        size = value_size(at, stops[i]) if at > 0 else -1
        if size < 0:
            kinds[i] = MALFORMED
        elif load_u8(at) & 2:
            kinds[i] = value_kind(load_u8(at))
            a[i] = at
            b[i] = size
        else:
            kinds[i], a[i], b[i], scales[i] = scalar_of_size(at, size)
            if scales[i] > _MAX_SCALE or (kinds[i] == KIND.TIME and not 0 <= a[i] < MICROS_PER_DAY):
                kinds[i] = MALFORMED
        if kinds[i] == MALFORMED and broken < 0:
            broken = i
    return broken
