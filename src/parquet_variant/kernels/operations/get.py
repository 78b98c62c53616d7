"""Finding values inside Variant bytes, a column at a time: by key, by index, all elements; and reading them.

Owns the walk over encoded values. A value is where it starts and where its bytes must end, as absolute addresses: a
start of ``ABSENT`` is no value, one of ``BROKEN`` was reached through malformed bytes. Every bound is checked before a
byte is read. Leaves columns and rows to `compute.value_positions`, and what a slot becomes to
`compute.slot_casts`.
"""

from __future__ import annotations

from parquet_variant.encoding.scalars import MICROS_PER_DAY
from parquet_variant.kernels.compiling import helper, kernel
from parquet_variant.kernels.kinds import KIND
from parquet_variant.kernels.memory import equal, load_s16, load_u8, load_uint
from parquet_variant.kernels.values.reading import container, scalar_of_size, value_kind, value_size
from parquet_variant.machine_code.signatures import Int32s, Int64s, Int64Table, UInt8s

ABSENT, BROKEN = 0, -1
# Kinds of slots beyond those of the tape: no value at all, and bytes that are none.
MISSING, MALFORMED = 254, 255

# What `resolve_key` found beside an id.
_NOT_THERE, _NO_DICTIONARY, _TWICE = -1, -2, -3

_MAX_SCALE = 38
# Up to this many ids a scan costs less than the jumps of a binary search.
_SCAN_FIELDS = 24


@helper(inline=True)
def _name(meta_at, meta_stop, size, width, field_id):
    """``(start, stop)`` of a name in a dictionary whose offsets are inside it; start is -1 if it has none."""
    if field_id >= size:
        return -1, -1
    offsets_at = meta_at + 1 + width
    names_at = offsets_at + (size + 1) * width
    low = names_at + load_uint(offsets_at + field_id * width, width)
    high = names_at + load_uint(offsets_at + (field_id + 1) * width, width)
    if low > high or high > meta_stop:
        return -1, -1
    return low, high


@helper
def _dictionary(at, stop):
    """``(size, width)`` of a metadata; size is -1 if it is malformed."""
    if at >= stop or (load_u8(at) & 0x0F) != 1:
        return -1, 1
    width = (load_u8(at) >> 6) + 1
    if at + 1 + width > stop:
        return -1, 1
    size = load_uint(at + 1, width)
    if size > 0 and at + 1 + width + (size + 1) * width > stop:
        return -1, 1
    return size, width


@kernel
def resolve_key(meta_offsets: Int64s, meta_address: int, key_address: int, key_size: int, ids: Int64s) -> None:
    """The id of a key in each metadata; negative where there is none, no dictionary, or more than one."""
    for m in range(len(ids)):
        at, stop = meta_address + meta_offsets[m], meta_address + meta_offsets[m + 1]
        size, width = _dictionary(at, stop)
        ids[m] = _NO_DICTIONARY if size < 0 else _NOT_THERE
        if size <= 0:
            continue
        offsets_at = at + 1 + width
        names_at = offsets_at + (size + 1) * width
        low = load_uint(offsets_at, width)
        for i in range(size):
            high = load_uint(offsets_at + (i + 1) * width, width)
            if high - low == key_size and names_at + high <= stop and equal(names_at + low, key_address, key_size):
                ids[m] = i if ids[m] == _NOT_THERE else _TWICE
            low = high


@helper
def _container(at, stop, basic):
    """``(count, ids_at, id_size, offsets_at, offset_size, values_at, end)`` of an object (2) or array (3).

    The count is -1 if the value is something else, -2 if it is malformed.
    """
    if at < stop and load_u8(at) & 3 != basic:
        return -1, 0, 0, 0, 0, 0, 0
    ok, count, ids_at, id_size, offsets_at, offset_size, values_at, size = container(at, stop)
    return (count if ok else -2), ids_at, id_size, offsets_at, offset_size, values_at, values_at + size


@helper(inline=True)
def _scan(ids_at, id_size, count, field_id):
    """Index of an id in a list of ids, or -1."""
    if id_size == 1:
        for i in range(count):
            if load_u8(ids_at + i) == field_id:
                return i
        return -1
    for i in range(count):
        if load_uint(ids_at + i * id_size, id_size) == field_id:
            return i
    return -1


@helper(inline=True)
def _field(ids_at, id_size, count, field_id):
    """Index of the field with an id, or -1: in a sorted dictionary ids ascend, but no writer has to sort."""
    if count > _SCAN_FIELDS:
        low, high = 0, count
        while low < high:
            middle = (low + high) >> 1
            if load_uint(ids_at + middle * id_size, id_size) < field_id:
                low = middle + 1
            else:
                high = middle
        if low < count and load_uint(ids_at + low * id_size, id_size) == field_id:
            return low
    return _scan(ids_at, id_size, count, field_id)


@helper(inline=True)
def _is_at(ids_at, id_size, count, guess, field_id):
    """Whether an id stands where the object before had it, for the first time."""
    if guess >= count or load_uint(ids_at + guess * id_size, id_size) != field_id:
        return False
    return guess == 0 or load_uint(ids_at + (guess - 1) * id_size, id_size) != field_id


@helper(inline=True)
def _is_repeated(ids_at, id_size, count, field_id):
    """Return whether an object has more than one field with an id; a loop without an early exit is vectorized."""
    found = 0
    if id_size == 1:
        for i in range(count):
            found += load_u8(ids_at + i) == field_id
    elif id_size == 2:
        signed_id = field_id - (1 << 16) if field_id >= 1 << 15 else field_id
        for i in range(count):
            found += load_s16(ids_at + 2 * i) == signed_id
    else:
        for i in range(count):
            found += load_uint(ids_at + i * id_size, id_size) == field_id
    return found > 1


