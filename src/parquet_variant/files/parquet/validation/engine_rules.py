"""Rules about engines: what a version of an engine does with files that have some traits.

The rules are the data of ``engine_rules.toml``; each has the evidence that somebody saw. Owns the traits of files, the
comparison of versions, and the verdict on a version; `Table.validate` and `Table.compat` report verdicts.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import pyarrow as pa

from parquet_variant.encoding.metadata import decode_metadata
from parquet_variant.errors import VariantError
from parquet_variant.files.parquet.format.columns import VariantColumn, shredded_groups
from parquet_variant.support.records import Record

# From best to worst. "unknown": no rule says that the engine reads all traits of the file.
Result: TypeAlias = Literal["reads", "json", "struct", "unknown", "differs", "null", "refuses"]
READABLE: tuple[Result, ...] = ("reads", "json", "struct")
_DEEPEST = 98  # Levels that every reader opens.


class EngineRule(Record):
    """What some versions of an engine do with files.

    `result`: ``"reads"``: Variants with equal values. ``"json"``: JSON text. ``"struct"``: the physical columns.
      ``"differs"``: other values. ``"null"``: NULL without an error. ``"refuses"``: an error. ``"unknown"``: it varies.
    """

    engine: str
    versions: str  # ``"4.0"``, or ``"1.3 to 2.0"`` with both ends.
    traits: tuple[str, ...]  # Of READABLE results: all that a file may have. Of other results: those it must have.
    result: Result
    evidence: str
    why: str = ""
    remedy: str = ""  # The command after which the engine reads the file, at least as a struct.

    @property
    def ends(self) -> tuple[str, str]:
        """The first and the last version."""
        first, _, last = self.versions.partition(" to ")
        return first, last or first

    def covers(self, version: str) -> bool:
        """Return whether a version is in the range; 4.0.5 is a version of 4.0."""
        number, first, last = map(version_numbers, (version, *self.ends))
        return first <= number + (0,) * len(first) and number[: len(last)] <= last

    def matches(self, traits: Collection[str]) -> bool:
        """Return whether the rule speaks of files with these traits."""
        if self.result in READABLE:
            return set(traits) <= set(self.traits)
        return set(self.traits) <= set(traits)

    @property
    def effect(self) -> str:
        """The effect on a user, and how to avoid it."""
        return f"{self.why} ({self.remedy})" if self.remedy else self.why


@cache
def engine_rules() -> tuple[EngineRule, ...]:
    """Return all rules."""
    text = Path(__file__).with_name("engine_rules.toml").read_text("utf-8")
    return tuple(EngineRule(**rule | {"traits": tuple(rule["traits"])}) for rule in tomllib.loads(text)["rule"])


def version_numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, without those of a suffix; none if it does not begin with a number.

    >>> version_numbers("4.1.0rc1")
    (4, 1, 0)
    """
    start = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, start[0].split("."))) if start else ()


def verdict_of(engine: str, version: str, files: Sequence[Collection[str]]) -> tuple[Result, EngineRule | None]:
    """Return what a version of an engine does with files of some traits, and the rule that says so: the worst match.

    >>> verdict_of("pyarrow", "21.0.0", [{"parquet", "annotated", "unshredded"}])[0]
    'refuses'
    >>> verdict_of("pyarrow", "99", [{"parquet", "annotated", "unshredded"}])
    ('unknown', None)
    """
    order = get_args(Result).index
    rules = [rule for rule in engine_rules() if rule.engine == engine and rule.covers(version)]
    verdicts: list[tuple[Result, EngineRule | None]] = []
    for traits in files:
        worst = max((rule for rule in rules if rule.matches(traits)), key=lambda rule: order(rule.result), default=None)
        verdicts.append(("unknown", None) if worst is None else (worst.result, worst))
    return max(verdicts, key=lambda verdict: order(verdict[0]))


def schema_traits(column: VariantColumn) -> list[str]:
    """Return the traits in the schema of a column that matter to engines."""
    traits = ["annotated" if column.node.annotated else "unannotated"]
    traits += ["inner"] if len(column.path) > 1 else []
    traits += ["deep"] if any(len(leaf.path) > _DEEPEST for leaf in column.node.leaves()) else []
    traits.append({"final": "shredded", "unshredded": "unshredded"}.get(column.layout, "draft"))
    for group in shredded_groups(column):
        if group.residual is None:
            traits.append("no_value")
        if group.typed is not None and group.typed.is_leaf:
            traits += [trait.strip("(") for trait in ("TIME(", "NANOS", "UUID") if trait in group.typed.logical]
        elif group.typed is not None:
            names = set(group.typed.fields)
            traits += [] if group.typed.is_list else ["object"]
            traits += ["nested"] if group.path.segments else []
            traits += ["case_twins"] if len({name.casefold() for name in names}) < len(names) else []
    return traits


def name_traits(storage: pa.StructArray) -> list[str]:
    """Return the traits in the metadata dictionaries of a column."""
    metadata = storage.field("metadata")
    metadata = metadata if pa.types.is_dictionary(metadata.type) else metadata.dictionary_encode()
    for value in metadata.dictionary.to_pylist():
        try:
            names = decode_metadata(value or b"")
        except VariantError:
            continue
        if sorted(names) != sorted(names, key=lambda name: name.encode("utf-16-be", "surrogatepass")):
            return ["utf16"]
    return []
