"""The steps at which tests kill a process or let a call fail: all of them in `make fuzz`, else a random part."""

from __future__ import annotations

import os
from random import Random

_MOST = 8


def chosen_steps(steps: int, first: int = 0, always: tuple[int, ...] = ()) -> list[int]:
    """Return the numbers of steps to try, in order, out of ``steps`` that begin with ``first``.

    Without ``FUZZ_SECONDS`` (`make fuzz` sets it), eight random steps, which depend on ``FUZZ_SEED``, and ``always``.
    """
    every = range(first, first + steps)
    if os.environ.get("FUZZ_SECONDS"):
        return list(every)
    random = Random(int(os.environ["FUZZ_SEED"]) + steps)
    return sorted({*(step for step in always if step in every), *random.sample(every, min(_MOST, steps))})
