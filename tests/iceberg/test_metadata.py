"""Table metadata, manifests and manifest lists: read back what was written, old versions, damage."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parquet_variant.arrays.capsules import EXTENSION_METADATA
from parquet_variant.errors import IcebergError, VariantError
from parquet_variant.tables.iceberg.metadata.avro import read_avro, write_avro
from parquet_variant.tables.iceberg.metadata.manifests import (
    Content,
    DataFile,
    ManifestEntry,
    Status,
    read_manifest,
    read_manifest_list,
    write_manifest,
    write_manifest_list,
)
from parquet_variant.tables.iceberg.metadata.partitioning import SortOrder, sort_order_of, spec_of
from parquet_variant.tables.iceberg.metadata.schema import Schema, schema_of_arrow
from parquet_variant.tables.iceberg.metadata.table_metadata import Reference, TableMetadata, new_metadata
from parquet_variant.tables.iceberg.metadata.updates import (
    TableChange,
    apply_change,
    check_requirements,
    requires,
    set_reference,
)
from parquet_variant.tables.schema import VARIANT, arrow_schema, reachable_variants
from parquet_variant.types.targets import VARIANT_STORAGE

ARROW = pa.schema(
    [
        pa.field("id", pa.int64(), False),
        pa.field("ts", pa.timestamp("us", "UTC")),
        pa.field("price", pa.decimal128(20, 2)),
        pa.field("key", pa.uuid()),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("props", pa.struct([pa.field("a", pa.int32()), pa.field("m", pa.map_(pa.string(), pa.float64()))])),
        pa.field("v", VARIANT_STORAGE, metadata=EXTENSION_METADATA),
    ]
)
SPEC = ["day(ts)", "bucket(16, id)", "price", "key", "truncate(5, props.a)"]


def metadata_of(fields: list[str] | None = None) -> TableMetadata:
    schema = schema_of_arrow(ARROW)
    spec = spec_of(SPEC if fields is None else fields, schema)
    return new_metadata("file:///t", schema, spec, sort_order_of(["ts desc", "bucket(4, id)"], schema), {"a": "b"})


def test_a_schema_of_arrow_data_survives_json() -> None:
    schema = schema_of_arrow(ARROW)
    assert [f.id for f in schema.fields] == list(range(1, 8))
    assert schema.highest_id == 7 + 1 + 2 + 2
    again = Schema.parse(json.loads(json.dumps(schema.to_json())))
    assert again.to_json() == schema.to_json()
    assert arrow_schema(again.struct) == arrow_schema(schema.struct)
    assert schema.fields[-1].type == VARIANT
    assert list(reachable_variants(schema.struct)) == [("v",)]
    assert schema.find("props.a")[1].id == schema.struct.get("props").type.fields[0].id  # type: ignore[union-attr]


def test_unknown_members_of_the_metadata_are_kept() -> None:
    document = json.loads(metadata_of().to_bytes())
    document["future"] = {"x": [1]}
    document["schemas"][0]["future"] = 1
    document["schemas"][0]["fields"][0]["future"] = "f"
    document["partition-specs"][0]["fields"][0]["future"] = 2
    metadata = TableMetadata.load(gzip.compress(json.dumps(document).encode()), "x.gz.metadata.json")
    assert json.loads(metadata.to_bytes()) == document
    assert metadata.schema.to_json() == document["schemas"][0]
    assert metadata.spec.to_json() == document["partition-specs"][0]


def test_metadata_of_version_1_gets_the_lists_of_version_2() -> None:
    document = {
        "format-version": 1,
        "table-uuid": "u",
        "location": "file:///t/",
        "last-updated-ms": 1,
        "last-column-id": 1,
        "schema": {"type": "struct", "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]},
        "partition-spec": [{"source-id": 1, "name": "id", "transform": "identity"}],
        "current-snapshot-id": -1,
    }
    metadata = TableMetadata.parse(document)
    assert [f.name for f in metadata.schema.fields] == ["id"]
    assert metadata.spec.fields[0].field_id == 1000
    assert metadata.last_partition_id == 1000
    assert metadata.current_snapshot is None
    assert metadata.location == "file:///t"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"format-version": 4}, "unsupported-version"),
        ({"format-version": "3"}, "unsupported-version"),
        ({"location": None}, "bad-metadata"),
        ({"current-schema-id": 7}, "bad-metadata"),
        ({"schemas": {}}, "bad-metadata"),
        ({"schemas": [{"fields": [{"id": 1}]}]}, "bad-schema"),
        (
            {"schemas": [{"schema-id": 0, "fields": [{"id": 1, "name": "a", "required": False, "type": "x"}]}]},
            "bad-schema",
        ),
        ({"default-spec-id": 3}, "bad-metadata"),
        ({"refs": []}, None),
        ({"refs": {"main": {"snapshot-id": 1, "type": "twig"}}}, "bad-metadata"),
        ({"partition-specs": [{"fields": [{}]}]}, "bad-partitioning"),
    ],
)
def test_damaged_metadata_is_refused(change: dict[str, Any], reason: str | None) -> None:
    document = json.loads(metadata_of().to_bytes()) | change
    if reason is None:
        assert TableMetadata.parse(document).references == {}
        return
    with pytest.raises(IcebergError) as caught:
        TableMetadata.load(json.dumps(document).encode(), "m.json")
    assert caught.value.reason == reason
    assert caught.value.file == "m.json"


@given(st.binary(max_size=60))
def test_bytes_that_are_not_metadata_are_refused(data: bytes) -> None:
    for text in (data, b"{" + data, b"\x1f\x8b" + data):
        with pytest.raises(IcebergError):
            TableMetadata.load(text, "m.json")


def data_file(number: int, spec_id: int = 0) -> DataFile:
    return DataFile(
        path=f"file:///t/data/{number}.parquet",
        format="parquet",
        record_count=10 + number,
        size=1000,
        spec_id=spec_id,
        partition=(19000 + number, number % 16, 1420 * number, bytes(15) + bytes([number]), None if number == 2 else 5),
        column_sizes={1: 3},
        value_counts={1: 10, 7: 10},
        null_value_counts={1: 0},
        lower_bounds={1: b"\x00" * 8, 7: b"ab"},
        upper_bounds={1: b"\x01" * 8},
        split_offsets=(4,),
        sort_order_id=0,
    )


def test_manifests_are_read_as_written_and_inherit() -> None:
    metadata = metadata_of()
    added = [ManifestEntry(Status.ADDED, data_file(n), 77) for n in range(1, 4)]
    old = ManifestEntry(Status.EXISTING, replace(data_file(4), first_row_id=500), 76, 3, 3)
    gone = ManifestEntry(Status.DELETED, replace(data_file(5), first_row_id=600), 77, 2, 2)
    data, manifest = write_manifest([*added, old, gone], metadata, metadata.spec, 77)
    manifest = replace(manifest, path="file:///t/metadata/m.avro")
    assert (manifest.added_files, manifest.existing_files, manifest.deleted_files) == (3, 1, 1)
    assert (manifest.added_rows, manifest.existing_rows, manifest.deleted_rows) == (36, 14, 15)
    listed, assigned_rows = write_manifest_list([manifest], 77, 76, 9, 1000)
    assert assigned_rows == 50
    (manifest,) = read_manifest_list(listed, "list")
    assert (manifest.sequence_number, manifest.min_sequence_number, manifest.first_row_id) == (9, 3, 1000)
    entries = list(read_manifest(data, manifest, metadata))
    assert [e.sequence_number for e in entries] == [9, 9, 9, 3, 2]
    assert [e.file.first_row_id for e in entries] == [1000, 1011, 1023, 500, 600]
    assert replace(entries[0].file, first_row_id=None) == data_file(1)
    assert entries[3] == old
    narrow = next(read_manifest(data, manifest, metadata, columns={7}))
    assert narrow.file.lower_bounds == {7: b"ab"}
    assert narrow.file.value_counts == {7: 10}


def test_pyiceberg_reads_our_manifests() -> None:
    pytest.importorskip("pyiceberg")
    import tempfile

    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import ManifestFile as TheirManifest
    from pyiceberg.manifest import read_manifest_list as their_list

    metadata = metadata_of(["day(ts)", "bucket(16, id)"])
    files = [replace(data_file(n), partition=(19000 + n, n)) for n in (1, 2)]
    delete = replace(
        files[0],
        path="file:///t/data/x.puffin",
        format="puffin",
        content=Content.POSITION_DELETES,
        referenced_data_file=files[0].path,
        content_offset=4,
        content_size_in_bytes=40,
    )
    with tempfile.TemporaryDirectory() as folder:
        manifests = []
        for name, entries, deletes in [("d", files, False), ("x", [delete], True)]:
            data, manifest = write_manifest(
                [ManifestEntry(Status.ADDED, f, 77) for f in entries], metadata, metadata.spec, 77, deletes=deletes
            )
            path = f"{folder}/{name}.avro"
            with open(path, "wb") as out:  # noqa: PTH123
                out.write(data)
            manifests.append(replace(manifest, path=path))
        with open(f"{folder}/list.avro", "wb") as out:  # noqa: PTH123
            out.write(write_manifest_list(manifests, 77, None, 1, 0)[0])
        io = PyArrowFileIO()
        theirs: list[TheirManifest] = list(their_list(io.new_input(f"{folder}/list.avro")))
        assert [m.sequence_number for m in theirs] == [1, 1]
        entries = theirs[0].fetch_manifest_entry(io)
        assert [e.data_file.file_path for e in entries] == [f.path for f in files]
        assert [list(e.data_file.partition)[1] for e in entries] == [1, 2]
        assert entries[0].data_file.lower_bounds == files[0].lower_bounds
        assert theirs[1].content.name == "DELETES"


def test_manifest_lists_of_version_1_have_other_names() -> None:
    fields = [
        {"name": "manifest_path", "type": "string", "field-id": 500},
        {"name": "manifest_length", "type": "long", "field-id": 501},
        {"name": "partition_spec_id", "type": "int", "field-id": 502},
        {"name": "added_snapshot_id", "type": ["null", "long"], "default": None, "field-id": 503},
        {"name": "added_data_files_count", "type": ["null", "int"], "default": None, "field-id": 504},
    ]
    record = {
        "manifest_path": "m",
        "manifest_length": 5,
        "partition_spec_id": 0,
        "added_snapshot_id": 3,
        "added_data_files_count": 4,
    }
    data = write_avro({"type": "record", "name": "manifest_file", "fields": fields}, [record], {})
    (manifest,) = read_manifest_list(data, "list")
    assert (manifest.added_files, manifest.existing_files, manifest.sequence_number) == (4, None, 0)


@given(st.data())
def test_damaged_manifests_never_crash(data: st.DataObject) -> None:
    metadata = metadata_of()
    entries = [ManifestEntry(Status.ADDED, data_file(n), 77) for n in range(1, 4)]
    written, manifest = write_manifest(entries, metadata, metadata.spec, 77)
    manifest = replace(manifest, path="m", sequence_number=1)
    damaged = bytearray(written)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
    for text in (bytes(damaged), cut):
        try:
            for _ in read_manifest(text, manifest, metadata):
                pass
            read_manifest_list(text, "list")
        except VariantError:
            pass


def snapshot_json(number: int, sequence: int, first: int, rows: int) -> dict[str, Any]:
    return {
        "snapshot-id": number,
        "sequence-number": sequence,
        "timestamp-ms": 1,
        "manifest-list": "l",
        "summary": {"operation": "append"},
        "schema-id": 0,
        "first-row-id": first,
        "added-rows": rows,
    }


def test_changes_are_checked_and_applied() -> None:
    metadata = metadata_of()
    added = {"action": "add-snapshot", "snapshot": snapshot_json(1, 1, 0, 10)}
    first = TableChange([added, set_reference("main", Reference(1, "branch"))], requires(metadata, refs=["main"]))
    check_requirements(metadata, first.requirements)
    after = apply_change(metadata, first, "file:///t/metadata/v1.metadata.json")
    assert after.integer("next-row-id") == 10
    assert after.integer("last-sequence-number") == 1
    assert after.current_snapshot is not None and after.current_snapshot.id == 1
    assert [entry[1] for entry in after.snapshot_log] == [1]
    assert after.document["metadata-log"][0]["metadata-file"].endswith("v1.metadata.json")
    with pytest.raises(IcebergError) as caught:
        check_requirements(after, first.requirements)
    assert caught.value.reason == "conflict"
    stale = TableChange([{"action": "add-snapshot", "snapshot": snapshot_json(2, 1, 10, 1)}])
    with pytest.raises(IcebergError):
        apply_change(after, stale, None)
    expired = apply_change(after, TableChange([{"action": "remove-snapshots", "snapshot-ids": [1]}]), None)
    assert expired.snapshots == {} and expired.references == {} and expired.snapshot_log == []


def test_the_log_of_metadata_files_has_a_limit() -> None:
    metadata = apply_change(
        metadata_of(),
        TableChange([{"action": "set-properties", "updates": {"write.metadata.previous-versions-max": "2"}}]),
        None,
    )
    for number in range(5):
        metadata = apply_change(metadata, TableChange(), f"v{number}")
    assert [entry["metadata-file"] for entry in metadata.document["metadata-log"]] == ["v3", "v4"]
    assert metadata.sort_order.fields and SortOrder.parse(metadata.sort_order.to_json()) == metadata.sort_order


def test_avro_values_outside_of_python_dates_are_read() -> None:
    schema = {
        "type": "record",
        "name": "r",
        "fields": [
            {"name": "d", "type": {"type": "int", "logicalType": "date"}},
            {"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        ],
    }
    record = {"d": 2**31 - 1, "t": -(2**62)}
    assert list(read_avro(write_avro(schema, [record], {}), "f")) == [record]
