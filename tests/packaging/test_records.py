"""Records are frozen data classes."""

from __future__ import annotations

import inspect
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from typing import Generic, TypeVar

import pytest

from parquet_variant.support.records import Record, cached_property

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


class ById(Record, frozen=False):
    id: int
    note: str = field(default="", repr=False)
    seen: list[int] = field(init=False, default_factory=list, compare=False)

    def __hash__(self) -> int:
        return self.id


class Folded(Record):  # noqa: PLW1641 - Record hashes it
    text: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Folded) and self.text.lower() == other.text.lower()


class Counter(Record, frozen=False):
    count: int = 0

    @cached_property
    def half(self) -> float:
        return self.count / 2


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
    assert pickle.loads(pickle.dumps(Point(1))) == Point(1)
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


def test_a_record_keeps_the_methods_of_its_class() -> None:
    assert hash(ById(3, "a")) == 3
    assert ById(3, "a") != ById(3, "b")
    assert repr(ById(3, "a")) == "ById(id=3, seen=[])"
    with pytest.raises(TypeError, match="seen"):
        ById(3, seen=[1])  # type: ignore[call-arg]
    assert Folded("A") == Folded("a")
    assert hash(Folded("A")) == hash(Folded("A"))


def test_the_signature_of_a_record_is_that_of_a_data_class() -> None:
    def shown(of: type) -> str:
        return str(inspect.signature(of)).removesuffix(" -> None")

    assert shown(Point) == shown(Plain)
    assert shown(Named) == shown(Point).replace(")", ", name: 'str' = '')")
    assert shown(Identity) == "(*, x: 'int')"
    Named(1)  # a class made after an object of its base has an __init__ of its own
    Later = type("Later", (Named,), {"__annotations__": {"last": "int"}, "last": 2, "__module__": __name__})
    assert Later(1, last=4).last == 4


def test_a_record_is_pickled_without_cached_properties() -> None:
    counter = Counter(3)
    assert (counter.half, list(vars(counter))) == (1.5, ["count", "half"])
    loaded = pickle.loads(pickle.dumps(counter))
    assert vars(loaded) == {"count": 3}
    assert loaded.half == 1.5
