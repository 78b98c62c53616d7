"""All structural faults of a Variant, with reasons and byte offsets.

Owns the complete check against the encoding specification. Leaves the checks that every access makes to `header`,
`scalars` and `metadata`.

Reasons: ``truncated``, ``bad-version``, ``unknown-type``, ``offset-out-of-range``, ``id-out-of-range``, ``bad-utf8``,
``unsorted-dictionary`` (the ``sorted_strings`` flag is set, but the names are not sorted and unique),
``unsorted-keys``, ``duplicate-key``, ``bad-decimal``, ``bad-time``, ``overlap``, ``unused-bytes`` (bytes between or
after the values of a container), ``trailing-bytes`` (bytes after the value or the metadata) and ``depth``.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from parquet_variant.encoding.header import Container, read_container, value_size
from parquet_variant.encoding.metadata import Dictionary
from parquet_variant.encoding.scalars import read_scalar
from parquet_variant.errors import MalformedVariantError
from parquet_variant.support.records import Record
from parquet_variant.types import DECIMAL_TYPES, TYPES

Part = Literal["metadata", "value"]


class Fault(Record):
    """A fault of a Variant."""

    part: Part  # The part that the offset refers to.
    offset: int  # Bytes before the fault.
    reason: str  # One of the reasons above.
    message: str  # The description of the fault, in one line.


def find_faults(metadata: bytes, value: bytes, max_depth: int = 1000) -> list[Fault]:
    """Return all faults of a Variant: those of the metadata first, each part in the order of offsets."""
    check = _Check(max_depth)
    ranks = check.metadata(metadata)
    check.value(value, ranks)
    return sorted(check.faults, key=lambda fault: (fault.part, fault.offset))


class _Check:
    def __init__(self, max_depth: int) -> None:
        self.max_depth = max_depth
        self.faults: list[Fault] = []

    def fault(self, part: Part, offset: int, reason: str, message: str) -> None:
        self.faults.append(Fault(part, offset, reason, message))

    def error(self, part: Part, err: MalformedVariantError, offset: int = 0) -> None:
        self.fault(part, offset if err.offset is None else err.offset, err.reason, err.message)

    def metadata(self, metadata: bytes) -> list[int] | None:
        """Check the metadata, and return the rank of each name by its UTF-8 bytes; None if the names cannot be read."""
        try:
            dictionary = Dictionary(metadata)
            offsets = [dictionary.offset(index) for index in range(len(dictionary) + 1)]
        except MalformedVariantError as err:
            self.error("metadata", err)
            return None
        if not self._offsets(dictionary, offsets):
            return None
        names = [dictionary.name_bytes(field_id) for field_id in range(len(dictionary))]
        for start, name in zip(offsets, names, strict=False):
            try:
                name.decode()
            except UnicodeDecodeError as err:
                at = dictionary.bytes_at + start + err.start
                self.fault("metadata", at, "bad-utf8", f"a name of the dictionary is not UTF-8: {err.reason}")
        for field_id, (before, name) in enumerate(pairwise(names), 1):
            if dictionary.is_sorted and before >= name:
                quoted, quoted_before = (repr(part[:40].decode(errors="replace")) for part in (name, before))
                message = f"name {field_id} {quoted} does not sort after {quoted_before}, but the dictionary is flagged"
                at = dictionary.bytes_at + offsets[field_id]
                self.fault("metadata", at, "unsorted-dictionary", f"{message} as sorted and unique")
        place = {name: rank for rank, name in enumerate(sorted(set(names)))}
        return [place[name] for name in names]

    def _offsets(self, dictionary: Dictionary, offsets: list[int]) -> bool:
        """Check the offsets of the names, and return whether the names can be read."""
        slots = [dictionary.offsets_at + index * dictionary.offset_size for index in range(len(offsets))]
        before = len(self.faults)
        if offsets[0] != 0:
            self.fault("metadata", slots[0], "offset-out-of-range", f"the first offset is {offsets[0]}, not 0")
        for index, (last, offset) in enumerate(pairwise(offsets), 1):
            if offset < last:
                message = f"offset {offset} of name {index} is less than the previous offset, {last}"
                self.fault("metadata", slots[index], "offset-out-of-range", message)
        available = len(dictionary.metadata) - dictionary.bytes_at
        if offsets[-1] > available:
            message = f"the names end at offset {offsets[-1]}, but there are only {available} bytes"
            self.fault("metadata", slots[-1], "offset-out-of-range", message)
        elif offsets[-1] < available:
            message = f"{available - offsets[-1]} bytes follow the names"
            self.fault("metadata", dictionary.bytes_at + offsets[-1], "trailing-bytes", message)
            before += 1
        return len(self.faults) == before

    def value(self, data: bytes, ranks: list[int] | None) -> None:
        """Check the value; keys are compared by the ranks of their names, if these are known."""
        try:
            size = value_size(data, 0, len(data))
        except MalformedVariantError as err:
            self.error("value", err)
            return
        if size < len(data):
            self.fault("value", size, "trailing-bytes", f"{len(data) - size} bytes follow the value")
        pending = [(0, size, 0)]
        while pending:
            at, stop, depth = pending.pop()
            try:
                container = read_container(data, at, stop)
                if container is None:
                    self._scalar(data, at, stop)
                    continue
            except MalformedVariantError as err:
                self.error("value", err)
                continue
            if depth == self.max_depth:
                self.fault("value", at, "depth", f"containers are nested deeper than {self.max_depth}")
                continue
            if container.is_object and ranks is not None:
                self._keys(data, container, ranks)
            pending.extend((start, end, depth + 1) for start, end in self._children(data, container))

    def _scalar(self, data: bytes, at: int, stop: int) -> None:
        kind, raw = read_scalar(data, at, stop)
        if kind in DECIMAL_TYPES:
            precision = TYPES[kind].precision
            if precision is not None and abs(raw[0]) >= 10**precision:
                self.fault("value", at + 2, "bad-decimal", f"a {kind} of {raw[0]} has more than {precision} digits")

    def _keys(self, data: bytes, container: Container, ranks: list[int]) -> None:
        seen: set[int] = set()
        last = -1
        for index, field_id in enumerate(container.ids(data)):
            slot = container.ids_at + index * container.id_size
            if field_id >= len(ranks):
                message = f"field id {field_id} is outside the dictionary of {len(ranks)} names"
                self.fault("value", slot, "id-out-of-range", message)
                continue
            rank = ranks[field_id]
            if rank in seen:
                self.fault("value", slot, "duplicate-key", f"field {index} has the same key as an earlier field")
            elif rank < last:
                message = f"the key of field {index} sorts before the key of an earlier field"
                self.fault("value", slot, "unsorted-keys", message)
            seen.add(rank)
            last = max(last, rank)

    def _children(self, data: bytes, container: Container) -> list[tuple[int, int]]:
        """Return the byte ranges of the children that can be checked; the ranges do not overlap."""
        ranges: list[tuple[int, int]] = []
        is_complete = True
        for index in range(container.size):
            try:
                start = container.value_at(data, index)
                ranges.append((start, start + value_size(data, start, container.stop)))
            except MalformedVariantError as err:
                self.error("value", err)
                is_complete = False
        disjoint: list[tuple[int, int]] = []
        free_from = container.values_at
        for start, end in sorted(ranges):
            if start < free_from:
                self.fault("value", start, "overlap", "a value starts inside the value before it")
                is_complete = False
                continue
            if start > free_from and is_complete:
                self.fault("value", free_from, "unused-bytes", f"{start - free_from} bytes belong to no value")
            free_from = end
            disjoint.append((start, end))
        if is_complete and free_from < container.stop:
            self.fault("value", free_from, "unused-bytes", f"{container.stop - free_from} bytes belong to no value")
        return disjoint
