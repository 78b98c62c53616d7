"""Paths without a type in scans: the type of all values, as in SQL and on the command line; otherwise a Variant."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.types.path import VariantPath

LINES = ['{"n": 1, "s": "a", "m": 1, "o": {"x": 1}}', '{"n": null, "m": "x"}', '{"n": 3, "s": "b"}']


SOURCES = ["memory", "json", "parquet", "unshredded", "vortex", "delta", "iceberg"]


def _open(source: str, folder: Path, lines: list[str]) -> pv.Table:
    values = pv.parse_json(lines)
    if source == "memory":
        return pv.open(values)
    if source == "json":
        (folder / "a.ndjson").write_text("\n".join(lines))
        return pv.open(folder / "a.ndjson")
    if source in ("delta", "iceberg"):
        pv.write(folder / "t", {"v": values}, format=source)
        return pv.open(folder / "t")
    if source == "vortex":
        pytest.importorskip("vortex", reason="vortex-data is not installed")
    name = "a.vortex" if source == "vortex" else "a.parquet"
    pv.write(folder / name, {"v": values}, schema=None if source == "unshredded" else "infer")
    return pv.open(folder / name)


@pytest.fixture(params=SOURCES)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> pv.Table:
    return _open(request.param, tmp_path, LINES)


@pytest.mark.parametrize("source", SOURCES)
def test_a_path_may_have_more_keys_than_python_can_recurse(source: str, tmp_path: Path) -> None:
    keys = 990
    table = _open(source, tmp_path, ['{"k": ' * keys + "7" + "}" * keys, '{"k": 1}'])
    path = "$" + ".k" * keys
    assert table.scan({"x": path}).to_arrow()["x"].to_pylist() == [7, None]
    found = table.scan({"x": f"{path}:bigint", "below": f"{path}.k:string"}, where=f"{path}::bigint = 7").to_arrow()
    assert found.to_pylist() == [{"x": 7, "below": None}]


def test_the_type_of_all_values(table: pv.Table) -> None:
    rows = table.scan({"n": "$.n", "s": VariantPath(("s",)), "m": "$.m", "o": "$.o", "v": "$.n:variant", "w": "$"})
    found = rows.to_arrow()
    assert (found["n"].to_pylist(), found["s"].to_pylist()) == ([1, None, 3], ["a", None, "b"])
    assert found.schema.field("s").type == pa.string()
    for name in ("m", "o", "v", "w"):
        assert pa.types.is_struct(found.schema.field(name).type), name
    assert [row["v"] for row in rows.to_pylist()] == [1, None, 3]
