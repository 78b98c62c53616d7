"""Contracts in files: the YAML of contracts, which is read strictly, with the line of each error; and other formats.

YAML follows the core schema of version 1.2, with the dates and timestamps of version 1.1. PyYAML reads the syntax, as
events. This module makes values of them, because PyYAML's own values follow YAML 1.1 (``no`` is false, ``010`` is 8,
``1:30`` is 90), and its constructors recurse without a limit. `path_rules` checks the values of rules.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from parquet_variant.errors import VariantError, choice_of
from parquet_variant.inference.contracts.path_rules import PathRules, bad_contract, check_place, checked_path, rules_of
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.types.path import VariantPath

VERSION = 1
_KEYS = ("version", "name", "description", "paths")
_FLOAT = "tag:yaml.org,2002:float"


def to_yaml(rules: Mapping[VariantPath, PathRules], texts: Mapping[str, str]) -> str:
    """Return a contract as YAML, one rule per line."""
    paths = {path.shorthand: plain_rules(of_path) for path, of_path in rules.items()}
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


def from_yaml(text: str) -> dict[str, Any]:
    """Read the parameters of a contract. Raises `VariantError` for invalid text, with the line."""
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
    return {"paths": paths, **texts}


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


_MAX_DEPTH = 100
# The largest number of values after aliases are replaced: a few aliases can stand for billions of values.
_MAX_VALUES = 100_000
_TAG = "tag:yaml.org,2002:"
_COLLECTIONS = {"MappingStartEvent": "map", "SequenceStartEvent": "seq"}


def _timestamp(text: str) -> dt.date:
    if len(text) == len("2026-01-31"):
        return dt.date.fromisoformat(text)
    moment = dt.datetime.fromisoformat(text.replace(" ", "T", 1).replace(" ", ""))
    return moment if moment.tzinfo is None else moment.astimezone(dt.UTC)


# The name of each tag, the form of plain scalars that have it, and the conversion; the first form that matches counts.
_SCALARS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "null": (r"null|Null|NULL|~|", lambda text: None),
    "bool": (r"true|True|TRUE|false|False|FALSE", lambda text: text.lower() == "true"),
    "int": (r"[-+]?[0-9]+", int),
    "octal": (r"0o[0-7]+", partial(int, base=0)),
    "hexadecimal": (r"0x[0-9a-fA-F]+", partial(int, base=0)),
    "float": (r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", Decimal),
    "special": (r"[-+]?(\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN", lambda text: float(text.replace(".", ""))),
    "timestamp": (
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})? *(Z|[-+][0-9]{2}:[0-9]{2})?)?",
        _timestamp,
    ),
    "str": (r"(?s).*", str),
}


@dataclass(frozen=True, slots=True)
class YamlNode:
    """A value of a document: a scalar, a list of nodes, or a mapping of keys to the line of the key and a node."""

    line: int
    value: Any
    values_inside: int = 1

    @property
    def plain(self) -> Any:
        """The value with plain values inside."""
        if isinstance(self.value, dict):
            return {key: node.plain for key, (_, node) in self.value.items()}
        return [node.plain for node in self.value] if isinstance(self.value, list) else self.value


def read_yaml(text: str, what: str) -> YamlNode | None:
    """Return the value of a document; None for an empty document.

    `what`: the name of the document, for messages.
    Raises `VariantError` with the line for text that is not YAML, several documents, keys that occur twice, tags other
    than those of the core schema, more than 100 levels, and aliases that stand for more than 100,000 values.
    """
    with optional_libraries("contracts in YAML"):
        import yaml

    events = (event for event in yaml.parse(text, Loader=yaml.SafeLoader))
    try:
        kinds = ((type(event).__name__, event) for event in events)
        content = ((kind, event) for kind, event in kinds if not kind.startswith(("Stream", "Document")))
        reader = _Reader(content)
        first = next(content, None)
        document = None if first is None else reader.node(*first, 0)
        if (extra := next(content, None)) is not None:
            raise bad_contract(f"line {_line(extra[1])}: the text has several documents: keep one of them")
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = "" if mark is None else f"line {mark.line + 1}: "
        problem = getattr(error, "problem", None) or "a character is not allowed"
        raise bad_contract(f"{place}the text is not {what}: {problem}") from None
    return document


def is_string(text: str) -> bool:
    """Return whether a plain scalar is a string.

    >>> is_string("no"), is_string("010"), is_string("1:30"), is_string("0o17")
    (True, False, True, False)
    """
    return _tag_of(text) == "str"


class _Reader:
    """Makes nodes of events."""

    def __init__(self, events: Iterator[tuple[str, Any]]) -> None:
        self._events = events
        # None for an anchor whose node is not complete.
        self._anchors: dict[str, YamlNode | None] = {}
        self._values = 0

    def node(self, kind: str, event: Any, depth: int) -> YamlNode:
        line = _line(event)
        if depth > _MAX_DEPTH:
            raise bad_contract(f"line {line}: values are nested more than {_MAX_DEPTH} levels deep: flatten them")
        if kind == "AliasEvent":
            if (aliased := self._anchors.get(event.anchor)) is None:
                raise bad_contract(f"line {line}: *{event.anchor} stands for no value before it: write the value")
            self._count(aliased.values_inside, line)
            return aliased
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        before = self._values
        self._count(1, line)
        if kind == "ScalarEvent":
            value = _scalar(event, line)
        elif event.tag not in (None, "!", _TAG + _COLLECTIONS[kind]):
            raise _unknown_tag(event.tag, line)
        else:
            value = self._mapping(depth) if kind == "MappingStartEvent" else list(self._nodes(depth))
        node = YamlNode(line, value, self._values - before)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _count(self, values: int, line: int) -> None:
        self._values += values
        if self._values > _MAX_VALUES:
            raise bad_contract(f"line {line}: the document has more than {_MAX_VALUES:,} values, aliases replaced")

    def _nodes(self, depth: int) -> Iterator[YamlNode]:
        for kind, event in self._events:
            if kind.endswith("EndEvent"):
                return
            yield self.node(kind, event, depth + 1)

    def _mapping(self, depth: int) -> dict[str, tuple[int, YamlNode]]:
        entries: dict[str, tuple[int, YamlNode]] = {}
        for kind, event in self._events:
            if kind == "MappingEndEvent":
                break
            if kind != "ScalarEvent":
                raise bad_contract(f"line {_line(event)}: a key is not a string: write a string")
            key, line = str(event.value), _line(event)
            if key == "<<" and event.implicit[0]:
                raise bad_contract(f"line {line}: YAML 1.2 has no merge key <<: repeat the entries")
            if key in entries:
                raise bad_contract(f"line {line}: {key} occurs twice: keep one of the two")
            entries[key] = line, self.node(*next(self._events), depth + 1)
        return entries


def _scalar(event: Any, line: int) -> Any:
    text = str(event.value)
    if event.tag is None:
        tag = _tag_of(text) if event.implicit[0] else "str"
    elif event.tag == "!":
        tag = "str"
    else:
        name = event.tag.removeprefix(_TAG)
        names = {"int": ("int", "octal", "hexadecimal"), "float": ("int", "float", "special"), "str": ("str",)}
        if name not in ("octal", "hexadecimal", "special") and event.tag == _TAG + name and name in _SCALARS:
            tag = "str" if name == "str" else _tag_of(text)
            if tag not in names.get(name, (name,)):
                raise bad_contract(f"line {line}: {text!r} is not a value of type !!{name}: remove the tag")
            tag = "float" if (name, tag) == ("float", "int") else tag
        else:
            raise _unknown_tag(event.tag, line)
    try:
        return _SCALARS[tag][1](text)
    except (ValueError, ArithmeticError) as error:
        raise bad_contract(f"line {line}: {text[:80]!r} is not valid: {error}") from None


def _tag_of(text: str) -> str:
    return next(tag for tag, (form, _) in _SCALARS.items() if re.fullmatch(form, text))


def _unknown_tag(tag: str, line: int) -> VariantError:
    shown = tag.replace(_TAG, "!!")
    return bad_contract(f"line {line}: unknown tag {shown}: remove it (contracts have the tags of YAML's core schema)")


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
