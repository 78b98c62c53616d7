"""Sampling of inputs: a line is in the sample if its first byte is in a chosen block of the text of the file.

The choice depends on the position in the file only, so that the sample is the same for any splits and chunks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.errors import VariantError
from parquet_variant.ingestion.formats.layout import TextLayout
from parquet_variant.ingestion.sources.chunks import open_chunks, read_ranges
from parquet_variant.ingestion.sources.splits import Split, is_splittable
from parquet_variant.support.choices import InputFormat

# Small enough for hundreds of places in the 8 MiB that are sampled of a file, large enough for a few lines per block.
BLOCK_BYTES = 32 << 10
# Bytes of text that are compressed to estimate the size of files.
_COMPRESSED_BYTES = 1 << 20


def in_sample(offsets: npt.NDArray[Any], share: float) -> npt.NDArray[np.bool_]:
    """Return for each line that begins at an offset whether a sample of the share contains it.

    The line at offset 0 is always in the sample.
    """
    mixed = (offsets // BLOCK_BYTES).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> np.uint64(11)).astype(np.float64) < share * 2.0**53


def compressed_share(split: Split, format: InputFormat | TextLayout) -> float:
    """Return the size of the first text of a split after compression, as a share of it; 0 if it cannot be read."""
    try:
        chunk = next(iter(open_chunks(split.file, split.byte_range, _COMPRESSED_BYTES, format)), None)
    except (VariantError, OSError):
        return 0.0  # The pass that reads the whole split reports the error.
    if chunk is None:
        return 0.0
    text = bytes(chunk.data[:_COMPRESSED_BYTES])
    chunk.release()
    return len(pa.Codec("zstd", compression_level=1).compress(text)) / max(len(text), 1)


def sampled_text(split: Split, share: float, format: InputFormat | TextLayout) -> bytes | None:
    """Return the sampled lines of a split; None for a file that can only be read as a whole.

    `split`: part of a file.
    `share`: share of the lines, above 0 and up to 1.
    `format`: as for `open_chunks`.
    Raises `VariantFileError` as `open_chunks` does.
    """
    if not is_splittable(split.file, format):
        return None
    start, end = split.byte_range or (0, split.size)
    blocks = np.arange(start // BLOCK_BYTES, -(-end // BLOCK_BYTES), dtype=np.int64) * BLOCK_BYTES
    sampled_blocks = blocks[in_sample(blocks, share)].tolist()
    ranges = [(max(start, block), min(end, block + BLOCK_BYTES)) for block in sampled_blocks]
    return read_ranges(split.file, ranges)
