"""`Table.contract`: a contract that some data satisfies, as strict as asked for.

Owns which rules a level has, and removing rules that the data breaks: rules are made from a summary, which may be of a
sample, and checked on all rows. Leaves figures to `summaries`, and the evaluation to `check`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, get_args

import pyarrow as pa

from parquet_variant.errors import check_choice
from parquet_variant.inference.contracts.contract import Contract
from parquet_variant.inference.contracts.contract_check import ContractCheck
from parquet_variant.inference.contracts.path_rules import FORMATS, PathRules
from parquet_variant.inference.profile import Profile
from parquet_variant.ops.variant_get import variant_get
from parquet_variant.quality.check import check_data
from parquet_variant.quality.sources import data_of
from parquet_variant.quality.summaries import Summary, summarize
from parquet_variant.quality.value_figures import PathSummary, type_name
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.options import ContractLevel
from parquet_variant.tables.table.table import Table
from parquet_variant.types import VariantType
from parquet_variant.types.path import WILDCARD, VariantPath, outer_paths

# Objects with more fields than this, which most of them do not have, are maps: their fields have no rules.
_MAP_FIELDS, _MAP_SHARE = 50, 0.1
# Enumerations: the largest number of values by level, and how often a value occurs on average.
_MAX_VALUES = {"loose": 0, "normal": 12, "strict": 40}
_MIN_REPEATS = 8
# Rows that are searched for values, forms and patterns.
_ROWS = 20_000
# Patterns in the order in which they are tried.
_PATTERNS = (
    "^[0-9]+$",
    "^[a-z]+$",
    "^[A-Z]+$",
    "^[0-9a-f]+$",
    "^[A-Za-z]+$",
    "^[A-Za-z0-9]+$",
    "^[A-Za-z0-9_-]+$",
    "^https?://",
    "^[^@ ]+@[^@ ]+$",
    "^/",
)
_TYPES = {"decimal": "number", "double": "number"}


def contract(
    table: Table, level: ContractLevel = "normal", *, name: str | None = None, threads: int | None = None
) -> Contract:
    """Infer a contract that the Variants of a table satisfy; see `Table.contract`."""
    check_choice("level", level, get_args(ContractLevel))
    data = data_of(table)
    summary = summarize(data, threads=threads)
    details = _details(summary, level)
    fields: dict[VariantPath, list[float]] = {}
    for path, part in summary.paths.items():
        if path.segments and path.segments[-1] is not WILDCARD:
            fields.setdefault(path.parent, []).append(part.share)
    maps = {
        path for path, shares in fields.items() if len(shares) > _MAP_FIELDS and sum(shares) / len(shares) < _MAP_SHARE
    }
    paths = {
        path: _path_rules(path, part, summary, details.get(path, {}), level, path in maps)
        for path, part in summary.paths.items()
        if part.count and maps.isdisjoint(outer_paths(path))  # fields of maps have no rules
    }
    inferred = Contract(paths, name=name)
    # A rule that was removed can hide another one, so the data is checked until it satisfies the contract.
    while not (report := check_data(data, ContractCheck(inferred, "warn", False, 0), threads)):
        for violation in report.violations:
            remaining = [rule for rule in inferred.rules(violation.path).active if rule != violation.rule]
            paths[violation.path] = inferred.rules(violation.path).only(remaining)
            inferred = Contract(paths, name=name)
    return inferred


def _path_rules(
    path: VariantPath, part: PathSummary, summary: Summary, details: dict[str, Any], level: ContractLevel, is_map: bool
) -> PathRules:
    of_types = type_rules(part.types)
    if level == "loose":
        return of_types
    types = of_types.types
    rules: dict[str, Any] = {"types": types, "nullable": of_types.nullable}
    if not path.segments or path.segments[-1] is not WILDCARD:
        is_everywhere = part.share >= 1 if path.segments else not summary.null_rows
        if is_everywhere:
            rules["required"] = True
        elif level == "strict" and path.segments and (share := math.floor(part.share * 100) / 100):
            rules["presence"] = share
    # A rule has one kind of bound; a contract has no bounds for times without a zone.
    bounds = [bounds for kind, bounds in part.ranges.items() if kind != "timestamp_ntz"]
    if len(part.ranges) == 1 and bounds:
        low, high = bounds[0]
        if level == "strict":
            rules |= {"min": low, "max": high}
        elif "number" in part.ranges and low >= 0:
            rules["min"] = 0
    if "string" in types:
        rules |= {name: rule for name, rule in details.items() if name != "values" or types == ("string",)}
    if types == ("string",) and level == "strict" and "values" not in details and part.string_range is not None:
        # A character has at least one byte.
        rules |= {"min_length": min(part.string_range[0], 1), "max_length": part.string_range[1]}
    if level == "strict" and "array" in types and part.array_range is not None:
        rules |= {"min_items": part.array_range[0], "max_items": part.array_range[1]}
    if level == "strict" and "object" in types and not is_map:
        rules["extra_fields"] = False
    return PathRules(
        **{name: value for name, value in rules.items() if (value is not None and value != 0) or name in _ZERO}
    )


def type_rules(types: Mapping[Any, int]) -> PathRules:
    """Return the rules that allow some types, by their names in summaries or as Variant types.

    >>> type_rules({"integer": 3, "null": 1})
    PathRules(types=('integer',), nullable=True, ...)
    """
    names = {name if isinstance(name, str) and not isinstance(name, VariantType) else type_name(name) for name in types}
    names = {_TYPES.get(name, name) for name in names}
    allowed = tuple(names - {"null"} - ({"integer"} if "number" in names else set()))
    return PathRules(types=allowed or ("null",), nullable=("null" in names or None) if allowed else None)


# Rules for which 0 is a value that matters.
_ZERO = ("min", "max", "max_length", "max_items", "extra_fields")


def _details(summary: Summary, level: ContractLevel) -> dict[VariantPath, dict[str, Any]]:
    """Return what strings of the first rows, or of the sample, have in common: few values, a format or a pattern."""
    if level == "loose":
        return {}
    profile = Profile()
    strings: dict[VariantPath, list[pa.Array]] = {}
    paths = [path for path, values in summary.paths.items() if values.types.get("string") and not path.has_wildcard]
    for batch in summary.example_batches(_ROWS):
        profile = profile.merge(Profile.of_array(batch.values))
        for path in paths:
            column = variant_get(batch.values, path, "string", errors="null")
            strings.setdefault(path, []).append(pc.unique(pa.array(column).drop_null()))
    details: dict[VariantPath, dict[str, Any]] = {}
    for path in paths:
        figures = profile.get(path)
        if figures is None:
            continue
        form = figures.string_form
        values = pc.unique(pa.concat_arrays(strings[path])) if path in strings else pa.array([], pa.string())
        is_enumeration = len(values) <= _MAX_VALUES[level] and figures.count >= _MIN_REPEATS * max(len(values), 1)
        if is_enumeration:
            details[path] = {"values": tuple(sorted(values.to_pylist()))}
        elif form in FORMATS and form != "number":
            details[path] = {"format": form}
        elif level == "strict":
            details[path] = {"pattern": _pattern(values.to_pylist())}
    return details


def _pattern(strings: list[str]) -> str | None:
    """Return a pattern that all strings match: of their characters at each position, or of all characters."""
    if len(strings) < _MIN_REPEATS:
        return None
    if len({len(text) for text in strings}) == 1 and 2 <= len(strings[0]) <= 40 and (shape := _shape(strings)):
        return shape
    return next((pattern for pattern in _PATTERNS if all(re.search(pattern, text) for text in strings)), None)


def _shape(strings: list[str]) -> str | None:
    r"""Return the pattern of strings of one length, such as ``^[A-Z]{2}\-[0-9]{4}$``; None if a position is mixed."""
    parts: list[tuple[str, int]] = []
    for characters in zip(*strings, strict=True):
        text = "".join(characters)
        classes = ("[0-9]", "[a-z]", "[A-Z]")
        if len(set(characters)) == 1 and not characters[0].isalnum():
            kind = re.escape(characters[0])
        elif (of_all := next((name for name in classes if re.fullmatch(f"{name}+", text)), None)) is not None:
            kind = of_all
        else:
            return None
        if parts and parts[-1][0] == kind:
            parts[-1] = (kind, parts[-1][1] + 1)
        else:
            parts.append((kind, 1))
    return "^" + "".join(kind if count == 1 else f"{kind}{{{count}}}" for kind, count in parts) + "$"
