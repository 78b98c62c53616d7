"""Ratios in docs/performance.md: each has a benchmark, and one that is much better than measured is reported."""

from __future__ import annotations

from benchmarks.documented import OTHER_TABLES, PAGE, RESULTS, SOURCES, overstated, ratios, tasks

TASK = "parse JSON to Variant, one thread"


def _page(ratio: str) -> str:
    rows = ["| task | compared with | ratio |", "|---|---|---|", f"| {TASK} | DuckDB | {ratio} |"]
    return "\n".join(["## What is fast", "", *rows, "", "## Next", ""])


def _sections(*measured: float) -> list[str]:
    row = "| DuckDB ::JSON::VARIANT | 0.3 (0.2–0.4) | 116 | {} (1.0–9.0) | ≥ 3 | met |"
    return [f"### parse: data {number}\n\n{row.format(ratio)}\n" for number, ratio in enumerate(measured)]


def test_each_row_of_the_page_has_a_benchmark_with_results() -> None:
    sections = RESULTS.read_text().split("### ")[1:]
    documented = tasks(PAGE.read_text())
    assert set(documented) == {*SOURCES, *OTHER_TABLES}
    for task, source in SOURCES.items():
        assert "times as fast" in documented[task]
        assert len(list(ratios(sections, *source))) >= 3, task


def test_a_ratio_that_is_more_than_15_percent_better_than_measured_is_reported() -> None:
    assert overstated(_page("3.4 to 5 times as fast"), _sections(3.0, 4.4)) == []
    assert overstated(_page("3.4 to 5 times as fast"), _sections(2.9, 4.3)) == [
        f"docs/performance.md, {TASK}: 3.4 times as fast is documented, 2.90 measured",
        f"docs/performance.md, {TASK}: 5 times as fast is documented, 4.30 measured",
    ]
    assert overstated(_page("4 times as fast"), _sections(3.0, 9.0)) == [
        f"docs/performance.md, {TASK}: 4 times as fast is documented, 3.00 measured"
    ]


def test_a_task_that_was_not_measured_is_not_reported() -> None:
    assert overstated(_page("400 times as fast"), ["### ingest: data\n"]) == []
