"""Changing a table's properties and features: `ALTER TABLE … SET TBLPROPERTIES`, and dropping variant shredding.

Owns what a property change does to the protocol, and intervals as Delta spells them. Leaves rewriting files to
`optimize`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace

from parquet_variant.delta.log.commit import CommitResult, Transaction, commit
from parquet_variant.delta.log.snapshot import Snapshot, snapshot
from parquet_variant.delta.protocol.actions import Metadata, Protocol
from parquet_variant.delta.protocol.features import SHREDDING, VARIANT_TYPE, check_writable, has_feature
from parquet_variant.errors import DeltaError

__all__ = [
    "SHREDDING_PROPERTY",
    "duration_millis",
    "set_properties",
    "with_features",
    "with_properties",
    "without_feature",
]

SHREDDING_PROPERTY = "delta.enableVariantShredding"
_UNITS = {
    "millisecond": 1,
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 604_800_000,
}
_PART = re.compile(r"(\d+)\s*(millisecond|second|minute|hour|day|week)s?", re.IGNORECASE)
# Properties that would need more of this writer than it can do.
_REFUSED = ("delta.columnMapping.", "delta.constraints.", "delta.enableRowTracking", "delta.enableInCommitTimestamps")


def set_properties(
    table: str | os.PathLike[str] | Snapshot,
    properties: Mapping[str, str | bool | int | None],
    *,
    preview: bool = False,
    storage_options: Mapping[str, str] | None = None,
) -> CommitResult:
    """Set or remove table properties.

    Parameters
    ----------
    table
        Path, URL or snapshot.
    properties
        Values by name; None removes a property. ``delta.enableVariantShredding=true`` also adds the feature that it
        needs; ``false`` keeps it, so that files that are shredded stay readable (see `drop_shredding`).
    preview
        Name a feature that is added ``variantShredding-preview``.
    storage_options
        Configuration of the object store.

    Returns
    -------
    CommitResult

    Raises
    ------
    DeltaError
        ``"unsupported-feature"`` for a property that needs a feature which is not supported; ``"conflict"``.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"v": pv.parse_json(['{"n": 1}'])})
    ...     _ = pv.delta.set_properties(folder, {"delta.enableVariantShredding": False})
    ...     pv.delta.snapshot(folder).shredding_enabled
    False
    """
    current = snapshot(table, storage_options=storage_options)
    changes = {name: _text(value) for name, value in properties.items()}
    refused = sorted(name for name in changes if name.startswith(_REFUSED))
    if refused:
        raise DeltaError(f"property {refused[0]} cannot be set here", reason="unsupported-feature")
    metadata = with_properties(current.metadata, changes)
    wanted: tuple[str, ...] = ()
    if metadata.configuration.get(SHREDDING_PROPERTY, "false") == "true":
        wanted = (VARIANT_TYPE, SHREDDING)
    protocol = with_features(current.protocol, wanted, preview=preview)
    if "delta.appendOnly" in changes and protocol.min_writer_version == _FEATURES_FROM:
        protocol = replace(protocol, writer_features=_with(protocol.writer_features, "appendOnly"))
    check_writable(protocol, metadata, current.storage.uri)
    return commit(
        current.storage,
        Transaction(
            "SET TBLPROPERTIES",
            {"properties": {k: v for k, v in changes.items() if v is not None}},
            protocol=protocol if protocol != current.protocol else None,
            metadata=metadata,
            read_version=current.version,
        ),
    )


_FEATURES_FROM = 7
_READER_FEATURES_FROM = 3


def with_properties(metadata: Metadata, changes: Mapping[str, str | None]) -> Metadata:
    """The metadata with some properties set, or removed where the value is None."""
    configuration = {k: v for k, v in metadata.configuration.items() if changes.get(k, v) is not None}
    configuration |= {k: v for k, v in changes.items() if v is not None}
    return replace(metadata, configuration=configuration)


def with_features(protocol: Protocol, wanted: tuple[str, ...], *, preview: bool = False) -> Protocol:
    """The protocol that also has some reader-and-writer features.

    A protocol below reader 3 and writer 7 is raised to them, with the features that its versions stood for.
    """
    missing = [
        f for f in wanted if not (has_feature(protocol.reader_features, f) and has_feature(protocol.writer_features, f))
    ]
    if not missing:
        return protocol
    named = [f"{f}-preview" if preview and f == SHREDDING else f for f in missing]
    readers = protocol.reader_features or ()
    writers = protocol.writer_features or _LEGACY_WRITER[min(protocol.min_writer_version, 6)]
    if protocol.min_reader_version == 2 and not protocol.reader_features:
        readers = ("columnMapping",)
    return Protocol(
        _READER_FEATURES_FROM, _FEATURES_FROM, tuple(dict.fromkeys((*readers, *named))),
        tuple(dict.fromkeys((*writers, *named))),
    )  # fmt: skip


def without_feature(protocol: Protocol, name: str) -> Protocol:
    """The protocol without a feature, under its own and its preview name."""

    def kept(features: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if features is None else tuple(f for f in features if not has_feature([f], name))

    return replace(
        protocol, reader_features=kept(protocol.reader_features), writer_features=kept(protocol.writer_features)
    )


# What a writer version below 7 stands for (PROTOCOL.md, "Writer Version Requirements").
_LEGACY_WRITER: dict[int, tuple[str, ...]] = {
    1: (),
    2: ("appendOnly", "invariants"),
    3: ("appendOnly", "invariants", "checkConstraints"),
    4: ("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns"),
    5: ("appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping"),
    6: (
        "appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "columnMapping",
        "identityColumns",
    ),
}  # fmt: skip


def duration_millis(text: str) -> int:
    """Milliseconds of an interval such as ``interval 1 week`` or ``30 days``.

    Raises
    ------
    DeltaError
        Reason ``"bad-property"``.

    Examples
    --------
    >>> duration_millis("interval 1 week") == duration_millis("7 days")
    True
    """
    body = text.lower().removeprefix("interval").strip()
    found = _PART.findall(body)
    if not found or _PART.sub("", body).strip():
        raise DeltaError(f"{text!r} is not an interval: write it as 'interval 7 days'", reason="bad-property")
    return sum(int(number) * _UNITS[unit.lower()] for number, unit in found)


def _with(features: tuple[str, ...] | None, name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*(features or ()), name)))


def _text(value: str | bool | int | None) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
