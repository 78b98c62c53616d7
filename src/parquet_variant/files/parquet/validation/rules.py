"""The rules of the specification for the schema and the values of a Variant column in a Parquet file.

Owns the record of violations and its limit; the rules for groups, repetition, types and the annotation; the INVALID
rows of the table of objects, the rules for arrays and primitives, the rule that every name is in the dictionary, and
UTF-8.
Leaves the bytes of a value to `encoding.validate`.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.parts import columns_of, metadata_array, stored_columns, valid_mask
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.metadata import decode_metadata
from parquet_variant.encoding.validate import Fault, find_faults
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import SchemaError, VariantError
from parquet_variant.files.parquet.format.columns import VariantColumn
from parquet_variant.files.parquet.format.facts import leaf_type
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.kernels.arrow_buffers import from_numpy, to_numpy
from parquet_variant.layouts.reference.rows import variants_of_storage
from parquet_variant.layouts.storage_shape import is_list
from parquet_variant.layouts.storages import check_fields
from parquet_variant.ops.columns.slot_casts import faulty_slots
from parquet_variant.ops.validate import sound_rows
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record, Report
from parquet_variant.types import BasicType
from parquet_variant.types.forms import list_elements
from parquet_variant.types.path import WILDCARD, VariantPath


class Violation(Report, Record):
    """A violation of the specification in a file.

    Parameters
    ----------
    file
        The path of the file.
    column
        The name of the Variant column.
    reason
        A stable code, such as ``"conflict"``.
    message
        A description in one line.
    path
        The normalized path in the Variant; None for the whole column.
    row_group, row
        The 0-based row group, and the 0-based row counted from the start of the file; None if all are affected.
    """

    file: str
    column: str
    reason: str
    message: str
    path: str | None = None
    row_group: int | None = None
    row: int | None = None

    def __str__(self) -> str:
        named = (("row group", self.row_group), ("row", self.row), ("path", self.path))
        where = ", ".join(f"{name} {value}" for name, value in named if value is not None)
        return f"{self.file}: {self.column}{f' ({where})' if where else ''}: {self.message} [{self.reason}]"


class Violations(Record, frozen=False):
    """Violations of a column of a file, up to a limit; further violations are only counted."""

    file: str
    column: str
    limit: int
    row_group: int | None = None
    first_row: int = 0
    count: int = 0
    violations: list[Violation] = field(default_factory=list)

    def add(self, reason: str, message: str, path: object = None, row: int | None = None) -> None:
        """Add a violation; `row` counts from the start of the row group."""
        self.count += 1
        if len(self.violations) < self.limit:
            at = None if row is None else self.first_row + row
            where = None if path is None else str(path)
            self.violations.append(Violation(self.file, self.column, reason, message, where, self.row_group, at))

    def merge(self, part: Violations) -> None:
        """Add the violations of a row group."""
        self.violations += part.violations[: self.limit - len(self.violations)]
        self.count += part.count


# Digits of decimals.
_MAX_DIGITS = {"INT32": 9, "INT64": 18, "BYTE_ARRAY": 38}


def check_schema(column: VariantColumn, violations: Violations, *, unannotated: bool) -> bool:
    """Record every rule that the column's schema breaks, and return whether its values can be checked."""
    node = column.node
    if column.layout not in ("unshredded", "final"):
        violations.add(
            "draft-layout",
            f"the column has the layout of an older draft ({column.layout}); bring it over with `variant rewrite`",
        )
        try:
            check_fields(node, column.layout)
        except SchemaError as error:
            violations.add(error.reason, error.message, VariantPath.parse(error.path or "$"))
            return False
        for part in node.walk():  # typed columns and lists that the specification of the draft does not allow
            if part.is_leaf and part.name in ("metadata", "value", "untyped_value"):
                if part.spelled() != "BYTE_ARRAY":
                    violations.add("not-binary", f"{part.dotted} is {part.spelled()}, not plain binary")
            elif part.is_leaf and leaf_type(part) is None:
                violations.add("unsupported-type", f"{part.dotted} is {part.spelled()}, which has no Variant type")
            elif part.is_list and part.logical != "LIST":
                violations.add("not-a-list", f"{part.dotted} has the shape of a list but no LIST annotation")
        return True
    if not (node.annotated or (unannotated and column.layout == "unshredded")):
        violations.add("no-annotation", "the group has no VARIANT annotation; `variant annotate` adds it")
    if (metadata := node.child("metadata")) is None:
        violations.add("no-metadata", "the group has no metadata column")
    elif metadata.spelled() != "BYTE_ARRAY":
        violations.add("not-binary", f"metadata is {metadata.spelled()}, not plain binary")
    elif metadata.repetition != "required":
        violations.add("metadata-not-required", f"metadata is {metadata.repetition}: it must be required")
    if column.layout == "unshredded" and (value := node.child("value")) and value.repetition != "required":
        violations.add("value-not-required", f"value is {value.repetition}: without typed_value it must be required")
    _check_group(node, VariantPath(), violations, top=True)
    fatal = {"duplicate-field", "no-metadata", "not-binary", "no-value", "unsupported-type", "not-a-group", "repeated"}
    return not any(violation.reason in fatal for violation in violations.violations)


