"""What is written: shapes, row groups, encodings, and nothing at all when it fails."""

from __future__ import annotations

import uuid
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import fs

import parquet_variant as pv
import variant_strategies as testing
from parquet_variant.errors import SchemaError, VariantFileError
from parquet_variant.files.parquet.format.facts import NO_NAN_KEY
from parquet_variant.files.parquet.writing.writer import VariantWriter


def array(*values):
    return pv.VariantArray.from_pylist(values)


@given(
    rows=st.lists(st.none() | testing.variants(max_leaves=8), max_size=6),
    schema=testing.shredding_schemas(),
    layout=st.sampled_from(["unshredded", "final", "draft-paths", "draft-object"]),
)
def test_what_is_written_is_read(rows, schema, layout, tmp_path_factory):
    path = tmp_path_factory.mktemp("w") / "a.parquet"
    given_array = pv.VariantArray.from_variants(rows)
    info = pv.write(path, given_array, schema=schema, layout=layout, row_group_bytes=300)
    found = pv.open(path).read()
    assert list(found) == rows
    assert found.layout == layout or schema.kind == "variant"
    assert (info.rows, info.bytes) == (len(rows), path.stat().st_size)
    if layout in ("unshredded", "final"):
        report = pv.open(path).validate()
        assert report.ok, str(report)


def test_the_schema_is_the_specifications(tmp_path):
    path = tmp_path / "a.parquet"
    ddl = (
        "a tinyint, b decimal(9,2), c decimal(18,0), d decimal(38,9), e uuid, f time, g timestamp_nanos, h array<date>"
    )
    pv.write(path, array(1), schema=ddl)
    text = str(pq.ParquetFile(path).schema)
    for line in (
        "optional group field_id=-1 v (Variant(1)) {",
        "required binary field_id=-1 metadata;",
        "optional binary field_id=-1 value;",
        "required group field_id=-1 a {",
        "optional int32 field_id=-1 typed_value (Int(bitWidth=8, isSigned=true));",
        "optional int32 field_id=-1 typed_value (Decimal(precision=9, scale=2));",
        "optional int64 field_id=-1 typed_value (Decimal(precision=18, scale=0));",
        "optional fixed_len_byte_array(16) field_id=-1 typed_value (Decimal(precision=38, scale=9));",
        "optional fixed_len_byte_array(16) field_id=-1 typed_value (UUID);",
        "timeUnit=nanoseconds",
        "required group field_id=-1 element {",
    ):
        assert line in text, line
    assert "isAdjustedToUTC=false, timeUnit=microseconds" in text
    metadata, value = (pq.ParquetFile(path).metadata.row_group(0).column(leaf) for leaf in (0, 1))
    assert (metadata.compression, metadata.has_offset_index, metadata.is_stats_set) == ("ZSTD", True, False)
    assert "RLE_DICTIONARY" in metadata.encodings
    assert (value.is_stats_set, value.statistics.null_count, value.has_column_index) == (True, 0, True)


def test_row_groups_are_cut_by_bytes(tmp_path):
    rows = array(*({"n": n, "text": "x" * 100} for n in range(1000)))
    info = pv.write(tmp_path / "a.parquet", rows, row_group_bytes=20_000)
    groups = pq.ParquetFile(tmp_path / "a.parquet").metadata
    sizes = [groups.row_group(number).num_rows for number in range(groups.num_row_groups)]
    assert info.row_groups == len(sizes) > 5
    assert max(sizes[:-1]) - min(sizes[:-1]) <= 2
    assert sum(sizes) == 1000


def test_small_batches_make_large_row_groups(tmp_path):
    with pv.VariantWriter(tmp_path / "a.parquet", row_group_bytes=1 << 20) as writer:
        for number in range(50):
            writer.write_batch({"v": array({"n": number}), "id": pa.array([number])})
    assert writer.info is not None
    assert (writer.info.rows, writer.info.row_groups) == (50, 1)
    assert writer.info.statistics["id",].upper.as_py() == 49
    assert pv.open(tmp_path / "a.parquet").read()[7].to_python() == {"n": 7}


def test_nothing_is_left_of_a_failed_write(tmp_path):
    path = tmp_path / "a.parquet"
    with pytest.raises(ZeroDivisionError), pv.VariantWriter(path) as writer:
        writer.write_batch({"v": array(1)})
        raise ZeroDivisionError
    with pytest.raises(SchemaError, match="same columns"), pv.VariantWriter(path) as writer:
        writer.write_batch({"v": array(1)})
        writer.write_batch({"w": array(1)})
    with pytest.raises(VariantFileError, match="at least one batch"), pv.VariantWriter(path):
        pass
    assert not list(tmp_path.iterdir())


