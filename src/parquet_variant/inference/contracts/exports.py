"""`Contract.to_pandera` and `Contract.to_soda`: a contract as checks of columns, one for each path.

Owns which rules pandera and Soda can express over columns; the others are listed in the result.
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
from parquet_variant.inference.contracts.yaml_format import dump_yaml
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
# Rules that the check ``invalid`` of Soda takes; its words for them begin with ``valid_``.
_SODA = {"values", "pattern", "min", "max", "min_length", "max_length"}


def to_pandera(contract: Contract) -> Any:
    """Return a contract as a ``DataFrameSchema`` of pandera; see `Contract.to_pandera`."""
    with optional_libraries("Contract.to_pandera"):
        import pandera.pandas as pandera

    places, lost = _columns(contract)
    columns = {
        name: pandera.Column(
            checks=[pandera.Check(check, name=rule, element_wise=True) for rule, check in _checks(rules)],
            nullable=nullable,
            description=rules.description,
        )
        for name, (rules, nullable) in places.items()
    }
    return pandera.DataFrameSchema(
        columns, name=contract.name, description=contract.description, metadata={"not expressed": lost}
    )


def to_soda(contract: Contract) -> str:
    """Return a contract as a data contract of Soda; see `Contract.to_soda`."""
    (places, lost), columns = _columns(contract), list[Any]()
    for name, (rules, nullable) in places.items():
        lost += [f"$.{name} type"] if rules.types else []
        valid: dict[str, Any] = {}
        for rule in sorted(_SODA & rules.rules().keys()):
            value = getattr(rules, rule)
            kinds = {type(item) for item in (value if rule == "values" else [value])}
            if kinds != {str} and not kinds <= {int, Decimal}:
                lost.append(f"$.{name} {rule}")
            elif rule == "pattern":
                valid["valid_format"] = {"name": rule, "regex": value}
            else:
                valid[f"valid_{rule}"] = value
        checks = [{"missing": None}] * (not nullable) + [{"invalid": valid}] * bool(valid)
        columns += [{"name": name, "checks": checks}] * bool(checks)
    dataset = contract.name or "t"
    document = {"dataset": dataset if "/" in dataset else f"duckdb/main/{dataset}", "columns": columns}
    return "".join(f"# not expressed: {rule}\n" for rule in lost) + dump_yaml(document)


def _columns(contract: Contract) -> tuple[dict[str, tuple[PathRules, bool]], list[str]]:
    """Return the rules of each path that has a column, and whether it may be null; and the rules that are lost."""
    columns, lost = dict[str, tuple[PathRules, bool]](), list[str]()
    for path, rules in contract.paths.items():
        of_container = not _CONTAINERS.isdisjoint([*rules.types, *rules.active])
        has_column = path.segments and not path.has_wildcard and not of_container
        lost += [f"{path.shorthand} {rule}" for rule in rules.active if rule in _LOST or not has_column]
        if has_column:
            is_everywhere = all(contract.rules(outer).required for outer in [*outer_paths(path), path])
            columns[path.shorthand.removeprefix("$.")] = rules, rules.allows_null or not is_everywhere
    return columns, lost


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
