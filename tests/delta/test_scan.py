"""Scans of tables: partitions, deleted rows, mapped columns, files that lack a column, other processes."""

from __future__ import annotations

import json
import pickle
import shutil
import struct
import uuid
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.errors import TableError
from parquet_variant.tables.delta import z85


def test_typed_paths_ordinary_and_partition_columns(make_table: Callable[..., Path]) -> None:
    table = make_table(6, partition_by=["p"])
    found = (
        pv.open(table)
        .scan({"id": ("$.id", "long"), "p": "p", "v": "v", "props": "$.props"}, "k >= 3 and p = 'p1'")
        .to_arrow()
    )
    assert found["id"].to_pylist() == [3, 5]
    assert found["p"].to_pylist() == ["p1", "p1"]
    assert [row["name"] for row in pv.VariantArray(found["v"].combine_chunks()).to_pylist()] == ["n00003", "n00005"]
    assert pv.VariantArray(found["props"].combine_chunks()).to_pylist() == [{"a": 3}, {"a": 0}]
    assert found.schema.field("id").type == pa.int64()


@pytest.mark.parametrize("threads", [1, 3])
def test_rows_come_in_order_whatever_the_threads(tmp_path: Path, threads: int) -> None:
    table, rows = tmp_path / "t", 5000
    for start in range(0, 4 * rows, rows):
        numbers = range(start, start + rows)
        data = {"k": pa.array(list(numbers)), "v": pv.parse_json([f'{{"n": {n}, "s": "{n:0100}"}}' for n in numbers])}
        pv.write(table, data, format="delta", mode="append", row_group_bytes=1 << 17)
    pv.open(table).delete("k % 7 = 3")  # the deletion vectors name rows of several row groups
    kept = [number for number in range(4 * rows) if number % 7 != 3]
    paths = {"n": "$.n:bigint", "s": "$.s:string"}
    assert pv.open(table).scan(paths, threads=threads).to_arrow()["n"].to_pylist() == kept
    some = pv.open(table).scan(paths, "n >= 777 and n < 15000", threads=threads).to_arrow()
    assert some["s"].to_pylist() == [f"{number:0100}" for number in kept if 777 <= number < 15000]
    assert pv.open(table).scan(["k"], threads=threads).to_arrow()["k"].to_pylist() == kept
    assert pv.open(table).to_arrow(threads=threads)["k"].to_pylist() == kept
    assert pv.sql("SELECT count(*) AS n FROM t WHERE v:n::int > 10", t=table, threads=threads).to_pylist() == [
        {"n": len([number for number in kept if number > 10])}
    ]


def test_a_scan_and_its_tasks_go_to_other_processes(make_table: Callable[..., Path]) -> None:
    table = make_table(5, 5, 5)
    query = pv.open(table).scan({"id": ("$.id", "long")}, "id >= 3")
    tasks = query.tasks(task_bytes=1)
    assert len(tasks) == 3
    found = []
    for task in tasks:
        other, work = pickle.loads(pickle.dumps((query, task)))
        assert other.schema == query.schema
        found += [n for part in other.read(work) for n in part["id"].to_pylist()]
    assert sorted(found) == list(range(3, 15))


def test_a_scan_that_goes_to_other_processes_carries_no_files(make_table: Callable[..., Path]) -> None:
    table = make_table(*[1] * 40)
    query = pv.open(table).scan({"id": ("$.id", "long")})
    assert query.plan.current.files["stats"].nbytes > len(pickle.dumps(query))


