"""Records of violations, and the rules of the specification for the schema of a Variant column in a Parquet file.

Owns the record, the limit of a list, and the rules for groups, repetition, types and the annotation. Leaves values to
`validate_values`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from parquet_variant.errors import SchemaError
from parquet_variant.files.parquet.format.columns import VariantColumn
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.files.parquet.format.statistics import leaf_type
from parquet_variant.files.parquet.report_text import Report
from parquet_variant.layouts.layout import check_fields
from parquet_variant.types.path import WILDCARD, VariantPath


@dataclass(frozen=True, slots=True)
class Violation(Report):
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


@dataclass(slots=True)
class Violations:
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

    def __iter__(self) -> Iterator[Violation]:
        return iter(self.violations)


# Spec, "Shredded Value Types", without decimals. INT32 and INT64 may have an annotation of their width.
_ALLOWED = frozenset({
    "BOOLEAN", "INT32 INT(8, true)", "INT32 INT(16, true)", "INT32", "INT32 INT(32, true)", "INT64",
    "INT64 INT(64, true)", "FLOAT", "DOUBLE", "INT32 DATE", "INT64 TIME(false, MICROS)",
    "INT64 TIMESTAMP(true, MICROS)", "INT64 TIMESTAMP(false, MICROS)", "INT64 TIMESTAMP(true, NANOS)",
    "INT64 TIMESTAMP(false, NANOS)", "BYTE_ARRAY", "BYTE_ARRAY STRING", "FIXED_LEN_BYTE_ARRAY(16) UUID",
})  # fmt: skip
_MAX_DIGITS = {"INT32": 9, "INT64": 18, "BYTE_ARRAY": 38}


def check_schema(column: VariantColumn, violations: Violations) -> bool:
    """Record every rule that the column's schema breaks; whether its values can be checked at all."""
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
        _check_draft_types(node, violations)
        return True
    if not node.annotated:
        violations.add("no-annotation", "the group has no VARIANT annotation; `variant rewrite` adds it")
    metadata = node.child("metadata")
    if metadata is None:
        violations.add("no-metadata", "the group has no metadata column")
    elif not _is_binary(metadata):
        violations.add("not-binary", f"metadata is {metadata.spelled()}, not plain binary")
    elif metadata.repetition != "required":
        violations.add("metadata-not-required", f"metadata is {metadata.repetition}: it must be required")
    value, typed = node.child("value"), node.child("typed_value")
    if value is None and typed is None:
        violations.add("no-value", "the group has neither value nor typed_value")
    if value is not None and typed is None and value.repetition != "required":
        violations.add("value-not-required", f"value is {value.repetition}: without typed_value it must be required")
    _check_fields(node, {"metadata", "value", "typed_value"}, VariantPath(), violations)
    _check_pair(node, VariantPath(), violations, top=True)
    fatal = {"duplicate-field", "no-metadata", "not-binary", "no-value", "unsupported-type", "not-a-group", "repeated"}
    return not any(violation.reason in fatal for violation in violations)


def _check_draft_types(group: SchemaNode, violations: Violations) -> None:
    """Record typed columns and lists of a draft that its specification does not allow."""
    for node in group.walk():
        if node.is_leaf and node.name in ("metadata", "value", "untyped_value"):
            if not _is_binary(node):
                violations.add("not-binary", f"{node.dotted} is {node.spelled()}, not plain binary")
        elif node.is_leaf and leaf_type(node) is None:
            violations.add("unsupported-type", f"{node.dotted} is {node.spelled()}, which has no Variant type")
        elif node.is_list and node.logical != "LIST":
            violations.add("not-a-list", f"{node.dotted} has the shape of a list but no LIST annotation")


def _is_binary(node: SchemaNode) -> bool:
    return node.physical == "BYTE_ARRAY" and not node.logical


def _check_fields(group: SchemaNode, allowed: set[str], path: VariantPath, violations: Violations) -> None:
    names = [child.name for child in group.children]
    for name in sorted(set(names)):
        if names.count(name) > 1:
            violations.add("duplicate-field", f"{group.dotted} has the field {name} twice", path)
        if name not in allowed and not name.startswith("_"):
            violations.add("unknown-field", f"{group.dotted} has the unknown field {name}", path)


def _check_pair(group: SchemaNode, path: VariantPath, violations: Violations, *, top: bool = False) -> None:
    value, typed = group.child("value"), group.child("typed_value")
    if value is not None:
        if not _is_binary(value):
            violations.add("not-binary", f"{value.dotted} is {value.spelled()}, not plain binary", path)
        if value.repetition != "optional" and not (top and typed is None):
            violations.add("value-not-optional", f"{value.dotted} is {value.repetition}: it must be optional", path)
    if typed is None:
        return
    if typed.repetition != "optional":
        violations.add("typed-value-not-optional", f"{typed.dotted} is {typed.repetition}: it must be optional", path)
    if typed.leaf is not None:
        _check_type(typed, path, violations)
    elif typed.is_list:
        _check_list(typed, path, violations)
    else:
        _check_object(typed, path, violations)


def _check_type(leaf: SchemaNode, path: VariantPath, violations: Violations) -> None:
    spelled = leaf.spelled()
    if leaf.logical.startswith("DECIMAL("):
        precision, scale = (int(number) for number in leaf.logical[8:-1].split(", "))
        max_digits = _MAX_DIGITS.get(leaf.physical or "", 38)
        if not 1 <= precision <= max_digits or not 0 <= scale <= precision:
            violations.add(
                "unsupported-type", f"{leaf.dotted} is {spelled}: its precision is limited to {max_digits}", path
            )
    elif spelled not in _ALLOWED:
        violations.add("unsupported-type", f"{leaf.dotted} is {spelled}, which is not a shredded value type", path)


def _check_list(typed: SchemaNode, path: VariantPath, violations: Violations) -> None:
    if typed.logical != "LIST":
        violations.add("not-a-list", f"{typed.dotted} has the shape of a list but no LIST annotation", path)
    repeated = typed.children[0] if len(typed.children) == 1 else None
    element = repeated.children[0] if repeated is not None and len(repeated.children) == 1 else None
    if repeated is None or element is None or repeated.repetition != "repeated" or element.leaf is not None:
        violations.add("not-a-list", f"{typed.dotted} is not a three-level list of groups", path)
        return
    if element.repetition != "required":
        violations.add("element-not-required", f"{element.dotted} is {element.repetition}: it must be required", path)
    _check_group(element, path / WILDCARD, violations)


def _check_object(typed: SchemaNode, path: VariantPath, violations: Violations) -> None:
    names = [child.name for child in typed.children]
    for child in typed.children:
        child_path = path / child.name
        if child.leaf is not None:
            if not child.name.startswith("_"):
                violations.add(
                    "not-a-group", f"{child.dotted} is a column, not a group of value and typed_value", child_path
                )
            continue
        if names.count(child.name) > 1:
            violations.add("duplicate-field", f"{typed.dotted} has the field {child.name} twice", child_path)
        if child.repetition != "required":
            violations.add(
                "field-not-required", f"{child.dotted} is {child.repetition}: it must be required", child_path
            )
        _check_group(child, child_path, violations)


def _check_group(group: SchemaNode, path: VariantPath, violations: Violations) -> None:
    if group.child("value") is None and group.child("typed_value") is None:
        violations.add("no-value", f"{group.dotted} has neither value nor typed_value", path)
    _check_fields(group, {"value", "typed_value"}, path, violations)
    _check_pair(group, path, violations)