def _check_group(group: SchemaNode, path: VariantPath, violations: Violations, *, top: bool = False) -> None:
    """Record the rules that a group of value and typed_value breaks, and the groups inside it."""
    value, typed = group.child("value"), group.child("typed_value")
    if value is None and typed is None:
        violations.add("no-value", f"{group.dotted} has neither value nor typed_value", None if top else path)
    names = [child.name for child in group.children]
    for name in sorted(set(names)):
        if names.count(name) > 1:
            violations.add("duplicate-field", f"{group.dotted} has the field {name} twice", path)
        if name not in ("value", "typed_value") and not name.startswith("_") and not (top and name == "metadata"):
            violations.add("unknown-field", f"{group.dotted} has the unknown field {name}", path)
    if value is not None:
        if value.spelled() != "BYTE_ARRAY":
            violations.add("not-binary", f"{value.dotted} is {value.spelled()}, not plain binary", path)
        if not (top and typed is None):
            _check_repetition(value, "optional", "value-not-optional", path, violations)
    if typed is None:
        return
    _check_repetition(typed, "optional", "typed-value-not-optional", path, violations)
    if typed.is_list:
        if typed.logical != "LIST":
            violations.add("not-a-list", f"{typed.dotted} has the shape of a list but no LIST annotation", path)
        repeated = typed.children[0] if len(typed.children) == 1 else None
        element = repeated.children[0] if repeated is not None and len(repeated.children) == 1 else None
        if repeated is None or element is None or repeated.repetition != "repeated" or element.leaf is not None:
            violations.add("not-a-list", f"{typed.dotted} is not a three-level list of groups", path)
            return
        _check_repetition(element, "required", "element-not-required", path, violations)
        _check_group(element, path / WILDCARD, violations)
    elif typed.leaf is None:
        names = [child.name for child in typed.children]
        for child in typed.children:
            child_path = path / child.name
            if child.leaf is None:
                if names.count(child.name) > 1:
                    violations.add("duplicate-field", f"{typed.dotted} has the field {child.name} twice", child_path)
                _check_repetition(child, "required", "field-not-required", child_path, violations)
                _check_group(child, child_path, violations)
            elif not child.name.startswith("_"):
                message = f"{child.dotted} is a column, not a group of value and typed_value"
                violations.add("not-a-group", message, child_path)
    elif typed.logical.startswith("DECIMAL("):
        precision, scale = (int(number) for number in typed.logical[8:-1].split(", "))
        max_digits = _MAX_DIGITS.get(typed.physical or "", 38)
        if not 1 <= precision <= max_digits or not 0 <= scale <= precision:
            message = f"{typed.dotted} is {typed.spelled()}: its precision is limited to {max_digits}"
            violations.add("unsupported-type", message, path)
    elif leaf_type(typed) is None:
        message = f"{typed.dotted} is {typed.spelled()}, which is not a shredded value type"
        violations.add("unsupported-type", message, path)


