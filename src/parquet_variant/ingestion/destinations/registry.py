"""The functions that open a destination, by output format.

Each function imports its destination only when that format is requested, so that an ingest into Parquet files does not
load the Delta or Vortex packages.
"""

from __future__ import annotations

from collections.abc import Callable

from parquet_variant.ingestion.destination import Destination
from parquet_variant.ingestion.request import IngestRequest
from parquet_variant.support.choices import OutputFormat


def _open_parquet(request: IngestRequest) -> Destination | None:
    from parquet_variant.ingestion.destinations.parquet import open_parquet

    return open_parquet(request)


def _open_delta(request: IngestRequest) -> Destination | None:
    from parquet_variant.ingestion.destinations.delta import open_delta

    return open_delta(request)


def _open_iceberg(request: IngestRequest) -> Destination | None:
    from parquet_variant.ingestion.destinations.iceberg import open_iceberg

    return open_iceberg(request)


def _open_vortex(request: IngestRequest) -> Destination | None:
    from parquet_variant.ingestion.destinations.vortex import open_vortex

    return open_vortex(request)


_OPENERS: dict[OutputFormat, Callable[[IngestRequest], Destination | None]] = {
    "parquet": _open_parquet,
    "delta": _open_delta,
    "iceberg": _open_iceberg,
    "vortex": _open_vortex,
}


def open_destination(request: IngestRequest) -> Destination | None:
    """Open the destination of an ingest without writing to it.

    Returns None if the destination holds data and the mode is ``"ignore"``. Raises `VariantFileError` or `DeltaError`
    if the mode is ``"error"`` and the destination holds data, or if the destination cannot be written.
    """
    return _OPENERS[request.format](request)
