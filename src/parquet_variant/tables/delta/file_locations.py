"""Where the files of a table are: paths in its log, deletion vectors, and partitions.

Owns the conversion of a path in the log to a path in the storage, deletion vectors, and the partition of each file. A
log must not give access to files elsewhere, so `..`, absolute paths and URLs outside of the table are refused. Leaves
links on a disk to `tables.storage`.
"""

from __future__ import annotations

import os
import posixpath
import uuid
from collections.abc import Iterable, Sequence
from urllib.parse import unquote, urlparse

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.errors import DeltaError, TableError
from parquet_variant.io.filesystems import KNOWN_SCHEMES
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.tables.delta import z85
from parquet_variant.tables.delta.protocol.actions import Add, DeletionVector
from parquet_variant.tables.partitions import partition_array, partition_texts
from parquet_variant.tables.row_sets import FRAME_BYTES, check_rows, framed, read_bitmap, unframed, write_bitmap
from parquet_variant.tables.schema import Field
from parquet_variant.tables.storage import LocalStorage, Storage, outside

_UUID_CHARACTERS = 20


def relative_path(storage: Storage, path: str) -> str:
    """Return the path in the storage of a path in the log, which is percent-encoded and may be absolute.

    Raises `TableError`: reason ``"outside-table"`` unless the storage allows paths outside of the table.
    """
    try:
        scheme = urlparse(path).scheme
    except ValueError:  # an invalid host in brackets
        raise outside(storage, path) from None
    if len(scheme) > 1 and scheme != "file":
        base, url = _canonical_url(storage.uri).rstrip("/") + "/", _canonical_url(unquote(path))
        if not url.startswith(base):
            if not storage.allow_outside:
                raise outside(storage, path)
            return path
        decoded = url[len(base) :]
    else:
        decoded = unquote(urlparse(path).path if scheme == "file" else path)
    if isinstance(storage, LocalStorage):
        return _local(storage, decoded, path)
    if decoded.startswith("/") or ".." in decoded.split("/"):
        raise outside(storage, path)
    return decoded


def _local(storage: LocalStorage, decoded: str, path: str) -> str:
    if "\x00" in decoded:
        raise outside(storage, path)
    if not decoded.startswith("/") and not {".", "..", ""} & set(decoded.split("/")):
        return decoded
    # Vacuum compares paths, so all spellings of a path must become the same one.
    full = os.path.normpath(storage.root / decoded)
    for root in (str(storage.root), storage.real_root):
        if full.startswith(f"{root.rstrip('/')}/"):
            return full[len(root.rstrip("/")) + 1 :]
    if not storage.allow_outside:
        raise outside(storage, path)
    return full


def paths_of_adds(storage: Storage, adds: Iterable[Add]) -> list[str]:
    """Return the paths in the storage of new files; see `relative_path`."""
    return [relative_path(storage, add.path) for add in adds]


def vector_path(storage: Storage, vector: DeletionVector) -> str | None:
    """Return the path in the storage of a deletion vector's file; None for an inline vector."""
    if vector.storage_type == "u":
        text = vector.path_or_inline_dv
        prefix, name = text[:-_UUID_CHARACTERS], text[-_UUID_CHARACTERS:]
        try:
            file = f"deletion_vector_{uuid.UUID(bytes=z85.decode(name))}.bin"
        except (TableError, ValueError):
            raise DeltaError(f"{text!r} is not the name of a deletion vector", reason="bad-deletion-vector") from None
        joined = posixpath.join(prefix, file)
        if joined.startswith("/") or ".." in joined.split("/") or "\x00" in joined:
            raise outside(storage, joined)
        return joined
    return relative_path(storage, vector.path_or_inline_dv) if vector.storage_type == "p" else None


def _canonical_url(url: str) -> str:
    scheme, separator, location = url.partition("://")
    return KNOWN_SCHEMES.get(scheme, scheme) + separator + location


_FILE_VERSION = b"\x01"


def deleted_rows(storage: Storage, vector: DeletionVector) -> npt.NDArray[np.uint64]:
    """Return the 0-based rows that a deletion vector marks, ascending, or raise ``"bad-deletion-vector"``."""
    if vector.storage_type == "i":
        data = z85.decode(vector.path_or_inline_dv)[: vector.size_in_bytes]
        return check_rows(read_bitmap(data, vector.cardinality), vector.cardinality)
    offset, length = vector.offset or 0, vector.size_in_bytes + FRAME_BYTES
    path = vector_path(storage, vector)
    if path is None:
        raise DeltaError(f"deletion vector storage {vector.storage_type!r} is unknown", reason="bad-deletion-vector")
    try:
        block = storage.read(path, offset, length)
        if offset == 0 and block[:1] == _FILE_VERSION:
            block = storage.read(path, 1, length)
    except FileNotFoundError:
        raise DeltaError.of_missing_file("the deletion vector file", path) from None
    if len(block) != length:
        raise DeltaError("the deletion vector file is truncated", reason="bad-deletion-vector", file=path)
    return check_rows(read_bitmap(unframed(block, path), vector.cardinality), vector.cardinality)


def write_vector(
    storage: Storage, rows: npt.NDArray[np.uint64], name: uuid.UUID, directory: str = ""
) -> DeletionVector:
    """Write unique, ascending row positions as a deletion vector to a file in a directory of the table."""
    data = write_bitmap(rows)
    storage.put(f"{directory}/deletion_vector_{name}.bin".lstrip("/"), _FILE_VERSION + framed(data))
    return DeletionVector("u", f"{directory}{z85.encode(name.bytes)}", len(data), len(rows), 1)


def partition_column(files: pa.Table, field: Field) -> pa.Array:
    """Return the value of a partition column in each file (rows of `Snapshot.files`)."""
    strings = one_chunk(pc.map_lookup(files["partitionValues"], field.physical_name, "first")).dictionary_encode()
    distinct = [partition_array(text, field.type, 1) for text in strings.dictionary.to_pylist()]
    values = pa.concat_arrays(distinct) if distinct else partition_array(None, field.type, 0)
    return values.take(strings.indices)


def partition_keys(files: pa.Table, fields: Sequence[Field]) -> list[tuple[str | None, ...]]:
    """Return the partition of each file, in the spelling of `partition_text`: writers spell a value in several ways."""
    columns = [partition_texts(partition_column(files, field)) for field in fields]
    return list(zip(*columns, strict=True)) if columns else [()] * len(files)
