"""`PathRules`: the rules for the values at one path, and the checks of the rules themselves.

Owns the names of types and rules. `contract` combines the rules of all paths, and `contract_check` puts them in the
form of the kernel.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import fields
from decimal import Context, Decimal
from functools import cache
from typing import Any, TypeAlias

import pyarrow as pa

from parquet_variant.errors import VariantError, check_choice, check_names, choice_of
from parquet_variant.kernels.arrow_buffers import from_bytes
from parquet_variant.kernels.json.string_forms import FORM
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record
from parquet_variant.types import DECIMAL_TYPES, INTEGERS, VariantType
from parquet_variant.types.path import WILDCARD, VariantPath

Bound: TypeAlias = int | Decimal | dt.date | dt.datetime
Scalar: TypeAlias = str | bool | int | Decimal | dt.date | dt.datetime

_V = VariantType
# The types of a contract and the Variant types that they allow. An integer is any number without a fraction, as in JSON
# Schema.
TYPES: dict[str, frozenset[VariantType]] = {
    "object": frozenset({_V.OBJECT}),
    "array": frozenset({_V.ARRAY}),
    "string": frozenset({_V.STRING}),
    "boolean": frozenset({_V.BOOLEAN}),
    "integer": frozenset({*INTEGERS, *DECIMAL_TYPES, _V.DOUBLE, _V.FLOAT}),
    "number": frozenset({*INTEGERS, *DECIMAL_TYPES, _V.DOUBLE, _V.FLOAT}),
    "date": frozenset({_V.DATE}),
    "time": frozenset({_V.TIME}),
    "timestamp": frozenset({_V.TIMESTAMP, _V.TIMESTAMP_NANOS}),
    "timestamp_ntz": frozenset({_V.TIMESTAMP_NTZ, _V.TIMESTAMP_NTZ_NANOS}),
    "uuid": frozenset({_V.UUID}),
    "binary": frozenset({_V.BINARY}),
    "null": frozenset({_V.NULL}),
}
# The forms of strings.
FORMATS: dict[str, int] = {name.lower(): getattr(FORM, name) for name in FORM._fields[: FORM.BOOLEAN]}
# The rules but `type`, and what they expect, in the order of reports.
_EXPECTED = {
    "nullable": "no null",
    "required": "present",
    "presence": "present in at least {:.4%}",
    "min": "at least {}",
    "max": "at most {}",
    "values": "one of {}",
    "pattern": "matches {}",
    "format": "a {}",
    "min_length": "at least {} characters",
    "max_length": "at most {} characters",
    "min_items": "at least {} elements",
    "max_items": "at most {} elements",
    "extra_fields": "no other fields",
}
# The names of the rules in violations.
RULES = ("type", *_EXPECTED)


def bad_contract(message: str, **location: Any) -> VariantError:
    """Return the error for an invalid contract."""
    return VariantError(message, reason="bad-contract", **location)


def _set(rules: PathRules, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(rules, name, value)


class PathRules(Record, kw_only=True):
    """The rules for the values at one path. A rule on strings does not apply to numbers, and so on, as in JSON Schema.

    Parameters
    ----------
    types
        The allowed types, such as ``("string",)``; empty for any type. ``"integer"`` is any number without a fraction.
    nullable
        Whether a Variant null is allowed. By default it is allowed if `types` is empty.
    required
        Whether every object must have the field; for ``$``, whether no row may be SQL NULL.
    presence
        Smallest share of the objects (rows for ``$``) that have the field, above 0 and up to 1.
    min, max
        Inclusive bounds of numbers, or of dates and timestamps.
    values
        The allowed scalars.
    pattern
        A regular expression (RE2) that strings must contain; ``^`` and ``$`` bind it to the ends.
    format
        The form of strings: ``"date"``, ``"timestamp"``, ``"timestamp_ntz"``, ``"uuid"`` or ``"number"``.
    min_length, max_length
        Bounds of the number of characters of strings.
    min_items, max_items
        Bounds of the number of elements of arrays.
    extra_fields
        Whether objects may have fields that the contract does not name.
    description
        Text for readers.

    Examples
    --------
    >>> PathRules(types="integer", min=0).describe("min")
    'at least 0'
    """

    types: tuple[str, ...] = ()
    nullable: bool | None = None
    required: bool = False
    presence: float | None = None
    min: Bound | None = None
    max: Bound | None = None
    values: tuple[Scalar, ...] | None = None
    pattern: str | None = None
    format: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    extra_fields: bool = True
    description: str | None = None

    def __post_init__(self) -> None:
        names = (self.types,) if isinstance(self.types, str) else tuple(self.types)
        for name in names:
            if not isinstance(name, str) or name not in TYPES:
                raise bad_contract(f"unknown type {name!r}: {choice_of(str(name), TYPES)}")
        nullable = self.nullable
        if "null" in names:
            if nullable is False:
                raise bad_contract("nullable is false, but the types include null: remove one of the two")
            nullable = True
        types = tuple(name for name in TYPES if name in names and not (name == "null" and len(set(names)) > 1))
        _set(self, types=types, nullable=None if nullable is bool(not types) else nullable)
        for name, (kind, form) in _FORMS.items():
            if not isinstance(getattr(self, name), kind):
                raise bad_contract(f"{name} is {getattr(self, name)!r}: write {form}")
        self._check_counts()
        for name in ("min", "max"):
            if (bound := getattr(self, name)) is not None:
                _set(self, **{name: as_bound(name, bound)})
        if self.min is not None and self.max is not None:
            if isinstance(self.min, dt.date) != isinstance(self.max, dt.date):
                raise bad_contract("min and max have different types: write two numbers, or two dates or timestamps")
            if order_of(self.min) > order_of(self.max):
                raise bad_contract(f"min is {self.min} and max is {self.max}: min must not be greater")
        check_choice("format", self.format, FORMATS, reason="bad-contract", optional=True)
        if self.pattern is not None:
            _check_pattern(self.pattern)
        if self.values is not None:
            if isinstance(self.values, Mapping | bytes) or not isinstance(self.values, Iterable):
                raise bad_contract(f"values is {self.values!r}: write a list of values")
            values = (self.values,) if isinstance(self.values, str) else tuple(self.values)
            if not values:
                raise bad_contract("values is empty: list at least one value, or remove the rule")
            scalars = [as_scalar("values", value) for value in values]
            _set(self, values=tuple({scalar_key(scalar): scalar for scalar in scalars}.values()))

    def _check_counts(self) -> None:
        if self.presence is not None:
            is_number = isinstance(self.presence, int | float | Decimal) and not isinstance(self.presence, bool)
            if not is_number or not 0 < self.presence <= 1:
                shown = self.presence if is_number else repr(self.presence)
                raise bad_contract(f"presence is {shown}: write a share above 0 and up to 1")
            if self.required:
                raise bad_contract("required and presence are both set: required means a presence of 1")
            _set(self, presence=float(self.presence))
        for low, high in (("min_length", "max_length"), ("min_items", "max_items")):
            smallest, largest = getattr(self, low), getattr(self, high)
            for name, count in ((low, smallest), (high, largest)):
                if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 0):
                    raise bad_contract(f"{name} is {count!r}: write an integer that is at least 0")
            if None not in (smallest, largest) and smallest > largest:
                raise bad_contract(f"{low} is {smallest} and {high} is {largest}: {low} must not be greater")

    @property
    def allows_null(self) -> bool:
        """Whether a Variant null is allowed."""
        return not self.types if self.nullable is None else self.nullable

    @property
    def whole_numbers(self) -> bool:
        """Whether numbers must not have a fraction."""
        return "integer" in self.types and "number" not in self.types

    def rules(self) -> dict[str, Any]:
        """Return the rules that are set, by the names of the parameters."""
        return {name: value for name, value in vars(self).items() if value != _DEFAULTS[name]}

    @property
    def active(self) -> tuple[str, ...]:
        """The names of the rules that values can break."""
        other_rules = {"type": bool(self.types), "nullable": not self.allows_null}
        return tuple(name for name in RULES if other_rules.get(name, name in self.rules()))

    def only(self, names: Container[str]) -> PathRules:
        """Return the rules with some names."""
        rules = {
            name: getattr(self, name) for name in self.active if name in names and name not in ("type", "nullable")
        }
        types = self.types if "type" in names else ()
        return PathRules(types=types, nullable="nullable" not in names or self.allows_null, **rules)

    def describe(self, rule: str) -> str:
        """Return what a rule expects, for reports."""
        if rule == "type":
            return " or ".join(self.types)
        value = getattr(self, rule)
        return _EXPECTED[rule].format(", ".join(map(repr_of, value)) if rule == "values" else value)


_FORMS: dict[str, tuple[Any, str]] = {
    "required": (bool, "true or false"),
    "extra_fields": (bool, "true or false"),
    "nullable": (bool | None, "true or false"),
    "description": (str | None, "text"),
    "pattern": (str | None, "a regular expression"),
}
# The largest exponent of a bound, as of a double. Larger powers of ten take minutes to compute.
_MAX_EXPONENT = 308
_DEFAULTS = {field.name: field.default for field in fields(PathRules)}
ANY = PathRules()


def as_bound(name: str, value: Any) -> Bound:
    """Return a bound as a number, a date or a timestamp. Raises `VariantError` for other values."""
    if isinstance(value, str):
        try:
            value = dt.date.fromisoformat(value) if len(value) == 10 else dt.datetime.fromisoformat(value)
        except ValueError:
            raise bad_contract(
                f"{name} is {value!r}: write a number, a date such as 2026-01-31, or a timestamp such as "
                "2026-01-31T00:00:00Z"
            ) from None
    scalar = as_scalar(name, value)
    if isinstance(scalar, bool | str):
        raise bad_contract(f"{name} is {value!r}: write a number, a date or a timestamp")
    return scalar


def as_scalar(name: str, value: Any) -> Scalar:
    """Return an allowed value in the form of contracts: doubles become decimals with the same digits."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise bad_contract(f"{name} is {value}: write a finite number")
        value = Decimal(repr(value))
    if isinstance(value, Decimal):
        if not value.is_finite() or abs(value.adjusted()) > _MAX_EXPONENT:
            raise bad_contract(f"{name} is {value}: write a finite number in the range of a double")
        exact = Context(len(value.as_tuple().digits))
        return int(value) if value == value.to_integral_value() else value.normalize(exact)
    if isinstance(value, int) and abs(value) >= 10**_MAX_EXPONENT:
        problem = f"{name} is an integer of more than {_MAX_EXPONENT} digits: write one in the range of a double"
        raise bad_contract(problem)
    if isinstance(value, str | bool | int | dt.date):
        return value
    raise bad_contract(f"{name} contains {value!r}: write strings, numbers, booleans, dates or timestamps")


