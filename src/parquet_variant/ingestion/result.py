"""`IngestResult`: what an ingest read and wrote; with the invalid lines and the inexact numbers that it reports."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, field
from html import escape
from typing import Any

from parquet_variant.errors import VariantError, without_secrets
from parquet_variant.inference.contracts.report import ContractCounts, ContractReport
from parquet_variant.inference.policies.decision import InferenceResult
from parquet_variant.inference.profile import StringCounts
from parquet_variant.inference.typed_strings import TypedStrings
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.records import Record, counted, human_bytes

_NOTED_PATHS = 3  # The other paths share a line.


class IngestResult(Record):
    """The result of an ingest.

    Parameters
    ----------
    dest
        The destination, without passwords and signatures of its URL.
    files
        The data files that this ingest wrote, as paths relative to `dest`.
    rows
        Number of rows that were written.
    bad_records
        Number of lines that were quarantined: invalid lines, and rows that break the contract.
    bad_records_path
        The directory of the quarantined lines (NDJSON); None if all lines were valid.
    bytes_read
        Bytes of JSON text, after decompression.
    bytes_written
        Bytes of the data files.
    schema
        The shredding schema; None if nothing was written.
    columns
        The types of the keys that became columns, by name.
    inference
        The decision for every path; None if the schema was an option.
    typed_strings
        Counts of the strings that were to be typed as dates, timestamps, UUIDs or binary.
    inexact_numbers
        Number of numbers that lost precision: no type of Variant keeps them exactly, and they became the nearest
        double (more than 38 digits, or an exponent with more digits than a double, or out of its range).
    first_inexact
        The text and the position of the first of these numbers, or None.
    contract
        The violations of the contract; None without a contract. Quarantined rows are also counted in `bad_records`.
    skipped
        With `only_new`, the number of source files that were loaded before.
    changed
        With `only_new`, the source files that were written again after they had been loaded. Their rows were not added,
        because those of before are in the table.
    hints
        Options that may suit the data better, such as ``root`` for documents with one array of objects.
    """

    dest: str
    files: tuple[str, ...]
    rows: int = 0
    bad_records: int = 0
    bad_records_path: str | None = None
    bytes_read: int = 0
    bytes_written: int = 0
    schema: ShreddingSchema | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    inference: InferenceResult | None = None
    typed_strings: tuple[TypedStrings, ...] = ()
    inexact_numbers: int = 0
    first_inexact: str | None = None
    skipped: int = 0
    changed: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    contract: ContractReport | None = None

    def __post_init__(self) -> None:
        for name in ("dest", "bad_records_path", "first_inexact"):
            if (text := getattr(self, name)) is not None:
                object.__setattr__(self, name, without_secrets(text))

    def __repr__(self) -> str:
        return f"<IngestResult {'; '.join(self.facts())}>"

    def facts(self) -> list[str]:
        """Return lines about the rows that were written, and those that were not."""
        sizes = f"{human_bytes(self.bytes_read)} of JSON, {human_bytes(self.bytes_written)} written"
        lines = [f"{counted(self.rows, 'row')} in {counted(len(self.files), 'file')} in {self.dest} ({sizes})"]
        if self.skipped:
            lines.append(f"{counted(self.skipped, 'source file')} loaded before")
        if self.changed:
            shown = ", ".join(self.changed[:3]) + (", …" if len(self.changed) > 3 else "")
            lines.append(f"{counted(len(self.changed), 'file')} changed after the load, and not loaded again: {shown}")
        if self.bad_records:
            lines.append(f"{counted(self.bad_records, 'bad line')} in {self.bad_records_path}")
        if self.contract is not None and not self.contract:
            lines.append(str(self.contract))
        if self.inexact_numbers:
            lost = f"{counted(self.inexact_numbers, 'number')} lost precision, first {self.first_inexact}"
            lines.append(f"{lost}; refuse such numbers with on_inexact='fail'")
        return lines

    def string_notes(self) -> list[str]:
        """Return lines about strings that were typed or could be: a line for each of the most frequent paths."""
        notes = [str(path) for path in self.typed_strings if path.untyped]
        complete = sorted((path for path in self.typed_strings if not path.untyped), key=lambda path: -path.typed)
        notes += map(str, complete[:_NOTED_PATHS])
        if (more := len(complete) - _NOTED_PATHS) > 0:
            notes.append(f"all strings at {counted(more, 'more path')} were typed")
        suggestions = () if self.inference is None else self.inference.suggested_types
        suggested = [path for path in suggestions if not path.counts_time]
        notes += map(str, sorted(suggested, key=lambda path: -path.strings)[:_NOTED_PATHS])
        if (more := len(suggested) - _NOTED_PATHS) > 0:
            paths = "1 more path has" if more == 1 else f"{more:,} more paths have"
            notes.append(
                f"{paths} strings of one type: list them with variant infer --explain, type all with --type 'auto!'"
            )
        if counting := [path for path in suggestions if path.counts_time]:
            other_paths = f"; also {counted(len(counting) - 1, 'other path')}" if len(counting) > 1 else ""
            notes.append(f"{max(counting, key=lambda path: path.strings)}{other_paths}")
        return notes

    def _repr_html_(self) -> str:
        """Return the result, its notes and the schema as HTML, for notebooks."""
        notes = [*self.facts(), *self.string_notes(), *self.hints]
        schema = "" if self.schema is None else self.schema._repr_html_()
        return f"{''.join(f'<p>{escape(note)}</p>' for note in notes)}{schema}"

    def to_dict(self) -> dict[str, Any]:
        """Return the result in types that JSON can represent, with the schema as DDL and without the inference."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "inference"}
        fields |= {name: list(getattr(self, name)) for name in ("files", "hints", "changed")}
        fields["typed_strings"] = [asdict(typed_text) for typed_text in self.typed_strings]
        suggested_types = () if self.inference is None else self.inference.suggested_types
        fields["suggested_types"] = [asdict(suggestion) for suggestion in suggested_types]
        fields["contract"] = None if self.contract is None else self.contract.to_dict()
        fields["schema"] = self.schema.to_ddl() if self.schema is not None else None
        return fields


