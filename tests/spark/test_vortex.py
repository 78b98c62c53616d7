"""Spark's tasks write Vortex files, the driver makes them visible."""

from __future__ import annotations

import json

import pytest

import parquet_variant as pv
from parquet_variant.errors import VariantFileError
from parquet_variant.files.vortex.paths import vortex_files

pytest.importorskip("vortex.expr", reason="vortex-data is not installed")


def texts(rows):
    return sorted(json.dumps(json.loads(row), sort_keys=True) for row in rows)


@pytest.mark.parametrize("name", ["directory", "one.vortex"])
def test_ingest_of_several_tasks_keeps_every_row(spark, tmp_path, usgs_sample, name):
    lines = usgs_sample.read_text().splitlines()
    for number in range(3):
        (tmp_path / f"{number}.ndjson").write_text("\n".join(lines[number::3]) + "\n")
    dest = tmp_path / name
    sources = [tmp_path / f"{number}.ndjson" for number in range(3)]
    result = pv.ingest(sources, dest, engine=spark, format="vortex", split_bytes=100_000)
    assert result.rows == len(lines)
    files = vortex_files(dest)
    assert len(files) == len(result.files) == (1 if name.endswith(".vortex") else len(files))
    assert len(files) > 1 or dest.is_file()
    found = [text for file in files for text in pv.to_json(pv.open(file).read()).to_pylist()]
    assert texts(found) == texts(lines)
    with pytest.raises(VariantFileError, match="exists"):
        pv.ingest(sources, dest, engine=spark, format="vortex")


def test_a_failed_ingest_leaves_nothing(spark, tmp_path):
    source = tmp_path / "a.ndjson"
    source.write_text('{"a": 1}\n{"a": \n')
    for name in ("directory", "one.vortex"):
        with pytest.raises(pv.JsonError):
            pv.ingest(source, tmp_path / name, engine=spark, format="vortex", schema="a int")
    assert [item.name for item in tmp_path.iterdir()] == ["a.ndjson"]
