"""docs/architecture.md: every module, class and function that it names is there."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src/parquet_variant"
PAGE = (ROOT / "docs/architecture.md").read_text("utf-8")
ROOMS = sorted(path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists())
SETTING = "spark.python.unix.domain.socket.enabled"  # Spark's, not a module.


def _spans(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))


def _dotted() -> list[str]:
    """Names such as ``ingestion.task.SplitArrays``, of the prose and of the drawing."""
    names = [name.removeprefix("pv.") for name in _spans(PAGE) if name != SETTING]
    drawn = re.findall(r"\b[a-z_]+(?:\.[a-z_]+)+", "".join(re.findall(r"^```$(.*?)^```$", PAGE, re.DOTALL | re.M)))
    return sorted({name for name in (*names, *drawn) if re.fullmatch(rf"({'|'.join(ROOMS)})(\.(?!py$)\w+)+", name)})


def _paths() -> list[str]:
    """Names such as ``kernels/buffer_pool.py`` and ``parquet/pages``."""
    return sorted({name for name in _spans(PAGE) if re.fullmatch(rf"({'|'.join(ROOMS)})(/\w+)*(/\w+|\.py)", name)})


def _is_there(name: str) -> bool:
    """Whether the longest part of a name that is a module has the rest."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        path = PACKAGE.joinpath(*parts[:count])
        if path.is_dir() or path.with_suffix(".py").exists():
            rest, owner = parts[count:], import_module(".".join(["parquet_variant", *parts[:count]]))
            return reduce(lambda each, part: getattr(each, part, None), rest, owner) is not None
    return False


def test_the_page_names_many() -> None:
    assert len(_dotted()) > 20
    assert len(_paths()) > 0


@pytest.mark.parametrize("name", _dotted())
def test_dotted_names_are_there(name: str) -> None:
    if name.startswith("spark."):
        pytest.importorskip("pyspark")
    assert _is_there(name)


@pytest.mark.parametrize("name", _paths())
def test_paths_are_there(name: str) -> None:
    assert (PACKAGE / name).exists()


def test_the_table_has_every_layer() -> None:
    layers = PAGE.partition("\n## Layers\n")[2].partition("\n## ")[0]
    table = re.findall(r"^\| (`[^|]+) \|", layers, re.MULTILINE)
    named = {name.partition(".")[0] for cell in table for name in _spans(cell)}
    assert named == {room for room in ROOMS if not room.startswith("_")}


@pytest.mark.parametrize("journey", re.findall(r"^\*\*(.+?)\*\* \((?:.+)$", PAGE, re.MULTILINE))
def test_a_journey_has_at_most_ten_stops(journey: str) -> None:
    expected = PAGE.split(f"**{journey}**")[1].split("\n**")[0].split("\n## ")[0]
    stops = [int(number) for number in re.findall(r"^(\d+)\. ", expected, re.MULTILINE)]
    assert stops == list(range(1, len(stops) + 1))
    assert 1 < len(stops) <= 10
