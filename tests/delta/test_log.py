"""The log: which files make up a version, and every kind of checkpoint giving the same state."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.errors import TableError
from parquet_variant.tables.delta.log.file_actions import FILE_SCHEMA, rows_to_files, split_commits
from parquet_variant.tables.delta.log.segment import last_file_actions
from parquet_variant.tables.storage import LocalStorage

PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
METADATA = {
    "metaData": {
        "id": "x",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": '{"type":"struct","fields":[{"name":"a","type":"long","nullable":true,"metadata":{}}]}',
        "partitionColumns": [],
        "configuration": {"k": "v"},
    }
}


def add(path: str, **more: Any) -> dict[str, Any]:
    values = {"path": path, "partitionValues": {}, "size": 1, "modificationTime": 5, "dataChange": True} | more
    return {"add": values}


def remove(path: str, **more: Any) -> dict[str, Any]:
    return {"remove": {"path": path, "dataChange": True, "deletionTimestamp": 9} | more}


def write_log(table: Path, *commits: list[dict[str, Any]]) -> Path:
    log = table / "_delta_log"
    log.mkdir(parents=True)
    for version, actions in enumerate(commits):
        text = "".join(json.dumps(action) + "\n" for action in actions)
        (log / f"{version:020}.json").write_text(text)
    return log


def paths(table: Path, **options: Any) -> list[str]:
    return sorted(pv.open(table, **options).snapshot.files["path"].to_pylist())


def test_a_version_is_made_of_the_commits_up_to_it(tmp_path: Path) -> None:
    write_log(tmp_path, [PROTOCOL, METADATA, add("a")], [add("b")], [remove("a"), add("c")])
    assert paths(tmp_path) == ["b", "c"]
    assert paths(tmp_path, version=1) == ["a", "b"]
    assert paths(tmp_path, version=0) == ["a"]
    assert pv.open(tmp_path).snapshot.tombstones["path"].to_pylist() == ["a"]


def test_a_timestamp_names_the_newest_version_that_is_not_younger(tmp_path: Path) -> None:
    log = write_log(tmp_path, [PROTOCOL, METADATA], [add("b")], [add("c")])
    for version, seconds in enumerate((100, 200, 300)):
        os.utime(log / f"{version:020}.json", (seconds, seconds))
    assert pv.open(tmp_path, at=250_000).snapshot.version == 1
    assert pv.open(tmp_path, at="1970-01-01T00:03:20Z").snapshot.version == 1
    assert pv.open(tmp_path, at=10**12).snapshot.version == 2
    with pytest.raises(TableError) as caught:
        _ = pv.open(tmp_path, at=99_999).snapshot
    assert caught.value.reason == "no-such-version"


def test_a_missing_commit_is_reported_and_never_skipped(tmp_path: Path) -> None:
    log = write_log(tmp_path, [PROTOCOL, METADATA], [add("b")], [add("c")])
    (log / f"{1:020}.json").unlink()
    with pytest.raises(TableError, match=f"{1:020}.json") as caught:
        _ = pv.open(tmp_path).snapshot
    assert caught.value.reason == "broken-log"


@pytest.mark.parametrize("content", ["{not json", '["add"]', '{"add": {"path": 5, "size": "x"}}', '{"protocol": 3}'])
def test_a_broken_line_is_an_error_with_a_reason(tmp_path: Path, content: str) -> None:
    log = write_log(tmp_path, [PROTOCOL, METADATA])
    (log / f"{1:020}.json").write_text(content + "\n")
    with pytest.raises(TableError) as caught:
        _ = pv.open(tmp_path).snapshot
    assert caught.value.reason == "broken-log"


@pytest.mark.parametrize("left_out", ["protocol", "metaData"])
def test_a_log_without_protocol_or_metadata_is_refused(tmp_path: Path, left_out: str) -> None:
    write_log(tmp_path, [action for action in (PROTOCOL, METADATA) if left_out not in action])
    with pytest.raises(TableError, match=left_out):
        _ = pv.open(tmp_path).snapshot


def test_a_directory_without_a_log_is_not_a_table(tmp_path: Path) -> None:
    with pytest.raises(TableError) as caught:
        _ = pv.open(tmp_path, format="delta").snapshot
    assert caught.value.reason == "not-a-table"


@pytest.mark.parametrize("hint", ["", "{", '{"version": "x"}', '{"version": 99}', '{"version": 1}'])
def test_last_checkpoint_is_only_a_hint(tmp_path: Path, hint: str) -> None:
    log = write_log(tmp_path, [PROTOCOL, METADATA, add("a")], [add("b")])
    (log / "_last_checkpoint").write_text(hint)
    assert paths(tmp_path) == ["a", "b"]


def expire(log: Path, *versions: int) -> None:
    for version in versions:
        (log / f"{version:020}.json").unlink()


@pytest.fixture
def expired(tmp_path: Path) -> Path:
    """A log whose first three commits are to be replaced by a checkpoint at version 2."""
    return write_log(
        tmp_path,
        [PROTOCOL, METADATA, add("a", tags={"t": "1"}), {"txn": {"appId": "app", "version": 4}}],
        [add("b", stats='{"numRecords":7}')],
        [remove("a")],
        [add("c")],
    )


ROWS = (
    PROTOCOL,
    {"metaData": METADATA["metaData"] | {"configuration": [("k", "v")], "format": {"provider": "parquet"}}},
    {"txn": {"appId": "app", "version": 4}},
    {"add": {"path": "b", "partitionValues": [("x", "y")], "size": 1, "stats": '{"numRecords":7}'}},
    {"remove": {"path": "a", "deletionTimestamp": 9}},
)
MAPS = pa.map_(pa.string(), pa.string())


def typed(rows: tuple[dict[str, Any], ...]) -> pa.Table:
    """Rows of actions with the map columns that a checkpoint has."""
    fields = {
        "protocol": pa.struct([("minReaderVersion", pa.int32()), ("minWriterVersion", pa.int32())]),
        "metaData": pa.struct(
            [
                ("id", pa.string()), ("schemaString", pa.string()), ("partitionColumns", pa.list_(pa.string())),
                ("configuration", MAPS), ("format", pa.struct([("provider", pa.string())])),
            ]
        ),
        "txn": pa.struct([("appId", pa.string()), ("version", pa.int64())]),
        "add": pa.struct(
            [("path", pa.string()), ("partitionValues", MAPS), ("size", pa.int64()), ("stats", pa.string())]
        ),
        "remove": pa.struct([("path", pa.string()), ("deletionTimestamp", pa.int64())]),
        "checkpointMetadata": pa.struct([("version", pa.int64())]),
        "sidecar": pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64())]),
    }  # fmt: skip
    names = [name for name in fields if any(name in row for row in rows)]
    return pa.Table.from_pylist(
        [{name: row.get(name) for name in names} for row in rows],
        schema=pa.schema([(name, fields[name]) for name in names]),
    )


def check_expired(table: Path) -> None:
    found = pv.open(table).snapshot
    assert (found.version, sorted(found.files["path"].to_pylist())) == (3, ["b", "c"])
    assert found.tombstones["path"].to_pylist() == ["a"]
    assert found.txns["app"].version == 4
    assert found.metadata.configuration == {"k": "v"}
    by_path = dict(zip(found.files["path"].to_pylist(), found.files["stats"].to_pylist(), strict=True))
    assert by_path == {"b": '{"numRecords":7}', "c": None}


def test_classic_checkpoint(expired: Path) -> None:
    pq.write_table(typed(ROWS), expired / f"{2:020}.checkpoint.parquet")
    expire(expired, 0, 1, 2)
    check_expired(expired.parent)


def test_multi_part_checkpoint(expired: Path) -> None:
    for part in (1, 2):
        rows = ROWS[:3] if part == 1 else ROWS[3:]
        pq.write_table(typed(rows), expired / f"{2:020}.checkpoint.{part:010}.{2:010}.parquet")
    expire(expired, 0, 1, 2)
    check_expired(expired.parent)


def test_multi_part_checkpoint_with_a_missing_part_is_ignored(expired: Path) -> None:
    pq.write_table(typed(ROWS[:3]), expired / f"{2:020}.checkpoint.{1:010}.{2:010}.parquet")
    check_expired(expired.parent)
    expire(expired, 0)
    with pytest.raises(TableError):
        _ = pv.open(expired.parent).snapshot


@pytest.mark.parametrize("form", ["json", "parquet"])
@pytest.mark.parametrize("sidecars", [0, 2])
def test_v2_checkpoint(expired: Path, form: str, sidecars: int) -> None:
    rows: tuple[dict[str, Any], ...] = ({"checkpointMetadata": {"version": 2}}, *ROWS[:3])
    if sidecars:
        (expired / "_sidecars").mkdir()
        for number, row in enumerate(ROWS[3:]):
            name = f"part%20{number}.parquet"
            pq.write_table(typed((row,)), expired / "_sidecars" / name.replace("%20", " "))
            rows += ({"sidecar": {"path": name, "sizeInBytes": 1}},)
    else:
        rows += ROWS[3:]
    name = expired / f"{2:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.{form}"
    if form == "parquet":
        pq.write_table(typed(rows), name)
    else:
        plain = [json.loads(json.dumps(row)) for row in rows]
        plain[2] = METADATA
        for row in plain:
            if "add" in row:
                row["add"]["partitionValues"] = dict(row["add"]["partitionValues"])
        name.write_text("".join(json.dumps(row) + "\n" for row in plain))
    expire(expired, 0, 1, 2)
    check_expired(expired.parent)


def test_our_checkpoint_holds_all_of_the_state(make_table: Callable[..., Path]) -> None:
    table = make_table(4, 4, partition_by=["p"])
    pv.open(table).append({"k": [9], "p": ["p0"], "v": pv.parse_json(['{"id": 9}'])}, batch=("app", 7))
    pv.open(table).overwrite({"k": [1], "p": [None], "v": pv.parse_json(['{"id": 1, "mag": 2.5}'])})
    before = pv.open(table).snapshot
    for parsed in (False, True):
        copy = table.parent / f"copy-{parsed}"
        shutil.copytree(table, copy)
        pv.open(copy).checkpoint(stats_parsed=parsed)
        for file in (copy / "_delta_log").glob("*.json"):
            file.unlink()
        after = pv.open(copy).snapshot
        assert (after.version, after.protocol, after.metadata) == (before.version, before.protocol, before.metadata)
        assert after.txns == before.txns
        for name in ("path", "partitionValues", "size", "stats"):
            assert after.files[name].to_pylist() == before.files[name].to_pylist()
        assert sorted(after.tombstones["path"].to_pylist()) == sorted(before.tombstones["path"].to_pylist())
        assert pv.open(copy).read().to_pylist() == [{"id": 1, "mag": 2.5}]


def test_statistics_of_variants_are_variant_columns_in_a_checkpoint(make_table: Callable[..., Path]) -> None:
    table = make_table(10, 10)
    name = pv.open(table).checkpoint(stats_parsed=True)
    file = pq.ParquetFile(table / name)
    text = str(file.schema)
    assert text.count("v (Variant(1))") == 2
    stats = [row["add"]["stats_parsed"] for row in file.read().to_pylist() if row["add"] is not None]
    low = [pv.Variant(s["minValues"]["v"]["metadata"], s["minValues"]["v"]["value"]) for s in stats]
    assert sorted(bound["$['id']"].to_python() for bound in low) == [0, 10]


def test_statistics_are_used_from_a_checkpoint_without_json(make_table: Callable[..., Path]) -> None:
    table = make_table(10, 10, properties={"delta.checkpoint.writeStatsAsJson": "false"})
    pv.open(table).checkpoint(stats_parsed=True)
    for file in (table / "_delta_log").glob("*.json"):
        file.unlink()
    assert pv.open(table).snapshot.files["stats"].null_count == 2
    query = pv.open(table).scan({"id": "$.id:long", "k": "k"}, "id >= 12")
    assert query.explain().files_by_statistics == 1
    assert query.to_arrow()["id"].to_pylist() == list(range(12, 20))
    query = pv.open(table).scan({"k": "k"}, "k >= 12")
    assert query.explain().files_by_statistics == 1


def test_a_checkpoint_is_written_when_it_is_due(make_table: Callable[..., Path]) -> None:
    table = make_table(2, 2, 2, 2, 2, properties={"delta.checkpointInterval": "2"})
    found = sorted(file.name for file in (table / "_delta_log").glob("*.checkpoint.parquet"))
    assert found == [f"{2:020}.checkpoint.parquet", f"{4:020}.checkpoint.parquet"]
    assert json.loads((table / "_delta_log" / "_last_checkpoint").read_text())["version"] == 4


@pytest.mark.parametrize("blank", ["", "\n\n", "  \r\n"])
def test_blanks_do_not_matter(tmp_path: Path, blank: str) -> None:
    write_log(tmp_path, [PROTOCOL, METADATA])
    text = f'{blank}{{ "add" : {{"path":"a"}} }}\n{blank}{{"txn":{{"appId":"x","version":1}}}}\n{json.dumps(add("b"))}'
    (tmp_path / "_delta_log" / f"{1:020}.json").write_text(text)
    assert paths(tmp_path) == ["a", "b"]
    assert pv.open(tmp_path).snapshot.txns["x"].version == 1


@given(data=st.data())
def test_a_damaged_log_is_an_error_or_read_but_never_a_crash(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    table = tmp_path_factory.mktemp("t")
    log = write_log(
        table, [PROTOCOL, METADATA, add("a", stats='{"numRecords":1}'), {"txn": {"appId": "x", "version": 1}}]
    )
    if data.draw(st.booleans()):
        pv.open(table).checkpoint()
        (log / f"{0:020}.json").unlink()
    (target,) = [file for file in log.iterdir() if file.name.startswith("0")]
    content = bytearray(target.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content) - 1))
        if data.draw(st.booleans()):
            content[at] = data.draw(st.integers(0, 255))
        else:
            del content[at : at + data.draw(st.integers(1, 40))]
        if not content:
            content = bytearray(b"{")
    target.write_bytes(content)
    with contextlib.suppress(pv.VariantError):
        found = pv.open(table).snapshot
        pv.open(found).scan({"a": "a"}, "a > 1").plan.pruned.files.to_pylist()


def test_a_missing_sidecar_is_reported(expired: Path) -> None:
    rows = ({"checkpointMetadata": {"version": 2}}, *ROWS[:3], {"sidecar": {"path": "gone.parquet", "sizeInBytes": 1}})
    pq.write_table(typed(rows), expired / f"{2:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet")
    expire(expired, 0, 1, 2)
    with pytest.raises(TableError, match=r"gone\.parquet"):
        _ = pv.open(expired.parent).snapshot


PATHS = st.sampled_from(["a", "b", "c%20d", "c d", "e%25"])
VECTORS = st.none() | st.sampled_from(["u1", "u2"])


@given(st.lists(st.tuples(st.booleans(), PATHS, VECTORS), max_size=30), st.booleans())
def test_replay_keeps_the_newest_action_of_every_logical_file(
    steps: list[tuple[bool, str, str | None]], tagged: bool
) -> None:
    model: dict[tuple[str, str | None], tuple[bool, int]] = {}
    lines = []
    for number, (is_add, path, vector) in enumerate(steps):
        more: dict[str, Any] = {"size": number}
        if vector is not None:
            more["deletionVector"] = {
                "storageType": "u", "pathOrInlineDv": vector, "offset": 1, "sizeInBytes": 1, "cardinality": 1,
            }  # fmt: skip
        if tagged and is_add:
            more["tags"] = {"x": "y"}
        lines.append(add(path, **more) if is_add else remove(path, **more))
        model[path.replace("%20", " ").replace("%25", "%"), vector] = (is_add, number)
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    last = last_file_actions(split_commits(data).table([]))
    found = set(zip(last["isAdd"].to_pylist(), last["size"].to_pylist(), strict=True))
    assert found == set(model.values())


VALUES = st.none() | st.text(max_size=5)


@given(
    st.lists(
        st.tuples(st.text(min_size=1, max_size=8), st.fixed_dictionaries({"p": VALUES, "q": VALUES}), VALUES),
        min_size=1,
        max_size=8,
    )
)
def test_the_fast_parser_reads_what_the_slow_one_reads(
    rows: list[tuple[str, dict[str, str | None], str | None]],
) -> None:
    lines = [add(path, partitionValues=values, stats=stats) for path, values, stats in rows]
    data = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode("utf-8", "surrogatepass")
    fast = split_commits(data).table(["p", "q"])
    slow = rows_to_files(lines)
    assert fast.schema == FILE_SCHEMA
    assert [sorted(v) for v in fast["partitionValues"].to_pylist()] == [
        sorted(v) for v in slow["partitionValues"].to_pylist()
    ]
    rest = [name for name in FILE_SCHEMA.names if name != "partitionValues"]
    assert fast.select(rest).to_pylist() == slow.select(rest).to_pylist()


DV = {"storageType": "u", "pathOrInlineDv": "x", "offset": 1, "sizeInBytes": 1, "cardinality": 1}
EXTRAS = st.fixed_dictionaries(
    {},
    optional={
        "deletionVector": st.none() | st.just(DV) | st.just(DV | {"maxRowIndex": 7}),
        "tags": st.none() | st.just({}) | st.just({"x": "y"}),
        "partitionValues": st.none() | st.just({}) | st.just({"p": "1"}) | st.just({"other": "2"}),
        "extendedFileMetadata": st.booleans(),
        "baseRowId": st.none() | st.integers(0, 9),
        "clusteringProvider": st.none() | st.just("liquid"),
        "unheardOf": st.just({"by": ["us"]}),
    },
)


@given(st.lists(st.tuples(st.booleans(), EXTRAS), min_size=1, max_size=6))
def test_any_mix_of_fields_in_file_actions_is_read_alike(steps: list[tuple[bool, dict[str, Any]]]) -> None:
    lines = [
        (add if is_add else remove)(f"f{number}", **({"size": number} | more))
        for number, (is_add, more) in enumerate(steps)
    ]
    data = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines).encode()
    fast, slow = split_commits(data).table(["p"]), rows_to_files(lines)
    rest = [name for name in FILE_SCHEMA.names if name not in ("partitionValues", "tags")]
    assert fast.select(rest).to_pylist() == slow.select(rest).to_pylist()
    values = [[dict(row or {}).get("p") for row in table["partitionValues"].to_pylist()] for table in (fast, slow)]
    assert values[0] == values[1]
    assert [dict(row or {}) for row in fast["tags"].to_pylist()] == [dict(r or {}) for r in slow["tags"].to_pylist()]


@pytest.mark.parametrize("size", [1, 150, 400, 1 << 20])
def test_commits_read_in_pieces_give_the_whole_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    first = [add(f"a{number}", partitionValues={"a": str(number)}) for number in range(9)]
    # The metadata that names the partition column comes after files that have values of it.
    expected = {"metaData": METADATA["metaData"] | {"partitionColumns": ["a"]}}
    log = write_log(
        tmp_path, [*first, PROTOCOL, expected], [remove("a3"), add("b")], [{"txn": {"appId": "x", "version": 4}}]
    )
    whole = log / f"{1:020}.json"
    whole.write_text(whole.read_text().rstrip("\n"))
    monkeypatch.setattr("parquet_variant.tables.delta.log.segment.PART_BYTES", size)
    found = pv.open(tmp_path).snapshot
    values = {row["path"]: dict(row["partitionValues"]).get("a") for row in found.files.to_pylist()}
    assert values == {f"a{number}": str(number) for number in range(9) if number != 3} | {"b": None}
    assert found.tombstones["path"].to_pylist() == ["a3"]
    assert found.txns["x"].version == 4


@given(st.lists(st.sampled_from(["a", "aa", "aaa", "a\x00", "b", "ab", "ba", "", "é"]), max_size=8))
def test_no_path_is_lost_and_none_is_kept_twice(names: list[str]) -> None:
    table = rows_to_files([add(name, size=number) for number, name in enumerate(names)])
    last = last_file_actions(pa.concat_tables([table.slice(0, 3), table.slice(3)]))
    assert dict(zip(last["path"].to_pylist(), last["size"].to_pylist(), strict=True)) == {
        name: number for number, name in enumerate(names)
    }
    assert last.num_rows == len(set(names))


def _damage(path: Path, kind: str) -> None:
    data = path.read_bytes()
    torn = {"empty": b"", "torn": data[: len(data) // 2], "zeros": bytes(len(data)), "short": data[:3]}
    path.write_bytes(torn[kind])


@pytest.mark.parametrize("kind", ["empty", "torn", "zeros", "short"])
@pytest.mark.parametrize("policy", ["classic", "v2"])
def test_a_damaged_checkpoint_is_ignored_while_all_commits_are_there(
    make_table: Callable[..., Path], kind: str, policy: str
) -> None:
    table = make_table(2, 2, properties={"delta.checkpointPolicy": policy})
    rows = pv.open(table).to_arrow()["k"].to_pylist()
    damaged = table / pv.open(table).checkpoint()
    _damage(damaged, kind)
    with pytest.warns(UserWarning, match="checkpoint is ignored"):
        assert pv.open(table).to_arrow()["k"].to_pylist() == rows
    with pytest.warns(UserWarning, match="checkpoint is ignored"):
        pv.open(table).append({"k": [77], "v": pv.parse_json(["1"])})
    with pytest.warns(UserWarning, match="checkpoint is ignored"):
        assert pv.open(table, version=1).snapshot.num_files == 2
    with pytest.warns(UserWarning, match="checkpoint is ignored"):
        pv.open(table).checkpoint()
    # The new checkpoint is the newest, so the damaged one is not read any more.
    assert sorted(pv.open(table).to_arrow()["k"].to_pylist()) == sorted([*rows, 77])


def test_a_damaged_checkpoint_is_an_error_without_the_commits(make_table: Callable[..., Path]) -> None:
    table = make_table(2, 2)
    damaged = table / pv.open(table).checkpoint()
    (table / "_delta_log" / f"{0:020}.json").unlink()
    _ = pv.open(table).snapshot
    _damage(damaged, "torn")
    with pytest.raises(TableError) as caught:
        _ = pv.open(table).snapshot
    assert (caught.value.reason, "checkpoint" in str(caught.value)) == ("broken-log", True)


def test_an_older_checkpoint_stands_in_for_a_damaged_one(make_table: Callable[..., Path]) -> None:
    table = make_table(2, 2)
    pv.open(table).checkpoint()
    (table / "_delta_log" / f"{0:020}.json").unlink()
    pv.open(table).append({"k": [77], "v": pv.parse_json(["1"])})
    _damage(table / pv.open(table).checkpoint(), "empty")
    with pytest.warns(UserWarning, match="checkpoint is ignored"):
        assert len(pv.open(table).to_arrow()) == 5


def test_a_lost_sidecar_is_a_damaged_checkpoint(make_table: Callable[..., Path]) -> None:
    table = make_table(2, 2, properties={"delta.checkpointPolicy": "v2"})
    pv.open(table).checkpoint()
    for sidecar in (table / "_delta_log" / "_sidecars").iterdir():
        sidecar.unlink()
    with pytest.warns(UserWarning, match="checkpoint is ignored"):
        assert len(pv.open(table).to_arrow()) == 4


def test_a_log_that_is_cleaned_up_while_it_is_read_is_listed_again(
    make_table: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make_table(2, 2)
    rows, read = pv.open(table).to_arrow()["k"].to_pylist(), LocalStorage.read

    def cleaned(storage: LocalStorage, path: str, *span: int) -> bytes:
        if path.endswith(f"{0:020}.json"):
            monkeypatch.setattr(LocalStorage, "read", read)  # this happens once
            pv.open(table).checkpoint()
            (table / path).unlink()
        return read(storage, path, *span)

    monkeypatch.setattr(LocalStorage, "read", cleaned)
    assert pv.open(table).to_arrow()["k"].to_pylist() == rows

    pv.open(table).append({"k": [77], "v": pv.parse_json(["1"])})
    newest = max((table / "_delta_log").glob("*.json")).name

    def gone(storage: LocalStorage, path: str, *span: int) -> bytes:
        if path.endswith(newest):
            raise FileNotFoundError(path)
        return read(storage, path, *span)

    monkeypatch.setattr(LocalStorage, "read", gone)
    with pytest.raises(TableError, match="a commit file cannot be read") as caught:
        pv.open(table).to_arrow()
    assert caught.value.reason == "broken-log"
    assert len(pv.open(table).history()) < 4
