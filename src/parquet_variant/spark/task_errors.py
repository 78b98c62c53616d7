"""Errors on their way from a Spark task to the driver, whole: Spark itself hands over only their text.

Owns the envelope. Leaves what is an error to the code that runs in the task.
"""

from __future__ import annotations

import base64
import pickle
import re
from collections.abc import Iterator
from contextlib import contextmanager

from parquet_variant.errors import VariantError

__all__ = ["TaskError", "from_spark_errors", "to_spark_errors"]

_ENVELOPE = re.compile(r"variant-error:([A-Za-z0-9+/=]+)")


class TaskError(RuntimeError):
    """What a task raises: the message for people, then the whole error for the driver."""

    def __init__(self, error: VariantError) -> None:
        super().__init__(f"{error} [variant-error:{base64.b64encode(pickle.dumps(error)).decode()}]")

    def __reduce__(self) -> tuple[object, ...]:
        return (RuntimeError, self.args)


@contextmanager
def to_spark_errors() -> Iterator[None]:
    """In a task: put a `VariantError` into an envelope."""
    try:
        yield
    except VariantError as error:
        raise TaskError(error) from None


@contextmanager
def from_spark_errors() -> Iterator[None]:
    """On the driver: raise the `VariantError` that a task put into Spark's exception, if there is one."""
    try:
        yield
    except Exception as error:
        if (found := _ENVELOPE.search(str(error))) is None:
            raise
        original = pickle.loads(base64.b64decode(found[1]))
        raise original from None
