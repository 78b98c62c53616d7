"""The actions of Delta's log as frozen dataclasses, and their JSON form.

Owns the spelling of every action (PROTOCOL.md, "Actions"), and the one clock that they tell. Leaves which actions a
commit may hold to `commit`, and the columnar form that a whole table's files need to `replay`.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar, Self

from parquet_variant.errors import DeltaError


def now_millis() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def parse_json(text: str | bytes, **options: Any) -> Any:
    r"""What JSON says; `ValueError` also for what is nested too deep, and for halves of surrogate pairs.

    >>> parse_json('{"n": 1}')
    {'n': 1}
    """
    text = text if isinstance(text, str) else text.decode("utf-8-sig")
    try:
        value = json.loads(text, **options)
        if "\\u" in text:  # Only so can a text come in that has no bytes in UTF-8.
            json.dumps(value, ensure_ascii=False, default=str).encode()
    except RecursionError:
        raise ValueError("the JSON is nested too deep") from None
    return value


_UNLOGGED = {"logged": False}


def _logged(kind: Any) -> tuple[Field[Any], ...]:
    return tuple(item for item in fields(kind) if item.metadata.get("logged", True))


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.title() for part in rest)


@dataclass(frozen=True, slots=True)
class Action:
    """An action: fields in snake case, JSON in camel case, absent where None."""

    key: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the action, without its key."""
        out: dict[str, Any] = {}
        for item in _logged(type(self)):
            value = getattr(self, item.name)
            if value is None:
                continue
            if isinstance(value, Action):
                value = value.to_dict()
            elif isinstance(value, tuple):
                value = list(value)
            elif isinstance(value, Mapping):
                value = dict(value)
            out[_camel(item.name)] = value
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The action of a JSON object; fields that this code does not know are dropped (PROTOCOL.md: ignore them).

        Raises `DeltaError`: reason ``"broken-log"`` for what is no such action.
        """
        known = {}
        try:
            for item in _logged(cls):
                value = data.get(_camel(item.name))
                if value is None:
                    continue
                if item.name == "deletion_vector":
                    value = DeletionVector.from_dict(value)
                else:
                    _check_type(value, str(item.type), item.name)
                    value = tuple(value) if isinstance(value, list) else value
                known[item.name] = value
            return cls(**known)
        except (TypeError, AttributeError) as error:
            raise DeltaError(f"the log has a malformed action {str(data)[:80]}", reason="broken-log") from error


# Python types by the first word of a field's annotation.
_TYPES: dict[str, tuple[type, ...]] = {
    "int": (int,), "str": (str,), "bool": (bool,), "Mapping": (Mapping,), "tuple": (list, tuple),
}  # fmt: skip


def _check_type(value: Any, annotation: str, name: str) -> None:
    """Refuse what a log says where it is of another type than the protocol's; the caller says where it stands."""
    kind = _TYPES.get(annotation.partition("[")[0].split()[0])
    if kind is not None and (not isinstance(value, kind) or (isinstance(value, bool) and bool not in kind)):
        raise TypeError(f"{name} is {type(value).__name__}")
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    if "str | None]" in annotation:
        inside = [each for each in inside if each is not None]
    if re.search(r"str(, \.\.\.| \| None)?\]", annotation) and not all(isinstance(each, str) for each in inside):
        raise TypeError(f"{name} holds other values than text")


@dataclass(frozen=True, slots=True)
class Protocol(Action):
    """What a reader and a writer must know.

    Examples
    --------
    >>> Protocol(3, 7, ("variantType",), ("variantType",)).to_dict()["readerFeatures"]
    ['variantType']
    """

    key: ClassVar[str] = "protocol"
    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Metadata(Action):
    """The table's schema, partition columns and properties."""

    key: ClassVar[str] = "metaData"
    id: str
    schema_string: str = '{"type":"struct","fields":[]}'
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    created_time: int | None = None
    name: str | None = None
    description: str | None = None
    format: Mapping[str, Any] = field(default_factory=lambda: {"provider": "parquet", "options": {}})


@dataclass(frozen=True, slots=True)
class DeletionVector(Action):
    """Where the deleted rows of a file are told (PROTOCOL.md, "Deletion Vector Descriptor Schema")."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: int
    cardinality: int
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class PlanMark:
    """The plan by which a file was written."""

    version: int  # The table's version for which the plan was made; -1 for a new table.
    key: str  # The digest of the table's definition (`writing.plan_marks.table_key`).
    derived: tuple[str, ...] = ()  # Partition columns that were extracted from the Variant column.


@dataclass(frozen=True, slots=True)
class Add(Action):
    """A data file that belongs to the table from this version on; `path` is percent-encoded."""

    key: ClassVar[str] = "add"
    path: str
    partition_values: Mapping[str, str | None]
    size: int
    modification_time: int
    data_change: bool
    stats: str | None = None
    tags: Mapping[str, str] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None
    # Not in the log: what the statistics say as text, so that it need not be read back from there.
    rows: int | None = field(default=None, compare=False, metadata=_UNLOGGED)
    mark: PlanMark | None = field(default=None, compare=False, metadata=_UNLOGGED)

    @property
    def num_records(self) -> int | None:
        """The rows of the file, those that a deletion vector deletes among them; None if nobody tells."""
        if self.rows is not None or self.stats is None:
            return self.rows
        try:
            told = parse_json(self.stats).get("numRecords")
        except (ValueError, AttributeError):
            return None
        return told if isinstance(told, int) else None


@dataclass(frozen=True, slots=True)
class Remove(Action):
    """A data file that no longer belongs to the table; a tombstone for vacuum."""

    key: ClassVar[str] = "remove"
    path: str
    data_change: bool
    deletion_timestamp: int | None = None
    extended_file_metadata: bool | None = None
    partition_values: Mapping[str, str | None] | None = None
    size: int | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None


@dataclass(frozen=True, slots=True)
class Cdc(Action):
    """A file of rows that a version changed, for readers of changes."""

    key: ClassVar[str] = "cdc"
    path: str
    partition_values: Mapping[str, str | None]
    size: int
    data_change: bool = False
    tags: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Txn(Action):
    """How far an application got: what makes a repeated append a no-op."""

    key: ClassVar[str] = "txn"
    app_id: str
    version: int
    last_updated: int | None = None


@dataclass(frozen=True, slots=True)
class DomainMetadata(Action):
    """A named configuration that writers keep even if they do not know it."""

    key: ClassVar[str] = "domainMetadata"
    domain: str
    configuration: str
    removed: bool = False


@dataclass(frozen=True, slots=True)
class CommitInfo(Action):
    """Who did what: free JSON."""

    key: ClassVar[str] = "commitInfo"
    info: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """The JSON object, as it is."""
        return dict(self.info)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Keep everything."""
        return cls(dict(data))


def to_lines(actions: Iterable[Action]) -> bytes:
    r"""The bytes of a commit file: one JSON document a line.

    >>> to_lines([Txn("a", 3)])
    b'{"txn":{"appId":"a","version":3}}\n'
    """
    lines = (json.dumps({a.key: a.to_dict()}, separators=(",", ":"), ensure_ascii=False) for a in actions)
    return "".join(line + "\n" for line in lines).encode("utf-8")
