"""`Profile`: a summary of values by path, for schema inference; and `PathProfile`, the figures of one path by name.

Owns the mergeable summary, its creation from a tape or an array, and the meaning of its figures.
`kernels.tapes.profile` counts, `path_table` merges tables, limits the number of paths and finds frequent ones among too
many in a sample of rows, and `policies` draw conclusions.
"""

from __future__ import annotations

import json
import zlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, field
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from parquet_variant.errors import VariantError
from parquet_variant.inference import path_table
from parquet_variant.kernels.arrow_buffers import Int64s
from parquet_variant.support.records import Record, cached_property
from parquet_variant.types import TYPE_OF_ID, PrimitiveId, VariantType
from parquet_variant.types.path import WILDCARD, VariantPath, Wildcard

if TYPE_CHECKING:
    from parquet_variant.arrays.variant_array import VariantArray
    from parquet_variant.kernels.tapes.tape import Tape

# Number of strings by path, type, and whether they were typed (see `typed_strings`).
StringCounts: TypeAlias = "Counter[tuple[str, str, bool]]"
MAX_PATHS = 1 << 17
_ARRAY, _OBJECT = 21, 22
_TYPE_OF_KIND = [TYPE_OF_ID[PrimitiveId(kind)].type for kind in range(_ARRAY)] + [VariantType.ARRAY, VariantType.OBJECT]
# The types of `PathProfile.string_form`, in the order of `string_forms.FORM`, and their columns of the counts table.
FORMS = ("date", "timestamp", "timestamp_ntz", "uuid", "number", "boolean", "bigint")
FORM_COLUMNS = {form: path_table.DATES + number for number, form in enumerate(FORMS)}
# Number of rows of an array that are unshredded at a time.
_ROWS = 1 << 16
_VERSION = 3
# The fields of a profile that are numbers.
_NUMBERS = ("rows", "null_rows", "values", "max_paths")


