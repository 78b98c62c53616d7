"""`ColumnarVariant`: rows of Variants in the columnar encoding.

Owns the array: its rows, selecting rows, and concatenation. `column` owns the values, `encoding` the conversion from
and to Variant bytes, and `element` extraction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.variant import Variant
from parquet_variant.files.vortex.columnar.column import Int64s, PathColumn
from parquet_variant.files.vortex.columnar.encoding import decode_columnar, encode_columnar
from parquet_variant.path import WILDCARD, VariantPath
from parquet_variant.support.fork_safety import cached_property
from parquet_variant.types import VariantType


@dataclass(frozen=True, eq=False)
class ColumnarVariant:
    """A column of Variants in the columnar encoding, converted from and to other encodings without loss.

    Parameters
    ----------
    size
        Number of rows.
    column
        The values of the rows that are not SQL NULL.
    rows
        The numbers of these rows; None for all rows.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> array = pv.parse_json(['{"a": 1, "b": "x"}', None, '{"a": [true, null]}', "null"])
    >>> columnar = ColumnarVariant.from_variant(array)
    >>> columnar
    <ColumnarVariant, 4 rows, 4 paths>
    >>> for path, types in columnar.paths():
    ...     print(path, {str(kind): count for kind, count in types.items()})
    $ {'null': 1, 'object': 2}
    $['a'] {'int8': 1, 'array': 1}
    $['a'][*] {'null': 1, 'boolean': 1}
    $['b'] {'string': 1}
    >>> columnar.to_variant().equals(array)
    True
    """

    size: int
    column: PathColumn
    rows: Int64s | None = None

    @classmethod
    def from_variant(cls, array: VariantArray) -> ColumnarVariant:
        """Encode an array of any layout.

        Raises
        ------
        MalformedVariantError
            For values that are not valid Variants.
        """
        parts = [cls(*part) for part in encode_columnar(array)]
        return parts[0] if len(parts) == 1 else cls.concat(parts)

    def to_variant(self) -> VariantArray:
        """Return the values as an unshredded array."""
        return decode_columnar(self.size, self.column, self.present)

    @classmethod
    def concat(cls, arrays: Iterable[ColumnarVariant]) -> ColumnarVariant:
        """Concatenate arrays."""
        parts = list(arrays)
        size = sum(len(part) for part in parts)
        starts = np.cumsum([0, *(len(part) for part in parts)])
        rows = [part.present + start for part, start in zip(parts, starts, strict=False)]
        all_rows = np.concatenate([np.zeros(0, np.int64), *rows])
        column = PathColumn.concat([part.column for part in parts]) if parts else PathColumn(0)
        return cls(size, column, None if len(all_rows) == size else all_rows)

    @property
    def present(self) -> Int64s:
        """The rows that are not SQL NULL."""
        return np.arange(self.size) if self.rows is None else self.rows

    @property
    def null_count(self) -> int:
        """Number of SQL NULL rows."""
        return self.size - self.column.size

    def __len__(self) -> int:
        return self.size

    def take(self, indices: Any) -> ColumnarVariant:
        """Return the rows at indices, in that order."""
        positions = np.asarray(indices, np.int64)
        if self.rows is None:
            return ColumnarVariant(len(positions), self.column.take(positions))
        rank = np.full(self.size, -1, np.int64)
        rank[self.rows] = np.arange(len(self.rows))
        inner = rank[positions]
        rows = np.flatnonzero(inner >= 0)
        return ColumnarVariant(
            len(positions), self.column.take(inner[rows]), None if len(rows) == len(positions) else rows
        )

    def __getitem__(self, index: int | slice) -> Variant | ColumnarVariant | None:
        if isinstance(index, slice):
            return self.take(np.arange(*index.indices(self.size)))
        row = index + self.size if index < 0 else index
        if not 0 <= row < self.size:
            raise IndexError(f"row {index} is out of bounds for a column with {self.size} rows")
        return self.take([row]).to_variant()[0]

    def paths(self) -> Iterator[tuple[VariantPath, dict[VariantType, int]]]:
        """Yield each path with its number of values by type, parents first."""
        stack = [(VariantPath(), self.column)]
        while stack:
            path, column = stack.pop()
            counts: dict[VariantType, int] = {}
            children: list[tuple[VariantPath, PathColumn]] = []
            for child in sorted(column.children, key=lambda child: child.code):
                counts[child.type] = counts.get(child.type, 0) + child.size
                if child.elements is not None and child.elements.size:
                    children.append((path / WILDCARD, child.elements))
                children.extend((path / name, field.column) for name, field in child.fields.items())
            yield path, counts
            stack.extend(reversed(children))

    @cached_property
    def nbytes(self) -> int:
        """Number of bytes in the buffers."""
        total, stack = 0 if self.rows is None else self.rows.nbytes, [self.column]
        while stack:
            column = stack.pop()
            total += 0 if column.types is None else column.types.nbytes
            for child in column.children:
                total += 0 if child.values is None else child.values.nbytes
                if child.elements is not None and child.offsets is not None:
                    total += child.offsets.nbytes
                    stack.append(child.elements)
                for field in child.fields.values():
                    total += 0 if field.positions is None else field.positions.nbytes
                    stack.append(field.column)
        return total

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return self.to_variant().__arrow_c_array__(requested_schema)

    def __repr__(self) -> str:
        return f"<ColumnarVariant, {self.size} rows, {sum(1 for _ in self.paths())} paths>"
