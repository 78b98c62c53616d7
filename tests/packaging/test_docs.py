"""The documentation as a site: every page is in it, every link leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))


def test_every_page_is_in_the_navigation() -> None:
    named = set(re.findall(r":\s+(\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE))
    assert named == {str(page.relative_to(ROOT / "docs")) for page in PAGES}


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_what_the_conformance_table_names_is_there() -> None:
    named = re.findall(r"`(tests/[^`]+)`", (ROOT / "docs/conformance.md").read_text("utf-8"))
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []
