"""Built kernels and kernels that are compiled on first use: one meaning, on every CPU level."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import parquet_variant as pv
from parquet_variant.kernels.machine_code.entry_points import Jit
from parquet_variant.kernels.machine_code.library import TABLE, Library, levels_here
from variant_strategies import json_texts, shredding_schemas

pytestmark = [
    pytest.mark.skipif(not levels_here(), reason="no libraries of kernels are built on this platform"),
    # In one process, because building the libraries takes half a minute.
    pytest.mark.xdist_group("machine code"),
]


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[tuple[Jit | Library, dict[str, Any]]]]:
    """Every way to the code, each with the entry points that it has given; the process's own comes back at the end."""
    pytest.importorskip("numba", reason="the libraries are built here, which needs Numba")
    from parquet_variant.kernels.machine_code.building import build
    from parquet_variant.kernels.machine_code.functions import find_kernels

    folder = tmp_path_factory.mktemp("libraries")
    build(levels_here(), folder / "built", processes=1)
    table = json.loads((folder / "built" / TABLE).read_text())
    built: list[Jit | Library] = [
        Library(level, ctypes.CDLL(str(folder / "built" / table["libraries"][level]["file"])), table["kernels"])
        for level in levels_here()
    ]
    host = Jit()
    host.level = "host"
    own = [(kernel, kernel.__dict__.pop("_entry", None)) for kernel in find_kernels()]
    yield [(code, {}) for code in (*built, Jit(), host)]
    for kernel, entry in own:
        kernel.__dict__.pop("_entry", None)
        if entry is not None:
            kernel.__dict__["_entry"] = entry


def _with(code: Jit | Library, entries: dict[str, Any], texts: list[str], schema: pv.ShreddingSchema) -> list[Any]:
    """What the main operations give, bytes and all, with kernels from one place."""
    from parquet_variant.kernels.machine_code.functions import find_kernels

    kernels = find_kernels()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("parquet_variant.kernels.machine_code.entry_points.machine_code", lambda: code)
        for kernel in kernels:
            kernel.__dict__.pop("_entry", None)
            if kernel.symbol in entries:
                kernel.__dict__["_entry"] = entries[kernel.symbol]
        rows = pv.parse_json(texts, errors="null")
        shredded = pv.shred_variant(rows, schema)
        again = pv.unshred_variant(shredded)
        answers = [
            *(array.storage.to_pylist() for array in (rows, shredded, again)),
            *(pv.to_json(array).to_pylist() for array in (rows, shredded)),
            pv.variant_type(rows).to_pylist(),
            pv.schema_of_variant(rows).to_pylist(),
            pv.variant_get(shredded, "$.a", "string", errors="null").to_pylist(),
            pv.validate(rows) if hasattr(pv, "validate") else None,
        ]
        for kernel in kernels:
            if "_entry" in kernel.__dict__:
                entries[kernel.symbol] = kernel.__dict__.pop("_entry")
    return answers


@given(st.lists(json_texts(), min_size=1, max_size=8), shredding_schemas())
def test_every_way_gives_the_same(codes: Any, texts: list[str], schema: pv.ShreddingSchema) -> None:
    first, *others = [_with(code, entries, texts, schema) for code, entries in codes]
    for other in others:
        assert other == first


def test_they_are_different_ways(codes: Any) -> None:
    assert len({(code.mode, code.level) for code, _ in codes}) == len(codes) >= 3


def test_every_kernel_is_in_the_library(codes: Any) -> None:
    from parquet_variant.kernels.machine_code.functions import find_kernels

    library, _ = codes[0]
    for kernel in find_kernels():
        assert library.address(kernel)
    assert Path(library.handle._name).exists()
