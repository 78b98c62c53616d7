"""Detection of compression codecs by the first bytes of a file, and decompressed streams.

pyarrow decompresses zstd and lz4. gzip and bz2 files consist of members, and pyarrow's streams do not accept all valid
sequences of members (empty bz2 members, gzip members followed by zero padding), so that this module reads the members.
"""

from __future__ import annotations

import bz2
import io
import zlib
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import pyarrow as pa

Codec: TypeAlias = Literal["gzip", "zstd", "bz2", "lz4"]

# The content decides, not the name of the file.
_MAGIC: tuple[tuple[bytes, Codec], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bz2"),
    (b"\x04\x22\x4d\x18", "lz4"),
)
# pzstd writes a skippable frame before the data; the first byte of its magic number is any from 0x50 to 0x5F.
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"
_READ_BYTES = 256 << 10
# The assumed ratio of the text to the stored bytes of a compressed file.
COMPRESSION_RATIO = 10
# The window size for `zlib` that selects the gzip format.
_GZIP_WINDOW_BITS = 16 + zlib.MAX_WBITS


def detect_codec(head: bytes) -> Codec | None:
    r"""Return the codec of a file that starts with `head`, or None for an uncompressed file.

    >>> detect_codec(b"\x1f\x8b\x08\x00"), detect_codec(b'{"a": 1}')
    ('gzip', None)
    """
    if head[1:4] == _ZSTD_SKIPPABLE and head[0] >> 4 == 5:
        return "zstd"
    return next((codec for magic, codec in _MAGIC if head.startswith(magic)), None)


def decompressed(stored: Any, codec: Codec | None) -> Any:
    """Return a stream of the decompressed bytes of `stored`."""
    if codec is None:
        return stored
    if codec == "gzip":
        return io.BufferedReader(_MemberStream(stored, _GzipMember, "zlib", padding=b"\0"))
    if codec == "bz2":
        return io.BufferedReader(_MemberStream(stored, bz2.BZ2Decompressor, "bz2"))
    return pa.CompressedInputStream(stored, codec)


class _GzipMember:
    """A decompressor of one gzip member with the interface of `bz2.BZ2Decompressor`."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(_GZIP_WINDOW_BITS)

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def needs_input(self) -> bool:
        return not self._inflate.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._inflate.decompress(self._inflate.unconsumed_tail + data, max_length)


class _MemberStream(io.RawIOBase):
    """The concatenated text of compressed members, which may be empty or followed by padding."""

    def __init__(self, stored: Any, new_member: Callable[[], Any], name: str, padding: bytes = b"") -> None:
        self._stored, self._new_member, self._name, self._padding = stored, new_member, name, padding
        self._member = new_member()

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        text = b""
        while not text:
            data = b""
            if self._member.eof:
                data = self._next_member()
                if not data:
                    return 0
                self._member = self._new_member()
            elif self._member.needs_input and not (data := self._stored.read(_READ_BYTES)):
                raise OSError(f"the {self._name} stream is truncated")
            try:
                text = self._member.decompress(data, len(room))
            except (OSError, zlib.error) as error:
                raise OSError(f"{self._name}: {error}") from None
        room[: len(text)] = text
        return len(text)

    def _next_member(self) -> bytes:
        """Return the first bytes of the next member, or no bytes at the end of the stream."""
        data = bytes(self._member.unused_data).lstrip(self._padding) if self._padding else self._member.unused_data
        while not data and (block := self._stored.read(_READ_BYTES)):
            data = bytes(block).lstrip(self._padding) if self._padding else bytes(block)
        return bytes(data)
