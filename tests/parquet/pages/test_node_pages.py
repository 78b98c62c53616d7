"""Pages that are made of nodes are those that are made of the Arrow columns of the same nodes: byte by byte."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.arrays.chunked_array import variant_table
from parquet_variant.arrays.variant_array import trusted_array
from parquet_variant.files.parquet.pages.file_writer import PageFileWriter
from parquet_variant.kernels.shredding.json_batch import parse_text, shredded_rows
from parquet_variant.kernels.shredding.schema_table import ShreddedRows
from variant_strategies import json_texts, shredding_schemas


def rows_of(texts: list[str | None], schema: pv.ShreddingSchema) -> ShreddedRows:
    """Rows of JSON texts under a schema; None is SQL NULL."""
    data = [(text or "").encode() for text in texts]
    stops = np.cumsum([len(text) for text in data], dtype=np.int64)
    starts = stops - [len(text) for text in data]
    valid = np.array([text is not None for text in texts], np.uint8)
    tape = parse_text(np.frombuffer(b"".join(data) or b" ", np.uint8), starts, stops, valid).tape
    return shredded_rows(tape, schema, per_batch=True)


def file_of(batches: list[list[str | None]], schema: pv.ShreddingSchema, by_nodes: bool, **options: Any) -> bytes:
    """The bytes of a file with a row group of all batches."""
    sink = io.BytesIO()
    first = variant_table({"v": trusted_array(rows_of(batches[0], schema).storage())})
    writer = PageFileWriter(sink, first.schema, [("v",)], **options)
    for texts in batches:
        rows = rows_of(texts, schema)
        if by_nodes:
            writer.write_rows(rows)
        else:
            writer.write_batch(variant_table({"v": trusted_array(rows.storage())}))
    writer.close({})
    return sink.getvalue()


@given(st.data())
def test_files_are_the_same(data: st.DataObject) -> None:
    batches = data.draw(st.lists(st.lists(st.none() | json_texts(max_leaves=12), min_size=1, max_size=8), min_size=1))
    values = [value for texts in batches for value in pv.parse_json(texts)]
    schema = data.draw(shredding_schemas(values, max_depth=5))
    options = {
        "page_bytes": data.draw(st.sampled_from([1, 40, 2 << 20])),
        "use_dictionary": data.draw(st.booleans()),
        "compression": data.draw(st.sampled_from(["none", "snappy"])),
    }
    assert file_of(batches, schema, True, **options) == file_of(batches, schema, False, **options)


@pytest.mark.parametrize(
    "schema",
    [
        "v variant",
        "a int, b struct<c: array<string>, d: decimal(38,3)>",
        "a array<array<struct<b: boolean, c: double>>>",
    ],
)
def test_lists_nulls_and_every_width(schema: str) -> None:
    shapes = [
        '{"a":[[{"b":true,"c":1.5},{"b":null}],[],null,[{"c":2}]],"v":1}', None, "[]", "null", '{"a":[]}', '{"a":[[]]}',
        '{"a":7,"b":{"c":["x",null,"",{"y":1}],"d":12345678901234567890.125}}', '{"b":{"c":[],"d":null},"e":[1,2]}',
        '{"a":[[{"b":false},{"b":1,"c":"x"}],5]}',
    ]  # fmt: skip
    batches = [shapes, shapes[::-1], [None, None], shapes[3:]]
    parsed = pv.ShreddingSchema.from_ddl(schema)
    by_nodes = file_of(batches, parsed, True)
    assert by_nodes == file_of(batches, parsed, False)
    table = pq.read_table(io.BytesIO(by_nodes))
    texts = [text for batch in batches for text in batch]
    assert (
        pv.to_json(pv.VariantArray(table["v"].combine_chunks())).to_pylist()
        == pv.to_json(pv.parse_json(texts)).to_pylist()
    )


def test_a_writer_takes_rows_of_nodes(tmp_path: Any) -> None:
    """The first rows as columns, then straight into pages; a file that is sorted, or of another schema, as columns."""
    texts = [f'{{"n":{number % 7},"x":{number / 3},"s":"{number % 3}"}}' for number in range(100)]
    schema = pv.ShreddingSchema.from_ddl("n bigint, x double")
    for options in ({}, {"sort_by": "$.n"}, {"writer": "pyarrow"}, {"row_group_bytes": 1000}):
        path = tmp_path / f"{len(options)}{'-'.join(options)}.parquet"
        with pv.VariantWriter(path, **options) as writer:
            for start in range(0, 100, 25):
                writer.write_rows("v", rows_of(texts[start : start + 25], schema))
        assert sorted(pv.to_json(pv.open(path).read()).to_pylist()) == sorted(
            pv.to_json(pv.parse_json(texts)).to_pylist()
        )
        assert writer.info.rows == pq.read_metadata(path).num_rows == 100


def test_rows_of_another_column_are_refused(tmp_path: Any) -> None:
    rows = [rows_of(['{"n":1}'], pv.ShreddingSchema.from_ddl("n bigint")) for _ in range(2)]
    with (
        pytest.raises(pv.SchemaError, match="columns"),
        pv.VariantWriter(tmp_path / "a.parquet") as writer,
    ):
        writer.write_rows("v", rows[0])
        writer.write_rows("w", rows[1])
    assert list(tmp_path.iterdir()) == []
