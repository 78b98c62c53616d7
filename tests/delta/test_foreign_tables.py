"""Tables as other writers make them, spelled out action by action: read whole and true, or refused by name."""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.errors import TableError

TABLE_FEATURES = ("variantType-preview", "variantShredding-preview")


def protocol(*features: str, writer_only: tuple[str, ...] = ()) -> dict[str, Any]:
    readers = [*TABLE_FEATURES, *features]
    return {
        "protocol": {
            "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": readers,
            "writerFeatures": [*readers, *writer_only],
        }
    }  # fmt: skip


def column(name: str, kind: Any, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


def struct(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


def array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element, "containsNull": True}


def metadata(*columns: dict[str, Any], partition_by: tuple[str, ...] = (), **configuration: str) -> dict[str, Any]:
    return {
        "metaData": {
            "id": "x", "format": {"provider": "parquet", "options": {}}, "schemaString": json.dumps(struct(*columns)),
            "partitionColumns": list(partition_by), "configuration": configuration,
        }
    }  # fmt: skip


def add(path: str, partition: dict[str, str | None] | None = None, **more: Any) -> dict[str, Any]:
    values = {"path": path, "partitionValues": partition or {}, "size": 1, "modificationTime": 5, "dataChange": True}
    return {"add": values | more}


def commit(table: Path, version: int, *actions: dict[str, Any]) -> Path:
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    path = log / f"{version:020}.json"
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))
    return path


def storage(texts: list[str | None], ddl: str | None = None) -> pa.StructArray:
    """Variants as Spark stores them: value first, plain binary metadata, shredded if there is a schema."""
    found = pv.parse_json(texts)
    found = (pv.shred_variant(found, pv.ShreddingSchema.from_ddl(ddl)) if ddl else found).storage
    names = ["value", "metadata", *(["typed_value"] if ddl else [])]
    columns = [found.field(name) for name in names]
    columns[1] = columns[1].dictionary_decode()
    return pa.StructArray.from_arrays(columns, names=names, mask=found.is_null())


def put(table: Path, path: str, columns: dict[str, pa.Array], ids: dict[str, int] | None = None, **options: Any) -> str:
    """A data file, annotated by nobody; gives its path as the log spells it."""
    file = table / path
    file.parent.mkdir(parents=True, exist_ok=True)
    fields = [
        pa.field(name, a.type, metadata={"PARQUET:field_id": str(ids[name])} if ids else None)
        for name, a in columns.items()
    ]
    pq.write_table(pa.table(list(columns.values()), schema=pa.schema(fields)), file, **options)
    return quote(path)


def values(rows: pa.Table, name: str = "v") -> list[Any]:
    return pv.VariantArray.from_arrow(rows, column=name).to_pylist()


# ---- data files


def test_timestamps_of_96_bits_are_read_far_from_1970(tmp_path: Path) -> None:
    moments = [datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), datetime(1, 1, 1, tzinfo=UTC), None]
    columns = {"ts": pa.array(moments, pa.timestamp("us", "UTC")), "v": storage(['{"n": 1}', "2", None])}
    path = put(tmp_path, "a.parquet", columns, use_deprecated_int96_timestamps=True)
    commit(tmp_path, 0, protocol(), metadata(column("ts", "timestamp"), column("v", "variant")), add(path))
    assert pv.open(tmp_path).to_arrow()["ts"].to_pylist() == moments
    query = pv.open(tmp_path).scan({"ts": "ts", "n": "$.n:long"}, "n = 1")
    assert query.to_arrow().to_pylist() == [{"ts": moments[0], "n": 1}]
    since = pv.open(tmp_path).scan({"ts": "ts"}, "ts < timestamp '1000-01-01 00:00:00Z'")
    assert since.to_arrow()["ts"].to_pylist() == [moments[1]]


