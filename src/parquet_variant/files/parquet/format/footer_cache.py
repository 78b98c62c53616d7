"""The cache of local files, and footers that pyarrow is given instead of those that it refuses.

Owns the entries, their eviction, and the detection of changed files; and two cases that pyarrow refuses: decimals in
more bytes than their precision needs, which it reads as plain bytes here, and a writer's Arrow schema that is nested
too deep for its own check. Leaves parsing to `footer`, and opening files to `files`. Values are not cached.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.arrays.parts import empty_table
from parquet_variant.errors import VariantFileError
from parquet_variant.files.parquet.format import thrift
from parquet_variant.files.parquet.format.footer import SchemaNode, schema_elements
from parquet_variant.kernels.arrow_buffers import bitmap
from parquet_variant.layouts.parquet_reader import reader_options
from parquet_variant.support.fork_safety import in_forked_child
from parquet_variant.types.forms import chunks_in_form, nested_types, plain_form, with_fields

_ARROW_SCHEMA, _HIDDEN_SCHEMA = b"ARROW:schema", b"arrow:schema"
# pyarrow checks the serialized schema to 128 levels of its tables; each field takes two.
_ARROW_SCHEMA_DEPTH = 50
_WITHOUT_DECIMAL = dict.fromkeys((thrift.CONVERTED_TYPE, thrift.SCALE, thrift.PRECISION, thrift.LOGICAL_TYPE))
_DECIMAL = re.compile(r"DECIMAL\((\d+), (\d+)\)")


def wide_decimal(leaf: SchemaNode) -> pa.DataType | None:
    """Return the Arrow type of a decimal that has more bytes than pyarrow reads; None for any other leaf.

    >>> wide_decimal(SchemaNode("d", ("d",), "optional", "FIXED_LEN_BYTE_ARRAY", "DECIMAL(38, 2)", length=17))
    Decimal128Type(decimal128(38, 2))
    """
    if leaf.physical != "FIXED_LEN_BYTE_ARRAY" or (leaf.length or 0) <= 16 or not leaf.logical:
        return None
    match = _DECIMAL.fullmatch(leaf.logical)
    precision, scale = (int(number) for number in match.groups()) if match else (0, 0)
    if not 1 <= precision <= 38 or scale > precision:
        return None
    return pa.decimal128(precision, scale)


def footer_for_pyarrow(footer: bytes, schema: SchemaNode) -> bytes | None:
    """Return the footer that makes pyarrow read the file; None if that is the file's own."""
    pieces, done = [], 0
    if any(wide_decimal(leaf) for leaf in schema.leaves()):
        for node, (start, end, _) in zip(schema.walk(), schema_elements(footer), strict=True):
            if node.is_leaf and wide_decimal(node):
                pieces += [footer[done:start], thrift.with_fields(footer, start, _WITHOUT_DECIMAL)]
                done = end
    changed = b"".join([*pieces, footer[done:]])
    if _ARROW_SCHEMA in footer and any(len(leaf.path) > _ARROW_SCHEMA_DEPTH for leaf in schema.leaves()):
        start_of_keys = thrift.find_field(changed, 0, thrift.KEY_VALUES) or len(changed)
        changed = changed[:start_of_keys] + changed[start_of_keys:].replace(_ARROW_SCHEMA, _HIDDEN_SCHEMA, 1)
    return None if changed == footer else changed


def with_leaf_types(kind: pa.DataType, leaf_types: Iterator[pa.DataType | None]) -> pa.DataType:
    """Return a type with other types of leaves, or None to keep one: its leaves are in the order of Parquet's."""
    if not kind.num_fields or pa.types.is_dictionary(kind):
        return next(leaf_types) or kind
    return with_fields(kind, lambda field: field.with_type(with_leaf_types(field.type, leaf_types)))


