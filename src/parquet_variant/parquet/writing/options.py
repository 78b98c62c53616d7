"""How a Parquet file is written: the options of `VariantWriter` that do not depend on the file, checked.

Owns their names, defaults and the errors for what cannot be, so that a job can tell before its first task. Leaves what
they do to `writer`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

import pyarrow as pa

from parquet_variant.errors import VariantFileError
from parquet_variant.parquet.writing.encodings import UNCOMPRESSED
from parquet_variant.path import VariantPath
from parquet_variant.query.selection import read_selection

__all__ = ["DEFAULT_ROW_GROUP_BYTES", "DEFAULT_WRITER", "Writer", "WriterOptions"]

Writer: TypeAlias = Literal["native", "pyarrow"]
DEFAULT_ROW_GROUP_BYTES = 128 << 20
DEFAULT_WRITER: Writer = "native"


@dataclass(frozen=True, slots=True)
class WriterOptions:
    """Options of the writer; see `VariantWriter`.

    Raises
    ------
    VariantFileError
        With reason ``"bad-option"`` for a value that no file can be written with.
    PathError
        For a path that cannot be read.

    Examples
    --------
    >>> WriterOptions(bloom_filters="$.id").bloom_filters
    ('$.id',)
    """

    compression: str = "zstd"
    compression_level: int | None = None
    row_group_bytes: int = DEFAULT_ROW_GROUP_BYTES
    annotation: bool | Literal["shredded"] = True
    sort_by: Sequence[str] | str = ()
    bloom_filters: Collection[str] | str = ()
    writer: Writer = DEFAULT_WRITER

    def __post_init__(self) -> None:
        if not isinstance(self.row_group_bytes, int) or self.row_group_bytes < 1:
            raise _bad(f"row_group_bytes is {self.row_group_bytes!r}: it must be a positive number of bytes")
        if self.writer not in get_args(Writer):
            raise _bad(f"writer is {self.writer!r}: use {' or '.join(get_args(Writer))}")
        _check_codec(self.compression, self.compression_level)
        for name in ("sort_by", "bloom_filters"):
            paths = getattr(self, name)
            # One path may be given without a list.
            object.__setattr__(self, name, (paths,) if isinstance(paths, str) else tuple(paths))
        read_selection({f"key{number}": key for number, key in enumerate(self.sort_by)})
        for path in self.bloom_filters:
            VariantPath.parse(path)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> WriterOptions:
        """The options by name.

        Raises
        ------
        VariantFileError
            With reason ``"bad-option"`` for a name that there is not.
        """
        known = [each.name for each in fields(cls)]
        if unknown := sorted(set(options) - set(known)):
            raise _bad(f"there is no option {unknown[0]!r} for files: use {', '.join(known)}")
        return cls(**options)


def _check_codec(compression: str, level: int | None) -> None:
    try:
        if compression.lower() not in UNCOMPRESSED:
            pa.Codec(compression.lower(), level)
    except (ValueError, OSError, TypeError, AttributeError, pa.ArrowException) as error:
        raise _bad(
            f"cannot compress with {compression!r}: {error}; zstd, snappy, gzip, lz4, brotli and none are known"
        ) from None


def _bad(message: str) -> VariantFileError:
    return VariantFileError(message, reason="bad-option")
