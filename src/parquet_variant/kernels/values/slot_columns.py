"""Convert whole columns of slots: casts that NumPy does not have (ISO timestamps, decimals), and encoded values.

Owns the loops, narrowing, and writing columns of scalars. Leaves choosing a cast, and slots that a cast does not
handle, to `ops.columns.slot_casts`, and nesting to `shredding.unshred`.
"""

from __future__ import annotations

from parquet_variant.kernels.compiling import kernel
from parquet_variant.kernels.int128 import digits_of, round_by_power
from parquet_variant.kernels.json.scalar_text import NO_DAY, days_since_epoch, digits_value
from parquet_variant.kernels.json.scan import decimal_kind, int_kind
from parquet_variant.kernels.machine_code.signatures import Bools, Int64s, UInt8s
from parquet_variant.kernels.memory import KIND, load_u8, store_u64
from parquet_variant.kernels.values.scalar_slots import exact_slot, scalar_size, write_scalar


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
            high, low = round_by_power(high, low, digits - scale)
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
        if size < 19 or size > 64:
            continue
        separator = load_u8(at + 10)
        if (
            load_u8(at + 4) != 45 or load_u8(at + 7) != 45 or load_u8(at + 13) != 58 or load_u8(at + 16) != 58
            or (separator != 84 and separator != 32)
        ):  # fmt: skip
            continue
        year, month, day = digits_value(at, 4), digits_value(at + 5, 2), digits_value(at + 8, 2)
        hour, minute, second = digits_value(at + 11, 2), digits_value(at + 14, 2), digits_value(at + 17, 2)
        if year < 0 or hour < 0 or minute < 0 or second < 0 or hour > 23 or minute > 59 or second > 59:
            continue
        days = days_since_epoch(year, month, day)
        if days == NO_DAY:
            continue
        end = at + size
        at += 19
        fraction, digits = 0, 0
        if at < end and load_u8(at) == 46:
            at += 1
            while at < end and 48 <= load_u8(at) <= 57:
                if digits < 9:
                    fraction = fraction * 10 + load_u8(at) - 48
                    digits += 1
                at += 1
        while digits < 9:
            fraction *= 10
            digits += 1
        has_zone = at < end and load_u8(at) == 90
        if has_zone:
            at += 1
        if at != end or (needs_zone and not has_zone):
            continue
        micros[i] = (((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000 + fraction // 1000
        nanos[i] = fraction % 1000
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
