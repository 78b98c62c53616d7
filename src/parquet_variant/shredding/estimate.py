"""What a schema will do to data, said before it is written, and compared with what a file then holds.

Owns predictions by path, how they are kept beside the data, and the comparison. Leaves the figures to `costs`,
and what a file holds to `parquet.inspect`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from parquet_variant.errors import VariantError
from parquet_variant.path import WILDCARD, VariantPath
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.costs import typed_count
from parquet_variant.shredding.profile import Profile
from parquet_variant.shredding.profile_path import PathProfile


@dataclass(frozen=True, slots=True)
class Prediction:
    """What is expected at a path that is a leaf of the schema.

    Parameters
    ----------
    path
        The path.
    values
        Values there, Variant nulls included.
    typed
        How many of them the typed column will hold; 0 for a column without a type.
    """

    path: VariantPath
    values: int
    typed: int

    @property
    def typed_share(self) -> float | None:
        """`typed` as a share of `values`; None if there are none."""
        return self.typed / self.values if self.values else None


class Actual(Protocol):
    """What a file holds at a path: a `PathReport` of `parquet.inspect` is one."""

    path: str  # The normalized path.
    # Values in the typed column, and in the path's ``value`` column; None if unknown.
    typed: int | None
    residual: int | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Expected and found, at one path.

    Parameters
    ----------
    path
        The path.
    predicted, actual
        Share of the values that are typed; None if there are no values, or the file does not tell.
    """

    path: VariantPath
    predicted: float | None
    actual: float | None

    @property
    def difference(self) -> float | None:
        """How much more was typed than predicted; None if either is unknown."""
        return None if self.predicted is None or self.actual is None else self.actual - self.predicted


def predict(profile: Profile, schema: ShreddingSchema) -> tuple[Prediction, ...]:
    """How many values each leaf of a schema will hold, for data of a profile.

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
    """Set predictions beside what files hold, path by path; paths that no file has are compared with None.

    >>> import tempfile, parquet_variant as pv
    >>> rows = pv.parse_json(['{"a": 1}', '{"a": "x"}'])
    >>> schema = ShreddingSchema.from_ddl("a bigint")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.parquet.write(f"{folder}/a.parquet", rows, schema=schema)
    ...     report = pv.parquet.inspect(folder)
    >>> compare(predict(Profile.of_array(rows), schema), report.columns[0].paths)
    (Comparison(path=VariantPath("$['a']"), predicted=0.5, actual=0.5),)
    """
    by_path = {each.path: each for each in actuals}
    comparisons = []
    for prediction in predictions:
        actual = by_path.get(str(prediction.path))
        share = None
        if actual is not None and actual.typed is not None and actual.residual is not None:
            values = actual.typed + actual.residual
            share = actual.typed / values if values else None
        comparisons.append(Comparison(prediction.path, prediction.typed_share, share))
    return tuple(comparisons)


def predictions_to_json(predictions: Iterable[Prediction]) -> str:
    r"""Text that can be kept in a file's metadata until `inspect` asks for it.

    >>> predictions_to_json([Prediction(VariantPath(("a",)), 4, 3)])
    '{"$[\'a\']": [4, 3]}'
    """
    return json.dumps({str(each.path): [each.values, each.typed] for each in predictions}, ensure_ascii=False)


def predictions_from_json(text: str) -> tuple[Prediction, ...]:
    """Predictions that `predictions_to_json` wrote. Raises `VariantError` for other text (``bad-predictions``)."""
    try:
        return tuple(
            Prediction(VariantPath.parse(path), int(values), int(typed))
            for path, (values, typed) in json.loads(text).items()
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise VariantError(f"these are no predictions: {error}", reason="bad-predictions") from None
