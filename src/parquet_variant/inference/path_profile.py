"""`PathProfile`: the figures of one path of a `Profile`, by name.

Owns the meaning of the columns of the table. `path_table` has the table, `policies` draw conclusions.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from parquet_variant.inference import path_table as columns
from parquet_variant.inference.path_table import PathTable
from parquet_variant.types import TYPE_OF_ID, PrimitiveId, VariantType
from parquet_variant.types.path import WILDCARD, VariantPath, Wildcard

_ARRAY, _OBJECT = 21, 22
# Types of `PathProfile.string_form` -> columns of the counts table.
FORM_COLUMNS = {
    "date": columns.DATES,
    "timestamp": columns.TIMESTAMPS,
    "timestamp_ntz": columns.LOCAL_TIMESTAMPS,
    "uuid": columns.UUIDS,
    "number": columns.NUMBERS,
}
_TYPE_OF_KIND = [TYPE_OF_ID[PrimitiveId(kind)].type for kind in range(_ARRAY)] + [VariantType.ARRAY, VariantType.OBJECT]


@dataclass(frozen=True, eq=False)
class ProfiledPaths:
    """The figures by path of a profile, as documented in `Profile`."""

    table: PathTable
    is_scaled: npt.NDArray[np.bool_]
    rows: int
    null_rows: int


class PathProfile:
    """The figures of one path.

    >>> import parquet_variant as pv
    >>> profile = pv.Profile.of_array(pv.parse_json(['{"a": 1}', '{"a": 2.75}', '{"a": null}', '{}']))
    >>> a = profile.get("$.a")
    >>> a.count, a.share, a.null_count, a.whole_digits, a.scale
    (3, 0.75, 1, 1, 2)
    >>> a.types
    {<VariantType.NULL: 'null'>: 1, <VariantType.INT8: 'int8'>: 1, <VariantType.DECIMAL4: 'decimal4'>: 1}
    """

    __slots__ = ("_index", "_paths", "_table", "_types", "segment")

    segment: str | Wildcard | None
    """The last segment of the path; None for the root."""

    def __init__(self, paths: ProfiledPaths, index: int) -> None:
        self._paths, self._table, self._index = paths, paths.table, index
        self._types: dict[VariantType, int] | None = None
        self.segment = None
        if index:
            key = self._table.key_list[index]
            self.segment = WILDCARD if key is None else key.decode("utf-8", "replace")

    def _count(self, column: int) -> int:
        return int(self._table.counts[self._index, column])

    # -- where it is

    @property
    def path(self) -> VariantPath:
        """The path; ``[*]`` stands for the elements of an array."""
        segments: list[str | Wildcard] = []
        ancestor: PathProfile | None = self
        while ancestor is not None and ancestor.segment is not None:
            segments.append(ancestor.segment)
            ancestor = ancestor.parent
        return VariantPath(tuple(reversed(segments)))

    @property
    def parent(self) -> PathProfile | None:
        """The path without its last segment; None for the root."""
        number = int(self._table.parent_index[self._index])
        return PathProfile(self._paths, number) if number >= 0 else None

    @property
    def children(self) -> list[PathProfile]:
        """The fields in byte order, followed by the elements."""
        return [*self.fields, *filter(None, [self.element])]

    @property
    def fields(self) -> list[PathProfile]:
        """The fields of its objects that the profile kept, in byte order."""
        return [PathProfile(self._paths, number) for number in self._table.fields_of(self._index).tolist()]

    def largest_fields(self, limit: int, *, by_rows: bool) -> list[PathProfile]:
        """Return at most `limit` of the fields, in byte order.

        `by_rows`: if true, those in most rows, and of these those with most bytes; otherwise those with most values.
        Objects with tens of thousands of keys are common enough that the other fields must not cost a Python object.
        """
        numbers = self._table.fields_of(self._index)
        if len(numbers) > limit:
            counts = self._table.value_counts[numbers]
            first = self._table.counts[numbers, columns.ROWS] if by_rows else counts
            second = self._table.inner_bytes[numbers] if by_rows else counts
            order = np.lexsort((np.arange(len(numbers)), -second, -first))
            numbers = numbers[np.sort(order[:limit])]
        return [PathProfile(self._paths, number) for number in numbers.tolist()]

    @property
    def element(self) -> PathProfile | None:
        """The elements of its arrays; None without elements."""
        order, bounds, stops = self._table.children
        stop = stops[self._index]
        return PathProfile(self._paths, int(order[stop])) if stop < bounds[self._index + 1] else None

    def field(self, name: str) -> PathProfile | None:
        """Return a field by name, or None."""
        if "\ufffd" in name:  # perhaps a key that is not UTF-8
            return next((field for field in self.fields if field.segment == name), None)
        fields, keys, key = (
            self._table.fields_of(self._index),
            self._table.key_list,
            name.encode("utf-8", "surrogatepass"),
        )
        at = bisect_left(fields, key, key=keys.__getitem__)  # type: ignore[arg-type]
        found = at < len(fields) and keys[fields[at]] == key
        return PathProfile(self._paths, int(fields[at])) if found else None

    # -- how often

    @property
    def count(self) -> int:
        """Values at this path; may exceed the rows if the path goes through an array."""
        return int(self._table.value_counts[self._index])

    @property
    def rows(self) -> int:
        """Rows with at least one value at this path."""
        return self._count(columns.ROWS)

    @property
    def places(self) -> int:
        """Places for a value: rows that are not NULL, objects above a field, elements of the arrays above."""
        parent = self.parent
        if parent is None:
            return self._paths.rows - self._paths.null_rows
        return parent.element_count if self.segment is WILDCARD else parent.kind_count(_OBJECT)

    @property
    def share(self) -> float:
        """`count` as a share of `places`."""
        return self.count / self.places if self.places else 0.0

    @property
    def row_share(self) -> float:
        """`rows` as a share of all rows, NULL included."""
        return self.rows / self._paths.rows if self._paths.rows else 0.0

    # -- of what types

    def kind_count(self, kind: int) -> int:
        """Return the number of values of a tape kind: a `PrimitiveId`, 21 for arrays, 22 for objects."""
        return int(self._table.kinds[self._index, kind])

    @property
    def types(self) -> dict[VariantType, int]:
        """Number of values by type, without types that do not occur."""
        if self._types is None:
            counts: dict[VariantType, int] = {}
            kinds = self._table.kinds[self._index]
            for kind in kinds.nonzero()[0].tolist():
                counts[_TYPE_OF_KIND[kind]] = counts.get(_TYPE_OF_KIND[kind], 0) + int(kinds[kind])
            self._types = counts
        return self._types

    @property
    def null_count(self) -> int:
        """Number of Variant nulls."""
        return self.kind_count(PrimitiveId.NULL)

    @property
    def string_form(self) -> str | None:
        """The type in whose form all values are written, as strings: ``"timestamp"``, …; None if there is none.

        Variant nulls are ignored. Always None for paths whose figures are scaled up from the sample.
        """
        strings = self.kind_count(PrimitiveId.STRING)
        if not strings or strings != self.count - self.null_count or self._paths.is_scaled[self._index]:
            return None
        forms = (name for name, column in FORM_COLUMNS.items() if self._count(column) == strings)
        return next(forms, None)

    # -- numbers

    @property
    def int_range(self) -> tuple[int, int] | None:
        """Smallest and largest integer; None without integers."""
        low, high = self._count(columns.INT_MIN), self._count(columns.INT_MAX)
        return (low, high) if low <= high else None

    @property
    def decimals(self) -> npt.NDArray[np.int64]:
        """Numbers of decimals by digits before the point, 0 to 38, and by scale, in two rows."""
        table, hashed = self._table, self._table.hashes[self._index]
        row = int(np.searchsorted(table.digit_hashes, hashed))
        has_decimals = row < len(table.digit_hashes) and table.digit_hashes[row] == hashed
        return (table.digits[row] if has_decimals else np.zeros(2 * columns.DIGIT_BUCKETS, np.int64)).reshape(2, -1)

    @property
    def whole_digits(self) -> int:
        """Maximum number of digits before the point of any decimal or integer."""
        return max(int(self.decimals[0].nonzero()[0].max(initial=0)), self.int_digits)

    @property
    def int_digits(self) -> int:
        """Maximum number of digits of any integer; 0 without integers."""
        return max((len(str(abs(bound))) for bound in self.int_range), default=0) if self.int_range else 0

    @property
    def scale(self) -> int:
        """Largest scale of any decimal."""
        return int(self.decimals[1].nonzero()[0].max(initial=0))

    # -- lengths

    @property
    def string_bytes(self) -> int:
        """Bytes of all strings and binaries together."""
        return self._count(columns.STRING_BYTES)

    @property
    def string_range(self) -> tuple[int, int] | None:
        """Bytes of the shortest and of the longest string or binary; None without any."""
        low, high = self._count(columns.STRING_MIN), self._count(columns.STRING_MAX)
        return (low, high) if low <= high else None

    @property
    def array_range(self) -> tuple[int, int] | None:
        """Elements of the shortest and of the longest array; None without arrays."""
        low, high = self._count(columns.ARRAY_MIN), self._count(columns.ARRAY_MAX)
        return (low, high) if low <= high else None

    @property
    def key_count(self) -> int:
        """Number of distinct keys of its objects; an estimate if the profile omitted some."""
        fields = self._table.fields_of(self._index)
        if self.field_count == int(self._table.value_counts[fields].sum()):
            return len(fields)
        # The kept keys are those with the smallest hashes; their largest hash shows how dense the hashes are.
        fields = fields[~self._paths.is_scaled[fields]]
        if not len(fields):
            return self.field_count
        largest = int(self._table.hashes[fields].max())
        return max(len(fields) + 1, int((len(fields) - 1) * 2**63 / (largest + 1)))

    @property
    def element_count(self) -> int:
        """Number of elements of all arrays."""
        return self._count(columns.ELEMENTS)

    @property
    def field_count(self) -> int:
        """Number of fields of all objects, including those that the profile omitted."""
        return self._count(columns.FIELDS)

    @property
    def scalar_bytes(self) -> int:
        """Encoded bytes of the values, without nested values."""
        return int(self._table.scalar_bytes[self._index])

    @property
    def entry_bytes(self) -> int:
        """Bytes of each value in its container: the field id and offset, or the offset of an element."""
        return (
            columns.ELEMENT_BYTES
            if self.segment is WILDCARD
            else columns.FIELD_BYTES
            if self.segment is not None
            else 0
        )

    @property
    def encoded_bytes(self) -> int:
        """Estimate of the encoded bytes of the values in their containers, with nested values, ids and offsets."""
        return int(self._table.inner_bytes[self._index]) + self.count * self.entry_bytes

    # -- variety

    @property
    def distinct(self) -> int:
        """Estimate of the number of distinct scalars, without nulls and booleans: 13 % standard error.

        For strings over 24 bytes, the length and 24 bytes at the start, in the middle and at the end count.
        """
        return int(self._table.distinct_counts[self._index])

    def __repr__(self) -> str:
        types = ", ".join(f"{name}: {count}" for name, count in self.types.items())
        return f"<PathProfile {self.path} count={self.count} {{{types}}}>"
