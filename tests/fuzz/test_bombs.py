"""Inputs that ask for much more than they are: each ends in an error, or in an answer, in bounded time and memory.

Each runs in a process of its own whose address space may grow by `ROOM` bytes only, and is stopped after two minutes.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux's")

ROOM = 3 << 30
_PRELUDE = """
import faulthandler, gzip, json, resource, sys, zlib
import parquet_variant as pv
pv.to_json(pv.parse_json(["[1]"]))
faulthandler.enable()
used = int(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmSize"))) * 1024
resource.setrlimit(resource.RLIMIT_AS, (used + {room}, used + {room}))
def refused(work, *reasons):
    try:
        work()
    except pv.VariantError as error:
        assert not reasons or error.reason in reasons, error.reason
        print("refused:", error.reason)
    else:
        assert not reasons, "nothing was refused"
        print("answered")
folder = sys.argv[1]
"""

BOMBS = {
    "depth": """
        for opener in ("[", '{"a":'):
            refused(lambda: pv.parse_json([opener * 3_000_000]), "depth")
            refused(lambda: pv.parse_json([opener * 500_000], max_depth=1_000_000), "unexpected-end")
    """,
    "a million keys": """
        text = json.dumps({f"k{n}": n for n in range(1_000_000)})
        array = pv.parse_json([text])
        assert pv.variant_get(array, "$.k999999", "int").to_pylist() == [999999]
        assert len(pv.to_json(array)[0].as_py()) == len(text.replace(" ", ""))
    """,
    "counts": """
        metadata = bytes.fromhex("110000")
        for head in (b"\\x13", b"\\x42", b"\\x1f", b"\\x7e"):
            value = head + b"\\xff\\xff\\xff\\x7f" + bytes(64)
            array = pv.VariantArray.from_variants([pv.Variant(metadata, value)])
            refused(lambda: pv.to_json(array), "truncated", "malformed", "bad-offset", "bad-count")
            refused(lambda: pv.shred_variant(array, "array<struct<a int>>"))
            refused(lambda: pv.infer_shredding_schema(array))
    """,
    "aliased offsets": """
        inner = b"\\x00"
        for _ in range(40):  # each level holds the one below it 200 times
            inner = bytes([0x0F, 200]) + bytes(4) * 200 + len(inner).to_bytes(4, "little") + inner
        array = pv.VariantArray.from_variants([pv.Variant(bytes.fromhex("110000"), inner)])
        for work in (pv.to_json, pv.infer_shredding_schema, pv.variant_normalize, pv.schema_of_variant,
                     lambda v: pv.variant_get(v, "$[*]", "string"), lambda v: pv.shred_variant(v, "array<array<int>>")):
            refused(lambda: work(array), "overlap", "malformed", "bad-offset")
        refused(lambda: pv.validate(array))
    """,
    "one long line": """
        with open(folder + "/line.json", "wb") as file:
            file.write(b'"')
            for _ in range(300):
                file.write(b"x" * (1 << 20))
            file.write(b'"')
        refused(lambda: pv.ingest(folder + "/line.json", folder + "/out"))
    """,
    "gzip": """
        with gzip.open(folder + "/bomb.json.gz", "wb", 9) as file:
            for _ in range(300):
                file.write(bytes(1 << 20))
        refused(lambda: pv.ingest(folder + "/bomb.json.gz", folder + "/out"))
    """,
    "zstd": """
        import pyarrow as pa
        with pa.output_stream(folder + "/bomb.json.zst", compression="zstd") as file:
            for _ in range(100):
                file.write(b"[" * (1 << 20))
        refused(lambda: pv.ingest(folder + "/bomb.json.zst", folder + "/out"))
    """,
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_ends(name: str, tmp_path: Path) -> None:
    script = _PRELUDE.format(room=ROOM) + textwrap.dedent(BOMBS[name])
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{done.stdout[-300:]}\n{done.stderr[-1500:]}"
    assert done.stdout or name == "a million keys"
