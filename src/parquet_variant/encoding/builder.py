"""Values as trees of nodes, and their canonical encoding.

Owns the canonical encoding: the narrowest widths, metadata with exactly the keys that are used, and each object's
fields *and* values in the order of the keys' UTF-8 bytes, so that equal values have equal bytes. Leaves the choice of a
scalar's type to its callers (`python_values`, `json_reader`).
"""

from __future__ import annotations

from typing import TypeAlias

from parquet_variant.encoding.header import array_bytes, object_bytes
from parquet_variant.encoding.metadata import encode_metadata
from parquet_variant.encoding.scalars import encode_scalar
from parquet_variant.encoding.walk import END, KEY, walk
from parquet_variant.errors import CastError
from parquet_variant.types import VariantType

# A scalar is its encoded bytes; a container holds its children.
Node: TypeAlias = "bytes | list[Node] | dict[str, Node]"


def node_of_value(metadata: bytes, data: bytes, at: int, stop: int, max_depth: float = float("inf")) -> Node:
    """Return the encoded value at ``at`` as nodes; scalars keep their bytes, but strings get their shortest form.

    Raises `MalformedVariantError` if it is malformed, `CastError` if it is nested deeper than ``max_depth``.
    """
    root: list[Node] = []
    open_containers: list[list[Node] | dict[str, Node]] = [root]
    key = ""
    for kind, raw, start, end in walk(metadata, data, at, stop):
        if kind == END:
            open_containers.pop()
            continue
        if kind == KEY:
            key = raw
            continue
        parent = open_containers[-1]
        node: Node
        if kind == VariantType.OBJECT or kind == VariantType.ARRAY:
            node = {} if kind == VariantType.OBJECT else []
            check_depth(len(open_containers), max_depth)
            open_containers.append(node)
        else:
            node = encode_scalar(VariantType.STRING, raw) if kind == VariantType.STRING else data[start:end]
        put(parent, key, node)
    return root[0]


def put(container: list[Node] | dict[str, Node], key: str, node: Node) -> None:
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
