"""Vortex files as sources: each is converted once to a Parquet file with shredded Variants.

Owns where the Parquet files are, and their names: the same Vortex file always has the same Parquet file, so that a
repeated publication converts new and changed files only. They are never in a directory of Vortex files, because the
cleanup of other engines deletes every file there that is not in a table.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from parquet_variant.errors import TableError
from parquet_variant.files.vortex.library import open_file
from parquet_variant.files.vortex.paths import SUFFIX, some_vortex_files
from parquet_variant.files.vortex.rewriting import write_shredded_parquet
from parquet_variant.io.engine import ThreadEngine
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.tables.iceberg.locations import absolute_location
from parquet_variant.tables.publishing.parquet_source import ParquetFilesSource, parquet_files
from parquet_variant.tables.storage import StorageFile

_NAMESPACE = uuid.UUID("f2b2b8b0-4d2b-4f0b-8a35-6a3a3a8f0c7e")
_DIRECTORY = "data"


class _Conversion(NamedTuple):
    """A Vortex file, and the path of its Parquet file in the storage of the tables."""

    file: str
    target: str


class VortexFilesSource(ParquetFilesSource):
    """The Vortex files of a path, as Parquet files in `location`.

    `path`: a Vortex file, a directory or a glob.
    `location`: the directory of the published table; by default ``PATH.published``, next to the Vortex files.
    `options`: configuration of the object store of `location`.
    """

    format = "vortex"
    may_be_replaced = False

    def __init__(self, path: str, location: str | None, options: Mapping[str, str] | None = None) -> None:
        self._path = path.removeprefix("file://").rstrip("/")
        super().__init__(location or f"{self.default_name}.published", options)

    @property
    def default_name(self) -> str:
        """See `Source.default_name`."""
        return absolute_location(self._path.removesuffix(SUFFIX))

    @cached_property
    def _stored(self) -> list[StorageFile]:
        conversions = self._conversions()
        existing = {file.path for file in self._storage.list(_DIRECTORY)}
        missing = [item for item in conversions if item.target not in existing]
        ThreadEngine(None, None).run("convert", self._convert, missing)
        targets = {item.target for item in conversions}
        return [file for file in parquet_files(self._storage) if file.path in targets]

    def _conversions(self) -> list[_Conversion]:
        if "://" in self._path:
            raise TableError(
                f"{self._path} is not on a local disk: copy the Vortex files to one",
                reason="bad-argument",
                file=self._path,
            )
        files = [Path(file) for file in some_vortex_files(self._path)]
        if Path(self._path).is_dir():
            for directory in {file.parent for file in files}:
                if any(directory.glob("[!_.]*.parquet")):  # Their rows would be missing.
                    raise TableError(
                        f"{directory} has Vortex and Parquet files, and a table is published from one kind: move the "
                        "other files to another directory",
                        reason="bad-argument",
                        file=self._path,
                    )
            base = Path(self._path)
        else:
            base = Path(self._path).parent
        conversions = []
        for file in files:
            source = open_file(file).source
            assert source is not None
            key = f"{os.path.relpath(file, base)}\0{source.version}"
            target = f"{_DIRECTORY}/{file.stem}-{uuid.uuid5(_NAMESPACE, key)}.parquet"
            conversions.append(_Conversion(str(file), target))
        return conversions

    def _convert(self, task: int, attempt: int, item: _Conversion) -> None:
        with self._storage.create(item.target) as local:
            # The writer renames a complete file, so that a killed publication leaves no part of a file under the name.
            write_shredded_parquet(item.file, str(local))
