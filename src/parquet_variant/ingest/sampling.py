"""Which lines a sample has, and how they are read without the others.

Owns the rule: a line is in the sample if its first byte lies in a chosen block of its file's text; the same lines for
any splits and chunks. Leaves reading files to `sources`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from parquet_variant.choices import InputFormat
from parquet_variant.ingest.formats.layout import Layout
from parquet_variant.ingest.sources import is_seekable, read_ranges, split_size
from parquet_variant.ingest.splits import Split

# Small enough for hundreds of places in the 8 MiB that are sampled of a file, large enough for a few lines each.
BLOCK_BYTES = 32 << 10


def in_sample(offsets: npt.NDArray[Any], share: float) -> npt.NDArray[np.bool_]:
    """Whether lines that begin at these offsets are in a sample of some share; a line at offset 0 always is."""
    mixed = (offsets // BLOCK_BYTES).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return (mixed >> np.uint64(11)).astype(np.float64) < share * 2.0**53


def sampled_text(split: Split, share: float, format: InputFormat | Layout) -> bytes | None:
    """The sampled lines of a split, one after the other; None where only all of the file can be read.

    `split`: part of a file.
    `share`: of the lines, above 0 and up to 1.
    `format`: as for `open_chunks`.
    Raises `VariantFileError` as by `open_chunks`.
    """
    if not is_seekable(split.file, format):
        return None
    start, end = split.byte_range or (0, split_size(split))
    blocks = np.arange(start // BLOCK_BYTES, -(-end // BLOCK_BYTES), dtype=np.int64) * BLOCK_BYTES
    chosen = blocks[in_sample(blocks, share)].tolist()
    return read_ranges(split.file, [(max(start, at), min(end, at + BLOCK_BYTES)) for at in chosen])
