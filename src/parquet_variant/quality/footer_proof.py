"""Rules of a contract that the footer of a shredded file proves, and the columns that decide the others.

Owns the conclusions. They rely on the shredding specification as scans do: a shredded field of an object, and a
shredded array, is never in a ``value`` column. Leaves the facts to `footers`, and evaluation over values to
`inference.contracts.contract_check`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Container, Iterator
from copy import copy
from decimal import Decimal
from typing import Any

import pyarrow as pa

from parquet_variant.encoding.scalars import MICROS_PER_DAY
from parquet_variant.files.parquet.format.facts import NO_NAN_KEY, leaf_type
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.inference.contracts.contract import Contract
from parquet_variant.inference.contracts.path_rules import PathRules, order_of, scalar_key
from parquet_variant.quality.footers import PathFacts, Residual, VariantFacts
from parquet_variant.quality.value_figures import arrow_type_name
from parquet_variant.types.path import VariantPath, is_within

# The largest number of integers between bounds that are compared with the allowed values.
_MAX_INTEGERS = 1000
# Encodings that pyarrow can read as a dictionary.
_DICTIONARY_ENCODINGS = {"PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY"}
_OF_STRINGS = ("pattern", "format", "min_length", "max_length")


class FooterProof:
    """What the footer of a file proves about a contract."""

    def __init__(self, contract: Contract, facts: VariantFacts) -> None:
        self._contract, self._facts = contract, facts
        self._no_nan = NO_NAN_KEY in (facts.metadata.metadata or {})
        self.open_rules: dict[VariantPath, tuple[str, ...]] = {}
        for path, rules in contract.paths.items():
            if names := tuple(name for name in rules.active if not self._proves(path, rules, name)):
                self.open_rules[path] = names

    @property
    def open_contract(self) -> Contract:
        """The rules that the footer does not prove."""
        paths = {path: self._contract.rules(path).only(names) for path, names in self.open_rules.items()}
        closed = [path for path, names in self.open_rules.items() if "extra_fields" in names]
        for path in self._contract.paths:
            for outer in closed:
                # The names of fields are part of the rule that there are no others.
                if path != outer and is_within(path, outer):
                    paths.setdefault(VariantPath(path.segments[: len(outer) + 1]), PathRules())
        return Contract(paths)

    # -- conclusions

    def _proves(self, path: VariantPath, rules: PathRules, name: str) -> bool:
        if name == "required" and not path.segments:
            return self._facts.null_rows == 0
        if name == "presence" and not path.segments:
            return False
        group = self._facts.paths.get(path)
        if group is None:
            return self._proves_missing(path, name)
        places = self._facts.places(path)
        typed_everywhere = group.typed is not None and group.typed == places
        if name in ("required", "presence"):
            both_known = group.typed is not None and group.stored is not None and not group.is_object
            return typed_everywhere or (
                both_known and (group.typed or 0) + (group.stored or 0) == self._facts.places(path)
            )
        if name == "nullable":
            return typed_everywhere or group.residual is Residual.EMPTY
        if name == "extra_fields":
            if group.residual is Residual.OPEN or group.stored is None:
                return False
            return not any(
                inner.typed != 0 or inner.stored != 0
                for name, inner in self._fields(path)
                if name not in self._field_names(path)
            )
        if group.residual is Residual.OPEN and not (typed_everywhere and group.is_object):
            return False
        return group.typed == 0 or (group.typed is not None and self._proves_typed(group, rules, name))

    def _proves_missing(self, path: VariantPath, name: str) -> bool:
        """Return whether a rule holds at a path that is not shredded, because no value can be there."""
        outer = self._outer(path)
        group = self._facts.paths[outer]
        if group.residual is Residual.OPEN or group.stored is None:
            return False
        if name in ("required", "presence"):
            return len(path) > len(outer) + 1 or not group.is_object or group.typed == 0
        return True

    def _outer(self, path: VariantPath) -> VariantPath:
        """Return the nearest path above that is shredded."""
        while path not in self._facts.paths:
            path = path.parent
        return path

    def _fields(self, path: VariantPath) -> Iterator[tuple[str, PathFacts]]:
        for inner, group in self._facts.paths.items():
            if len(inner) == len(path) + 1 and inner.parent == path and isinstance(inner.segments[-1], str):
                yield inner.segments[-1], group

    def _field_names(self, path: VariantPath) -> set[str]:
        """Return the fields of a path that the contract names."""
        size = len(path)
        return {str(inner.segments[size]) for inner in self._contract.paths if inner != path and is_within(inner, path)}

    def _proves_typed(self, group: PathFacts, rules: PathRules, name: str) -> bool:
        """Return whether all values of the typed column satisfy a rule."""
        typed = group.group.typed
        assert typed is not None
        if typed.leaf is None:
            kind = "array" if typed.is_list else "object"
            if name == "type":
                return kind in rules.types
            if name in ("min_items", "max_items"):
                return kind == "object" or (name == "max_items" and group.elements == 0)
            return name != "values"
        arrow = leaf_type(typed)
        if arrow is None:
            return False
        if name == "type":
            return _is_of_type(arrow, rules)
        if name in ("min_items", "max_items"):
            return True
        if name in _OF_STRINGS:
            return not pa.types.is_string(arrow)
        bound = rules.min if name == "min" else rules.max
        if name != "values" and isinstance(bound, dt.date) is not _is_time(arrow):
            return True  # The rule does not apply to values of the type.
        bounds = self._facts.columns.statistics(typed)
        low, high = bounds.lower, bounds.upper
        if name == "values":
            return low is not None and high is not None and _only_values(low, high, arrow, rules)
        if not _is_time(arrow) and not _is_number(arrow):
            return True
        if low is None or high is None or bound is None or (pa.types.is_floating(arrow) and not self._no_nan):
            return False
        limit = float(order_of(bound)) if pa.types.is_floating(arrow) else order_of(bound)
        return bool(_ordered(low, arrow) >= limit if name == "min" else _ordered(high, arrow) <= limit)

    # -- columns

    def without(self, paths: Container[VariantPath]) -> FooterProof:
        """Return the proof with the open rules of some paths decided."""
        proof = copy(self)
        proof.open_rules = {path: names for path, names in self.open_rules.items() if path not in paths}
        return proof

    def string_columns(self, row_group: int) -> dict[VariantPath, SchemaNode]:
        """Return the columns with a dictionary that hold only strings, whose open rules the distinct values decide."""
        columns = {}
        for path, names in self.open_rules.items():
            group = self._facts.paths.get(path)
            typed = None if group is None or group.residual is not Residual.EMPTY else group.group.typed
            is_text = typed is not None and typed.leaf is not None and leaf_type(typed) == pa.string()
            if typed is None or not is_text or path.has_wildcard or not set(names) <= {*_OF_STRINGS, "values"}:
                continue
            chunk = self._facts.columns.chunk(typed, row_group)
            if chunk.has_dictionary_page and set(chunk.encodings) <= _DICTIONARY_ENCODINGS:
                columns[path] = typed
        return columns

    def leaves(self) -> list[SchemaNode]:
        """Return the columns that decide the rules that the footer does not prove."""
        columns: dict[str, SchemaNode] = {}
        for path, names in self.open_rules.items():
            for leaf in self._leaves_of(path, names):
                columns[leaf.dotted] = leaf
        if (metadata := self._facts.column.node.child("metadata")) is not None:
            columns[metadata.dotted] = metadata
        return list(columns.values())

    def _leaves_of(self, path: VariantPath, names: tuple[str, ...]) -> Iterator[SchemaNode]:
        outer = self._outer(path)
        group = self._facts.paths[outer]
        if group.group.residual is not None:
            yield group.group.residual
        typed = group.group.typed
        if typed is None:
            return
        if typed.leaf is not None:
            yield typed
            return
        # Any leaf shows which values are objects or arrays, and the lengths of the arrays.
        yield min(typed.leaves(), key=lambda leaf: self._facts.columns.size([leaf]))
        if outer == path and "extra_fields" in names:
            for name, inner in self._fields(path):
                if name not in self._field_names(path):
                    yield from inner.group.group.leaves()

    @property
    def needs_values(self) -> bool:
        """Whether the open rules need the values that are not shredded at the top."""
        root = self._facts.paths[VariantPath()].group.residual
        return root is not None and any(leaf is root for leaf in self.leaves())


def _is_of_type(arrow: pa.DataType, rules: PathRules) -> bool:
    name = arrow_type_name(arrow)
    return name in rules.types or ("number" in rules.types and name in ("integer", "decimal", "double"))


def _is_number(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_integer(arrow) or pa.types.is_floating(arrow) or pa.types.is_decimal(arrow))


def _is_time(arrow: pa.DataType) -> bool:
    """Return whether the values of a type can be compared with dates and timestamps."""
    return bool(pa.types.is_date(arrow) or pa.types.is_timestamp(arrow))


def _ordered(bound: pa.Scalar, arrow: pa.DataType) -> Any:
    """Return the bound of a column as a number with the order of `order_of`."""
    if pa.types.is_date(arrow):
        return bound.value * MICROS_PER_DAY
    if pa.types.is_timestamp(arrow):
        return Decimal(bound.value) / 1000 if arrow.unit == "ns" else bound.value
    return bound.as_py()


def _only_values(low: pa.Scalar, high: pa.Scalar, arrow: pa.DataType, rules: PathRules) -> bool:
    """Return whether all values between two bounds are allowed."""
    keys = {scalar_key(value) for value in rules.values or ()}
    smallest, largest = low.as_py(), high.as_py()
    if pa.types.is_integer(arrow):
        count = largest - smallest + 1
        return count <= _MAX_INTEGERS and all(scalar_key(value) in keys for value in range(smallest, largest + 1))
    if pa.types.is_boolean(arrow):
        return scalar_key(smallest) in keys and scalar_key(largest) in keys
    # Bounds of strings may be truncated: then they are not values.
    return bool(smallest == largest and not pa.types.is_string(arrow) and scalar_key(smallest) in keys)
