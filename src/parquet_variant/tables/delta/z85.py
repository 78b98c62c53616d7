"""Z85: four bytes as five printable characters (https://rfc.zeromq.org/spec/32/), Delta's encoding of binary data.

Owns the encoding of one value and of an Arrow column. Leaves the meaning of the bytes to `variant_stats` and
`deletion_vector`.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import binary_parts
from parquet_variant.errors import DeltaError
from parquet_variant.kernels.arrow_buffers import binary_array
from parquet_variant.ops.columns.arguments import or_none

_ALPHABET = np.frombuffer(
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#", dtype=np.uint8
)
_BAD = 255
_DIGIT = np.full(256, _BAD, dtype=np.uint8)
_DIGIT[_ALPHABET] = np.arange(85, dtype=np.uint8)
_POWERS = np.array([85**4, 85**3, 85**2, 85, 1], dtype=np.uint64)
_MAX_WORD = 0xFFFFFFFF


def encode(data: bytes) -> str:
    """Return bytes, padded with zero bytes to a multiple of four, as Z85 text.

    >>> encode(bytes.fromhex("864fd26fb559f75b"))
    'HelloWorld'
    >>> encode(b"a") == encode(b"a" + bytes(3))
    True
    """
    words = np.frombuffer(data + bytes(-len(data) % 4), dtype=">u4").astype(np.uint64)
    digits = words[:, None] // _POWERS % np.uint64(85)
    return _ALPHABET[digits.astype(np.intp)].tobytes().decode("ascii")


def decode(text: str) -> bytes:
    r"""Return the bytes of a Z85 text; a last group of two to four characters is one to three bytes.

    The two examples of Delta's RFC have such an unpadded last group (53 and 49 characters), the standard does not.
    Rust's z85, which delta-kernel uses, marks each byte that its last group lacks by a ``#`` before the group.

    Raises `DeltaError`: reason ``"bad-z85"`` for a character outside the alphabet, a group above 2^32 - 1, or a last
    group of one character.

    >>> decode("HelloWorld").hex()
    '864fd26fb559f75b'
    >>> decode("HelloWo")
    b'\x86O\xd2o\xb5'
    """
    tail = len(text) % 5
    if tail == 1:
        problem = f"Z85 text of {len(text)} characters ends in a group of one character: it is cut off"
        raise DeltaError(problem, reason="bad-z85")
    try:
        raw = text.encode("ascii")
    except UnicodeEncodeError as error:
        raise DeltaError(f"Z85 text contains the character {text[error.start]!r}", reason="bad-z85") from None
    if not tail and raw[-5:-4] == b"#":
        return _groups(np.frombuffer(raw[:-5], dtype=np.uint8)) + _marked_tail(raw[-5:])
    # Filled up with the highest digit, the group keeps the bytes that its existing digits encode.
    data = _groups(np.frombuffer(raw + b"#" * (-len(raw) % 5), dtype=np.uint8))
    return data[: len(data) - (5 - tail)] if tail else data


def _marked_tail(group: bytes) -> bytes:
    digits = group.lstrip(b"#")
    missing = len(group) - len(digits)
    word = _groups(np.frombuffer(digits.rjust(5, b"0"), dtype=np.uint8))
    if missing > 3 or any(word[:missing]):
        raise DeltaError("Z85 text contains a group above 2^32 - 1", reason="bad-z85")
    return word[missing:]


def decode_array(encoded: pa.Array) -> pa.Array:
    r"""Return a column of Z85 strings as ``large_binary``; strings that `decode` refuses become null.

    >>> decode_array(pa.array(["HelloWorld", None, "?"])).to_pylist()
    [b'\x86O\xd2o\xb5Y\xf7[', None, None]
    """
    parts = binary_parts(encoded)
    lengths = np.diff(parts.offsets)
    with suppress(DeltaError):
        if not (lengths % 5).any():
            characters = np.frombuffer(parts.owner.buffers()[2] or b"", np.uint8)
            data = _groups(characters[parts.offsets[0] : parts.offsets[-1]])
            valid = parts.valid if len(parts.valid) else None
            return binary_array(lengths // 5 * 4, np.frombuffer(data, np.uint8), valid, pa.large_binary())
    rows = [None if text is None else or_none(partial(decode, text)) for text in encoded.to_pylist()]
    return pa.array(rows, pa.large_binary())


def _groups(characters: npt.NDArray[np.uint8]) -> bytes:
    digits = _DIGIT[characters]
    if (bad := digits == _BAD).any():
        at = int(np.argmax(bad))
        problem = f"Z85 text contains the character {chr(int(characters[at]))!r}"
        raise DeltaError(problem, reason="bad-z85", offset=at)
    words = np.zeros(len(digits) // 5, np.uint64)
    for place in range(5):
        words = words * np.uint64(85) + digits[place::5]
    if words.max(initial=0) > _MAX_WORD:
        problem = "Z85 text contains a group above 2^32 - 1"
        raise DeltaError(problem, reason="bad-z85", offset=int(np.argmax(words > _MAX_WORD)) * 5)
    return words.astype(">u4").tobytes()
