"""Columns of extension types made in Python, which have no hash, and empty lists of them, which Arrow cannot make."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import parquet_variant as pv


class Celsius(pa.ExtensionType):
    def __init__(self) -> None:
        super().__init__(pa.int64(), "tests.celsius")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Celsius:
        return cls()


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    pa.register_extension_type(Celsius())
    yield
    pa.unregister_extension_type("tests.celsius")


def _column(kind: pa.DataType, values: list[Any]) -> pa.Array:
    return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))


def _table() -> dict[str, Any]:
    x = _column(Celsius(), [1, 2, None])
    ids = _column(pa.uuid(), [b"x" * 16] * 3)
    lists = {name: pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), each) for name, each in
             {"xs": x, "ids": ids}.items()}  # fmt: skip
    return {"x": x, **lists, "v": pv.parse_json(['{"a":1}', '{"a":2}', "3"])}


def test_they_are_written_and_read(tmp_path: Path) -> None:
    file, table = tmp_path / "v.parquet", _table()
    pv.write(file, table, schema="infer")
    whole = pv.open(file).to_arrow()
    assert whole["x"].type == Celsius() and whole["x"].to_pylist() == [1, 2, None]
    found = pv.open(file).scan({"x": "x", "xs": "xs", "ids": "ids"}, column="v").to_arrow()
    assert found["x"].type == Celsius() and found["xs"].to_pylist() == [[1], [2], [None]]
    assert pv.open(file).scan({"ids": "ids", "a": "$.a:int"}, "a > 9", column="v").to_arrow().num_rows == 0
    assert pv.open(file).scan({"x": "x", "a": "$.a:int"}, "a > 1", column="v").to_arrow()["x"].to_pylist() == [2]
    for _ in range(2):  # planned first, then from the cache
        answer = pv.sql(f"SELECT x, xs, ids, v:a::int AS a FROM '{file}' WHERE v:a::int > 1").to_arrow()
        assert answer["xs"].to_pylist() == [[2]]
    assert pv.sql(f"SELECT ids, xs FROM '{file}' WHERE v:a::int > 9").to_arrow().num_rows == 0


def test_where_no_variant_can_be_made_of_them_is_an_error(tmp_path: Path) -> None:
    x, v = _table()["x"], _table()["v"]
    storage = pa.StructArray.from_arrays([*v.storage.flatten(), x], ["metadata", "value", "typed_value"])
    for kind in (Celsius(), pa.list_(Celsius())):
        with pytest.raises(pv.CastError, match="cannot cast a Variant to"):
            pv.variant_get(v, "$.a", kind)
        with pytest.raises(pv.SchemaError):
            pv.ShreddingSchema.from_arrow(kind)
    with pytest.raises(pv.CastError, match="has no Variant type"):
        pv.cast_to_variant(x)
    with pytest.raises(pv.SchemaError, match="not a shredded value type"):
        pv.to_json(storage)
    with pytest.raises(pv.VariantError, match="table formats do not have"):
        pv.write(tmp_path / "t", {"x": x, "v": v}, format="delta")
