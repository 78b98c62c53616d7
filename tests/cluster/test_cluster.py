"""The pipeline on a standalone cluster on which an executor is killed, one stands still, and a worker dies.

Run by `make test-cluster`, which says how much JSON goes through: it takes more processes than other tests may have.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import parquet_variant as pv

pytestmark = [pytest.mark.spark, pytest.mark.slow]
_MEGABYTES = int(os.environ.get("CLUSTER_MB", "0"))


def _lines(size: int) -> list[str]:
    """JSON lines as `to_json` writes them, no two alike."""
    made, total = [], 0
    while total < size:
        n = len(made)
        words = [f"word{(n * k) % 97}" for k in range(n % 9)]
        made.append(json.dumps({"n": n, "text": " ".join(words) * 5, "words": words}, separators=(",", ":")))
        total += len(made[-1]) + 1
    return made


def _written(rows: pv.VariantArray) -> list[str]:
    return sorted(pv.to_json(rows).to_pylist())


@pytest.mark.skipif(_MEGABYTES == 0, reason="a cluster is started by make test-cluster")
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are found in /proc")
def test_rows_survive_what_befalls_a_cluster(tmp_path):
    pytest.importorskip("hatchling", reason="hatchling, which builds the wheel, is not installed")
    from cluster.standalone import build_archive, cluster

    lines = _lines(_MEGABYTES << 20)
    source = tmp_path / "source.ndjson"
    source.write_text("\n".join(lines) + "\n")
    archive = build_archive(tmp_path)
    with cluster(tmp_path / "cluster") as running:
        program = [sys.executable, str(Path(__file__).with_name("pipeline.py")), running.address]
        arguments = [str(archive), str(source), str(tmp_path), *map(str, running.workers)]
        # Spark plans a data source on the driver with the executors' Python, by the same relative path.
        done = subprocess.run(
            [*program, *arguments], capture_output=True, text=True, timeout=1800, check=False, cwd=tmp_path
        )
    said = "\n".join(line for line in done.stderr.splitlines() if not line.startswith("\tat "))
    print(said)
    assert done.returncode == 0, said[-4000:]
    assert "Traceback" not in said
    message = json.loads(done.stdout.splitlines()[-1])
    assert all("/environment/" in place and str(tmp_path) in place for place in message["package"])
    counts = {message[name] for name in ("ingest", "slow ingest", "read", "delta", "delta append")}
    assert counts == {len(lines)}
    assert message["sum"] == sum(range(len(lines)))
    assert message["accidents"] == [True, True, True]
    assert message["speculative"] >= 1
    expected = sorted(lines)
    for name in ("files", "slow", "copy"):
        assert _written(pv.open(tmp_path / name).read()) == expected, name
        assert not (tmp_path / name / "_temporary").exists(), name
    assert _written(pv.open(tmp_path / "table").read()) == sorted(lines * 3)
    assert pv.open(tmp_path / "table").snapshot.version == 2
