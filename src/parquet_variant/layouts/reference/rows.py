"""The three shredded layouts, one value at a time: the readable reference.

Owns the content of each row and its meaning, also of rows that the specification calls INVALID:

- ``final`` (Parquet's Variant Shredding): the row's metadata does not change, and neither do the ids in residuals. A
  residual never has a shredded field.
- ``draft_object`` (spark-encoding-and-shredding-draft-2, from "Parquet Example" on): the residual of an object is
  stored next to ``object``; an array is always stored completely in ``array``. A field whose columns are all null is
  missing.
- ``draft_paths`` (spark-shredding-draft-1-paths): ``value`` holds the residual that ``paths`` cannot represent, with
  metadata of only its names; both are null if there is no residual. If some elements of an array are in the residual,
  the other elements are Variant null in ``value``.

In the drafts, an ``untyped_value`` is a binary of metadata and value, with metadata of only its names.

An exact number (int or decimal) can be stored in any int or decimal column that holds it exactly; float and double are
stored only in columns of their own type, and so is every other type (spark-shredding-draft-1-paths, "Shredding
Semantics"; timestamps keep unit and zone). Owns those rules and the Python form of a slot: bool, int (also days, and
microseconds or nanoseconds of times and timestamps), float, Decimal, str, and bytes (also of a uuid).

Owns also the tree of Variants that all layouts share, the loop over the rows of Arrow arrays, and the reasons of
conflicts. Leaves storage types to `layouts.storages`, bytes to `encoding`, and batches to `kernels`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias, get_args

import pyarrow as pa

from parquet_variant.encoding.header import array_bytes, object_bytes, value_size
from parquet_variant.encoding.metadata import EMPTY_METADATA, check_version, dictionary_of
from parquet_variant.encoding.scalars import encode_scalar, read_scalar
from parquet_variant.encoding.variant import Variant, elements_of_array, fields_of_object
from parquet_variant.errors import ConflictError, MalformedVariantError, SchemaError, VariantError, check_choice
from parquet_variant.layouts.layout import detect_layout
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.storages import ROOT, StorageNode, read_storage, storage_type
from parquet_variant.support.options import Layout, OnConflict
from parquet_variant.types import EXACT_NUMERIC, INTEGERS, TYPE_OF_ARROW, TYPES, VariantType, decimal_type_for_precision
from parquet_variant.types.forms import in_form, number_form, plain_form
from parquet_variant.types.path import WILDCARD, VariantPath

_CONTAINERS = (VariantType.ARRAY, VariantType.OBJECT, VariantType.NULL)


def slot_of(variant: Variant, arrow: pa.DataType) -> Any | None:
    """Return the slot that holds a value exactly, or None if a column of that canonical Arrow type cannot hold it."""
    kind = variant.type
    slots: Any
    if pa.types.is_list(arrow) and kind == VariantType.ARRAY:
        slots = [slot_of(element, arrow.value_type) for element in elements_of_array(variant)]
        return None if None in slots else slots
    if pa.types.is_struct(arrow) and kind == VariantType.OBJECT:
        fields = fields_of_object(variant)
        if fields.keys() != {field.name for field in arrow}:
            return None
        slots = {field.name: slot_of(fields[field.name], field.type) for field in arrow}
        return None if None in slots.values() else slots
    if kind in _CONTAINERS or pa.types.is_nested(arrow):
        return None
    if not pa.types.is_decimal(arrow):
        target = TYPE_OF_ARROW[arrow].type
        if target not in INTEGERS:
            return _raw_value(variant) if kind == target else None
        number = _number(variant, kind, 0)
        width = TYPES[target].width
        assert width is not None
        return number if number is not None and -1 << (8 * width - 1) <= number < 1 << (8 * width - 1) else None
    unscaled = _number(variant, kind, arrow.scale)
    if unscaled is None or abs(unscaled) >= 10**arrow.precision:
        return None
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -arrow.scale))


def _raw_value(variant: Variant) -> Any:
    value = variant.value
    return read_scalar(value, 0, len(value)).raw


def _number(variant: Variant, kind: VariantType, scale: int) -> int | None:
    """Return the unscaled integer of an exact number at a scale, or None if digits would be lost."""
    if kind not in EXACT_NUMERIC:
        return None
    raw = _raw_value(variant)
    unscaled, value_scale = (raw, 0) if kind in INTEGERS else raw
    if value_scale <= scale:
        return unscaled * 10 ** (scale - value_scale)
    quotient, remainder = divmod(unscaled, 10 ** (value_scale - scale))
    return None if remainder else quotient


def tree_of_slot(slot: Any, arrow: pa.DataType) -> Tree:
    """Return the value of a slot; its type is that of the column.

    Raises `MalformedVariantError` for a time outside the day, and for a decimal with too many digits.
    """
    if slot is None:
        return VARIANT_NULL
    if pa.types.is_list(arrow):
        return [tree_of_slot(element, arrow.value_type) for element in slot]
    if pa.types.is_struct(arrow):
        return {field.name: tree_of_slot(slot[field.name], field.type) for field in arrow}
    if pa.types.is_decimal(arrow):
        sign, digits, exponent = slot.as_tuple()
        unscaled = int("".join(map(str, digits))) * 10 ** (exponent + arrow.scale) * (-1 if sign else 1)
        if abs(unscaled) >= 10**arrow.precision:
            message = f"the decimal {slot} has too many digits for decimal({arrow.precision},{arrow.scale})"
            raise MalformedVariantError(message, reason="bad-decimal")
        kind, raw = decimal_type_for_precision(arrow.precision), (unscaled, arrow.scale)
    else:
        kind, raw = TYPE_OF_ARROW[arrow].type, slot
    value = encode_scalar(kind, raw)
    if kind == VariantType.TIME:
        read_scalar(value, 0, len(value))
    if kind == VariantType.UUID and len(raw) != TYPES[kind].width:
        raise MalformedVariantError(f"a uuid has {len(raw)} bytes instead of 16", reason="bad-uuid")
    return Variant(EMPTY_METADATA, value)


# A Variant is a piece with its own metadata; a list is an array of pieces, a dict an object of pieces.
Tree: TypeAlias = "Variant | list[Tree] | dict[str, Tree]"

VARIANT_NULL = Variant(EMPTY_METADATA, b"\x00")


def bytes_of(variant: Variant) -> bytes:
    """Return the bytes of a value without any bytes that follow it."""
    value = variant.value
    return value[: value_size(value, 0, len(value))]


def joined(metadata: bytes, tree: Tree) -> Variant:
    """Return a Variant that keeps `metadata` and copies the bytes of its pieces, whose ids are those of `metadata`.

    If `metadata` lacks a name, which the specification does not allow, the result has metadata of only its names.
    """
    dictionary = dictionary_of(metadata)

    def encoded(node: Tree) -> bytes:
        if isinstance(node, Variant):
            return bytes_of(node)
        if isinstance(node, list):
            return array_bytes([encoded(child) for child in node])
        names = sorted(node)
        ids = [dictionary.ids(name.encode())[0] for name in names]
        return object_bytes(ids, [encoded(node[name]) for name in names])

    try:
        return Variant(metadata, encoded(tree))
    except IndexError:
        return Variant.from_python(tree)


_MESSAGES = {
    "both-set": "two columns that exclude each other are set",
    "non-object-value": "fields are shredded, but the residual value is not an object",
    "shredded-field-in-value": "the residual value has a field that is shredded",
    "object-in-value": "an object is stored in the value column although objects are shredded",
    "array-in-value": "an array is stored in the value column although arrays are shredded",
    "array-size": "the residual value is not an array of the size of the shredded array",
}


class RowLayout(NamedTuple):
    """The rows of a layout, which is shredded."""

    layout: Layout

    def shred_value(self, variant: Variant | None, schema: ShreddingSchema | pa.StructType) -> dict[str, Any] | None:
        """Return the row of a value, with slots in their Python form; None for None, which is SQL NULL.

        `schema`: the schema, or a storage type of this layout. A group of the final layout has its ``value`` in any
          case.
        Raises `MalformedVariantError`; `SchemaError` if a value needs a column for other types that the storage type of
        a draft does not have (``no-value``, ``no-untyped-value``).

        >>> schema, variant = ShreddingSchema.from_ddl("a bigint"), Variant.from_python({"a": 1, "b": "x"})
        >>> row = final.shred_value(variant, schema)
        >>> row["value"].hex(), row["typed_value"]
        ('02010100020578', {'a': {'value': None, 'typed_value': 1}})
        """
        storage, node = self._plan(schema)
        if variant is None:
            return None
        columns, residual = _shred(variant, node, self.layout, ROOT)
        if self.layout == "final":
            return {"metadata": variant.metadata, **columns}
        if self.layout == "draft-object":
            return dict(columns)
        if residual is not None and storage.get_field_index("value") < 0:
            raise SchemaError(
                "cannot store a value of another type: the storage type has no 'value' column", reason="no-value"
            )
        stored = None if residual is None else Variant.from_python(residual)
        row = {"value": stored and stored.value, "metadata": stored and stored.metadata}
        return row if storage.get_field_index("paths") < 0 else {**row, "paths": columns}

    def reconstruct(
        self,
        row: Mapping[str, Any] | None,
        schema: ShreddingSchema | pa.StructType,
        on_conflict: OnConflict = "error",
    ) -> Variant | None:
        """Return the value of a row; None for SQL NULL, and Variant null for a required value that is missing.

        `on_conflict`: ``"error"``, or ``"typed"``: use the typed columns, as the specification requires of engines that
          continue; a value whose typed columns are all null is used as it is stored.
        Returns values with the metadata of the row in the final layout, with metadata of only their names in the
        drafts.
        Raises `ConflictError`; `MalformedVariantError` for bytes that are not a Variant, and for metadata that is null.

        >>> row = {"metadata": bytes.fromhex("110000"), "value": None, "typed_value": 34}
        >>> final.reconstruct(row, ShreddingSchema.from_ddl("bigint"))
        <Variant int64: 34>
        """
        check_choice("on_conflict", on_conflict, get_args(OnConflict))
        _, node = self._plan(schema)
        if row is None:
            return None
        group: Any = row
        metadata, value = group.get("metadata"), group.get("value")
        residual = None
        if metadata is None and (self.layout == "final" or (self.layout == "draft-paths" and value is not None)):
            raise MalformedVariantError("the row has a value, but its metadata is null", reason="null-metadata")
        check_version(metadata)
        if self.layout == "draft-paths":
            residual, group = None if value is None else Variant(metadata, value), row.get("paths")
        tree = _Assembly(self.layout, metadata, on_conflict).value(group, node, residual, ROOT)
        tree = VARIANT_NULL if tree is None else tree
        return joined(metadata, tree) if self.layout == "final" else Variant.from_python(tree)

    def _plan(self, schema: ShreddingSchema | pa.StructType) -> tuple[pa.StructType, StorageNode]:
        storage = storage_type(schema.type_tree(), self.layout) if isinstance(schema, ShreddingSchema) else schema
        return storage, read_storage(storage, self.layout)


final, draft_paths, draft_object = RowLayout("final"), RowLayout("draft-paths"), RowLayout("draft-object")


def _shred(variant: Variant | None, node: StorageNode, layout: Layout, path: VariantPath) -> tuple[Any, Tree | None]:
    """Return the columns of a value, and the residual that the first draft stores in the ``value`` of the row."""
    if layout == "final":
        names = ["value"] if node.is_leaf and node.typed is None else ["value", "typed_value"]
    else:
        parts = (node.has_value, node.fields is not None, node.element is not None, node.typed is not None)
        columns = ("untyped_value", "object", "array", "typed_value")
        names = [name for name, exists in zip(columns, parts, strict=True) if exists]
    if variant is None:  # a missing field
        return (dict.fromkeys(names) if layout == "final" else None), None
    kind = variant.type
    shape = "typed_value"
    shredded: Any = None
    residual: Tree | None = variant
    if node.fields is not None and kind == VariantType.OBJECT:
        fields: dict[str, Tree] = {**fields_of_object(variant)}
        shape, shredded = "object", {}
        for name, child in node.fields.items():
            field = fields.pop(name, None)
            assert field is None or isinstance(field, Variant)
            shredded[name], part = _shred(field, child, layout, path / name)
            if part is not None:
                fields[name] = part
        residual = fields or None
    elif node.element is not None and kind == VariantType.ARRAY:
        pairs = [_shred(element, node.element, layout, path / WILDCARD) for element in elements_of_array(variant)]
        shape, shredded = "array", [columns for columns, _ in pairs]
        has_residual = any(part is not None for _, part in pairs)
        residual = [VARIANT_NULL if part is None else part for _, part in pairs] if has_residual else None
    elif node.typed is not None and (slot := slot_of(variant, node.typed)) is not None:
        shredded, residual = slot, None
    if layout == "draft-paths" and (not node.is_leaf or (residual is not None and not node.has_value)):
        return shredded, residual
    if layout == "final":
        value = None if residual is None else joined(variant.metadata, residual).value
        return {name: value if name == "value" else shredded for name in names}, None
    if residual is not None and not node.has_value:
        raise SchemaError(
            f"cannot store a value of type {kind}: the storage type has no untyped_value for values of other types",
            reason="no-untyped-value",
            path=str(path),
        )
    untyped = None if residual is None else Variant.from_python(residual).to_bytes()
    row = {"untyped_value": untyped, shape: shredded}
    return {name: row.get(name) for name in names}, None


class _Assembly(NamedTuple):
    """Puts the value of one row together."""

    layout: Layout
    metadata: Any
    on_conflict: OnConflict

    def meet(self, reason: str, path: VariantPath) -> None:
        """Raise `ConflictError`, or return if the typed columns are to be used."""
        if self.on_conflict == "error":
            raise ConflictError(
                f"{_MESSAGES[reason]}: use on_conflict='typed' to read the typed columns", reason=reason, path=str(path)
            )

    def value(self, group: Any, node: StorageNode, residual: Variant | None, path: VariantPath) -> Tree | None:
        """Return the value of a group; `residual` is the part of it in the ``value`` of a row of the first draft."""
        if group is None:  # a missing field; in the final layout not allowed, but written by some writers
            return residual
        is_final, stored, shapes = self.layout == "final", None, {}
        if self.layout == "draft-paths" and not node.is_leaf:
            stored, shapes = residual, {"object" if node.element is None else "array": group}
        elif is_final:
            if group.get("value") is not None:
                stored = Variant(self.metadata, group["value"])
            shape = "typed_value" if node.is_leaf else "object" if node.element is None else "array"
            if group.get("typed_value") is not None:
                shapes = {shape: group["typed_value"]}
            elif stored is not None and stored.type == shape:
                self.meet(f"{shape}-in-value", path)
        else:
            if group.get("untyped_value") is not None:
                stored = Variant.from_bytes(group["untyped_value"])
            names = ("object", "array", "typed_value")
            shapes = {name: group[name] for name in names if group.get(name) is not None}
            # A null in the residual is the placeholder of an element that is stored here.
            if residual is not None and residual.type != VariantType.NULL and (shapes or stored is not None):
                self.meet("both-set", path)
        if not shapes:
            return residual if stored is None else stored
        if len(shapes) > 1:
            self.meet("both-set", path)
        shape, columns = next(iter(shapes.items()))
        if shape == "object":
            return self._object(columns, node, stored, path)
        if stored is not None and (self.layout != "draft-paths" or shape == "typed_value"):
            self.meet("both-set", path)
        if shape == "array":
            return self._array(columns, node, stored if self.layout == "draft-paths" else None, path)
        return tree_of_slot(columns, node.typed)

    def _object(self, groups: Any, node: StorageNode, stored: Variant | None, path: VariantPath) -> Tree:
        assert node.fields is not None
        fields: dict[str, Tree] = {}
        if stored is not None and stored.type != VariantType.OBJECT:
            self.meet("non-object-value", path)
        elif stored is not None:
            fields = {**fields_of_object(stored)}
        for name, child in node.fields.items():
            part = fields.pop(name, None)
            assert part is None or isinstance(part, Variant)
            if part is not None and self.layout == "final":
                self.meet("shredded-field-in-value", path / name)
            residual = part if self.layout == "draft-paths" else None
            field = self.value(groups.get(name), child, residual, path / name)
            if self.layout == "draft-object" and part is not None:
                if field is None:  # "if object[field] is null": the residual has the field, or nothing has it
                    field = part
                else:
                    self.meet("shredded-field-in-value", path / name)
            if field is not None:
                fields[name] = field
        return fields

    def _array(self, groups: Any, node: StorageNode, stored: Variant | None, path: VariantPath) -> Tree:
        assert node.element is not None
        residuals: list[Variant | None] = [None] * len(groups)
        if stored is not None and stored.type != VariantType.NULL:
            if stored.type == VariantType.ARRAY and len(stored) == len(groups):
                residuals = [None if element.type == VariantType.NULL else element for element in stored]
            else:
                self.meet("array-size", path)
        elements = [self.value(group, node.element, residuals[at], path / at) for at, group in enumerate(groups)]
        return [VARIANT_NULL if element is None else element for element in elements]


def array_of_rows(rows: Sequence[Any], storage: pa.DataType) -> pa.Array:
    """Return an Arrow array of rows whose slots have their Python form."""
    return pa.array(rows, number_form(storage)).cast(storage)


def rows_of_array(array: pa.Array) -> list[Any]:
    """Return the rows of an Arrow array as Python objects.

    Raises `MalformedVariantError` if a string is not UTF-8 (``bad-utf8``).
    """
    if isinstance(array, pa.ChunkedArray):
        return [row for chunk in array.chunks for row in rows_of_array(chunk)]
    array = in_form(array, plain_form(array.type))
    try:
        return array.cast(number_form(array.type)).to_pylist()
    except UnicodeDecodeError as error:
        raise MalformedVariantError(
            f"a shredded string is not UTF-8: {error.object[:20]!r}", reason="bad-utf8"
        ) from None


_ROWS: dict[Layout, RowLayout] = {
    "unshredded": final, "final": final, "draft-paths": draft_paths, "draft-object": draft_object
}  # fmt: skip


def variants_of_storage(storage: pa.StructArray, on_conflict: OnConflict = "error") -> list[Variant | None]:
    """Return the values of a storage array of any layout; None is SQL NULL.

    Raises the errors of the layout's ``reconstruct``, with the row.
    """
    layout = _ROWS[detect_layout(storage.type)]
    values = []
    for number, row in enumerate(rows_of_array(storage)):
        try:
            values.append(layout.reconstruct(row, storage.type, on_conflict))
        except VariantError as error:
            error.at(row=number)
            raise
    return values


def shredded_storage(
    variants: Iterable[Variant | None], schema: ShreddingSchema | pa.StructType, layout: Layout
) -> pa.StructArray:
    """Return the storage of values (None is SQL NULL) in a layout; ``"unshredded"`` ignores the schema.

    Raises the errors of the layout's ``shred_value``, with the row.
    """
    storage = storage_type(schema.type_tree(), layout) if isinstance(schema, ShreddingSchema) else schema
    rows = []
    for number, variant in enumerate(variants):
        try:
            rows.append(_ROWS[layout].shred_value(variant, storage))
        except VariantError as error:
            error.at(row=number)
            raise
    return array_of_rows(rows, storage)
