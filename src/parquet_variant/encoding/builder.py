"""Values built up, then written in canonical form.

Owns the canonical form: the narrowest widths, metadata of exactly the keys that are used, each object's fields *and*
their values in the order of the keys' UTF-8 bytes; so the same value always gives the same bytes. Leaves the choice of
a scalar's type to its callers (`python_values`, `json_reader`).
"""

from __future__ import annotations

from typing import Any, TypeAlias

from parquet_variant.encoding.header import array_bytes, object_bytes
from parquet_variant.encoding.metadata import encode_metadata
from parquet_variant.encoding.scalars import encode_scalar
from parquet_variant.errors import VariantError
from parquet_variant.types import VariantType

# A scalar is its bytes already; a container holds its children.
Node: TypeAlias = "bytes | list[Node] | dict[str, Node]"


class VariantBuilder:
    """Builds one value from the outside in; `finish` gives its metadata and value bytes.

    >>> builder = VariantBuilder()
    >>> builder.begin_object()
    >>> builder.key("a")
    >>> builder.scalar(VariantType.INT8, 1)
    >>> builder.end()
    >>> [part.hex() for part in builder.finish()]
    ['1101000161', '02010000020c01']
    """

    def __init__(self) -> None:
        self._root: list[Node] = []
        self._open: list[list[Node] | dict[str, Node]] = []
        self._keys: list[str | None] = []

    @property
    def depth(self) -> int:
        """How many containers are open."""
        return len(self._open)

    def scalar(self, kind: VariantType, raw: Any) -> None:
        """Add a scalar by its type and raw payload (see `scalars`)."""
        self._add(encode_scalar(kind, raw))

    def begin_array(self) -> None:
        """Open an array: what is added until `end` are its elements."""
        array: list[Node] = []
        self._add(array)
        self._open.append(array)
        self._keys.append(None)

    def begin_object(self) -> None:
        """Open an object: `key` names each value that is added until `end`."""
        fields: dict[str, Node] = {}
        self._add(fields)
        self._open.append(fields)
        self._keys.append(None)

    def key(self, name: str) -> None:
        """Name the value that is added next; of several values with one name the last stays."""
        self._keys[-1] = name

    def has_key(self, name: str) -> bool:
        """Whether the innermost container is an object that has that key already."""
        return name in self._open[-1]

    def end(self) -> None:
        """Close the innermost container."""
        self._open.pop()
        self._keys.pop()

    def finish(self) -> tuple[bytes, bytes]:
        """The metadata and the value. Raises `VariantError` if nothing was added, or a container is still open."""
        if self._open or not self._root:
            raise VariantError(f"the value is not finished: {len(self._open)} containers are open", reason="unfinished")
        return encode_value(self._root[0])

    def _add(self, node: Node) -> None:
        if not self._open:
            if self._root:
                raise VariantError("a variant is one value: a second one was added at the top", reason="unfinished")
            self._root.append(node)
            return
        parent = self._open[-1]
        if isinstance(parent, dict):
            name = self._keys[-1]
            if name is None:
                raise VariantError("a value in an object needs a key first", reason="unfinished")
            parent[name] = node
            self._keys[-1] = None
        else:
            parent.append(node)


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