def _check_repetition(node: SchemaNode, required: str, reason: str, path: VariantPath, violations: Violations) -> None:
    if node.repetition != required:
        violations.add(reason, f"{node.dotted} is {node.repetition}: it must be {required}", path)


Rows = npt.NDArray[np.int64]
_EMPTY_OBJECT_METADATA = b"\x01\x00\x00"
_SMALL_BYTES, _MAX_CACHED = 32, 100_000


def check_values(storage: pa.StructArray, violations: Violations) -> None:
    """Report violations by the values of a row group, unshredded or shredded in the final layout."""
    keep = np.flatnonzero(valid_mask(storage))
    columns = {name: _take(array, keep, len(storage)) for name, array in stored_columns(storage).items()}
    metadata = columns["metadata"]
    for row in keep[~valid_mask(metadata)]:
        violations.add("no-metadata", "metadata is null", None, int(row))
    if not pa.types.is_dictionary(metadata.type):
        metadata = metadata.dictionary_encode()
    codes = np.full(len(storage), -1, np.int64)
    codes[keep] = to_numpy(metadata.indices.fill_null(-1))
    check = _Check(violations, codes, [bytes(value) for value in metadata.dictionary.to_pylist()])
    check.group(columns, keep, VariantPath(), required=True, top=True)


def check_draft_values(storage: pa.StructArray, violations: Violations) -> None:
    """Report violations by the values of a row group in a layout of the drafts: rows that no value can be made of."""
    try:
        values = VariantArray(storage).to_unshredded().storage
        if pc.and_(values.is_valid(), from_numpy(~sound_rows(values))).true_count == 0:
            return
    except VariantError:
        pass  # found again, row by row
    for row in range(len(storage)):
        try:
            (variant,) = variants_of_storage(storage[row : row + 1])
        except VariantError as error:
            violations.add(error.reason, error.message, error.path, row)
            continue
        for fault in () if variant is None else find_faults(variant.metadata, variant.value):
            violations.add(fault.reason, f"byte {fault.offset}: {fault.message}", None, row)


def _take(array: pa.Array, keep: npt.NDArray[np.intp], rows: int) -> pa.Array:
    return array if len(keep) == rows else array.take(pa.array(keep, pa.int64()))


def _names(metadata: bytes) -> frozenset[str] | None:
    try:
        return frozenset(decode_metadata(metadata))
    except VariantError:
        return None