def test_columns_that_no_file_has_are_null(tmp_path: Path) -> None:
    columns = (
        column("void", "void"), column("late", "variant"), column("more", struct(column("x", "long"))),
        column("k", "long", **{"delta.generationExpression": "1"}), column("v", "variant"),
    )  # fmt: skip
    path = put(tmp_path, "a.parquet", {"v": storage(['{"n": 1}', None], "n bigint"), "k": pa.array([1, 2], pa.int32())})
    commit(tmp_path, 0, protocol(writer_only=("generatedColumns",)), metadata(*columns), add(path))
    rows = pv.open(tmp_path).to_arrow()
    assert rows.column_names == ["void", "late", "more", "k", "v"]
    assert [rows[name].null_count for name in rows.column_names] == [2, 2, 2, 0, 1]
    assert values(rows) == [{"n": 1}, None]
    found = pv.open(tmp_path).scan({"k": "k", "x": "$.x:long"}, "k > 1", column="late").to_arrow()
    assert found.to_pylist() == [{"k": 2, "x": None}]


# ---- partitions

KINDS: list[tuple[str, str | None, Any]] = [
    ("string", "a b/c=d%2F:é?#\"'\\", "a b/c=d%2F:é?#\"'\\"), ("string", "", None), ("string", None, None),
    ("byte", "-128", -128), ("short", "-5", -5), ("integer", "2147483647", 2147483647), ("long", "-9", -9),
    ("float", "1.5", 1.5), ("double", "-Infinity", float("-inf")), ("double", "1.0E10", 1e10),
    ("decimal(38,18)", "1E-18", Decimal("1E-18")), ("boolean", "true", True), ("date", "0001-01-01", date(1, 1, 1)),
    ("binary", "\u0001é", b"\x01\xc3\xa9"),
    ("timestamp", "2020-01-02 03:04:05", datetime(2020, 1, 2, 3, 4, 5, 0, UTC)),
    ("timestamp", "2020-01-02 03:04:05.5", datetime(2020, 1, 2, 3, 4, 5, 500000, UTC)),
    ("timestamp", "2020-01-02T03:04:05.000001Z", datetime(2020, 1, 2, 3, 4, 5, 1, UTC)),
    ("timestamp_ntz", "2020-01-02 03:04:05.123456", datetime(2020, 1, 2, 3, 4, 5, 123456)),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "wanted"), KINDS, ids=lambda x: str(x)[:20])
def test_partition_values_of_every_type(tmp_path: Path, kind: str, text: str | None, wanted: Any) -> None:
    directory = "__HIVE_DEFAULT_PARTITION__" if text is None else quote(text, safe="")
    path = put(tmp_path, f"p={directory}/a b%.parquet", {"v": storage(['{"n": 1}', '{"n": 2}'], "n bigint")})
    other = put(tmp_path, "p=other/b.parquet", {"v": storage(['{"n": 3}'])})
    table_columns = (column("p", kind), column("v", "variant"))
    features = ("timestampNtz",) if kind == "timestamp_ntz" else ()
    actions = [add(path, {"p": text}), add(other, {"p": None})]
    commit(tmp_path, 0, protocol(*features), metadata(*table_columns, partition_by=("p",)), *actions)
    rows = pv.open(tmp_path).to_arrow()
    assert rows["p"].to_pylist() == [wanted, wanted, None]
    assert values(rows) == [{"n": 1}, {"n": 2}, {"n": 3}]
    query = pv.open(tmp_path).scan({"p": "p", "n": "$.n:long"}, "p is not null and n > 1")
    assert query.to_arrow().to_pylist() == ([] if wanted is None else [{"p": wanted, "n": 2}])
    assert query.plan.pruned.by_partition == (2 if wanted is None else 1)


def test_partition_values_that_text_spells_in_its_own_way(tmp_path: Path) -> None:
    first = [datetime(1, 1, 1), datetime(999, 2, 3, 4, 5, 6, 7), datetime(9999, 12, 31, 23, 59, 59, 999999), None]
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        table = tmp_path / str(kind.tz)
        pv.write(table, {"p": pa.array(first, kind), "n": [0, 1, 2, 3]}, format="delta", partition_by="p")
        assert pv.open(table).to_arrow().sort_by("n")["p"].to_pylist() == pa.array(first, kind).to_pylist()
    numbers = [float("nan"), float("inf"), float("-inf"), -0.0, 1e300, None]
    pv.write(tmp_path / "f", {"p": numbers, "n": [0, 1, 2, 3, 4, 5]}, format="delta", partition_by="p")
    files = pv.open(tmp_path / "f").snapshot.files["partitionValues"].to_pylist()
    # As Java spells them, which every reader takes.
    assert {dict(file)["p"] for file in files} == {"NaN", "Infinity", "-Infinity", "-0.0", "1e+300", None}
    found = pv.open(tmp_path / "f").to_arrow().sort_by("n")["p"].to_pylist()
    assert [str(item) for item in found] == [str(number) for number in numbers]


