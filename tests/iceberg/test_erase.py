"""Erased rows of Iceberg tables are nowhere: not in data files, snapshots, manifests, bounds or deletion vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.cli.app import main
from parquet_variant.tables.iceberg.metadata.manifests import Content, DataFile
from parquet_variant.tables.iceberg.writing.commit import SnapshotChange, commit_snapshot
from parquet_variant.tables.storage import LocalStorage

SECRET, OTHER = "zebra-7421", "apple-1234"


def rows(name: str, start: int, stop: int) -> dict[str, Any]:
    numbers = list(range(start, stop))
    values = [json.dumps({"user": name, "n": n, f"key-{name}": 1}) for n in numbers]
    return {"name": [name] * len(numbers), "n": numbers, "v": pv.parse_json(values)}


def table_with_history(table: Path, partition_by: str | list[str] = ()) -> None:  # type: ignore[assignment]
    """Make a table whose files and history name the secret."""
    pv.write(table, rows(OTHER, 0, 5), format="iceberg", partition_by=partition_by, compression="none")
    pv.open(table).append(rows(SECRET, 5, 9), compression="none")
    pv.open(table).delete("n = 6")
    pv.open(table).update({"v:n": "100"}, "n = 7")
    pv.open(table).append(rows(OTHER, 9, 12), compression="none")


def holds_secret(table: Path) -> list[str]:
    """Return the files that name the secret, in Avro after decompression."""
    found = []
    for path in table.rglob("*"):
        if not path.is_file():
            continue
        text = path.read_bytes()
        if path.suffix == ".avro":
            with path.open("rb") as stream:
                text += repr(list(fastavro.reader(stream))).encode()
        if SECRET.encode() in text:
            found.append(path.name)
    return found + [path.name for path in table.rglob("*") if path.is_dir() and SECRET in path.name]


@pytest.mark.parametrize("partition_by", [[], ["name"]])
def test_nothing_is_left_of_erased_rows(tmp_path: Path, partition_by: list[str]) -> None:
    table = tmp_path / "t"
    table_with_history(table, partition_by)
    assert holds_secret(table)
    (table / "data" / "notes.csv").write_text("a file of somebody else")
    snapshots = len(pv.open(table).history())
    where = f"v:user::string = '{SECRET}'"
    found = pv.open(table).erase(where, dry_run=True)
    assert (found.rows_erased, found.versions_removed, found.dry_run) == (3, snapshots, True)
    assert len(pv.open(table).history()) == snapshots
    report = pv.open(table).erase(where, compression="none")
    assert (report.rows_erased, report.versions_removed, report.files_verified) == (3, snapshots, 2)
    assert len(pv.open(table).history()) == 1
    assert holds_secret(table) == [] and (table / "data" / "notes.csv").exists()
    assert sorted(pv.open(table).to_arrow(["n"])["n"].to_pylist()) == [0, 1, 2, 3, 4, 9, 10, 11]
    assert "erased from" in str(report) and report.to_dict()["rows_erased"] == 3
    assert pv.open(table).erase(where).rows_erased == 0
    pv.open(table).append(rows(OTHER, 12, 13))  # the table goes on


def test_files_of_other_engines_that_name_erased_values_are_removed(tmp_path: Path) -> None:
    """Equality deletes, statistics, and summaries of snapshots by partition."""
    table = tmp_path / "t"
    pv.write(table, rows(OTHER, 0, 5), format="iceberg", compression="none")
    pv.open(table).append(rows(SECRET, 5, 9), compression="none")
    base = pv.open(table).snapshot
    name = base.struct.get("name")
    assert name is not None
    deletes = table / "data" / "deletes.parquet"
    field = pa.field("name", pa.string(), metadata={"PARQUET:field_id": str(name.id)})
    pq.write_table(pa.table([[SECRET]], schema=pa.schema([field])), deletes, compression="none")
    size, content = deletes.stat().st_size, Content.EQUALITY_DELETES
    file = DataFile(deletes.as_uri(), "parquet", 1, size, content=content, equality_ids=(name.id,))
    commit_snapshot(base, SnapshotChange("delete", vectors=(file,)))
    pv.open(table).append(rows(SECRET, 5, 9), compression="none")
    metadata = max((table / "metadata").glob("v*.metadata.json"), key=lambda path: int(path.name[1:].split(".")[0]))
    document = json.loads(metadata.read_text())
    for entry in document["snapshots"]:
        entry["summary"][f"partitions.name={SECRET}"] = "added-records=4"
    statistics = table / "metadata" / "a.stats"
    statistics.write_text(SECRET)
    document["statistics"] = [
        {"snapshot-id": document["current-snapshot-id"], "statistics-path": statistics.as_uri(),
         "file-size-in-bytes": 10, "file-footer-size-in-bytes": 4, "blob-metadata": []}
    ]  # fmt: skip
    metadata.write_text(json.dumps(document))
    assert pv.open(table).erase(f"v:user::string = '{SECRET}'", force=True, compression="none").rows_erased == 4
    assert holds_secret(table) == []
    assert sorted(pv.open(table).to_arrow(["n"])["n"].to_pylist()) == [0, 1, 2, 3, 4]
    assert pv.open(table).erase("n >= 0").rows_erased == 5
    pv.open(table).append(rows(OTHER, 5, 6))
    assert pv.open(table).to_arrow(["n"])["n"].to_pylist() == [5]


def test_writers_and_references_stop_an_erasure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "t"
    table_with_history(table)
    pv.open(table).tag("audited")
    command = ["erase", str(table), "--where", f"name = '{SECRET}'"]
    assert main([*command, "--yes"]) == 1
    assert "the branches and tags audited keep older snapshots" in capsys.readouterr().err
    pv.open(table).drop_reference("audited")
    (table / "data" / "running.parquet").write_bytes(b"")
    assert main([*command, "--yes"]) == 1
    assert "a writer seems to be active" in capsys.readouterr().err
    assert main([*command, "--dry-run"]) == 0
    assert "3 rows in 2 files" in capsys.readouterr().out
    assert main([*command, "--yes", "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows_erased"] == 3
    assert not (table / "data" / "running.parquet").exists()
    with pytest.raises(pv.TableError, match="erase needs a condition"):
        pv.open(table).erase(" ")


def test_a_killed_erasure_can_be_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where, writes = f"name = '{SECRET}'", [0]
    names = ("put", "put_if_absent", "delete", "create")
    originals = {name: getattr(LocalStorage, name) for name in names}

    def install(stop: int) -> None:
        writes[0] = 0

        def failing(name: str) -> Any:
            def call(self: LocalStorage, *arguments: Any) -> Any:
                writes[0] += 1
                if writes[0] == stop:
                    raise KeyboardInterrupt
                return originals[name](self, *arguments)

            return call

        for name in names:
            monkeypatch.setattr(LocalStorage, name, failing(name))

    for number, step in enumerate((1, 5, 9, 14)):
        table = tmp_path / str(number)
        install(-1)
        table_with_history(table)
        install(step)
        with pytest.raises(KeyboardInterrupt):
            pv.open(table).erase(where, compression="none")
        install(-1)
        kept = pv.open(table).to_arrow(["n"])["n"].to_pylist()
        assert {0, 1, 2, 3, 4, 9, 10, 11} <= set(kept)
        pv.open(table).erase(where, force=True, compression="none")
        assert holds_secret(table) == []
