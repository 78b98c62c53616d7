"""An ingest as a run event of OpenLineage, for ``variant ingest --openlineage FILE``.

Owns the facets: the schema and the size of the output, and the assertions of the contract. OpenLineage's collectors
read the file; nothing is sent.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from parquet_variant._version import __version__
from parquet_variant.errors import without_secrets
from parquet_variant.ingestion.result import IngestResult
from parquet_variant.io.filesystems import absolute
from parquet_variant.io.staging import atomic_file

_PRODUCER = f"https://pypi.org/project/parquet-variant/{__version__}"
_SPEC = "https://openlineage.io/spec"


def save_event(result: IngestResult, sources: Sequence[str], column: str, file: str | os.PathLike[str]) -> None:
    """Write the event of a finished ingest, one ``COMPLETE`` event of spec version 2-0-2, as one line of JSON.

    `column`: the name of the Variant column. Its typed paths are the fields below it in the schema facet.
    """
    schema, checked = result.schema, dict[str, Any]()
    leaves = [] if schema is None else [(path, leaf) for path, leaf in schema.leaves() if path.segments]
    paths = [{"name": path.shorthand.removeprefix("$."), "type": leaf.to_ddl()} for path, leaf in leaves]
    fields = [{"name": column, "type": "variant", "fields": paths}]
    statistics = _facet("OutputStatisticsOutputDatasetFacet", "1-0-2", rowCount=result.rows, size=result.bytes_written)
    if result.contract is not None:
        broken = [
            {"assertion": violation.rule, "success": False, "column": violation.path.shorthand}
            for violation in result.contract.violations
        ]
        assertions = broken or [{"assertion": "contract", "success": True}]
        facet = _facet("DataQualityAssertionsDatasetFacet", "1-0-1", assertions=assertions)
        checked = {"inputFacets": {"dataQualityAssertions": facet}}
    output = {
        **_dataset(result.dest),
        "facets": {"schema": _facet("SchemaDatasetFacet", "1-1-1", fields=fields)},
        "outputFacets": {"outputStatistics": statistics},
    }
    event = {
        "eventType": "COMPLETE",
        "eventTime": datetime.now(UTC).isoformat(),
        "producer": _PRODUCER,
        "schemaURL": f"{_SPEC}/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": str(uuid.uuid4())},
        "job": {"namespace": "parquet-variant", "name": f"ingest {output['name']}"},
        "inputs": [_dataset(source) | checked for source in sources],
        "outputs": [output],
    }
    with atomic_file(Path(file)) as staged:
        staged.write_text(json.dumps(event, ensure_ascii=False) + "\n", encoding="utf-8")


def _facet(name: str, version: str, **fields: Any) -> dict[str, Any]:
    return {"_producer": _PRODUCER, "_schemaURL": f"{_SPEC}/facets/{version}/{name}.json#/$defs/{name}", **fields}


def _dataset(path: str) -> dict[str, Any]:
    """Return the namespace and the name of files by OpenLineage's naming rules."""
    parts = urlsplit(without_secrets(path))
    if parts.scheme and parts.netloc:
        return {"namespace": f"{parts.scheme}://{parts.netloc}", "name": parts.path.lstrip("/")}
    return {"namespace": "file", "name": path if path == "-" else absolute(path)}