def order_of(bound: Bound) -> Any:
    """Return a number with the order of the bounds: dates and timestamps as microseconds since 1970, local or UTC."""
    if isinstance(bound, dt.datetime):
        epoch = dt.datetime(1970, 1, 1, tzinfo=None if bound.tzinfo is None else dt.UTC)
        return (bound - epoch) // dt.timedelta(microseconds=1)
    if isinstance(bound, dt.date):
        return (bound - dt.date(1970, 1, 1)).days * 86_400_000_000
    return bound


def scalar_key(value: Any) -> tuple[str, Any]:
    """Return a key under which equal scalars are equal: a number is one value, whatever its type."""
    if isinstance(value, bool):
        return "boolean", value
    if isinstance(value, float):
        return ("number", Decimal(value)) if math.isfinite(value) else ("double", repr(value))
    if isinstance(value, int | Decimal):
        return "number", Decimal(value)
    if isinstance(value, dt.datetime):
        return "timestamp" if value.tzinfo else "timestamp_ntz", order_of(value)
    return type(value).__name__, value


def repr_of(value: Any) -> str:
    """Return a scalar as contracts and reports write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else "null" if value is None else str(value)


@cache
def _check_pattern(pattern: str) -> None:
    try:
        pc.match_substring_regex(from_bytes([b""], pa.string()), pattern)
    except pa.ArrowInvalid as error:
        raise bad_contract(f"pattern {pattern!r} is not a regular expression of RE2: {error}") from None


def checked_path(name: Any) -> VariantPath:
    """Return a path of a contract. Raises `VariantError` for an index, which stands for one element."""
    path = VariantPath.parse(name)
    if any(isinstance(segment, int) for segment in path.segments):
        raise bad_contract("a contract has one rule for all elements: write [*] instead of an index", path=str(name))
    return path


def rules_of(rules: Any) -> PathRules:
    """Return the rules of a mapping, where ``type`` is one type or a list."""
    if not isinstance(rules, Mapping):
        raise bad_contract(f"the rules are {rules!r}: write a mapping such as {{type: string}}")
    names = [name if name != "types" else "type" for name in PathRules.__dataclass_fields__]
    try:
        check_names("rule", map(str, rules), names)
    except VariantError as error:
        raise bad_contract(error.message) from None
    parameters = {name if name != "type" else "types": value for name, value in rules.items()}
    if "types" in parameters:
        types = parameters["types"]
        types = [types] if isinstance(types, str) or types is None else types
        if not isinstance(types, list | tuple):
            raise bad_contract(f"type is {types!r}: write one type or a list of types")
        parameters["types"] = tuple("null" if name is None else name for name in types)
    return PathRules(**parameters)


def checked_rules(path: VariantPath, rules: Any) -> PathRules:
    """Return the rules of a path. Raises `VariantError` for a rule that cannot apply to the path."""
    rules = rules if isinstance(rules, PathRules) else rules_of(rules)
    if path.segments and path.segments[-1] is WILDCARD and (rules.required or rules.presence):
        raise bad_contract("elements cannot be required: use min_items at the path of the array")
    return rules
