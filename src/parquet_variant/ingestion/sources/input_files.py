"""`InputFile`: a source file whose filesystem, size and codec are looked up once; and which files the sources name.

`chunks` reads the text of the files, and `splits` divides them into parts for tasks. Codecs are detected by the first
bytes. pyarrow decompresses zstd and lz4. gzip and bz2 files consist of members, and pyarrow's streams do not accept all
valid sequences of members (empty bz2 members, gzip members followed by zero padding), so that this module reads the
members.
"""

from __future__ import annotations

import bz2
import glob
import io
import os
import re
import shutil
import tempfile
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.fs as pafs

from parquet_variant.errors import VariantFileError, first_line
from parquet_variant.io.commit_journal import everything_below, fixed_part, glob_match
from parquet_variant.io.filesystems import filesystem_of, path_texts, write_errors
from parquet_variant.support.records import Record, cached_property

# Enough for the magic numbers of codecs and of the table formats.
_HEAD_BYTES = 8
# Files and directories whose names begin with a dot or an underscore.
_HIDDEN = re.compile(r"(^|/)[._]")
_COMPRESSION_WORDS = ("zlib", "zstd", "bz2", "lz4", "compress", "truncated")


class InputFile(Record):
    """A source file: its name as the user spelled it, and its filesystem, path, size and codec.

    Only the name, a size that is already known and the copy of a pipe are pickled. Every process looks up the rest on
    first use, so that no credentials of a filesystem are sent to tasks. Two files are equal if their names are.

    `name`: path or URI.
    `known_size`: number of bytes as stored, if it was known when the file was found.
    `copy`: the file that holds what was read from a pipe, because the text is read more than once.
    `modified`: when it was written last, if that was known when the file was found; it is not pickled.

    >>> file = InputFile("examples/usgs_earthquakes.ndjson")
    >>> file.codec, file.size
    (None, 1217844)
    """

    name: str
    known_size: int | None = field(default=None, compare=False, repr=False)
    copy: str | None = field(default=None, compare=False, repr=False)
    modified: datetime | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[type, tuple[str, int | None, str | None]]:
        return InputFile, (self.name, self.known_size, self.copy)

    @classmethod
    def of_pipe(cls, name: str, stream: Any = None) -> InputFile:
        """Read a pipe, or its open stream, to the end, and return a copy, which is removed with the returned object."""
        with tempfile.NamedTemporaryFile(prefix="variant-", delete=False) as target:
            try:
                with nullcontext(stream) if stream else Path(name).open("rb") as pipe, write_errors(target.name):
                    shutil.copyfileobj(pipe, target, 1 << 20)
                    size = target.tell()
            except BaseException:
                Path(target.name).unlink()
                raise
        file = cls(name, size, target.name)
        weakref.finalize(file, Path(target.name).unlink, missing_ok=True)
        return file

    @property
    def size(self) -> int:
        """The number of bytes as stored."""
        return self.current_size() if self.known_size is None else self.known_size

    def current_size(self) -> int:
        """Return the number of stored bytes as the filesystem reports it now."""
        filesystem, path = self._location
        with self.errors():
            return filesystem.get_file_info(path).size or 0

    def etag(self) -> str | None:
        """Return the ETag of an object in a store, which changes with its bytes; None for a local file."""
        if "://" not in self.name:
            return None
        with self.errors(), self.open_stored() as stream:
            return next((bytes(v).decode() for name, v in stream.metadata().items() if name.lower() == "etag"), None)

    @cached_property
    def head(self) -> bytes:
        """The first bytes of the file as stored."""
        with self.errors(), self.open_stored() as stream:
            return bytes(stream.read(_HEAD_BYTES))

    @property
    def codec(self) -> Codec | None:
        """The codec of the file by its first bytes: ``"gzip"``, ``"zstd"``, ``"bz2"``, ``"lz4"`` or None."""
        return detect_codec(self.head)

    def open_stored(self) -> Any:
        """Open a stream of the stored bytes, without decompression. The caller handles errors with `errors`."""
        filesystem, path = self._location
        return filesystem.open_input_stream(path, compression=None)

    def open_seekable(self) -> Any:
        """Open the stored bytes for random access. The caller handles errors with `errors`."""
        filesystem, path = self._location
        return filesystem.open_input_file(path)

    @contextmanager
    def open_text(self) -> Iterator[Any]:
        """Open a stream of the decompressed bytes. Raises `VariantFileError` as `errors` does."""
        codec = self.codec
        with self.errors(), self.open_stored() as stored:
            yield decompressed(stored, codec)

    def errors(self) -> AbstractContextManager[None]:
        """Raise errors of the filesystem and of decompression as `VariantFileError`."""
        return _file_errors(self.name)

    @cached_property
    def _location(self) -> tuple[pafs.FileSystem, str]:
        return filesystem_of(self.copy or self.name)


