"""Predictions of what a schema does to data, and their comparison with a file.

Owns predictions by path, and the comparison. `costs` counts values, `Table.inspect` reports files.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from parquet_variant.inference.costs import typed_count
from parquet_variant.inference.profile import Profile
from parquet_variant.inference.profile_path import PathProfile
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.path import WILDCARD, VariantPath


@dataclass(frozen=True, slots=True)
class Prediction:
    """The expected values at a path that is a leaf of the schema.

    Parameters
    ----------
    path
        The path.
    values
        Number of values, Variant nulls included.
    typed
        Number of values that the typed column will hold; 0 for a column without a type.
    """

    path: VariantPath
    values: int
    typed: int

    @property
    def typed_share(self) -> float | None:
        """`typed` as a share of `values`; None without values."""
        return self.typed / self.values if self.values else None


class Actual(Protocol):
    """The contents of a file at a path, such as a `PathReport` of `Table.inspect`."""

    path: str  # The normalized path.
    # Values in the typed column, and in the path's ``value`` column; None if unknown.
    typed: int | None
    residual: int | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Predicted and actual typed share at one path.

    Parameters
    ----------
    path
        The path.
    predicted, actual
        Share of the values that are typed; None without values, or if the file has no statistics.
    """

    path: VariantPath
    predicted: float | None
    actual: float | None

    @property
    def difference(self) -> float | None:
        """The actual share minus the predicted one; None if either is unknown."""
        return None if self.predicted is None or self.actual is None else self.actual - self.predicted


def predict(profile: Profile, schema: ShreddingSchema) -> tuple[Prediction, ...]:
    """Predict how many values each leaf of a schema will hold, for data with a profile.

    >>> import parquet_variant as pv
    >>> profile = Profile.of_array(pv.parse_json(['{"a": 1}', '{"a": "x"}', '{"b": null}']))
    >>> for prediction in predict(profile, ShreddingSchema.from_ddl("a bigint, b date")):
    ...     print(prediction.path, prediction.values, prediction.typed)
    $['a'] 2 1
    $['b'] 1 0
    """
    predictions: list[Prediction] = []

    def walk(path_profile: PathProfile | None, node: ShreddingSchema, path: VariantPath) -> None:
        if not node.children():
            values = path_profile.count if path_profile is not None else 0
            predictions.append(
                Prediction(path, values, typed_count(path_profile, node) if path_profile is not None else 0)
            )
        for name, child in node.fields:
            walk(path_profile.field(name) if path_profile is not None else None, child, path / name)
        if node.element is not None:
            walk(path_profile.element if path_profile is not None else None, node.element, path / WILDCARD)

    walk(profile.root, schema, VariantPath())
    return tuple(predictions)


def compare(predictions: Iterable[Prediction], actuals: Iterable[Actual]) -> tuple[Comparison, ...]:
    """Compare predictions with the contents of files by path; a path that no file has is compared with None.

    >>> import tempfile, parquet_variant as pv
    >>> rows = pv.parse_json(['{"a": 1}', '{"a": "x"}'])
    >>> schema = ShreddingSchema.from_ddl("a bigint")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.write(f"{folder}/a.parquet", rows, schema=schema)
    ...     report = pv.open(folder).inspect()
    >>> compare(predict(Profile.of_array(rows), schema), report.columns[0].paths)
    (Comparison(path=VariantPath("$['a']"), predicted=0.5, actual=0.5),)
    """
    by_path = {actual.path: actual for actual in actuals}
    comparisons = []
    for prediction in predictions:
        actual = by_path.get(str(prediction.path))
        share = None
        if actual is not None and actual.typed is not None and actual.residual is not None:
            values = actual.typed + actual.residual
            share = actual.typed / values if values else None
        comparisons.append(Comparison(prediction.path, prediction.typed_share, share))
    return tuple(comparisons)
