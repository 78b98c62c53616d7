"""The steps and cases that a test tries: all of them in `make fuzz`, else a random part that ``FUZZ_SEED`` chooses."""

from __future__ import annotations

import os
from collections.abc import Sequence
from random import Random
from typing import TypeVar

__all__ = ["chosen_cases", "chosen_steps"]

_MOST = 3
_Case = TypeVar("_Case")


def chosen_cases(cases: Sequence[_Case], most: int) -> list[_Case]:
    """Return ``most`` random cases in their order; all of them if ``FUZZ_SECONDS`` is set."""
    if os.environ.get("FUZZ_SECONDS") or most >= len(cases):
        return list(cases)
    random = Random(int(os.environ["FUZZ_SEED"]) + len(cases))
    return [cases[index] for index in sorted(random.sample(range(len(cases)), most))]


def chosen_steps(steps: int, first: int = 0, always: tuple[int, ...] = ()) -> list[int]:
    """Return the numbers of the steps to try, in order: ``always``, and random ones of the others."""
    every = range(first, first + steps)
    needed = set(always) & set(every)
    return sorted(needed | set(chosen_cases([step for step in every if step not in needed], _MOST)))
