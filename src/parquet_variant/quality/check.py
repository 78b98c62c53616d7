"""`Table.check`: the violations of a contract in data of any format.

Owns how each source is decided: footers of shredded files, then the columns of the rules that footers do not prove,
then all values. The conclusions from footers rely on the shredding specification as scans do: a shredded field of an
object, and a shredded array, is never in a ``value`` column. Leaves the facts to `footers`, and the evaluation of
values to `inference.contracts.contract_check`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import field, replace
from decimal import Decimal
from functools import partial
from operator import call
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.parts import nested_array
from parquet_variant.arrays.tapes import array_tapes
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.scalars import MICROS_PER_DAY
from parquet_variant.errors import check_count
from parquet_variant.files.parquet.format.facts import NO_NAN_KEY, FileFacts
from parquet_variant.files.parquet.format.files import OpenFile
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.inference.contracts.contract import Contract
from parquet_variant.inference.contracts.contract_check import ContractCheck
from parquet_variant.inference.contracts.path_rules import PathRules, order_of, scalar_key
from parquet_variant.inference.contracts.report import ContractCounts, ContractReport
from parquet_variant.io.parallel import in_order, thread_count
from parquet_variant.ops.conversions import cast_to_variant
from parquet_variant.quality.footers import PathFacts, VariantFacts, variant_facts
from parquet_variant.quality.sources import DataFile, DataSet, RowBatch, data_of
from parquet_variant.quality.value_figures import RANGE_KINDS
from parquet_variant.support.records import Record
from parquet_variant.tables.table.table import Table
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
        self._no_nan = NO_NAN_KEY in (facts.file.metadata.metadata or {})
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

    def _proves(self, path: VariantPath, rules: PathRules, name: str) -> bool:
        if name == "required" and not path.segments:
            return self._facts.null_rows == 0
        if name == "presence" and not path.segments:
            return False
        group = self._facts.paths.get(path)
        if group is None:
            # The path is not shredded, so the rule holds if no value can be there.
            outer = self._outer(path)
            group = self._facts.paths[outer]
            if group.open_groups or group.stored is None:
                return False
            has_no_place = len(path) > len(outer) + 1 or group.type_name != "object" or group.typed == 0
            return has_no_place or name not in ("required", "presence")
        places = self._facts.places(path)
        typed_everywhere = group.typed is not None and group.typed == places
        if name in ("required", "presence"):
            if typed_everywhere or group.typed is None or group.stored is None or group.type_name == "object":
                return typed_everywhere
            return group.typed + group.stored == places
        if name == "nullable":
            return typed_everywhere or not group.has_residual
        if name == "extra_fields":
            if group.open_groups or group.stored is None:
                return False
            return all(inner.typed == inner.stored == 0 for inner in self._extra_fields(path))
        if group.open_groups and not (typed_everywhere and group.type_name == "object"):
            return False
        return group.typed == 0 or (group.typed is not None and self._proves_typed(group, rules, name))

    def _outer(self, path: VariantPath) -> VariantPath:
        """Return the nearest path above that is shredded."""
        while path not in self._facts.paths:
            path = path.parent
        return path

    def _extra_fields(self, path: VariantPath) -> Iterator[PathFacts]:
        """Yield the shredded fields of a path that the contract does not name."""
        size = len(path)
        named = {inner.segments[size] for inner in self._contract.paths if inner != path and is_within(inner, path)}
        for inner, group in self._facts.paths.items():
            name = inner.segments[-1] if inner.segments and inner.parent == path else None
            if isinstance(name, str) and name not in named:
                yield group

    def _proves_typed(self, group: PathFacts, rules: PathRules, name: str) -> bool:
        """Return whether all values of the typed column satisfy a rule."""
        kind, typed, arrow = group.type_name, group.group.typed, group.arrow
        if kind is None or typed is None:
            return False
        if name == "type":
            return kind in rules.types or ("number" in rules.types and RANGE_KINDS.get(kind) == "number")
        if name in ("min_items", "max_items"):
            return kind != "array" or (name == "max_items" and group.elements == 0)
        if name in _OF_STRINGS:
            return kind != "string"
        if arrow is None or (name != "values" and kind not in RANGE_KINDS):
            return name != "values"  # The rule does not apply to objects, arrays, and other types.
        bound = rules.min if name == "min" else rules.max
        if name != "values" and isinstance(bound, dt.date) is (RANGE_KINDS[kind] == "number"):
            return True  # The rule does not apply to values of the type.
        bounds = self._facts.columns.statistics(typed)
        low, high = bounds.lower, bounds.upper
        if name == "values":
            return low is not None and high is not None and _only_values(low, high, arrow, rules)
        if low is None or high is None or bound is None or (pa.types.is_floating(arrow) and not self._no_nan):
            return False
        limit = float(order_of(bound)) if pa.types.is_floating(arrow) else order_of(bound)
        return bool(_ordered(low, arrow) >= limit if name == "min" else _ordered(high, arrow) <= limit)

    def string_columns(self, row_group: int) -> dict[VariantPath, SchemaNode]:
        """Return the columns with a dictionary that hold only strings, whose open rules the distinct values decide."""
        columns = {}
        for path, names in self.open_rules.items():
            group, typed = self._facts.paths.get(path), None
            if group is not None and not group.has_residual and group.arrow == pa.string() and not path.has_wildcard:
                typed = group.group.typed
            if typed is None or not set(names) <= {*_OF_STRINGS, "values"}:
                continue
            chunk = self._facts.columns.chunk(typed, row_group)
            if chunk.has_dictionary_page and set(chunk.encodings) <= _DICTIONARY_ENCODINGS:
                columns[path] = typed
        return columns

    def leaves(self) -> list[SchemaNode]:
        """Return the columns that decide the rules that the footer does not prove."""
        columns = []
        for path, names in self.open_rules.items():
            outer = self._outer(path)
            group = self._facts.paths[outer]
            columns.append(group.group.residual)
            if group.is_leaf or group.group.typed is None:
                columns.append(group.group.typed)
                continue
            # Any leaf shows which values are objects or arrays, and the lengths of the arrays.
            columns.append(min(group.group.typed.leaves(), key=lambda leaf: self._facts.columns.size([leaf])))
            if outer == path and "extra_fields" in names:
                columns += [leaf for inner in self._extra_fields(path) for leaf in inner.group.group.leaves()]
        columns.append(self._facts.column.node.child("metadata"))
        return list({leaf.dotted: leaf for leaf in columns if leaf is not None}.values())


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


# Ways to decide a rule, the cheapest first.
_FOOTERS, _COLUMNS, _VALUES = _METHODS = ("footers", "columns", "values")
# The largest share of distinct values of a string column whose dictionary is checked instead of its values.
_MAX_DISTINCT = 0.2


def check(
    table: Table, contract: Any, *, values: bool = True, examples: int = 5, threads: int | None = None
) -> ContractReport:
    """Check the Variants of a table against a contract; see `Table.check`."""
    check_count("examples", examples)
    rules = ContractCheck(Contract.of(contract), "warn", values, examples)
    return check_data(data_of(table), rules, threads)


def check_data(data: DataSet, rules: ContractCheck, threads: int | None) -> ContractReport:
    """Return the violations of a contract in a data set."""
    workers, result = thread_count(threads), _Result()
    if data.kind == "json":
        result.decide(_rules_in(rules.contract), _VALUES)
        for batch in data.text_results(replace(data.text, contract=rules), lambda tape: None, workers):
            result.parts.append(batch.counts.broken)
            result.bytes_read += batch.counts.text_bytes
    elif data.files and not data.has_deletes:
        for plan in in_order(partial(_plan_file, rules), data.files, workers):
            result.bytes_read += plan.bytes_read
            result.parts += plan.parts
            for rule, method in plan.methods.items():
                result.decide([rule], method)
            result.work = [*result.work, *plan.work]
    else:
        result.work = (partial(_batch_counts, rules, batch) for batch in data.batches())
        result.bytes_read = data.size
        result.decide(_rules_in(rules.contract), _VALUES)
    result.parts += in_order(call, result.work, workers, read_ahead=True)
    evidence = {method: list(result.methods.values()).count(method) for method in _METHODS}
    return replace(rules.report(data.name, rules.merge(result.parts)), evidence=evidence, bytes_read=result.bytes_read)


class _Result(Record, frozen=False):
    """The counts of parts of the data, the bytes that were read, and the most expensive way that decided each rule."""

    parts: list[ContractCounts] = field(default_factory=list)
    bytes_read: int = 0
    methods: dict[tuple[VariantPath, str], str] = field(default_factory=dict)
    work: Iterable[Callable[[], ContractCounts]] = ()  # Counts the other parts.

    def decide(self, rules: Iterable[tuple[VariantPath, str]], method: str) -> None:
        """Record how rules were decided."""
        for rule in rules:
            self.methods[rule] = max(self.methods.get(rule, _FOOTERS), method, key=_METHODS.index)


def _rules_in(contract: Contract) -> list[tuple[VariantPath, str]]:
    return [(path, name) for path, rules in contract.paths.items() for name in rules.active]


def _batch_counts(rules: ContractCheck, batch: RowBatch) -> ContractCounts:
    tapes = array_tapes(batch.values, batch.first_row)
    return rules.check(tapes, partial(int.__add__, batch.first_row), file=batch.file)[0]


def _plan_file(rules: ContractCheck, file: DataFile) -> _Result:
    """Return what the footer of a file proves, and the work that is left to do."""
    with file.open() as (opened, column):
        result = _Result(bytes_read=opened.metadata.serialized_size)
        result.decide(_rules_in(rules.contract), _FOOTERS)
        if column is None:
            result.work = [partial(_batch_counts, rules, batch) for batch in file.batches()]
            return result
        facts = variant_facts(opened, column)
    if facts is None:  # A layout of the drafts.
        result.decide(_rules_in(rules.contract), _VALUES)
        result.bytes_read += file.source.size
        result.work = [partial(_batch_counts, rules, batch) for batch in file.batches()]
        return result
    proof = FooterProof(rules.contract, facts)
    places = {
        path: facts.places(path) or 0
        for path, path_rules in rules.contract.paths.items()
        if path_rules.presence is not None and "presence" not in proof.open_rules.get(path, ())
    }
    result.parts.append(ContractCounts(0 if proof.open_rules else facts.rows, places=places))
    if not proof.open_rules:
        return result
    leaves, root = proof.leaves(), facts.paths[VariantPath()].group.residual
    # The values that are not shredded at the top are all values.
    needs_values = root is not None and any(leaf is root for leaf in leaves)
    result.decide(_rules_in(proof.open_contract), _VALUES if needs_values else _COLUMNS)
    result.bytes_read += facts.columns.size(leaves)
    result.work = [partial(_row_group_counts, rules, facts, proof, number) for number in facts.columns.groups]
    return result


def _row_group_counts(rules: ContractCheck, facts: VariantFacts, proof: FooterProof, number: int) -> ContractCounts:
    """Return the counts of a row group from the columns that decide its open rules."""
    with facts.file.reopened() as file:
        strings = proof.string_columns(number)
        if strings and _strings_hold(rules, file, proof, number, strings):
            proof = copy(proof)
            proof.open_rules = {path: names for path, names in proof.open_rules.items() if path not in strings}
            if not proof.open_rules:
                return ContractCounts(facts.columns.rows([number]))
        open_rules = replace(rules, contract=proof.open_contract)
        table = file.read_leaves([number], sorted(leaf.leaf or 0 for leaf in proof.leaves()))
        values = VariantArray(nested_array(table, facts.column.path))
    return _batch_counts(open_rules, RowBatch(values, file.name, facts.columns.rows(range(number))))


def _strings_hold(
    rules: ContractCheck, file: OpenFile, proof: FooterProof, number: int, columns: dict[VariantPath, SchemaNode]
) -> bool:
    """Return whether the distinct values of string columns satisfy their open rules; False if they are many."""
    leaves = [node.leaf or 0 for node in columns.values()]
    facts = FileFacts(file.metadata, file.facts.footer, file.schema, frozenset(leaves))
    table = replace(file, facts=facts, _reader=None).read_leaves([number], sorted(leaves))
    for path, node in columns.items():
        values = nested_array(table, node.path)
        if not pa.types.is_dictionary(values.type) or len(values.dictionary) > _MAX_DISTINCT * len(values):
            return False
        strings = cast_to_variant(values.dictionary)
        of_strings = Contract({VariantPath(): rules.contract.rules(path).only(proof.open_rules[path])})
        check = replace(rules, contract=of_strings)
        if check.check(array_tapes(strings, 0), int)[0].broken:
            return False
    return True
