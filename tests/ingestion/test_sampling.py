"""A sample has the same lines for any splits, and whether or not the file can be read in parts."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parquet_variant.errors import JsonError
from parquet_variant.ingestion.formats.layout import TextLayout
from parquet_variant.ingestion.request import TextOptions
from parquet_variant.ingestion.sources.chunks import sampled_text
from parquet_variant.ingestion.sources.input_files import InputFile
from parquet_variant.ingestion.sources.splits import Split
from parquet_variant.ingestion.task import profile_splits


def text_of(rows: int, pad: int, bom: bool, last_newline: bool) -> bytes:
    lines = [json.dumps({"n": i, f"k{i % 7}": "x" * (i * 37 % pad)}) for i in range(rows)]
    return (b"\xef\xbb\xbf" if bom else b"") + "\n".join(lines).encode() + (b"\n" if last_newline else b"")


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 4000), st.sampled_from([1, 50, 3000]), st.booleans(), st.booleans(),
    st.sampled_from([0.01, 0.2, 0.7]), st.lists(st.floats(0, 1), max_size=4),
)  # fmt: skip
def test_the_sample_is_the_same_for_any_splits_and_for_compressed_files(
    tmp_path_factory: pytest.TempPathFactory,
    rows: int, pad: int, bom: bool, last_newline: bool, share: float, cuts: list[float],
) -> None:  # fmt: skip
    folder = tmp_path_factory.mktemp("sample")
    text = text_of(rows, pad, bom, last_newline)
    plain, packed = folder / "a.json", folder / "b.json.gz"
    plain.write_bytes(text)
    packed.write_bytes(gzip.compress(text, 1))
    bounds = [0, *sorted(int(cut * len(text)) for cut in cuts), len(text)]
    splits = [Split(InputFile(str(plain)), start, end) for start, end in itertools.pairwise(bounds)]
    options = TextOptions(sample=share)
    whole = profile_splits(options, 1, 0, 0, [Split(InputFile(str(plain)))])
    assert whole.rows > 0
    assert profile_splits(options, 1, 0, 0, splits) == whole
    assert sampled_text(Split(InputFile(str(packed))), share, TextLayout()) is None
    assert profile_splits(options, 1, 0, 0, [Split(InputFile(str(packed)))]) == whole


def test_a_bad_line_in_the_sample_is_named_by_its_number(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    lines = [json.dumps({"n": i, "pad": "x" * 100}) for i in range(3000)]
    lines[5] = '{"n": tru}'
    file.write_text("\n".join(lines))
    with pytest.raises(JsonError, match="line 6") as caught:
        profile_splits(TextOptions(sample=0.1), 1, 0, 0, [Split(InputFile(str(file)))])
    assert caught.value.file == str(file)


def test_sampled_lines_are_whole(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(text_of(5000, 400, False, True))
    text = sampled_text(Split(InputFile(str(file))), 0.2, TextLayout())
    assert text is not None
    numbers = [json.loads(line)["n"] for line in text.splitlines()]
    assert 0 < len(numbers) < 2500
    assert numbers == sorted(set(numbers))
