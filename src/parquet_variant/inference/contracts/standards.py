"""Contracts as JSON Schema, and as documents of the Open Data Contract Standard (ODCS, version 3).

Owns the mapping of keywords, logical types and options to rules, in both directions. A rule that JSON Schema does not
have is under ``x-variant``, and one that ODCS does not have is a custom property; a keyword or option that a contract
cannot express is refused by name. The library `open-data-contract-standard` has the model of ODCS documents.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

from parquet_variant.errors import VariantError
from parquet_variant.inference.contracts.path_rules import ANY, PathRules, as_bound, bad_contract, rules_of
from parquet_variant.inference.contracts.yaml_format import dump_yaml, plain_rules, read_yaml
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.types.path import WILDCARD, Segment, VariantPath, outer_paths

Rules: TypeAlias = "Mapping[VariantPath, PathRules]"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
# Rules that JSON Schema does not have.
EXTENSION = "x-variant"
# Types that JSON does not have are strings with a format.
_JSON_TYPES = ("object", "array", "string", "boolean", "integer", "number", "null")
_FORMATS = {"date": "date", "timestamp": "date-time", "uuid": "uuid"}
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


def to_json_schema(paths: Rules, header: Mapping[str, str]) -> dict[str, Any]:
    """Return a contract as a JSON Schema."""
    root = _schema_of(paths, _children(paths), VariantPath())
    if "description" in header:
        root.setdefault(EXTENSION, {})["contract_description"] = header["description"]
    return {"$schema": DIALECT, **({"title": header["name"]} if "name" in header else {}), **root}


def _children(paths: Rules) -> dict[VariantPath, dict[Segment, VariantPath]]:
    """Return the paths directly below each path by their last segment, also those that the contract does not name."""
    children: dict[VariantPath, dict[Segment, VariantPath]] = {}
    for named in paths:
        for path in [*outer_paths(named), named]:
            if path.segments:
                children.setdefault(path.parent, {})[path.segments[-1]] = path
    return children


def _schema_of(
    paths: Rules, children: Mapping[VariantPath, Mapping[Segment, VariantPath]], path: VariantPath
) -> dict[str, Any]:
    """Return the schema of a path, with those of the paths below it."""
    rules = paths.get(path, ANY)
    schema, plain = dict[str, Any](), plain_rules(rules)
    is_required = plain.pop("required", False)
    plain.pop("nullable", None)
    if rules.types:
        types = [name if name in _JSON_TYPES else "string" for name in rules.types]
        names = list(dict.fromkeys([*types, *(["null"] if rules.allows_null else [])]))
        schema["type"] = names[0] if len(names) == 1 else names
        if all(name in _JSON_TYPES for name in rules.types):
            del plain["type"]
        else:
            plain["type"] = rules.types
    elif not rules.allows_null:
        schema["type"] = [name for name in _JSON_TYPES if name not in ("null", "integer")]
        plain = {"type": [], **plain}
    schema |= _keywords_of(plain)
    if rules.values is not None:
        schema["enum"] = [*_json(rules.values), *([None] if rules.allows_null else [])]
        if not any(isinstance(value, dt.date) for value in rules.values):
            del plain["values"]
    if not plain.pop("extra_fields", True):
        schema["additionalProperties"] = False
    if not path.segments and is_required:
        plain["required"] = True
    schema |= {EXTENSION: _json(plain)} if plain else {}
    child_rules = dict(children.get(path, {}))
    if (element := child_rules.pop(WILDCARD, None)) is not None:
        schema["items"] = _schema_of(paths, children, element)
    if child_rules:
        schema["properties"] = {str(name): _schema_of(paths, children, inner) for name, inner in child_rules.items()}
    if required := [str(name) for name, inner in child_rules.items() if paths.get(inner, ANY).required]:
        schema["required"] = required
    return schema


def _keywords_of(plain: dict[str, Any]) -> dict[str, Any]:
    """Remove the rules that both standards have from the rules of a path, and return them by keyword."""
    keywords = {
        keyword: _json(plain.pop(name))
        for keyword, name in _NAMES.items()
        if name in plain and not isinstance(plain[name], dt.date)
    }
    if plain.get("format") in _FORMATS:
        keywords["format"] = _FORMATS[plain.pop("format")]
    return keywords


def _rules_of_keywords(keywords: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the rules of the keywords that both standards have."""
    rules = {}
    formats = {keyword: name for name, keyword in _FORMATS.items()}
    for keyword, value in keywords:
        if keyword != "format":
            rules[_NAMES[keyword]] = value
        elif isinstance(value, str) and value in formats:
            rules["format"] = formats[value]
        else:
            raise bad_contract(f"a contract cannot express the format {value!r}: use pattern")
    return rules