def test_a_file_is_replaced_only_on_request(tmp_path):
    path = tmp_path / "deep" / "a.parquet"
    pv.write(path, array(1))
    with pytest.raises(VariantFileError, match="already exists") as caught:
        pv.write(path, array(2))
    assert caught.value.reason == "exists"
    pv.write(path, array(2), mode="overwrite")
    assert pv.open(path).read().to_pylist() == [2]


def test_other_filesystems_work(tmp_path):
    system = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())
    pv.write("x/a.parquet", array({"a": 1}), schema="a bigint", filesystem=system)
    assert pv.open("x", filesystem=system).read().to_pylist() == [{"a": 1}]
    assert pv.open((tmp_path / "x").as_uri()).read().to_pylist() == [{"a": 1}]
    assert pv.open("x/*.parquet", filesystem=system).scan({"a": "$.a:int"}).to_arrow()["a"].to_pylist() == [1]


def test_columns_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "a.parquet"
    with pytest.raises(VariantFileError, match="different lengths"):
        pv.write(path, {"v": array(1), "id": pa.array([1, 2])})
    with pytest.raises(VariantFileError, match="no columns"):
        pv.write(path, {})
    with pytest.raises(VariantFileError, match="nope is not a struct column"):
        pv.write(path, {"v": array(1)}, variants=["nope"])
    with pytest.raises(SchemaError, match="Arrow data"):
        pv.write(path, {"v": [object()]})
    unsigned = pa.array([{"metadata": b"\x01\x00\x00", "value": None, "typed_value": 1}], pa.struct(
        {"metadata": pa.binary(), "value": pa.binary(), "typed_value": pa.uint32()}))  # fmt: skip
    with pytest.raises(SchemaError, match="uint32"):
        pv.write(path, pv.VariantArray(unsigned))
    assert not list(tmp_path.iterdir())


def test_sloppy_storage_becomes_what_the_specification_asks_for(tmp_path):
    """Optional groups, a missing value column, null metadata under a null row, run-end-encoded metadata."""
    path = tmp_path / "a.parquet"
    field = pa.struct({"typed_value": pa.int32()})
    typed = pa.array([{"a": {"typed_value": 5}}, {"a": None}, None, None], pa.struct({"a": field}))
    metadata = pa.array([pv.Variant.from_python({"a": 5}).metadata] * 3 + [None], pa.binary())
    storage = pa.StructArray.from_arrays(
        [typed, metadata], ["typed_value", "metadata"], mask=pa.array([False, False, False, True])
    )
    pv.write(path, pv.VariantArray(storage))
    assert pv.open(path).validate().ok
    assert [None if item is None else item.to_json() for item in pv.open(path).read()] == [
        '{"a":5}',
        "{}",
        "null",
        None,
    ]
    text = str(pq.ParquetFile(path).schema)
    assert "required group field_id=-1 a" in text
    assert text.count("optional binary field_id=-1 value;") == 2
    encoded = pa.RunEndEncodedArray.from_arrays(pa.array([3], pa.int32()), pa.array([b"\x01\x00\x00"]))
    plain = pa.StructArray.from_arrays(
        [encoded, pa.array([b"\x00", b"\x04", None], pa.binary())], ["metadata", "value"]
    )
    pv.write(path, pv.VariantArray(plain), mode="overwrite")
    assert [item.to_json() for item in pv.open(path).read()] == ["null", "true", "null"]
    assert pv.open(path).validate().ok


def without_some(rows, kind, draw):
    """Rows of a storage some of which, or of whose elements, lack both columns."""

    def group(cells):
        if cells is None or draw(st.integers(0, 3)) == 0:
            return None if cells is None else cells | dict.fromkeys(["value", "typed_value"])
        return cells | {"typed_value": typed(cells["typed_value"])}

    def typed(cells):
        if isinstance(cells, list):
            return [draw(st.sampled_from([group(cell), None])) for cell in cells]
        if isinstance(cells, dict):
            return {name: each and each | {"typed_value": typed(each["typed_value"])} for name, each in cells.items()}
        return cells

    return pa.array([group(row) for row in rows], kind)


@settings(max_examples=25)
@given(data=st.data())
def test_rows_and_elements_without_a_value_are_written_as_variant_null(data, tmp_path_factory):
    """Readers take them for it; a file may not have them."""
    rows = data.draw(st.lists(st.none() | testing.variants(max_leaves=8), min_size=1, max_size=5))
    schema = data.draw(testing.shredding_schemas().filter(lambda each: each.kind != "variant"))
    whole = pv.shred_variant(pv.VariantArray.from_variants(rows), schema).storage
    lacking = pv.VariantArray(without_some(whole.to_pylist(), whole.type, data.draw))
    path = tmp_path_factory.mktemp("w") / "a.parquet"
    pv.write(path, lacking, writer=data.draw(st.sampled_from(["native", "pyarrow"])))
    report = pv.open(path).validate()
    assert report.ok, str(report)
    assert list(pv.open(path).read()) == list(lacking)


