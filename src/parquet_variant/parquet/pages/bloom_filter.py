"""Bloom filters as files hold them: of as many bits as the distinct values need.

Owns size and bytes of a filter. Leaves hashing to `bloom_hash` and reading to `parquet.format.bloom`. Spec:
``BloomFilter.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from parquet_variant.kernels.memory import address_of
from parquet_variant.kernels.pages.bloom_hash import hash_byte_arrays, hash_values, set_blocks
from parquet_variant.parquet.format.thrift import I32, STRUCT, encode_struct
from parquet_variant.parquet.pages.leaf_values import Values

Hashes = npt.NDArray[np.int64]
_BLOCK, _WORDS = 32, 8
_MOST_BYTES = 1 << 20
# Share of values that are not there and pass all the same.
_FALSE = 0.01
# The one algorithm, hash and compression that are defined.
_ONLY = encode_struct((1, STRUCT, b"\x00"))


def hashes_of(values: Values) -> Hashes:
    """The hash of each value."""
    hashes = np.empty(values.count, np.int64)
    if values.lengths is None:
        hash_values(values.address, values.width, hashes)
    else:
        hash_byte_arrays(values.address, values.lengths, hashes)
    return hashes


def bloom_filter(hashes: Sequence[Hashes]) -> bytes:
    """The header and the bits of a filter of some values, each of which may be there more than once."""
    distinct = np.unique(np.concatenate([np.zeros(0, np.int64), *hashes]))
    bits = -_WORDS * len(distinct) / math.log(1 - _FALSE ** (1 / _WORDS))
    size = min(max(_BLOCK, 1 << math.ceil(math.log2(max(bits / 8, 1)))), _MOST_BYTES)
    bitset = np.zeros(size, np.uint8)
    set_blocks(distinct, size // _BLOCK, address_of(bitset))
    header = encode_struct((1, I32, size), (2, STRUCT, _ONLY), (3, STRUCT, _ONLY), (4, STRUCT, _ONLY))
    return header + bitset.tobytes()
