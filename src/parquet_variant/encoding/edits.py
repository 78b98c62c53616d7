"""Changes to one value: insert, set, delete, append, strip nulls and normalize.

Owns the meaning of a change: the semantics of Spark 4.3's functions of the same names. Leaves bytes to `walk`; the
kernel for batches is `kernels.operations.edit`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from parquet_variant.encoding.variant import Variant
from parquet_variant.encoding.walk import Node, encode_value, node_of_value
from parquet_variant.errors import PathError, VariantError, check_count
from parquet_variant.support.records import Record
from parquet_variant.types import PrimitiveId
from parquet_variant.types.path import VariantPath, Wildcard

MAX_SIZE = 128 << 20
_NULL = bytes([PrimitiveId.NULL << 2])
# Bytes of a Variant null that pads an array: one byte, and an offset of four bytes in an array of that size.
_PADDING_BYTES = 5
_ROOT = VariantPath()


class EditKind(IntEnum):
    """The kind of a change."""

    NORMALIZE = 0
    INSERT = 1
    SET = 2
    REPLACE = 3
    """Set, but only where a value exists."""
    APPEND = 4
    DELETE = 5
    STRIP_NULLS = 6
    STRIP_FIELDS = 7
    """Strip nulls, but not from arrays."""


class Edit(Record):
    """A change."""

    kind: EditKind
    path: VariantPath = _ROOT  # Without wildcards.
    max_size: int = MAX_SIZE  # The maximum size of a changed value in bytes, metadata included.

    def __post_init__(self) -> None:
        check_count("max_size", self.max_size)

    @property
    def segments(self) -> list[str | int]:
        """The keys and indexes of the path."""
        return [segment for segment in self.path.segments if not isinstance(segment, Wildcard)]

    def too_large(self, size: int) -> VariantError:
        """Return the error for a changed value that exceeds ``max_size``."""
        return VariantError(
            f"the changed value has {size} bytes, more than max_size={self.max_size}", reason="too-large"
        )


def value_path(path: str | VariantPath, *, root: bool = False) -> VariantPath:
    """Parse the path of a change; with ``root``, ``$`` itself may be changed.

    Raises `PathError` if it cannot be read, has a wildcard, or is ``$`` where that makes no sense.
    """
    parsed = VariantPath.parse(path)
    if parsed.has_wildcard:
        raise PathError(f"path {parsed} has a wildcard: name a single field or element to change", reason="wildcard")
    if not root and not parsed.segments:
        raise PathError("path $ is the whole value: name a field or an element to change", reason="root")
    for segment in parsed.segments:
        if isinstance(segment, str):
            try:
                segment.encode()
            except UnicodeEncodeError:
                raise PathError(
                    f"key {segment!r} has a lone surrogate and no UTF-8 form", reason="lone-surrogate"
                ) from None
    return parsed


def apply_edit(variant: Variant, edit: Edit, value: Variant | None = None) -> Variant:
    """Change one value; ``value`` is the value to insert, set or append.

    Returns the value itself if nothing changes, else a new value in canonical bytes. Raises `PathError` with reason
    ``path-mismatch`` or ``duplicate-key``; `MalformedVariantError` if the bytes of either value are malformed;
    `VariantError` with reason ``too-large``.
    """
    root = _tree(variant)
    if edit.kind == EditKind.NORMALIZE:
        changed = True
    elif edit.kind in (EditKind.STRIP_NULLS, EditKind.STRIP_FIELDS):
        changed = _strip(root, arrays=edit.kind == EditKind.STRIP_NULLS)
    elif edit.kind == EditKind.DELETE:
        changed = _delete(root, edit)
    elif edit.kind == EditKind.APPEND:
        changed = _append(root, edit, value)
    else:
        changed = _place(root, edit, value)
    if not changed:
        return variant
    metadata, data = encode_value(root)
    if edit.kind != EditKind.NORMALIZE and len(metadata) + len(data) > edit.max_size:
        raise edit.too_large(len(metadata) + len(data))
    return Variant(metadata, data)


def _tree(variant: Variant) -> Node:
    return node_of_value(variant.metadata, variant.value, 0, len(variant.value))


def _wrap_value(edit: Edit, depth: int, value: Variant | None) -> Node:
    """Return the value wrapped in the containers that the segments from ``depth`` on name."""
    node = _NULL if value is None else _tree(value)
    for segment in reversed(edit.segments[depth:]):
        node = {segment: node} if isinstance(segment, str) else [*_padding(edit, segment), node]
    return node


def _padding(edit: Edit, count: int) -> list[Node]:
    if count * _PADDING_BYTES > edit.max_size:
        raise edit.too_large(count * _PADDING_BYTES)
    return [_NULL] * count


def _check_kind(node: Node, edit: Edit, depth: int) -> None:
    """Raise an error unless a node is the container of the segment at a depth; at the end of the path, an array."""
    segment = edit.segments[depth] if depth < len(edit.path) else 0
    if not isinstance(node, dict if isinstance(segment, str) else list):
        at = VariantPath(edit.path.segments[:depth])
        raise PathError(
            f"path {edit.path} needs {'an object' if isinstance(segment, str) else 'an array'} at {at}: "
            'use errors="null" to get null instead (in SQL, the function with try_; in an update, leave such rows out)',
            reason="path-mismatch",
            path=str(at),
        )


def _place(node: Any, edit: Edit, value: Variant | None) -> bool:
    """Insert, set or replace a value."""
    for depth, segment in enumerate(edit.segments):
        _check_kind(node, edit, depth)
        child = _child(node, segment)
        if child is not None and depth < len(edit.path) - 1:
            node = child
            continue
        if child is None and edit.kind == EditKind.REPLACE:
            return False
        if child is not None and edit.kind == EditKind.INSERT and isinstance(segment, str):
            message = f"the key {segment!r} exists: use variant_set to replace its value"
            raise PathError(message, reason="duplicate-key", path=str(edit.path))
        if child is None and isinstance(segment, int):
            node += [*_padding(edit, segment - len(node)), _wrap_value(edit, depth + 1, value)]
        elif edit.kind == EditKind.INSERT and isinstance(segment, int):
            node.insert(segment, _wrap_value(edit, depth + 1, value))
        else:
            node[segment] = _wrap_value(edit, depth + 1, value)
        return True
    return False


def _append(node: Any, edit: Edit, value: Variant | None) -> bool:
    for depth, segment in enumerate(edit.segments):
        _check_kind(node, edit, depth)
        node = _child(node, segment)
        if node is None:
            return False
    _check_kind(node, edit, len(edit.path))
    node.append(_wrap_value(edit, len(edit.path), value))
    return True


def _delete(node: Any, edit: Edit) -> bool:
    *parents, last = edit.segments
    for segment in parents:
        node = _child(node, segment)
    if _child(node, last) is None:
        return False
    del node[last]
    return True


def _child(node: Node | None, segment: str | int) -> Node | None:
    """Return the field or element of a node, or None."""
    if isinstance(segment, str):
        return node.get(segment) if isinstance(node, dict) else None
    if isinstance(node, list) and segment < len(node):
        return node[segment]
    return None


def _strip(root: Node, *, arrays: bool) -> bool:
    changed = False
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            nulls = [key for key, child in node.items() if child == _NULL]
            for key in nulls:
                del node[key]
            changed |= bool(nulls)
            pending.extend(node.values())
        elif isinstance(node, list):
            values = [child for child in node if child != _NULL] if arrays else node
            if len(values) < len(node):
                node[:] = values
                changed = True
            pending.extend(node)
    return changed
