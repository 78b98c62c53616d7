"""Table features: which tables this code may read, and which it may write.

Owns the lists of supported features, `-preview` names included, and the refusals. Leaves what a feature does to the
modules that implement it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from parquet_variant.delta.protocol.actions import Metadata, Protocol
from parquet_variant.delta.protocol.schema import ArrayType, DeltaType, MapType, StructType, parse_schema
from parquet_variant.errors import DeltaError

__all__ = [
    "SHREDDING",
    "VARIANT_TYPE",
    "check_readable",
    "check_writable",
    "column_mapping_mode",
    "has_feature",
    "in_commit_since",
    "shredding_enabled",
    "table_protocol",
]

VARIANT_TYPE = "variantType"
SHREDDING = "variantShredding"
_PREVIEW = "-preview"
_FEATURE_READER = 3
_FEATURE_WRITER = 7
_MAPPING_READER = 2

_READABLE = {
    VARIANT_TYPE,
    SHREDDING,
    "columnMapping",
    "deletionVectors",
    "timestampNtz",
    "v2Checkpoint",
    "vacuumProtocolCheck",
}
# Supported when writing without any care, or (the second set) as long as the table does not use them.
_WRITABLE = {
    VARIANT_TYPE,
    SHREDDING,
    "appendOnly",
    "changeDataFeed",
    "deletionVectors",
    "domainMetadata",
    "timestampNtz",
    "v2Checkpoint",
    "vacuumProtocolCheck",
}
_WRITABLE_UNUSED = {
    "allowColumnDefaults",
    "checkConstraints",
    "columnMapping",
    "generatedColumns",
    "identityColumns",
    "inCommitTimestamp",
    "invariants",
}
_FORBIDDEN_COLUMN_KEYS = {
    "delta.invariants": "an invariant",
    "delta.generationExpression": "a generation expression",
    "delta.identity.start": "an identity",
    "CURRENT_DEFAULT": "a default",
}


def has_feature(features: Iterable[str] | None, name: str) -> bool:
    """Whether a list of features holds a name, or the name with ``-preview``.

    Examples
    --------
    >>> has_feature(["variantShredding-preview"], "variantShredding")
    True
    """
    return any(f.removesuffix(_PREVIEW) == name for f in features or ())


def check_readable(protocol: Protocol, uri: str) -> None:
    """Refuse a table that needs more of a reader than this one can.

    Raises
    ------
    DeltaError
        Reason ``"unsupported-feature"``; the message names every feature that is missing here.
    """
    version = protocol.min_reader_version
    if not 1 <= version <= _FEATURE_READER:
        raise DeltaError(
            f"{uri} needs Delta reader version {version}, this reader knows 1 to 3", reason="unsupported-feature"
        ).at(file=uri)
    if version == _FEATURE_READER:
        unknown = sorted(f for f in protocol.reader_features or () if f.removesuffix(_PREVIEW) not in _READABLE)
        if unknown:
            raise DeltaError(
                f"{uri} needs reader feature(s) {', '.join(unknown)}, which are not supported",
                reason="unsupported-feature",
                file=uri,
            )


def check_writable(protocol: Protocol, metadata: Metadata, uri: str) -> None:
    """Refuse a table that needs more of a writer than this one can.

    Raises
    ------
    DeltaError
        Reason ``"unsupported-feature"``; the message names the features or properties.
    """
    version = protocol.min_writer_version
    problems: list[str] = []
    if version == _FEATURE_WRITER:
        known = _WRITABLE | _WRITABLE_UNUSED
        problems += [f for f in protocol.writer_features or () if f.removesuffix(_PREVIEW) not in known]
    elif not 1 <= version < _FEATURE_WRITER:
        problems.append(f"writer version {version}")
    configuration = metadata.configuration
    problems += [key for key in configuration if key.startswith("delta.constraints.")]
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        problems.append("delta.columnMapping.mode=" + configuration["delta.columnMapping.mode"])
    problems += [
        key for key in ("delta.enableInCommitTimestamps", "delta.enableRowTracking") if configuration.get(key) == "true"
    ]
    problems += _column_problems(parse_schema(metadata.schema_string))
    if problems:
        raise DeltaError(
            f"{uri} cannot be written here, since it uses: {', '.join(sorted(problems))}",
            reason="unsupported-feature",
            file=uri,
        )


def column_mapping_mode(protocol: Protocol, metadata: Metadata) -> str:
    """``"none"``, ``"name"`` or ``"id"``; the property counts only if the protocol supports it."""
    supported = protocol.min_reader_version == _MAPPING_READER or has_feature(protocol.reader_features, "columnMapping")
    mode = metadata.configuration.get("delta.columnMapping.mode", "none")
    return mode if supported else "none"


def in_commit_since(protocol: Protocol, metadata: Metadata) -> int | None:
    """The version since which every commit tells its own time; None if the table has no in-commit timestamps.

    Examples
    --------
    >>> in_commit_since(Protocol(1, 7, None, ("inCommitTimestamp",)), Metadata("x", "")) is None
    True
    """
    configuration = metadata.configuration
    enabled = configuration.get("delta.enableInCommitTimestamps", "false").lower() == "true"
    if not enabled or not has_feature(protocol.writer_features, "inCommitTimestamp"):
        return None
    since = configuration.get("delta.inCommitTimestampEnablementVersion", "0")
    return int(since) if since.isdigit() else 0


def shredding_enabled(protocol: Protocol, metadata: Metadata) -> bool:
    """Whether new files may be shredded: the feature is there, and ``delta.enableVariantShredding`` is ``true``.

    Examples
    --------
    >>> protocol = Protocol(3, 7, ("variantType", "variantShredding"), ("variantType", "variantShredding"))
    >>> shredding_enabled(protocol, Metadata("x", "", configuration={"delta.enableVariantShredding": "true"}))
    True
    >>> shredding_enabled(protocol, Metadata("x", ""))
    False
    """
    value = metadata.configuration.get("delta.enableVariantShredding", "false")
    return value.lower() == "true" and has_feature(protocol.writer_features, SHREDDING)


def table_protocol(schema: StructType, *, shredding: bool, preview: bool, extra: Iterable[str] = ()) -> Protocol:
    """The protocol that a new table with a schema needs.

    Parameters
    ----------
    schema
        The table's columns.
    shredding
        Whether ``delta.enableVariantShredding`` is set.
    preview
        Name the feature ``variantShredding-preview``, for readers that know no other.
    extra
        Further writer features, such as ``appendOnly``.
    """
    names = set(_primitive_names(schema))
    shared = []
    if "variant" in names or shredding:
        shared.append(VARIANT_TYPE)
    if shredding:
        shared.append(SHREDDING + _PREVIEW if preview else SHREDDING)
    if "timestamp_ntz" in names:
        shared.append("timestampNtz")
    if not shared and not list(extra):
        return Protocol(1, 2)
    if not shared:
        return Protocol(1, _FEATURE_WRITER, None, tuple(extra))
    return Protocol(_FEATURE_READER, _FEATURE_WRITER, tuple(shared), (*shared, *extra))


def _primitive_names(kind: DeltaType) -> Iterable[str]:
    if isinstance(kind, StructType):
        for f in kind.fields:
            yield from _primitive_names(f.type)
    elif isinstance(kind, ArrayType):
        yield from _primitive_names(kind.element)
    elif isinstance(kind, MapType):
        yield from _primitive_names(kind.key)
        yield from _primitive_names(kind.value)
    else:
        yield kind.name


def _column_problems(kind: DeltaType) -> list[str]:
    found: list[str] = []
    stack: list[Any] = [kind]
    while stack:
        node = stack.pop()
        if isinstance(node, StructType):
            for f in node.fields:
                found += [
                    f"{what} on column {f.name}" for key, what in _FORBIDDEN_COLUMN_KEYS.items() if key in f.metadata
                ]
                stack.append(f.type)
        elif isinstance(node, ArrayType):
            stack.append(node.element)
        elif isinstance(node, MapType):
            stack += [node.key, node.value]
    return found
