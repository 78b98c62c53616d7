"""The options of `VariantWriter` that do not depend on the file, with checks.

Owns names, defaults and errors, so that a job can check options before its first task. Leaves their effect to `writer`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias, TypedDict, get_args

import pyarrow as pa
from pyarrow import fs

from parquet_variant.errors import VariantFileError, bad_option, check_choice, check_names
from parquet_variant.files.parquet.writing.encodings import UNCOMPRESSED, ColumnEncodings
from parquet_variant.path import VariantPath
from parquet_variant.query.selection import read_selection
from parquet_variant.support.choices import DEFAULT_COMPRESSION, Effort, FileMode

Writer: TypeAlias = Literal["native", "pyarrow"]
DEFAULT_ROW_GROUP_BYTES = 128 << 20
DEFAULT_WRITER: Writer = "native"
# The level of zstd for all columns; None chooses a level per column (see `encodings`).
_LEVEL_OF_EFFORT: dict[Effort, int | None] = {"fast": 1, "balanced": None, "small": None}


class FileKeywords(TypedDict, total=False):
    """`WriterOptions` as keywords."""

    compression: str
    compression_level: int | None
    effort: Effort
    row_group_bytes: int
    annotation: bool | Literal["shredded"]
    sort_by: Sequence[str] | str
    bloom_filters: Collection[str] | str
    writer: Writer


class WriterKeywords(FileKeywords, total=False):
    """The keywords of `FileKeywords`, and the keywords of `VariantWriter` for one file."""

    variants: Collection[str]
    value_first: bool
    filesystem: fs.FileSystem | None
    threads: int
    encodings: ColumnEncodings | None
    mode: FileMode


@dataclass(frozen=True, slots=True)
class WriterOptions:
    """Options of the writer; see `VariantWriter`.

    Raises `VariantFileError` with reason ``"bad-option"`` for an invalid value, and `PathError` for an invalid path.

    >>> WriterOptions(bloom_filters="$.id").bloom_filters
    ('$.id',)
    """

    compression: str = DEFAULT_COMPRESSION
    compression_level: int | None = None
    effort: Effort = "balanced"
    row_group_bytes: int = DEFAULT_ROW_GROUP_BYTES
    annotation: bool | Literal["shredded"] = True
    sort_by: Sequence[str] | str = ()
    bloom_filters: Collection[str] | str = ()
    writer: Writer = DEFAULT_WRITER

    def __post_init__(self) -> None:
        if not isinstance(self.row_group_bytes, int) or self.row_group_bytes < 1:
            raise bad_option(
                f"row_group_bytes is {self.row_group_bytes!r}: it must be a positive number of bytes", VariantFileError
            )
        if self.annotation not in (True, False, "shredded"):
            raise bad_option(f"annotation is {self.annotation!r}: use True, False or 'shredded'", VariantFileError)
        check_choice("writer", self.writer, get_args(Writer), VariantFileError)
        _check_codec(self.compression, self.compression_level)
        object.__setattr__(self, "compression_level", self._level())
        for name in ("sort_by", "bloom_filters"):
            paths = getattr(self, name)
            paths = paths if isinstance(paths, Iterable) and not isinstance(paths, str) else [paths]
            if not all(isinstance(path, str | VariantPath) for path in paths):
                raise bad_option(f"{name} is {paths!r}: give a path or a list of paths", VariantFileError)
            object.__setattr__(self, name, tuple(paths))
        read_selection({f"key{number}": key for number, key in enumerate(self.sort_by)})
        for path in self.bloom_filters:
            VariantPath.parse(path)

    def _level(self) -> int | None:
        """Return the level of the codec, which the effort decides if it is not given."""
        check_choice("effort", self.effort, get_args(Effort), VariantFileError)
        level = _LEVEL_OF_EFFORT[self.effort]
        if self.effort == "balanced":
            return self.compression_level
        if self.compression_level not in (None, level) or self.compression.lower() != DEFAULT_COMPRESSION:
            other = "compression_level=" if self.compression_level is not None else f"compression={self.compression!r}"
            raise bad_option(
                f"effort={self.effort!r} sets the level of zstd and cannot be combined with {other}: leave one out",
                VariantFileError,
            )
        return level

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> WriterOptions:
        """Make options from names and values. Raises `VariantFileError`, ``"bad-option"``, for an unknown name."""
        check_names("option for files", options, [item.name for item in fields(cls)], VariantFileError)
        return cls(**options)


def _check_codec(compression: str, level: int | None) -> None:
    try:
        codec = compression.lower()
        if codec in UNCOMPRESSED:
            return
        pa.Codec(codec)
        if level is None:
            return
        lowest, highest = pa.Codec.minimum_compression_level(codec), pa.Codec.maximum_compression_level(codec)
    except (ValueError, TypeError, AttributeError, pa.ArrowException) as error:
        raise bad_option(
            f"compression is {compression!r}: use zstd, snappy, gzip, lz4, brotli or none ({error})",
            VariantFileError,
        ) from None
    if type(level) is not int or not lowest <= level <= highest:
        raise bad_option(
            f"compression_level is {level!r}: use an integer from {lowest} to {highest} for {codec}", VariantFileError
        )
