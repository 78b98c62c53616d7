"""`Split`: the part of a file or table that one task reads; and how files are divided into splits and tasks.

`json_column` divides tables whose column holds JSON.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from parquet_variant.errors import VariantFileError
from parquet_variant.ingestion.formats.layout import TextLayout, detect
from parquet_variant.ingestion.sources.input_files import InputFile
from parquet_variant.support.choices import InputFormat


@dataclass(frozen=True, slots=True)
class TablePart:
    """The part of a table that one task reads, if it is not a byte range of a file.

    `size`: approximate number of bytes.
    `number`: index of the file in a Delta table.
    `version`: version of the Delta table.
    `rows`: rows in memory.
    """

    size: int
    number: int = 0
    version: int | None = None
    rows: Any = None


@dataclass(frozen=True, slots=True)
class Split:
    """The lines of a file that begin in the bytes ``start`` to ``end`` (None: to the end of the file)."""

    file: InputFile
    start: int = 0
    end: int | None = None
    part: TablePart | None = None

    @property
    def byte_range(self) -> tuple[int, int] | None:
        """The byte range for `open_chunks`; None for a whole file."""
        return None if self.end is None else (self.start, self.end)

    @property
    def size(self) -> int:
        """The number of stored bytes in the split."""
        if self.part is not None:
            return self.part.size
        return self.file.size if self.end is None else self.end - self.start

    def check_file_length(self, length: int | None = None) -> None:
        """Raise `VariantFileError` if the file is shorter than it was, because rows may be missing then.

        `length`: number of stored bytes that were read; by default the current size of the file.
        """
        expected = self.file.known_size if self.end is None else self.end
        if expected is not None and (self.file.current_size() if length is None else length) < expected:
            name = self.file.name
            raise VariantFileError(
                f"{name} became shorter while it was read: run the operation again", reason="files-changed", file=name
            )


def is_splittable(file: InputFile, format: InputFormat | TextLayout) -> bool:
    """Return whether byte ranges of a file can be read separately: it is uncompressed, with one value per line."""
    layout = TextLayout.of(format)
    if layout.prefix is not None or file.codec is not None:
        return False
    with file.errors(), file.open_stored() as stream:
        return detect(stream, file.name, layout.format)[1] == "ndjson"


def plan_splits(
    files: Iterable[InputFile], split_bytes: int = 128 << 20, format: InputFormat | TextLayout = "auto"
) -> list[Split]:
    """Divide files into splits of about `split_bytes`; a file that is not splittable becomes one split."""
    splits: list[Split] = []
    for file in files:
        if file.size <= split_bytes or not is_splittable(file, format):
            splits.append(Split(file))
            continue
        parts = -(-file.size // split_bytes)
        bounds = [file.size * part // parts for part in range(parts + 1)]
        splits.extend(Split(file, start, end) for start, end in itertools.pairwise(bounds))
    return splits


def pack_splits(splits: Iterable[Split], task_bytes: int) -> list[list[Split]]:
    """Group consecutive splits into tasks of about `task_bytes`, so that many small files make few tasks."""
    tasks: list[list[Split]] = []
    filled = task_bytes
    for split in splits:
        if not tasks or filled + split.size > task_bytes:
            tasks.append([])
            filled = 0
        tasks[-1].append(split)
        filled += split.size
    return tasks