def test_a_partition_column_that_is_in_the_files_too_is_taken_from_the_log(tmp_path: Path) -> None:
    path = put(tmp_path, "a.parquet", {"p": pa.array([7]), "v": storage(["1"])})
    columns = metadata(column("P", "long"), column("v", "variant"), partition_by=("P",))
    commit(tmp_path, 0, protocol(writer_only=("materializePartitionColumns",)), columns, add(path, {"P": "8"}))
    assert pv.open(tmp_path).to_arrow()["P"].to_pylist() == [8]
    assert pv.open(tmp_path).scan({"p": "P"}, "p = 8").to_arrow().num_rows == 1


# ---- column mapping


def mapped(name: str, kind: Any, number: int) -> dict[str, Any]:
    marks = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
    return column(name, kind, **marks)


@pytest.mark.parametrize("mode", ["name", "id"])
@pytest.mark.parametrize("ddl", [None, "n bigint"])
def test_mapped_columns_at_every_depth(tmp_path: Path, mode: str, ddl: str | None) -> None:
    texts = ['{"n": 1, "m": "x"}', '{"n": "two"}', None]
    variant = storage(texts, ddl)
    numbers = pa.array([10, 20, 30])
    file_name = {n: f"col-{n}" if mode == "name" else f"renamed {n}" for n in range(1, 9)}

    def inner(number: int, values: pa.Array) -> pa.Field:
        return pa.field(file_name[number], values.type, metadata={"PARQUET:field_id": str(number)})

    nested = pa.StructArray.from_arrays([numbers, variant], fields=[inner(3, numbers), inner(4, variant)])
    listed = pa.ListArray.from_arrays(
        pa.array([0, 1, 1, 3], pa.int32()), pa.StructArray.from_arrays([variant], fields=[inner(6, variant)])
    )
    keyed = pa.MapArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), pa.array(["a", "b", "c"]), variant)
    columns = {file_name[1]: variant, file_name[2]: nested, file_name[5]: listed, file_name[7]: keyed}
    path = put(tmp_path, "a.parquet", columns, {file_name[n]: n for n in (1, 2, 5, 7)})
    schema = metadata(
        mapped("Variant column", "variant", 1),
        mapped("s", struct(mapped("number", "long", 3), mapped("inner v", "variant", 4)), 2),
        mapped("l", array(struct(mapped("each", "variant", 6))), 5),
        mapped("m", {"type": "map", "keyType": "string", "valueType": "variant", "valueContainsNull": True}, 7),
        mapped("p", "string", 8),
        partition_by=("p",),
        **{"delta.columnMapping.mode": mode},
    )
    stats = json.dumps({"numRecords": 3, "nullCount": {"col-1": 1, "col-2": {"col-3": 0, "col-4": 1}}})
    commit(tmp_path, 0, protocol("columnMapping"), schema, add(path, {"col-8": "x y"}, stats=stats))
    rows = pv.open(tmp_path).to_arrow()
    wanted = [{"n": 1, "m": "x"}, {"n": "two"}, None]
    assert values(rows, "Variant column") == wanted
    assert rows["p"].to_pylist() == ["x y"] * 3
    parts = rows["s"].combine_chunks()
    assert parts.field("number").to_pylist() == [10, 20, 30]
    assert pv.VariantArray(parts.field("inner v")).to_pylist() == wanted
    assert pv.VariantArray(rows["l"].combine_chunks().values.field("each")).to_pylist() == wanted
    assert pv.VariantArray(rows["m"].combine_chunks().items).to_pylist() == wanted
    for place in ("Variant column", "s.inner v"):
        query = pv.open(tmp_path).scan({"n": "$.n:string", "p": "p"}, "n is not null", column=place)
        assert query.to_arrow().to_pylist() == [{"n": "1", "p": "x y"}, {"n": "two", "p": "x y"}]


