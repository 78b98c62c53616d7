"""Only version 1 of the metadata is defined: rows of another version are errors in every function, even scalars."""

from __future__ import annotations

import pyarrow as pa
import pytest

import parquet_variant as pv

_SCALAR, _OBJECT = (b"\x12\x00\x00", b"\x0c\x05"), (b"\x12\x01\x00\x01a", b"\x02\x01\x00\x00\x02\x0c\x01")
_FUNCTIONS = {
    "to_json": pv.to_json,
    "to_python": pv.to_python,
    "variant_type": pv.variant_type,
    "schema_of_variant": pv.schema_of_variant,
    "is_variant_null": pv.is_variant_null,
    "variant_get": lambda array, **options: pv.variant_get(array, "$", "string", **options),
    "variant_set": lambda array, **options: pv.variant_set(array, "$.b", 1, **options).to_pylist(),
    "equals": lambda array, **options: pv.equals(array, array, **options),
}


def _rows(bad: tuple[bytes, bytes], kind: pa.DataType = pa.binary()) -> pv.VariantArray:  # noqa: B008
    sound = pv.Variant.from_python({"a": 1})
    rows = [
        {"metadata": sound.metadata, "value": sound.value},
        None,
        dict(zip(("metadata", "value"), bad, strict=True)),
    ]
    return pv.VariantArray(pa.array(rows, pa.struct({"metadata": kind, "value": pa.binary()})))


@pytest.mark.parametrize("bad", [_SCALAR, _OBJECT])
@pytest.mark.parametrize(
    "kind", [pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int8(), pa.binary())]
)
@pytest.mark.parametrize("name", _FUNCTIONS)
def test_rows_of_an_unknown_version_are_errors_or_null(name, kind, bad):
    array, function = _rows(bad, kind), _FUNCTIONS[name]
    with pytest.raises(pv.MalformedVariantError) as caught:
        function(array)
    assert (caught.value.reason, caught.value.row) == ("bad-version", 2)
    found, sound = list(function(array, errors="null")), list(function(array[:2]))
    assert [str(value) for value in found] == [*map(str, sound), "None"]
    assert function(array[:2], errors="null") == function(array[:2])


@pytest.mark.parametrize("bad", [_SCALAR, _OBJECT])
def test_scans_values_and_writes_of_an_unknown_version_are_refused(tmp_path, bad):
    array = _rows(bad)
    uses = (
        array.to_pylist,
        lambda: pv.shred_variant(array, "a int"),
        lambda: pv.write(tmp_path / "a.parquet", array),
        lambda: pv.open({"v": array}).scan({"n": "$.a:int"}).to_arrow(),
        pv.Variant(*bad).to_python,
        pv.Variant(*bad).to_json,
    )
    for use in uses:
        with pytest.raises(pv.MalformedVariantError) as caught:
            use()
        assert caught.value.reason == "bad-version"


@pytest.mark.parametrize("bad", [_SCALAR, _OBJECT])
def test_null_rows_have_no_version_and_validate_reports_the_others(bad):
    array = _rows(bad)
    assert pv.validate(array).select(["row", "reason"]).to_pylist() == [{"row": 2, "reason": "bad-version"}]
    storage = array.storage
    hidden = pa.StructArray.from_arrays(
        storage.flatten(), fields=list(storage.type), mask=pa.array([False, True, True])
    )
    assert pv.to_python(pv.VariantArray(hidden)) == [{"a": 1}, None, None]
