"""Values as nodes, and their canonical form.

Owns the canonical form: the narrowest widths, metadata of exactly the keys that are used, each object's fields *and*
their values in the order of the keys' UTF-8 bytes; so the same value always gives the same bytes. Leaves the choice of
a scalar's type to its callers (`python_values`, `json_reader`).
"""

from __future__ import annotations

from typing import TypeAlias

from parquet_variant.encoding.header import array_bytes, object_bytes
from parquet_variant.encoding.metadata import encode_metadata
from parquet_variant.encoding.scalars import encode_scalar
from parquet_variant.encoding.walk import END, KEY, walk
from parquet_variant.errors import CastError
from parquet_variant.types import VariantType

# A scalar is its bytes already; a container holds its children.
Node: TypeAlias = "bytes | list[Node] | dict[str, Node]"


def node_of_value(metadata: bytes, data: bytes, at: int, stop: int, max_depth: float = float("inf")) -> Node:
    """The encoded value at ``at`` as nodes; scalars keep their bytes, but strings get their shortest form.

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
    """Add a node to a container: in an object under its key, of which the last one stays."""
    if isinstance(container, dict):
        container[key] = node
    else:
        container.append(node)


def check_depth(depth: int, max_depth: float) -> None:
    """Refuse so many containers inside each other. Raises `CastError` with reason ``depth``."""
    if depth > max_depth:
        raise CastError(
            f"the object is nested deeper than {max_depth} (or contains itself): raise max_depth if that is meant",
            reason="depth",
        )


def encode_value(root: Node) -> tuple[bytes, bytes]:
    r"""Metadata and value of a tree of nodes: bytes for a scalar, a list for an array, a dict for an object.

    >>> encode_value([b"\x00"])
    (b'\x11\x00\x00', b'\x03\x01\x00\x01\x00')
    """
    containers = _containers(root)
    names = sorted({name for node in containers if isinstance(node, dict) for name in node})
    ids = {name: field_id for field_id, name in enumerate(names)}
    encoded: dict[int, bytes] = {}

    def take(node: Node) -> bytes:
        return node if isinstance(node, bytes) else encoded.pop(id(node))

    # Children were found after their parents: encoded in reverse, each is ready when its parent needs it.
    for node in reversed(containers):
        if isinstance(node, dict):
            fields = sorted(node)
            encoded[id(node)] = object_bytes([ids[name] for name in fields], [take(node[name]) for name in fields])
        else:
            encoded[id(node)] = array_bytes([take(child) for child in node])
    return encode_metadata(names), take(root)


def _containers(root: Node) -> list[list[Node] | dict[str, Node]]:
    """All containers of the tree, parents first."""
    if isinstance(root, bytes):
        return []
    containers: list[list[Node] | dict[str, Node]] = [root]
    for node in containers:  # the list grows while it is read
        containers.extend(
            child for child in (node.values() if isinstance(node, dict) else node) if not isinstance(child, bytes)
        )
    return containers
