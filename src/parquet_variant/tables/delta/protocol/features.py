"""Table features and properties: the tables that this library can read and write, and the features that these need.

Owns the lists of supported features, `-preview` names included, and of properties, and refusing tables. Every other
``delta.`` property is refused, so that none is stored and then ignored. Also owns the names of the columns in which
files keep row ids and commit versions. Leaves the behaviour of a feature to the modules that implement it.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace

from parquet_variant.errors import DeltaError, TableError, check_mapping, choice_of
from parquet_variant.tables.delta.protocol.actions import Metadata, Protocol, parse_schema
from parquet_variant.tables.schema import VARIANT, PrimitiveType, StructType, all_types

VARIANT_TYPE = "variantType"
SHREDDING = "variantShredding"
ROW_ID_COLUMN = "delta.rowTracking.materializedRowIdColumnName"
ROW_COMMIT_COLUMN = "delta.rowTracking.materializedRowCommitVersionColumnName"
_PREVIEW = "-preview"
_FEATURE_READER = 3
_FEATURE_WRITER = 7
_MAPPING_READER = 2

_SHARED = {
    VARIANT_TYPE, SHREDDING, "columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "v2Checkpoint",
    "vacuumProtocolCheck",
}  # fmt: skip
_WRITER_ONLY = {
    "allowColumnDefaults", "appendOnly", "changeDataFeed", "checkConstraints", "checkpointProtection", "clustering",
    "domainMetadata", "generatedColumns", "identityColumns", "inCommitTimestamp", "invariants", "rowTracking",
}  # fmt: skip
FEATURES = _SHARED | _WRITER_ONLY
# The features that writer versions below 7 imply, and their number by version (PROTOCOL.md, "Writer Version
# Requirements").
_LEGACY = ("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping",
    "identityColumns")  # fmt: skip
_LEGACY_COUNT = {1: 0, 2: 2, 3: 3, 4: 5, 5: 6, 6: 7}


def has_feature(features: Iterable[str] | None, name: str) -> bool:
    """Return whether a list of features contains a name, or the name with ``-preview``.

    >>> has_feature(["variantShredding-preview"], "variantShredding")
    True
    """
    return any(f.removesuffix(_PREVIEW) == name for f in features or ())


def check_readable(protocol: Protocol, uri: str) -> None:
    """Refuse a table that uses reader features that this library does not support, with all of their names."""
    version = protocol.min_reader_version
    if not 1 <= version <= _FEATURE_READER:
        raise _unsupported(uri, f"needs Delta reader version {version}, but only versions 1 to 3 are supported")
    features = protocol.reader_features if version == _FEATURE_READER else ()
    if unknown := sorted(f for f in features or () if f.removesuffix(_PREVIEW) not in _SHARED):
        raise _unsupported(uri, f"needs reader features that are not supported: {', '.join(unknown)}")


def check_writable(protocol: Protocol, uri: str) -> None:
    """Refuse a table that uses writer features that this library does not support, with their names."""
    version = protocol.min_writer_version
    problems: list[str] = []
    if version == _FEATURE_WRITER:
        problems += [f for f in protocol.writer_features or () if f.removesuffix(_PREVIEW) not in FEATURES]
    elif not 1 <= version < _FEATURE_WRITER:
        problems.append(f"writer version {version}")
    if problems:
        names = ", ".join(sorted(problems))
        raise _unsupported(uri, f"cannot be written, because it needs features that are not supported: {names}")


def check_column_features(protocol: Protocol, schema: StructType, uri: str) -> None:
    """Refuse to write rows of a table whose protocol does not list a feature that the type of a column needs."""
    for feature in schema_features(schema):
        if not supports(protocol, feature) or not has_feature(protocol.reader_features, feature):
            raise _unsupported(
                uri,
                f"has a column whose type needs the feature {feature}, which the table's protocol does not list: "
                f"add it with set_properties({{'delta.feature.{feature}': 'supported'}})",
            )


def _unsupported(uri: str, problem: str) -> DeltaError:
    return DeltaError(f"{uri} {problem}", reason="unsupported-feature", file=uri)


def supports(protocol: Protocol, name: str) -> bool:
    """Return whether writers must obey a feature: the protocol lists it, or the writer version implies it."""
    return has_feature(implied_features(protocol), name)


def enabled(protocol: Protocol, metadata: Metadata, name: str, key: str) -> bool:
    """Return whether a feature is supported and its property is true, in any case: delta-spark accepts ``TRUE`` too.

    Properties that permit a writer something (to shred, to write deletion vectors) must be exactly ``true``.
    """
    return metadata.configuration.get(key, "false").lower() == "true" and supports(protocol, name)


def column_mapping_mode(protocol: Protocol, metadata: Metadata) -> str:
    """Return ``"none"``, ``"name"`` or ``"id"``; the property has an effect only if the protocol supports it."""
    supported = protocol.min_reader_version == _MAPPING_READER or has_feature(protocol.reader_features, "columnMapping")
    mode = metadata.configuration.get("delta.columnMapping.mode", "none")
    return mode if supported else "none"


def table_schema(protocol: Protocol, metadata: Metadata) -> StructType:
    """Return the columns; physical names and ids have an effect only if the table maps columns."""
    return parse_schema(metadata.schema_string, mapped=column_mapping_mode(protocol, metadata) != "none")


def partition_names(protocol: Protocol | None, metadata: Metadata | None) -> list[str]:
    """Return the physical names of the partition columns, as used in `partitionValues`."""
    if protocol is None or metadata is None or not metadata.partition_columns:
        return []
    schema = table_schema(protocol, metadata)
    fields = {name: schema.get(name) for name in metadata.partition_columns}
    if missing := [name for name, field in fields.items() if field is None]:
        raise DeltaError(f"the partition column {missing[0]!r} is not in the table's schema", reason="broken-log")
    return [field.physical_name for field in fields.values() if field is not None]


def in_commit_since(protocol: Protocol, metadata: Metadata) -> int | None:
    """Return the version since which commits record their time; None if the table has no in-commit timestamps.

    >>> in_commit_since(Protocol(1, 7, None, ("inCommitTimestamp",)), Metadata("x", "")) is None
    True
    """
    configuration = metadata.configuration
    if not enabled(protocol, metadata, "inCommitTimestamp", "delta.enableInCommitTimestamps"):
        return None
    since = configuration.get("delta.inCommitTimestampEnablementVersion", "0")
    return int(since) if since.isdecimal() else 0


def schema_features(schema: StructType) -> tuple[str, ...]:
    """Return the features that the types of columns need."""
    kinds = set(all_types(schema))
    needs = ((VARIANT, VARIANT_TYPE), (PrimitiveType("timestamp_ntz"), "timestampNtz"))
    return tuple(feature for kind, feature in needs if kind in kinds)


def with_features(protocol: Protocol, features: Iterable[str], *, preview: bool = False) -> Protocol:
    """Return the protocol with additional features; `preview`: with ``variantShredding-preview``, for older readers.

    A protocol whose versions imply all of them is returned unchanged. Otherwise it is raised to writer version 7, and
    to reader version 3 if readers need a feature, and lists the features that its versions implied.
    """
    missing = [name for name in dict.fromkeys(features) if not supports(protocol, name.removesuffix(_PREVIEW))]
    if not missing:
        return protocol
    named = [f"{name}{_PREVIEW}" if preview and name == SHREDDING else name for name in missing]
    writers = implied_features(protocol)
    readers = protocol.reader_features or ()
    if protocol.min_reader_version == _MAPPING_READER and not readers:
        readers = ("columnMapping",)
    shared = [name for name in named if name.removesuffix(_PREVIEW) in _SHARED]
    writers = tuple(dict.fromkeys((*writers, *named)))
    if not shared and protocol.min_reader_version < _FEATURE_READER:
        return Protocol(protocol.min_reader_version, _FEATURE_WRITER, None, writers)
    shared = [*(name for name in writers if name.removesuffix(_PREVIEW) in _SHARED and name not in readers)]
    return Protocol(_FEATURE_READER, _FEATURE_WRITER, tuple(dict.fromkeys((*readers, *shared))), writers)


def implied_features(protocol: Protocol) -> tuple[str, ...]:
    """Return the features that writers must obey: those that the protocol lists, or that its version implies."""
    if protocol.min_writer_version < _FEATURE_WRITER:
        return _LEGACY[: _LEGACY_COUNT.get(protocol.min_writer_version, 0)]
    return protocol.writer_features or ()


CONSTRAINT = "delta.constraints."
# The format of the table that a Delta table was published from (`Table.publish`).
PUBLISHED_FROM_PROPERTY = "parquetVariant.publishedFrom"
SHREDDING_PROPERTY = "delta.enableVariantShredding"
_FEATURE = "delta.feature."
_UNITS = {
    "millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000, "week": 604_800_000,
}  # fmt: skip
_PART = re.compile(r"(\d+)\s*(millisecond|second|minute|hour|day|week)s?", re.IGNORECASE)


def resolve_properties(
    properties: Mapping[str, str | bool | int | None],
) -> tuple[dict[str, str | None], tuple[str, ...]]:
    """Return the checked values of properties that a user sets, None to remove one, and the features that they need.

    `properties`: values by name; None removes a property. ``delta.feature.X = supported`` names a feature. Names that
      do not begin with ``delta.`` are not checked.
    Raises `DeltaError`: ``"unsupported-property"`` for an unknown ``delta.`` property, ``"bad-property"`` for an
    invalid value.

    >>> resolve_properties({"delta.enableDeletionVectors": "TRUE", "owner": "me"})
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
            changes[name] = _normalized(name, value, kind)
            features += needed if changes[name] not in ("false", "none", "classic") else ()
        else:
            changes[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return changes, tuple(dict.fromkeys(features))


def duration_millis(text: str) -> int:
    """Return the milliseconds of an interval such as ``interval 1 week`` or ``30 days``."""
    body = text.lower().removeprefix("interval").strip()
    parts = _PART.findall(body)
    if not parts or _PART.sub("", body).strip():
        raise DeltaError(f"{text!r} is not an interval: write it as 'interval 7 days'", reason="bad-property")
    return sum(int(number) * _UNITS[unit.lower()] for number, unit in parts)


def _feature(name: str, value: object) -> str:
    spellings = {feature.lower(): feature for feature in FEATURES}
    feature = spellings.get(name.lower().removesuffix("-preview"))
    if feature is None:
        problem = f"delta.feature.{name} is not a supported feature: use {', '.join(sorted(FEATURES))}"
        raise DeltaError(problem, reason="unsupported-feature")
    if str(value).lower() not in ("supported", "enabled"):
        raise DeltaError(f"delta.feature.{name} is {value!r}: set it to 'supported'", reason="bad-property")
    return f"{feature}-preview" if name.lower().endswith("-preview") else feature


def _normalized(name: str, value: object, kind: tuple[str, ...] | int | str) -> str:
    """Return a value as the log holds it: one of some choices, an integer with a minimum, an interval, or any text."""
    text = str(value)
    try:
        if kind == "interval":
            duration_millis(text)
        elif isinstance(kind, int):
            text = text.strip()
            if not re.fullmatch(r"-?\d{1,9}", text) or int(text) < kind:
                raise DeltaError(f"give an integer of at least {kind}", reason="bad-property")
        elif isinstance(kind, tuple):
            choices = {choice.lower(): choice for choice in kind}
            if text.lower() not in choices:
                raise DeltaError(f"give one of {', '.join(kind)}", reason="bad-property")
            text = choices[text.lower()]
    except TableError as error:
        raise DeltaError(f"the table property {name} is {value!r}: {error.message}", reason="bad-property") from None
    return text


_BOOLEAN = ("true", "false")
# The values of each property (see `_normalized`), and the features that it needs.
_PROPERTIES: dict[str, tuple[tuple[str, ...] | int | str, tuple[str, ...]]] = {
    "delta.appendOnly": (_BOOLEAN, ("appendOnly",)),
    "delta.checkpoint.writeStatsAsJson": (_BOOLEAN, ()),
    "delta.checkpoint.writeStatsAsStruct": (_BOOLEAN, ()),
    "delta.checkpointInterval": (1, ()),
    "delta.checkpointPolicy": (("classic", "v2"), ("v2Checkpoint",)),
    "delta.columnMapping.mode": (("none", "name", "id"), ("columnMapping",)),
    "delta.dataSkippingNumIndexedCols": (-1, ()),
    "delta.dataSkippingStatsColumns": ("text", ()),
    "delta.deletedFileRetentionDuration": ("interval", ()),
    "delta.enableChangeDataFeed": (_BOOLEAN, ("changeDataFeed",)),
    "delta.enableDeletionVectors": (_BOOLEAN, ("deletionVectors",)),
    "delta.enableExpiredLogCleanup": (_BOOLEAN, ()),
    "delta.enableInCommitTimestamps": (_BOOLEAN, ("inCommitTimestamp",)),
    "delta.enableRowTracking": (_BOOLEAN, ("rowTracking", "domainMetadata")),
    "delta.enableTypeWidening": (_BOOLEAN, ("typeWidening",)),
    "delta.enableVariantShredding": (_BOOLEAN, (VARIANT_TYPE, SHREDDING)),
    "delta.isolationLevel": (("Serializable", "WriteSerializable"), ()),
    "delta.logRetentionDuration": ("interval", ()),
    "delta.parquet.compression.codec": (("uncompressed", "none", "snappy", "gzip", "lz4", "lz4_raw", "zstd"), ()),
    "delta.parquet.format.version": (("1.0.0",), ()),
    "delta.setTransactionRetentionDuration": ("interval", ()),
}
_NAMES = {name.lower(): name for name in _PROPERTIES}


def with_tracking_columns(metadata: Metadata) -> Metadata:
    """Return metadata with names for the columns of row tracking, if it is enabled and has no names yet."""
    configuration = metadata.configuration
    if configuration.get("delta.enableRowTracking") != "true" or ROW_ID_COLUMN in configuration:
        return metadata
    names = {ROW_ID_COLUMN: f"_row-id-col-{uuid.uuid4()}", ROW_COMMIT_COLUMN: f"_row-commit-version-col-{uuid.uuid4()}"}
    return replace(metadata, configuration={**configuration, **names})
