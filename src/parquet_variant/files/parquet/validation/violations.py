"""Records of violations, with their places, and lists of them.

Owns the record and the limit of a list. Leaves the rules to `validate_schema` and `validate_values`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from parquet_variant.files.parquet.report_text import Report


@dataclass(frozen=True, slots=True)
class Violation(Report):
    """A violation of the specification in a file.

    Parameters
    ----------
    file
        The path of the file.
    column
        The name of the Variant column.
    reason
        A stable code, such as ``"conflict"``.
    message
        A description in one line.
    path
        The normalized path in the Variant; None for the whole column.
    row_group, row
        The 0-based row group, and the 0-based row counted from the start of the file; None if all are affected.
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
    """Violations of a column of a file, up to a limit; further violations are only counted."""

    file: str
    column: str
    limit: int
    row_group: int | None = None
    first_row: int = 0
    count: int = 0
    violations: list[Violation] = field(default_factory=list)

    def add(self, reason: str, message: str, path: object = None, row: int | None = None) -> None:
        """Add a violation; `row` counts from the start of the row group."""
        self.count += 1
        if len(self.violations) < self.limit:
            at = None if row is None else self.first_row + row
            where = None if path is None else str(path)
            self.violations.append(Violation(self.file, self.column, reason, message, where, self.row_group, at))

    def merge(self, part: Violations) -> None:
        """Add the violations of a row group."""
        self.violations += part.violations[: self.limit - len(self.violations)]
        self.count += part.count

    def __iter__(self) -> Iterator[Violation]:
        return iter(self.violations)
