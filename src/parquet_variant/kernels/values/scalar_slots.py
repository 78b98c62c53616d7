"""Convert scalars between their three forms (tape payload, typed slot, Variant bytes), and write container headers.

Owns the exactness rules of shredding ("Shredding Semantics" of the drafts): an integer or decimal fits any numeric
column that holds it exactly; every other type fits only its own column. Owns also loops over whole columns of slots:
casts that NumPy does not have, narrowing, and writing. Leaves rows and nesting to the callers, and choosing a cast, and
slots that a cast does not handle, to `ops.columns.slot_casts`.
"""

from __future__ import annotations

from parquet_variant.kernels.int128 import digits_of, divide_by_power, fits_int64, multiply_power
from parquet_variant.kernels.json.scan import decimal_kind, int_kind
from parquet_variant.kernels.json.string_forms import FORM, string_form
from parquet_variant.kernels.machine_code.functions import helper, kernel
from parquet_variant.kernels.machine_code.signatures import Bools, Int64s, UInt8s
from parquet_variant.kernels.memory import KIND, copy, load_u8, store_u8, store_u16, store_u32, store_u64
from parquet_variant.kernels.values.reading import PAYLOAD


@helper(inline=True)
def _is_decimal(kind: int) -> bool:
    return KIND.DECIMAL4 <= kind <= KIND.DECIMAL16


@helper(inline=True)
def _is_int(kind: int) -> bool:
    return KIND.INT8 <= kind <= KIND.INT64


@helper
def exact_slot(
    kind: int, a: int, b: int, scale: int, code: int, precision: int, slot_scale: int
) -> tuple[bool, int, int]:
    """Return ``(ok, low, high)`` of a value as a slot of a typed column, ok if the slot holds exactly that value.

    ``code``, ``precision`` and ``slot_scale`` describe the column; the slot of a string, binary or UUID is its payload.
    """
    if _is_int(code):
        if _is_int(kind):
            return int_kind(a) <= code, a, 0
        if _is_decimal(kind):
            exact, high, low = divide_by_power(b, a, scale, False)
            return exact and fits_int64(high, low) and int_kind(low) <= code, low, 0
        return False, 0, 0
    if _is_decimal(code):
        if _is_int(kind):
            high, low, scale = (-1 if a < 0 else 0), a, 0
        elif _is_decimal(kind):
            high, low = b, a
        else:
            return False, 0, 0
        if scale < slot_scale:
            ok, high, low = multiply_power(high, low, slot_scale - scale)
        elif scale > slot_scale:
            ok, high, low = divide_by_power(high, low, scale - slot_scale, False)
        else:
            ok = True
        return ok and digits_of(high, low) <= precision, low, high
    if code == KIND.TRUE:
        return kind == KIND.TRUE or kind == KIND.FALSE, 1 if kind == KIND.TRUE else 0, 0
    return kind == code, a, b


@helper(inline=True)
def store_slot(address: int, width: int, low: int, high: int) -> None:
    """Write a slot of 1, 2, 4, 8 or 16 bytes."""
    if width == 8:
        store_u64(address, low)
    elif width == 4:
        store_u32(address, low)
    elif width == 16:
        store_u64(address, low)
        store_u64(address + 8, high)
    elif width == 2:
        store_u16(address, low)
    else:
        store_u8(address, low)


@helper
def scalar_size(kind: int, length: int) -> int:
    """Return the bytes of an encoded scalar; ``length`` is the bytes of a string or binary."""
    if kind == KIND.STRING:
        return 1 + length if length < 64 else 5 + length
    return 5 + length if kind == KIND.BINARY else 1 + PAYLOAD[kind]


@helper
def write_scalar(at: int, kind: int, a: int, b: int, scale: int) -> None:
    """Write an encoded scalar (spec: "Value encoding grammar")."""
    if kind == KIND.STRING:
        if b < 64:
            store_u8(at, 1 | (b << 2))
            copy(at + 1, a, b)
        else:
            store_u8(at, KIND.STRING << 2)
            store_u32(at + 1, b)
            copy(at + 5, a, b)
        return
    store_u8(at, kind << 2)
    if kind == KIND.BINARY:
        store_u32(at + 1, b)
        copy(at + 5, a, b)
    elif kind == KIND.UUID:
        copy(at + 1, a, 16)
    elif KIND.DECIMAL4 <= kind <= KIND.DECIMAL16:
        store_u8(at + 1, scale)
        store_slot(at + 2, PAYLOAD[kind] - 1, a, b)
    elif kind > KIND.FALSE:
        store_slot(at + 1, PAYLOAD[kind], a, b)


@helper(inline=True)
def uint_width(largest: int) -> int:
    """Return the narrowest of 1 to 4 bytes that holds a number."""
    if largest <= 0xFF:
        return 1
    if largest <= 0xFFFF:
        return 2
    if largest <= 0xFFFFFF:
        return 3
    return 4


@helper
def object_size(count: int, largest_id: int, data: int) -> int:
    """Return the bytes of an object with ``data`` bytes of values."""
    return 1 + (4 if count > 255 else 1) + count * uint_width(largest_id) + (count + 1) * uint_width(data) + data


