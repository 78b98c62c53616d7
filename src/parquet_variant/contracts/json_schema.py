"""JSON Schema as a form of contracts.

Owns the mapping of keywords to rules, in both directions. A keyword without a rule is refused by name; a rule without a
keyword is under ``x-variant``.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from parquet_variant.contracts.contract import Contract, rules_of
from parquet_variant.contracts.path_rules import ANY, PathRules, as_bound, bad_contract
from parquet_variant.errors import VariantError
from parquet_variant.path import WILDCARD, VariantPath

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# Rules that JSON Schema does not have.
EXTENSION = "x-variant"
# Types that JSON does not have are strings with a format.
_JSON_TYPES = ("object", "array", "string", "boolean", "integer", "number", "null")
FORMAT_KEYWORDS = {"date": "date", "timestamp": "date-time", "uuid": "uuid"}
_NAMES = {
    "minLength": "min_length",
    "maxLength": "max_length",
    "minItems": "min_items",
    "maxItems": "max_items",
    "pattern": "pattern",
    "description": "description",
    "minimum": "min",
    "maximum": "max",
}
_STRUCTURE = ("type", "properties", "required", "items", "additionalProperties", "enum", "const", "format", EXTENSION)
# Keywords that allow nothing and forbid nothing.
_NOTES = ("$schema", "$id", "$comment", "title", "default", "examples", "deprecated", "readOnly", "writeOnly")


def to_json_schema(contract: Contract) -> dict[str, Any]:
    """Return a contract as a JSON Schema."""
    root = _schema_of(contract.rules(VariantPath()), is_root=True)
    for path, rules in contract.paths.items():
        if path.segments:
            _place(root, path, rules)
    texts = {"title": contract.name} if contract.name is not None else {}
    if contract.description is not None:
        root.setdefault(EXTENSION, {})["contract_description"] = contract.description
    return {"$schema": DIALECT, **texts, **root}


def _place(root: dict[str, Any], path: VariantPath, rules: PathRules) -> None:
    """Add the rules of a path to the schema of its parents, which are made if the contract does not name them."""
    schema = root
    for number, segment in enumerate(path.segments):
        is_last = number + 1 == len(path.segments)
        if segment is WILDCARD:
            inner = schema.setdefault("items", {})
        else:
            inner = schema.setdefault("properties", {}).setdefault(str(segment), {})
            if is_last and rules.required:
                schema.setdefault("required", []).append(str(segment))
        if is_last:
            inner |= _schema_of(rules)
        schema = inner


def _schema_of(rules: PathRules, *, is_root: bool = False) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    extension: dict[str, Any] = {}
    if other := [name for name in rules.types if name not in _JSON_TYPES]:
        extension["type"] = list(rules.types)
    types = ["string" if name in other else name for name in rules.types]
    if types:
        names = list(dict.fromkeys([*types, *(["null"] if rules.allows_null else [])]))
        schema["type"] = names[0] if len(names) == 1 else names
    elif not rules.allows_null:
        schema["type"] = [name for name in _JSON_TYPES if name not in ("null", "integer")]
        extension["type"] = []
    for keyword, name in _NAMES.items():
        value = getattr(rules, name)
        if isinstance(value, dt.date):
            extension[name] = value.isoformat()
        elif value is not None:
            schema[keyword] = json_number(value)
    if rules.values is not None:
        allowed = [_json_scalar(value) for value in rules.values]
        schema["enum"] = [*allowed, *([None] if rules.allows_null else [])]
        if any(isinstance(value, dt.date) for value in rules.values):
            extension["values"] = allowed
    if rules.format in FORMAT_KEYWORDS:
        schema["format"] = FORMAT_KEYWORDS[rules.format]
    elif rules.format is not None:
        extension["format"] = rules.format
    if rules.presence is not None:
        extension["presence"] = rules.presence
    if is_root and rules.required:
        extension["required"] = True
    if not rules.extra_fields:
        schema["additionalProperties"] = False
    return schema | ({EXTENSION: extension} if extension else {})


def json_number(value: Any) -> Any:
    """Return a bound as JSON and YAML hold it: decimals as doubles."""
    return float(value) if isinstance(value, Decimal) else value


def _json_scalar(value: Any) -> Any:
    return value.isoformat() if isinstance(value, dt.date) else json_number(value)


def from_json_schema(schema: Mapping[str, Any] | str) -> Contract:
    """Read a contract from a JSON Schema. Raises `VariantError` for a keyword that it cannot express."""
    if isinstance(schema, str):
        try:
            schema = json.loads(schema, parse_float=Decimal)
        except ValueError as error:
            raise bad_contract(f"the text is not JSON: {error}") from None
        except RecursionError:
            raise bad_contract("the JSON Schema is nested too deeply: flatten it") from None
    if not isinstance(schema, Mapping):
        raise bad_contract(f"the JSON Schema is a {type(schema).__name__}: give an object")
    paths: dict[VariantPath, PathRules] = {}
    _read(schema, VariantPath(), "#", False, paths)
    description = _extension(schema).get("contract_description")
    return Contract(paths, name=schema.get("title"), description=description)


def _read(schema: Any, path: VariantPath, place: str, required: bool, paths: dict[VariantPath, PathRules]) -> None:
    """Add the rules of a schema and of the schemas below it."""
    if schema is True:
        schema = {}
    if not isinstance(schema, Mapping):
        raise bad_contract(f"{place}: a contract cannot express the schema {schema!r}: write an object")
    for keyword in schema:
        if keyword not in (*_STRUCTURE, *_NAMES, *_NOTES):
            raise bad_contract(
                f"{place}: a contract cannot express the keyword {keyword!r}: remove it, or write the rule by path"
            )
    try:
        rules = _rules_of(schema, required)
    except VariantError as error:
        raise bad_contract(f"{place}: {error.message}", path=path.shorthand) from None
    if rules != ANY or not path.segments:
        paths[path] = rules
    properties, names = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, Mapping) or not isinstance(names, list) or not all(isinstance(n, str) for n in names):
        raise bad_contract(f"{place}: properties must be an object, and required a list of names")
    for name in dict.fromkeys([*properties, *names]):
        _read(properties.get(name, {}), path / name, f"{place}/properties/{name}", name in names, paths)
        # A field without rules is still a field that extra_fields allows.
        paths.setdefault(path / name, ANY)
    if "items" in schema:
        _read(schema["items"], path / WILDCARD, f"{place}/items", False, paths)
        paths.setdefault(path / WILDCARD, ANY)


def _extension(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the rules that JSON Schema does not have."""
    extension = schema.get(EXTENSION, {})
    if not isinstance(extension, Mapping):
        raise bad_contract(f"{EXTENSION} is {extension!r}: write an object of rules")
    return extension


