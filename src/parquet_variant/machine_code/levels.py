"""The CPU levels that machine code is made for, and which of them this machine has.

Owns the names. Leaves what LLVM is told about each to `building.objects`.
"""

from __future__ import annotations

import platform
import sys

__all__ = ["AARCH64", "LEVELS", "X86_64", "X86_64_V3", "levels_here"]

X86_64, X86_64_V3, AARCH64 = "x86-64", "x86-64-v3", "aarch64"
LEVELS = (X86_64_V3, X86_64, AARCH64)

# What x86-64-v3 has beyond the baseline, as Linux spells it (psABI, "Micro-Architecture Levels"; abm is lzcnt).
_V3_FLAGS = frozenset(
    (
        *("cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"),
        *("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"),
    )
)


def _cpu_flags() -> frozenset[str]:
    """Flags of the first CPU; none where Linux does not tell them."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:  # noqa: PTH123
            for line in lines:
                if line.startswith("flags"):
                    return frozenset(line.partition(":")[2].split())
    except OSError:
        pass
    return frozenset()


def levels_here() -> tuple[str, ...]:
    """Levels whose code this machine runs, the best first; none where no libraries are built."""
    if not sys.platform.startswith("linux") or sys.maxsize < 2**32:
        return ()
    machine = platform.machine().lower()
    if machine in ("x86_64", "amd64"):
        return (X86_64_V3, X86_64) if _cpu_flags() >= _V3_FLAGS else (X86_64,)
    return (AARCH64,) if machine in ("aarch64", "arm64") else ()
