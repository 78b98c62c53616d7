"""Compression of pages: the codecs' names and numbers, from pyarrow, and zstd with windows as wide as pages.

Owns which codec a file's option names, and zstd's contexts, kept for each thread. Leaves levels to who chooses them.
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

# The bytes of a page, and what makes fewer of them.
Plain: TypeAlias = "bytes | pa.Buffer | npt.NDArray[np.uint8]"
Codec: TypeAlias = Callable[[Plain], "bytes | pa.Buffer"]
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
    """How files name a codec; `VariantFileError` if Parquet has no such codec."""
    try:
        return _CODECS[name.lower()][0]
    except KeyError:
        known = ", ".join(sorted(_CODECS))
        raise VariantFileError(f"Parquet has no codec {name!r}: use one of {known}", reason="bad-option") from None


def codec_name(number: int) -> str:
    """The name of a codec that files name so, as pyarrow has it, ``"none"`` for none; `ValueError` for others."""
    for known, name in _CODECS.values():
        if known == number:
            return name or "none"
    raise ValueError(f"no codec has the number {number}")


# zstd's quick levels look back 512 KiB to 2 MiB, less than some pages have: from the least of it on so far is looked.
_NARROW_BYTES, _WINDOW_LOG = 512 << 10, 23
_LEVELS = range(1, 23)


class _Contexts(local):
    """The contexts of a thread, by level and whether their windows are wide."""

    def __init__(self) -> None:
        self.known: dict[tuple[int, bool], Any] = {}


_contexts = _Contexts()


def compressor(name: str, level: int | None) -> Codec | None:
    """What compresses a page, in any thread; None for no codec."""
    number, own = codec_number(name), _CODECS[name.lower()][1]
    if number == 0:
        return None
    if own == "zstd" and level is not None and level in _LEVELS and has_zstandard():
        return partial(_wide_zstd, level)
    # A codec of pyarrow has a state: one for each page, since threads share what is returned here.
    return lambda data: pa.Codec(own, level).compress(data)


@cache
def has_zstandard() -> bool:
    """Whether the package zstandard is installed."""
    return find_spec("zstandard") is not None


def _wide_zstd(level: int, data: Plain) -> bytes:
    key = level, len(data) > _NARROW_BYTES
    context = _contexts.known.get(key)
    if context is None:
        context = _contexts.known[key] = _new_context(*key)
    return bytes(context.compress(data))


def _new_context(level: int, is_wide: bool) -> Any:
    from zstandard import ZstdCompressionParameters, ZstdCompressor

    if not is_wide:
        return ZstdCompressor(level)
    window = max(_WINDOW_LOG, ZstdCompressionParameters.from_level(level).window_log)
    return ZstdCompressor(compression_params=ZstdCompressionParameters.from_level(level, window_log=window))