def _json(value: Any) -> Any:
    """Return rules as JSON and YAML hold them: decimals as doubles, dates as strings."""
    if isinstance(value, Mapping):
        return {name: _json(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_json(item) for item in value]
    return value.isoformat() if isinstance(value, dt.date) else float(value) if isinstance(value, Decimal) else value


def _add_extension(rules: dict[str, Any], extension: Mapping[str, Any]) -> None:
    """Add the rules that a standard does not have, as `_json` wrote them."""
    for name, value in extension.items():
        if name in ("min", "max"):
            rules[name] = as_bound(name, value)
        elif name == "values" and isinstance(value, list):
            rules[name] = list(map(_with_dates, value))
        elif name == "type" and not value:
            rules.pop("type", None)
        else:
            rules[name] = value


def _with_dates(value: Any) -> Any:
    try:
        return as_bound("values", value) if isinstance(value, str) else value
    except VariantError:
        return value


def from_json_schema(schema: Mapping[str, Any] | str) -> dict[str, Any]:
    """Read the parameters of a contract from a JSON Schema. Raises `VariantError` for an unknown keyword."""
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
    _read_schema(schema, VariantPath(), "#", False, paths)
    return {
        "paths": paths, "name": schema.get("title"), "description": _extension(schema).get("contract_description")
    }  # fmt: skip


def _read_schema(
    schema: Any, path: VariantPath, place: str, required: bool, paths: dict[VariantPath, PathRules]
) -> None:
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
        _read_schema(properties.get(name, {}), path / name, f"{place}/properties/{name}", name in names, paths)
        # A field without rules is still a field that extra_fields allows.
        paths.setdefault(path / name, ANY)
    if "items" in schema:
        _read_schema(schema["items"], path / WILDCARD, f"{place}/items", False, paths)
        paths.setdefault(path / WILDCARD, ANY)


def _extension(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the rules that JSON Schema does not have."""
    extension = schema.get(EXTENSION, {})
    if not isinstance(extension, Mapping):
        raise bad_contract(f"{EXTENSION} is {extension!r}: write an object of rules")
    return extension


def _rules_of(schema: Mapping[str, Any], required: bool) -> PathRules:
    keywords = ((keyword, value) for keyword, value in schema.items() if keyword in (*_NAMES, "format"))
    rules = _rules_of_keywords(keywords)
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
    extension = {name: value for name, value in _extension(schema).items() if name != "contract_description"}
    rules["nullable"], rules["required"] = False if extension.get("type") == [] else nullable, required
    _add_extension(rules, extension)
    return rules_of(rules)


API_VERSION = "v3.1.0"
_PREFIX = "variant."
# Types of contracts that are logical types of the standard; the others are custom properties.
_LOGICAL = ("object", "array", "string", "boolean", "integer", "number", "date", "timestamp", "time")


# The start of a line that only documents of the standard have.
ODCS_LINE = re.compile(r"""(?m)^[\s{]*["']?(apiVersion|kind)["']?\s*:""")


def to_odcs(paths: Rules, header: Mapping[str, str]) -> str:
    """Return a contract as the YAML of a document."""
    if elements := [path for path in paths if path.segments[:1] == (WILDCARD,)]:
        problem = "the Open Data Contract Standard has no arrays at the top level: remove the path, or use YAML"
        raise bad_contract(problem, path=elements[0].shorthand)
    name = header.get("name") or "variant"
    # An object without other rules is the default.
    plain = {"type": [], **plain_rules(paths.get(VariantPath(), ANY))}
    if plain["type"] == "object":
        del plain["type"]
    variant = {
        "name": name,
        "physicalType": "variant",
        "description": header.get("description"),
        "customProperties": _custom_properties(plain),
        "logicalType": "object",
        "properties": _property_of(paths, _children(paths), VariantPath()).get("properties"),
    }
    document = {"version": "1.0.0", "kind": "DataContract", "apiVersion": API_VERSION, "id": name, "name": name}
    variant = {name: value for name, value in variant.items() if value}
    return dump_yaml(document | {"status": "active", "schema": [variant]})


def _property_of(
    paths: Rules, children: Mapping[VariantPath, Mapping[Segment, VariantPath]], path: VariantPath
) -> dict[str, Any]:
    """Return the property of a path, with those of the paths below it."""
    rules = paths.get(path, ANY)
    plain = plain_rules(rules)
    types = plain.pop("type", None)
    child_rules = dict(children.get(path, {}))
    element = child_rules.pop(WILDCARD, None)
    if types is not None and types not in _LOGICAL:
        plain["type"] = types
    options = _keywords_of(plain)
    description, required, enum = options.pop("description", None), plain.pop("required", False), None
    if rules.types:
        # In the standard, a field that is not required may be null.
        plain.pop("nullable", None)
        if rules.allows_null is rules.required:
            plain["nullable"] = rules.allows_null
    if "values" in plain and not any(isinstance(value, dt.date) for value in plain["values"]):
        enum = [{"value": value} for value in _json(plain.pop("values"))]
    if element is not None and types is None:
        plain["type"] = []
    fields = {
        "description": description,
        "customProperties": _custom_properties(plain),
        "logicalType": types if types in _LOGICAL else None if element is None else "array",
        "logicalTypeOptions": options,
        "required": required,
        "properties": [
            {"name": str(name)} | _property_of(paths, children, inner) for name, inner in child_rules.items()
        ],
        "items": None if element is None else _property_of(paths, children, element),
        "enum": enum,
    }
    return {name: value for name, value in fields.items() if value}


def _custom_properties(plain: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"property": _PREFIX + name, "value": value} for name, value in _json(plain).items()]


def from_odcs(document: str, schema: str | None, column: str | None) -> dict[str, Any]:
    """Read the parameters of a contract from a document. Raises `VariantError` for an option that it cannot express."""
    with optional_libraries("contracts in the Open Data Contract Standard"):
        from open_data_contract_standard.model import OpenDataContractStandard
        from pydantic import ValidationError

    try:
        model = OpenDataContractStandard.model_validate(read_yaml(document, "an ODCS document") or {})
    except ValidationError as error:
        raise bad_contract(f"the text is not an ODCS document: {error}") from None
    if not model.schema_:
        raise bad_contract("the ODCS document has no schema: add one object under schema:")
    schema_object = _item_named(model.schema_, schema, "the ODCS document", "schema")
    paths: dict[VariantPath, PathRules] = {}
    place = f"schema {schema_object.name}"
    if column is not None:
        _read(_item_named(schema_object.properties or [], column, place, "property"), VariantPath(), place, paths)
    else:
        _refuse(schema_object, place, ("quality",))
        rules: dict[str, Any] = {"type": "object"}
        _add_extension(rules, _custom_rules(schema_object))
        if (root := rules_of(rules)).rules():
            paths[VariantPath()] = root
        for item in schema_object.properties or []:
            _read(item, VariantPath() / str(item.name), f"{place}/{item.name}", paths)
    return {"paths": paths, "name": model.name, "description": schema_object.description}


def _item_named(items: Sequence[Any], name: str | None, place: str, what: str) -> Any:
    """Return the item with a name, or the only item."""
    by_name = {item.name: item for item in items}
    if name is None and len(by_name) == 1:
        return items[0]
    if name not in by_name:
        problem = f"has several {what}s" if name is None else f"has no {what} {name!r}"
        raise bad_contract(f"{place} {problem}: name one of {', '.join(map(str, by_name))}")
    return by_name[name]


def _refuse(item: Any, place: str, names: tuple[str, ...]) -> None:
    for name in names:
        if getattr(item, name):
            raise bad_contract(f"{place}: a contract cannot express {name!r}: remove it")


def _read(item: Any, path: VariantPath, place: str, paths: dict[VariantPath, PathRules]) -> None:
    """Add the rules of a property and of those below it."""
    _refuse(item, place, ("quality", "unique", "primaryKey", "map"))
    try:
        options = {name: value for name, value in (item.logicalTypeOptions or {}).items() if name != "required"}
        if unknown := [name for name in options if name not in (*_NAMES, "format")]:
            raise bad_contract(f"a contract cannot express the option {unknown[0]!r}: remove it")
        rules = {"description": item.description, **_rules_of_keywords(options.items())}
        if item.logicalType is not None:
            if item.logicalType not in _LOGICAL:
                raise bad_contract(f"unknown logicalType {item.logicalType!r}: use {', '.join(_LOGICAL)}")
            rules["type"] = item.logicalType
        if item.enum:
            rules["values"] = [entry.value for entry in item.enum if entry.value is not None]
        if item.required and path.segments and path.segments[-1] is not WILDCARD:
            rules["required"] = True
        custom = _custom_rules(item)
        if custom.get("type", rules.get("type")):
            rules["nullable"] = not item.required
        _add_extension(rules, custom)
        paths[path] = rules_of(rules)
    except VariantError as error:
        raise bad_contract(f"{place}: {error.message}", path=path.shorthand) from None
    for inner in item.properties or []:
        _read(inner, path / str(inner.name), f"{place}/{inner.name}", paths)
    if item.items is not None:
        _read(item.items, path / WILDCARD, f"{place}/items", paths)


def _custom_rules(item: Any) -> dict[str, Any]:
    return {
        entry.property.removeprefix(_PREFIX): entry.value
        for entry in item.customProperties or []
        if (entry.property or "").startswith(_PREFIX)
    }
