"""The time that the log tells.

Owns the one clock. Leaves who must be later than whom to `told`.
"""

from __future__ import annotations

import time


def now_millis() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000
