"""Compression of pages: codecs of pyarrow, and zstd with windows as wide as pages.

Owns the names and numbers of codecs, and the zstd contexts of every thread. Leaves the choice of levels to the writer.
Spec: ``Compression.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib.util import find_spec
from threading import local
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.errors import VariantFileError

# The bytes of a page, and the function that compresses them.
PageBytes: TypeAlias = "bytes | pa.Buffer | npt.NDArray[np.uint8]"
Codec: TypeAlias = Callable[[PageBytes], "bytes | pa.Buffer"]
# ``CompressionCodec`` of ``parquet.thrift``, and pyarrow's name.
_CODECS = {
    "none": (0, None),
    "uncompressed": (0, None),
    "snappy": (1, "snappy"),
    "gzip": (2, "gzip"),
    "brotli": (4, "brotli"),
    "zstd": (6, "zstd"),
    "lz4": (7, "lz4_raw"),
    "lz4_raw": (7, "lz4_raw"),
}


def codec_number(name: str) -> int:
    """Return the number of a codec in files. Raises `VariantFileError` for an unknown codec."""
    try:
        return _CODECS[name.lower()][0]
    except KeyError:
        names = ", ".join(sorted(_CODECS))
        raise VariantFileError(f"unknown compression codec {name!r}: use one of {names}", reason="bad-option") from None


def codec_name(number: int) -> str:
    """Return pyarrow's name of a codec number, or ``"none"``. Raises `ValueError` for an unknown number."""
    for codec, name in _CODECS.values():
        if codec == number:
            return name or "none"
    raise ValueError(f"no codec has the number {number}")


# zstd's fast levels have windows of 512 KiB to 2 MiB, smaller than some pages: larger data gets a wide window.
_NARROW_BYTES, _WINDOW_LOG = 512 << 10, 23
_LEVELS = range(1, 23)


class _Contexts(local):
    """The zstd contexts of a thread, by level and whether the window is wide."""

    def __init__(self) -> None:
        self.by_level: dict[tuple[int, bool], Any] = {}


_contexts = _Contexts()


def compressor(name: str, level: int | None) -> Codec | None:
    """Return a function that compresses pages in any thread; None for no compression."""
    number, codec = codec_number(name), _CODECS[name.lower()][1]
    if number == 0:
        return None
    if codec == "zstd" and level is not None and level in _LEVELS and has_zstandard():
        return partial(_wide_zstd, level)
    # pyarrow's codecs have state and threads share this function, so each page gets its own codec.
    return lambda data: pa.Codec(codec, level).compress(data)


@cache
def has_zstandard() -> bool:
    """Return whether the package zstandard is installed."""
    return find_spec("zstandard") is not None


def _wide_zstd(level: int, data: PageBytes) -> bytes:
    key = level, len(data) > _NARROW_BYTES
    context = _contexts.by_level.get(key)
    if context is None:
        context = _contexts.by_level[key] = _new_context(*key)
    return bytes(context.compress(data))


def _new_context(level: int, is_wide: bool) -> Any:
    from zstandard import ZstdCompressionParameters, ZstdCompressor

    if not is_wide:
        return ZstdCompressor(level)
    window = max(_WINDOW_LOG, ZstdCompressionParameters.from_level(level).window_log)
    return ZstdCompressor(compression_params=ZstdCompressionParameters.from_level(level, window_log=window))
