"""The supported properties of Delta tables: their values, and the features that they need.

Owns the list of properties. Every other ``delta.`` property is refused, so that none is stored and then ignored. Also
owns the names of the columns in which files keep row ids and commit versions. Leaves the effect of a property to the
modules that read it.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from parquet_variant.errors import DeltaError, TableError, check_mapping, choice_of
from parquet_variant.tables.delta.protocol.actions import Metadata
from parquet_variant.tables.delta.protocol.features import (
    FEATURES,
    ROW_COMMIT_COLUMN,
    ROW_ID_COLUMN,
    SHREDDING,
    VARIANT_TYPE,
)

CONSTRAINT = "delta.constraints."
# The format of the table that a Delta table was published from (`Table.publish`).
PUBLISHED_FROM_PROPERTY = "parquetVariant.publishedFrom"
SHREDDING_PROPERTY = "delta.enableVariantShredding"
_FEATURE = "delta.feature."
_UNITS = {
    "millisecond": 1,
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
_PART = re.compile(r"(\d+)\s*(millisecond|second|minute|hour|day|week)s?", re.IGNORECASE)


@dataclass(frozen=True)
class ResolvedProperties:
    """A checked change of properties."""

    changes: Mapping[str, str | None]  # Normalized values by name; None removes a property.
    features: tuple[str, ...]  # The features that the properties need.


def resolve_properties(properties: Mapping[str, str | bool | int | None]) -> ResolvedProperties:
    """Check properties that a user sets.

    `properties`: values by name; None removes a property. ``delta.feature.X = supported`` names a feature. Names that
      do not begin with ``delta.`` are not checked.
    Raises `DeltaError`: ``"unsupported-property"`` for an unknown ``delta.`` property, ``"bad-property"`` for an
    invalid value.

    >>> resolved = resolve_properties({"delta.enableDeletionVectors": "TRUE", "owner": "me"})
    >>> dict(resolved.changes), resolved.features
    ({'delta.enableDeletionVectors': 'true', 'owner': 'me'}, ('deletionVectors',))
    """
    check_mapping("properties", properties, DeltaError)
    changes: dict[str, str | None] = {}
    features: list[str] = []
    for key, value in properties.items():
        name = _NAMES.get(str(key).lower(), str(key))
        if name.lower().startswith(_FEATURE):
            features.append(_feature(name[len(_FEATURE) :], value))
        elif name.startswith(CONSTRAINT):
            changes[name.lower()] = None if value is None else str(value)
            features += [] if value is None else ["checkConstraints"]
        elif name.lower().startswith("delta.") and name not in _PROPERTIES:
            hint = choice_of(name, sorted(_PROPERTIES))
            raise DeltaError(f"the table property {name} is not supported: {hint}", reason="unsupported-property")
        elif value is None:
            changes[name] = None
        elif name in _PROPERTIES:
            kind, needed = _PROPERTIES[name]
            changes[name] = kind(name, value)
            features += needed if changes[name] not in ("false", "none", "classic") else ()
        else:
            changes[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return ResolvedProperties(changes, tuple(dict.fromkeys(features)))


def duration_millis(text: str) -> int:
    """Return the milliseconds of an interval such as ``interval 1 week`` or ``30 days``.

    Raises `DeltaError`: reason ``"bad-property"``.

    >>> duration_millis("interval 1 week") == duration_millis("7 days")
    True
    """
    body = text.lower().removeprefix("interval").strip()
    parts = _PART.findall(body)
    if not parts or _PART.sub("", body).strip():
        raise DeltaError(f"{text!r} is not an interval: write it as 'interval 7 days'", reason="bad-property")
    return sum(int(number) * _UNITS[unit.lower()] for number, unit in parts)


def _feature(name: str, value: object) -> str:
    spellings = {feature.lower(): feature for feature in FEATURES}
    feature = spellings.get(name.lower().removesuffix("-preview"))
    if feature is None:
        raise DeltaError(
            f"delta.feature.{name} is not a supported feature: use {', '.join(sorted(FEATURES))}",
            reason="unsupported-feature",
        )
    if str(value).lower() not in ("supported", "enabled"):
        raise DeltaError(f"delta.feature.{name} is {value!r}: set it to 'supported'", reason="bad-property")
    return f"{feature}-preview" if name.lower().endswith("-preview") else feature


def _bad_property(name: str, value: object, expected: str) -> DeltaError:
    return DeltaError(f"the table property {name} is {value!r}: {expected}", reason="bad-property")


def _boolean(name: str, value: object) -> str:
    text = str(value).lower()
    if text not in ("true", "false"):
        raise _bad_property(name, value, "give true or false")
    return text


def _interval(name: str, value: object) -> str:
    try:
        duration_millis(str(value))
    except TableError as error:
        raise _bad_property(name, value, error.message) from None
    return str(value)


def _text(name: str, value: object) -> str:
    return str(value)


def _integer(minimum: int) -> Callable[[str, object], str]:
    def check(name: str, value: object) -> str:
        text = str(value).strip()
        if not re.fullmatch(r"-?\d{1,9}", text) or int(text) < minimum:
            raise _bad_property(name, value, f"give an integer of at least {minimum}")
        return text

    return check


def _one_of(*choices: str) -> Callable[[str, object], str]:
    def check(name: str, value: object) -> str:
        choice = {choice.lower(): choice for choice in choices}.get(str(value).lower())
        if choice is None:
            raise _bad_property(name, value, f"give one of {', '.join(choices)}")
        return choice

    return check


_Kind = Callable[[str, object], str]
_PROPERTIES: dict[str, tuple[_Kind, tuple[str, ...]]] = {
    "delta.appendOnly": (_boolean, ("appendOnly",)),
    "delta.checkpoint.writeStatsAsJson": (_boolean, ()),
    "delta.checkpoint.writeStatsAsStruct": (_boolean, ()),
    "delta.checkpointInterval": (_integer(1), ()),
    "delta.checkpointPolicy": (_one_of("classic", "v2"), ("v2Checkpoint",)),
    "delta.columnMapping.mode": (_one_of("none", "name", "id"), ("columnMapping",)),
    "delta.dataSkippingNumIndexedCols": (_integer(-1), ()),
    "delta.dataSkippingStatsColumns": (_text, ()),
    "delta.deletedFileRetentionDuration": (_interval, ()),
    "delta.enableChangeDataFeed": (_boolean, ("changeDataFeed",)),
    "delta.enableDeletionVectors": (_boolean, ("deletionVectors",)),
    "delta.enableExpiredLogCleanup": (_boolean, ()),
    "delta.enableInCommitTimestamps": (_boolean, ("inCommitTimestamp",)),
    "delta.enableRowTracking": (_boolean, ("rowTracking", "domainMetadata")),
    "delta.enableTypeWidening": (_boolean, ("typeWidening",)),
    "delta.enableVariantShredding": (_boolean, (VARIANT_TYPE, SHREDDING)),
    "delta.isolationLevel": (_one_of("Serializable", "WriteSerializable"), ()),
    "delta.logRetentionDuration": (_interval, ()),
    "delta.parquet.compression.codec": (
        _one_of("uncompressed", "none", "snappy", "gzip", "lz4", "lz4_raw", "zstd"),
        (),
    ),
    "delta.parquet.format.version": (_one_of("1.0.0"), ()),
    "delta.setTransactionRetentionDuration": (_interval, ()),
}
_NAMES = {name.lower(): name for name in _PROPERTIES}


def with_tracking_columns(metadata: Metadata) -> Metadata:
    """Return metadata with names for the columns of row tracking, if it is enabled and has no names yet."""
    configuration = metadata.configuration
    if configuration.get("delta.enableRowTracking") != "true" or ROW_ID_COLUMN in configuration:
        return metadata
    names = {
        ROW_ID_COLUMN: f"_row-id-col-{uuid.uuid4()}",
        ROW_COMMIT_COLUMN: f"_row-commit-version-col-{uuid.uuid4()}",
    }
    return replace(metadata, configuration={**configuration, **names})
