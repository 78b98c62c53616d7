"""Local files that were opened before: footer, schema tree, plans and idle readers, while the file stays as it was.

Owns what is kept, for how long, and how a changed file is told from one that was read before. Leaves parsing to
`footer` and reading to `files`. Values are never kept.
"""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.array.parts import empty_table
from parquet_variant.encoding.cast.forms import chunks_in_form, plain_form
from parquet_variant.fork_safety import in_forked_child
from parquet_variant.parquet.format.footer import SchemaNode
from parquet_variant.schema.parquet_reader import depth_options

# What changes when a local file does: device, inode, size, times of its last change.
Fingerprint = tuple[int, int, int, int, int]
Entry = TypeVar("Entry")

# A younger file may change again within one tick of its file system's clock (FAT: 2 s), and keep its fingerprint.
SETTLED_NS = 3_000_000_000
# In memory, pyarrow's form of a footer takes ten times its serialized bytes.
MOST_FOOTER_BYTES = 4 << 20
MOST_FILES = 128
_PLANS = 16
_IDLE_READERS = 2


class Handle:
    """A seekable file for pyarrow that reads from whatever stream it is lent, so that a reader outlives its stream."""

    closed = False

    def __init__(self, stream: pa.NativeFile) -> None:
        self.stream: pa.NativeFile | None = stream
        self._position = 0

    def seek(self, offset: int, whence: int = 0) -> int:
        """Move, as `io.IOBase.seek`."""
        assert self.stream is not None
        self._position = offset + (0, self._position, self.stream.size())[whence]
        return self._position

    def tell(self) -> int:
        """The position."""
        return self._position

    def read(self, size: int) -> bytes:
        """The next bytes."""
        assert self.stream is not None
        data: bytes = self.stream.read_at(size, self._position)
        self._position += len(data)
        return data

    def close(self) -> None:
        """Nothing: whoever lent the stream closes it."""