@helper
def array_size(count: int, data: int) -> int:
    """Return the bytes of an array with ``data`` bytes of values."""
    return 1 + (4 if count > 255 else 1) + (count + 1) * uint_width(data) + data


@helper
def _put_count(at: int, count: int) -> int:
    """Write the number of children in one or four bytes; return the address after it."""
    if count > 255:
        store_u32(at, count)
        return at + 4
    store_u8(at, count)
    return at + 1


@helper
def begin_object(at: int, count: int, largest_id: int, data: int) -> tuple[int, int, int, int, int]:
    """Write header and count; return the addresses to fill, ``(ids, id_width, offsets, offset_width, values)``."""
    id_width, offset_width = uint_width(largest_id), uint_width(data)
    large = 1 if count > 255 else 0
    store_u8(at, 2 | ((large << 4 | (id_width - 1) << 2 | (offset_width - 1)) << 2))
    ids = _put_count(at + 1, count)
    offsets = ids + count * id_width
    return ids, id_width, offsets, offset_width, offsets + (count + 1) * offset_width


@helper
def begin_array(at: int, count: int, data: int) -> tuple[int, int, int]:
    """Write header and count; return the addresses to fill, ``(offsets, offset_width, values)``."""
    width = uint_width(data)
    large = 1 if count > 255 else 0
    store_u8(at, 3 | ((large << 2 | (width - 1)) << 2))
    offsets = _put_count(at + 1, count)
    return offsets, width, offsets + (count + 1) * width


@kernel
def decimal_slots(
    positions: Int64s,
    kinds: UInt8s,
    a: Int64s,
    b: Int64s,
    scales: UInt8s,
    precision: int,
    scale: int,
    rounds: bool,
    target: int,
    done: Bools,
) -> None:
    """Write the numbers that fit a decimal type, exact or rounded half up, as 16 bytes; mark them in ``done``."""
    for i in positions:
        high, low, digits = b[i], a[i], scales[i]
        if rounds and KIND.DECIMAL4 <= kinds[i] <= KIND.DECIMAL16 and digits > scale:
            _, high, low = divide_by_power(high, low, digits - scale, True)
            digits = scale
        done[i], low, high = exact_slot(kinds[i], low, high, digits, KIND.DECIMAL4, precision, scale)
        store_u64(target + i * 16, low)
        store_u64(target + i * 16 + 8, high)


@kernel
def iso_timestamps(
    positions: Int64s, a: Int64s, b: Int64s, needs_zone: bool, micros: Int64s, nanos: Int64s, done: Bools
) -> None:
    """Read strings of the form ``YYYY-MM-DD[T ]HH:MM:SS[.digits][Z]``; mark them in ``done``.

    Fills the ``micros`` since 1970, and up to 999 ``nanos``. Strings without ``Z`` are skipped if ``needs_zone``.
    """
    for i in positions:
        at, size = a[i], b[i]
        if size < 19 or load_u8(at + 16) != 58 or (load_u8(at + 10) != 84 and load_u8(at + 10) != 32):
            continue
        form, kind, value, _, _ = string_form(at, size)
        if form == FORM.TIMESTAMP:
            if load_u8(at + size - 1) != 90:
                continue  # a zone offset
        elif form != FORM.TIMESTAMP_NTZ or needs_zone:
            continue
        is_nanos = kind == KIND.TIMESTAMP_NANOS or kind == KIND.TIMESTAMP_NTZ_NANOS
        micros[i] = value // 1000 if is_nanos else value
        nanos[i] = value % 1000 if is_nanos else 0
        done[i] = True


@kernel
def narrow(kinds: UInt8s, a: Int64s, b: Int64s, scales: UInt8s) -> None:
    """Change each integer and decimal to the narrowest type that holds it; the scale of a decimal counts as digits."""
    for i in range(len(kinds)):
        kind = kinds[i]
        if KIND.INT8 <= kind <= KIND.INT64:
            kinds[i] = int_kind(a[i])
        elif KIND.DECIMAL4 <= kind <= KIND.DECIMAL16:
            kinds[i] = decimal_kind(digits_of(b[i], a[i]), scales[i])


@kernel
def measure_slots(kinds: UInt8s, b: Int64s, offsets: Int64s) -> None:
    """Fill the offsets of the encoded values; kinds that are not primitive count as null."""
    offsets[0] = 0
    for i in range(len(kinds)):
        kind = kinds[i] if kinds[i] < KIND.ARRAY else KIND.NULL
        offsets[i + 1] = offsets[i] + scalar_size(kind, b[i])


@kernel
def write_slots(kinds: UInt8s, a: Int64s, b: Int64s, scales: UInt8s, offsets: Int64s, target: int) -> None:
    """Write the encoded values at ``target``."""
    for i in range(len(kinds)):
        kind = kinds[i] if kinds[i] < KIND.ARRAY else KIND.NULL
        write_scalar(target + offsets[i], kind, a[i], b[i], scales[i])