def test_names_of_a_mapping_do_not_count_where_there_is_none(tmp_path: Path) -> None:
    """PROTOCOL.md: in mode none, and without the feature, files have the columns' own names."""
    columns = (mapped("n", "long", 1), mapped("p", "string", 2), mapped("s", struct(mapped("x", "long", 4)), 3))
    inside = pa.array([{"x": 3}], pa.struct([("x", pa.int64())]))
    path = put(tmp_path, "p=a/a.parquet", {"n": pa.array([7]), "s": inside})
    for configuration in ({}, {"delta.columnMapping.mode": "name"}):
        table = metadata(*columns, partition_by=("p",), **configuration)
        commit(tmp_path, 0, protocol(), table, add(path, {"p": "a"}))
        assert pv.open(tmp_path).to_arrow().to_pylist() == [{"n": 7, "p": "a", "s": {"x": 3}}]
        assert pv.open(tmp_path).scan(["n", "s"], "p = 'a' and n = 7").to_arrow().num_rows == 1
    commit(tmp_path, 0, protocol(), metadata(*columns, partition_by=("p",)), add(path, {"p": "a"}))
    pv.open(tmp_path).append({"n": [8], "p": ["b"], "s": [{"x": 4}]})
    pv.open(tmp_path).set_properties({"delta.columnMapping.mode": "name"})
    pv.open(tmp_path).append({"n": [9], "p": ["c"], "s": [{"x": 5}]})
    rows = [(row["n"], row["p"], row["s"]["x"]) for row in pv.open(tmp_path).to_arrow().to_pylist()]
    assert sorted(rows) == [(7, "a", 3), (8, "b", 4), (9, "c", 5)]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_structs_of_mapped_columns_are_scanned_by_their_names(tmp_path: Path, mode: str) -> None:
    file_name = {n: f"col-{n}" if mode == "name" else f"f{n}" for n in (1, 2, 3)}
    marks = {"PARQUET:field_id": "3"}
    nested = pa.StructArray.from_arrays([pa.array([7, 8])], fields=[pa.field(file_name[3], pa.int64(), metadata=marks)])
    columns = {file_name[1]: storage(["1", "2"]), file_name[2]: nested}
    path = put(tmp_path, "a.parquet", columns, {file_name[1]: 1, file_name[2]: 2})
    schema = metadata(
        mapped("v", "variant", 1), mapped("s", struct(mapped("n", "long", 3)), 2), **{"delta.columnMapping.mode": mode}
    )
    commit(tmp_path, 0, protocol("columnMapping"), schema, add(path))
    wanted = [{"s": {"n": 7}, "v": 1}, {"s": {"n": 8}, "v": 2}]
    assert pv.open(tmp_path).scan({"s": "s", "v": "$:long"}).to_arrow().to_pylist() == wanted
    assert pv.open(tmp_path).scan({"s": "s", "v": "$:long"}, "v = 2").to_arrow().to_pylist() == wanted[1:]


# ---- the log


