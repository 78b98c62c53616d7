"""The Parquet project's corpus of shredded files: which of them have values, which contradict themselves, which fail.

Works with the whole corpus and with a part of it: what is said here of a case holds where the case is there.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from parquet_variant.encoding.variant import Variant

CORPUS = (
    Path(os.environ.get("PARQUET_TEST_DATA") or Path(__file__).resolve().parents[1] / ".." / "shared/parquet-testing")
    / "shredded_variant"
)
MISSING = f"no corpus in {CORPUS}: set PARQUET_TEST_DATA"

Case = dict[str, Any]
CASES: list[Case] = json.loads((CORPUS / "cases.json").read_text()) if (CORPUS / "cases.json").is_file() else []
CASES = [case for case in CASES if "parquet_file" in case]

# The reason for which each file that has no value is refused.
REASONS = {
    40: "both-set",
    42: "both-set",
    87: "non-object-value",
    127: "unsupported-type",
    128: "non-object-value",
    137: "unsupported-type",
}
REFUSED = [case for case in CASES if "error_message" in case]
# A shredded field is in the residual too: "implementations can choose to error, or read the shredded value".
CONTRADICTORY = [case for case in CASES if case["case_number"] in (43, 125)]
READABLE = [case for case in CASES if case not in REFUSED and case not in CONTRADICTORY]
# What `validate` finds in readable files: optional groups of fields, and rows or elements with neither column set.
VIOLATIONS = {84: "field-not-required", 85: "missing", 129: "missing"}


def name(case: Case) -> str:
    """The file's name without its suffix."""
    return Path(case["parquet_file"]).stem


def path(case: Case) -> Path:
    """The Parquet file."""
    return CORPUS / str(case["parquet_file"])


def expected(case: Case) -> list[Variant | None]:
    """The values that its rows have; None for a SQL NULL."""
    files = case.get("variant_files") or [case["variant_file"]]
    return [None if file is None else Variant.from_bytes((CORPUS / file).read_bytes()) for file in files]
