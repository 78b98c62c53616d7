"""Limits of the micro-batches of a stream, for all stream readers and all versions of Spark.

Spark 4.1 has no read limits: it asks a stream only for its newest offset. `SUPPORTS_LIMITS` is False there, and
the options ``maxFilesPerTrigger`` and ``maxBytesPerTrigger`` are refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyspark
from pyspark.sql.datasource import DataSourceStreamReader

from parquet_variant.errors import VariantError
from parquet_variant.spark.datasource.options import ReadOptions

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxBytes,
        ReadMaxFiles,
        SupportsTriggerAvailableNow,
    )

    SUPPORTS_LIMITS = True
except ImportError:  # Spark 4.1
    SupportsTriggerAvailableNow = object
    SUPPORTS_LIMITS = False


@dataclass(frozen=True, slots=True)
class BatchLimit:
    """The maximum of files, and of their bytes, in one micro-batch; None for no maximum."""

    max_files: int | None = None
    max_bytes: int | None = None

    @property
    def is_unlimited(self) -> bool:
        """Whether a micro-batch takes all new files."""
        return self.max_files is None and self.max_bytes is None

    def admits(self, files: int, size: int) -> bool:
        """Return whether a micro-batch may have that many files and bytes; one file is always admitted."""
        is_over = (self.max_files is not None and files > self.max_files) or (
            self.max_bytes is not None and size > self.max_bytes
        )
        return files == 1 or not is_over


class LimitedStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream reader whose options limit micro-batches."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        names = {"maxFilesPerTrigger": options.max_files, "maxBytesPerTrigger": options.max_bytes}
        option = next((name for name, value in names.items() if value is not None), None)
        if option is not None and not SUPPORTS_LIMITS:
            raise VariantError(
                f"the option {option} requires Spark 4.2 or newer, because Spark {pyspark.__version__} does not limit "
                "micro-batches of Python data sources: remove the option",
                reason="bad-option",
            )

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - the name in Spark's interface
        """Return the limit from the options."""
        if self.options.max_files is not None:
            return ReadMaxFiles(self.options.max_files)
        return ReadAllAvailable() if self.options.max_bytes is None else ReadMaxBytes(self.options.max_bytes)

    def batch_limit(self, limit: ReadLimit | None) -> BatchLimit:
        """Return the limit of a micro-batch. Spark passes one limit, but the options may set both."""
        if limit is None or isinstance(limit, ReadAllAvailable):
            return BatchLimit()
        return BatchLimit(
            limit.max_files if isinstance(limit, ReadMaxFiles) else self.options.max_files,
            limit.max_bytes if isinstance(limit, ReadMaxBytes) else self.options.max_bytes,
        )
