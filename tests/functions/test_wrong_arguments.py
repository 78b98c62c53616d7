"""Wrong arguments raise a `VariantError` that names the argument and says what to pass."""

import re

import numpy as np
import pyarrow as pa
import pytest

import parquet_variant as pv


@pytest.mark.parametrize("rows", [[{"a": 1}], ["{}", 3], ["\ud800", {}], [None, [1]]])
def test_python_values_where_json_text_is_wanted(rows):
    with pytest.raises(pv.SchemaError, match=r"found (dict|int|list): .*from_python") as found:
        pv.parse_json(rows)
    assert found.value.row == len(rows) - 1
    assert found.value.reason == "not-text"


@pytest.mark.parametrize("name, near", [("bigin", "bigint"), ("DOUBL", "double"), ("Strng", "string")])
def test_a_type_that_is_misspelt(name, near):
    with pytest.raises(pv.SchemaError, match=f"unknown type '{name}': did you mean '{near}'"):
        pv.ShreddingSchema.from_ddl(f"a {name}")
    with pytest.raises(pv.CastError, match=f"unknown type '{name}': did you mean '{near}'"):
        pv.variant_get(pv.from_python([1]), "$", name)


def test_a_type_that_is_unknown_is_answered_with_all_of_them():
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
        lambda path: pv.infer(path, policy={"a": 1}),
        lambda path: pv.infer_shredding_schema(pv.from_python([1]), policy=["auto"]),
        lambda path: pv.open(path, filesystem="local").read(),
        lambda path: pv.open(path.parent, storage_options="local").snapshot,
        lambda path: pv.create(path.parent / "new", ["a"]).snapshot,
        lambda path: pv.create(path.parent / "new", pa.schema([("a", pa.int8())]), properties="a=b").snapshot,
        lambda path: pv.open(path.parent / "table").add_columns(["a"]),
        lambda path: pv.open(path.parent / "table").set_properties(["a"]),
    ],
)
def test_what_has_not_even_the_kind_that_is_wanted(use, tmp_path):
    pv.write(tmp_path / "a.parquet", pv.from_python([1]))
    pv.write(tmp_path / "table", {"v": pv.from_python([{"a": 1}])}, format="delta")
    with pytest.raises(pv.VariantError):
        use(tmp_path / "a.parquet")


def test_values_that_no_arrow_array_holds():
    for values in ([1, "a"], [2**70], [1, {"a": 2}]):
        with pytest.raises(pv.SchemaError, match="from_python"):
            pv.cast_to_variant(values)


ROWS = pv.from_python([{"a": 1}, None])
SCHEMA = pv.ShreddingSchema.from_ddl("a int")


@pytest.mark.parametrize("path", [None, 1, 1.5, b"$.a", object()])
@pytest.mark.parametrize(
    "use",
    [
        lambda path: pv.variant_get(ROWS, path),
        lambda path: pv.variant_delete(ROWS, path) if path is not None else pv.VariantPath(path),
        lambda path: pv.is_variant_null(ROWS[0], path),
        pv.VariantPath,
        SCHEMA.get,
    ],
)
def test_an_invalid_path_is_reported(use, path):
    with pytest.raises(pv.PathError, match=r"a path is a \w+: give a string"):
        use(path)


def test_a_path_is_made_of_its_text_by_its_class_too():
    assert pv.VariantPath("$.a[0]") == pv.VariantPath.parse("$.a[0]") == pv.VariantPath(["a", 0])


@pytest.mark.parametrize("number", [None, "5", -1, 1.5, float("nan"), True, 2**63, np.array([1, 2]), [3]])
@pytest.mark.parametrize(
    "use",
    [
        lambda number: pv.variant_set(ROWS, "$.a", 1, max_size=number),
        lambda number: pv.from_python([{}], max_depth=number),
        lambda number: pv.validate(ROWS, number),
        ROWS[0].validate,
        lambda number: pv.parse_json(["{}"], max_depth=number),
        lambda number: pv.parse_json("{}", max_size=number),
    ],
)
def test_an_invalid_number_is_reported(use, number):
    with pytest.raises(pv.VariantError, match="give an integer from") as caught:
        use(number)
    assert caught.value.reason == "bad-option"


@pytest.mark.parametrize(
    "use",
    [
        lambda: pv.variant_get(ROWS, "$.a", "date", zone=["UTC"]),
        lambda: pv.parse_json(["{}"], dictionary="column"),
        lambda: pv.parse_json(["{}"], floats=np.array(["decimal", "double"])),
        lambda: pv.get_variant_scalar(ROWS, [0]),
        lambda: pv.VariantArray.concat([]),
        lambda: pv.VariantArray.concat([ROWS.storage]),
        lambda: pv.VariantArray.from_variants([{"a": 1}]),
        lambda: pv.VariantArray.from_pandas(None),
        lambda: pv.ShreddingSchema.from_ddl(b"a int"),
        lambda: pv.ShreddingSchema.from_arrow("int"),
        lambda: pv.ShreddingSchema.from_storage("int"),
        lambda: pv.ShreddingSchema.from_parquet(None),
        lambda: pv.ShreddingSchema.primitive({}),
        lambda: pv.ShreddingSchema.object(None),
        lambda: SCHEMA.merge(None),
        lambda: SCHEMA.diff(["a"]),
    ],
)
def test_what_is_not_what_it_should_be_raises_a_variant_error(use):
    with pytest.raises(pv.VariantError):
        use()


@pytest.mark.parametrize("rows", [None, "x", [[1]], {"a": 1}, object(), ["a"]])
def test_what_chooses_no_rows_is_an_index_error(rows):
    for use in (ROWS.take, ROWS.filter):
        with pytest.raises(IndexError):
            use(rows)
    with pytest.raises(IndexError):
        ROWS.filter([True])


@pytest.mark.parametrize(
    "value", [np.int64(3), np.float64(1.5), np.bool_(True), np.datetime64("2020-01-01"), np.array(5)]
)
def test_a_number_of_numpy_is_one_value(value):
    assert pv.from_python(value) == pv.Variant.from_python(value) == pv.from_python(value, errors="null")
