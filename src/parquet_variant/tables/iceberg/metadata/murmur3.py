"""The hash of Iceberg's bucket transform: 32-bit Murmur3, x86 variant, seed 0 (specification, Appendix B).

Owns the hash of many byte strings at once, with NumPy. Which bytes a value has is decided in `transforms`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.int32]
_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
_M, _N = np.uint32(5), np.uint32(0xE6546B64)
_F1, _F2 = np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)


def hash_rows(rows: npt.NDArray[np.uint8]) -> Hashes:
    """Return the hash of each row of a matrix of bytes.

    >>> hash_rows(np.frombuffer(b"iceberg", np.uint8).reshape(1, -1)).tolist()
    [1210000089]
    """
    count, length = rows.shape
    state = np.zeros(count, dtype=np.uint32)
    words = length // 4
    if words:
        blocks = np.ascontiguousarray(rows[:, : 4 * words]).view("<u4")
        for number in range(words):
            state ^= _mix_word(blocks[:, number])
            state = _rotate_left(state, 13) * _M + _N
    tail = rows[:, 4 * words :]
    if tail.shape[1]:
        word = np.zeros(count, dtype=np.uint32)
        for number in range(tail.shape[1]):
            word |= tail[:, number].astype(np.uint32) << np.uint32(8 * number)
        state ^= _mix_word(word)
    state ^= np.uint32(length)
    state ^= state >> np.uint32(16)
    state *= _F1
    state ^= state >> np.uint32(13)
    state *= _F2
    state ^= state >> np.uint32(16)
    return state.view(np.int32)


def hash_spans(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]) -> Hashes:
    """Return the hash of each byte string of a buffer; ``offsets`` has one entry more than there are strings."""
    lengths = np.diff(offsets)
    hashes = np.empty(len(lengths), dtype=np.int32)
    for length in np.unique(lengths).tolist():
        members = np.flatnonzero(lengths == length)
        positions = offsets[:-1][members, None] + np.arange(length)
        hashes[members] = hash_rows(data[positions].reshape(len(members), length))
    return hashes


def hash_longs(values: npt.NDArray[np.int64]) -> Hashes:
    """Return the hash of each number as eight little-endian bytes.

    >>> hash_longs(np.array([34])).tolist()
    [2017239379]
    """
    return hash_rows(np.ascontiguousarray(values, dtype="<i8").view(np.uint8).reshape(-1, 8))


def _mix_word(word: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    return _rotate_left(word * _C1, 15) * _C2


def _rotate_left(word: npt.NDArray[np.uint32], bits: int) -> npt.NDArray[np.uint32]:
    return (word << np.uint32(bits)) | (word >> np.uint32(32 - bits))