def find_input_files(
    sources: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    exclude: Sequence[str] = (),
    *,
    pipes: bool = False,
) -> list[InputFile]:
    """Return the files that the sources name, in order and without duplicates, with their sizes.

    `sources`: one or several files, directories (read recursively, without names that begin with ``.`` or ``_``), glob
      patterns (``**`` for any depth) or URIs (``s3://bucket/key``, ``file:///…``).
    `exclude`: patterns of files and directories to leave out. A pattern is compared with the last parts of the path:
      ``*.md`` with names, ``raw/*.csv`` with names in directories ``raw``.
    `pipes`: whether pipes are read, which is possible once; otherwise they are reported as missing.

    >>> find_input_files("examples/*.ndjson")
    [InputFile(name='examples/usgs_earthquakes.ndjson')]
    """
    source_list = path_texts(sources)
    if not source_list:
        raise VariantFileError("no sources: name at least one file, directory or pattern", reason="no-files")
    named: dict[str, InputFile] = {}
    for source in source_list:
        with _file_errors(source):
            if pipes and is_pipe(source):
                named.setdefault(source, InputFile.of_pipe(source))
            else:
                named.update((file.name, file) for file in _expand_source(source))
    files = [file for name, file in named.items() if not is_excluded(name, exclude)]
    if not files:
        raise VariantFileError(
            f"exclude= leaves out all {len(named):,} files: change the patterns {', '.join(exclude)}", reason="no-files"
        )
    return files


def is_pipe(path: str) -> bool:
    """Return whether a path is a named pipe, such as ``/dev/stdin`` behind ``|`` or ``<(zcat a.gz)`` of a shell."""
    return "://" not in path and Path(path).is_fifo()


def is_excluded(name: str, patterns: Iterable[str]) -> bool:
    """Return whether the path of a file, or of a directory that contains it, matches one of the patterns.

    >>> is_excluded("logs/2026/README.md", ["*.md"]), is_excluded("logs/raw/a.json", ["raw"])
    (True, True)
    >>> is_excluded("logs/a.json", ["raw/*.json", "b*"])
    False
    """
    parts = name.split("/")
    ends = range(1, len(parts) + 1)
    return any(glob_match(parts[:end], ["**", *pattern.strip("/").split("/")]) for pattern in patterns for end in ends)


def _expand_source(source: str) -> Sequence[InputFile]:
    """Return the files that one source names, ordered by name."""
    filesystem, path = filesystem_of(source)
    info = filesystem.get_file_info(path)
    problem, reason = f"{source} does not exist: check the path", "missing"
    matches: list[tuple[str, pafs.FileInfo]] = []
    if info.type == pafs.FileType.File:
        matches = [(source, info)]
    elif info.type == pafs.FileType.Directory:
        # Names are spelled like the source.
        base, prefix_length = source.rstrip("/"), len(path.rstrip("/"))
        entries = [(info.path[prefix_length:], info) for info in everything_below(filesystem, path)]
        matches = [(base + name, info) for name, info in entries if not _HIDDEN.search(name)]
        problem = f"the directory {source} contains no files: name a directory that contains JSON files"
        reason = "no-files"
    elif glob.has_magic(path):
        if isinstance(filesystem, pafs.LocalFileSystem) and "**" not in path:
            infos = filesystem.get_file_info(glob.glob(path))  # noqa: PTH207
        else:  # For `**`, Python's own glob follows symbolic links that lead back to a parent without end.
            base, infos = fixed_part(path), []
            pattern = path.removeprefix(f"{base}/").lstrip("/").split("/")
            for info in everything_below(filesystem, base):
                names = info.path.removeprefix(base).lstrip("/").split("/")
                if glob_match(names, pattern) and not any(name.startswith(".") for name in names):
                    infos.append(info)
        scheme = source.removesuffix(path) if "://" in source else ""
        matches = [(scheme + info.path.removeprefix("./"), info) for info in infos]
        problem = f"no file matches {source}: check the pattern (quote it, and use ** for any depth)"
    files = [InputFile(name, info.size or 0, modified=info.mtime) for name, info in matches if info.is_file]
    if not files:
        raise VariantFileError(problem, reason=reason, file=source)
    return sorted(files, key=lambda file: file.name)