class BadRecord(Record):
    """A line that is not valid JSON, as the bad-records output contains it.

    `file`, `line`: the source file, and the 1-based number of the line, or of the element of a JSON array.
    `reason`, `message`: the stable code of the error, and its message.
    `text`: the line; bytes that are not UTF-8 are replaced by U+FFFD.
    `base64`: the bytes of the line, only if `text` does not represent them exactly.
    `columns`: the other columns of the row, if the JSON is a column of a table.

    >>> record = BadRecord.of("a.json", 3, b"[1,", VariantError("the text ends early", reason="truncated"))
    >>> print(record.to_json())
    {"file": "a.json", "line": 3, "reason": "truncated", "message": "the text ends early", "text": "[1,"}
    """

    file: str
    line: int
    reason: str
    message: str
    text: str
    base64: str | None = None
    columns: dict[str, Any] | None = None

    @classmethod
    def of(cls, file: str, line: int, text: bytes, error: VariantError) -> BadRecord:
        """Return the record of a line and the error that the parser raised for it."""
        text = text.rstrip(b"\r\n")
        decoded = text.decode("utf-8", "replace")
        exact = b64encode(text).decode("ascii") if decoded.encode() != text else None
        return cls(file, line, error.reason, error.message, decoded, exact)

    def to_json(self) -> str:
        """Return one line of the bad-records output."""
        fields = {name: value for name, value in asdict(self).items() if value is not None}
        return json.dumps(fields, ensure_ascii=False)


class ReadCounts(Record):
    """What a part of the input has; counts of several parts can be added.

    `text_bytes`, `stored_bytes`: size of the text that was read, decompressed, and as stored.
    `inexact`, `first_inexact`: numbers that became the nearest double and do not equal it; text and position of the
      first.
    `typed`, `broken`: strings with a type, and violations of the contract; also those of quarantined rows.
    """

    text_bytes: int = 0
    stored_bytes: int = 0
    rows: int = 0
    inexact: int = 0
    first_inexact: str | None = None
    typed: StringCounts = field(default_factory=Counter)
    broken: ContractCounts = field(default_factory=ContractCounts)

    def __add__(self, other: ReadCounts) -> ReadCounts:
        names = ("text_bytes", "stored_bytes", "rows", "inexact", "typed")
        return ReadCounts(
            first_inexact=self.first_inexact or other.first_inexact,
            broken=self.broken.merge(other.broken),
            **{name: getattr(self, name) + getattr(other, name) for name in names},
        )
