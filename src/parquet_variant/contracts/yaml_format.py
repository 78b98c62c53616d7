"""The YAML of contracts: readable, and read strictly, with the line of each error.

Owns the form of the file. `yaml_text` reads the text, and `path_rules` checks the values of rules.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from parquet_variant.contracts.contract import Contract, check_place, checked_path, rules_of
from parquet_variant.contracts.path_rules import PathRules, bad_contract
from parquet_variant.contracts.yaml_text import YamlNode, is_string, read_yaml
from parquet_variant.errors import VariantError, choice_of
from parquet_variant.path import VariantPath
from parquet_variant.support.lazy_names import optional_libraries

VERSION = 1
_KEYS = ("version", "name", "description", "paths")
_FLOAT = "tag:yaml.org,2002:float"


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
        # PyYAML writes some line breaks of Unicode unquoted, and strings that are numbers in YAML 1.2 only (``0o17``).
        style = None if value.isprintable() and is_string(value) else '"'
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

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
    """Return a decimal so that every version of YAML reads a float: with a point, and with a sign in the exponent."""
    digits, exponent, power = format(value, "f" if -20 < value.adjusted() < 20 else "e").partition("e")
    return f"{digits if '.' in digits else digits + '.0'}{exponent}{power}"


def from_yaml(text: str) -> Contract:
    """Read a contract. Raises `VariantError` for invalid text, with the line."""
    root = read_yaml(text, "YAML")
    if root is None or root.value is None:
        raise bad_contract("the contract is empty: write version: 1 and paths:")
    document = _entries(root, "the contract")
    for key, (line, _) in document.items():
        if key not in _KEYS:
            raise bad_contract(f"line {line}: unknown key {key!r}: {choice_of(key, _KEYS)}")
    if "version" not in document:
        raise bad_contract(f"line {root.line}: the contract has no version: write version: {VERSION}")
    line, node = document["version"]
    if node.plain != VERSION:
        raise bad_contract(f"line {line}: version is {node.plain!r}: this release reads version {VERSION}")
    texts: dict[str, Any] = {}
    for key in ("name", "description"):
        if key in document:
            line, node = document[key]
            texts[key] = node.plain
            if not isinstance(texts[key], str):
                raise bad_contract(f"line {line}: {key} is {texts[key]!r}: write text")
    if "paths" not in document:
        raise bad_contract(f"line {root.line}: the contract has no paths: write paths: and one entry per path")
    paths: dict[VariantPath, PathRules] = {}
    for key, (line, node) in _entries(document["paths"][1], "paths").items():
        path, rules = _path(key, line, node)
        if path in paths:
            raise bad_contract(f"line {line}: the path occurs twice: keep one of the two", path=path.shorthand)
        paths[path] = rules
    return Contract(paths, **texts)


def _path(key: str, line: int, node: YamlNode) -> tuple[VariantPath, PathRules]:
    try:
        path = checked_path(key)
    except VariantError as error:
        raise bad_contract(f"line {line}: {error.message}", path=key) from None
    values: dict[str, Any] = {}
    if node.value is None:
        return path, PathRules()
    for name, (rule_line, rule) in _entries(node, "the rules of a path").items():
        values[name] = rule.plain
        try:
            # Every rule alone first, so that the error has its line.
            rules_of({name: values[name]})
            check_place(path, rules_of(values))
        except VariantError as error:
            raise bad_contract(f"line {rule_line}: {error.message}", path=path.shorthand) from None
    return path, rules_of(values)


def _entries(node: YamlNode, what: str) -> dict[str, tuple[int, YamlNode]]:
    if not isinstance(node.value, dict):
        raise bad_contract(f"line {node.line}: {what} must be a mapping of keys to values")
    return node.value
