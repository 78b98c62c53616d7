"""Names of shredded fields that an array's metadata lacks: files have them, as the specification asks."""

import pyarrow as pa
import pytest

import parquet_variant as pv

pytestmark = pytest.mark.filterwarnings("error")

EMPTY = pv.Variant.from_python(None).metadata
NAMED = pv.Variant.from_python({"z": 1}).metadata
CELL = pa.struct([("value", pa.binary()), ("typed_value", pa.int64())])
LIST = pa.struct([("value", pa.binary()), ("typed_value", pa.list_(pa.struct([
    ("value", pa.binary()), ("typed_value", pa.struct([("inner", CELL)]))])))])  # fmt: skip
TYPED = pa.struct([("a", CELL), ("l", LIST), ("never", CELL)])
RESIDUAL = pv.Variant.from_python({"z": 1}).value
ROWS = [
    {"metadata": EMPTY, "typed_value": {"a": {"typed_value": 1}}},
    {"metadata": NAMED, "value": RESIDUAL, "typed_value": {"a": {"value": b"\x00"}}},
    None,
    {"metadata": EMPTY, "value": b"\x00"},
    {"metadata": NAMED, "typed_value": {"l": {"typed_value": [{"typed_value": {"inner": {"typed_value": 2}}}, {}]}}},
]
TEXTS = ['{"a":1}', '{"a":null,"z":1}', None, "null", '{"l":[{"inner":2},null]}']
FORMS = [pa.binary(), pa.large_binary(), pa.binary_view(), pa.dictionary(pa.int8(), pa.binary())]


def lacking(metadata=FORMS[0]):
    kind = pa.struct([("metadata", metadata), ("value", pa.binary()), ("typed_value", TYPED)])
    rows = pa.array([{"metadata": EMPTY}, *ROWS], kind)
    return pv.VariantArray(rows.slice(1))


def assert_named(array):
    """The metadata has every name that the row needs, and no field that is nowhere."""
    assert pv.validate(array).num_rows == 0
    assert pv.to_json(array).to_pylist() == TEXTS
    names = {name for item in array if item for name in pv.encoding.metadata.decode_metadata(item.metadata)}
    assert "never" not in names


@pytest.mark.parametrize("metadata", FORMS, ids=str)
@pytest.mark.parametrize("writer", ["native", "pyarrow"])
def test_parquet_files_have_the_names(tmp_path, metadata, writer):
    path = tmp_path / "a.parquet"
    pv.write(path, lacking(metadata), writer=writer)
    report = pv.open(path).validate()
    assert report.ok, str(report)
    assert_named(pv.open(path).read())


def test_variants_inside_of_structs_have_the_names(tmp_path):
    array = lacking()
    table = pa.table({"s": pa.StructArray.from_arrays([array.storage], fields=[array.arrow_field.with_name("v")])})
    pv.write(tmp_path / "a.parquet", table)
    assert pv.open(tmp_path / "a.parquet").validate().ok


def test_delta_tables_have_the_names(tmp_path):
    pv.write(tmp_path / "t", {"v": lacking()}, format="delta")
    [file] = (tmp_path / "t").glob("*.parquet")
    report = pv.open(file).validate()
    assert report.ok, str(report)


@pytest.mark.parametrize("layout", ["auto", "variant", "struct"])
def test_vortex_files_have_the_names(tmp_path, layout):
    """Where the library's own type lacked them, reading it ended the process."""
    pytest.importorskip("vortex")
    simple = lacking()[:1]
    for array, texts in (simple, TEXTS[:1]), (lacking(), TEXTS):
        pv.write(tmp_path / "a.vortex", array, layout=layout, mode="overwrite")
        assert pv.to_json(pv.open(tmp_path / "a.vortex").read()).to_pylist() == texts


def test_metadata_that_is_malformed_is_not_made_up(tmp_path):
    """It is refused: no reader could read the value."""
    row = {"metadata": b"\x11\x05\x00", "typed_value": {"a": {"typed_value": 1}}}
    kind = lacking().storage.type
    with pytest.raises(pv.MalformedVariantError):
        pv.write(tmp_path / "a.parquet", pv.VariantArray(pa.array([row], kind)))
