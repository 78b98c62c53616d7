"""New cases each run; a seed brings them back.

Owns the seed (``FUZZ_SEED``; `conftest` sets it to a new one, and prints it) and how many cases a suite tries: its own
number, so that a seed means the same cases on every machine, or as many as fit into ``FUZZ_SECONDS``. Leaves the cases
to the suites.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import given, seed, settings

__all__ = ["SECONDS", "SEED", "given_new", "random_source", "tries"]

SEED = int(os.environ["FUZZ_SEED"])
SECONDS = float(os.environ.get("FUZZ_SECONDS") or 0)


def given_new(*strategies: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Hypothesis's `given`, with the seed of this run, also where the profile asks for the same cases each time."""
    return lambda test: seed(SEED)(settings(derandomize=False, database=None)(given(*strategies)(test)))


@contextmanager
def random_source(suite: str, number: int) -> Iterator[random.Random]:
    """The random source of one case; an error in it says how to see it again."""
    try:
        yield random.Random(f"{SEED} {suite} {number}")
    except BaseException as error:
        error.add_note(f"case {number} of {suite}: run it again with FUZZ_SEED={SEED}")
        raise


def tries(suite: str, cases: int, share: float = 1) -> Iterator[int]:
    """Yield numbers of cases: a fixed number, or until a share of the time is over; print their count and the seed."""
    stop = time.monotonic() + share * SECONDS
    number = 0
    while time.monotonic() < stop if SECONDS and number > 1 else number < cases:
        yield number
        number += 1
    print(f"{suite}: {number} cases, FUZZ_SEED={SEED}")
