"""What one task reads: parts of files and of tables.

Owns naming a part; it goes to tasks by value. Leaves finding and cutting files to `sources`, tables to
`json_column`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# Text that is parsed at a time: less costs calls for each column, more costs memory that the system has to clear.
CHUNK_BYTES = 12 << 20
# A line, value or row may have so much text.
MAX_LINE_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class TablePart:
    """What of a table one task reads, where that is no part of a file by its bytes."""

    size: int  # About how many bytes.
    # Which file of a Delta table, and of which version.
    number: int = 0
    version: int | None = None
    rows: Any = None  # Rows in memory.


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a file that one task reads: the lines that begin in bytes ``start`` to ``end`` (None: to the end)."""

    file: str
    start: int = 0
    end: int | None = None
    part: TablePart | None = None
    # Of the whole file, where it was found with the file.
    size: int | None = field(default=None, compare=False)

    @property
    def byte_range(self) -> tuple[int, int] | None:
        """What `open_chunks` takes; None for a whole file."""
        return None if self.end is None else (self.start, self.end)
