"""A path of a scan that no row has warns of the similar path, in every format."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import parquet_variant as pv

ROWS = ['{"id": 1, "user": {"name": "Ann"}}', '{"id": 2, "user": {"name": "Bob"}}']


@pytest.mark.parametrize("form", ["file", "delta", "iceberg", "vortex", "ndjson", "memory"])
def test_every_format_names_the_similar_path(tmp_path: Path, form: str) -> None:
    if form == "iceberg":
        pytest.importorskip("fastavro", reason="fastavro is not installed")
    rows, source = pv.parse_json(ROWS), tmp_path / f"rows.{form}"
    if form == "vortex":
        pytest.importorskip("vortex", reason="Vortex is not installed")
        pv.write(source, {"v": rows}, format="vortex")
    elif form == "ndjson":
        source.write_text("\n".join(ROWS))
    elif form != "memory":
        given: Any = {"format": form} if form in ("delta", "iceberg") else {}
        pv.write(source, {"v": rows}, **given)
    table = pv.open(rows if form == "memory" else source)
    with pytest.warns(UserWarning, match=r"no row has the path \$\.usr\.name: did you mean \$\.user\.name\?"):
        assert table.scan({"name": "$.usr.name:string"}).to_arrow().num_rows == 2
    with pytest.warns(UserWarning, match=r"did you mean \$\.user\.name\?"):
        assert table.scan({"id": "$.id:int"}, "$.user.nmae:string = 'Ann'").to_pylist() == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert table.scan({"name": "$.user.name:string"}, "$.id:int = 7").to_arrow().num_rows == 0
        assert table.scan({"other": "$.zzz:string"}).to_arrow().num_rows == 2
