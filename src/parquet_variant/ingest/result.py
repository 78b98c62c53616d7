"""What an ingest says when it is done, in whatever engine.

Owns the shape of `IngestResult`. Leaves making it to `job`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from parquet_variant.errors import without_secrets
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.policies.decision import InferenceResult
from parquet_variant.shredding.typed_texts import TypedText


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What an ingest did.

    Parameters
    ----------
    dest
        The directory that was written; passwords and signatures of a URL are left out.
    files
        The Parquet files in it that this ingest wrote, as paths below `dest`.
    rows
        Rows written.
    bad_records
        Lines that were no JSON: quarantined, never dropped silently.
    bad_records_path
        The directory of the bad-records output (NDJSON); None where every line was good.
    bytes_read
        Bytes of JSON text, after decompression.
    bytes_written
        Bytes of the Parquet files.
    schema
        What was shredded; None if nothing was written.
    inference
        Why, path by path; None where the schema was given.
    typed_texts
        What became of strings that were to be dates, timestamps, UUIDs or binary.
    """

    dest: str
    files: tuple[str, ...]
    rows: int
    bad_records: int
    bad_records_path: str | None
    bytes_read: int
    bytes_written: int
    schema: ShreddingSchema | None
    inference: InferenceResult | None = None
    typed_texts: tuple[TypedText, ...] = ()

    def __post_init__(self) -> None:
        for name in ("dest", "bad_records_path"):
            if (text := getattr(self, name)) is not None:
                object.__setattr__(self, name, without_secrets(text))

    def __repr__(self) -> str:
        bad = f", {self.bad_records:,} bad ones in {self.bad_records_path}" if self.bad_records else ""
        sizes = f"{self.bytes_read:,} bytes of JSON, {self.bytes_written:,} bytes written"
        return f"<IngestResult {self.rows:,} rows in {len(self.files):,} files in {self.dest}{bad}; {sizes}>"

    def to_dict(self) -> dict[str, Any]:
        """The same in plain types, with the schema as DDL."""
        fields = {name: getattr(self, name) for name in self.__slots__ if name != "inference"}
        fields["files"] = list(self.files)
        fields["typed_texts"] = [asdict(each) for each in self.typed_texts]
        fields["schema"] = self.schema.to_ddl() if self.schema is not None else None
        return fields
