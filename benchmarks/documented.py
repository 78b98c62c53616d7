"""Compare the ratios in docs/performance.md with results: more than 15 % better than measured is an error.

Owns which benchmark stands behind each row of the table "What is fast". ``python -m benchmarks.documented`` compares
the page with RESULTS.md; `benchmarks.run` compares it with what it just measured, and exits with 1 if a ratio is too
good.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"
RESULTS = Path(__file__).with_name("RESULTS.md")
TOLERANCE = 1.15
# By task of the table: the headings of the sections, and the contender whose ratio is documented.
SOURCES = {
    "parse JSON to Variant, one thread": (r"parse: ", "DuckDB ::JSON::VARIANT"),
    "ingest NDJSON in process, given schema": (r"ingest: .* in process, .* schema given", "DuckDB, same schema"),
    "ingest NDJSON in process, inferred schema": (r"ingest: .* in process, .* schema inferred", "DuckDB, automatic"),
    "ingest NDJSON through Spark": (r"ingest: .* through Spark", "Spark, native"),
    "`to_json` of a shredded file": (r"to_json: ", "DuckDB"),
    "`variant_get` from a shredded array in memory": (r"arrow-rs: variant_get of ten paths, shredded", "arrow-rs"),
}
# Rows whose ratio is not that of a contender in a section: their benchmarks print other tables.
OTHER_TABLES = {
    "extract a shredded path",
    "append 1,000,000 plain rows to an Iceberg table",
    "plan a query over 10,000 Iceberg files",
    "first `parse_json` of a process",
}
_FASTER = re.compile(r"([\d.]+)(?: to ([\d.]+))? times as fast")


def tasks(page: str) -> dict[str, str]:
    """Return the ratio that the page documents for each task."""
    table = page.partition("## What is fast")[2].partition("\n\n## ")[0]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines() if line[:1] == "|"]
    return {row[0].strip("| "): row[2].strip("| ") for row in rows[2:]}


def ratios(sections: Iterable[str], heading: str, contender: str) -> Iterator[float]:
    """Yield our speed divided by the contender's, from each section whose heading matches."""
    for section in sections:
        if re.match(heading, section.removeprefix("### ")):
            for line in section.splitlines():
                cells = [cell.strip() for cell in line.strip("|").split(" | ")]
                if cells[0] == contender and len(cells) > 3 and (found := re.match(r"[\d.]+", cells[3])):
                    yield float(found[0])


def overstated(page: str, sections: list[str]) -> list[str]:
    """Return a message for each documented ratio that is more than 15 % better than the sections say."""
    messages = []
    for task, text in tasks(page).items():
        claim = _FASTER.search(text)
        if claim is None or task not in SOURCES:
            continue
        measured = list(ratios(sections, *SOURCES[task]))
        bounds = [(float(claim[1]), min), (float(claim[2] or claim[1]), max if claim[2] else min)]
        messages += [
            f"docs/performance.md, {task}: {documented:g} times as fast is documented, {extreme(measured):.2f} measured"
            for documented, extreme in dict.fromkeys(bounds)
            if measured and documented > TOLERANCE * extreme(measured)
        ]
    return messages


def main() -> None:
    """Compare the page with RESULTS.md."""
    messages = overstated(PAGE.read_text(), RESULTS.read_text().split("### ")[1:])
    sys.exit("\n".join(messages))


if __name__ == "__main__":
    main()