def test_files_older_than_a_column_give_nulls(tmp_path: Path) -> None:
    table = tmp_path / "t"
    pv.write(table, {"a": pa.array([1, 2])}, format="delta")
    first = pv.open(table).snapshot
    second = tmp_path / "other"
    pv.write(second, {"a": pa.array([3]), "v": pv.parse_json(['{"x": 1}'])}, format="delta")
    later = pv.open(second).snapshot
    (file,) = second.glob("*.parquet")
    shutil.copy(file, table / file.name)
    actions = [{"protocol": later.protocol.to_dict()}, {"metaData": later.metadata.to_dict()}]
    add = json.loads((second / "_delta_log" / f"{0:020}.json").read_text().splitlines()[-1])
    (table / "_delta_log" / f"{first.version + 1:020}.json").write_text(
        "".join(json.dumps(action) + "\n" for action in [*actions, add])
    )
    assert sorted(pv.open(table).scan({"x": "$.x:int", "a": "a"}).to_arrow().to_pylist(), key=lambda r: r["a"]) == [
        {"x": None, "a": 1}, {"x": None, "a": 2}, {"x": 1, "a": 3},
    ]  # fmt: skip
    assert pv.open(table).scan({"a": "a"}, '"$.x:int" is null and a > 1').to_arrow().to_pylist() == [{"a": 2}]
    assert sorted(pv.open(table).to_arrow()["a"].to_pylist()) == [1, 2, 3]


def bitmap(rows: list[int]) -> bytes:
    """A 64-bit roaring bitmap of small numbers: one bucket, one array container."""
    container = struct.pack("<IIHHI", 12346, 1, 0, len(rows) - 1, 16) + struct.pack(f"<{len(rows)}H", *rows)
    return struct.pack("<iQI", 1681511377, 1, 0) + container


def delete_rows(table: Path, rows: list[int], storage: str, damage: bool = False) -> None:
    """Adds a deletion vector to the only file of the table, as another writer would."""
    found = pv.open(table).snapshot
    data = bitmap(rows)
    vector: dict[str, Any] = {"sizeInBytes": len(data), "cardinality": len(rows) + damage}
    if storage == "i":
        vector |= {"storageType": "i", "pathOrInlineDv": z85.encode(data)}
    else:
        name = uuid.uuid4()
        block = struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        (table / f"deletion_vector_{name}.bin").write_bytes(b"\x01" + block)
        vector |= {"storageType": "u", "pathOrInlineDv": z85.encode(name.bytes), "offset": 1}
    if storage == "p":
        vector |= {"storageType": "p", "pathOrInlineDv": (table / f"deletion_vector_{name}.bin").as_uri()}
    (row,) = found.files.select(["path", "size", "stats"]).to_pylist()
    protocol = found.protocol.to_dict()
    for key in ("readerFeatures", "writerFeatures"):
        protocol[key] = [*protocol[key], "deletionVectors"]
    common = {"path": row["path"], "dataChange": True, "partitionValues": {}, "size": row["size"]}
    actions = [
        {"protocol": protocol},
        {"remove": common | {"deletionTimestamp": 1}},
        {"add": common | {"modificationTime": 1, "stats": row["stats"], "deletionVector": vector}},
    ]
    commit = table / "_delta_log" / f"{found.version + 1:020}.json"
    commit.write_text("".join(json.dumps(action) + "\n" for action in actions))


@pytest.mark.parametrize("storage", ["i", "u", "p"])
def test_deleted_rows_are_gone_everywhere(make_table: Callable[..., Path], storage: str) -> None:
    table = make_table(10)
    delete_rows(table, [0, 3, 9], storage)
    left = [1, 2, 4, 5, 6, 7, 8]
    assert [row["id"] for row in pv.open(table).read().to_pylist()] == left
    assert pv.open(table).scan({"id": "$.id:long"}).to_arrow()["id"].to_pylist() == left
    assert pv.open(table).scan({"id": "$.id:long"}, "id > 2 and k < 6").to_arrow()["id"].to_pylist() == [4, 5]
    assert pv.open(table).scan({"id": "$.id:long"}, "id = 3").to_arrow().num_rows == 0
    assert pv.open(table, version=0).to_arrow().num_rows == 10
    result = pv.open(table).optimize()
    assert (result.files_removed, result.files_added) == (1, 1)
    assert pv.open(table).snapshot.files["deletionVector"].null_count == 1
    assert [row["id"] for row in pv.open(table).read().to_pylist()] == left