@contextmanager
def _file_errors(name: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as err:
        raise VariantFileError(f"{name} does not exist: check the path", reason="missing", file=name) from err
    except (OSError, pa.ArrowException) as err:
        text = first_line(err)
        if any(word in text.lower() for word in _COMPRESSION_WORDS):
            problem = f"{name} cannot be decompressed ({text}): the file is damaged or truncated; get a new copy"
            raise VariantFileError(problem, reason="bad-compression", file=name) from err
        raise VariantFileError(f"{name} cannot be read: {text}", reason="unreadable", file=name) from err


Codec: TypeAlias = Literal["gzip", "zstd", "bz2", "lz4"]

# The content decides, not the name of the file.
_MAGIC: tuple[tuple[bytes, Codec], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bz2"),
    (b"\x04\x22\x4d\x18", "lz4"),
)
# pzstd writes a skippable frame before the data; the first byte of its magic number is any from 0x50 to 0x5F.
_ZSTD_SKIPPABLE = b"\x2a\x4d\x18"
_READ_BYTES = 256 << 10
# The assumed ratio of the text to the stored bytes of a compressed file.
COMPRESSION_RATIO = 10
# The window size for `zlib` that selects the gzip format.
_GZIP_WINDOW_BITS = 16 + zlib.MAX_WBITS


def detect_codec(head: bytes) -> Codec | None:
    """Return the codec of a file that starts with `head`, or None for an uncompressed file."""
    if head[1:4] == _ZSTD_SKIPPABLE and head[0] >> 4 == 5:
        return "zstd"
    return next((codec for magic, codec in _MAGIC if head.startswith(magic)), None)


def decompressed(stored: Any, codec: Codec | None) -> Any:
    """Return a stream of the decompressed bytes of `stored`."""
    if codec is None:
        return stored
    if codec == "gzip":
        new_member = partial(zlib.decompressobj, _GZIP_WINDOW_BITS)
        return io.BufferedReader(_MemberStream(stored, new_member, "zlib", padding=b"\0"))
    if codec == "bz2":
        return io.BufferedReader(_MemberStream(stored, bz2.BZ2Decompressor, "bz2"))
    return pa.CompressedInputStream(stored, codec)


class _MemberStream(io.RawIOBase):
    """The concatenated text of compressed members, which may be empty or followed by padding."""

    def __init__(self, stored: Any, new_member: Callable[[], Any], name: str, padding: bytes = b"") -> None:
        self._stored, self._new_member, self._name, self._padding = stored, new_member, name, padding
        self._member = new_member()

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        text = b""
        while not text:
            # zlib returns the input that it did not use, and bz2 keeps it.
            data = getattr(self._member, "unconsumed_tail", b"")
            if self._member.eof:
                # The first bytes of the next member; no bytes at the end of the stream.
                data = self._member.unused_data.lstrip(self._padding)
                while not data and (block := self._stored.read(_READ_BYTES)):
                    data = bytes(block).lstrip(self._padding)
                if not data:
                    return 0
                self._member = self._new_member()
            elif not data and getattr(self._member, "needs_input", True):
                data = self._stored.read(_READ_BYTES)
                if not data:
                    raise OSError(f"the {self._name} stream is truncated")
            try:
                text = self._member.decompress(data, len(room))
            except (OSError, zlib.error) as error:
                raise OSError(f"{self._name}: {error}") from None
        room[: len(text)] = text
        return len(text)
