"""Rewriting on Spark gives what rewriting in the process gives."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.errors import MalformedVariantError, VariantFileError


@pytest.fixture
def folder(tmp_path):
    for number in range(3):
        rows = [{"a": n, f"only{number}": f"x{n}"} for n in range(200)] + [None, "other"]
        pv.write(tmp_path / "in" / f"x{number}" / "a.parquet", pv.VariantArray.from_pylist(rows))
    return tmp_path


@pytest.mark.parametrize(
    "options",
    [
        {"layout": "final", "schema": "a bigint"},
        {"layout": "draft-paths", "schema": "infer"},
        {"layout": "draft-object", "schema": "a int, only1 string"},
        {"layout": "unshredded", "annotation": False},
        {"schema": "infer", "compression": "snappy", "sort_by": "$.a"},
    ],
    ids=str,
)
def test_files_are_those_of_the_local_engine(spark, folder, options):
    infos = pv.open(folder / "in", engine=spark).rewrite(folder / "there", **options)
    local = pv.open(folder / "in").rewrite(folder / "here", **options)
    assert [info.rows for info in infos] == [202, 202, 202]
    for there, here in zip(infos, local, strict=True):
        assert there.path.replace("/there/", "/here/") == here.path
        assert (there.rows, there.variants, there.row_groups) == (here.rows, here.variants, here.row_groups)
        found, expected = pv.open(there.path).read(), pv.open(here.path).read()
        assert (found.layout, found.schema) == (expected.layout, expected.schema)
        assert found == expected


def test_what_is_there_is_kept_unless_it_may_go(spark, folder):
    pv.open(folder / "in", engine=spark).rewrite(folder / "out", layout="unshredded")
    with pytest.raises(VariantFileError, match="already exists"):
        pv.open(folder / "in", engine=spark).rewrite(folder / "out")
    pv.open(folder / "in", engine=spark).rewrite(folder / "out", schema="a bigint", mode="overwrite")
    assert pv.open(folder / "out").read().layout == "final"


def test_a_broken_value_is_reported_with_its_file_and_row(spark, tmp_path):
    rows = [pv.Variant.from_python(1), pv.Variant(b"\x11\0\0", b"\x02\x09")]
    storage = pv.VariantArray.from_variants(rows).storage
    pq.write_table(pa.table({"v": storage}), tmp_path / "a.parquet")  # `pv.write` refuses the second row
    with pytest.raises(MalformedVariantError) as caught:
        pv.open(tmp_path / "a.parquet", column="v", engine=spark).rewrite(tmp_path / "b.parquet", schema="a int")
    assert caught.value.row == 1
    assert str(caught.value.file).endswith("a.parquet")
    assert not (tmp_path / "b.parquet").exists()