def test_a_deletion_vector_that_contradicts_the_log_is_an_error(make_table: Callable[..., Path]) -> None:
    table = make_table(10)
    delete_rows(table, [0, 3], "u", damage=True)
    for call in ((lambda path: pv.open(path).read()), lambda t: pv.open(t).scan({"id": "$.id:long"}).to_arrow()):
        with pytest.raises(TableError) as caught:
            call(table)
        assert caught.value.reason == "bad-deletion-vector"


def test_a_deletion_vector_file_that_is_damaged_is_an_error(make_table: Callable[..., Path]) -> None:
    table = make_table(10)
    delete_rows(table, [0, 3], "u")
    (file,) = table.glob("deletion_vector_*.bin")
    data = bytearray(file.read_bytes())
    data[-6] ^= 1
    file.write_bytes(data)
    with pytest.raises(TableError, match="checksum"):
        pv.open(table).read()
    file.unlink()
    with pytest.raises(TableError, match="missing"):
        pv.open(table).read()


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_columns_are_found_by_physical_name_or_id(make_table: Callable[..., Path], mode: str) -> None:
    table = make_table(4)
    found = pv.open(table).snapshot
    (row,) = found.files.select(["path", "size", "stats"]).to_pylist()
    physical = {"k": "col-1", "p": "col-2", "v": "col-3"}
    # What a writer with column mapping would have written: physical names, and field ids.
    v = pv.open(table).read().storage
    plain = [v.field("metadata").cast(pa.binary()), v.field("value")]
    arrays = [
        pa.array([0, 1, 2, 3]),
        pa.array(["a", "b", "c", "d"]),
        pa.StructArray.from_arrays(plain, ["metadata", "value"]),
    ]
    fields = [
        pa.field(name if mode == "name" else f"renamed-{n}", array.type, metadata={"PARQUET:field_id": str(n + 1)})
        for n, (name, array) in enumerate(zip(physical.values(), arrays, strict=True))
    ]
    pq.write_table(pa.table(arrays, schema=pa.schema(fields)), table / "mapped.parquet")
    schema = json.loads(found.metadata.schema_string)
    for index, field in enumerate(schema["fields"]):
        field["metadata"] = {
            "delta.columnMapping.id": index + 1, "delta.columnMapping.physicalName": physical[field["name"]],
        }  # fmt: skip
        field["name"] = field["name"].upper() + " new"
    stats = row["stats"]
    for name, column in physical.items():
        stats = stats.replace(f'"{name}":', f'"{column}":')
    metadata = found.metadata.to_dict() | {"schemaString": json.dumps(schema)}
    metadata["configuration"] = dict(metadata["configuration"]) | {"delta.columnMapping.mode": mode}
    protocol = found.protocol.to_dict()
    for key in ("readerFeatures", "writerFeatures"):
        protocol[key] = [*protocol[key], "columnMapping"]
    added = {
        "path": "mapped.parquet",
        "partitionValues": {},
        "size": 1,
        "modificationTime": 1,
        "dataChange": True,
        "stats": stats,
    }
    actions = [
        {"protocol": protocol}, {"metaData": metadata}, {"add": added},
        {"remove": {"path": row["path"], "dataChange": True}},
    ]  # fmt: skip
    (table / "_delta_log" / f"{1:020}.json").write_text("".join(json.dumps(a) + "\n" for a in actions))
    whole = pv.open(table).to_arrow()
    assert whole.column_names == ["K new", "P new", "V new"]
    assert whole["K new"].to_pylist() == [0, 1, 2, 3]
    assert [r["id"] for r in pv.open(table).read().to_pylist()] == [0, 1, 2, 3]
    query = pv.open(table).scan({"id": "$.id:long", "k": "K new"}, "id >= 1 and k < 3")
    assert query.to_arrow().to_pylist() == [{"id": 1, "k": 1}, {"id": 2, "k": 2}]
    assert len(pv.open(table).scan({"id": "$.id:long"}, "id > 3").plan.pruned.files) == 0
    assert len(pv.open(table).scan({"k": "K new"}, "k > 3").plan.pruned.files) == 0


