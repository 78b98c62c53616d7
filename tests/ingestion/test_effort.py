"""`effort=` names three points of the frontier of speed and size."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import parquet_variant as pv
from parquet_variant.cli.app import main


def test_efforts_order_the_sizes(tmp_path, capsys):
    source = Path(__file__).parents[2] / "examples" / "usgs_earthquakes.ndjson"
    lines = source.read_text().splitlines()
    sizes = {}
    for effort in ("fast", "balanced", "small"):
        result = pv.ingest(source, tmp_path / f"{effort}.parquet", effort=effort, one_file=True)
        sizes[effort] = result.bytes_written
        assert main(["ingest", str(source), str(tmp_path / f"cli-{effort}.parquet"), "--effort", effort]) == 0
        assert (tmp_path / f"cli-{effort}.parquet").stat().st_size == result.bytes_written
        assert pq.read_metadata(tmp_path / f"{effort}.parquet").num_rows == len(lines)
        pv.write(tmp_path / "b.parquet", pv.parse_json(lines), schema="infer", effort=effort, mode="overwrite")
    assert sizes["small"] < sizes["balanced"] <= sizes["fast"]
    # Several tasks choose the encodings before they start.
    parts = pv.ingest(source, tmp_path / "parts", effort="small", split_bytes=400_000)
    assert parts.bytes_written < pv.ingest(source, tmp_path / "more", effort="fast", split_bytes=400_000).bytes_written


def test_small_is_not_larger_where_high_levels_of_zstd_are(tmp_path):
    chance = random.Random(5)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 10))) for _ in range(3000)]

    def size(array, **options):
        return pv.write(tmp_path / "a.parquet", array, schema="t string", mode="overwrite", **options).bytes

    for texts in (
        ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz ", k=60)) for _ in range(3000)],
        [" ".join(chance.choices(words, k=12)) for _ in range(8000)],
    ):
        array = pv.parse_json([f'{{"t": "{text}"}}' for text in texts])
        assert size(array, compression_level=9) > size(array, effort="small")
        assert size(array, effort="fast") >= size(array, effort="balanced") >= size(array, effort="small")


def test_efforts_that_contradict_other_options_are_refused(tmp_path):
    array = pv.parse_json(["1"])
    for options, match in (
        ({"effort": "slow"}, "effort"),
        ({"effort": "fast", "compression_level": 3}, "compression_level="),
        ({"effort": "small", "compression": "gzip"}, "compression='gzip'"),
    ):
        with pytest.raises(pv.VariantFileError, match=match) as refused:
            pv.write(tmp_path / "a.parquet", array, **options)
        assert refused.value.reason == "bad-option"
