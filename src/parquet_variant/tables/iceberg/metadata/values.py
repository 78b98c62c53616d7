"""Single values of Iceberg types: as bytes of bounds, as JSON of defaults, and as Arrow arrays.

Owns the serializations of the specification's Appendix D. Inside of this package a single value is *raw*: an int for
int and long, for dates (days) and for times and timestamps (ticks since 1970), the unscaled int of a decimal, bytes for
uuid, fixed and binary, and bool, float or str for the other types.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal, Inexact
from typing import Any

import numpy as np
import pyarrow as pa

from parquet_variant.errors import IcebergError
from parquet_variant.tables.iceberg.metadata.schema import type_name
from parquet_variant.tables.schema import PrimitiveType, arrow_type

TIMESTAMPS = {"timestamp", "timestamp_ntz", "timestamp_ns", "timestamptz_ns"}
ZONED = {"timestamp", "timestamptz_ns"}
_TICKS = {"time", *TIMESTAMPS}
_INT, _FLOAT = struct.Struct("<i"), struct.Struct("<f")
# The binary forms of numbers.
_FORMS = {
    "boolean": struct.Struct("?"),
    **dict.fromkeys(("integer", "date"), _INT),
    **dict.fromkeys(("long", *_TICKS), struct.Struct("<q")),
    "float": _FLOAT,
    "double": struct.Struct("<d"),
}
# The factor of a bound of four bytes: of an int that became a long, or of a date that became a timestamp.
_WIDENED_FROM_INT = {"long": 1, "timestamp_ntz": 86_400_000_000, "timestamp_ns": 86_400_000_000_000}
_EPOCH = date(1970, 1, 1)
_SECOND = timedelta(seconds=1)
# Raise instead of rounding, because a default or a partition value must be exact.
_EXACT = Context(prec=80, traps=[Inexact])


def to_bytes(raw: Any, kind: PrimitiveType) -> bytes:
    r"""Return the binary single-value serialization.

    >>> to_bytes(-1, PrimitiveType("integer")), to_bytes(1420, PrimitiveType("decimal(9,2)"))
    (b'\xff\xff\xff\xff', b'\x05\x8c')
    """
    family = kind.family
    if family in _FORMS:
        return _FORMS[family].pack(raw)
    if family == "string":
        return str(raw).encode()
    if family == "decimal":
        return unscaled_bytes(raw)
    if family in ("uuid", "fixed", "binary", "geometry", "geography"):
        return bytes(raw)
    raise IcebergError(f"values of type {type_name(kind)} have no binary form", reason="unsupported-type")


def unscaled_bytes(raw: int) -> bytes:
    """Return a decimal's unscaled value as big-endian two's complement in the fewest bytes."""
    return raw.to_bytes(max((raw + (raw < 0)).bit_length() // 8 + 1, 1), "big", signed=True)


def from_bytes(data: bytes, kind: PrimitiveType) -> Any:
    r"""Return the raw value of a bound, or None if the bytes are not one.

    Bounds keep the type that the column had when its file was written: an int's bound of a column that is now long has
    four bytes.

    >>> from_bytes(b"\x05\x00\x00\x00", PrimitiveType("long")), from_bytes(b"\x05", PrimitiveType("long"))
    (5, None)
    """
    family, size = kind.family, len(data)
    if family in _FORMS and size == _FORMS[family].size:
        return _FORMS[family].unpack(data)[0]
    if family in _WIDENED_FROM_INT and size == _INT.size:
        return _INT.unpack(data)[0] * _WIDENED_FROM_INT[family]
    if family == "double" and size == _FLOAT.size:
        return _FLOAT.unpack(data)[0]
    if family == "string":
        try:
            return data.decode()
        except UnicodeDecodeError:
            return None
    if family == "decimal":
        return int.from_bytes(data, "big", signed=True) if 0 < size <= 16 else None
    if family in ("uuid", "fixed"):
        return data if (size,) == (kind.numbers or (16,)) else None
    return data if family == "binary" else None


def raw_values(array: pa.Array, kind: PrimitiveType) -> list[Any]:
    """Return the values of an Arrow array of a type's own Arrow type as raw values; None for null."""
    family = kind.family
    if family == "date" or family in _TICKS:
        array = array.cast(pa.int32() if family == "date" else pa.int64())
    elif family == "uuid":
        array = array.storage if isinstance(array, pa.ExtensionArray) else array
    values: list[Any] = array.to_pylist()
    if family == "decimal":
        return [None if value is None else int(value.scaleb(kind.numbers[1], _EXACT)) for value in values]
    return values