@helper
def _field_by_name(ids_at, id_size, count, meta_at, meta_stop, key_address, key_size):
    """Index of the field with a name, -1 if there is none, -2 if there are two: for dictionaries with a name twice."""
    size, width = _dictionary(meta_at, meta_stop)
    found = -1
    for i in range(count):
        low, high = _name(meta_at, meta_stop, size, width, load_uint(ids_at + i * id_size, id_size))
        if low >= 0 and high - low == key_size and equal(low, key_address, key_size):
            found = i if found == -1 else -2
    return found


@kernel
def find_keys(
    starts: Int64s,
    stops: Int64s,
    metas: Int32s,
    ids: Int64Table,
    meta_offsets: Int64s,
    meta_address: int,
    key_addresses: Int64s,
    key_sizes: Int64s,
    guesses: Int64s,
    out_starts: Int64Table,
    out_stops: Int64Table,
) -> None:
    """The values of some keys (first axis of ids and outputs) in each object; absent in anything else.

    ``guesses`` begins as zeros: for each key, the index that it had in the object before.
    """
    for i in range(len(starts)):
        at, meta = starts[i], metas[i]
        count = ids_at = id_size = offsets_at = offset_size = values_at = end = 0
        if at > 0:
            count, ids_at, id_size, offsets_at, offset_size, values_at, end = _container(at, stops[i], 2)
        is_broken = at < 0 or count == -2 or (count > 0 and meta < 0)
        for k in range(len(ids)):
            out_starts[k, i] = BROKEN if is_broken else ABSENT
            out_stops[k, i] = 0
            if is_broken or count <= 0:
                continue
            key_id = ids[k, meta]
            if key_id == _NO_DICTIONARY:
                out_starts[k, i] = BROKEN
                continue
            if key_id == _NOT_THERE:
                continue
            if key_id == _TWICE:
                index = _field_by_name(
                    ids_at, id_size, count, meta_address + meta_offsets[meta], meta_address + meta_offsets[meta + 1],
                    key_addresses[k], key_sizes[k],
                )  # fmt: skip
            elif _is_at(ids_at, id_size, count, guesses[k], key_id):
                index = guesses[k]
            else:
                index = _field(ids_at, id_size, count, key_id)
            if index == -2 or (index >= 0 and key_id != _TWICE and _is_repeated(ids_at, id_size, count, key_id)):
                out_starts[k, i] = BROKEN  # the specification does not allow duplicate keys
            elif index >= 0:
                guesses[k] = index
                child = values_at + load_uint(offsets_at + index * offset_size, offset_size)
                out_starts[k, i] = child if child < end else BROKEN
                out_stops[k, i] = end


@kernel
def find_index(starts: Int64s, stops: Int64s, index: int, out_starts: Int64s, out_stops: Int64s) -> None:
    """The element at a position of each array; absent in anything else."""
    for i in range(len(starts)):
        at = starts[i]
        out_starts[i] = at if at < 0 else ABSENT
        out_stops[i] = 0
        if at <= 0:
            continue
        count, _, _, offsets_at, offset_size, values_at, end = _container(at, stops[i], 3)
        if count == -2:
            out_starts[i] = BROKEN
        elif index < count:
            child = values_at + load_uint(offsets_at + index * offset_size, offset_size)
            out_starts[i] = child if child < end else BROKEN
            out_stops[i] = end


@kernel
def count_children(starts: Int64s, stops: Int64s, basic: int, counts: Int64s) -> int:
    """The number of fields of each object (2), or of elements of each array (3); -1 for anything else.

    Returns the first malformed position, or -1.
    """
    for i in range(len(starts)):
        counts[i] = -1
        if starts[i] < 0:
            return i
        if starts[i] > 0:
            count = _container(starts[i], stops[i], basic)[0]
            if count == -2:
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
    """Every field or element, in order; a field with its dictionary id. Returns the first malformed position, or -1.

    ``sizes`` is the number of names of each metadata. Children that share bytes are refused: a few bytes could stand
    for any number of values otherwise.
    """
    for i in range(len(starts)):
        at = offsets[i]
        if offsets[i + 1] == at:
            continue
        count, ids_at, id_size, offsets_at, offset_size, values_at, end = _container(starts[i], stops[i], basic)
        names = sizes[metas[i]] if basic == 2 and metas[i] >= 0 else 0
        room = end - values_at
        for j in range(count):
            child = values_at + load_uint(offsets_at + j * offset_size, offset_size)
            if child >= end:
                return i
            child_end = value_end(child, end)
            room -= child_end - child
            if child_end < 0 or room < 0:
                return i
            out_starts[at + j] = child
            out_stops[at + j] = end
            out_parents[at + j] = i
            if basic == 2:
                out_ids[at + j] = load_uint(ids_at + j * id_size, id_size)
                if out_ids[at + j] >= names:
                    return i
    return -1


@kernel
def value_end(at: int, stop: int) -> int:
    """Where the value at an address ends; -1 if it is malformed or ends after ``stop``."""
    size = value_size(at, stop)
    return -1 if size < 0 else at + size


@kernel
def measure(starts: Int64s, stops: Int64s, sizes: Int64s) -> int:
    """The size of each value, 0 where there is none. Returns the first malformed position, or -1."""
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
