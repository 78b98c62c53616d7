"""Output columns: each is a typed path into a Variant, or an ordinary column.

Owns the ways to write them. Leaves which columns of a file they need to `files.parquet.scanning.projection`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclasses_field
from typing import Literal

import pyarrow as pa

from parquet_variant.arrays.capsules import EXTENSION_METADATA
from parquet_variant.errors import VariantError, check_column_name, strings_of
from parquet_variant.ops.columns.target_type import as_target, result_type, value_target
from parquet_variant.types.path import AnyPath, VariantPath
from parquet_variant.types.targets import VARIANT_STORAGE


@dataclass(frozen=True, slots=True)
class Selected:
    """One output column."""

    name: str  # Its name.
    path: VariantPath | None  # The path into the Variant column; None for an ordinary column.
    # The requested Arrow type, of each element if the path has wildcards; None for the Variant at the path, or for an
    # ordinary column with its own type. It is not hashed, since extension types made in Python have no hash.
    type: pa.DataType | None = dataclasses_field(default=None, hash=False)
    column: str | None = None  # The ordinary column's name in the file.
    exact: bool = False  # Whether values of other types are null; numbers are cast where the type keeps them.

    @property
    def lossless(self) -> Literal[False, "numbers"]:
        """The option of `extract_path` for an exact column."""
        return "numbers" if self.exact else False

    @property
    def stored_name(self) -> str:
        """The name of the column in the data: `column`, which may be empty, or the output name."""
        return self.name if self.column is None else self.column

    @property
    def field(self) -> pa.Field:
        """The output column as an Arrow field; a Variant has the extension name in its metadata."""
        if self.output is None:
            return pa.field(self.name, VARIANT_STORAGE, metadata=EXTENSION_METADATA)
        return pa.field(self.name, self.output)

    @property
    def output(self) -> pa.DataType | None:
        """The Arrow type of the output column; None for a Variant, or an ordinary column whose type is not read yet."""
        if self.path is None or not self.path.has_wildcard:
            return self.type
        return result_type(VARIANT_STORAGE if self.type is None else self.type, self.path)


def arrow_type(kind: object) -> pa.DataType | None:
    """Return the Arrow type with a name; None for ``variant``.

    >>> arrow_type("double"), arrow_type("array<string>"), arrow_type("variant")
    (DataType(double), ListType(list<element: string>), None)
    """
    if kind is None or (isinstance(kind, str) and kind.strip().lower() == "variant"):
        return None
    return as_target(kind)


def read_selection(columns: Mapping[str, object] | Sequence[str]) -> tuple[Selected, ...]:
    """Read output columns, in their order.

    `columns`: by name: ``("$.path", "type")``; ``"$.path:type"``; ``"$.path"`` for a Variant; or the name of an
      ordinary column. A list of names, or a single name, selects columns under their own names.
    Raises `VariantError` for anything else and for unknown types, `PathError` for an invalid path.

    >>> read_selection({"mag": ("$.properties.mag", "double"), "id": "id"})[0].type
    DataType(double)
    """
    if not isinstance(columns, Mapping):
        columns = {name: name for name in strings_of("columns", columns)}
    return tuple(_read_column(name, request) for name, request in columns.items())


def _read_column(name: str, request: object) -> Selected:
    check_column_name(name)
    if isinstance(request, Selected):
        return replace(request, name=name)
    if isinstance(request, VariantPath):
        return Selected(name, request)
    if isinstance(request, tuple) and len(request) == 2:
        return _typed_path(name, request[0], request[1])
    if isinstance(request, str) and request.startswith("$"):
        path, kind = split_type(request)
        return _typed_path(name, path, kind)
    if isinstance(request, str):
        return Selected(name, None, column=request)
    raise VariantError(
        f"invalid selection for column {name}: {request!r}; give ('$.path', 'type'), '$.path:type' or a column name",
        reason="bad-selection",
    )


def _typed_path(name: str, path: AnyPath, type_name: object) -> Selected:
    parsed, target = VariantPath.parse(path), arrow_type(type_name)
    return Selected(name, parsed, None if target is None else value_target(target, parsed))


def split_type(text: str) -> tuple[str, str | None]:
    """Split ``$.a['b:c']:int`` into path and type; a key with a colon must be written in brackets and quotes."""
    quote, bracketed, index = "", False, 0
    while index < len(text):
        character = text[index]
        if quote:
            index += character == "\\"
            quote = "" if character == quote else quote
        elif bracketed and character in "'\"":
            quote = character
        elif character in "[]":
            bracketed = character == "["
        elif character == ":":
            return text[:index], text[index + 1 :].strip()
        index += 1
    return text, None
