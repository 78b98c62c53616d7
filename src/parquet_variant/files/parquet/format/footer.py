"""The footer of a Parquet file: its schema tree, and the VARIANT annotation that pyarrow cannot write.

Owns the place of the footer, the meaning of schema elements, and setting or removing annotations: only bytes of the
schema change, so data pages, indexes and Bloom filters keep their offsets. Leaves row groups and statistics to pyarrow,
and the interpretation of groups to `columns`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.format import thrift
from parquet_variant.layouts.parquet_reader import MAX_SCHEMA_DEPTH, too_deep

MAGIC = b"PAR1"
# The bytes by which other formats are recognized, and the first bytes of compressed files.
_HEAD = 256
_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd", b"BZh": "bzip2", b"PK\x03\x04": "zip"}
TAIL = 8  # Footer length and magic.
# The bytes at the end of a file that are read first.
FOOTER_GUESS = 64 << 10
_VARIANT = 16  # LogicalType.VARIANT
_SPECIFICATION_VERSION = 1
# LogicalType{16: VariantType{1: i8 1}}: a long-form header since the id is above 15, then the inner struct.
_ANNOTATION = bytes([thrift.STRUCT]) + thrift.zigzag(_VARIANT) + b"\x13" + bytes([_SPECIFICATION_VERSION]) + b"\x00\x00"

# The fields of SchemaElement that are used.
_ELEMENT = dict.fromkeys((1, 2, 3, 5, 6, 7, 8), thrift.I32) | {4: thrift.BINARY, thrift.LOGICAL_TYPE: thrift.STRUCT}
_PHYSICAL = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}  # bytes per bound
_REPETITION = ("required", "optional", "repeated")
_LOGICAL = {
    1: "STRING", 2: "MAP", 3: "LIST", 4: "ENUM", 5: "DECIMAL", 6: "DATE", 7: "TIME", 8: "TIMESTAMP", 10: "INT",
    11: "UNKNOWN", 12: "JSON", 13: "BSON", 14: "UUID", 15: "FLOAT16", 16: "VARIANT", 17: "GEOMETRY", 18: "GEOGRAPHY",
}  # fmt: skip
_UNITS = {1: "MILLIS", 2: "MICROS", 3: "NANOS"}
# ConvertedType: the older annotation, which some writers write alone.
_CONVERTED = {
    0: "STRING", 1: "MAP", 3: "LIST", 4: "ENUM", 5: "DECIMAL", 6: "DATE", 7: "TIME(true, MILLIS)",
    8: "TIME(true, MICROS)", 9: "TIMESTAMP(true, MILLIS)", 10: "TIMESTAMP(true, MICROS)", 11: "INT(8, false)",
    12: "INT(16, false)", 13: "INT(32, false)", 14: "INT(64, false)", 15: "INT(8, true)", 16: "INT(16, true)",
    17: "INT(32, true)", 18: "INT(64, true)", 19: "JSON", 20: "BSON", 21: "INTERVAL",
}  # fmt: skip
_PARSED: deque[tuple[bytes, SchemaNode]] = deque(maxlen=4)


@dataclass(slots=True)
class SchemaNode:
    """A group or a leaf column of a Parquet schema."""

    name: str  # The name of the field.
    path: tuple[str, ...]  # The names from the root, which is not included, to the node.
    repetition: str  # ``"required"``, ``"optional"`` or ``"repeated"``.
    physical: str | None  # The physical type of a leaf, such as ``"INT32"``; None for a group.
    # The logical type as the shredding specification spells it, such as ``"INT(8, true)"``, or empty.
    logical: str
    children: list[SchemaNode] = field(default_factory=list)  # The fields of a group.
    leaf: int | None = None  # The number of the leaf column in the file; None for a group.
    length: int | None = None
    # The number of optional and repeated nodes, and of repeated nodes, down to this node.
    max_definition: int = 0
    max_repetition: int = 0
    _leaves: tuple[SchemaNode, ...] | None = field(default=None, repr=False, compare=False)

    @property
    def annotated(self) -> bool:
        """Whether the group has the VARIANT annotation."""
        return self.logical == "VARIANT"

    @property
    def dotted(self) -> str:
        """The dotted path, as in pyarrow and error messages."""
        return ".".join(self.path)

    @property
    def is_leaf(self) -> bool:
        """Whether the node is a leaf column, not a group."""
        return self.leaf is not None

    @property
    def is_list(self) -> bool:
        """Whether the group is a list, by annotation or by its three levels; a damaged one without children is not."""
        three_levels = len(self.children) == 1 and self.children[0].repetition == "repeated"
        return three_levels or (self.logical == "LIST" and bool(self.children))

    @property
    def is_binary(self) -> bool:
        """Whether it is a column of bytes, without a logical type."""
        return self.physical == "BYTE_ARRAY" and not self.logical and self.repetition != "repeated"

    @property
    def fields(self) -> dict[str, SchemaNode]:
        """The fields of a group by name; empty for a leaf and for a list."""
        return {} if self.is_list else {node.name: node for node in self.children}

    @property
    def field_count(self) -> int:
        """The number of fields of a group, including fields of the same name; 0 for a leaf and for a list."""
        return 0 if self.is_list else len(self.children)

    @property
    def element(self) -> SchemaNode:
        """The element group of a list with three levels, or of an older form."""
        repeated = self.children[0]
        return repeated.children[0] if len(repeated.children) == 1 and repeated.children[0].leaf is None else repeated

    def child(self, name: str) -> SchemaNode | None:
        """Return the child with a name, or None."""
        return next((node for node in self.children if node.name == name), None)

    def walk(self) -> Iterator[SchemaNode]:
        """Yield this node and all its descendants, depth first."""
        remaining = [self]
        while remaining:
            node = remaining.pop()
            yield node
            remaining.extend(reversed(node.children))

    def leaves(self) -> tuple[SchemaNode, ...]:
        """Return the leaf columns of this node, in file order."""
        if self._leaves is None:
            self._leaves = tuple(node for node in self.walk() if node.leaf is not None)
        return self._leaves

    def spelled(self) -> str:
        """Return physical and logical type in the notation of the specification."""
        if self.physical is None:
            return f"group {self.logical}".strip()
        length = f"({self.length})" if self.physical == "FIXED_LEN_BYTE_ARRAY" else ""
        return f"{self.physical}{length} {self.logical}".strip()


def _refuse(error: Exception, file: str | None) -> VariantFileError:
    return VariantFileError(
        f"cannot read the Parquet footer, so the file is damaged: write it again ({error})",
        reason="bad-footer",
        file=file,
    )


def footer_bytes(source: pa.NativeFile | BinaryIO, file: str | None = None) -> bytes:
    """Return the Thrift bytes of the footer of an open, seekable file; `file` is its name in errors.

    Raises `VariantFileError` if it is not a Parquet file, or its footer is encrypted or truncated.
    """
    size = source.seek(0, 2)
    if size is None:  # pyarrow's files return nothing.
        size = source.tell()
    source.seek(max(0, size - FOOTER_GUESS))  # One read is enough for most files.
    tail = bytes(source.read(FOOTER_GUESS))
    if tail[-4:] == b"PARE":
        problem = "the file has an encrypted footer, which parquet-variant does not read: decrypt it with pyarrow first"
        raise VariantFileError(problem, reason="encrypted", file=file)
    if size < 12 or tail[-4:] != MAGIC:
        source.seek(0)
        head = bytes(source.read(_HEAD))
        codecs = (f"is compressed with {name}" for magic, name in _COMPRESSED.items() if head.startswith(magic))
        is_text = all(byte >= 0x20 or byte in b"\t\n\r" for byte in head)
        kind = next(codecs, "is text" if is_text else "does not end with the bytes PAR1")
        if not head:
            kind = "is empty"
        elif head.startswith(MAGIC):
            kind = "begins like one but is truncated: write it again"
        problem = f"not a Parquet file: it {kind}; pass a Parquet file, or convert JSON or CSV with `variant ingest`"
        raise VariantFileError(problem, reason="not-parquet", file=file)
    length = int.from_bytes(tail[-TAIL:-4], "little")
    if length + TAIL + 4 > size:
        raise _refuse(ValueError(f"it claims {length} bytes of a file of {size}"), file)
    if length + TAIL <= len(tail):
        return tail[-TAIL - length : -TAIL]
    source.seek(size - TAIL - length)
    return bytes(source.read(length))


def schema_elements(footer: bytes) -> Iterator[tuple[int, int, dict[int, Any]]]:
    """Yield start, end and fields of every SchemaElement."""
    schema = thrift.find_field(footer, 0, thrift.SCHEMA)
    if schema is None:
        raise thrift.ThriftError("the footer has no schema")
    count, _, position = thrift.list_items(footer, schema)
    for _ in range(count):
        element, end = thrift.read_struct(footer, position, kinds=_ELEMENT)
        yield position, end, element
        position = end


def _logical_type_name(element: dict[int, Any]) -> str:
    union = element.get(thrift.LOGICAL_TYPE)
    if not union:
        converted = _CONVERTED.get(element.get(6, -1), "")
        if converted == "DECIMAL":
            return f"DECIMAL({element.get(8, 0)}, {element.get(7, 0)})"
        return converted
    kind, detail = next(iter(union.items()))
    name = _LOGICAL.get(kind, f"LOGICAL_TYPE_{kind}")
    if name == "DECIMAL":
        return f"DECIMAL({detail.get(2)}, {detail.get(1)})"
    if name == "INT":
        return f"INT({detail.get(1)}, {str(detail.get(2)).lower()})"
    if name in ("TIME", "TIMESTAMP"):
        unit = next((_UNITS.get(code, "?") for code in detail.get(2) or {}), "?")
        return f"{name}({str(detail.get(1)).lower()}, {unit})"
    return name


def parse_schema(footer: bytes, file: str | None = None) -> SchemaNode:
    """Return the schema tree of a footer; callers share it, so it must not be modified.

    Raises `VariantFileError` if the bytes are not a Parquet footer.
    """
    # Files of a table have the same schema: the same bytes at the start of the footer.
    for prefix, parsed in tuple(_PARSED):
        if footer.startswith(prefix):
            return parsed
    try:
        spans = list(schema_elements(footer))
        elements = [element for _, _, element in spans]
        root = _schema_tree(elements, file)
        _PARSED.append((footer[: spans[-1][1]], root))
    except VariantFileError:
        raise
    except (thrift.ThriftError, ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
        raise _refuse(error, file) from None
    return root


def _name_of(names: Sequence[str], number: int) -> str:
    if not 0 <= number < len(names):
        raise thrift.ThriftError(f"{number} is not the number of {', '.join(names)}")
    return names[number]


def _schema_tree(elements: Sequence[dict[int, Any]], file: str | None) -> SchemaNode:
    """Return the root of the tree whose elements are listed depth first."""
    root = SchemaNode(elements[0][4].decode("utf-8"), (), _REPETITION[0], None, "")
    open_groups = [(root, elements[0].get(5, 0))]  # Groups from the root down, and the missing children of each.
    leaves = 0
    for element in elements[1:]:
        while open_groups and not open_groups[-1][1]:
            open_groups.pop()
        if not open_groups:
            raise thrift.ThriftError(f"schema element {element.get(4)!r} belongs to no group")
        parent, missing = open_groups.pop()
        open_groups.append((parent, missing - 1))
        name, physical = element[4].decode("utf-8"), element.get(1)
        repetition = _name_of(_REPETITION, element.get(3, 0))
        node = SchemaNode(
            name=name,
            path=(*parent.path, name),
            repetition=repetition,
            physical=None if physical is None else _name_of(_PHYSICAL, physical),
            logical=_logical_type_name(element),
            length=element.get(2),
            max_definition=parent.max_definition + (repetition != "required"),
            max_repetition=parent.max_repetition + (repetition == "repeated"),
        )
        parent.children.append(node)
        if node.physical is None:
            open_groups.append((node, element.get(5, 0)))
        elif element.get(5):
            raise thrift.ThriftError(f"{node.dotted} has both a type and children")
        else:
            node.leaf, leaves = leaves, leaves + 1
        if len(node.path) > MAX_SCHEMA_DEPTH:
            raise too_deep(file)
    if any(missing for _, missing in open_groups):
        raise thrift.ThriftError("the schema ends inside a group")
    return root


def check_chunks(footer: bytes, schema: SchemaNode, file: str | None = None) -> None:
    """Refuse column chunks that contradict the schema or are encrypted, on which pyarrow would crash.

    Raises `VariantFileError` with reason ``bad-footer`` or ``encrypted``.
    """
    from parquet_variant.kernels.pages.footer_check import what_is_wrong

    columns: list[tuple[int, int, int, int]] = []
    for leaf in schema.leaves():
        assert leaf.physical is not None
        is_fixed = leaf.physical == "FIXED_LEN_BYTE_ARRAY"
        width = (leaf.length or 0) if is_fixed else _WIDTHS.get(leaf.physical, 0)
        columns.append((_PHYSICAL.index(leaf.physical), leaf.max_repetition, leaf.max_definition, width))
    fault = what_is_wrong(footer, np.array(columns, np.int64).reshape(-1, 4))
    if fault == "encrypted":
        problem = "the file has encrypted columns, which parquet-variant does not read: decrypt it with pyarrow first"
        raise VariantFileError(problem, reason="encrypted", file=file)
    if fault:
        problem = (
            "the Parquet footer contradicts itself, so the file is damaged: write it again (a column chunk does not "
            "match its column or has an unknown codec, or the number of rows differs from its row groups)"
        )
        raise VariantFileError(problem, reason="bad-footer", file=file)


def annotate_footer(footer: bytes, columns: Collection[tuple[str, ...]], file: str | None = None) -> bytes:
    """Return the footer with the VARIANT(1) annotation on exactly the groups at `columns`, such as ``("a", "list")``.

    The annotation of every other group is removed. Parquet's ``LogicalTypes.md``: the annotation is
    ``LogicalType.VARIANT`` (union field 16) with ``specification_version`` 1. Only the ``logicalType`` of the
    changed elements differs. Raises `VariantFileError` for a path that is not a group, and with reason ``encrypted``
    for a signed footer, as in files with encrypted columns, that would change.
    """
    nodes = list(parse_schema(footer, file).walk())
    paths = {tuple(path) for path in columns}
    groups = {node.path for node in nodes if node.physical is None and node.path}
    for path in sorted(paths - groups):
        problem = (
            f"{'.'.join(path)} is not a group of the schema, so it cannot be a Variant: choose from "
            f"{', '.join('.'.join(group) for group in sorted(groups)) or 'no group'}"
        )
        raise VariantFileError(problem, reason="no-such-column", file=file)
    pieces, done = [], 0
    for node, (start, end, _) in zip(nodes, schema_elements(footer), strict=True):
        if (node.path in paths) != node.annotated:
            annotation = _ANNOTATION if node.path in paths else None
            pieces += [footer[done:start], thrift.with_fields(footer, start, {thrift.LOGICAL_TYPE: annotation})]
            done = end
    try:
        is_signed = thrift.find_field(footer, 0, thrift.ENCRYPTION) is not None
    except thrift.ThriftError as error:
        raise _refuse(error, file) from None
    if pieces and is_signed:
        problem = (
            "the file has encrypted columns, and a change would invalidate the signature of its footer: write it again"
        )
        raise VariantFileError(problem, reason="encrypted", file=file)
    return b"".join([*pieces, footer[done:]])
