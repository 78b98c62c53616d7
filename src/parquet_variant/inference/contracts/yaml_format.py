"""Contracts in files: the YAML of contracts, which is read strictly, with the line of each error; and other formats.

YAML follows the core schema of version 1.2, with the dates and timestamps of version 1.1. PyYAML composes the nodes,
with the scalars of this module instead of those of YAML 1.1 (``no`` is false, ``010`` is 8, ``1:30`` is 90).
`path_rules` checks the values of rules.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from itertools import count
from typing import Any, ClassVar

from parquet_variant.errors import VariantError, choice_of
from parquet_variant.inference.contracts.path_rules import PathRules, bad_contract, checked_path, checked_rules
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.types.path import VariantPath

VERSION = 1
_KEYS = ("version", "name", "description", "paths")
_TAG = "tag:yaml.org,2002:"
_MAX_DEPTH = 100
# The largest number of values after aliases are replaced: a few aliases can stand for billions of values.
_MAX_VALUES = 100_000


def _timestamp(text: str) -> dt.date:
    if len(text) == len("2026-01-31"):
        return dt.date.fromisoformat(text)
    moment = dt.datetime.fromisoformat(text.replace(" ", "T", 1).replace(" ", ""))
    return moment if moment.tzinfo is None else moment.astimezone(dt.UTC)


# The tags of scalars, the form of plain scalars that have it, and the conversion; the first form that matches counts.
_SCALARS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "null": (r"null|Null|NULL|~|", lambda text: None),
    "bool": (r"true|True|TRUE|false|False|FALSE", lambda text: text.lower() == "true"),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", lambda text: int(text, 0 if text[1:2] in ("o", "x") else 10)),
    "float": (
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN",
        lambda text: float(text.replace(".", "")) if text[-1] in "fFnN" else Decimal(text),
    ),
    "timestamp": (
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})? *(Z|[-+][0-9]{2}:[0-9]{2})?)?",
        _timestamp,
    ),
    "str": (r"(?s:.*)", str),
}
_TAGS = {"scalar": tuple(_SCALARS), "sequence": ("seq",), "mapping": ("map",)}


@cache
def _yaml() -> tuple[Any, Any, Any]:
    """Return PyYAML, and a loader and a dumper that know the scalars of version 1.2."""
    with optional_libraries("contracts in YAML"):
        import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers: ClassVar[dict[Any, Any]] = {}

    class Dumper(yaml.SafeDumper):
        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, False)

    for name, (form, _) in _SCALARS.items():
        if name != "str":
            for schema in (Loader, Dumper):
                schema.add_implicit_resolver(_TAG + name, re.compile(rf"(?:{form})\Z"), None)
    # PyYAML writes some line breaks of Unicode unquoted.
    Dumper.add_representer(
        str, lambda dumper, text: dumper.represent_scalar(f"{_TAG}str", text, None if text.isprintable() else '"')
    )
    Dumper.add_representer(tuple, lambda dumper, items: dumper.represent_sequence(f"{_TAG}seq", list(items), True))
    Dumper.add_representer(Decimal, lambda dumper, value: dumper.represent_scalar(f"{_TAG}float", _float_text(value)))
    return yaml, Loader, Dumper


def to_yaml(rules: Mapping[VariantPath, PathRules], header: Mapping[str, str]) -> str:
    """Return a contract as YAML, one rule per line."""
    paths = {path.shorthand: plain_rules(of_path) for path, of_path in rules.items()}
    return dump_yaml({"version": VERSION, **header, "paths": paths})


def dump_yaml(document: Any) -> str:
    """Return a document as YAML: tuples on one line, decimals with all digits, and unprintable characters escaped."""
    yaml, _, dumper = _yaml()
    return str(yaml.dump(document, Dumper=dumper, sort_keys=False, allow_unicode=True, width=120)).rstrip("\n")


def plain_rules(rules: PathRules) -> dict[str, Any]:
    """Return the rules that are set as file formats name them: ``type`` is one name or several."""
    plain = rules.rules()
    types = plain.pop("types", ())
    named = {"type": types[0] if len(types) == 1 else types} if types else {}
    if types == ("null",):
        plain.pop("nullable", None)
    return {**named, **plain}


def _float_text(value: Decimal) -> str:
    """Return a decimal so that every version of YAML reads a float: with a point, and with a sign in the exponent."""
    digits, exponent, power = format(value, "f" if -20 < value.adjusted() < 20 else "e").partition("e")
    return f"{digits if '.' in digits else digits + '.0'}{exponent}{power}"


class LinedDict(dict[str, Any]):
    """A mapping of a document, with the line of each key."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, int] = {}


