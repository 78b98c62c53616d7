"""zstd with windows as wide as pages: any reader gets the bytes back, from any thread, with or without the library."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from parquet_variant.files.parquet.pages import encodings
from parquet_variant.files.parquet.pages.encodings import compressor

SIZES = (0, 1, 1000, 512 << 10, (512 << 10) + 1, 5 << 20)


def text(size: int) -> np.ndarray:
    """Bytes that repeat, but not within 3 MiB."""
    once = np.random.default_rng(7).integers(0, 256, 3 << 20, np.uint8)
    return np.resize(once, size)


@pytest.mark.parametrize("level", [1, 2, 5, 9, 22])
@pytest.mark.parametrize("size", SIZES)
def test_arrow_reads_what_zstandard_writes(level: int, size: int) -> None:
    if level > 9 and size > 1 << 20:
        size = (1 << 20) + 5
    compress = compressor("zstd", level)
    assert compress is not None
    plain = text(size)
    assert pa.Codec("zstd").decompress(compress(plain), size).to_pybytes() == plain.tobytes()


def test_a_page_is_looked_through_as_far_as_it_goes() -> None:
    pytest.importorskip("zstandard")
    compress = compressor("zstd", 3)
    assert compress is not None
    assert len(compress(text(6 << 20))) < 0.6 * (6 << 20)


def test_threads_do_not_share_a_context() -> None:
    compress = compressor("zstd", 3)
    assert compress is not None
    pages = [text(1000 * n) for n in range(200)]
    with ThreadPoolExecutor(4) as threads:
        packed = list(threads.map(compress, pages))
    for plain, page in zip(pages, packed, strict=True):
        assert pa.Codec("zstd").decompress(page, len(plain)).to_pybytes() == plain.tobytes()


@pytest.mark.parametrize("level", [None, -3])
def test_other_levels_are_arrows(level: int | None) -> None:
    compress = compressor("ZSTD", level)
    assert compress is not None
    assert bytes(compress(b"abc" * 99)) == pa.Codec("zstd", level).compress(b"abc" * 99).to_pybytes()


def test_without_the_library_arrow_compresses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodings, "has_zstandard", lambda: False)
    compress = compressor("zstd", 3)
    assert compress is not None
    assert isinstance(compress(b"abc" * 99), pa.Buffer)
