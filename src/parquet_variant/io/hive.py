"""Hive partitions for reading: columns whose values are in directory names, ``day=2026-01-31/``.

Owns parsing the names, and the types of the values, which are those that Spark infers. Readers list the files, and
`tables.partitions` makes directory names from values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import TypeAlias
from urllib.parse import unquote

import pyarrow as pa

# Columns and values, in the order of the directories; null for a file without such a partition.
Partition: TypeAlias = "tuple[tuple[str, pa.Scalar], ...]"

_NULL = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"-?\d{1,19}")
_NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[-+]\d\d:\d\d)?")


def partition_texts(folders: Sequence[str]) -> dict[str, str | None]:
    """Return the partition columns of directory names, as strings.

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
    """Return the partition columns of files, with one type per column: the narrowest for all of its values.

    Integers are ``int32`` if they fit, else ``int64``; otherwise the type is ``double``, ``date32``, ``timestamp`` or,
    for other values, ``string``.

    >>> typed_partitions([{"day": "2026-01-31", "n": "1"}, {"day": None, "n": "x"}])[0][1]
    ('n', <pyarrow.StringScalar: '1'>)
    """
    names = dict.fromkeys(name for texts in files for name in texts)
    scalars: dict[str, dict[str | None, pa.Scalar]] = {}
    for name in names:
        values = dict.fromkeys(texts.get(name) for texts in files)
        kind, parse = _type_of([text for text in values if text is not None])
        scalars[name] = {text: pa.scalar(None if text is None else parse(text), kind) for text in values}
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
    for pattern, kind, parse in kinds:
        if texts and all(map(pattern.fullmatch, texts)):
            try:
                pa.array([parse(text) for text in texts], kind)
            except (ValueError, OverflowError, pa.ArrowException):
                continue
            return kind, parse
    return pa.string(), str


def _local_time(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        raise ValueError("an instant")
    return moment


def _instant(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
