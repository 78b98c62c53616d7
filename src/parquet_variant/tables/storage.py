"""The storage of a table: a local directory or an object store, with the few operations that table formats need.

Owns listing, reading, replacing, put-if-absent and deleting files. Leaves the meaning of the files to the formats.

On local disks the atomic put-if-absent is a hard link to a synced temporary file; in object stores it is obstore's
conditional put (S3, GCS, Azure and its in-memory store).
"""

from __future__ import annotations

import os
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.fs as pafs

from parquet_variant.errors import TableError, check_mapping, first_line
from parquet_variant.io.filesystems import path_text, write_errors
from parquet_variant.io.object_stores import failures, filesystem_of_store, is_panic, obstore_library, open_store
from parquet_variant.io.temporaries import sync, temporary_beside
from parquet_variant.support.records import Record, cached_property


def now_millis() -> int:
    """Return the current time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def to_millis(moment: int | str | datetime, error: type[TableError]) -> int:
    """Return a time as milliseconds since 1970; a time without a time zone is in UTC.

    >>> to_millis("1970-01-01T00:00:01", TableError), to_millis("1970-01-01T01:00:01+01:00", TableError)
    (1000, 1000)
    """
    if isinstance(moment, int) and not isinstance(moment, bool):
        return moment
    try:
        parsed = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
        if not isinstance(parsed, datetime):
            raise TypeError
        parsed = parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed
        return (parsed.astimezone(UTC) - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)
    except (ValueError, TypeError, OverflowError, OSError):
        raise error(
            f"{moment!r} is not a time: give milliseconds since 1970, ISO text or a datetime", reason="bad-argument"
        ) from None


# Endings of the files that writers of tables make: data, deletes, statistics, manifests, and incomplete files.
TABLE_FILE_ENDINGS = (".parquet", ".orc", ".avro", ".bin", ".puffin", ".stats", ".tmp")


class StorageFile(Record):
    """A file: its path relative to the table's root, size in bytes, modification time in milliseconds since 1970."""

    path: str
    size: int
    modified: int


class Storage(ABC):
    """The files of one table. Paths are relative to its root, with `/`, and not percent-encoded.

    `options` are the configuration of the object store, in obstore's form. With `allow_outside`, files outside of the
    root may be read (shallow clones); they are never written or deleted.
    """

    def __init__(self, uri: str, options: Mapping[str, str] | None = None, *, allow_outside: bool = False) -> None:
        self.uri = uri
        check_mapping("storage_options", {} if options is None else options, TableError)
        self.options = dict(options or {})
        self.allow_outside = allow_outside

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(open_storage, allow_outside=self.allow_outside), (self.uri, self.options)

    @abstractmethod
    def list(self, directory: str, start: str = "") -> Iterator[StorageFile]:
        """Yield the files below a directory in any order; names less than `start` may be left out."""

    @abstractmethod
    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return the bytes of a file or of a range of it; raise `FileNotFoundError` if it does not exist."""

    @abstractmethod
    def put(self, path: str, data: bytes) -> None:
        """Write a file atomically, replacing an existing one."""

    @abstractmethod
    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a file atomically and return True; return False, without a change, if the file already exists."""

    @abstractmethod
    def create(self, path: str) -> AbstractContextManager[Path]:
        """Provide a local path for writing a new file; on exit without an error the file is durable at `path`."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Delete a file; a missing file is not an error."""

    @abstractmethod
    def remove_empty_directories(self) -> None:
        """Remove all empty directories, whose names may be values; an object store has no directories."""

    @abstractmethod
    def filesystem(self, path: str) -> tuple[pafs.FileSystem, str]:
        """Return a pyarrow filesystem that can open a file, and the file's path in it."""

    def unlinked(self, path: str) -> str:
        """Return the path under which `list` yields the target of a link inside the table."""
        return path

    def open(self, path: str) -> pa.NativeFile:
        """Open a file for random access; raise `FileNotFoundError` if it does not exist."""
        filesystem, full = self.filesystem(path)
        return filesystem.open_input_file(full)


