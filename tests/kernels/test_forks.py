"""Processes forked while other threads work: each child must be able to do the same work, and end."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")

# Runs `job` in threads and forks; the alarm of the system kills a child that hangs, which changes its exit status.
_PRELUDE = """
import os, signal, sys, threading, time

def statuses(forks, job):
    children = []
    for _ in range(forks):
        child = os.fork()
        if not child:
            signal.alarm(60)
            try:
                job()
                os._exit(0)
            except BaseException as error:
                print(repr(error), file=sys.stderr, flush=True)
                os._exit(1)
        children.append(child)
        if len(children) % 4 == 0:
            time.sleep(0.01)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
"""

_PARSE = """
import parquet_variant as pv

rows = [f'{{"a": [1, {{"b": 2.5}}], "c": "x{n}"}}' for n in range(100)]

def job():
    array = pv.parse_json(rows)
    assert array.to_pylist()[7]["c"] == "x7"
    shredded = pv.shred_variant(array, "struct<a: array<struct<b: double>>, c: string>")
    assert pv.to_json(shredded)[3].as_py() == '{"a":[1,{"b":2.5}],"c":"x3"}'
    assert pv.variant_get(shredded, "$.c", "string")[5].as_py() == "x5"

def work():
    while True:
        job()

def start():
    for _ in range(3):
        threading.Thread(target=work, daemon=True).start()
"""


def _run(script: str) -> str:
    """Return what a script prints; fail with its errors if it does not end well."""
    run = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", _PRELUDE + script],
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@pytest.mark.machine_code
def test_children_forked_while_threads_parse_shred_and_extract_end() -> None:
    assert _run(f"{_PARSE}\njob()\nstart()\nprint(set(statuses(60, job)), flush=True)\nos._exit(0)") == "{0}"


@pytest.mark.machine_code
@pytest.mark.parametrize("seconds", [0.05, 0.3])
def test_children_forked_while_threads_load_everything_for_the_first_time_end(seconds: float) -> None:
    script = f"{_PARSE}\nstart()\ntime.sleep({seconds})\nprint(set(statuses(4, job)), flush=True)\nos._exit(0)"
    assert _run(script) == "{0}"


def test_a_fork_does_not_wait_for_an_import_in_another_thread_and_the_child_imports_the_module_again() -> None:
    script = """
import logging
import parquet_variant

importing, end = threading.Event(), threading.Event()
name = "parquet_variant.kernels.json.scalar_text"

def pause(event, arguments):
    if event == "import" and arguments[0] == "parquet_variant.kernels.json.scalar_text" and not importing.is_set():
        importing.set()
        end.wait()

def use():
    module = __import__(name, fromlist=["timestamp_text"])
    assert module.timestamp_text and not module.__spec__._initializing

sys.addaudithook(pause)
thread = threading.Thread(target=use)
thread.start()
assert importing.wait(30)
print(statuses(3, use), end.is_set())
end.set()
thread.join()
use()
"""
    assert _run(script) == "[0, 0, 0] False"


def test_a_child_computes_a_cached_property_that_another_thread_computes() -> None:
    script = """
from parquet_variant.support.records import cached_property

begun, end = threading.Event(), threading.Event()

class Rows:
    def __init__(self, waits):
        self.waits = waits

    @cached_property
    def count(self):
        if self.waits:
            begun.set()
            end.wait()
        return 1

threading.Thread(target=lambda: Rows(True).count).start()
assert begun.wait(30)
print(statuses(1, lambda: Rows(False).count))
end.set()
"""
    assert _run(script) == "[0]"


def test_threads_that_compute_a_cached_property_together_get_one_object() -> None:
    script = """
from parquet_variant.support.records import cached_property

barrier = threading.Barrier(2)

class Rows:
    @cached_property
    def values(self):
        barrier.wait()
        return []

rows, found = Rows(), []
threads = [threading.Thread(target=lambda: found.append(rows.values)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(found[0] is found[1] is rows.values)
"""
    assert _run(script) == "True"
