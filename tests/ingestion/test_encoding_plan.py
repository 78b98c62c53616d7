"""Encodings are chosen once for all tasks, from the first rows, bad lines or not."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.ingestion.job import planned_encodings
from parquet_variant.ingestion.request import IngestRequest
from parquet_variant.ingestion.sources.input_files import InputFile, find_input_files
from parquet_variant.ingestion.sources.splits import Split, plan_splits

SCHEMA = pv.ShreddingSchema.from_ddl("n bigint, s string")


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "a.ndjson"
    lines = [json.dumps({"n": n, "s": "x" * (n % 3)}) for n in range(3000)]
    path.write_text("\n".join(["{bad", *lines, ""]))
    return str(path)


def test_it_is_made_of_the_first_rows(source):
    request = IngestRequest.of(source, "nowhere", schema=SCHEMA)
    one, two = (
        [plan_splits(find_input_files([source]))],
        [[split] for split in plan_splits(find_input_files([source]), 20_000)],
    )
    assert len(two) > 1
    assert planned_encodings(request, SCHEMA, one, 1) is None
    # Tasks that run at the same time would wait for the choice.
    assert planned_encodings(request, SCHEMA, two, len(two)) is None
    known = planned_encodings(request, SCHEMA, two, 1)
    assert known is not None
    assert known["v.typed_value.n.typed_value"][0] == "DELTA_BINARY_PACKED"
    assert "v.typed_value.n.value" not in known
    assert planned_encodings(IngestRequest.of("x", "y.vortex", format="vortex"), SCHEMA, two, 1) is None
    assert planned_encodings(request, SCHEMA, [[Split(InputFile("/dev/null"))]] * 2, 1) is None


def test_tasks_follow_it(source, tmp_path):
    pv.ingest(source, str(tmp_path / "out"), schema=SCHEMA, on_error="quarantine", split_bytes=20_000)
    files = list((tmp_path / "out").glob("*.parquet"))
    assert len(files) > 1
    for file in files:
        group = pq.read_metadata(file).row_group(0)
        encodings = {group.column(n).path_in_schema: group.column(n).encodings for n in range(group.num_columns)}
        assert "DELTA_BINARY_PACKED" in encodings["v.typed_value.n.typed_value"]
