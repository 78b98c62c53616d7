"""What the system says when it cannot write, as an error of ours that names the place.

Owns the wording. Leaves where it may happen to those who write.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from parquet_variant.errors import VariantFileError


def cannot_write(place: str | os.PathLike[str], why: object) -> VariantFileError:
    """The error of a place that cannot be written: the disk is full, or it is not allowed."""
    return VariantFileError(
        f"{os.fspath(place)} cannot be written: {why}; free space, or permit writing there, and run it again",
        reason="cannot-write",
        file=os.fspath(place),
    )


@contextmanager
def write_errors(place: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an error of the system into one of ours; those of connections are not about the place."""
    try:
        yield
    except ConnectionError:
        raise
    except OSError as error:
        raise cannot_write(place, error) from error
