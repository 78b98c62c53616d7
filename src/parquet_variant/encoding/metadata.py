"""The metadata: a dictionary of key names (spec: "Metadata encoding").

Owns reading names by id without decoding the other names, finding the end of the metadata, and writing a dictionary.
Leaves the complete check to `validate`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise

from parquet_variant.encoding.header import read_uint, uint_width
from parquet_variant.errors import MalformedVariantError

VERSION = 1
SORTED_BIT = 0x10
# The metadata of a value without keys: sorted, offsets of one byte, no names, the single offset 0.
EMPTY_METADATA = b"\x11\x00\x00"
# The value that is Variant null.
NULL_VALUE = b"\x00"


class Dictionary:
    """The names of one metadata, decoded on first use; bytes after its end are ignored.

    Raises `MalformedVariantError` for a version other than 1, or if the list of offsets is cut off.
    """

    __slots__ = ("_decoded", "_ids", "_names", "bytes_at", "is_sorted", "metadata", "offset_size", "offsets_at", "size")

    def __init__(self, metadata: bytes) -> None:
        stop = len(metadata)
        header = read_uint(metadata, 0, 1, stop)
        check_version(metadata)
        self.metadata = metadata
        self.is_sorted = bool(header & SORTED_BIT)
        self.offset_size = (header >> 6) + 1
        self.size = read_uint(metadata, 1, self.offset_size, stop)
        self.offsets_at = 1 + self.offset_size
        self.bytes_at = self.offsets_at + (self.size + 1) * self.offset_size
        # Early Iceberg writers left out the offset of an empty dictionary; it is readable nevertheless.
        if self.size and self.bytes_at > stop:
            message = f"the dictionary has {self.size} names, but its offsets are truncated"
            raise MalformedVariantError(message, reason="truncated", offset=self.offsets_at)
        self._ids: dict[bytes, list[int]] = {}
        self._names: dict[int, str] = {}
        self._decoded = 0

    def __len__(self) -> int:
        return self.size

    def offset(self, index: int) -> int:
        """Return offset ``index``, 0 to ``len``."""
        at = self.offsets_at + index * self.offset_size
        return read_uint(self.metadata, at, self.offset_size, len(self.metadata))

    def name_bytes(self, field_id: int) -> bytes:
        """Return the UTF-8 bytes of a name. Raises `MalformedVariantError` for ids and offsets out of range."""
        if field_id >= self.size:
            raise MalformedVariantError(
                f"field id {field_id} is outside the dictionary of {self.size} names", reason="id-out-of-range"
            )
        start, end = self.offset(field_id), self.offset(field_id + 1)
        if start > end or self.bytes_at + end > len(self.metadata):
            raise MalformedVariantError(
                f"name {field_id} spans bytes {start} to {end} of {len(self.metadata) - self.bytes_at} bytes of names",
                reason="offset-out-of-range",
                offset=self.offsets_at + field_id * self.offset_size,
            )
        return self.metadata[self.bytes_at + start : self.bytes_at + end]

    def ids(self, name: bytes) -> list[int]:
        """Return the ids of a name: several if the dictionary lists it twice, as DuckDB's dictionaries do."""
        if name in self._ids:
            return self._ids[name]
        offsets = [self.offset(index) for index in range(self.size + 1)] if self.size else []
        ids = [
            field_id
            for field_id, (start, end) in enumerate(pairwise(offsets))
            # Comparing lengths first avoids copying a name that may be long.
            if end - start == len(name) and self.metadata[self.bytes_at + start : self.bytes_at + end] == name
        ]
        return self._ids.setdefault(name, ids) if ids else ids

    def name(self, field_id: int) -> str:
        """Return the name of a field id. Raises `MalformedVariantError` if it is invalid or not UTF-8."""
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
            if name is decoded:  # only one of several threads counts it
                self._decoded += len(raw)
            # Names that share bytes could make a small dictionary fill memory.
            if self._decoded > len(self.metadata):
                raise MalformedVariantError(
                    "names of the dictionary overlap: the offsets go backwards", reason="offset-out-of-range"
                )
        return name


# Rows share their metadata, so that names are decoded once and not once per row.
dictionary_of = lru_cache(maxsize=64)(Dictionary)


def check_version(metadata: bytes | None) -> None:
    """Raise `MalformedVariantError` for a version other than 1; metadata without bytes has none."""
    if metadata and (version := metadata[0] & 0x0F) != VERSION:
        message = f"unknown metadata version {version}: only version {VERSION} is defined"
        raise MalformedVariantError(message, reason="bad-version", offset=0)


def decode_metadata(metadata: bytes) -> list[str]:
    """Return all names of a metadata in the order of their ids.

    >>> decode_metadata(bytes.fromhex("1102000102" "6162"))
    ['a', 'b']
    """
    dictionary = dictionary_of(metadata)
    return [dictionary.name(field_id) for field_id in range(len(dictionary))]


def metadata_length(data: bytes) -> int:
    """Return the number of bytes of the metadata at the start of ``data`` (``metadata ‖ value``).

    Raises `MalformedVariantError` if the metadata is cut off.
    """
    dictionary = Dictionary(data)
    end = dictionary.bytes_at + dictionary.offset(dictionary.size)
    if end > len(data):
        message = f"the metadata ends at byte {end}, but there are only {len(data)} bytes"
        raise MalformedVariantError(message, reason="truncated", offset=len(data))
    return end


def encode_metadata(names: Iterable[str]) -> bytes:
    """Return a dictionary of the distinct names, sorted by their UTF-8 bytes, with the narrowest offsets."""
    return _dictionary_bytes(sorted({name.encode() for name in names}), SORTED_BIT)


def extend_metadata(metadata: bytes, names: Iterable[str]) -> bytes:
    """Return the metadata with the missing names appended, so that existing ids stay valid.

    >>> decode_metadata(extend_metadata(encode_metadata(["b", "c"]), ["a", "c"]))
    ['b', 'c', 'a']
    """
    existing = decode_metadata(metadata)
    missing = dict.fromkeys(names)
    for name in existing:
        missing.pop(name, None)
    if not missing:
        return metadata
    return _dictionary_bytes([name.encode() for name in (*existing, *missing)], 0)


def _dictionary_bytes(encoded: Sequence[bytes], flags: int) -> bytes:
    offsets = [0, *accumulate(map(len, encoded))]
    width = uint_width(max(len(encoded), offsets[-1]))
    header = bytes([(width - 1) << 6 | flags | VERSION])
    return b"".join([header, *(number.to_bytes(width, "little") for number in (len(encoded), *offsets)), *encoded])