class _Check:
    def __init__(self, violations: Violations, codes: Rows, metadata: list[bytes]) -> None:
        self.violations, self.codes, self.metadata = violations, codes, metadata
        self.small: dict[tuple[int, bytes], list[Fault]] = {}  # Faults of small values, which often repeat.
        self.names: list[frozenset[str] | None] = [_names(value) for value in metadata]
        # Faults of metadata are reported at the first row that has them.
        self.faulty = {code for code, value in enumerate(metadata) if find_faults(value, b"\x00")}
        for code in sorted(self.faulty):
            row = int(np.flatnonzero(codes == code)[0]) if (codes == code).any() else None
            for fault in find_faults(metadata[code], b"\x00"):
                violations.add(fault.reason, f"metadata, byte {fault.offset}: {fault.message}", None, row)

    def group(
        self, fields: dict[str, pa.Array], rows: Rows, path: VariantPath, *, required: bool, top: bool = False
    ) -> npt.NDArray[np.bool_]:
        """Check the entries of a group; return the mask of entries that have a value."""
        no_rows = np.zeros(len(rows), bool)
        value, typed = fields.get("value"), fields.get("typed_value")
        has_value = no_rows if value is None else valid_mask(value)
        has_typed = no_rows if typed is None else valid_mask(typed)
        if required:
            where = "a row" if top else "an element"
            for row in rows[~has_value & ~has_typed]:
                self.violations.add("missing", f"value and typed_value are both null in {where}", path, int(row))
        names: frozenset[str] = frozenset()
        kind = "variant" if typed is None else "primitive"
        if typed is not None and pa.types.is_struct(typed.type):
            kind = "object"
            names = frozenset(field.name for field in typed.type if pa.types.is_struct(field.type))
        elif typed is not None and is_list(typed.type) and pa.types.is_struct(typed.type.value_type):
            kind = "array"
        places = np.flatnonzero(has_value)
        sound = has_value if value is None else self._sound_values(value, places, rows)
        if kind in ("variant", "primitive"):  # a valid value breaks another rule only if there is a typed value too
            places = places[~sound[places] | has_typed[places]]
        for place in places:
            assert value is not None
            data, row = value[int(place)].as_py(), int(rows[place])
            self._check_residual(data, row, path, kind, names, sound[place], has_typed[place])
        if typed is not None:
            self._check_typed(typed, rows, has_typed, path, kind)
        return has_value | has_typed

    def _check_residual(
        self, data: bytes, row: int, path: VariantPath, kind: str, names: frozenset[str], sound: bool, has_typed: bool
    ) -> None:
        code = int(self.codes[row])
        metadata = self.metadata[code] if code >= 0 else _EMPTY_OBJECT_METADATA
        faults: list[Fault] | None = [] if sound else self.small.get((code, data))
        if faults is None:
            faults = [fault for fault in find_faults(metadata, data) if fault.part == "value"]
            if len(data) <= _SMALL_BYTES and len(self.small) < _MAX_CACHED:
                self.small[code, data] = faults
        for fault in faults:
            self.violations.add(fault.reason, f"value, byte {fault.offset}: {fault.message}", path, row)
        basic = BasicType(data[0] & 3) if data else BasicType.PRIMITIVE
        if has_typed and (kind != "object" or basic is not BasicType.OBJECT):
            self.violations.add("conflict", "value and typed_value are set, but value is not an object", path, row)
        elif kind == "array" and basic is BasicType.ARRAY:
            self.violations.add("array-not-typed", "value is an array although typed_value is a list", path, row)
        elif kind == "object" and basic is BasicType.OBJECT and not has_typed:
            self.violations.add("object-not-typed", "value is an object although typed_value is null", path, row)
        if kind == "object" and basic is BasicType.OBJECT and not faults and code not in self.faulty:
            for name in sorted(names.intersection(Variant(metadata, data).keys())):
                self.violations.add("field-in-both", f"the shredded field {name!r} is also in value", path, row)

    def _sound_values(self, value: pa.Array, places: npt.NDArray[np.intp], rows: Rows) -> npt.NDArray[np.bool_]:
        """Return which entries of a column the kernel finds valid; False where it cannot decide."""
        present = np.zeros(len(value), np.bool_)
        codes = self.codes[rows]
        present[places] = codes[places] >= 0
        if not present.any():
            return present
        dictionary = pa.array(self.metadata, pa.binary())
        metadata = metadata_array(pa.array(np.maximum(codes, 0), pa.int32()), dictionary)
        storage = pa.StructArray.from_arrays([metadata, value], ["metadata", "value"], mask=pa.array(~present))
        return present & sound_rows(storage)

    def _check_typed(
        self, typed: pa.Array, rows: Rows, has_typed: npt.NDArray[np.bool_], path: VariantPath, kind: str
    ) -> None:
        if kind == "object":
            keep = np.flatnonzero(has_typed)
            for name, child in stored_columns(typed).items():
                if not pa.types.is_struct(child.type):
                    continue
                fields = {key: _take(array, keep, len(typed)) for key, array in columns_of(child).items()}
                present = rows[keep][self.group(fields, rows[keep], path / name, required=False)]
                for code in np.unique(self.codes[present]):
                    names = self.names[code] if code >= 0 else None
                    if names is not None and name not in names:
                        row = int(present[self.codes[present] == code][0])
                        message = f"the field {name!r} is not in the row's dictionary"
                        self.violations.add("name-not-in-metadata", message, path / name, row)
        elif kind == "array":
            lengths = to_numpy(pc.list_value_length(typed).fill_null(0))
            elements = list_elements(typed)
            self.group(columns_of(elements), np.repeat(rows, lengths), path / WILDCARD, required=True)
        else:
            for index, reason, message in faulty_slots(typed):
                self.violations.add(reason, message, path, int(rows[index]))
