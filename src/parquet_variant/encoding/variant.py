"""`Variant`: one value, read in place.

Owns navigation, children that must not share bytes, equality by meaning and the entry points of the conversions.
Leaves layouts to `header`, `scalars` and `metadata`, conversions to `python_values`, `json_reader` and `json_writer`,
and the complete check to `validate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any

from parquet_variant.encoding.header import Container, read_container, value_size
from parquet_variant.encoding.json_writer import json_pieces
from parquet_variant.encoding.metadata import check_version, dictionary_of, metadata_length
from parquet_variant.encoding.python_values import MAX_DEPTH, build_python, scalar_to_python
from parquet_variant.encoding.scalars import value_type
from parquet_variant.encoding.walk import (
    END,
    KEY,
    Event,
    Node,
    duplicate_key,
    field_names,
    node_of_value,
    tree_of_events,
    walk,
)
from parquet_variant.errors import MalformedVariantError, PathError, check_count
from parquet_variant.types import EXACT_NUMERIC, BasicType, VariantType
from parquet_variant.types.path import VariantPath

_REPR_CHARACTERS = 60
_MICROS_TYPE = {
    VariantType.TIMESTAMP_NANOS: VariantType.TIMESTAMP,
    VariantType.TIMESTAMP_NTZ_NANOS: VariantType.TIMESTAMP_NTZ,
}


class Variant:
    """One Variant value: a cheap cursor over its metadata and value bytes, which are not checked in advance.

    Every access checks the bytes that it reads, and raises `MalformedVariantError` if they are malformed; `validate`
    checks all bytes.

    Parameters
    ----------
    metadata
        The encoded dictionary of key names.
    value
        The encoded value.

    Examples
    --------
    >>> v = Variant.from_python({"a": [1, 2.5], "b": None})
    >>> v.type, v["a"][1].to_python(), list(v), v.get("$.c") is None
    (<VariantType.OBJECT: 'object'>, 2.5, ['a', 'b'], True)
    >>> v.to_json()
    '{"a":[1,2.5],"b":null}'
    """

    __slots__ = ("_data", "_start", "_stop", "metadata")

    metadata: bytes
    """The encoded dictionary; nested values share it."""

    def __init__(self, metadata: bytes, value: bytes) -> None:
        self.metadata = metadata if type(metadata) is bytes else bytes(memoryview(metadata))
        self._data = value if type(value) is bytes else bytes(memoryview(value))
        self._start = 0
        self._stop = len(self._data)

    def _child(self, container: Container, index: int) -> Variant:
        child = Variant.__new__(Variant)
        child.metadata = self.metadata
        child._data = self._data
        child._start = container.value_at(self._data, index)
        child._stop = container.stop
        return child

    @classmethod
    def from_python(cls, obj: Any, *, max_depth: int = MAX_DEPTH) -> Variant:
        """Return the canonical Variant of a Python object (see `encoding.python_values` for the types).

        Raises
        ------
        CastError
            For an object that has no Variant type, and for structures deeper than ``max_depth``.

        Examples
        --------
        >>> Variant.from_python([True, 10**20]).to_json()
        '[true,100000000000000000000]'
        """

        def node_of(item: Any, depth: int) -> Node | None:
            if not isinstance(item, Variant):
                return None
            return node_of_value(item.metadata, item._data, item._start, item._stop, depth)

        return cls(*build_python(obj, node_of, max_depth))

    @classmethod
    def from_bytes(cls, data: bytes) -> Variant:
        """Return the Variant whose metadata and value are concatenated in ``data``.

        Raises
        ------
        MalformedVariantError
            If the metadata has no end.
        """
        data = bytes(memoryview(data))
        length = metadata_length(data)
        return cls(data[:length], data[length:])

    def to_bytes(self) -> bytes:
        """Return the metadata and the value, concatenated."""
        return self.metadata + self.value

    @property
    def value(self) -> bytes:
        """The encoded value: the bytes passed in, or the bytes of a nested value."""
        if self._start == 0 and self._stop == len(self._data):
            return self._data
        return self._data[self._start : self._start + value_size(self._data, self._start, self._stop)]

    @property
    def type(self) -> VariantType:
        """The type of the value.

        Raises
        ------
        MalformedVariantError
            If it has no bytes or an unknown type id, or the version of the metadata is unknown.
        """
        check_version(self.metadata)
        return value_type(self._data, self._start, self._stop)

    def may_be(self, basic: BasicType) -> bool:
        """Return whether the first byte allows a basic type; a step of a path checks no more of a value than that."""
        return self._start >= self._stop or self._data[self._start] & 3 == basic

    def get(self, path: str | VariantPath, default: Variant | None = None) -> Variant | None:
        """Return the value at a path, or ``default`` if it does not exist.

        Raises
        ------
        PathError
            If the path cannot be parsed or has a wildcard.
        MalformedVariantError
            If the bytes on the way are malformed.

        Examples
        --------
        >>> Variant.from_python({"a": [{"b": 1}]}).get("$.a[0].b").to_python()
        1
        """
        check_version(self.metadata)
        value = self
        for segment in VariantPath.parse(path).segments:
            if not isinstance(segment, (str, int)):
                raise PathError(
                    f"path {path} has a wildcard, but get returns a single value: use an index", reason="wildcard"
                )
            basic = BasicType.OBJECT if isinstance(segment, str) else BasicType.ARRAY
            if not value.may_be(basic):
                return default
            container = read_container(value._data, value._start, value._stop)
            assert container is not None
            if isinstance(segment, str):
                index = value._find(container, segment)
            else:
                index = segment if segment < container.size else None
            if index is None:
                return default
            value = value._child(container, index)
        return value

    def __getitem__(self, key: str | int) -> Variant:
        container = self._container(VariantType.OBJECT if isinstance(key, str) else VariantType.ARRAY)
        if isinstance(key, str):
            index = self._find(container, key)
            if index is None:
                raise KeyError(key)
        else:
            index = key + container.size if key < 0 else key
            if not 0 <= index < container.size:
                raise IndexError(f"index {key} is out of range for an array of {container.size} elements")
        return self._child(container, index)

    def __len__(self) -> int:
        return self._container().size

    def __bool__(self) -> bool:
        return True  # a Variant is always a value, even an empty object or zero

    def __iter__(self) -> Iterator[Any]:
        container = self._container()
        if container.is_object:
            return iter(self.keys())
        return (self._child(container, index) for index in range(container.size))

    def __contains__(self, item: Any) -> bool:
        container = self._container()
        if container.is_object:
            return isinstance(item, str) and self._find(container, item) is not None
        other = item if isinstance(item, Variant) else Variant.from_python(item)
        return any(element == other for element in self)

    def keys(self) -> list[str]:
        """Return the keys of an object, in the stored order. Raises `TypeError` for other values."""
        container = self._container(VariantType.OBJECT)
        return field_names(self.metadata, self._data, container)

    def values(self) -> list[Variant]:
        """Return the values of an object, in the order of `keys`. Raises `TypeError` for other values."""
        container = self._container(VariantType.OBJECT)
        field_names(self.metadata, self._data, container)
        return [self._child(container, index) for index in range(container.size)]

    def items(self) -> list[tuple[str, Variant]]:
        """Return the pairs of key and value of an object. Raises `TypeError` for other values."""
        return list(zip(self.keys(), self.values(), strict=True))

    def to_python(self) -> Any:
        """Return the value as Python objects (see `encoding.python_values` for the types).

        Raises
        ------
        MalformedVariantError
            If the bytes are malformed.
        """
        return tree_of_events(self._walk(), lambda kind, raw, start, stop: scalar_to_python(kind, raw))

    def to_json(self) -> str:
        """Return the value as compact JSON text (see `encoding.json_writer`).

        Raises
        ------
        MalformedVariantError
            If the bytes are malformed.
        """
        return "".join(self.json_pieces())

    def json_pieces(self) -> Iterator[str]:
        """Yield the text of `to_json` in pieces, so that a caller can stop after the first ones."""
        return json_pieces(self._walk())

    def validate(self, max_depth: int = MAX_DEPTH) -> Variant:
        """Check every byte of metadata and value, and return the value itself.

        Raises
        ------
        MalformedVariantError
            For the first fault; `encoding.validate.find_faults` returns all faults.
        """
        from parquet_variant.encoding.validate import find_faults

        check_count("max_depth", max_depth)
        for fault in find_faults(self.metadata, self.value, max_depth):
            raise MalformedVariantError(f"{fault.part}: {fault.message}", reason=fault.reason, offset=fault.offset)
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Variant):
            return NotImplemented
        meaning = self._meaning()
        if self.metadata == other.metadata and self.value == other.value:
            return True
        return meaning == other._meaning()

    def __hash__(self) -> int:
        return hash(self._meaning())

    def _meaning(self) -> tuple[Any, ...]:
        """Return a tuple that is equal for values of equal meaning (spec: "Logical Type"), whatever their bytes; it is
        flat because comparing deeply nested tuples would overflow the stack.
        """
        parts: list[Any] = []
        for kind, raw, _, _ in walk(self.metadata, self._data, self._start, self._stop, by_key=True):
            if kind == KEY:
                parts.append(raw)
            elif kind in (VariantType.OBJECT, VariantType.ARRAY):
                parts.append((kind, raw))
            elif kind != END:
                parts.append(_scalar_meaning(VariantType(kind), raw))
        return tuple(parts)

    def preview(self, characters: int) -> str:
        """Return the start of `to_json`, for display; the rest of a long value is not read.

        Raises
        ------
        MalformedVariantError
            If the bytes that it reads are malformed.

        Examples
        --------
        >>> Variant.from_python(["a", "b"]).preview(4)
        '["a"…'
        """
        text = ""
        for piece in self.json_pieces():
            text += piece[: characters + 1]
            if len(text) > characters:
                return text[:characters] + "…"
        return text

    def __repr__(self) -> str:
        try:
            return f"<Variant {self.type}: {self.preview(_REPR_CHARACTERS)}>"
        except MalformedVariantError as err:
            return f"<Variant malformed: {err}>"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return (Variant, (self.metadata, self.value))

    def _walk(self) -> Iterator[Event]:
        return walk(self.metadata, self._data, self._start, self._stop)

    def _container(self, kind: VariantType | None = None) -> Container:
        container = read_container(self._data, self._start, self._stop)
        if container is None or (kind is not None and container.is_object != (kind == VariantType.OBJECT)):
            expected = f"an {kind}" if kind else "an object or an array"
            raise TypeError(f"expected {expected}, found a Variant of type {self.type}")
        return container

    def _find(self, container: Container, key: str) -> int | None:
        """Return the index of the field with a name, or None. Raises `MalformedVariantError` if there are two."""
        if not container.size:
            return None
        try:
            ids = dictionary_of(self.metadata).ids(key.encode())
        except UnicodeEncodeError:  # a lone surrogate is in no UTF-8 dictionary
            return None
        indices = [index for index, field_id in enumerate(container.ids(self._data)) if field_id in ids] if ids else []
        if len(indices) > 1:
            raise duplicate_key(key, container)
        return indices[0] if indices else None


def fields_of_object(variant: Variant) -> dict[str, Variant]:
    """Return the fields of an object by name.

    Raises `MalformedVariantError` if a name occurs twice (``duplicate-key``), or values share bytes (``overlap``).
    """
    fields = dict(variant.items())
    check_disjoint(variant, fields.values())
    return fields


def elements_of_array(variant: Variant) -> list[Variant]:
    """Return the elements of an array. Raises `MalformedVariantError` if they share bytes (``overlap``)."""
    elements = list(variant)
    check_disjoint(variant, elements)
    return elements


def check_disjoint(variant: Variant, children: Iterable[Variant]) -> None:
    """Raise an error if the children together have more bytes than their container, so that some bytes must be shared.

    Children that share bytes could make a few bytes stand for any number of values.
    """
    value = variant.value
    container = read_container(value, 0, len(value))
    assert container is not None
    if sum(len(child.value) for child in children) > container.stop - container.values_at:
        raise MalformedVariantError("values overlap: some bytes belong to more than one value", reason="overlap")


def _scalar_meaning(kind: VariantType, raw: Any) -> tuple[str, Any]:
    if kind in EXACT_NUMERIC:
        return ("number", Decimal(scalar_to_python(kind, raw)))
    if kind in (VariantType.DOUBLE, VariantType.FLOAT) and raw != raw:
        return (kind, "NaN")
    if kind in (VariantType.TIMESTAMP, VariantType.TIMESTAMP_NTZ):
        return (kind, raw * 1000)
    return (_MICROS_TYPE.get(kind, kind), raw)
