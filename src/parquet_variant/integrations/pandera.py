"""`Contract.to_pandera`: a contract as a schema of pandera for data frames of the paths.

Owns which rules pandera can express over columns; the others are listed in the schema.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from numbers import Number
from typing import Any, SupportsFloat

from parquet_variant.inference.contracts.contract import Contract
from parquet_variant.inference.contracts.path_rules import PathRules
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.types.path import outer_paths

# The Python values that data frames hold for the types of contracts.
_PYTHON: dict[str, Any] = {
    "string": str, "boolean": bool, "number": (Number, Decimal), "date": dt.date, "timestamp": dt.datetime,
    "timestamp_ntz": dt.datetime, "binary": bytes,
}  # fmt: skip
# Types and rules of paths that have no column.
_CONTAINERS = frozenset(["array", "object", "min_items", "max_items", "extra_fields"])
_LOST = ("presence", "format")


def to_pandera(contract: Contract) -> Any:
    """Return a contract as a ``DataFrameSchema`` of pandera; see `Contract.to_pandera`."""
    with optional_libraries("Contract.to_pandera"):
        import pandera.pandas as pandera

    columns, lost = {}, []
    for path, rules in contract.paths.items():
        of_container = not _CONTAINERS.isdisjoint([*rules.types, *rules.active])
        if path.has_wildcard or not path.segments or of_container:
            lost += [f"{path.shorthand} {name}" for name in rules.active]
            continue
        lost += [f"{path.shorthand} {rule}" for rule in rules.active if rule in _LOST]
        is_everywhere = all(contract.rules(outer).required for outer in [*outer_paths(path), path])
        columns[path.shorthand.removeprefix("$.")] = pandera.Column(
            checks=[pandera.Check(check, name=rule, element_wise=True) for rule, check in _checks(rules)],
            nullable=rules.allows_null or not is_everywhere,
            description=rules.description,
        )
    return pandera.DataFrameSchema(
        columns, name=contract.name, description=contract.description, metadata={"not expressed": lost}
    )


def _checks(rules: PathRules) -> Iterator[tuple[str, Callable[[Any], bool]]]:
    """Yield the checks of single values, by the name of their rule."""
    if rules.types and "null" not in rules.types:
        yield "type", lambda value: any(_is_of_type(value, kind) for kind in rules.types)
    if (values := rules.values) is not None:
        yield "values", lambda value: value in values
    if (pattern := rules.pattern) is not None:
        yield "pattern", lambda value: not isinstance(value, str) or re.search(pattern, value) is not None
    for name, of_kind, measure in (("", (Number, Decimal, dt.date), None), ("_length", str, len)):
        low, high = getattr(rules, f"min{name}"), getattr(rules, f"max{name}")
        if low is not None or high is not None:
            yield f"bounds{name}", partial(_is_within, low, high, of_kind, measure)


def _is_of_type(value: Any, kind: str) -> bool:
    if kind == "integer":
        return not isinstance(value, bool) and isinstance(value, SupportsFloat) and float(value).is_integer()
    return isinstance(value, _PYTHON.get(kind, object)) and (kind != "number" or not isinstance(value, bool))


def _is_within(low: Any, high: Any, of_kind: Any, measure: Callable[[Any], Any] | None, value: Any) -> bool:
    if not isinstance(value, of_kind) or isinstance(value, bool):
        return True
    size = value if measure is None else measure(value)
    return (low is None or size >= low) and (high is None or size <= high)
