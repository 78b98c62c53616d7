"""Compression of pages: the codecs' names and numbers, from pyarrow.

Owns which codec a file's option names. Leaves levels to who chooses them. Spec: ``Compression.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from parquet_variant.errors import VariantFileError

__all__ = ["codec_number", "compressor"]

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
    """How files name a codec.

    Raises
    ------
    VariantFileError
        If Parquet has no such codec.
    """
    try:
        return _CODECS[name.lower()][0]
    except KeyError:
        known = ", ".join(sorted(_CODECS))
        raise VariantFileError(f"Parquet has no codec {name!r}: use one of {known}", reason="bad-option") from None


def compressor(name: str, level: int | None) -> Callable[[Any], pa.Buffer] | None:
    """What compresses a page; None for no codec."""
    number, own = codec_number(name), _CODECS[name.lower()][1]
    if number == 0:
        return None
    # A codec of pyarrow has a state: one for each page, since threads share what is returned here.
    return lambda data: pa.Codec(own, level).compress(data)