class Profile(Record, eq=False):
    """A summary of values by path.

    The profiles of parts of the data merge into the profile of all data, exactly and in any order: every figure is a
    sum, an extreme, or a sketch that merges without loss. Above ``max_paths`` distinct paths, each object keeps only
    some of its keys: those with the smallest hashes, so that the choice depends only on the data, and those that are
    frequent in a sample of the rows, which is also chosen by hash. The figures of the latter are scaled up from the
    sample. Omitted values are counted in `overflow_values`.

    Parameters
    ----------
    rows
        Rows, SQL NULL included.
    null_rows
        SQL NULL rows.
    values
        Number of values at any path, omitted ones included.
    capped
        The figures by path, complete for every path that it has.
    sample
        The figures by path of some rows.
    path_sketch
        The smallest hashes of the distinct paths, to estimate their number.
    max_paths
        Number of distinct paths up to which all are kept.
    typed_strings
        Counts of strings that were to be typed while the rows were read.
    data
        The data that the rows are a sample of.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> profile = Profile.of_array(pv.parse_json(['{"a": 1}', '{"a": "x", "b": []}', None]))
    >>> profile.rows, profile.null_rows
    (3, 1)
    >>> {str(path_profile.path): path_profile.count for path_profile in profile}
    {'$': 2, "$['a']": 2, "$['b']": 1}
    >>> profile.merge(Profile()) == profile
    True
    """

    rows: int = 0
    null_rows: int = 0
    values: int = 0
    capped: path_table.PathTable = field(default_factory=path_table.no_paths, repr=False)
    sample: path_table.RowSample = field(default_factory=path_table.RowSample, repr=False)
    path_sketch: Int64s = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)
    max_paths: int = MAX_PATHS
    typed_strings: StringCounts = field(default_factory=Counter)
    data: path_table.ProfiledData = field(default_factory=path_table.ProfiledData)

    @classmethod
    def of_tape(cls, tape: Tape, *, max_paths: int = MAX_PATHS) -> Profile:
        """Profile the rows of a tape."""
        paths = path_table.TapePaths.of(tape)
        table = path_table.table_of_rows(tape, paths, np.arange(tape.rows))
        null = int(np.count_nonzero(tape.row_start[1:] == tape.row_start[:-1]))
        sketch = path_table.merged_sketch(table.hashes)
        sample = path_table.RowSample.of_tape(tape, paths, table, max_paths)
        return cls(
            rows=tape.rows, null_rows=null, values=len(tape.nodes), capped=path_table.capped(table, sketch, max_paths),
            sample=sample, path_sketch=sketch, max_paths=max_paths,
        )  # fmt: skip

    @classmethod
    def of_array(cls, array: VariantArray, *, max_paths: int = MAX_PATHS, threads: int | None = 1) -> Profile:
        """Profile an array, shredded or not.

        A typed column keeps neither the width of integers nor trailing zeros of decimals, so the profiles of the
        shredded and the unshredded form of the same values may differ in these.

        Raises
        ------
        MalformedVariantError
            For malformed bytes, with row and byte offset.
        """
        from parquet_variant.arrays.tapes import array_tapes
        from parquet_variant.io.parallel import in_order, thread_count

        def of_rows(start: int) -> list[Profile]:
            return [cls.of_tape(tape, max_paths=max_paths) for tape in array_tapes(array[start : start + _ROWS], start)]

        parts = in_order(of_rows, range(0, len(array), _ROWS), thread_count(threads))
        return reduce(cls.merge, chain.from_iterable(parts), cls(max_paths=max_paths))

    def merge(self, other: Profile) -> Profile:
        """Return the profile of both parts of the data; associative and commutative."""
        if not self.rows:
            return other
        if not other.rows:
            return self
        sketch = path_table.merged_sketch(self.path_sketch, other.path_sketch)
        limit = min(self.max_paths, other.max_paths)
        return Profile(
            rows=self.rows + other.rows,
            null_rows=self.null_rows + other.null_rows,
            values=self.values + other.values,
            capped=path_table.capped(path_table.merged_table(self.capped, other.capped), sketch, limit),
            sample=self.sample.merge(other.sample, limit),
            path_sketch=sketch,
            max_paths=limit,
            typed_strings=self.typed_strings + other.typed_strings,
            data=self.data.merge(self.rows, other.data, other.rows),
        )

    @cached_property
    def _paths(self) -> tuple[path_table.PathTable, npt.NDArray[np.bool_]]:
        if self.values == int(self.capped.kinds.sum()):
            return self.capped, np.zeros(len(self.capped.hashes), bool)
        return path_table.with_frequent_paths(self.capped, self.sample)

    @property
    def table(self) -> path_table.PathTable:
        """The figures by path."""
        return self._paths[0]

    @property
    def is_scaled(self) -> npt.NDArray[np.bool_]:
        """True for paths of `table` whose figures are scaled up from the sample."""
        return self._paths[1]

    @property
    def path_count(self) -> int:
        """Number of distinct paths, omitted ones included; an estimate (3 %) above 1,024."""
        return max(path_table.distinct_paths(self.path_sketch), len(self.table.hashes))

    @property
    def overflow_values(self) -> int:
        """Number of values at omitted paths; an estimate if there are any."""
        return max(self.values - int(self.table.kinds.sum()), 0)

    @property
    def root(self) -> PathProfile | None:
        """The figures of the top-level values; None without values."""
        return PathProfile(self, 0) if len(self.table.hashes) else None

    def __iter__(self) -> Iterator[PathProfile]:
        """Yield every path, parents before children, fields in byte order and followed by elements."""
        stack = [self.root]
        while stack:
            if (path_profile := stack.pop()) is not None:
                yield path_profile
                stack += [path_profile.element, *reversed(path_profile.fields)]

    def __len__(self) -> int:
        return len(self.table.hashes)

    def get(self, path: str | VariantPath) -> PathProfile | None:
        """Return the figures of a path, or None if it has no values; ``[*]`` and any index stand for every element."""
        path_profile = self.root
        for segment in VariantPath.parse(path).segments:
            if path_profile is None:
                return None
            path_profile = path_profile.field(segment) if isinstance(segment, str) else path_profile.element
        return path_profile

    def to_json(self) -> str:
        """Return text that `from_json` reads; the tables in it are compressed."""
        return json.dumps(
            {
                "version": _VERSION,
                **{name: getattr(self, name) for name in _NUMBERS},
                "path_sketch": path_table.pack_array(self.path_sketch),
                "table": self.capped.packed(),
                "sample": [self.sample.level, *map(path_table.PathTable.packed, self.sample.tables)],
                "typed_strings": [[*rule, count] for rule, count in self.typed_strings.items()],
                "data": asdict(self.data),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> Profile:
        """Read the text of `to_json`.

        Raises
        ------
        VariantError
            For other text (``bad-profile``).
        """
        try:
            document = json.loads(text)
            if document["version"] != _VERSION:
                raise ValueError(f"version {document['version']}")
            level, *tables = document["sample"]
            return cls(
                **{name: document[name] for name in _NUMBERS},
                capped=path_table.PathTable.unpacked(document["table"]),
                sample=path_table.RowSample(level, tuple(map(path_table.PathTable.unpacked, tables))),
                path_sketch=path_table.unpack_array(document["path_sketch"]),
                typed_strings=Counter({tuple(rule): count for *rule, count in document.get("typed_strings", ())}),
                data=path_table.ProfiledData(**document.get("data", {})),
            )
        except (ValueError, KeyError, TypeError, zlib.error) as error:
            raise VariantError(f"the text is not a profile of Profile.to_json: {error}", reason="bad-profile") from None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Profile):
            return NotImplemented
        return (
            all(getattr(self, name) == getattr(other, name) for name in _NUMBERS[:3])
            and np.array_equal(self.path_sketch, other.path_sketch)
            and self.capped.equals(other.capped)
            and self.sample.equals(other.sample)
            and self.typed_strings == other.typed_strings
        )

    __hash__ = None  # type: ignore[assignment]


class _Figure:
    """A figure of `PathProfile`: an array of `PathTable` by path, or a column of one."""

    def __init__(self, name: str, column: int | None = None) -> None:
        self.name, self.column = name, column

    def __get__(self, path: PathProfile, owner: object = None) -> int:
        row = getattr(path._table, self.name)[path._index]
        return int(row if self.column is None else row[self.column])


class _Range:
    """The smallest and the largest figure in two columns of the counts table; None without values."""

    def __init__(self, lowest: int, highest: int) -> None:
        self.columns = [lowest, highest]

    def __get__(self, path: PathProfile, owner: object = None) -> tuple[int, int] | None:
        low, high = path._table.counts[path._index, self.columns].tolist()
        return (low, high) if low <= high else None


class PathProfile:
    """The figures of one path of a profile, by its number.

    >>> import parquet_variant as pv
    >>> profile = pv.Profile.of_array(pv.parse_json(['{"a": 1}', '{"a": 2.75}', '{"a": null}', '{}']))
    >>> a = profile.get("$.a")
    >>> a.count, a.share, a.null_count, a.whole_digits, a.scale
    (3, 0.75, 1, 1, 2)
    >>> a.types
    {<VariantType.NULL: 'null'>: 1, <VariantType.INT8: 'int8'>: 1, <VariantType.DECIMAL4: 'decimal4'>: 1}
    """

    __slots__ = ("_index", "_profile", "_table", "_types", "segment")

    segment: str | Wildcard | None
    """The last segment of the path; None for the root."""
    count = _Figure("value_counts")
    """Values at this path; may exceed the rows if the path goes through an array."""
    null_count = _Figure("kinds", PrimitiveId.NULL)
    """Number of Variant nulls."""
    scalar_bytes = _Figure("scalar_bytes")
    """Encoded bytes of the values, without nested values."""
    distinct = _Figure("distinct_counts")
    """Estimate of the number of distinct scalars, without nulls and booleans: 13 % standard error.

    For strings over 24 bytes, the length and 24 bytes at the start, in the middle and at the end count.
    """
    rows = _Figure("counts", path_table.ROWS)
    """Rows with at least one value at this path."""
    string_bytes = _Figure("counts", path_table.STRING_BYTES)
    """Bytes of all strings and binaries together."""
    element_count = _Figure("counts", path_table.ELEMENTS)
    """Number of elements of all arrays."""
    field_count = _Figure("counts", path_table.FIELDS)
    """Number of fields of all objects, including those that the profile omitted."""
    int_range = _Range(path_table.INT_MIN, path_table.INT_MAX)
    """Smallest and largest integer."""
    string_range = _Range(path_table.STRING_MIN, path_table.STRING_MAX)
    """Bytes of the shortest and of the longest string or binary."""
    array_range = _Range(path_table.ARRAY_MIN, path_table.ARRAY_MAX)
    """Elements of the shortest and of the longest array."""

    def __init__(self, profile: Profile, index: int) -> None:
        self._profile, self._table, self._index = profile, profile.table, index
        self._types: dict[VariantType, int] | None = None
        self.segment = None
        if index:
            key = self._table.key_list[index]
            self.segment = WILDCARD if key is None else key.decode("utf-8", "replace")

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
        return PathProfile(self._profile, number) if number >= 0 else None

    @property
    def fields(self) -> list[PathProfile]:
        """The fields of its objects that the profile kept, in byte order."""
        return [PathProfile(self._profile, number) for number in self._table.fields_of(self._index).tolist()]

    def largest_fields(self, limit: int, *, by_rows: bool) -> list[PathProfile]:
        """Return at most `limit` of the fields, in byte order.

        `by_rows`: if true, those in most rows, and of these those with most bytes; otherwise those with most values.
        Objects with tens of thousands of keys are common enough that the other fields must not cost a Python object.
        """
        numbers = self._table.fields_of(self._index)
        if len(numbers) > limit:
            counts = self._table.value_counts[numbers]
            first = self._table.counts[numbers, path_table.ROWS] if by_rows else counts
            second = self._table.inner_bytes[numbers] if by_rows else counts
            order = np.lexsort((np.arange(len(numbers)), -second, -first))
            numbers = numbers[np.sort(order[:limit])]
        return [PathProfile(self._profile, number) for number in numbers.tolist()]

    @property
    def element(self) -> PathProfile | None:
        """The elements of its arrays; None without elements."""
        order, bounds, stops = self._table.children
        stop = stops[self._index]
        return PathProfile(self._profile, int(order[stop])) if stop < bounds[self._index + 1] else None

    def field(self, name: str) -> PathProfile | None:
        """Return a field by name, or None."""
        if "\ufffd" in name:  # perhaps a key that is not UTF-8
            return next((field for field in self.fields if field.segment == name), None)
        fields, keys = self._table.fields_of(self._index), self._table.key_list
        key = name.encode("utf-8", "surrogatepass")
        at = bisect_left(fields, key, key=keys.__getitem__)  # type: ignore[arg-type]
        is_key = at < len(fields) and keys[fields[at]] == key
        return PathProfile(self._profile, int(fields[at])) if is_key else None

    @property
    def places(self) -> int:
        """Places for a value: rows that are not NULL, objects above a field, elements of the arrays above."""
        parent = self.parent
        if parent is None:
            return self._profile.rows - self._profile.null_rows
        return parent.element_count if self.segment is WILDCARD else parent.kind_count(_OBJECT)

    @property
    def share(self) -> float:
        """`count` as a share of `places`."""
        return self.count / self.places if self.places else 0.0

    @property
    def row_share(self) -> float:
        """`rows` as a share of all rows, NULL included."""
        return self.rows / self._profile.rows if self._profile.rows else 0.0

    def kind_count(self, kind: int) -> int:
        """Return the number of values of a tape kind: a `PrimitiveId`, 21 for arrays, 22 for objects."""
        return int(self._table.kinds[self._index, kind])

    @property
    def types(self) -> dict[VariantType, int]:
        """Number of values by type, without types that do not occur."""
        if self._types is None:
            self._types, kinds = {}, self._table.kinds[self._index]
            for kind in kinds.nonzero()[0].tolist():
                self._types[_TYPE_OF_KIND[kind]] = self._types.get(_TYPE_OF_KIND[kind], 0) + int(kinds[kind])
        return self._types

    @property
    def string_form(self) -> str | None:
        """The type in whose form all values are written, as strings: ``"timestamp"``, …; None if there is none.

        Variant nulls are ignored. Always None for paths whose figures are scaled up from the sample.
        """
        strings = self.kind_count(PrimitiveId.STRING)
        if not strings or strings != self.count - self.null_count or self._profile.is_scaled[self._index]:
            return None
        forms = (name for name, column in FORM_COLUMNS.items() if self._table.counts[self._index, column] == strings)
        return next(forms, None)

    @property
    def decimals(self) -> npt.NDArray[np.int64]:
        """Numbers of decimals by digits before the point, 0 to 38, and by scale, in two rows."""
        table, hashed = self._table, self._table.hashes[self._index]
        row = int(np.searchsorted(table.digit_hashes, hashed))
        has_decimals = row < len(table.digit_hashes) and table.digit_hashes[row] == hashed
        return (table.digits[row] if has_decimals else np.zeros(2 * path_table.DIGIT_BUCKETS, np.int64)).reshape(2, -1)

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

    @property
    def key_count(self) -> int:
        """Number of distinct keys of its objects; an estimate if the profile omitted some."""
        fields = self._table.fields_of(self._index)
        if self.field_count == int(self._table.value_counts[fields].sum()):
            return len(fields)
        # The kept keys are those with the smallest hashes; their largest hash shows how dense the hashes are.
        fields = fields[~self._profile.is_scaled[fields]]
        if not len(fields):
            return self.field_count
        largest = int(self._table.hashes[fields].max())
        return max(len(fields) + 1, int((len(fields) - 1) * 2**63 / (largest + 1)))

    @property
    def entry_bytes(self) -> int:
        """Bytes of each value in its container: the field id and offset, or the offset of an element."""
        if self.segment is None:
            return 0
        return path_table.ELEMENT_BYTES if self.segment is WILDCARD else path_table.FIELD_BYTES

    @property
    def encoded_bytes(self) -> int:
        """Estimate of the encoded bytes of the values in their containers, with nested values, ids and offsets."""
        return int(self._table.inner_bytes[self._index]) + self.count * self.entry_bytes

    def __repr__(self) -> str:
        types = ", ".join(f"{name}: {count}" for name, count in self.types.items())
        return f"<PathProfile {self.path} count={self.count} {{{types}}}>"
