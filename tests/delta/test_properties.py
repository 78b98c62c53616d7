"""Properties and features as they are set: spelled one way, turned on, acted on, or refused by name."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.errors import TableError
from parquet_variant.tables.delta.protocol.schema_merging import is_widening

NUMBERS = pa.schema([("n", pa.int64())])


@pytest.mark.parametrize(
    ("name", "value", "stored", "features"),
    [
        ("delta.enableDeletionVectors", "TRUE", "true", ["deletionVectors"]),
        ("delta.enabledeletionvectors", True, "true", ["deletionVectors"]),
        ("delta.enableTypeWidening", "true", "true", ["typeWidening"]),
        ("delta.appendOnly", "False", "false", []),
        ("delta.checkpointPolicy", "V2", "v2", ["v2Checkpoint"]),
        ("delta.checkpointInterval", 7, "7", []),
        ("owner", "Me", "Me", []),
    ],
)
def test_a_property_is_spelled_one_way_and_turns_its_feature_on(
    tmp_path: Path, name: str, value: Any, stored: str, features: list[str]
) -> None:
    created = pv.create(tmp_path / "a", NUMBERS, properties={name: value}).snapshot
    pv.create(tmp_path / "b", NUMBERS)
    pv.open(tmp_path / "b").set_properties({name: value})
    for found in (created, pv.open(tmp_path / "b").snapshot):
        (key,) = found.metadata.configuration
        assert key.lower() == name.lower()
        assert found.metadata.configuration[key] == stored
        assert set(features) <= set(found.protocol.writer_features or ())
        if features:
            assert (found.protocol.min_reader_version, found.protocol.min_writer_version) == (3, 7)


@pytest.mark.parametrize("name", ["delta.autoOptimize.optimizeWrite", "delta.appendOnyl", "delta.universalFormat.x"])
def test_a_property_that_nothing_acts_on_is_refused_by_name(tmp_path: Path, name: str) -> None:
    pv.create(tmp_path / "there", NUMBERS)
    for act in (
        lambda: pv.create(tmp_path / "new", NUMBERS, properties={name: "true"}).snapshot,
        lambda: pv.open(tmp_path / "there").set_properties({name: "true"}),
        lambda: pv.write(tmp_path / "new", {"n": [1]}, format="delta", properties={name: "true"}),
    ):
        with pytest.raises(TableError, match=name) as caught:
            act()
        assert caught.value.reason == "unsupported-property"
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("delta.appendOnly", "yes"), ("delta.checkpointInterval", "0"), ("delta.checkpointInterval", "x"),
        ("delta.logRetentionDuration", "soon"), ("delta.parquet.compression.codec", "rar"),
        ("delta.parquet.format.version", "2.1.0"), ("delta.feature.deletionVectors", "maybe"),
    ],
)  # fmt: skip
def test_a_bad_value_is_refused(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(TableError, match=name) as caught:
        pv.create(tmp_path, NUMBERS, properties={name: value})
    assert caught.value.reason == "bad-property"


def test_a_feature_is_turned_on_not_stored(tmp_path: Path) -> None:
    pv.create(tmp_path, NUMBERS, properties={"delta.feature.deletionVectors": "supported"})
    pv.open(tmp_path).set_properties({"delta.feature.appendOnly": "supported"})
    found = pv.open(tmp_path).snapshot
    assert dict(found.metadata.configuration) == {}
    assert found.protocol.reader_features == ("deletionVectors",)
    assert found.protocol.writer_features == ("deletionVectors", "appendOnly")
    with pytest.raises(TableError, match="futureThing") as caught:
        pv.open(tmp_path).set_properties({"delta.feature.futureThing": "supported"})
    assert caught.value.reason == "unsupported-feature"


def test_shredding_is_enabled_by_true_to_the_letter(tmp_path: Path) -> None:
    rows = {"v": pv.parse_json(['{"n": 1}'])}
    pv.write(tmp_path, rows, format="delta")
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    log.write_text(
        log.read_text().replace('"delta.enableVariantShredding":"true"', '"delta.enableVariantShredding":"TRUE"')
    )
    assert not pv.open(tmp_path).snapshot.shredding_enabled
    pv.open(tmp_path).append(rows)
    old, new = sorted(tmp_path.glob("*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    assert "typed_value" in str(pq.read_schema(old))
    assert "typed_value" not in str(pq.read_schema(new))


def test_unshredded_files_are_as_the_protocol_prints_them(tmp_path: Path) -> None:
    rows = {"v": pv.parse_json(['{"n": 1}', None]), "s": pa.array([{"x": 1}, None])}
    pv.write(tmp_path / "plain", rows, format="delta", properties={"delta.enableVariantShredding": False})
    pv.write(
        tmp_path / "asked", rows, format="delta", properties={"delta.enableVariantShredding": False}, annotation=True
    )
    for name, annotated in (("plain", False), ("asked", True)):
        (file,) = (tmp_path / name).glob("*.parquet")
        variant = pq.read_schema(file).field("v")
        assert [child.name for child in variant.type] == ["value", "metadata"]
        assert [child.nullable for child in variant.type] == [False, False]
        assert ("Variant" in str(pq.ParquetFile(file).schema)) == annotated
        assert pv.open(tmp_path / name).read().to_pylist() == [{"n": 1}, None]
        assert pv.open(tmp_path / name).scan({"n": "$.n:int"}).to_arrow()["n"].to_pylist() == [1, None]
    polars = pytest.importorskip("polars", reason="polars is not installed")
    (file,) = (tmp_path / "plain").glob("*.parquet")
    assert polars.read_parquet(file).height == 2


def test_void_columns_are_in_no_file(tmp_path: Path) -> None:
    nothing = pa.nulls(2)
    nested = pa.StructArray.from_arrays([pa.array([1, 2]), nothing], ["x", "void"])
    pv.write(tmp_path / "t", pa.table({"n": [1, 2], "void": nothing, "s": nested}), format="delta")
    (file,) = (tmp_path / "t").glob("*.parquet")
    stored = pq.read_schema(file)
    assert stored.names == ["n", "s"]
    assert [child.name for child in stored.field("s").type] == ["x"]
    rows = pv.open(tmp_path / "t").to_arrow()
    assert rows.to_pylist() == [{"n": n, "void": None, "s": {"x": n, "void": None}} for n in (1, 2)]
    pv.open(tmp_path / "t").optimize(reshred=True)
    assert pv.open(tmp_path / "t").to_arrow().to_pylist() == rows.to_pylist()
    for bad in (
        {"v": nothing},
        {"n": [1, 2], "s": pa.StructArray.from_arrays([nothing], ["a"])},
        {"n": [1, 2], "l": pa.array([[None], []])},
    ):
        with pytest.raises(TableError) as caught:
            pv.write(tmp_path / "bad", bad, format="delta")
        assert caught.value.reason == "void-column"


def test_names_that_differ_by_case_are_one_column(tmp_path: Path) -> None:
    pv.write(tmp_path / "t", {"id": [1], "V": pv.parse_json(["1"])}, format="delta")
    pv.open(tmp_path / "t").append({"ID": [2], "v": pv.parse_json(["2"])})
    rows = pv.open(tmp_path / "t").to_arrow()
    assert rows.column_names == ["id", "V"]
    assert rows["id"].to_pylist() == [1, 2]
    with pytest.raises(TableError, match="case") as caught:
        pv.open(tmp_path / "t").append({"id": [2], "ID": [2]})
    assert caught.value.reason == "bad-data"
    twice = pa.struct([("a", pa.int64()), ("A", pa.int64())])
    for schema in (pa.schema([("a", pa.int64()), ("A", pa.int64())]), pa.schema([("s", pa.list_(twice))])):
        with pytest.raises(TableError, match="case") as caught:
            pv.create(tmp_path / "bad", schema)
        assert caught.value.reason == "bad-schema"


def test_files_are_compressed_as_the_table_says(tmp_path: Path) -> None:
    pv.write(tmp_path, {"n": [1]}, format="delta", properties={"delta.parquet.compression.codec": "SNAPPY"})
    (file,) = tmp_path.glob("*.snappy.parquet")
    assert pq.read_metadata(file).row_group(0).column(0).compression == "SNAPPY"


# ---- type widening, read


def test_a_codec_of_another_writer_that_is_not_known_is_reported_by_its_property(tmp_path: Path) -> None:
    pv.write(tmp_path, {"n": [1]}, format="delta", properties={"delta.parquet.compression.codec": "snappy"})
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    log.write_text(log.read_text().replace('"snappy"', '"LZO"'))
    for work in (lambda: pv.open(tmp_path).append({"n": [2]}), lambda: pv.open(tmp_path).update({"n": "3"})):
        with pytest.raises(TableError, match=r"delta\.parquet\.compression\.codec is 'lzo'") as caught:
            work()
        assert caught.value.reason == "bad-property"
    assert pv.open(tmp_path).append({"n": [2]}, compression="zstd").committed


def test_the_golden_table_whose_types_were_widened(delta_golden: Path) -> None:
    table = delta_golden / "type-widening"
    rows = pv.open(table).to_arrow()
    assert len(rows) == 2
    whole = rows.column_names
    scanned = pv.open(table).scan({name: name for name in whole}).to_arrow()
    assert scanned.to_pylist() == rows.to_pylist()
    assert scanned.schema.types == rows.schema.types
    for name in whole:
        for value in rows[name].to_pylist():
            if isinstance(value, (int, float)):
                assert value in pv.open(table).scan({name: name}, f"{name} >= {value!r}").to_arrow()[name].to_pylist()


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        ("byte", "short", True), ("byte", "long", True), ("long", "integer", False), ("integer", "double", True),
        ("long", "double", False), ("float", "double", True), ("date", "timestamp_ntz", True),
        ("date", "timestamp", False), ("integer", "decimal(10,0)", True), ("integer", "decimal(11,2)", False),
        ("long", "decimal(22,2)", True), ("decimal(5,2)", "decimal(5,2)", False),
        ("decimal(5,2)", "decimal(6,3)", True), ("decimal(5,2)", "decimal(6,4)", False), ("string", "binary", False),
    ],
)  # fmt: skip
def test_which_types_may_widen(old: str, new: str, allowed: bool) -> None:
    assert is_widening(old, new) is allowed


@pytest.mark.parametrize("annotated", [True, False])
@pytest.mark.parametrize("feature", ["typeWidening-preview", "typeWidening"])
def test_whole_numbers_that_the_preview_widened_to_fewer_digits(tmp_path: Path, feature: str, annotated: bool) -> None:
    # As delta-kernel-rs' golden table: bytes became decimal(4,1), shorts decimal(6,1), which is no longer allowed.
    kinds = {"b": ("byte", "decimal(4,1)", pa.int8(), -128), "s": ("short", "decimal(6,1)", pa.int16(), 32767)}
    pv.create(tmp_path, pa.schema([(name, kind[2]) for name, kind in kinds.items()]))
    pv.open(tmp_path).append({name: pa.array([kind[3], None], kind[2]) for name, kind in kinds.items()})
    if not annotated:
        (file,) = tmp_path.glob("*.parquet")
        plain = pa.schema([(name, pa.int32()) for name in kinds])
        pq.write_table(pq.read_table(file).cast(plain), file)
    log = tmp_path / "_delta_log"
    actions = [json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines()]
    (metadata,) = (action["metaData"] for action in actions if "metaData" in action)
    schema = json.loads(metadata["schemaString"])
    for field, (old, new, *_) in zip(schema["fields"], kinds.values(), strict=True):
        field |= {"type": new, "metadata": {"delta.typeChanges": [{"fromType": old, "toType": new}]}}
    metadata["schemaString"] = json.dumps(schema)
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [feature], "writerFeatures": [feature]}
    widened = [{"protocol": protocol}, {"metaData": metadata}]
    (log / f"{2:020}.json").write_text("".join(json.dumps(item) + "\n" for item in widened))
    if feature == "typeWidening":
        with pytest.raises(TableError, match=r"column 'b' .* not supported"):
            pv.open(tmp_path).to_arrow()
        return
    expected = [{"b": Decimal("-128.0"), "s": Decimal("32767.0")}, {"b": None, "s": None}]
    assert pv.open(tmp_path).to_arrow().to_pylist() == expected
    scanned = pv.open(tmp_path).scan({"b": "b", "s": "s"}, "s > 32766.9").to_arrow()
    assert scanned.to_pylist() == expected[:1]


@pytest.mark.parametrize("mode", ["none", "name"])
def test_statistics_of_the_columns_that_the_table_names(tmp_path: Path, mode: str) -> None:
    data = pa.table({"a": [1], "b,c": [2], "s": [{"x": 3, "y": 4}], "p": ["q"], "t": [{"u": 5, "w": 6}]})
    properties = {"delta.dataSkippingStatsColumns": "`b,c`, S.y,t", "delta.columnMapping.mode": mode}
    pv.write(tmp_path, data, format="delta", partition_by=["p"], properties=properties)
    current = pv.open(tmp_path).snapshot
    stats = json.loads(current.files["stats"][0].as_py())
    logical = {f.physical_name: f for f in current.schema.fields}
    found = {
        (logical[name].name, *(sorted(value.values()) if isinstance(value, dict) else [value]))
        for name, value in stats["minValues"].items()
    }
    assert found == {("b,c", 2), ("s", 4), ("t", 5, 6)}
    assert pv.open(tmp_path).scan(["a"], "a = 1").to_arrow()["a"].to_pylist() == [1]
