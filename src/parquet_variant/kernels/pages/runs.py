"""Write and read numbers as Parquet stores them: RLE and bit-packed groups, and deltas in blocks.

Owns packing bits, the hybrid of runs for levels and dictionary indices, DELTA_BINARY_PACKED, and reading pages of
deltas: integers, sizes of byte arrays, and byte arrays with shared prefixes. Every bound is checked before a byte is
read. Leaves computing the numbers to `pages.levels` and `pages.values`. Spec: ``Encodings.md``. Every output needs
the room that `most_run_bytes` and `most_delta_bytes` return.
"""

from __future__ import annotations

from parquet_variant.kernels.machine_code.functions import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Int64s, UInt8s
from parquet_variant.kernels.memory import copy, load_s32, load_u8, load_u64, store_u8, store_u32, store_u64
from parquet_variant.kernels.native_vectors import address_in, vector_at

_BLOCK, _MINIBLOCK = 128, 32
# Number of equal numbers from which a run pays off, because it interrupts the packed groups around it.
_LEAST_RUN, _LEAST_NARROW_RUN, _NARROW = 8, 24, 2


def most_run_bytes(count: int, width: int) -> int:
    """Return the maximum bytes of ``count`` numbers of a bit width as runs."""
    return (count // 8 + 2) * (width + 7) + 32


def most_delta_bytes(count: int, width: int) -> int:
    """Return the maximum bytes of ``count`` numbers of 4 or 8 bytes as deltas."""
    return 64 + (count // _BLOCK + 1) * (_BLOCK * width + 16)


@helper
def _put_varint(at: int, number: int) -> int:
    """Write a number of up to 64 bits; return where it ends."""
    while number & ~0x7F:
        store_u8(at, number & 0x7F | 0x80)
        number = (number >> 7) & 0x1FFFFFFFFFFFFFF
        at += 1
    store_u8(at, number)
    return at + 1


@helper
def _load(source: int, i: int, size: int) -> int:
    """Load a level of 1 byte, or an integer of 4 or 8 bytes."""
    if size == 8:
        return load_u64(source + i * 8)
    return load_u8(source + i) if size == 1 else load_s32(source + i * 4)


@helper
def _pack(source: int, size: int, count: int, width: int, at: int) -> int:
    """Write the low bits of numbers, padded with zeros to a multiple of eight numbers; return where they end."""
    word = filled = 0
    for i in range(count):
        number = _load(source, i, size)
        word |= number << filled
        filled += width
        if filled >= 64:
            store_u64(at, word)
            at += 8
            filled -= 64
            word = 0
            if filled > 0:
                shift = width - filled
                word = (number >> shift) & ((1 << (64 - shift)) - 1)
    filled += (-count & 7) * width
    while filled > 0:
        store_u64(at, word)
        at += min((filled + 7) >> 3, 8)
        filled -= 64
        word = 0
    return at


@helper(inline=True)
def _runs(source: int, size: int, count: int, width: int, out: int, counts: Int64s) -> int:
    """Write numbers as runs, and count levels; return the bytes written."""
    at = out
    least = _LEAST_NARROW_RUN if width <= _NARROW else _LEAST_RUN
    literal = i = 0  # the first number that is not written yet, and the current one
    while i < count:
        number = _load(source, i, size)
        stop = i + 1
        if size == 1:
            eight = number * 0x0101010101010101
            while stop + 8 <= count and load_u64(source + stop) == eight:
                stop += 8
        while stop < count and _load(source, stop, size) == number:
            stop += 1
        if size == 1:
            counts[number] += stop - i
        start = i + (-(i - literal) & 7)  # packed groups have eight numbers
        if stop - start >= least or (literal == i and stop == count):
            if start > literal:
                at = _put_varint(at, ((start - literal) >> 3) << 1 | 1)
                at = _pack(source + literal * size, size, start - literal, width, at)
            at = _put_varint(at, (stop - start) << 1)
            store_u64(at, number)
            at += (width + 7) >> 3
            literal = stop
        i = stop
    if literal < count:
        at = _put_varint(at, ((count - literal + 7) >> 3) << 1 | 1)
        at = _pack(source + literal * size, size, count - literal, width, at)
    return at - out


@kernel
def level_runs(source: int, count: int, width: int, out: int, counts: Int64s) -> int:
    """Write levels of one byte each as runs, and add the occurrences of each to ``counts``.

    Return the bytes written.
    """
    return _runs(source, 1, count, width, out, counts)


@kernel
def index_runs(source: int, count: int, width: int, out: int) -> int:
    """Write dictionary indices of four bytes each as runs; return the bytes written."""
    return _runs(source, 4, count, width, out, vector_at(0, 0))


@helper
def _zigzag(number: int) -> int:
    """Return the zigzag encoding of a number."""
    return (number << 1) ^ (number >> 63)


@helper
def _bits(number: int) -> int:
    """Return the number of bits of an unsigned number."""
    bits = 0
    while number != 0:
        number = (number >> 1) & 0x7FFFFFFFFFFFFFFF
        bits += 1
    return bits


@kernel
def put_deltas(source: int, size: int, count: int, deltas: Int64s, out: int) -> int:
    """Write integers of ``size`` bytes (4 or 8) as DELTA_BINARY_PACKED; return where they end.

    ``deltas`` is scratch space for a block of ``int64``. Differences wrap around as the type does.
    """
    at = _put_varint(_put_varint(_put_varint(out, _BLOCK), _BLOCK // _MINIBLOCK), count)
    before = _load(source, 0, size) if count else 0
    at = _put_varint(at, _zigzag(before))
    start = 1
    while start < count:
        entries = min(_BLOCK, count - start)
        least = 0
        for i in range(entries):
            number = _load(source, start + i, size)
            delta = number - before
            if size == 4:
                delta = ((delta & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000  # the low 32 bits
            deltas[i] = delta
            least = delta if i == 0 else min(least, delta)
            before = number
        at = _put_varint(at, _zigzag(least))
        for i in range(entries):
            delta = deltas[i] - least
            deltas[i] = delta & 0xFFFFFFFF if size == 4 else delta
        for i in range(entries, _BLOCK):
            deltas[i] = 0
        widths = at
        at += _BLOCK // _MINIBLOCK
        for part in range(_BLOCK // _MINIBLOCK):
            all_bits = 0
            for i in range(_MINIBLOCK):
                all_bits |= deltas[part * _MINIBLOCK + i]
            width = _bits(all_bits)
            store_u8(widths + part, width)
            if width > 0:
                at = _pack(address_in(deltas) + 8 * part * _MINIBLOCK, 8, _MINIBLOCK, width, at)
        start += entries
    return at


@helper
def varint(at: int, stop: int) -> tuple[int, int]:
    """Return an unsigned number and where it ends; -1 if it does not end."""
    value = shift = 0
    while at < stop and shift < 64:
        byte = load_u8(at)
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    return 0, -1


@helper
def signed(value: int) -> int:
    """Return the number of a zigzag encoding, all of whose 64 bits may be set."""
    return ((value >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1)


@helper
def _run(at: int, stop: int, width: int) -> tuple[int, int, int, bool]:
    """Return ``(start, stop, values, packed)`` of the next run; the number of values is -1 if it is malformed."""
    header, at = varint(at, stop)
    if at < 0 or header >> 35 != 0:
        return 0, 0, -1, False
    packed = (header & 1) == 1
    run = header >> 1
    length = run * width if packed else (width + 7) >> 3
    if at + length > stop:
        return 0, 0, -1, False
    return at, at + length, run * 8 if packed else run, packed


@helper
def packed_value(at: int, stop: int, bit: int, width: int) -> int:
    """Return the value of `width` bits at a bit position; no byte at or after `stop` is read."""
    first = at + (bit >> 3)
    if first + 8 <= stop:
        return (load_u64(first) >> (bit & 7)) & ((1 << width) - 1)
    value = 0
    for b in range(((bit & 7) + width + 7) >> 3):
        value |= load_u8(first + b) << (8 * b)
    return (value >> (bit & 7)) & ((1 << width) - 1)


@helper
def read_levels(at: int, stop: int, max_level: int, valid: UInt8s, first: int, count: int) -> int:
    """Mark the rows whose level is ``max_level`` as having a value; return their number, or -1 if malformed."""
    width = 0
    while max_level >> width:
        width += 1
    done = present = 0
    while done < count:
        at, end, run, packed = _run(at, stop, width)
        if run < 0:
            return -1
        run = min(run, count - done)
        row = first + done
        if packed:
            for k in range(run):
                is_present = packed_value(at, end, k * width, width) == max_level
                valid[row + k] = is_present
                present += is_present
        else:
            is_present = packed_value(at, end, 0, width) == max_level
            for k in range(run):
                valid[row + k] = is_present
            present += run * is_present
        done += run
        at = end
    return present


@helper
def read_indices(at: int, stop: int, entries: int, count: int, target: int, size: int) -> bool:
    """Write ``count`` indices into a dictionary of some entries, in 4 or 8 bytes each.

    Return whether all are in bounds.

    The bytes start with the bit width of an index.
    """
    if at >= stop:
        return count == 0
    width = load_u8(at)
    if width > 32:
        return False
    at += 1
    done = largest = 0
    while done < count:
        at, end, run, packed = _run(at, stop, width)
        if run < 0:
            return False
        run = min(run, count - done)
        index = 0 if packed else packed_value(at, end, 0, width)
        for k in range(run):
            if packed:
                index = packed_value(at, end, k * width, width)
            largest = max(largest, index)
            if size == 4:
                store_u32(target, index)
            else:
                store_u64(target, index)
            target += size
        done += run
        at = end
    return count == 0 or largest < entries


@helper
def _wide(at: int, stop: int, bit: int, width: int) -> int:
    """Return the value of up to 64 bits at a bit position."""
    if width <= 32:
        return packed_value(at, stop, bit, width)
    return packed_value(at, stop, bit, 32) | (packed_value(at, stop, bit + 32, width - 32) << 32)


@helper
def _store(target: int, i: int, value: int, width: int) -> None:
    """Store a value of 4 or 8 bytes."""
    if width == 8:
        store_u64(target + 8 * i, value)
    else:
        store_u32(target + 4 * i, value)


@kernel
def read_deltas(at: int, stop: int, expected: int, target: int, item_bytes: int) -> int:
    """Write DELTA_BINARY_PACKED values of 4 or 8 bytes (``item_bytes``); return where they end, -1 if malformed."""
    block, at = varint(at, stop)
    if at < 0:
        return -1
    parts, at = varint(at, stop)
    if at < 0:
        return -1
    count, at = varint(at, stop)
    if at < 0 or count != expected or parts < 1 or parts > 512 or block < 1 or block > 1 << 20 or block % parts:
        return -1
    size = block // parts
    if size % 8:
        return -1
    first, at = varint(at, stop)
    if at < 0:
        return -1
    value = signed(first)
    if count:
        _store(target, 0, value, item_bytes)
    done = 1
    while done < count:
        least, at = varint(at, stop)
        if at < 0 or at + parts > stop:
            return -1
        least = signed(least)
        widths = at
        at += parts
        for part in range(parts):
            if done >= count:
                break
            width = load_u8(widths + part)
            length = size * width >> 3
            if width > 64 or at + length > stop:
                return -1
            for k in range(min(size, count - done)):
                value += least + (_wide(at, stop, k * width, width) if width else 0)
                _store(target, done, value, item_bytes)
                done += 1
            at += length
    return at


@kernel
def sized_spans(at: int, stop: int, lengths: Int64s, valid: UInt8s, starts: Int64s, sizes: Int64s) -> bool:
    """Fill start and size of each value of a DELTA_LENGTH_BYTE_ARRAY page; the size of a null row is 0.

    The bytes start at ``at``, behind the lengths. Returns whether they fill the page exactly.
    """
    done = 0
    for row in range(len(starts)):
        size = 0
        if len(valid) == 0 or valid[row]:
            if done >= len(lengths):
                return False
            size = lengths[done]
            done += 1
            if size < 0 or size > stop - at:
                return False
        starts[row] = at
        sizes[row] = size
        at += size
    return done == len(lengths) and at == stop


@kernel
def joined_prefixes(starts: Int64s, sizes: Int64s, prefixes: Int64s, valid: UInt8s, target: int, room: int) -> bool:
    """Write the values of a DELTA_BYTE_ARRAY page one after the other, and replace the spans of the suffixes by theirs.

    A value is a prefix of the previous value and a suffix. Returns whether every prefix is valid, and all values fit
    into the ``room``.
    """
    done = before = size_before = 0
    for row in range(len(starts)):
        if len(valid) and valid[row] == 0:
            continue
        prefix, suffix = prefixes[done], sizes[row]
        done += 1
        if prefix < 0 or prefix > size_before or prefix + suffix > room:
            return False
        copy(target, before, prefix)
        copy(target + prefix, starts[row], suffix)
        starts[row], sizes[row] = target, prefix + suffix
        before, size_before = target, prefix + suffix
        target += size_before
        room -= size_before
    return True
