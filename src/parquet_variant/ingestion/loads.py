"""The source files that an ingest with ``only_new`` has loaded, which the destination records together with the rows.

Owns the record of a file, the comparison of the sources with the records, and the records of a directory of Parquet
files: a file per load in ``_loads``. The modules in `destinations` own those of tables.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs

from parquet_variant.errors import VariantFileError, without_secrets
from parquet_variant.ingestion.sources.input_files import InputFile
from parquet_variant.io.commit_journal import visible_files
from parquet_variant.io.filesystems import absolute, filesystem_of, write_errors
from parquet_variant.io.staging import LOADS, StagedFile, Staging


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A source file as it was when it was loaded: absolute path or URI, bytes, and times as ISO text in UTC."""

    path: str
    size: int
    modified: str | None = None
    loaded: str | None = None

    @classmethod
    def of(cls, file: InputFile) -> LoadedFile:
        """Return the record of a file that is about to be read."""
        modified = None if file.modified is None else iso_time(file.modified.timestamp())
        return cls(without_secrets(absolute(file.name)), file.size, modified, iso_time(time.time()))

    def to_text(self) -> str:
        """Return the record as one line of JSON."""
        record = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(record, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str, loaded: str | None = None) -> list[LoadedFile]:
        """Return the record in a text, in a list that is empty if another program wrote the text.

        >>> LoadedFile.from_text(LoadedFile("/a.json", 3).to_text()), LoadedFile.from_text("[]")
        ([LoadedFile(path='/a.json', size=3, modified=None, loaded=None)], [])
        """
        try:
            record = json.loads(text)
            return [cls(record["path"], record["size"], record.get("modified"), record.get("loaded") or loaded)]
        except (ValueError, KeyError, TypeError):
            return []

    def to_dict(self) -> dict[str, Any]:
        """Return the record as `Table.loads` lists it, with times as datetimes."""
        times = {name: getattr(self, name) for name in ("modified", "loaded")}
        return asdict(self) | {name: text and datetime.fromisoformat(text) for name, text in times.items()}


def iso_time(seconds: float) -> str:
    """Return seconds since 1970 as ISO text in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat()


@dataclass(frozen=True, slots=True)
class NewFiles:
    """The sources of an ingest, compared with the files that were loaded before."""

    files: list[InputFile]
    records: tuple[LoadedFile, ...]  # Those of the new files, which the destination keeps.
    skipped: int
    changed: tuple[str, ...]  # Files that were written again after a load, whose rows would be in the table twice.

    @classmethod
    def of(cls, files: Iterable[InputFile], loaded: Iterable[LoadedFile]) -> NewFiles:
        """Compare the sources with the records of the destination. Raises `VariantFileError` for a pipe."""
        known = {file.path: file for file in loaded}
        new, records, changed, skipped = [], [], [], 0
        for file in files:
            if file.copy is not None:
                raise VariantFileError(
                    f"{file.name} is a pipe, which cannot be known again: leave out only_new=", reason="bad-option"
                )
            record = LoadedFile.of(file)
            before = known.get(record.path)
            if before is None:
                new.append(file)
                records.append(record)
            elif (before.size, before.modified) == (record.size, record.modified):
                skipped += 1
            else:
                changed.append(record.path)
        return cls(new, tuple(records), skipped, tuple(changed))


def directory_load_files(dest: str) -> dict[str, list[LoadedFile]]:
    """Return the records of a directory of Parquet files, by the name of the file that has them."""
    filesystem, root = filesystem_of(dest)
    folder, loads = f"{root.rstrip('/')}/{LOADS}/", dict[str, list[LoadedFile]]()
    if isinstance(filesystem, pafs.LocalFileSystem) and not Path(folder).exists():
        return loads  # without a listing of the directory
    for info in sorted(visible_files(filesystem, root), key=lambda info: info.path):
        if info.path.startswith(folder):
            with filesystem.open_input_stream(info.path) as stream:
                lines = stream.read().decode("utf-8", "replace").splitlines()
            loads[info.path.removeprefix(folder)] = [record for line in lines for record in LoadedFile.from_text(line)]
    return loads


def directory_loads(dest: str) -> list[LoadedFile]:
    """Return the records of a directory of Parquet files."""
    return [record for records in directory_load_files(dest).values() for record in records]


def stage_records(staging: Staging, records: Sequence[LoadedFile]) -> StagedFile:
    """Stage the file with the records of a load."""
    file = StagedFile(staging.attempt(0, "loads"), f"{LOADS}/{staging.job}.ndjson")
    filesystem, path = filesystem_of(file.path)
    with write_errors(staging.dest):
        filesystem.create_dir(path.rpartition("/")[0], recursive=True)
        with filesystem.open_output_stream(path) as stream:
            stream.write("".join(f"{record.to_text()}\n" for record in records).encode())
    return file
