"""An Iceberg table is not a directory of Parquet files: its metadata says which files and rows are current."""

from __future__ import annotations

import base64
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv


@pytest.mark.parametrize("name", ["read", "inspect", "validate", "optimize"])
def test_operations_on_parquet_directories_refuse_an_iceberg_table(tmp_path: Path, name: str) -> None:
    table = tmp_path / "table"
    pv.write(table, {"id": pa.array([1, 2]), "v": pv.parse_json(["1", "2"])}, format="iceberg")
    pv.open(table).delete("id = 1")
    with pytest.raises(pv.VariantFileError) as caught:
        getattr(pv.open(table, format="parquet"), name)()
    assert caught.value.reason == "iceberg-table"


def test_an_ingest_of_parquet_files_refuses_an_iceberg_table(tmp_path: Path) -> None:
    table, source = tmp_path / "table", tmp_path / "rows.ndjson"
    pv.write(table, {"v": pv.parse_json(["1"])}, format="iceberg")
    source.write_text('{"a": 1}\n')
    with pytest.raises(pv.VariantFileError) as caught:
        pv.ingest(source, table, format="parquet", mode="append")
    assert caught.value.reason == "exists"


def test_a_json_column_of_an_iceberg_table_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "table"
    pv.write(table, {"payload": pa.array(['{"a": 1}'])}, format="iceberg")
    with pytest.raises(pv.VariantFileError) as caught:
        pv.ingest(table, tmp_path / "rows", json_column="payload")
    assert caught.value.reason == "iceberg-table"


def test_the_arrow_schema_in_a_file_has_field_ids(tmp_path: Path) -> None:
    """Readers in Rust take field ids from there, and Sail reads null without them."""
    rows = {"id": pa.array([1]), "m": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32()))}
    pv.write(tmp_path / "t", rows, format="iceberg")
    (file,) = (tmp_path / "t" / "data").iterdir()
    stored = pa.ipc.read_schema(pa.BufferReader(base64.b64decode(pq.read_metadata(file).metadata[b"ARROW:schema"])))
    key = b"PARQUET:field_id"
    fields = [*stored, stored.field("m").type.key_field, stored.field("m").type.item_field]
    assert [(field.metadata or {}).get(key) for field in fields] == [b"1", b"2", b"3", b"4"]