def from_yaml(text: str) -> dict[str, Any]:
    """Read the parameters of a contract. Raises `VariantError` for invalid text, with the line."""
    document = read_yaml(text, "YAML")
    if document is None:
        raise bad_contract("the contract is empty: write version: 1 and paths:")
    line, name, paths = 1, None, dict[VariantPath, PathRules]()
    try:
        contract = _mapping(document, "the contract")
        for key, value in contract.items():
            line = contract.lines[key]
            if key not in _KEYS:
                raise bad_contract(f"unknown key {key!r}: {choice_of(key, _KEYS)}")
            if key == "version" and value != VERSION:
                raise bad_contract(f"version is {value!r}: this release reads version {VERSION}")
            if key in ("name", "description") and not isinstance(value, str):
                raise bad_contract(f"{key} is {value!r}: write text")
        if missing := [key for key in ("version", "paths") if key not in contract]:
            raise bad_contract(f"the contract has no {missing[0]}: write version: {VERSION}, and one entry per path")
        line = contract.lines["paths"]
        entries = _mapping(contract["paths"], "paths")
        for name, value in entries.items():
            line = entries.lines[name]
            path, rules = checked_path(name), dict[str, Any]()
            if path in paths:
                raise bad_contract("the path occurs twice: keep one of the two")
            paths[path] = PathRules()
            # The rules are checked one after the other, so that an error has its line.
            of_path = _mapping(LinedDict() if value is None else value, "the rules of a path")
            for rule in of_path:
                line, rules[rule] = of_path.lines[rule], of_path[rule]
                paths[path] = checked_rules(path, rules)
    except VariantError as error:
        raise bad_contract(f"line {line}: {error.message}", path=name) from None
    return {"paths": paths, **{key: contract[key] for key in ("name", "description") if key in contract}}


def _mapping(value: Any, what: str) -> LinedDict:
    if not isinstance(value, LinedDict):
        raise bad_contract(f"{what} must be a mapping of keys to values")
    return value


def read_yaml(text: str, what: str) -> Any:
    """Return the value of a document, with a `LinedDict` for each mapping; None for an empty document.

    `what`: the name of the document, for messages.
    Raises `VariantError` with the line for text that is not YAML, several documents, keys that occur twice, tags other
    than those of the core schema, more than 100 levels, and aliases that stand for more than 100,000 values.
    """
    if not isinstance(text, str | bytes):
        raise bad_contract(f"{what} is {text!r}: give the text")
    yaml, loader, _ = _yaml()
    try:
        root = yaml.compose(text, loader)
    except yaml.YAMLError as error:
        mark, context = getattr(error, "problem_mark", None), getattr(error, "context", None)
        problem = getattr(error, "problem", None) or "a character is not allowed"
        raise bad_contract(
            f"{'' if mark is None else f'line {mark.line + 1}: '}the text is not {what}: "
            f"{f'{context}, ' if context else ''}{problem}"
        ) from None
    except RecursionError:
        raise bad_contract(f"values are nested more than {_MAX_DEPTH} levels deep: flatten them") from None
    return None if root is None else _value(root, 0, count(1))


def _value(node: Any, depth: int, numbers: Iterator[int]) -> Any:
    """Return the value of a node of PyYAML; `numbers` counts all values."""
    line, tag = node.start_mark.line + 1, node.tag.removeprefix(_TAG)
    if depth > _MAX_DEPTH:
        raise bad_contract(f"line {line}: values are nested more than {_MAX_DEPTH} levels deep: flatten them")
    if next(numbers) > _MAX_VALUES:
        raise bad_contract(f"line {line}: the document has more than {_MAX_VALUES:,} values, aliases replaced")
    if tag not in _TAGS[node.id]:
        shown = node.tag.replace(_TAG, "!!")
        problem = f"line {line}: unknown tag {shown}: remove it (contracts have the tags of YAML's core schema)"
        raise bad_contract(problem)
    if node.id == "sequence":
        return [_value(item, depth + 1, numbers) for item in node.value]
    if node.id == "scalar":
        form, convert = _SCALARS[tag]
        if not re.fullmatch(form, node.value):
            raise bad_contract(f"line {line}: {node.value!r} is not a value of type !!{tag}: remove the tag")
        try:
            return convert(node.value)
        except (ValueError, ArithmeticError) as error:
            raise bad_contract(f"line {line}: {node.value[:80]!r} is not valid: {error}") from None
    mapping = LinedDict()
    for key, item in node.value:
        name, line = key.value, key.start_mark.line + 1
        if key.id != "scalar":
            raise bad_contract(f"line {line}: a key is not a string: write a string")
        if name == "<<" and key.style is None:
            raise bad_contract(f"line {line}: YAML 1.2 has no merge key <<: repeat the entries")
        if name in mapping:
            raise bad_contract(f"line {line}: {name} occurs twice: keep one of the two")
        mapping[name], mapping.lines[name] = _value(item, depth + 1, numbers), line
    return mapping