def test_actions_and_files_that_a_reader_may_ignore(tmp_path: Path) -> None:
    path = put(tmp_path, "a.parquet", {"v": storage(['{"n": 1}'])})
    writer_only = ("rowTracking", "domainMetadata", "clustering", "changeDataFeed", "checkConstraints", "future")
    rows = {"baseRowId": 0, "defaultRowCommitVersion": 0, "clusteringProvider": "liquid", "unknownField": {"a": [1]}}
    commit(
        tmp_path, 0, {"commitInfo": {"operation": "WRITE"}}, protocol("vacuumProtocolCheck", writer_only=writer_only),
        metadata(column("v", "variant"), **{"delta.enableRowTracking": "true", "delta.enableChangeDataFeed": "true"}),
        {"domainMetadata": {"domain": "delta.rowTracking", "configuration": "{}", "removed": False}},
        add(path, tags={"t": "x"}, **rows),
        {"cdc": {"path": "_change_data/c.parquet", "partitionValues": {}, "size": 1}},
        {"futureAction": {"path": "zz"}},
    )  # fmt: skip
    log = tmp_path / "_delta_log"
    commit(tmp_path, 1, add(put(tmp_path, "b.parquet", {"v": storage(['{"n": 2}'])})))
    (log / f"{1:020}.crc").write_text("{}")
    (log / f".{2:020}.json.tmp").write_text("half")
    (log / "_staged_commits").mkdir()
    (log / "_staged_commits" / f"{2:020}.uuid.json").write_text('{"add": {"path": "wrong"}}\n')
    assert pv.open(tmp_path).snapshot.version == 1
    assert values(pv.open(tmp_path).to_arrow()) == [{"n": 1}, {"n": 2}]
    with pytest.raises(TableError, match=r"future"):
        pv.open(tmp_path).append({"v": pv.parse_json(["1"])})


@pytest.mark.parametrize("feature", ["catalogManaged", "catalogManaged-preview", "variantFuture"])
def test_reader_features_that_change_rows_are_refused(tmp_path: Path, feature: str) -> None:
    path = put(tmp_path, "a.parquet", {"v": storage(["1"])})
    commit(tmp_path, 0, protocol(feature), metadata(column("v", "variant")), add(path))
    for call in (
        (lambda path: pv.open(path).snapshot),
        (lambda path: pv.open(path).to_arrow()),
        lambda t: pv.open(t).scan(["$.n:long"]),
    ):
        with pytest.raises(TableError, match=feature) as caught:
            call(tmp_path)
        assert caught.value.reason == "unsupported-feature"


def test_versions_by_in_commit_timestamps(tmp_path: Path) -> None:
    path = put(tmp_path, "a.parquet", {"v": storage(["1"])})
    on = {"delta.enableInCommitTimestamps": "true", "delta.inCommitTimestampEnablementVersion": "2"}
    head, columns = protocol(writer_only=("inCommitTimestamp",)), column("v", "variant")
    for version, expected in enumerate([None, None, 20_000, 30_000, 30_001]):
        info = {"timestamp": 1, "operation": "WRITE"} | ({} if expected is None else {"inCommitTimestamp": expected})
        more = [head, metadata(columns)] if version == 0 else [metadata(columns, **on)] if version == 2 else []
        file = commit(tmp_path, version, {"commitInfo": info}, *more, *([add(path)] if version == 0 else []))
        # As copied later: the files' own times say nothing of versions with their own.
        os.utime(file, ns=(0, (version + 1) * 1_000_000_000 if expected is None else 10**18))
    found = {at: pv.open(tmp_path, at=at).snapshot.version for at in (1000, 2500, 20_000, 29_999, 30_000, 10**12)}
    assert found == {1000: 0, 2500: 1, 20_000: 2, 29_999: 2, 30_000: 3, 10**12: 4}
    with pytest.raises(TableError) as caught:
        _ = pv.open(tmp_path, at=999).snapshot
    assert caught.value.reason == "no-such-version"
    assert pv.open(tmp_path).history()[0]["timestamp"] == datetime.fromtimestamp(30.001, UTC)


@pytest.mark.parametrize("uri", ["{root}/a%20b.parquet", "file://{root}/a%20b.parquet", "file:{root}/a%20b.parquet"])
def test_absolute_paths_of_a_clone_are_read_if_allowed(tmp_path: Path, uri: str) -> None:
    put(tmp_path / "source", "a b.parquet", {"v": storage(['{"n": 1}'], "n bigint")})
    path = uri.format(root=tmp_path / "source")
    clone = tmp_path / "clone"
    commit(clone, 0, protocol(), metadata(column("v", "variant")), add(path))
    assert values(pv.open(clone, allow_outside=True).to_arrow()) == [{"n": 1}]
    assert pv.open(clone, allow_outside=True).scan({"n": "$.n:long"}).to_arrow().to_pylist() == [{"n": 1}]
    for refused in (
        (lambda path: pv.open(path).to_arrow()),
        lambda table: pv.open(table).scan({"n": "$.n:long"}).to_arrow(),
    ):
        with pytest.raises(TableError, match="allow_outside") as caught:
            refused(clone)
        assert caught.value.reason == "outside-table"
        assert caught.value.file == str(clone)
        assert path in str(caught.value)


