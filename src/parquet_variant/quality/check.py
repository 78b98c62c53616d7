"""`Table.check`: the violations of a contract in data of any format.

Owns how each source is decided: footers of shredded files, then the columns of the rules that footers do not prove,
then all values. `footer_proof` concludes from footers, and `contracts` evaluates values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from operator import call
from typing import Any

import pyarrow as pa

from parquet_variant.arrays.parts import nested_array, one_chunk
from parquet_variant.arrays.tapes import array_tapes
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import check_count
from parquet_variant.files.parquet.format.files import OpenFile
from parquet_variant.inference.contracts.contract import Contract
from parquet_variant.inference.contracts.contract_check import ContractCheck
from parquet_variant.inference.contracts.report import ContractCounts, ContractReport, Example, RuleCount
from parquet_variant.inference.contracts.rule_tables import RuleTables
from parquet_variant.ingestion.batches import Pass, steps
from parquet_variant.ingestion.sources.splits import plan_splits
from parquet_variant.io.parallel import in_order, thread_count
from parquet_variant.ops.conversions import cast_to_variant
from parquet_variant.quality.footer_proof import FooterProof
from parquet_variant.quality.footers import VariantFacts, variant_facts
from parquet_variant.quality.sources import DataFile, DataSet, RowBatch, data_of
from parquet_variant.support import arrow_compute as pc
from parquet_variant.tables.table.table import Table
from parquet_variant.types.path import VariantPath

# Ways to decide a rule, the cheapest first.
_FOOTERS, _COLUMNS, _VALUES = "footers", "columns", "values"
# The largest share of distinct values of a string column whose dictionary is checked instead of its values.
_MAX_DISTINCT = 0.2
_COST = {_FOOTERS: 0, _COLUMNS: 1, _VALUES: 2}


def check(
    table: Table, contract: Any, *, values: bool = True, examples: int = 5, threads: int | None = None
) -> ContractReport:
    """Check the Variants of a table against a contract; see `Table.check`."""
    check_count("examples", examples)
    rules = ContractCheck(RuleTables.of(Contract.of(contract)), "warn", values, examples)
    return check_data(data_of(table), rules, threads)


def check_data(data: DataSet, rules: ContractCheck, threads: int | None) -> ContractReport:
    """Return the violations of a contract in a data set."""
    workers = thread_count(threads)
    if data.kind == "json":
        result = _of_text(data, rules, workers)
    elif data.files and not data.has_deletes:
        result = _of_files(data, rules, workers)
    else:
        result = _of_rows(data, rules, workers)
    evidence = dict.fromkeys(_COST, 0)
    for way in result.ways.values():
        evidence[way] += 1
    return replace(rules.report(data.name, result.counts), evidence=evidence, bytes_read=result.bytes_read)


@dataclass(slots=True)
class _Result:
    """The counts, the bytes that were read, and how each rule was decided: the most expensive way of all files."""

    counts: ContractCounts = field(default_factory=ContractCounts)
    bytes_read: int = 0
    ways: dict[tuple[VariantPath, str], str] = field(default_factory=dict)

    def decide(self, contract: Contract, way: str) -> None:
        """Record how the rules of a contract were decided."""
        for path, rules in contract.paths.items():
            for name in rules.active:
                way_before = self.ways.get((path, name), _FOOTERS)
                self.ways[path, name] = max(way_before, way, key=_COST.__getitem__)


# ---- text


def _of_text(data: DataSet, rules: ContractCheck, threads: int) -> _Result:
    result = _Result()
    result.decide(rules.contract, _VALUES)
    text = replace(data.text, contract=rules)
    splits = plan_splits(data.text_files, max(data.size // max(threads, 1), 1 << 20), text.layout)
    parts = []
    work = Pass(lambda tape: None, lambda first, second: None)
    for batch in in_order(call, steps(splits, text, work), threads, read_ahead=True):
        parts.append(batch.counts.broken)
        result.bytes_read += batch.text_bytes
    result.counts = rules.merge(parts)
    return result


# ---- all rows of other formats


def _of_rows(data: DataSet, rules: ContractCheck, threads: int) -> _Result:
    result = _Result(bytes_read=data.size)
    result.decide(rules.contract, _VALUES)
    work = (partial(_batch_counts, rules, batch) for batch in data.batches())
    result.counts = rules.merge(list(in_order(call, work, threads, read_ahead=True)))
    return result


def _batch_counts(rules: ContractCheck, batch: RowBatch) -> ContractCounts:
    counts, first = [], batch.first_row
    for tape in array_tapes(batch.values, first):
        counts.append(rules.check([tape], partial(int.__add__, first), file=batch.file)[0])
        first += tape.rows
    return rules.merge(counts)


# ---- shredded files


@dataclass(slots=True)
class _FilePlan:
    """What the footer of a file proves, and what is left to do."""

    bytes_read: int
    counts: list[ContractCounts] = field(default_factory=list)
    work: list[Callable[[], ContractCounts]] = field(default_factory=list)
    # The rules that were decided in a way other than by the footer.
    ways: list[tuple[Contract, str]] = field(default_factory=list)


def _of_files(data: DataSet, rules: ContractCheck, threads: int) -> _Result:
    result = _Result()
    result.decide(rules.contract, _FOOTERS)
    plans = list(in_order(partial(_plan_file, rules), data.files, threads))
    for plan in plans:
        result.bytes_read += plan.bytes_read
        for contract, way in plan.ways:
            result.decide(contract, way)
    work = (step for plan in plans for step in plan.work)
    counted = list(in_order(call, work, threads, read_ahead=True))
    result.counts = rules.merge([*(counts for plan in plans for counts in plan.counts), *counted])
    return result


def _plan_file(rules: ContractCheck, file: DataFile) -> _FilePlan:
    with file.open() as (opened, column):
        plan = _FilePlan(opened.metadata.serialized_size)
        if column is None:
            plan.counts.append(_null_rows(opened.rows, rules, opened.name))
            return plan
        facts = variant_facts(file, opened, column)
    if facts is None:  # A layout of the drafts.
        plan.ways.append((rules.contract, _VALUES))
        plan.bytes_read += file.source.size
        plan.work += (partial(_batch_counts, rules, batch) for batch in file.batches())
        return plan
    proof = FooterProof(rules.contract, facts)
    places = {
        path: facts.places(path) or 0
        for path, path_rules in rules.contract.paths.items()
        if path_rules.presence is not None and "presence" not in proof.open_rules.get(path, ())
    }
    if not proof.open_rules:
        plan.counts.append(ContractCounts(facts.rows, places=places))
        return plan
    plan.counts.append(ContractCounts(places=places))
    plan.ways.append((proof.open_contract, _VALUES if proof.needs_values else _COLUMNS))
    plan.bytes_read += facts.columns.size(proof.leaves())
    plan.work += (partial(_row_group_counts, rules, facts, proof, number) for number in facts.columns.groups)
    return plan


def _row_group_counts(rules: ContractCheck, facts: VariantFacts, proof: FooterProof, number: int) -> ContractCounts:
    """Return the counts of a row group from the columns that decide its open rules."""
    with facts.file.open() as (file, _):
        strings = proof.string_columns(number)
        if strings and _strings_hold(rules, file, proof, number):
            proof = proof.without(strings)
            if not proof.open_rules:
                return ContractCounts(facts.columns.rows([number]))
        open_rules = replace(rules, tables=RuleTables.of(proof.open_contract))
        table = file.read_leaves([number], sorted(leaf.leaf or 0 for leaf in proof.leaves()))
        values = VariantArray(nested_array(table, facts.column.path))
    return _batch_counts(open_rules, RowBatch(values, file.name, facts.columns.rows(range(number))))


def _strings_hold(rules: ContractCheck, file: OpenFile, proof: FooterProof, number: int) -> bool:
    """Return whether the distinct values of string columns satisfy their open rules; False if they are many."""
    columns = proof.string_columns(number)
    leaves = [node.leaf or 0 for node in columns.values()]
    with_dictionaries = replace(file, dictionaries=frozenset(leaves), cached=None, _reader=None)
    table = with_dictionaries.read_leaves([number], sorted(leaves))
    for path, node in columns.items():
        column = one_chunk(table.column(node.path[0]))
        values = pc.struct_field(column, list(node.path[1:]))
        if not pa.types.is_dictionary(values.type) or len(values.dictionary) > _MAX_DISTINCT * len(values):
            return False
        texts = cast_to_variant(values.dictionary)
        of_strings = Contract({VariantPath(): rules.contract.rules(path).only(proof.open_rules[path])})
        check = replace(rules, tables=RuleTables.of(of_strings))
        if check.check(list(array_tapes(texts, 0)), int)[0].broken:
            return False
    return True


def _null_rows(rows: int, rules: ContractCheck, file: str) -> ContractCounts:
    """Return the counts of rows of a file that does not have the column."""
    root, root_rules = VariantPath(), rules.contract.rules(VariantPath())
    name = "required" if root_rules.required else "presence" if root_rules.presence is not None else None
    if name is None or not rows:
        return ContractCounts(rows)
    examples = tuple(Example(row, None, file) for row in range(min(rows, rules.examples)))
    bad_rows = rows if name == "required" else 0
    return ContractCounts(rows, bad_rows, {(root, name): RuleCount(rows, rows, examples)}, {root: rows})
