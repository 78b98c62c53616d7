"""What a query asks for: output columns by name, each a typed path into a Variant or an ordinary column.

Owns reading the many ways to write that. Leaves which file columns answer it to `projection`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclasses_field

import pyarrow as pa

from parquet_variant.array.capsules import EXTENSION_METADATA
from parquet_variant.compute.target_type import as_target, result_type, value_target
from parquet_variant.encoding.cast.targets import VARIANT_STORAGE
from parquet_variant.errors import VariantError, check_column_name
from parquet_variant.path import AnyPath, VariantPath


@dataclass(frozen=True, slots=True)
class Selected:
    """One output column."""

    name: str  # Its name.
    path: VariantPath | None  # The path into the Variant column; None for an ordinary column.
    # The Arrow type asked for, of each element if the path has wildcards; None gives the Variant at the path, or an
    # ordinary column as it is. Extension types made in Python have no hash.
    type: pa.DataType | None = dataclasses_field(default=None, hash=False)
    column: str | None = None  # The ordinary column's name in the file.

    @property
    def field(self) -> pa.Field:
        """The output column as an Arrow field; a Variant carries the extension's name."""
        if self.output is None:
            return pa.field(self.name, VARIANT_STORAGE, metadata=EXTENSION_METADATA)
        return pa.field(self.name, self.output)

    @property
    def output(self) -> pa.DataType | None:
        """The Arrow type of the output column; None for a Variant, or an ordinary column not looked at yet."""
        if self.path is None or not self.path.has_wildcard:
            return self.type
        return result_type(VARIANT_STORAGE if self.type is None else self.type, self.path)


def arrow_type(kind: object) -> pa.DataType | None:
    """The Arrow type that a type's name stands for; None for ``variant``.

    >>> arrow_type("double"), arrow_type("array<string>"), arrow_type("variant")
    (DataType(double), ListType(list<element: string>), None)
    """
    if kind is None or (isinstance(kind, str) and kind.strip().lower() == "variant"):
        return None
    return as_target(kind)


def read_selection(columns: Mapping[str, object] | Sequence[str]) -> tuple[Selected, ...]:
    """The output columns, in their order.

    `columns`: by name: ``("$.path", "type")``; ``"$.path:type"``; ``"$.path"`` for a Variant; or the name of an
      ordinary column. A list of these, or a single one, selects columns under their own names.
    Raises `VariantError` for anything else, or a type that does not exist; `PathError` for a path that cannot be read.

    >>> read_selection({"mag": ("$.properties.mag", "double"), "id": "id"})[0].type
    DataType(double)
    """
    if not isinstance(columns, Mapping):
        columns = {name: name for name in ([columns] if isinstance(columns, str) else columns)}
    return tuple(_selected(name, asked) for name, asked in columns.items())


def _selected(name: str, what: object) -> Selected:
    check_column_name(name)
    if isinstance(what, Selected):
        return replace(what, name=name)
    if isinstance(what, VariantPath):
        return Selected(name, what)
    if isinstance(what, tuple) and len(what) == 2:
        return _typed_path(name, what[0], what[1])
    if isinstance(what, str) and what.startswith("$"):
        path, kind = split_type(what)
        return _typed_path(name, path, kind)
    if isinstance(what, str):
        return Selected(name, None, column=what)
    raise VariantError(
        f"column {name}: {what!r} is no selection: give ('$.path', 'type'), '$.path:type' or a column's name",
        reason="bad-selection",
    )


def _typed_path(name: str, path: AnyPath, type_name: object) -> Selected:
    parsed, target = VariantPath.parse(path), arrow_type(type_name)
    return Selected(name, parsed, None if target is None else value_target(target, parsed))


def split_type(text: str) -> tuple[str, str | None]:
    """Path and type of ``$.a['b:c']:int``: a key with a colon must stand in brackets and quotes."""
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
