"""The CPU levels for which machine code is built, and which of them this machine supports.

Owns the names. Leaves the LLVM options of each level to `building.objects`.
"""

from __future__ import annotations

import platform
import sys

X86_64, X86_64_V3, AARCH64 = "x86-64", "x86-64-v3", "aarch64"
LEVELS = (X86_64_V3, X86_64, AARCH64)

# Flags of x86-64-v3 beyond the baseline, as Linux spells them (psABI, "Micro-Architecture Levels"; abm is lzcnt).
_V3_FLAGS = frozenset(
    (
        *("cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"),
        *("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"),
    )
)


def cpu_flags() -> frozenset[str]:
    """Return the flags of the first CPU; empty if Linux does not report them."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as lines:  # noqa: PTH123
            for line in lines:
                if line.startswith("flags"):
                    return frozenset(line.partition(":")[2].split())
    except OSError:
        pass
    return frozenset()


def architecture(level: str) -> str:
    """Return the architecture of a level, as Linux names it."""
    return "aarch64" if level == AARCH64 else "x86_64"


def platform_tag(levels: tuple[str, ...]) -> str:
    """Return the platform tag of a wheel with libraries for some levels.

    >>> platform_tag((X86_64_V3, X86_64))
    'manylinux_2_17_x86_64'
    """
    (name,) = {architecture(level) for level in levels}
    return f"manylinux_2_17_{name}"


def _architecture_here() -> str | None:
    """Return the architecture of this machine, if libraries are built for it."""
    if not sys.platform.startswith("linux") or sys.maxsize < 2**32:
        return None
    names = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
    return names.get(platform.machine().lower())


def levels_of_wheel() -> tuple[str, ...]:
    """Return all levels of this machine's architecture, best first; empty if no libraries are built for it."""
    return tuple(level for level in LEVELS if architecture(level) == _architecture_here())


def levels_here() -> tuple[str, ...]:
    """Return the levels whose code this machine can run, best first; empty if no libraries are built for it."""
    levels = levels_of_wheel()
    if X86_64_V3 in levels and not cpu_flags() >= _V3_FLAGS:
        return (X86_64,)
    return levels
