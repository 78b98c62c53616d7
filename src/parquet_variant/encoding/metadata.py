"""The metadata: a dictionary of the key names (spec: "Metadata encoding").

Owns reading names by id without decoding the others, finding the end of the metadata, and writing a dictionary.
Leaves the check of all of it to `validate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise

from parquet_variant.encoding.header import read_uint, uint_width
from parquet_variant.errors import MalformedVariantError

VERSION = 1
SORTED_BIT = 0x10
# Sorted, offsets of one byte, no names, the one offset 0: what every value without keys carries.
EMPTY_METADATA = b"\x11\x00\x00"


class Dictionary:
    """The names of one metadata, decoded one by one as they are asked for; bytes after its end are ignored.

    Raises `MalformedVariantError` for a version other than 1, or if the list of offsets is cut off.
    """

    __slots__ = (
        "_decoded", "_has_repeats", "_names", "bytes_at", "is_sorted", "metadata", "offset_size", "offsets_at", "size"
    )  # fmt: skip

    def __init__(self, metadata: bytes) -> None:
        stop = len(metadata)
        header = read_uint(metadata, 0, 1, stop)
        if header & 0x0F != VERSION:
            raise MalformedVariantError(
                f"metadata version {header & 0x0F} is unknown: only version {VERSION} is defined",
                reason="bad-version",
                offset=0,
            )
        self.metadata = metadata
        self.is_sorted = bool(header & SORTED_BIT)
        self.offset_size = (header >> 6) + 1
        self.size = read_uint(metadata, 1, self.offset_size, stop)
        self.offsets_at = 1 + self.offset_size
        self.bytes_at = self.offsets_at + (self.size + 1) * self.offset_size
        # An empty dictionary without its one offset, as early Iceberg wrote it, is readable all the same.
        if self.size and self.bytes_at > stop:
            raise MalformedVariantError(
                f"the dictionary lists {self.size} names, but its offsets are cut off",
                reason="truncated",
                offset=self.offsets_at,
            )
        self._has_repeats: bool | None = None
        self._names: dict[int, str] = {}
        self._decoded = 0

    def __len__(self) -> int:
        return self.size

    def offset(self, index: int) -> int:
        """Offset ``index`` of the list, 0 to ``len``."""
        at = self.offsets_at + index * self.offset_size
        return read_uint(self.metadata, at, self.offset_size, len(self.metadata))

    def name_bytes(self, field_id: int) -> bytes:
        """The UTF-8 bytes of a name, unchecked; MalformedVariantError for ids and offsets out of range."""
        if field_id >= self.size:
            raise MalformedVariantError(
                f"field id {field_id} is outside the dictionary of {self.size} names", reason="id-out-of-range"
            )
        start, end = self.offset(field_id), self.offset(field_id + 1)
        if start > end or self.bytes_at + end > len(self.metadata):
            raise MalformedVariantError(
                f"name {field_id} would lie at {start} to {end} of {len(self.metadata) - self.bytes_at} metadata bytes",
                reason="offset-out-of-range",
                offset=self.offsets_at + field_id * self.offset_size,
            )
        return self.metadata[self.bytes_at + start : self.bytes_at + end]

    @property
    def has_repeats(self) -> bool:
        """Whether the dictionary lists a name twice, as DuckDB's dictionaries do."""
        if self._has_repeats is None:
            offsets = [self.offset(index) for index in range(self.size + 1)] if self.size else []
            names = {self.metadata[self.bytes_at + start : self.bytes_at + end] for start, end in pairwise(offsets)}
            self._has_repeats = len(names) < self.size
        return self._has_repeats

    def is_name(self, field_id: int, name: bytes) -> bool:
        """Whether the name of a field id is ``name``; not, for one that has none."""
        if field_id >= self.size:
            return False
        start, end = self.offset(field_id), self.offset(field_id + 1)
        if end - start != len(name):
            return False  # told by the lengths, without a copy of a name that may be long
        return self.metadata[self.bytes_at + start : self.bytes_at + end] == name

    def name(self, field_id: int) -> str:
        """The name of a field id; MalformedVariantError if it has none, or one that is not UTF-8."""
        name = self._names.get(field_id)
        if name is None:
            raw = self.name_bytes(field_id)
            try:
                decoded = raw.decode()
            except UnicodeDecodeError as err:
                raise MalformedVariantError(
                    f"name {field_id} of the dictionary is not UTF-8: {err.reason}",
                    reason="bad-utf8",
                    offset=self.bytes_at + self.offset(field_id) + err.start,
                ) from None
            name = self._names.setdefault(field_id, decoded)
            if name is decoded:  # of several threads one counts it
                self._decoded += len(raw)
            # Names that share bytes could make a small dictionary fill the memory.
            if self._decoded > len(self.metadata):
                raise MalformedVariantError(
                    "names of the dictionary overlap: the offsets go backwards", reason="offset-out-of-range"
                )
        return name


# Rows share their metadata: its names are decoded once, not once a row.
dictionary_of = lru_cache(maxsize=64)(Dictionary)


def decode_metadata(metadata: bytes) -> list[str]:
    """All names of a metadata, in the order of their ids.

    Raises `MalformedVariantError` if the metadata is not well-formed.

    >>> decode_metadata(bytes.fromhex("1102000102" "6162"))
    ['a', 'b']
    """
    dictionary = dictionary_of(metadata)
    return [dictionary.name(field_id) for field_id in range(len(dictionary))]


def metadata_length(data: bytes) -> int:
    """The number of bytes of the metadata that ``data`` starts with (``metadata ‖ value``).

    Raises `MalformedVariantError` if the metadata is cut off.

    >>> metadata_length(bytes.fromhex("110000" "0c01"))
    3
    """
    dictionary = Dictionary(data)
    end = dictionary.bytes_at + dictionary.offset(dictionary.size)
    if end > len(data):
        raise MalformedVariantError(
            f"the metadata ends at byte {end}, but only {len(data)} bytes are there",
            reason="truncated",
            offset=len(data),
        )
    return end


def encode_metadata(names: Iterable[str]) -> bytes:
    """A dictionary of the names, sorted by their UTF-8 bytes, each once, with the narrowest offsets.

    >>> encode_metadata(["b", "a", "b"]).hex()
    '11020001026162'
    """
    return _dictionary_bytes(sorted({name.encode() for name in names}), SORTED_BIT)


def extend_metadata(metadata: bytes, names: Iterable[str]) -> bytes:
    """The metadata with those of the names that it lacks at its end: what refers to it by id stays right.

    Raises `MalformedVariantError` if the metadata is not well-formed.

    >>> decode_metadata(extend_metadata(encode_metadata(["b", "c"]), ["a", "c"]))
    ['b', 'c', 'a']
    """
    had = decode_metadata(metadata)
    lacking = dict.fromkeys(names)
    for name in had:
        lacking.pop(name, None)
    if not lacking:
        return metadata
    return _dictionary_bytes([name.encode() for name in (*had, *lacking)], 0)


def _dictionary_bytes(encoded: Sequence[bytes], flags: int) -> bytes:
    offsets = [0, *accumulate(map(len, encoded))]
    width = uint_width(max(len(encoded), offsets[-1]))
    header = bytes([(width - 1) << 6 | flags | VERSION])
    return b"".join([header, *(number.to_bytes(width, "little") for number in (len(encoded), *offsets)), *encoded])
