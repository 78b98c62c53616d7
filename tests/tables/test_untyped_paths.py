"""Paths without a type in scans: the type of all values, as in SQL and on the command line; otherwise a Variant."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.types.path import VariantPath

LINES = ['{"n": 1, "s": "a", "m": 1, "o": {"x": 1}}', '{"n": null, "m": "x"}', '{"n": 3, "s": "b"}']


@pytest.fixture(params=["memory", "json", "parquet", "unshredded", "vortex", "delta", "iceberg"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> pv.Table:
    values = pv.parse_json(LINES)
    if request.param == "memory":
        return pv.open(values)
    if request.param == "json":
        (tmp_path / "a.ndjson").write_text("\n".join(LINES))
        return pv.open(tmp_path / "a.ndjson")
    if request.param in ("delta", "iceberg"):
        pv.write(tmp_path / "t", {"v": values}, format=request.param)
        return pv.open(tmp_path / "t")
    if request.param == "vortex":
        pytest.importorskip("vortex", reason="vortex-data is not installed")
    name = "a.vortex" if request.param == "vortex" else "a.parquet"
    pv.write(tmp_path / name, {"v": values}, schema=None if request.param == "unshredded" else "infer")
    return pv.open(tmp_path / name)


def test_the_type_of_all_values(table: pv.Table) -> None:
    rows = table.scan({"n": "$.n", "s": VariantPath(("s",)), "m": "$.m", "o": "$.o", "v": "$.n:variant", "w": "$"})
    found = rows.to_arrow()
    assert (found["n"].to_pylist(), found["s"].to_pylist()) == ([1, None, 3], ["a", None, "b"])
    assert found.schema.field("s").type == pa.string()
    for name in ("m", "o", "v", "w"):
        assert pa.types.is_struct(found.schema.field(name).type), name
    assert [row["v"] for row in rows.to_pylist()] == [1, None, 3]