def test_the_variant_column_must_be_named_if_there_are_several(tmp_path: Path) -> None:
    data = {"v": pv.parse_json(['{"x": 1}']), "w": pv.parse_json(['{"x": 2}'])}
    pv.write(tmp_path / "t", data, format="delta")
    with pytest.raises(TableError, match="v, w"):
        pv.open(tmp_path / "t").scan({"x": "$.x:int"})
    with pytest.raises(TableError, match="v, w"):
        pv.open(tmp_path / "t").read()
    assert pv.open(tmp_path / "t").scan({"x": "$.x:int"}, column="w").to_arrow().to_pylist() == [{"x": 2}]
    assert pv.open(tmp_path / "t").read("w").to_pylist() == [{"x": 2}]
    found = pv.open(tmp_path / "t").scan({"w": "w"}).to_arrow()
    assert pv.VariantArray(found["w"].combine_chunks()).to_pylist() == [{"x": 2}]
    both = pv.open(tmp_path / "t").scan({"x": "$.x:int", "w": "w"}, column="v").to_arrow()
    assert both["x"].to_pylist() == [1] and pv.VariantArray(both["w"]).to_pylist() == [{"x": 2}]
    wholes = pv.open(tmp_path / "t").scan(["w", "v"]).to_arrow()
    assert [pv.VariantArray.from_arrow(wholes, name).to_pylist() for name in ("v", "w")] == [[{"x": 1}], [{"x": 2}]]
    pv.write(tmp_path / "s", pv.open(_nested_file(tmp_path)).to_arrow(), format="delta")
    whole = pv.open(tmp_path / "s").scan({"x": "$.x:int", "s": "s"}, column="s.v").to_arrow()
    assert whole["x"].to_pylist() == [1]
    assert pv.VariantArray(pc.struct_field(whole["s"], "v")).to_pylist() == [{"x": 1}]


def _nested_file(folder: Path) -> Path:
    values = pv.parse_json(['{"x": 1}'])
    field = pa.field("v", values.storage.type, metadata={"ARROW:extension:name": "arrow.parquet.variant"})
    struct = pa.StructArray.from_arrays([values.storage], fields=[field])
    pv.write(folder / "nested.parquet", pa.table({"s": struct}))
    return folder / "nested.parquet"


def test_what_was_added_since_a_version(make_table: Callable[..., Path]) -> None:
    table = make_table(3, 2, 2)
    assert pv.open(table).added(since=-1).snapshot.num_files == 3
    assert sorted(pv.open(pv.open(table).added(since=0)).to_arrow()["k"].to_pylist()) == [3, 4, 5, 6]
    assert sorted(pv.open(pv.open(table).added(since=0, until=1)).to_arrow()["k"].to_pylist()) == [3, 4]
    assert pv.open(table).added(since=2).snapshot.num_files == 0
    pv.open(table).optimize()
    assert pv.open(table).added(since=2).snapshot.num_files == 0
    assert pv.open(pv.open(table).added(since=1)).scan({"id": "$.id:long"}, "id > 5").to_arrow()["id"].to_pylist() == [
        6
    ]
    pv.open(table).overwrite({"k": [9]})
    with pytest.raises(TableError) as caught:
        pv.open(table).added(since=2)
    assert caught.value.reason == "rows-removed"
    assert pv.open(pv.open(table).added(since=2, ignore_changes=True)).to_arrow()["k"].to_pylist() == [9]
    pv.open(table).checkpoint()
    (table / "_delta_log" / f"{2:020}.json").unlink()
    with pytest.raises(TableError) as caught:
        pv.open(table).added(since=1)
    assert caught.value.reason == "no-such-version"


