"""Type widening: which types may become which, and the history of it in a schema (PROTOCOL.md, "Type Widening").

Owns that table and its check. Leaves the conversion of what older files hold to `data.columns`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from parquet_variant.delta.protocol.schema import ArrayType, DeltaType, MapType, StructType
from parquet_variant.errors import DeltaError

TYPE_CHANGES = "delta.typeChanges"
_WHOLE = ("byte", "short", "integer", "long")
# Digits before the point of the decimals that a whole number may become; the preview asked for those that hold it.
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
_DIGITS_IN_PREVIEW = {"byte": 3, "short": 5, "integer": 10, "long": 20}
_PREVIEW = "typeWidening-preview"
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")


def is_widening(old: str, new: str, *, preview: bool = False) -> bool:
    """Whether a primitive type may become another one, by Delta's names; in tables of the feature's preview, did.

    >>> is_widening("integer", "long"), is_widening("long", "double"), is_widening("decimal(6,2)", "decimal(10,4)")
    (True, False, True)
    """
    if old in _WHOLE and new in _WHOLE:
        return _WHOLE.index(old) < _WHOLE.index(new)
    if new == "double":
        return old in ("float", "byte", "short", "integer")
    if (old, new) == ("date", "timestamp_ntz"):
        return True
    wide = _DECIMAL.fullmatch(new)
    if wide is None:
        return False
    precision, scale = int(wide[1]), int(wide[2])
    narrow = _DECIMAL.fullmatch(old)
    if narrow is None:
        digits = (_DIGITS_IN_PREVIEW if preview else _DIGITS).get(old)
        return digits is not None and precision - digits >= scale >= 0
    more = scale - int(narrow[2])
    return old != new and precision - int(narrow[1]) >= more >= 0


def check_type_changes(schema: StructType, features: Collection[str] | None, uri: str) -> None:
    """Refuse a schema whose columns changed their type in a way that is not known; the features are those of readers.

    Raises `DeltaError`: reason ``"unsupported-feature"``; the column and the change are named.
    """
    preview = _PREVIEW in (features or ())
    stack: list[DeltaType] = [schema]
    while stack:
        kind = stack.pop()
        if isinstance(kind, StructType):
            for f in kind.fields:
                for change in f.metadata.get(TYPE_CHANGES) or ():
                    if not _known(change, preview):
                        raise DeltaError(
                            f"column {f.name} of {uri} changed its type in a way that is not supported: {change}",
                            reason="unsupported-feature",
                            file=uri,
                        )
                stack.append(f.type)
        elif isinstance(kind, ArrayType):
            stack.append(kind.element)
        elif isinstance(kind, MapType):
            stack += [kind.key, kind.value]


def _known(change: Any, preview: bool) -> bool:
    if not isinstance(change, dict):
        return False
    return is_widening(str(change.get("fromType")), str(change.get("toType")), preview=preview)