def as_decimals(file: str, array: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Return an array of bytes as decimals, if `kind` is a decimal; None for anything else.

    Raises `VariantFileError` if a value has more digits than its type.
    """
    if not (pa.types.is_fixed_size_binary(array.type) and pa.types.is_decimal128(kind)):
        return None
    width = array.type.byte_width
    places = np.frombuffer(array.buffers()[1] or b"", np.uint8)
    values = places[array.offset * width : (array.offset + len(array)) * width].reshape(-1, width)
    sign = np.where(values[:, -16] >= 0x80, 0xFF, 0).astype(np.uint8)
    is_valid = array.is_valid().to_numpy(zero_copy_only=False)
    nulls = bitmap(is_valid) if array.null_count else None
    digits = pa.py_buffer(np.ascontiguousarray(values[:, :-17:-1]))
    decimals = pa.Array.from_buffers(kind, len(array), [nulls, digits])
    try:
        if not ((values[:, :-16] == sign[:, None]).all(axis=1) | ~is_valid).all():
            raise pa.ArrowInvalid("a value has more than 16 bytes")
        decimals.validate(full=True)
    except pa.ArrowInvalid:
        problem = (
            f"a value does not fit {kind}: the column has values of more than {kind.precision} digits; "
            "write the file again with a larger precision"
        )
        raise VariantFileError(problem, reason="bad-data", file=file) from None
    return decimals


# The identity of a version of a local file: device, inode, size, modification time, change time.
Fingerprint = tuple[int, int, int, int, int]
Entry = TypeVar("Entry")

# A younger file may change within one tick of the file system's clock (FAT: 2 s), and keep its fingerprint.
SETTLED_NS = 3_000_000_000
# In memory, a footer takes ten times its serialized size in pyarrow.
MAX_FOOTER_BYTES = 4 << 20
MAX_FILES = 128


class Handle:
    """A seekable file for pyarrow whose stream can be exchanged, so that a reader outlives its stream."""

    closed = False

    def __init__(self, stream: pa.NativeFile) -> None:
        self.stream: pa.NativeFile | None = stream
        self._position = 0

    def seek(self, offset: int, whence: int = 0) -> int:
        """Change the position, as `io.IOBase.seek`."""
        assert self.stream is not None
        self._position = offset + (0, self._position, self.stream.size())[whence]
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def read(self, size: int) -> bytes:
        """Read the next bytes."""
        assert self.stream is not None
        data: bytes = self.stream.read_at(size, self._position)
        self._position += len(data)
        return data

    def close(self) -> None:
        """Do nothing: the owner of the stream closes it."""


class Reader(pq.ParquetFile):
    """pyarrow's reader without its map from names to columns, which is slow to make for wide files and not used.

    `dictionaries`: numbers of the leaf columns that are read as dictionaries.
    `pre_buffer`: whether all column chunks are requested together, for remote file systems.
    """

    def __init__(
        self,
        source: Any,
        metadata: pq.FileMetaData | None = None,
        dictionaries: Iterable[int] = (),
        pre_buffer: bool = False,
    ) -> None:
        self.handle = source
        super().__init__(
            source,
            metadata=metadata,
            # Numbers, because pyarrow would search names in the paths of all columns.
            read_dictionary=list(dictionaries),
            pre_buffer=pre_buffer,
            **reader_options(),
        )

    # A private name of pyarrow, used only here. In a pyarrow without it, the map is made: slower, but right.
    def _build_nested_paths(self) -> dict[str, list[int]]:
        return {}

    @property
    def schema_arrow(self) -> pa.Schema:
        """The schema of the file, `without_views`."""
        return without_views(empty_table(super().schema_arrow), self.metadata).schema

    @property
    def may_use_threads(self) -> bool:
        """Whether pyarrow may use threads: not for a type registered in Python, which would crash a thread at exit."""
        kinds = (kind for column in self.schema_arrow.types for kind, _ in nested_types(column))
        return not any(isinstance(kind, pa.ExtensionType) for kind in kinds)


def without_views(table: pa.Table, metadata: pq.FileMetaData) -> pa.Table:
    """Convert views in a table that pyarrow read to arrays with offsets, because pyarrow cannot filter views.

    Views come only from the Arrow schema that a writer stored in the footer.
    """
    if b"ARROW:schema" not in (metadata.metadata or {}):
        return table
    for number, field_ in enumerate(table.schema):
        plain = plain_form(field_.type, stored=True)
        if plain != field_.type:
            table = table.set_column(number, field_.with_type(plain), chunks_in_form(table.column(number), plain))
    return table


class FooterCache(Generic[Entry]):
    """A cache of the files opened last, with limits on number and size."""

    def __init__(self, max_files: int = MAX_FILES) -> None:
        self.max_files = max_files
        self.clear()
        in_forked_child(self.clear)

    def clear(self) -> None:
        """Remove all entries."""
        self.lock = threading.Lock()
        self.files: OrderedDict[Fingerprint, tuple[Entry, int]] = OrderedDict()
        self.bytes = 0

    def get(self, path: str, fingerprint: Fingerprint | None) -> Entry | None:
        """Return the entry of the file at a path, if it still has the fingerprint; it becomes the most recent one."""
        with self.lock:
            entry = None if fingerprint is None else self.files.get(fingerprint)
            if entry is None or fingerprint is None:
                return None
            self.files.move_to_end(fingerprint)
        return entry[0] if fingerprint_of(path) == fingerprint else None

    def add(self, path: str, fingerprint: Fingerprint | None, entry: Entry, size: int) -> None:
        """Add an entry of `size` bytes, if the file at a path still has the fingerprint; remove the oldest entries."""
        if fingerprint is None or size > MAX_FOOTER_BYTES or fingerprint_of(path) != fingerprint:
            return
        with self.lock:
            if fingerprint not in self.files:
                self.files[fingerprint] = entry, size
                self.bytes += size
            while self.bytes > MAX_FOOTER_BYTES or len(self.files) > self.max_files:
                _, (_, removed_bytes) = self.files.popitem(last=False)
                self.bytes -= removed_bytes


FOOTERS: FooterCache[Any] = FooterCache()  # Of `FileFacts`.


def fingerprint_of(path: str) -> Fingerprint | None:
    """Return the fingerprint of a local file; None if it is missing, or so young that changes may be undetectable."""
    return fingerprint_if_settled(state_of(path))


def fingerprint_if_settled(state: Fingerprint | None) -> Fingerprint | None:
    """Return the state of a file as a fingerprint; None if it is so young that changes may be undetectable."""
    return None if state is None or time.time_ns() - max(state[3:]) < SETTLED_NS else state


def state_of(path: str | int) -> Fingerprint | None:
    """Return device, inode, size and times of a local file, by path or descriptor; None if it is missing."""
    try:
        info = os.stat(path)  # noqa: PTH116 - a Path costs as much as the call
    except (OSError, ValueError):
        return None
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns
