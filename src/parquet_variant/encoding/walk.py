"""A value as a flat run of events, in document order, without recursion.

Owns the one traversal that `to_python`, `to_json`, equality and re-encoding share, and its guard against values that
overlap. Leaves the full list of faults to `validate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from parquet_variant.encoding.header import Container, read_container, value_size
from parquet_variant.encoding.metadata import dictionary_of
from parquet_variant.encoding.scalars import read_scalar
from parquet_variant.errors import MalformedVariantError
from parquet_variant.types import VariantType

KEY = "key"
END = "end"


class Event(NamedTuple):
    """What the walk met: a scalar or an opening container (by its `VariantType`), a ``KEY`` or an ``END``.

    ``raw`` is the scalar's raw payload, the name of the key, or the container's number of elements; ``start`` and
    ``stop`` are the byte range of a scalar.
    """

    kind: VariantType | str
    raw: Any
    start: int = 0
    stop: int = 0


_END = Event(END, None)


def walk(metadata: bytes, data: bytes, at: int, stop: int, *, by_key: bool = False) -> Iterator[Event]:
    """Every event of the value at ``at``.

    `metadata`: the encoded dictionary; looked at only if the value has keys.
    `data` and `at` and `stop`: the bytes, where the value starts, and where they end.
    `by_key`: fields in the order of their keys, not in the order in which they are stored.
    Raises `MalformedVariantError` when the walk meets a fault; what came before it has been given.
    """
    # Children that share bytes could make a few stand for 2**1000 values: together they may have no more of them than
    # their container has.
    open_containers: list[tuple[Container, Iterator[int]]] = []
    left: list[int] = []
    while True:
        container = read_container(data, at, stop)
        size = value_size(data, at, stop) if container is None else container.stop - at
        if left:
            left[-1] -= size
            if left[-1] < 0:
                raise MalformedVariantError(
                    "values overlap: some bytes belong to more than one value", reason="overlap", offset=at
                )
        if container is None:
            scalar = read_scalar(data, at, stop)
            yield Event(scalar.type, scalar.raw, at, at + size)
        else:
            yield Event(VariantType.OBJECT if container.is_object else VariantType.ARRAY, container.size)
            order: Iterable[int] = range(container.size)
            if by_key and container.is_object:
                order = sorted(order, key=partial(_name, metadata, data, container))
            open_containers.append((container, iter(order)))
            left.append(container.stop - container.values_at)
        while open_containers and (index := next(open_containers[-1][1], None)) is None:
            open_containers.pop()
            left.pop()
            yield _END
        if not open_containers or index is None:
            return
        container = open_containers[-1][0]
        if container.is_object:
            yield Event(KEY, _name(metadata, data, container, index))
        at, stop = container.value_at(data, index), container.stop


def _name(metadata: bytes, data: bytes, container: Container, index: int) -> str:
    return dictionary_of(metadata).name(container.field_id(data, index))
