"""`SparkPolicy`: what Apache Spark would shred, for comparison.

Owns Spark's rules and constants. Source: ``InferVariantShreddingSchema`` of Spark 4.2 and the settings
``spark.sql.variant.shredding.maxSchemaWidth`` (300) and ``maxSchemaDepth`` (50); the Parquet writer passes it the first
4,096 rows or 64 MB of a file.

Spark's rules: a field needs a tenth of the rows; inside an array, its occurrences are compared with a tenth of the
*rows*. A single value of another type makes the path a column without a type; only integers and decimals are
compatible. Integers are ``bigint``, decimals have 18 or 38 digits. The width counts every ``value`` and ``typed_value``
column, in the order of names.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from parquet_variant.inference.columns import ColumnType, best_column
from parquet_variant.inference.policies.decision import InferenceResult, check_constants, result_of
from parquet_variant.inference.profile import PathProfile, Profile
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.storage_shape import MAX_PRECISION, decimal
from parquet_variant.support.records import Record
from parquet_variant.types.path import WILDCARD, VariantPath

if TYPE_CHECKING:
    from parquet_variant.arrays.variant_array import VariantArray

# Types that Spark 4.2 infers.
_TYPES = frozenset({
    "boolean", "bigint", "double", "float", "string", "binary", "date", "timestamp", "timestamp_ntz", "array", "object",
})  # fmt: skip
_LONG_DIGITS = 18


class SparkPolicy(Record):
    """Shred what Apache Spark would shred.

    For an array, the policy uses the first rows, as Spark does. A profile has no order of rows, so all of it is used.

    Parameters
    ----------
    rows, sample_bytes
        Size of the start of an array that is used.
    min_share
        Minimum share of the rows that have a field.
    max_width
        Maximum number of columns of the file, ``value`` columns included.
    max_depth
        Maximum depth.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> from parquet_variant.inference.infer import infer
    >>> rows = ['{"task": %d, "id": 1}' % n for n in range(72)] + ['{"task": "none", "id": 2}'] * 28
    >>> infer(pv.parse_json(rows), SparkPolicy()).schema.to_ddl()
    'id bigint, task variant'
    """

    name: ClassVar[str] = "spark"  # What `infer` takes.
    rows: int = 4096
    sample_bytes: int = 64 << 20
    min_share: float = 0.1
    max_width: int = 300
    max_depth: int = 50

    def __post_init__(self) -> None:
        check_constants(self)

    def choose_rows(self, array: VariantArray) -> InferenceResult:
        """Return the schema for the first rows of an array, and the reasons."""
        from parquet_variant.arrays.parts import binary_parts, metadata_parts

        first = array[: self.rows]
        storage = first.to_unshredded().storage
        metadata = metadata_parts(storage.field("metadata"))
        lengths = np.array([len(blob) for blob in metadata.dictionary.to_pylist()] + [0], np.int64)
        sizes = np.diff(binary_parts(storage.field("value")).offsets) + lengths[metadata.indices]
        count = int(np.searchsorted(np.cumsum(sizes), self.sample_bytes, "right"))
        return self.choose(Profile.of_array(first[: max(count, 1)]))

    def choose(self, profile: Profile) -> InferenceResult:
        """Return the schema for data with this profile, and the reasons."""
        walk = _Walk(self, profile, self.max_width)
        schema = None if profile.root is None else walk.node(profile.root, VariantPath())
        return result_of(self, profile, schema, walk.reasons)


class _Walk(Record, frozen=False):
    policy: SparkPolicy
    profile: Profile
    columns_left: int
    reasons: dict[VariantPath, str] = field(default_factory=dict)

    @property
    def least_rows(self) -> float:
        return self.policy.min_share * (self.profile.rows - self.profile.null_rows)

    def node(self, path_profile: PathProfile, path: VariantPath) -> ShreddingSchema:
        self.columns_left -= 1  # every node has a `value` column
        column = best_column(path_profile)
        if column is None:
            return self.untyped(path, "only Variant nulls")
        if (reason := self.obstacle(column, path)) is not None:
            return self.untyped(path, reason)
        if column.name == "object":
            return self.object(path_profile, path)
        if column.name == "array":
            self.reasons[path] = "all arrays"
            if path_profile.element is None or path_profile.rows < self.least_rows:
                self.columns_left -= 1
                return ShreddingSchema.array(self.untyped(path / WILDCARD, "in an array that is not frequent enough"))
            return ShreddingSchema.array(self.node(path_profile.element, path / WILDCARD))
        self.columns_left -= 1
        leaf = _spark_type(path_profile, column)
        self.reasons[path] = "more than 38 digits" if leaf.type is None else "all of one type"
        return leaf

    def obstacle(self, column: ColumnType, path: VariantPath) -> str | None:
        if self.columns_left <= 0:
            return f"over the width of {self.policy.max_width} columns"
        if len(path) >= self.policy.max_depth:
            return f"at the depth of {self.policy.max_depth}"
        if any(not name.startswith("number beyond") for name in column.other_types):
            return "types differ"
        if column.name not in _TYPES and not column.name.startswith("decimal"):
            return f"Spark does not infer {column.name}"
        return None

    def object(self, path_profile: PathProfile, path: VariantPath) -> ShreddingSchema:
        self.reasons[path] = "all objects"
        shredded = {}
        for child in path_profile.fields:
            name, times = str(child.segment), child.count if path.has_wildcard else child.rows
            if times < self.least_rows:
                self.reasons[path / name] = f"{times:,} times, under {self.least_rows:,.0f}"
            elif self.columns_left > 0:
                shredded[name] = self.node(child, path / name)
            else:
                self.reasons[path / name] = f"over the width of {self.policy.max_width} columns"
        return ShreddingSchema.object(shredded) if shredded else self.untyped(path, "no field is frequent enough")

    def untyped(self, path: VariantPath, reason: str) -> ShreddingSchema:
        self.reasons[path] = reason
        return ShreddingSchema.variant()


def _spark_type(path_profile: PathProfile, column: ColumnType) -> ShreddingSchema:
    if column.name != "bigint" and not column.name.startswith("decimal"):
        assert column.arrow is not None
        return ShreddingSchema.primitive(column.arrow)
    whole_digits, scale = path_profile.whole_digits, path_profile.scale
    if whole_digits + scale > MAX_PRECISION:
        return ShreddingSchema.variant()
    if scale == 0 and (column.name == "bigint" or whole_digits <= _LONG_DIGITS):
        return ShreddingSchema.from_ddl("bigint")
    precision = _LONG_DIGITS if whole_digits + scale <= _LONG_DIGITS else MAX_PRECISION
    return ShreddingSchema.primitive(decimal(precision, scale))
