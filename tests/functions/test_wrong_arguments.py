"""What is given in the place of something else is told in our words."""

import re

import pyarrow as pa
import pytest

import parquet_variant as pv


@pytest.mark.parametrize("rows", [[{"a": 1}], ["{}", 3], ["\ud800", {}], [None, [1]]])
def test_python_values_where_json_text_is_wanted(rows):
    with pytest.raises(pv.SchemaError, match=r"expected JSON text, found (dict|int|list): .* from_python") as found:
        pv.parse_json(rows)
    assert found.value.row == len(rows) - 1
    assert found.value.reason == "not-text"


@pytest.mark.parametrize("name, near", [("bigin", "bigint"), ("DOUBL", "double"), ("Strng", "string")])
def test_a_type_that_is_misspelt(name, near):
    with pytest.raises(pv.SchemaError, match=f"unknown type '{name}': did you mean '{near}'"):
        pv.ShreddingSchema.from_ddl(f"a {name}")
    with pytest.raises(pv.CastError, match=f"unknown type '{name}': did you mean '{near}'"):
        pv.variant_get(pv.from_python([1]), "$", name)


def test_a_type_that_is_like_none_is_told_all_of_them():
    with pytest.raises(pv.SchemaError, match=r"unknown type 'zzz': use boolean, .*decimal, array, struct, variant"):
        pv.ShreddingSchema.from_ddl("a zzz")


@pytest.mark.parametrize(
    "use", [lambda rows: pv.shred_variant(rows, {"a": "int"}), lambda rows: pv.parse_json(["{}"], schema={"a": "int"})]
)
def test_a_schema_that_is_a_dict(use):
    with pytest.raises(pv.SchemaError, match=re.escape("schema is a dict: give DDL")):
        use(pv.from_python([{"a": 1}]))


@pytest.mark.parametrize(
    "use",
    [
        lambda path: pv.VariantArray(pv.from_python([1])),
        lambda path: pv.VariantArray([]),
        lambda path: pv.parse_json(["{}"], types=["$.a"]),
        lambda path: pv.parquet.infer(path, policy={"a": 1}),
        lambda path: pv.infer_shredding_schema(pv.from_python([1]), policy=["auto"]),
        lambda path: pv.parquet.read(path, filesystem="local"),
        lambda path: pv.delta.snapshot(path.parent, storage_options="local"),
        lambda path: pv.delta.create(path.parent / "new", ["a"]),
        lambda path: pv.delta.create(path.parent / "new", pa.schema([("a", pa.int8())]), properties="a=b"),
        lambda path: pv.delta.add_columns(path.parent / "table", ["a"]),
        lambda path: pv.delta.set_properties(path.parent / "table", ["a"]),
    ],
)
def test_what_has_not_even_the_kind_that_is_wanted(use, tmp_path):
    pv.parquet.write(tmp_path / "a.parquet", pv.from_python([1]))
    pv.delta.write(tmp_path / "table", {"v": pv.from_python([{"a": 1}])})
    with pytest.raises(pv.VariantError, match=r"is a \w+: give|is an Arrow array, not a"):
        use(tmp_path / "a.parquet")


def test_values_that_no_arrow_array_holds():
    for values in ([1, "a"], [2**70], [1, {"a": 2}]):
        with pytest.raises(pv.SchemaError, match="become Variants with from_python"):
            pv.cast_to_variant(values)