# ---- nested variants, shredded and not


@pytest.mark.parametrize("ddl", [None, "n bigint, a array<string>"])
def test_variants_in_lists_structs_and_maps(tmp_path: Path, ddl: str | None) -> None:
    texts = ['{"n": 1, "a": ["x"]}', None, "null", '{"n": "y"}']
    variant = storage(texts, ddl)
    listed = pa.ListArray.from_arrays(pa.array([0, 2, None, 3, 4], pa.int32()), variant)
    keyed = pa.MapArray.from_arrays(pa.array([0, 1, 2, 3, 4], pa.int32()), pa.array(list("abcd")), variant)
    nested = pa.StructArray.from_arrays([listed], names=["deep"], mask=pa.array([False, False, False, True]))
    path = put(tmp_path, "a.parquet", {"l": listed, "m": keyed, "s": nested})
    kinds = {"type": "map", "keyType": "string", "valueType": "variant", "valueContainsNull": True}
    schema = metadata(
        column("l", array("variant")), column("m", kinds), column("s", struct(column("deep", array("variant"))))
    )
    commit(tmp_path, 0, protocol(), schema, add(path))
    rows = pv.open(tmp_path).to_arrow()
    wanted = [{"n": 1, "a": ["x"]}, None, None, {"n": "y"}]
    found = rows["l"].combine_chunks()
    assert [None if row is None else len(row) for row in found.to_pylist()] == [2, 1, None, 1]
    assert pv.VariantArray(found.values).to_pylist() == wanted
    assert pv.VariantArray(found.values).null_count == 1
    assert pv.VariantArray(rows["m"].combine_chunks().items).to_pylist() == wanted
    deep = rows["s"].combine_chunks()
    assert deep.is_valid().to_pylist() == [True, True, True, False]
    assert pv.VariantArray(deep.field("deep").values).to_pylist()[:3] == wanted[:3]


def test_a_checkpoint_is_not_written_for_a_table_that_cannot_be_written(tmp_path: Path) -> None:
    path = put(tmp_path, "a.parquet", {"n": pa.array([7])})
    commit(tmp_path, 0, protocol(writer_only=("icebergCompatV2",)), metadata(column("n", "long")), add(path))
    with pytest.raises(TableError, match="icebergCompatV2") as caught:
        pv.open(tmp_path).checkpoint()
    assert caught.value.reason == "unsupported-feature"
    assert [item.name for item in (tmp_path / "_delta_log").iterdir()] == [f"{0:020}.json"]


@pytest.mark.parametrize("form", ["views", "large list views"])
def test_rows_of_files_whose_writer_had_arrow_views_are_read_and_changed(tmp_path: Path, form: str) -> None:
    pv.write(tmp_path, pa.table({"k": [1, 2, 3], "s": ["a", "bb", None], "l": [[1], None, [2, 3]]}), format="delta")
    (file,) = tmp_path.glob("*.parquet")
    data = pq.read_table(file)
    if form == "views":
        data = data.set_column(1, "s", data["s"].cast(pa.string_view()))
    else:
        offsets, sizes = pa.array([0, 1, 1], pa.int64()), pa.array([1, 0, 2], pa.int64())
        lists = pa.LargeListViewArray.from_arrays(
            offsets, sizes, pa.array([1, 2, 3]), mask=pa.array([False, True, False])
        )
        data = data.set_column(2, "l", lists)
    pq.write_table(data, file)
    assert pv.open(tmp_path).update({"s": "upper(s)"}, "k = 1").rows_updated == 1
    assert pv.open(tmp_path).delete("k = 3").rows_deleted == 1
    rows = sorted(pv.open(tmp_path).to_arrow().to_pylist(), key=lambda row: row["k"])
    assert rows == [{"k": 1, "s": "A", "l": [1]}, {"k": 2, "s": "bb", "l": None}]
