"""A value as a flat sequence of events, and as a tree of nodes with its canonical encoding.

Owns the traversal that `to_python`, `to_json`, equality and re-encoding share, in document order and without recursion,
and the two checks that every traversal makes: children do not overlap, and an object has each key once. Owns also the
canonical encoding: the narrowest widths, metadata with exactly the keys that are used, and each object's fields *and*
values in the order of the keys' UTF-8 bytes, so that equal values have equal bytes. Leaves the full list of faults to
`validate`, and the choice of a scalar's type to its callers (`python_values`, `json_reader`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

from parquet_variant.encoding.header import Container, array_bytes, object_bytes, read_container, value_size
from parquet_variant.encoding.metadata import check_version, dictionary_of, encode_metadata
from parquet_variant.encoding.scalars import encode_scalar, read_scalar
from parquet_variant.errors import CastError, MalformedVariantError
from parquet_variant.types import VariantType

KEY = "key"
END = "end"


class Event(NamedTuple):
    """A scalar or the start of a container (by its `VariantType`), a ``KEY``, or the ``END`` of a container.

    ``raw`` is the raw payload of the scalar, the name of the key, or the number of children of the container. ``start``
    and ``stop`` are the byte range of a scalar.
    """

    kind: VariantType | str
    raw: Any
    start: int = 0
    stop: int = 0


_END = Event(END, None)


class _OpenContainer:
    """A container whose children are being visited."""

    __slots__ = ("container", "free_bytes", "names", "order")

    def __init__(self, container: Container, names: list[str], order: Iterable[int]) -> None:
        self.container = container
        self.names = names
        self.order = iter(order)
        self.free_bytes = container.stop - container.values_at


def walk(metadata: bytes, data: bytes, at: int, stop: int, *, by_key: bool = False) -> Iterator[Event]:
    """Yield every event of the value at ``at``.

    `metadata`: the encoded dictionary; of a value without keys only its version is read.
    `data`, `at` and `stop`: the bytes, where the value starts, and the end of its bytes.
    `by_key`: visit the fields of an object in the order of their keys instead of the stored order.
    Raises `MalformedVariantError` at the first fault; the events before it have been yielded.
    """
    check_version(metadata)
    open_containers: list[_OpenContainer] = []
    while True:
        container = read_container(data, at, stop)
        size = value_size(data, at, stop) if container is None else container.stop - at
        if open_containers:
            # Children that share bytes could make a few bytes stand for 2**1000 values.
            open_containers[-1].free_bytes -= size
            if open_containers[-1].free_bytes < 0:
                raise MalformedVariantError(
                    "values overlap: some bytes belong to more than one value", reason="overlap", offset=at
                )
        if container is None:
            scalar = read_scalar(data, at, stop)
            yield Event(scalar.type, scalar.raw, at, at + size)
        else:
            yield Event(VariantType.OBJECT if container.is_object else VariantType.ARRAY, container.size)
            names = field_names(metadata, data, container) if container.is_object else []
            order: Iterable[int] = range(container.size)
            if by_key and container.is_object:
                order = sorted(order, key=names.__getitem__)
            open_containers.append(_OpenContainer(container, names, order))
        while open_containers and (index := next(open_containers[-1].order, None)) is None:
            open_containers.pop()
            yield _END
        if not open_containers or index is None:
            return
        parent = open_containers[-1]
        if parent.container.is_object:
            yield Event(KEY, parent.names[index])
        at, stop = parent.container.value_at(data, index), parent.container.stop


def field_names(metadata: bytes, data: bytes, container: Container) -> list[str]:
    """Return the keys of an object in the stored order.

    Raises `MalformedVariantError` if a key cannot be read, or occurs twice (``duplicate-key``).
    """
    if not container.size:
        return []
    dictionary = dictionary_of(metadata)
    names = [dictionary.name(field_id) for field_id in container.ids(data)]
    if len(set(names)) < len(names):
        raise duplicate_key(next(name for index, name in enumerate(names) if name in names[:index]), container)
    return names


def duplicate_key(name: str, container: Container) -> MalformedVariantError:
    """Return the error for an object that has a key twice."""
    return MalformedVariantError(
        f"the object has the key {name[:80]!r} twice: the specification does not allow duplicate keys",
        reason="duplicate-key",
        offset=container.ids_at,
    )


# A scalar is its encoded bytes; a container holds its children.
Node: TypeAlias = "bytes | list[Node] | dict[str, Node]"


def tree_of_events(
    events: Iterable[Event], of_scalar: Callable[[Any, Any, int, int], Any], max_depth: float = float("inf")
) -> Any:
    """Return a walk as nested lists and dicts, fields in the order of the walk.

    `of_scalar`: returns the object of a scalar from the parts of its event.
    Raises `CastError` for values that are nested deeper than ``max_depth``.
    """
    root: list[Any] = []
    open_containers: list[Any] = [root]
    key = ""
    for kind, raw, start, stop in events:
        if kind == END:
            open_containers.pop()
        elif kind == KEY:
            key = raw
        elif kind == VariantType.OBJECT or kind == VariantType.ARRAY:
            node: Any = {} if kind == VariantType.OBJECT else []
            put(open_containers[-1], key, node)
            check_depth(len(open_containers), max_depth)
            open_containers.append(node)
        else:
            put(open_containers[-1], key, of_scalar(kind, raw, start, stop))
    return root[0]


def node_of_value(metadata: bytes, data: bytes, at: int, stop: int, max_depth: float = float("inf")) -> Node:
    """Return the encoded value at ``at`` as nodes; scalars keep their bytes, but strings get their shortest form.

    Raises `MalformedVariantError` if it is malformed, `CastError` if it is nested deeper than ``max_depth``.
    """

    def of_scalar(kind: Any, raw: Any, start: int, end: int) -> bytes:
        return encode_scalar(VariantType.STRING, raw) if kind == VariantType.STRING else data[start:end]

    node: Node = tree_of_events(walk(metadata, data, at, stop), of_scalar, max_depth)
    return node


def put(container: list[Any] | dict[str, Any], key: str, node: Any) -> None:
    """Add a node to a container. In an object it replaces an earlier node of the same key."""
    if isinstance(container, dict):
        container[key] = node
    else:
        container.append(node)


def check_depth(depth: int, max_depth: float) -> None:
    """Raise `CastError` (``depth``) if containers are nested too deeply."""
    if depth > max_depth:
        message = f"the object is nested deeper than max_depth={max_depth}, or contains itself: increase max_depth"
        raise CastError(message, reason="depth")


def encode_value(root: Node) -> tuple[bytes, bytes]:
    """Return the metadata and value bytes of a tree of nodes."""
    containers: list[list[Node] | dict[str, Node]] = [] if isinstance(root, bytes) else [root]
    for node in containers:  # the list grows during the iteration, parents before children
        children = node.values() if isinstance(node, dict) else node
        containers.extend(child for child in children if not isinstance(child, bytes))
    names = sorted({name for node in containers if isinstance(node, dict) for name in node})
    ids = {name: field_id for field_id, name in enumerate(names)}
    encoded: dict[int, bytes] = {}

    def bytes_of(node: Node) -> bytes:
        return node if isinstance(node, bytes) else encoded.pop(id(node))

    # Parents come before their children in the list, so in reverse order all children are encoded first.
    for node in reversed(containers):
        if isinstance(node, dict):
            fields = sorted(node)
            encoded[id(node)] = object_bytes([ids[name] for name in fields], [bytes_of(node[name]) for name in fields])
        else:
            encoded[id(node)] = array_bytes([bytes_of(child) for child in node])
    return encode_metadata(names), bytes_of(root)
