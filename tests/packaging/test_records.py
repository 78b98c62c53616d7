"""Records are frozen data classes, and importing one makes no methods."""

from __future__ import annotations

import pickle
import subprocess
import sys
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from threading import Barrier, Thread
from typing import Any, Generic, TypeVar

import pytest

from parquet_variant.support.records import Record

Value = TypeVar("Value")


class Point(Record):
    x: int
    y: int = 0
    tags: dict[str, int] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x is negative")


class Named(Point, Generic[Value]):
    name: str = ""


class Identity(Record, eq=False, kw_only=True):
    x: int


class Counter(Record, frozen=False):
    count: int = 0


@dataclass(frozen=True)
class Plain:
    x: int
    y: int = 0
    tags: dict[str, int] = field(default_factory=dict, compare=False)


def test_a_record_has_the_methods_of_a_data_class() -> None:
    assert repr(Point(1)) == repr(Plain(1)).replace("Plain", "Point")
    assert hash(Point(1)) == hash(Plain(1))
    assert Point(1) == Point(1, 0, {"a": 1}) != Point(1, 2)
    assert asdict(replace(Point(1), y=3)) == asdict(Plain(1, 3))
    assert [(f.name, f.default) for f in fields(Point)] == [(f.name, f.default) for f in fields(Plain)]
    assert Point(1).tags is not Point(1).tags
    with pytest.raises(FrozenInstanceError):
        Point(1).x = 2  # type: ignore[misc]
    with pytest.raises(TypeError, match=r"Point\.__init__\(\) missing 1 required positional argument: 'x'"):
        Point()  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="negative"):
        Point(-1)


def test_a_record_inherits_fields_and_has_its_own_options() -> None:
    assert Named(1, name="a") == Named(1, 0, {}, "a") != Named(1)
    assert Named(1) != Point(1)
    one = Identity(x=1)
    assert one == one != Identity(x=1)
    assert len({one, Identity(x=1)}) == 2
    counter = Counter()
    counter.count += 1
    assert counter == Counter(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(counter)
    with pytest.raises(TypeError):
        Identity(1)  # type: ignore[call-arg,misc]


_UNPICKLED = """
import pickle, sys
from dataclasses import asdict, replace
from parquet_variant.query.predicate import Like
objects = pickle.loads(bytes.fromhex(sys.argv[1]))
assert "__dataclass_params__" not in vars(Like)
{use}
"""


@pytest.mark.parametrize(
    "use",
    [
        "assert objects[0] == objects[1]",
        "assert len(set(objects)) == 1",
        "assert repr(objects[0])[:5] == 'Like('",
        "assert replace(objects[0]) == objects[1]",
        "assert asdict(objects[0])",
    ],
)
def test_objects_that_a_process_only_unpickled_are_whole(use: str) -> None:
    from parquet_variant.query.predicate import Like

    arguments: list[Any] = [None] * len(fields(Like))
    data = pickle.dumps([Like(*arguments), Like(*arguments)]).hex()
    subprocess.run([sys.executable, "-c", _UNPICKLED.format(use=use), data], check=True)


def test_threads_may_make_the_first_objects_together() -> None:
    for _ in range(50):

        class New(Record):
            x: int
            y: list[int] = field(default_factory=list)

        made, start = [], Barrier(8)

        def make(kind: type[New] = New, made: list[New] = made, start: Barrier = start) -> None:
            start.wait()
            made.append(kind(1))

        threads = [Thread(target=make) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert made == [New(1)] * 8


def test_importing_records_makes_the_methods_of_those_that_are_used() -> None:
    code = """
import parquet_variant.sql_query.sql, parquet_variant.ingestion.ingest, parquet_variant.tables.table.delta
from parquet_variant.support.records import Record
records = Record.__subclasses__()
print(len(records), *(record.__name__ for record in records if "__dataclass_params__" in vars(record)))
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    count, *made = run.stdout.split()
    assert 2 * len(made) < int(count)