def test_the_file_says_whether_a_nan_is_in_it(tmp_path):
    for number, value in enumerate((1.5, float("nan"))):
        pv.write(tmp_path / f"{number}.parquet", array({"a": value}), schema="a double")
    known = [pq.ParquetFile(tmp_path / f"{number}.parquet").metadata.metadata for number in (0, 1)]
    assert known[0][NO_NAN_KEY] == b"true"
    assert NO_NAN_KEY not in known[1]


def test_rows_are_sorted_only_on_request(tmp_path):
    rows = array(*({"n": n} for n in (3, 1, 2)), {"n": None}, None)
    pv.write(tmp_path / "a.parquet", rows, schema="n int")
    pv.write(tmp_path / "b.parquet", {"v": rows, "id": pa.array(range(5))}, sort_by=["$.n:int"], schema="n int")
    assert pv.open(tmp_path / "a.parquet").read()[0].to_python() == {"n": 3}
    table = pv.open(tmp_path / "b.parquet").to_arrow()
    assert table["id"].to_pylist() == [1, 2, 0, 3, 4]
    pv.write(tmp_path / "c.parquet", {"v": rows, "id": pa.array([2, 1, 0, 4, 3])}, sort_by=["id"])
    assert pv.open(tmp_path / "c.parquet").to_arrow()["id"].to_pylist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("layout", ["unshredded", "final", "draft-paths", "draft-object"])
def test_every_layout_is_sorted(tmp_path, layout):
    rows = array(*({"n": n} for n in (3, 1, 2)), {"n": "x"}, None)
    pv.write(tmp_path / "a.parquet", rows, sort_by="$.n:int", schema="n int", layout=layout)
    options = {"schema": "n int", "layout": layout, "sort_by": "$.n"}
    pv.open(tmp_path / "a.parquet").rewrite(tmp_path / "b.parquet", **options)
    for name in ("a", "b"):
        found = pv.open(tmp_path / f"{name}.parquet").read().to_pylist()
        assert found[:3] == [{"n": 1}, {"n": 2}, {"n": 3}]
        assert None in found[3:] and {"n": "x"} in found[3:] and len(found) == 5


def test_values_of_every_type_survive(tmp_path):
    values = [1, Decimal("1.50"), 2.5, True, "x", b"\x00", uuid.UUID(int=7), [1, [2]], {"a": {"b": []}}]
    pv.write(tmp_path / "a.parquet", array(*values), schema="infer")
    assert pv.open(tmp_path / "a.parquet").read().to_pylist() == values


def test_batches_may_come_in_any_arrow_form(tmp_path):
    storage = array({"a": 1}, "x").storage
    plain = {name: storage.field(name).cast(pa.binary()) for name in ("metadata", "value")}
    large = [plain["value"].cast(pa.large_binary()), plain["metadata"].cast(pa.large_binary())]
    views = [plain["metadata"].cast(pa.binary_view()), plain["value"].cast(pa.binary_view())]
    forms = [
        storage,
        pa.StructArray.from_arrays(list(plain.values()), list(plain)),
        pa.StructArray.from_arrays(large, ["value", "metadata"]),
        pa.StructArray.from_arrays(views, ["metadata", "value"]),
    ]
    with pv.VariantWriter(tmp_path / "a.parquet") as writer:
        for form in forms:
            writer.write_batch({"v": pv.VariantArray(form)})
    assert pv.open(tmp_path / "a.parquet").read().to_pylist() == [{"a": 1}, "x"] * 4


@pytest.mark.parametrize(
    "options", [{"compression": "zip"}, {"compression": "snappy", "compression_level": 3}, {"row_group_bytes": 0}]
)
def test_options_are_checked_before_anything_is_made(options, tmp_path):
    with pytest.raises(VariantFileError) as caught:
        pv.write(tmp_path / "deep" / "a.parquet", array(1), **options)
    assert caught.value.reason == "bad-option"
    assert not list(tmp_path.iterdir())


def test_every_codec_is_read_back(tmp_path):
    for codec in ("zstd", "snappy", "gzip", "lz4", "brotli", "none"):
        pv.write(tmp_path / f"{codec}.parquet", array({"a": 1}), compression=codec)
    assert pv.open(tmp_path).read().to_pylist() == [{"a": 1}] * 6


class _Unregistered(pa.ExtensionType):
    def __init__(self, storage):
        super().__init__(storage, "arrow.parquet.variant")

    def __arrow_ext_serialize__(self):
        return b""


