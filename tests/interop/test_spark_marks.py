"""Variants in Arrow data from Spark, which marks the child ``metadata`` with ``{"variant": "true"}``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv
from parquet_variant.encoding.variant import Variant
from parquet_variant.ops.interop.tables import table_of

VALUES = [{"a": 1}, None, [2]]
KIND = pa.struct(
    [pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False, metadata={"variant": "true"})]
)


class Stream:
    """A table of another library, which knows only the Arrow interface."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table.__arrow_c_stream__(requested_schema)


def marked_table() -> pa.Table:
    rows = [None if value is None else Variant.from_python(value) for value in VALUES]
    plain = [None if row is None else {"value": row.value, "metadata": row.metadata} for row in rows]
    column = pa.array(plain, KIND)
    fields = [pa.field("v", KIND), pa.field("n", pa.int64())]
    offsets = pa.array([0, 1, 1, 3], pa.int32())
    return pa.table(
        {
            "id": [1, 2, 3],
            "v": column,
            "s": pa.StructArray.from_arrays([column, pa.array([1, 2, 3])], fields=fields),
            "l": pa.ListArray.from_arrays(offsets, column),
            "m": pa.MapArray.from_arrays(offsets, pa.array(["x", "y", "z"]), column),
        }
    )


FORMS = {
    "table": lambda table: table,
    "batch": lambda table: table.to_batches()[0],
    "reader": lambda table: table.to_reader(),
    "stream": Stream,
}


@pytest.mark.parametrize("form", FORMS)
def test_marked_structs_are_variants_in_files(form: str, tmp_path: Path) -> None:
    pv.write(tmp_path / "a.parquet", FORMS[form](marked_table()))
    report = pv.open(tmp_path / "a.parquet").inspect()
    assert [column.name for column in report.columns] == ["v", "s.v", "l", "m.value"]
    assert pv.open(tmp_path / "a.parquet").read("v").to_pylist() == VALUES
    rows = pv.sql(f"SELECT v:a::int AS x, s.v:a::int AS y FROM '{tmp_path}/a.parquet' ORDER BY id").to_pylist()
    assert rows == [{"x": 1, "y": 1}, {"x": None, "y": None}, {"x": None, "y": None}]


@pytest.mark.parametrize("form", FORMS)
def test_marked_structs_are_variants_in_tables(form: str, tmp_path: Path) -> None:
    pv.write(tmp_path / "table", FORMS[form](marked_table()), format="delta")
    assert pv.open(tmp_path / "table").read("v").to_pylist() == VALUES
    update = marked_table().slice(0, 1).set_column(1, "v", pa.array([_row([9])], KIND))
    merge = pv.open(tmp_path / "table").merge(FORMS[form](update), "target.id = source.id")
    merge.when_matched_update_all().execute()
    assert pv.open(tmp_path / "table").read("v").to_pylist().count([9]) == 1


def _row(value: Any) -> dict[str, bytes]:
    variant = Variant.from_python(value)
    return {"value": variant.value, "metadata": variant.metadata}


@pytest.mark.parametrize("form", FORMS)
def test_marked_structs_are_variants_in_queries_and_vortex_files(form: str, tmp_path: Path) -> None:
    data = FORMS[form](marked_table().select(["id", "v"]))
    assert pv.sql("SELECT v:a::int AS x FROM t ORDER BY id", t=data).to_pylist() == [{"x": 1}, {"x": None}, {"x": None}]
    pv.write(tmp_path / "a.vortex", FORMS[form](marked_table().select(["id", "v"])))
    assert pv.open(tmp_path / "a.vortex").read().to_pylist() == VALUES


@pytest.mark.parametrize("form", FORMS)
def test_marked_structs_are_variants_in_memory(form: str) -> None:
    assert pv.VariantArray.from_arrow(FORMS[form](marked_table()), "v").to_pylist() == VALUES
    assert pv.VariantArray.from_arrow(FORMS[form](marked_table().select(["id", "v"]))).to_pylist() == VALUES


@pytest.mark.spark
def test_a_data_frame_of_spark_is_written_as_it_is(spark: Any, tmp_path: Path) -> None:
    frame = spark.sql("""SELECT id, parse_json('{"a": 1}') AS v, array(parse_json('2')) AS l FROM range(3)""")
    pv.write(tmp_path / "table", frame.toArrow(), format="delta")
    assert pv.open(tmp_path / "table").read("v").to_pylist() == [{"a": 1}] * 3
    pv.write(tmp_path / "a.parquet", frame.toArrow())
    assert [column.name for column in pv.open(tmp_path / "a.parquet").inspect().columns] == ["v", "l"]


def test_nested_variants_may_have_null_children_under_a_null_struct():
    values = pa.array([b"\x0c\x01", None, b"\x0c\x02"], pa.binary())
    metadata = pa.array([b"\x01\0\0", None, b"\x01\0\0"], pa.binary())
    variants = pa.StructArray.from_buffers(KIND, 3, [pa.py_buffer(b"\x05")], children=[values, metadata])
    offsets = pa.array([0, 2, 3], pa.int32())
    structs = pa.StructArray.from_arrays([variants], fields=[pa.field("x", KIND)])
    lists = pa.ListArray.from_arrays(offsets, variants, type=pa.list_(pa.field("element", KIND)))
    maps = pa.MapArray.from_arrays(
        offsets, pa.array(["a", "b", "c"]), variants, type=pa.map_(pa.string(), pa.field("value", KIND))
    )
    for array in (variants, structs, lists, maps):
        column = table_of({"c": array}).column("c")
        assert column.null_count == array.null_count
        assert len(column) == len(array)
    assert table_of({"c": structs}).column("c").combine_chunks().field(0).is_null().to_pylist() == [False, True, False]
