"""The logical type of a column: its nullability is declared by a field, and the same in every layout."""

from __future__ import annotations

import pyarrow as pa
import pytest

import parquet_variant as pv

vortex = pytest.importorskip("vortex", reason="vortex-data is not installed")

ROWS = ['{"a": 1, "b": [1, "x"]}', '{"a": 2}', '{"a": "s"}', "3", "null", "[]"]


def table(array, *, nullable):
    column = pv.vortex.variant_table({"v": array})
    return pa.table(column.columns, schema=pa.schema([column.schema.field("v").with_nullable(nullable)]))


@pytest.mark.parametrize("layout", ["auto", "variant", "struct"])
@pytest.mark.parametrize("schema", [None, "a bigint"])
@pytest.mark.parametrize("rows", [ROWS, ROWS[:2], []], ids=["mixed", "objects", "empty"])
def test_nullability_is_declared(layout, schema, rows, tmp_path):
    path = tmp_path / "a.vortex"
    for nullable in (False, True):
        array = pv.parse_json(rows)
        pv.write(path, table(array, nullable=nullable), format="vortex", layout=layout, schema=schema, mode="overwrite")
        dtype = "variant?" if nullable else "variant"
        assert str(pv.vortex.dtype_of(path)) == dtype
        assert pv.open(path).inspect().columns[0].dtype == dtype
        read = pv.open(path).to_arrow()
        assert read.schema.field("v").nullable == nullable
        assert pv.vortex.dtype_of(read).nullable == nullable
        assert vortex.open(str(path)).to_arrow().schema.field("v").nullable == nullable
        # Written again from what was read.
        again = tmp_path / "b.vortex"
        pv.write(again, read, format="vortex", mode="overwrite")
        assert str(pv.vortex.dtype_of(again)) == dtype
        assert pv.open(again).read().to_pylist() == array.to_pylist()


def test_other_sources_of_a_dtype(tmp_path):
    array = pv.parse_json(ROWS)
    both = pv.vortex.variant_table({"v": array, "w": array})
    assert str(pv.vortex.dtype_of(array)) == str(pv.vortex.dtype_of(pv.shred_variant(array, "a bigint"))) == "variant?"
    fixed = both.cast(pa.schema([both.schema.field("v").with_nullable(False), both.schema.field("w")]))
    pv.write(tmp_path / "a.vortex", fixed)
    for source in (tmp_path / "a.vortex", fixed, fixed.schema):
        assert [pv.vortex.dtype_of(source, name).nullable for name in ("v", "w")] == [False, True]
        with pytest.raises(pv.VariantFileError, match="v, w"):
            pv.vortex.dtype_of(source)
    assert not pv.vortex.dtype_of(fixed.schema.field("v")).nullable
    with pytest.raises(pv.SchemaError, match="not a Variant"):
        pv.vortex.dtype_of(pa.field("x", pa.int64()))
    with pytest.raises(pv.VariantFileError, match="null rows"):
        pv.write(tmp_path / "b.vortex", table(pv.parse_json([None]), nullable=False))