class Reader(pq.ParquetFile):
    """pyarrow's reader without its map from names to columns: slow to make for wide files, and not used here.

    `dictionaries` are numbers of the leaf columns that are read as such; `pre_buffer` asks for all column chunks at
    once: for file systems that are far away.
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
            # By name, pyarrow would spell the names of all columns to find them.
            read_dictionary=list(dictionaries),
            pre_buffer=pre_buffer,
            # Nanoseconds, pyarrow's own choice for INT96, wrap around silently outside of 1677 to 2262.
            coerce_int96_timestamp_unit="us",
            **depth_options(),
        )

    def _build_nested_paths(self) -> dict[str, list[int]]:
        return {}

    @property
    def schema_arrow(self) -> pa.Schema:
        """The schema of what is read, `without_views`."""
        return without_views(empty_table(super().schema_arrow), self.metadata).schema

    @property
    def may_use_threads(self) -> bool:
        """False where the schema has a type that Python registered: one of pyarrow's threads that still held it at exit
        would end the process.
        """
        kinds = list(self.schema_arrow.types)
        while kinds:
            kind = kinds.pop()
            if isinstance(kind, pa.ExtensionType):
                return False
            inside = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
            kinds += [inside.field(number).type for number in range(inside.num_fields)]
        return True


def without_views(table: pa.Table, metadata: pq.FileMetaData) -> pa.Table:
    """What pyarrow read of a file, with offsets where it made views, which it can neither take from nor filter.

    Files have none: a writer's Arrow schema in the footer asks for them.
    """
    if b"ARROW:schema" not in (metadata.metadata or {}):
        return table
    for number, own in enumerate(table.schema):
        plain = plain_form(own.type, stored=True)
        if plain != own.type:
            table = table.set_column(number, own.with_type(plain), chunks_in_form(table.column(number), plain))
    return table


@dataclass(slots=True, eq=False)
class CachedFooter:
    """What was found out about a file: shared by all threads that read it, so only added to."""

    metadata: pq.FileMetaData  # Row groups and statistics.
    schema: SchemaNode  # The schema tree of the footer.
    dictionaries: frozenset[int]  # Numbers of the leaf columns that are read as dictionaries.
    idle_readers: list[Reader] = field(default_factory=list, repr=False)
    plans: dict[Hashable, Any] = field(default_factory=dict, repr=False)

    def reader(self, stream: pa.NativeFile) -> Reader:
        """A reader over a stream of the file, for one thread and reading with one: an idle one if there is one."""
        try:
            reader = self.idle_readers.pop()
        except IndexError:
            return Reader(Handle(stream), self.metadata, self.dictionaries)
        reader.handle.stream = stream
        return reader

    def release(self, reader: Reader) -> None:
        """Keep a reader for the next one who asks; it is read from no more."""
        reader.handle.stream = None
        if len(self.idle_readers) < _IDLE_READERS:
            self.idle_readers.append(reader)

    def plan(self, key: Hashable, make: Callable[[], Entry]) -> Entry:
        """What was planned before under the key, else what `make` gives; not to be changed."""
        plan: Entry | None = self.plans.get(key)
        if plan is None:
            if len(self.plans) >= _PLANS:
                self.plans.clear()
            plan = self.plans[key] = make()
        return plan


class FooterCache(Generic[Entry]):
    """What is known of the files last opened, within bounds."""

    def __init__(self, most_files: int = MOST_FILES) -> None:
        self.most_files = most_files
        self.clear()
        in_forked_child(self.clear)

    def clear(self) -> None:
        """Forget all."""
        self.lock = threading.Lock()
        self.files: OrderedDict[Fingerprint, tuple[Entry, int]] = OrderedDict()
        self.bytes = 0

    def get(self, fingerprint: Fingerprint) -> Entry | None:
        """What is kept of a file, which was used last now; None for nothing."""
        with self.lock:
            footer = self.files.get(fingerprint)
            if footer is None:
                return None
            self.files.move_to_end(fingerprint)
            return footer[0]

    def add(self, fingerprint: Fingerprint, entry: Entry, size: int) -> None:
        """Keep what is known, of so many bytes, and forget what was not used for longest."""
        with self.lock:
            if fingerprint in self.files or size > MOST_FOOTER_BYTES:
                return
            self.files[fingerprint] = entry, size
            self.bytes += size
            while self.bytes > MOST_FOOTER_BYTES or len(self.files) > self.most_files:
                _, (_, gone) = self.files.popitem(last=False)
                self.bytes -= gone


FOOTERS: FooterCache[CachedFooter] = FooterCache()


def fingerprint_of(path: str) -> Fingerprint | None:
    """The fingerprint of a local file; None if it is not there, or so young that a change might leave no trace."""
    return fingerprint_if_settled(state_of(path))


def fingerprint_if_settled(state: Fingerprint | None) -> Fingerprint | None:
    """The state of a file as its fingerprint; None if it is so young that a change might leave no trace."""
    return None if state is None or time.time_ns() - max(state[3:]) < SETTLED_NS else state


def state_of(path: str | int) -> Fingerprint | None:
    """Device, inode, size, and times of the last change of a local file, by name or open; None if it is not there."""
    try:
        info = os.stat(path)  # noqa: PTH116 - a Path costs as much as the call
    except (OSError, ValueError):
        return None
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


def cached_footer(path: str, fingerprint: Fingerprint | None) -> CachedFooter | None:
    """What is known of the file that was opened at a path since it had the fingerprint, if it has that still."""
    footer = None if fingerprint is None else FOOTERS.get(fingerprint)
    return footer if footer is not None and fingerprint_of(path) == fingerprint else None


def cache_footer(path: str, fingerprint: Fingerprint | None, footer: CachedFooter) -> None:
    """Keep what was read of the file at a path since it had the fingerprint, if it has that still."""
    if fingerprint is not None and fingerprint_of(path) == fingerprint:
        FOOTERS.add(fingerprint, footer, footer.metadata.serialized_size)
