"""Steps that depend on nothing but their input, done by several threads, their results in order.

Owns reading ahead, and how far. Leaves what the steps do to the caller; they should let go of the GIL, as kernels,
codecs and pyarrow do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Queue
from threading import Event, Semaphore
from typing import TypeVar

__all__ = ["results_in_order"]

Result = TypeVar("Result")


def results_in_order(steps: Iterator[Callable[[], Result]], threads: int) -> Iterator[Result]:
    """Do steps in several threads, and give their results in the order of the steps.

    Parameters
    ----------
    steps
        Read by one thread of its own, at most so many ahead as there are threads.
    threads
        How many work on the steps; with 1 everything is done where the results are taken.

    Raises
    ------
    Exception
        What a step, or reading them, raised, after the results before it.

    Examples
    --------
    >>> list(results_in_order((lambda n=n: n * n for n in range(5)), 2))
    [0, 1, 4, 9, 16]
    """
    if threads == 1:
        for step in steps:
            yield step()
        return
    found: Queue[Future[Result] | None] = Queue()
    ahead, stopped = Semaphore(threads), Event()
    workers = ThreadPoolExecutor(threads + 1)  # one of them reads

    def read() -> None:
        try:
            for step in steps:
                found.put(workers.submit(step))
                ahead.acquire()
                if stopped.is_set():
                    return
            found.put(None)
        except BaseException as error:
            failed: Future[Result] = Future()
            failed.set_exception(error)
            found.put(failed)

    try:
        workers.submit(read)
        while (result := found.get()) is not None:
            yield result.result()
            ahead.release()
    finally:
        stopped.set()
        ahead.release()
        workers.shutdown(cancel_futures=True)
