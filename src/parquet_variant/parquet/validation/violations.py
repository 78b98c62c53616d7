"""What a validator finds: a violation, where it is, and the list of them.

Owns the record and its limit. Leaves the rules to `validate_schema` and `validate_values`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from parquet_variant.parquet.report_text import Report


@dataclass(frozen=True, slots=True)
class Violation(Report):
    """A place where a file breaks the specification.

    Parameters
    ----------
    file
        The file.
    column
        The Variant column.
    reason
        A stable code, such as ``"conflict"``.
    message
        One line that says what is wrong.
    path
        The normalized path in the Variant; None for the column as a whole.
    row_group, row
        Where; 0-based, the row counts from the start of the file. None for what holds for all of them.
    """

    file: str
    column: str
    reason: str
    message: str
    path: str | None = None
    row_group: int | None = None
    row: int | None = None

    def __str__(self) -> str:
        named = (("row group", self.row_group), ("row", self.row), ("path", self.path))
        where = ", ".join(f"{name} {value}" for name, value in named if value is not None)
        return f"{self.file}: {self.column}{f' ({where})' if where else ''}: {self.message} [{self.reason}]"


@dataclass(slots=True)
class Violations:
    """Violations of one column of one file, up to a limit; the rest is only counted."""

    file: str
    column: str
    limit: int
    row_group: int | None = None
    first_row: int = 0
    count: int = 0
    violations: list[Violation] = field(default_factory=list)

    def add(self, reason: str, message: str, path: object = None, row: int | None = None) -> None:
        """Record one; `row` counts from the start of the row group."""
        self.count += 1
        if len(self.violations) < self.limit:
            at = None if row is None else self.first_row + row
            where = None if path is None else str(path)
            self.violations.append(Violation(self.file, self.column, reason, message, where, self.row_group, at))

    def merge(self, part: Violations) -> None:
        """Record what was found in a row group."""
        self.violations += part.violations[: self.limit - len(self.violations)]
        self.count += part.count

    def __iter__(self) -> Iterator[Violation]:
        return iter(self.violations)
