"""The annotation changes the schema elements that it must, and not one other byte of a file."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.format.footer import SchemaNode, annotate_footer, footer_bytes, parse_schema
from parquet_variant.files.parquet.format.thrift import STRUCT, ThriftError, read_value, struct_fields
from parquet_variant.layouts.storages import check_fields

NAMES = st.sampled_from(["v", "w", "x.y", "é", "element", "list"])
STORAGE = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary(), False)])


@st.composite
def types(draw, depth=2):
    kind = draw(st.sampled_from(["variant", "int", "struct", "list", "map"] if depth else ["variant", "int"]))
    if kind == "variant":
        return STORAGE
    if kind == "int":
        return draw(
            st.sampled_from([pa.int8(), pa.decimal128(9, 2), pa.timestamp("ns", "UTC"), pa.string(), pa.uuid()])
        )
    if kind == "list":
        return pa.list_(draw(types(depth=depth - 1)))
    if kind == "map":
        return pa.map_(pa.string(), draw(types(depth=depth - 1)))
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    return pa.struct([(name, draw(types(depth=depth - 1))) for name in names])


@st.composite
def files(draw):
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    schema = pa.schema([(name, draw(types())) for name in names])
    sink = io.BytesIO()
    options = {"write_page_index": draw(st.booleans()), "store_schema": draw(st.booleans())}
    pq.write_table(pa.table([pa.nulls(0, kind) for kind in schema.types], schema=schema), sink, **options)
    return sink.getvalue()


def patch_tail(data: bytes, columns: set[tuple[str, ...]]) -> bytes:
    """The file with annotations on exactly the groups at `columns`."""
    footer = footer_bytes(io.BytesIO(data))
    patched = annotate_footer(footer, columns)
    return data[: -8 - len(footer)] + patched + len(patched).to_bytes(4, "little") + data[-4:]


@given(files(), st.data())
def test_only_the_schema_changes(data, draw):
    footer = footer_bytes(io.BytesIO(data))
    nodes = list(parse_schema(footer).walk())
    free = (node for node in nodes if not node.logical and node.repetition != "repeated")
    groups = [node.path for node in free if node.physical is None and node.path]
    wanted = draw.draw(st.sets(st.sampled_from(groups))) if groups else set()
    patched = patch_tail(data, wanted)
    changed = footer_bytes(io.BytesIO(patched))
    assert {node.path for node in parse_schema(changed).walk() if node.annotated} == wanted
    body = len(data) - len(footer)
    assert patched[: body - 8] == data[: body - 8]
    before, _ = read_value(footer, 0, STRUCT)
    after, _ = read_value(changed, 0, STRUCT)
    for path, old, new in zip([node.path for node in nodes], before.pop(2), after.pop(2), strict=True):
        if path in wanted:
            assert new.pop(10) == {16: {1: 1}}
        assert new == old
    assert after == before
    assert patch_tail(patched, set()) == data
    # pyarrow agrees on the whole file.
    assert pq.ParquetFile(pa.BufferReader(patched)).schema_arrow.equals(
        pq.ParquetFile(pa.BufferReader(data)).schema_arrow
    )
    assert str(pq.ParquetFile(pa.BufferReader(patched)).schema).count("(Variant(1))") == len(wanted)


def test_annotating_twice_changes_nothing(tmp_path):
    path = tmp_path / "a.parquet"
    pv.write(path, pv.VariantArray.from_pylist([1]))
    before = path.read_bytes()
    assert pv.open(path).annotate() == ("v",)
    assert path.read_bytes() == before
    assert pv.open(path).annotate([]) == ()
    plain = path.read_bytes()
    assert len(before) - len(plain) == 7
    assert pv.open(path).annotate(["v"]) == ("v",)
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == ["a.parquet"]


def test_a_column_that_is_not_there_cannot_be_annotated(tmp_path):
    path = tmp_path / "a.parquet"
    pv.write(path, pv.VariantArray.from_pylist([1]))
    before = path.read_bytes()
    with pytest.raises(VariantFileError, match=r"nope is not a group.*v"):
        pv.open(path).annotate(["nope"])
    with pytest.raises(VariantFileError, match=r"v\.value is not a group"):
        annotate_footer(footer_bytes(io.BytesIO(before)), [("v", "value")])
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not-parquet"),
        (b'{"a": 1}', "not-parquet"),
        (b"PAR1\x00\x00\x00\x00PAR1", "bad-footer"),
        (b"PAR1\xff\xff\xff\x7fPAR1", "bad-footer"),
        (b"PAR1" + b"\xff" * 40 + b"\x28\x00\x00\x00PAR1", "bad-footer"),
        (b"PAR1\x00\x00\x00\x00PARE", "encrypted"),
    ],
)
def test_a_file_that_is_not_parquet_is_refused(data, reason, tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(data)
    for action in (
        (lambda path: pv.open(path).read()),
        (lambda path: pv.open(path).inspect()),
        (lambda path: pv.open(path).validate()),
        (lambda path: pv.open(path).annotate()),
        (lambda path: pv.open(path).to_arrow()),
    ):
        with pytest.raises(VariantFileError) as caught:
            action(path)
        assert caught.value.reason == reason
        assert caught.value.file == str(path)
        assert "\n" not in str(caught.value)


@given(st.binary(max_size=60))
def test_no_bytes_crash_the_thrift_reader(data):
    try:
        list(struct_fields(data, 0))
        read_value(data, 0, STRUCT)
    except ThriftError:
        pass


@given(files(), st.data())
def test_no_damage_to_a_footer_gets_past(data, draw):
    footer = bytearray(footer_bytes(io.BytesIO(data)))
    place = draw.draw(st.integers(0, len(footer) - 1))
    footer[place] ^= draw.draw(st.integers(1, 255))
    try:
        parse_schema(bytes(footer))
        annotate_footer(bytes(footer), [])
    except VariantFileError as error:
        assert error.reason == "bad-footer"


def test_a_damaged_list_without_children_is_a_group_without_fields():
    typed = SchemaNode("typed_value", ("v", "typed_value"), "optional", None, "LIST")
    assert (typed.is_list, typed.fields, typed.field_count) == (False, {}, 0)
    fields = [SchemaNode(name, ("v", name), "optional", "BYTE_ARRAY", "", leaf=0) for name in ("metadata", "value")]
    check_fields(SchemaNode("v", ("v",), "optional", None, "", [*fields, typed]), "final")
