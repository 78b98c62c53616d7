"""A process that compiles kernels: it reads one kernel per line, and answers each with one line.

Owns the loop. Each core has its own process, because Numba and LLVM hold global locks; functions that were compiled for
one kernel are reused for the next.
"""

from __future__ import annotations

import json
import sys

from parquet_variant.kernels.machine_code.building.objects import build_objects
from parquet_variant.kernels.machine_code.functions import find_kernel


def _serve() -> None:
    for line in sys.stdin:
        module, name, levels, targets = json.loads(line)
        try:
            for content, target in zip(build_objects(find_kernel(module, name), tuple(levels)), targets, strict=True):
                with open(target, "wb") as file:  # noqa: PTH123
                    file.write(content)
            answer = ""
        except Exception as failed:
            answer = f"{type(failed).__name__}: {failed}"
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve()
