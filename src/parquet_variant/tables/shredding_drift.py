"""The drift of a table's rows from the schemas of its files.

Owns the profiles and schemas of the files of a table, which tasks collect, and the report of each Variant column.
Leaves reading files to the table formats, and the judgement to `inference.drift`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from parquet_variant.inference.drift import DriftReport, SchemaOrigin, find_drift
from parquet_variant.inference.profile import Profile
from parquet_variant.layouts.shredding_schema import ShreddingSchema


@dataclass(slots=True)
class ShreddedContent:
    """The content of some files of a table, by dotted name of the Variant column.

    Parameters
    ----------
    profiles
        The profiles of the values.
    rows
        Number of rows by schema, as JSON.
    oldest
        The time of the oldest file by schema, in milliseconds since 1970.
    """

    profiles: dict[str, Profile] = field(default_factory=dict)
    rows: dict[str, Counter[str]] = field(default_factory=dict)
    oldest: dict[str, dict[str, int]] = field(default_factory=dict)

    def add_file(self, schemas: Mapping[str, str], rows: int, millis: int | None) -> None:
        """Add a file: its schemas as JSON by column, its number of rows, and its time."""
        for column, text in schemas.items():
            self.rows.setdefault(column, Counter())[text] += rows
            if millis is not None:
                times = self.oldest.setdefault(column, {})
                times[text] = min(times.get(text, millis), millis)

    def add_profile(self, column: str, profile: Profile) -> None:
        """Add the profile of values of a column."""
        self.profiles[column] = self.profiles.get(column, Profile()).merge(profile)

    def merge(self, other: ShreddedContent) -> ShreddedContent:
        """Return the content of both sets of files."""
        merged = ShreddedContent(dict(self.profiles), {name: Counter(rows) for name, rows in self.rows.items()})
        for column, profile in other.profiles.items():
            merged.add_profile(column, profile)
        for column, rows in other.rows.items():
            merged.rows.setdefault(column, Counter()).update(rows)
        for times in (self.oldest, other.oldest):
            for column, by_schema in times.items():
                oldest = merged.oldest.setdefault(column, {})
                oldest |= {text: min(oldest.get(text, millis), millis) for text, millis in by_schema.items()}
        return merged

    def reports(self, policy: Any, min_saving: float) -> dict[str, tuple[DriftReport, ShreddingSchema]]:
        """Return, for each column, how its values have drifted from the schema of most rows, and this schema."""
        reports = {}
        for column, profile in self.profiles.items():
            rows = self.rows[column]
            text = max(rows, key=lambda schema: (rows[schema], schema))
            millis = self.oldest.get(column, {}).get(text)
            since = None if millis is None else datetime.fromtimestamp(millis / 1000, UTC)
            schema = ShreddingSchema.from_json(text)
            report = find_drift(schema, profile, policy, min_saving=min_saving)
            reports[column] = replace(report, origin=SchemaOrigin(rows[text], rows.total(), since)), schema
        return reports


def largest_drift(reports: Mapping[str, tuple[DriftReport, ShreddingSchema]]) -> DriftReport | None:
    """Return the report of the column where a change saves most; None without columns."""
    return max((report for report, _ in reports.values()), key=lambda report: report.saved_share, default=None)