def test_nested_variants_are_scanned_and_pruned(tmp_path: Path) -> None:
    for start in (0, 10):
        v = pv.parse_json([json.dumps({"n": n}) for n in range(start, start + 10)])
        nested = pa.StructArray.from_arrays([v.storage], fields=[v.arrow_field.with_name("v")])
        data = pa.table({"s": nested})
        pv.write(tmp_path / "t", data, format="delta", mode="append", schema={"s.v": "n bigint"})
    query = pv.open(tmp_path / "t").scan({"n": "$.n:long"}, "n >= 15")
    assert query.explain().files_by_statistics == 1
    assert query.to_arrow()["n"].to_pylist() == [15, 16, 17, 18, 19]


@pytest.mark.parametrize("columns", [{"zz": "zz"}, {"id": "$.id:long", "b": "zz"}])
def test_unknown_columns_are_refused(make_table: Callable[..., Path], columns: dict[str, str]) -> None:
    with pytest.raises(TableError) as caught:
        pv.open(make_table(1)).scan(columns)
    assert caught.value.reason == "unknown-column"


def test_a_missing_data_file_is_reported(make_table: Callable[..., Path]) -> None:
    table = make_table(2)
    (file,) = table.glob("*.parquet")
    file.unlink()
    with pytest.raises(pv.VariantError, match=file.name):
        pv.open(table).read()
    with pytest.raises(pv.VariantError, match=file.name):
        pv.open(table).scan({"id": "$.id:long"}).to_arrow()


@pytest.mark.parametrize("feature", ["catalogManaged", "futureThing-preview"])
def test_reader_features_that_are_not_supported_are_refused_by_name(
    make_table: Callable[..., Path], feature: str
) -> None:
    table = make_table(1)
    protocol = pv.open(table).snapshot.protocol.to_dict()
    protocol["readerFeatures"] = [*protocol["readerFeatures"], feature]
    (table / "_delta_log" / f"{1:020}.json").write_text(json.dumps({"protocol": protocol}) + "\n")
    with pytest.raises(TableError, match=feature) as caught:
        pv.open(table).read()
    assert caught.value.reason == "unsupported-feature"
    assert pv.open(table, version=0).to_arrow().num_rows == 1


@pytest.mark.parametrize("columns", [{"id": ("$.id", "long"), "k": "k"}, {"p": "p"}], ids=["inside", "outside"])
def test_every_file_is_opened_once(
    make_table: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, columns: dict[str, Any]
) -> None:
    from parquet_variant.files.parquet.scanning import scan as over_files
    from parquet_variant.tables import table_scan as over_tables

    table = make_table(5, 5, partition_by=["p"])
    pv.open(table).set_properties({"delta.enableDeletionVectors": True})
    pv.open(table).delete("k = 3")
    opened: list[str] = []
    for module in (over_tables, over_files):

        def counted(source: Any, original: Any = module.open_file) -> Any:
            opened.append(source.path)
            return original(source)

        monkeypatch.setattr(module, "open_file", counted)
    query = pv.open(table).scan(columns)
    assert query.to_arrow().num_rows == 9
    assert len(opened) == len(set(opened)) == pv.open(table).snapshot.num_files


@pytest.mark.parametrize("module", ["delta", "iceberg"], ids=["delta", "iceberg"])
def test_files_are_skipped_by_uuids_at_paths(module: Any, tmp_path: Path) -> None:
    for number in (1, 5, 9):
        rows = pv.from_python([{"a": uuid.UUID(int=number)}, {"b": 2}, {"a": uuid.UUID(int=number + 1)}])
        pv.write(tmp_path, {"v": rows}, format=module, mode="append")
    for where, expected, opened in [
        (f"$.a:uuid = '{uuid.UUID(int=5)}'", 1, 1),
        (f"$.a:uuid > '{uuid.UUID(int=5)}'", 3, 2),
        ("$.a:uuid IS NOT NULL", 6, 3),
    ]:
        scan = pv.open(tmp_path, format=module).scan({"a": "$.a:uuid"}, where)
        assert len(scan.to_arrow()) == expected
        assert f"files       {opened} of 3" in str(scan.explain())
    assert len(pv.sql("SELECT v:a FROM t WHERE v:a IS NOT NULL ORDER BY v:a", t=tmp_path).to_arrow()) == 6
