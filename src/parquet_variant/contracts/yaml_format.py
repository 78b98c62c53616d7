"""The YAML of contracts: readable, and read strictly, with the line of each error.

Owns the form of the file. `path_rules` checks the values of rules.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from parquet_variant.contracts.contract import Contract, check_place, checked_path, rules_of
from parquet_variant.contracts.path_rules import PathRules, bad_contract
from parquet_variant.errors import VariantError, choice_of
from parquet_variant.path import VariantPath
from parquet_variant.support.lazy_names import optional_libraries

VERSION = 1
_KEYS = ("version", "name", "description", "paths")
_INT, _FLOAT = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"


def to_yaml(contract: Contract) -> str:
    """Return a contract as YAML, one rule per line."""
    texts = {name: text for name in ("name", "description") if (text := getattr(contract, name)) is not None}
    paths = {path.shorthand: plain_rules(rules) for path, rules in contract.paths.items()}
    return dump_yaml({"version": VERSION, **texts, "paths": paths}).rstrip("\n")


def dump_yaml(document: Any) -> str:
    """Return a document as YAML: tuples on one line, decimals with all digits, and unprintable characters escaped."""
    with optional_libraries("contracts in YAML"):
        import yaml

    class Dumper(yaml.SafeDumper):
        def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
            super().increase_indent(flow, False)

    def text(dumper: Any, value: str) -> Any:
        # PyYAML writes some line breaks of Unicode unquoted, and reads them as spaces.
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=None if value.isprintable() else '"')

    Dumper.add_representer(str, text)
    Dumper.add_representer(
        tuple, lambda dumper, items: dumper.represent_sequence("tag:yaml.org,2002:seq", list(items), True)
    )
    Dumper.add_representer(Decimal, lambda dumper, value: dumper.represent_scalar(_FLOAT, _float_text(value)))
    return str(yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120))


def plain_rules(rules: PathRules) -> dict[str, Any]:
    """Return the rules that are set as file formats name them: ``type`` is one name or several."""
    plain = rules.rules()
    types = plain.pop("types", ())
    named = {"type": types[0] if len(types) == 1 else types} if types else {}
    if types == ("null",):
        plain.pop("nullable", None)
    return {**named, **plain}


def _float_text(value: Decimal) -> str:
    """Return a decimal so that YAML 1.1 reads a float: with a point, and with a sign in the exponent."""
    digits, exponent, power = format(value, "f" if -20 < value.adjusted() < 20 else "e").partition("e")
    return f"{digits if '.' in digits else digits + '.0'}{exponent}{power}"


def from_yaml(text: str) -> Contract:
    """Read a contract. Raises `VariantError` for invalid text, with the line."""
    with optional_libraries("contracts in YAML"):
        import yaml

    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f"line {mark.line + 1}: "
        problem = getattr(error, "problem", None) or "a character is not allowed"
        raise bad_contract(f"{place}the text is not YAML: {problem}") from None
    return _Reader(loader).contract(root)


class _Reader:
    """Reads the nodes of a document, which know their lines."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def contract(self, root: Any) -> Contract:
        if root is None:
            raise bad_contract("the contract is empty: write version: 1 and paths:")
        document = dict(self._entries(root, "the contract"))
        for key, (line, _) in document.items():
            if key not in _KEYS:
                raise bad_contract(f"line {line}: unknown key {key!r}: {choice_of(key, _KEYS)}")
        if "version" not in document:
            raise bad_contract(f"line {_line(root)}: the contract has no version: write version: {VERSION}")
        line, node = document["version"]
        if self._value(node) != VERSION:
            raise bad_contract(f"line {line}: version is {self._value(node)!r}: this release reads version {VERSION}")
        texts: dict[str, str] = {}
        for key in ("name", "description"):
            if key in document:
                line, node = document[key]
                texts[key] = self._value(node)
                if not isinstance(texts[key], str):
                    raise bad_contract(f"line {line}: {key} is {texts[key]!r}: write text")
        if "paths" not in document:
            raise bad_contract(f"line {_line(root)}: the contract has no paths: write paths: and one entry per path")
        paths: dict[VariantPath, PathRules] = {}
        for key, (line, node) in self._entries(document["paths"][1], "paths"):
            path, rules = self._path(key, line, node)
            if path in paths:
                raise bad_contract(f"line {line}: the path occurs twice: keep one of the two", path=path.shorthand)
            paths[path] = rules
        return Contract(paths, **texts)

    def _path(self, key: str, line: int, node: Any) -> tuple[VariantPath, PathRules]:
        try:
            path = checked_path(key)
        except VariantError as error:
            raise bad_contract(f"line {line}: {error.message}", path=key) from None
        values: dict[str, Any] = {}
        if _is_null(node):
            return path, PathRules()
        for name, (at, rule) in self._entries(node, "the rules of a path"):
            line = at
            values[name] = self._value(rule)
            try:
                # Every rule alone first, so that the error has its line.
                rules_of({name: values[name]})
                rules = rules_of(values)
                check_place(path, rules)
            except VariantError as error:
                raise bad_contract(f"line {line}: {error.message}", path=path.shorthand) from None
        return path, rules_of(values)

    def _entries(self, node: Any, what: str) -> Iterator[tuple[str, tuple[int, Any]]]:
        if type(node).__name__ != "MappingNode":
            raise bad_contract(f"line {_line(node)}: {what} must be a mapping of keys to values")
        seen = set()
        for key, value in node.value:
            name = str(key.value)
            if name in seen:
                raise bad_contract(f"line {_line(key)}: {name} occurs twice: keep one of the two")
            seen.add(name)
            yield name, (_line(key), value)

    def _value(self, node: Any) -> Any:
        """Return the value of a node; floats as decimals, with all their digits."""
        if type(node).__name__ == "SequenceNode":
            return [self._value(item) for item in node.value]
        try:
            value = self._loader.construct_object(node, deep=True)
        except ValueError as error:
            raise bad_contract(f"line {_line(node)}: {node.value!r} is not valid: {error}") from None
        if node.tag == _FLOAT and isinstance(value, float) and value - value == 0:
            try:
                return Decimal(node.value.replace("_", ""))
            except ArithmeticError:
                return value
        if isinstance(value, dt.datetime) and value.tzinfo is not None:
            return value.astimezone(dt.UTC)
        return value


def _line(node: Any) -> int:
    return int(node.start_mark.line) + 1


def _is_null(node: Any) -> bool:
    return str(node.tag) == "tag:yaml.org,2002:null"