def _rules_of(schema: Mapping[str, Any], required: bool) -> PathRules:
    rules: dict[str, Any] = {name: schema[keyword] for keyword, name in _NAMES.items() if keyword in schema}
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if not isinstance(types, list):
        raise bad_contract(f"type is {types!r}: write one type or a list of types")
    if unknown := [name for name in types if name not in _JSON_TYPES]:
        raise bad_contract(f"unknown type {unknown[0]!r}: use {', '.join(_JSON_TYPES)}")
    nullable: bool | None = "null" in types or None
    if types:
        rules["type"] = [name for name in types if name != "null"] or ["null"]
    extra = schema.get("additionalProperties", True)
    if not isinstance(extra, bool):
        raise bad_contract("a contract cannot express the keyword 'additionalProperties' with a schema: use false")
    rules["extra_fields"] = extra
    if "enum" in schema or "const" in schema:
        allowed = schema.get("enum", [schema.get("const")])
        if not isinstance(allowed, list):
            raise bad_contract(f"enum is {allowed!r}: write a list")
        nullable = (None in allowed and (nullable or not types)) if types or None in allowed else False
        rules["values"] = [value for value in allowed if value is not None]
        if not rules["values"]:
            del rules["values"]
            rules["type"] = ["null"]
    if "format" in schema:
        formats = {keyword: name for name, keyword in FORMAT_KEYWORDS.items()}
        if not isinstance(schema["format"], str) or schema["format"] not in formats:
            raise bad_contract(f"a contract cannot express the format {schema['format']!r}: use pattern")
        rules["format"] = formats[schema["format"]]
    rules["nullable"], rules["required"] = nullable, required
    extension = {name: value for name, value in _extension(schema).items() if name != "contract_description"}
    for name in ("min", "max"):
        if name in extension:
            extension[name] = as_bound(name, extension[name])
    if "type" in extension and not extension["type"]:
        del extension["type"]
        del rules["type"]
        rules["nullable"] = False
    if any(isinstance(extension.get(name), dt.date) for name in ("min", "max")) or "values" in extension:
        values = extension.get("values")
        extension |= {"values": [_with_dates(value) for value in values]} if isinstance(values, list) else {}
    return rules_of({**rules, **extension})


def _with_dates(value: Any) -> Any:
    try:
        return as_bound("values", value) if isinstance(value, str) else value
    except VariantError:
        return value