class LocalStorage(Storage):
    """A directory on a local or mounted disk."""

    def __init__(self, uri: str, options: Mapping[str, str] | None = None, *, allow_outside: bool = False) -> None:
        super().__init__(uri, options, allow_outside=allow_outside)
        self.root = Path(unquote(urlparse(uri).path) if uri.startswith("file:") else uri).absolute()

    @cached_property
    def real_root(self) -> str:
        """The root with links resolved."""
        return os.path.realpath(self.root)

    def list(self, directory: str, start: str = "") -> Iterator[StorageFile]:
        """See `Storage.list`."""

        def failed(error: OSError) -> None:
            if not isinstance(error, FileNotFoundError | NotADirectoryError):
                raise error

        with _errors(self):
            for folder, _, names in os.walk(self.root / directory, onerror=failed):  # Links are not followed.
                for path in (Path(folder, name) for name in names if name >= start):
                    with suppress(FileNotFoundError):
                        stat, relative = path.stat(), path.relative_to(self.root).as_posix()
                        yield StorageFile(relative, stat.st_size, stat.st_mtime_ns // 1_000_000)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        """See `Storage.read`."""
        try:
            with _errors(self), self._location(path).open("rb") as file:
                file.seek(offset)
                return file.read() if length is None else file.read(length)
        except NotADirectoryError as error:  # A parent of the path is a file.
            raise FileNotFoundError(str(error)) from None

    def put(self, path: str, data: bytes) -> None:
        """See `Storage.put`."""
        with self._write_temporary(path, data) as temporary:
            temporary.replace(self.root / path)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """See `Storage.put_if_absent`."""
        target = self.root / path
        with self._write_temporary(path, data) as temporary:
            try:
                # link() fails if the name exists: the only local operation that is atomic and exclusive.
                os.link(temporary, target)
            except FileExistsError:
                return False
            except OSError:
                try:
                    links = temporary.stat().st_nlink
                except OSError as error:
                    problem = f"it is unknown if a file was committed: {error}"
                    raise TableError(problem, reason="unknown-outcome", file=self.uri) from None
                # A second link means that only the answer was lost, which happens on network disks.
                if links == 1:
                    raise
        with _errors(self, "unknown-outcome", f"{path} is committed, but may be lost in a power failure"):
            sync(target.parent)
        return True

    @contextmanager
    def create(self, path: str) -> Iterator[Path]:
        """See `Storage.create`. The file is written in place, because only a commit makes it part of the table."""
        target = self._location(path, writes=True)
        with write_errors(target):
            target.parent.mkdir(parents=True, exist_ok=True)
        is_new = not target.exists()
        try:
            yield target
            with write_errors(target):
                sync(target)
                sync(target.parent)  # A new name survives a power failure only if its directory is synced.
        except BaseException:
            if is_new:
                with suppress(OSError):
                    target.unlink()
            raise

    def delete(self, path: str) -> None:
        """See `Storage.delete`."""
        target = self._location(path, writes=True)
        with write_errors(target):
            target.unlink(missing_ok=True)

    def remove_empty_directories(self) -> None:
        """See `Storage.remove_empty_directories`."""
        for directory, _, _ in os.walk(self.root, topdown=False):
            if Path(directory) != self.root:
                with suppress(OSError):  # it has files
                    Path(directory).rmdir()

    def filesystem(self, path: str) -> tuple[pafs.FileSystem, str]:
        """See `Storage.filesystem`."""
        return pafs.LocalFileSystem(), str(self._location(path))

    def unlinked(self, path: str) -> str:
        """See `Storage.unlinked`."""
        return os.path.relpath(os.path.realpath(self.root / path), self.real_root)

    def _location(self, path: str, *, writes: bool = False) -> Path:
        """Return the location of a file; refuse links that lead out of the table, always if it `writes` or deletes."""
        full = self.root / path
        if writes or not self.allow_outside:
            real = os.path.realpath(full.parent if writes else full)
            if real != self.real_root and not real.startswith(self.real_root.rstrip("/") + "/"):
                raise outside(self, path)
        return full

    @contextmanager
    def _write_temporary(self, path: str, data: bytes) -> Iterator[Path]:
        """Write a synced temporary file next to a path; the block gives it its name."""
        target = self._location(path, writes=True)
        temporary = Path(temporary_beside(str(target)))
        with write_errors(target):
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                temporary.write_bytes(data)
                sync(temporary)
                yield temporary
            finally:
                with suppress(OSError):  # Vacuum removes leftovers.
                    temporary.unlink()


class _ObjectStorage(Storage):
    """A prefix of an object store, through obstore."""

    def __init__(self, uri: str, options: Mapping[str, str] | None = None, *, allow_outside: bool = False) -> None:
        super().__init__(uri, options, allow_outside=allow_outside)
        self._store = open_store(uri, self.options)

    def _place(self, path: str) -> tuple[Any, str]:
        """Return the store of a path and the path in it; a URL names another store."""
        if "://" not in path:
            return self._store, path
        parts = urlparse(path)
        return open_store(f"{parts.scheme}://{parts.netloc}", self.options), unquote(parts.path)[1:]

    def list(self, directory: str, start: str = "") -> Iterator[StorageFile]:
        # The offset is exclusive, so a string just before `start` includes `start` itself.
        offset = f"{directory}/{start[:-1]}{chr(ord(start[-1]) - 1)}" if start else None
        with _errors(self):
            for batch in obstore_library().list(self._store, directory or None, offset=offset):
                for item in batch:
                    modified = int(item["last_modified"].timestamp() * 1000)
                    yield StorageFile(item["path"], item["size"], modified)

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        store, path = self._place(path)
        with _errors(self):
            if length is None:
                data = bytes(obstore_library().get(store, path).bytes())
                return data[offset:] if offset else data
            return bytes(obstore_library().get_range(store, path, start=offset, length=length))

    def put(self, path: str, data: bytes) -> None:
        with _errors(self, "cannot-write", f"{path} cannot be written"):
            obstore_library().put(self._store, path, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        from obstore.exceptions import AlreadyExistsError, PermissionDeniedError, UnauthenticatedError

        with _errors(self, "unknown-outcome", f"it is unknown if {path} was committed: check the history"):
            try:
                obstore_library().put(self._store, path, data, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return False
            except (FileNotFoundError, PermissionDeniedError, UnauthenticatedError) as error:
                # The store has refused the request.
                problem = f"{path} cannot be written: {first_line(error)}"
                raise TableError(problem, reason="cannot-write", file=self.uri) from None
        return True

    @contextmanager
    def create(self, path: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="parquet-variant-") as directory:
            local = Path(directory) / Path(path).name
            yield local
            with _errors(self, "cannot-write", f"{path} cannot be written"), local.open("rb") as file:
                obstore_library().put(self._store, path, file)

    def delete(self, path: str) -> None:
        with suppress(FileNotFoundError), _errors(self, "cannot-write", f"{path} cannot be written"):
            obstore_library().delete(self._store, path)

    def remove_empty_directories(self) -> None:
        """Do nothing: an object store has no directories."""

    def filesystem(self, path: str) -> tuple[pafs.FileSystem, str]:
        store, path = self._place(path)
        return filesystem_of_store(store), path


@contextmanager
def _errors(storage: Storage, reason: str = "cannot-read", problem: str = "") -> Iterator[None]:
    """Convert errors of the operating system and of object stores to `TableError`; keep those about missing files."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise
    except BaseException as error:
        if not isinstance(error, failures()) and not is_panic(error):
            raise
        problem = problem or f"{storage.uri} cannot be read"
        raise TableError(f"{problem}: {first_line(error)}", reason=reason, file=storage.uri) from None


def outside(storage: Storage, path: str) -> TableError:
    """Return the error for a path in the log that is outside of the table."""
    return TableError(
        f"the log names {path}, which is outside of the table: pass allow_outside=True to read such files, for example "
        "in a shallow clone; they are never written or deleted",
        reason="outside-table",
        file=storage.uri,
    )


def open_storage(
    uri: str | os.PathLike[str], options: Mapping[str, str] | None = None, *, allow_outside: bool = False
) -> Storage:
    """Return the storage of a table.

    `uri`: a local path, or a URL: ``file://``, ``s3://`` (``s3a://``), ``gs://``, ``az://``, ``abfss://``,
      ``memory://``.
    `options`: configuration of the object store (`obstore.store.from_url`).
    Raises `VariantError`: ``"missing-extra"`` if the URL needs obstore, which is not installed; ``"bad-uri"``.

    >>> open_storage("some/table").uri
    'some/table'
    """
    text = path_text(uri)
    try:
        scheme = urlparse(text).scheme
    except ValueError as error:
        raise TableError(f"{text!r} is not a valid path or URL: {error}", reason="bad-uri") from None
    # Windows drives look like one-letter schemes.
    storage_class = _ObjectStorage if len(scheme) > 1 and scheme != "file" else LocalStorage
    return storage_class(text, options, allow_outside=allow_outside)
