"""The ``write.*`` properties of tables: acted on, known to have no effect here, or refused by name.

Owns `WriteProperties`. Properties of commits are read in `commit` and `manifest_changes`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from parquet_variant.errors import IcebergError, VariantFileError
from parquet_variant.files.parquet.pages.encodings import codec_number
from parquet_variant.support.choices import DEFAULT_COMPRESSION
from parquet_variant.support.fork_safety import cached_property

TARGET_BYTES = "write.target-file-size-bytes"
_CODEC, _LEVEL = "write.parquet.compression-codec", "write.parquet.compression-level"
_ROW_GROUP = "write.parquet.row-group-size-bytes"
_METRICS = "write.metadata.metrics."
_OPERATIONS = ("delete", "update", "merge")
_ONLY = {"write.format.default": "parquet", "write.delete.format.default": "parquet", "write.wap.enabled": "false"}
_REFUSED = ("write.location-provider.impl", "encryption.key-id", "write.object-storage.path")
_TRUNCATE = re.compile(r"truncate\((\d+)\)")
_OBJECT_STORAGE = "write.object-storage.enabled"


@dataclass(frozen=True)
class WriteProperties:
    """The properties of a table, as its writers read them."""

    properties: Mapping[str, str]

    def check(self) -> None:
        """Refuse what this package does not do. Raises `IcebergError`: reason ``"unsupported-feature"``."""
        for name, allowed in _ONLY.items():
            value = self.properties.get(name, allowed)
            if value.lower() != allowed:
                raise IcebergError(
                    f"the table property {name} is {value!r}: only {allowed!r} is supported",
                    reason="unsupported-feature",
                )
        for name in _REFUSED:
            if name in self.properties:
                raise IcebergError(f"the table property {name} is not supported", reason="unsupported-feature")
        for operation in _OPERATIONS:
            self.is_merge_on_read(operation)
            self.is_serializable(operation)
        for name, value in self.properties.items():
            if name == f"{_METRICS}default" or name.startswith(f"{_METRICS}column."):
                truncation(value.lower(), name)
        for name in (TARGET_BYTES, _ROW_GROUP, _LEVEL):
            self.number(name, 0)
        _ = self.codec

    @cached_property
    def codec(self) -> str:
        """The compression of data files."""
        codec = self.properties.get(_CODEC, DEFAULT_COMPRESSION).lower()
        codec = "none" if codec == "uncompressed" else codec
        try:
            codec_number(codec)
        except VariantFileError as error:
            raise IcebergError(
                f"the table property {_CODEC} is {codec!r}: {error.message}", reason="bad-property"
            ) from None
        return codec

    @property
    def object_storage_layout(self) -> bool:
        """Whether names of files begin with a hash, so that object stores can spread them."""
        return not self._is_first(_OBJECT_STORAGE, ("false", "true"))

    def writer_options(self) -> dict[str, Any]:
        """Return the options of `VariantWriter` that the properties ask for."""
        options: dict[str, Any] = {"compression": self.codec}
        if _LEVEL in self.properties and self.codec not in ("none", "snappy"):
            options["compression_level"] = self.number(_LEVEL, 0)
        if _ROW_GROUP in self.properties:
            options["row_group_bytes"] = self.number(_ROW_GROUP, 0)
        return options

    def is_merge_on_read(self, operation: str) -> bool:
        """Return whether an operation (delete, update or merge) marks rows instead of rewriting files."""
        return self._is_first(f"write.{operation}.mode", ("merge-on-read", "copy-on-write"))

    def is_serializable(self, operation: str) -> bool:
        """Return whether rows that other commits add are conflicts of an operation that would have changed them."""
        return self._is_first(f"write.{operation}.isolation-level", ("serializable", "snapshot"))

    def metrics_mode(self, column: str, position: int) -> str:
        """Return the metrics mode of a leaf column: ``none``, ``counts``, ``full`` or ``truncate(n)``.

        `position`: how many leaf columns are before it.
        """
        column_mode = self.properties.get(f"{_METRICS}column.{column}")
        if column_mode is not None:
            return column_mode.lower()
        default = self.properties.get(f"{_METRICS}default")
        if default is None and position >= self.number(f"{_METRICS}max-inferred-column-defaults", 100):
            return "none"
        return (default or "truncate(16)").lower()

    def number(self, name: str, default: int) -> int:
        """Return a property that is a number. Raises `IcebergError`: reason ``"bad-property"``."""
        text = self.properties.get(name)
        if text is None:
            return default
        if not text.isdecimal():
            raise IcebergError(f"the table property {name} is {text!r}: give a number", reason="bad-property")
        return int(text)

    def _is_first(self, name: str, choices: tuple[str, str]) -> bool:
        """Return whether a property is the first one of its values, which is the default."""
        value = self.properties.get(name, choices[0]).lower()
        if value not in choices:
            raise IcebergError(
                f"the table property {name} is {value!r}: use {' or '.join(choices)}", reason="bad-property"
            )
        return value == choices[0]


def truncation(mode: str, name: str) -> int | None:
    """Return how many characters of bounds a metrics mode keeps; None for all.

    `name`: the property or column, for errors.
    Raises `IcebergError`: reason ``"bad-property"``.
    """
    if mode in ("none", "counts", "full"):
        return None
    match = _TRUNCATE.fullmatch(mode)
    if match is None or int(match[1]) < 1:
        raise IcebergError(
            f"the metrics mode {mode!r} of {name} is unknown: use none, counts, truncate(n) or full",
            reason="bad-property",
        )
    return int(match[1])