def test_an_extension_type_does_not_crash_the_writer(tmp_path):
    storage = array({"a": 1}, "x").storage
    typed = pa.ExtensionArray.from_storage(_Unregistered(storage.type), storage)
    inside = pa.StructArray.from_arrays([typed], ["inner"])
    lists = pa.ListArray.from_arrays([0, 1, 2], typed)
    info = pv.write(tmp_path / "a.parquet", {"v": typed, "s": inside, "l": lists})
    assert set(info.variants) == {("v",), ("s", "inner"), ("l", "list", "element")}
    assert pv.open(tmp_path / "a.parquet").read("v").to_pylist() == [{"a": 1}, "x"]
    assert pv.open(tmp_path / "a.parquet").read("s.inner").to_pylist() == [{"a": 1}, "x"]
    shredded = pv.write(tmp_path / "b.parquet", pa.table({"v": typed}), schema="a int")
    assert ("v", "typed_value", "a", "typed_value") in shredded.statistics


def test_field_ids_stay(tmp_path):
    storage = array({"a": 1}).storage
    ids = [{b"PARQUET:field_id": str(number).encode()} for number in (7, 8)]
    schema = pa.schema([
        pa.field("v", storage.type, metadata={**ids[0], b"ARROW:extension:name": b"arrow.parquet.variant"}),
        pa.field("id", pa.int32(), metadata=ids[1]),
    ])  # fmt: skip
    pv.write(tmp_path / "a.parquet", pa.table([storage, pa.array([1], pa.int32())], schema=schema))
    pv.open(tmp_path / "a.parquet").rewrite(tmp_path / "b.parquet", schema="a int")
    fields = pq.read_schema(tmp_path / "b.parquet")
    assert [field.metadata for field in fields] == ids


def test_null_rows_are_counted(tmp_path):
    storage = array(None, 1, None).storage
    struct = pa.StructArray.from_arrays([storage], ["list"], mask=pa.array([False, True, False]))
    with pv.VariantWriter(tmp_path / "a.parquet", variants=["s.list"]) as writer:
        for _ in range(2):
            writer.write_batch({"v": pv.VariantArray(storage), "s": struct})
    assert writer.info is not None
    for place, nulls in {("v",): 4, ("s", "list"): 6}.items():
        known = writer.info.statistics[*place, "metadata"]
        assert (known.values, known.nulls) == (6, nulls)


def test_a_path_without_a_type_is_sorted_as_what_it_is(tmp_path):
    numbers = [10, 9, "x", 100, None, 1, "a", 2.5]
    for name, schema in (("plain", None), ("shredded", "n bigint")):
        pv.write(tmp_path / name, array(*({"n": n} for n in numbers)), schema=schema, sort_by="$.n")
    plain, shredded = (
        [row["n"] for row in pv.open(tmp_path / name).read().to_pylist()] for name in ("plain", "shredded")
    )
    assert plain == [1, 2.5, 9, 10, 100, "a", "x", None]
    # As bigint, 2.5 is 2.
    assert shredded == [1, 2.5, 9, 10, 100, "a", "x", None]


def test_a_whole_file_is_sorted_whatever_its_batches(tmp_path):
    with VariantWriter(tmp_path / "a.parquet", sort_by=["$.n"], row_group_bytes=2000) as writer:
        for start in range(0, 1000, 100):
            rows = [{"n": n * 7919 % 1000} for n in range(start, start + 100)]
            writer.write_batch({"v": pv.shred_variant(array(*rows), "n bigint")})
    assert [row["n"] for row in pv.open(tmp_path / "a.parquet").read().to_pylist()] == list(range(1000))
    report = pv.open(tmp_path / "a.parquet").scan({"n": "$.n:bigint"}, "n = 500").explain()
    assert (report.row_groups_read, report.row_groups_total > 4) == (1, True)


@pytest.mark.parametrize("format", ["parquet", "delta", "iceberg"])
@pytest.mark.parametrize(
    ("metadata", "value", "reason"),
    [(b"\x11\x01\x00\x01a", b"\x02\x02\x00\x00\x00\x02\x04\x0c\x01\x0c\x02", "duplicate-key"),
     (b"\x12\x01\x00\x01a", b"\x0c\x01", "bad-version"),
     (b"\x11\x01\x00\x01a", b"\x0c", "truncated")],
)  # fmt: skip
def test_a_value_that_no_reader_accepts_is_not_written(tmp_path, format, metadata, value, reason):
    sound = pv.Variant.from_python({"a": 1})
    storage = pa.StructArray.from_arrays(
        [pa.array([sound.metadata, metadata]), pa.array([sound.value, value])], names=["metadata", "value"]
    )
    with pytest.raises(pv.VariantError) as caught:
        pv.write(tmp_path / "out.parquet", pv.VariantArray.from_arrow(storage), format=format)
    assert (caught.value.reason, caught.value.row) == (reason, 1)
    assert not (tmp_path / "out.parquet").is_file()