def arrow_array(raws: Sequence[Any], kind: PrimitiveType) -> pa.Array:
    """Return raw values as an Arrow array of the type's own Arrow type."""
    family, target = kind.family, arrow_type(kind)
    if family == "date" or family in _TICKS:
        return pa.array(raws, pa.int32() if family == "date" else pa.int64()).cast(target)
    if family == "decimal":
        scale = kind.numbers[1]
        return pa.array([None if raw is None else Decimal(raw).scaleb(-scale, _EXACT) for raw in raws], target)
    if family == "uuid":
        return pa.array(raws, pa.binary(16)).cast(target)
    return pa.array(raws, target)


# ---- JSON, the form of defaults


def from_json(value: Any, kind: PrimitiveType) -> Any:
    """Return the raw value of a default in JSON. Raises `IcebergError`: reason ``"bad-schema"``.

    >>> from_json("2017-11-16", PrimitiveType("date")), from_json("14.20", PrimitiveType("decimal(9,2)"))
    (17486, 1420)
    """
    if value is None:
        return None
    try:
        return _from_json(value, kind)
    except (ValueError, TypeError, ArithmeticError):
        raise IcebergError(
            f"invalid default {value!r} of a column of type {type_name(kind)}", reason="bad-schema"
        ) from None


def _from_json(value: Any, kind: PrimitiveType) -> Any:
    family = kind.family
    if family in ("float", "double"):
        return float(value)
    if family == "decimal":
        return int(Decimal(value).scaleb(kind.numbers[1], _EXACT))
    if family == "date":
        return (date.fromisoformat(value) - _EPOCH).days
    if family == "time":
        moment = time.fromisoformat(value)
        return ((moment.hour * 60 + moment.minute) * 60 + moment.second) * 1_000_000 + moment.microsecond
    if family in TIMESTAMPS:
        return _ticks(value, 9 if family.endswith("_ns") else 6)
    if family == "uuid":
        return uuid.UUID(value).bytes
    if family in ("fixed", "binary"):
        return bytes.fromhex(value)
    if type(value) is not {"boolean": bool, "integer": int, "long": int, "string": str}.get(family):
        raise TypeError
    return value


def _ticks(text: str, places: int) -> int:
    seconds_text, _, fraction = text.partition(".")
    digits = fraction[: next((at for at, sign in enumerate(fraction) if not sign.isdigit()), len(fraction))]
    moment = datetime.fromisoformat(seconds_text + fraction[len(digits) :])
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    seconds = (moment - datetime(1970, 1, 1, tzinfo=UTC)) // _SECOND
    return seconds * 10**places + int(digits.ljust(places, "0")[:places] or 0)


def to_json(raw: Any, kind: PrimitiveType) -> Any:
    """Return the JSON single-value form of a raw value.

    >>> to_json(17486, PrimitiveType("date")), to_json(1420, PrimitiveType("decimal(9,2)"))
    ('2017-11-16', '14.20')
    """
    family = kind.family
    if raw is None or family in ("boolean", "integer", "long", "float", "double", "string"):
        return raw
    if family == "decimal":
        return str(Decimal(raw).scaleb(-kind.numbers[1], _EXACT))
    if family == "uuid":
        return str(uuid.UUID(bytes=bytes(raw)))
    if family in ("fixed", "binary"):
        return bytes(raw).hex()
    if family == "date":
        return date.fromordinal(_EPOCH.toordinal() + raw).isoformat()
    places = 9 if family.endswith("_ns") else 6
    seconds, fraction = divmod(raw, 10**places)
    moment = (datetime(1970, 1, 1) + seconds * _SECOND).isoformat(timespec="seconds")
    if family == "time":
        moment = moment.partition("T")[2]
    return f"{moment}.{fraction:0{places}}{'+00:00' if family in ZONED else ''}"


def partition_text(raw: Any, transform: str, kind: PrimitiveType) -> str | None:
    """Return a partition value as directories spell it, as Iceberg's Java library does; None for null."""
    if raw is None:
        return None
    if transform == "year":
        return str(1970 + raw)
    if transform == "month":
        return f"{1970 + raw // 12:04}-{raw % 12 + 1:02}"
    if transform == "hour":
        return f"{np.datetime64(raw // 24, 'D')}-{raw % 24:02}"
    if transform == "day" or kind.family == "date":
        return str(np.datetime64(raw, "D"))
    try:
        return str(to_json(raw, kind)).lower() if isinstance(raw, bool) else str(to_json(raw, kind))
    except (OverflowError, ValueError):
        return str(raw)
