"""The shared data sets keep every value through files of every layout, and shredding makes them smaller."""

from __future__ import annotations

import pyarrow as pa
import pytest

import parquet_variant as pv

SETS = ["cve_v5", "gharchive", "usgs_earthquakes", "windows_events"]
ROWS = 400


def lines(folder, name):
    path = folder / "data" / f"{name}.ndjson"
    if path.exists():
        return path.read_bytes().splitlines()[:ROWS]
    zstandard = pytest.importorskip("zstandard", reason="zstandard reads the compressed test data")
    with (folder / "data" / f"{name}.ndjson.zst").open("rb") as source:
        return zstandard.ZstdDecompressor().stream_reader(source).read(16 << 20).splitlines()[:ROWS]


@pytest.mark.parametrize("name", SETS)
def test_all_layouts_of_the_shared_data(name, variant_test_data, tmp_path):
    array = pv.parse_json(pa.array([line.decode() for line in lines(variant_test_data, name)]))
    pv.write(tmp_path / "unshredded.parquet", array)
    for number, layout in enumerate(("final", "draft-paths", "draft-object", "unshredded", "final")):
        source = tmp_path / "unshredded.parquet" if number == 0 else tmp_path / f"{number - 1}.parquet"
        schema = "infer" if number in (0, 4) else None
        pv.open(source).rewrite(tmp_path / f"{number}.parquet", layout=layout, schema=schema, row_group_bytes=1 << 20)
    last = pv.open(tmp_path / "4.parquet").read()
    assert last.schema == pv.open(tmp_path / "0.parquet").read().schema
    assert last.equals(array)
    report = pv.open(tmp_path / "4.parquet").validate()
    assert report.ok, str(report)
