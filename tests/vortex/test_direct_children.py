"""A path of a nullable column reads its own columns, not those of all shredded fields, and absent rows stay null."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import parquet_variant as pv

pytest.importorskip("vortex.expr", reason="vortex-data is not installed")
from parquet_variant.files.vortex.files.trailer import CheckedSource

ROWS = 4000
SCHEMA = "a string, b string, o struct<n: bigint, p: string>"


def table(*, nullable=True):
    numbers = random.Random(1)
    texts = [
        f'{{"a":"a{n % 9}","b":"{numbers.getrandbits(800):x}","o":{{"n":{n},"p":"x"}},"r":{n}}}' for n in range(ROWS)
    ]
    texts[5], texts[6] = "[1]", '{"a":4,"o":"x"}'
    storage = pv.shred_variant(pv.parse_json(texts), SCHEMA).storage
    # Absent rows whose children have values, which is valid in Arrow.
    absent = pa.array([nullable and n % 10 == 0 for n in range(ROWS)])
    columns = [storage.field(index) for index in range(storage.type.num_fields)]
    storage = pa.StructArray.from_arrays(columns, fields=list(storage.type), mask=absent)
    field = pv.VariantArray(storage).arrow_field.with_name("v").with_nullable(nullable)
    return pa.table([pa.array(range(ROWS)), storage], schema=pa.schema([pa.field("id", pa.int64()), field]))


def values(result):
    objects = pv.to_json(pv.VariantArray.from_arrow(result["o"])).to_pylist()
    return result.drop_columns("o").to_pylist(), objects


@pytest.mark.parametrize("layout", ["struct", "columnar"])
def test_a_path_reads_only_its_columns(layout, tmp_path, monkeypatch):
    read = []
    read_at = CheckedSource.read_at

    def counted(source, offset, length):
        data = read_at(source, offset, length)
        read.append(len(data))
        return data

    monkeypatch.setattr(CheckedSource, "read_at", counted)
    columns = {"a": "$.a:string", "n": "$.o.n:int", "r": "$.r:int", "o": "$.o"}
    results = []
    for nullable in (True, False):
        rows = table(nullable=nullable)
        file = tmp_path / f"{nullable}.vortex"
        size = pv.vortex.write(file, rows, layout=layout).bytes
        read.clear()
        assert len(pv.vortex.scan(file, {"a": "$.a:string"}).to_table()) == ROWS
        assert sum(read) < size / 2, (read, size)
        for where in (None, "n > 100 and a = 'a1'"):
            from_vortex = pv.vortex.scan(file, columns, where).to_table()
            pv.parquet.write(tmp_path / "a.parquet", rows, mode="overwrite")
            results.append(values(from_vortex))
            assert results[-1] == values(pv.parquet.scan(tmp_path / "a.parquet", columns, where).to_table())
        both = pv.vortex.scan(file, {"id": "id", "a": "$.a:string", "v": "$"}).to_table()
        assert both["v"].null_count == (ROWS // 10 if nullable else 0) == both["a"].slice(7).null_count + nullable
        assert str(pv.vortex.dtype_of(file)) == ("variant?" if nullable else "variant")
    assert len(results) == 4 and results[0] != results[2]
