"""Headless Chromium for the pages, and a small table to look at."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv

_FLAGS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--window-size=1400,900"),
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium with a driver; skipped where Debian's packages chromium and chromium-driver are not installed."""
    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium")
    if driver is None or chromium is None:
        pytest.skip("chromium and chromium-driver are not installed: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in _FLAGS:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(service=webdriver.ChromeService(driver), options=options)
    chrome.set_script_timeout(60)
    yield chrome
    chrome.quit()


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of three row groups: typed paths, mixed ones, rare ones, lists."""
    folder = tmp_path_factory.mktemp("explored") / "events"
    folder.mkdir()
    for file in range(2):
        rows = [json.dumps(_event(file * 3000 + n)) for n in range(3000)]
        pv.write(
            folder / f"part-{file}.parquet",
            pv.parse_json(rows),
            schema="id bigint, kind string, user struct<name: string>, tags array<string>, size bigint",
            row_group_bytes=60_000,
        )
    return folder


def _event(n: int) -> dict[str, Any]:
    """One event; every twelfth has an issue, every tenth a text for a size."""
    event = {
        "id": n,
        "kind": "push" if n % 3 else "pull",
        "user": {"name": f"u{n % 50}"},
        "tags": ["a", f"b{n % 7}"],
        "size": n if n % 10 else "many",
    }
    return event | ({"issue": {"number": n, "title": f"number {n} of the rare ones"}} if n % 12 == 0 else {})
