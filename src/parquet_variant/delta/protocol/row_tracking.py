"""The columns in which files keep row ids and commit versions.

Owns their names. Leaves the ids to `log.told` and `reading.row_ids`.
"""

from __future__ import annotations

import uuid
from dataclasses import replace

from parquet_variant.delta.protocol.actions import Metadata
from parquet_variant.delta.protocol.features import ROW_COMMIT_COLUMN, ROW_ID_COLUMN


def with_tracking_columns(metadata: Metadata) -> Metadata:
    """The metadata with names for these columns, if it enables row tracking and has none."""
    configuration = metadata.configuration
    if configuration.get("delta.enableRowTracking") != "true" or ROW_ID_COLUMN in configuration:
        return metadata
    names = {
        ROW_ID_COLUMN: f"_row-id-col-{uuid.uuid4()}",
        ROW_COMMIT_COLUMN: f"_row-commit-version-col-{uuid.uuid4()}",
    }
    return replace(metadata, configuration={**configuration, **names})
