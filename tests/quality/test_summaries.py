"""Summaries of data sets: footers prove the figures of the values, of any shredding, and every format can be read."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.errors import VariantFileError
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.quality.sources import data_of
from parquet_variant.quality.summaries import Summary, summarize
from parquet_variant.quality.value_figures import PathSummary
from parquet_variant.types.path import VariantPath

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 300), st.sampled_from(["", "x", "long text", "2026-01-31"])
)
FIELDS = st.dictionaries(st.sampled_from("abc"), SCALARS, max_size=3)
VALUES = st.one_of(
    SCALARS, FIELDS, st.lists(st.one_of(SCALARS, FIELDS), max_size=3), st.lists(st.lists(SCALARS), max_size=2)
)
ROWS = st.lists(
    st.one_of(st.dictionaries(st.sampled_from("opqa"), VALUES, max_size=4), SCALARS), min_size=1, max_size=12
)
DDL = st.sampled_from(
    [
        "a bigint, o struct<a bigint, b string>, p array<struct<a bigint, c string>>, q array<bigint>",
        "o array<array<string>>, p struct<a boolean>, q struct<b variant>, a variant",
        "o bigint",
    ]
)


def _known(path: PathSummary) -> dict[str, Any]:
    figures = {"types": dict(path.types), "places": path.places, "elements": path.elements, "ranges": path.ranges}
    return figures | {"rows": path.rows, "bytes": path.mean_string_bytes}


def _of(data: Any, **options: Any) -> Summary:
    return summarize(data_of(pv.open(data)), **options)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, ddl=DDL, writer=st.sampled_from(["native", "pyarrow"]))
def test_footers_and_residuals_prove_the_figures_of_the_values(
    rows: list[Any], ddl: str, writer: str, tmp_path: Path
) -> None:
    array = pv.parse_json([*map(json.dumps, rows), None, "{}"])
    file = tmp_path / "a.parquet"
    schema = ShreddingSchema.from_ddl(ddl)
    pv.write(file, array, schema=schema, mode="overwrite", row_group_bytes=2000, writer=writer)
    proved, values = _of(file, sample_bytes=file.stat().st_size - 1), _of(array)
    assert (proved.rows, proved.null_rows, proved.rows_evidence) == (values.rows, values.null_rows, "footers")
    if proved.proof is not None and proved.proof.is_closed:
        assert set(proved.paths) == set(values.paths)
    for path, summary in proved.paths.items():
        if summary.evidence == "footers":
            expected = _known(values.paths[path])
            if path.has_wildcard:
                expected["rows"] = None
            assert _known(summary) == expected, path
    for path in values.paths:
        assert path in proved.paths or not proved.is_proved_missing(path)


def _bytes_read() -> int:
    """Return the number of bytes that this process has read."""
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counters["rchar"])


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="needs Linux, which counts the bytes that are read")
def test_a_large_file_is_summarized_from_few_bytes(tmp_path: Path) -> None:
    text = Random(1).randbytes(30_000 * 280).hex()
    rows: list[Any] = [{"id": n, "kind": "ab"[n % 2], "text": text[n * 560 : n * 560 + 560]} for n in range(30_000)]
    rows[20_000] = {"id": "text", "extra": {"x": 1}}
    array = pv.parse_json(list(map(json.dumps, rows)))
    file = tmp_path / "a.parquet"
    pv.write(file, array, schema="id bigint, kind string, text string", row_group_bytes=2_800_000)
    size = file.stat().st_size
    _of(file, sample_bytes=size // 20)
    before = _bytes_read()
    summary = _of(file, sample_bytes=size // 20)
    assert _bytes_read() - before < size * 0.1
    assert summary.bytes_read < size * 0.1
    assert summary.closed
    assert dict(summary.paths[VariantPath(("id",))].types) == {"integer": 29_999, "string": 1}
    assert summary.paths[VariantPath(("extra", "x"))].places == 1
    assert summary.paths[VariantPath(("kind",))].distinct == 2
    assert 0 < summary.sampled_rows < 20_001


def test_every_format_is_read(tmp_path: Path) -> None:
    rows = [{"n": n, "day": f"2026-01-{n % 2 + 1:02}"} for n in range(6)]
    lines = tmp_path / "a.ndjson"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    array = pv.parse_json(list(map(json.dumps, rows)))
    sources: list[tuple[Any, dict[str, Any], int]] = [(lines, {}, 6), (array, {}, 6), (pa.table({"v": array}), {}, 6)]
    for name in ("parquet", "delta", "iceberg"):
        pv.ingest(lines, tmp_path / name, format=name, partition_by="day=$.day:date")  # type: ignore[arg-type]
        sources += [(tmp_path / name, {}, 6), (tmp_path / name, {"partition": {"day": "2026-01-02"}}, 3)]
    pv.open(tmp_path / "delta").delete("v:n::int = 0")
    sources[5] = tmp_path / "delta", {}, 5
    sources += [(tmp_path / "delta", {"version": 0}, 6)]
    for source, options, count in sources:
        summary = summarize(data_of(pv.open(source, **options)))
        assert (summary.rows, summary.paths[VariantPath(("n",))].count) == (count, count), (source, options)
    with pytest.raises(VariantFileError, match="no partition column hour: choose from day"):
        data_of(pv.open(tmp_path / "parquet", partition={"hour": "1"}))
    with pytest.raises(VariantFileError, match="no files with day=2027-01-01"):
        data_of(pv.open(tmp_path / "iceberg", partition={"day": "2027-01-01"}))
    with pytest.raises(VariantFileError, match="no versions"):
        pv.open(lines, version=1)
