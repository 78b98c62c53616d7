"""Hive partitions as they are read: columns whose values stand in the names of directories, ``day=2026-01-31/``.

Owns taking the names apart, and the types of the values: what Spark makes of the same names. Leaves which files there
are to those who list them, and how a value becomes a directory's name to `delta.data.partitions`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import TypeAlias
from urllib.parse import unquote

import pyarrow as pa

# Column and value, in the order of the directories; null where the file is in no such partition.
Partition: TypeAlias = "tuple[tuple[str, pa.Scalar], ...]"

_NULL = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"-?\d{1,19}")
_NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[-+]\d\d:\d\d)?")


def partition_texts(folders: Sequence[str]) -> dict[str, str | None]:
    """The partition columns that the names of directories say, as text.

    >>> partition_texts(["day=2026-01-31", "kind=a%2Fb", "n=__HIVE_DEFAULT_PARTITION__", "plain"])
    {'day': '2026-01-31', 'kind': 'a/b', 'n': None}
    """
    values: dict[str, str | None] = {}
    for folder in folders:
        name, equals, value = folder.partition("=")
        if equals and name:
            values[unquote(name)] = None if value == _NULL else unquote(value)
    return values


def typed_partitions(files: Sequence[dict[str, str | None]]) -> list[Partition]:
    """The partition columns of files, each of one type: the narrowest that all of its values have.

    Integers are ``int32`` if they fit, else ``int64``; then come ``double``, ``date32``, ``timestamp`` and, for
    anything else, ``string``.

    >>> typed_partitions([{"day": "2026-01-31", "n": "1"}, {"day": None, "n": "x"}])[0][1]
    ('n', <pyarrow.StringScalar: '1'>)
    """
    names = dict.fromkeys(name for texts in files for name in texts)
    scalars: dict[str, dict[str | None, pa.Scalar]] = {}
    for name in names:
        values = dict.fromkeys(texts.get(name) for texts in files)
        kind, read = _type_of([text for text in values if text is not None])
        scalars[name] = {text: pa.scalar(None if text is None else read(text), kind) for text in values}
    return [tuple((name, scalars[name][texts.get(name)]) for name in names) for texts in files]


def _type_of(texts: list[str]) -> tuple[pa.DataType, Callable[[str], object]]:
    kinds: tuple[tuple[re.Pattern[str], pa.DataType, Callable[[str], object]], ...] = (
        (_INTEGER, pa.int32(), int),
        (_INTEGER, pa.int64(), int),
        (_NUMBER, pa.float64(), float),
        (_DATE, pa.date32(), date.fromisoformat),
        (_TIMESTAMP, pa.timestamp("us"), _local_time),
        (_TIMESTAMP, pa.timestamp("us", "UTC"), _instant),
    )
    for pattern, kind, read in kinds:
        if texts and all(map(pattern.fullmatch, texts)):
            try:
                pa.array([read(text) for text in texts], kind)
            except (ValueError, OverflowError, pa.ArrowException):
                continue
            return kind, read
    return pa.string(), str


def _local_time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError("an instant")
    return moment


def _instant(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
