"""Values found inside a column, as a storage struct of their own.

Owns the copying of their bytes; the metadata of their rows goes with them as it is. Leaves finding them to
`value_positions`.
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from parquet_variant.array.parts import MetadataParts
from parquet_variant.array.unshredded import storage_of
from parquet_variant.functions.columns.value_positions import ValuePositions
from parquet_variant.kernels.arrow_buffers import filled_binary
from parquet_variant.kernels.memory import copy_spans
from parquet_variant.kernels.operations import get

__all__ = ["position_storage"]


def position_storage(value_positions: ValuePositions) -> pa.StructArray:
    """An unshredded storage struct of some positions, null where there is no value."""
    there = value_positions.starts != get.ABSENT
    spans = value_positions.spans()
    value = filled_binary(spans.b, partial(copy_spans, spans.a, spans.b))
    metadata = MetadataParts(value_positions.metas, value_positions.dictionaries.array).column
    return storage_of(metadata, value, pa.array(~there))
