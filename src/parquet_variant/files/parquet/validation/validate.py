"""`validate`: check Parquet files with Variant columns against the final specification and against engines.

Owns the iteration over files, columns and row groups, and the check of statistics. Leaves the rules of the
specification to `rules`, and what engines do, which is not a fault of a file, to `engine_rules`.
"""

from __future__ import annotations

from dataclasses import asdict, field

import pyarrow as pa
from pyarrow import fs

from parquet_variant.arrays.parts import nested_array, one_chunk
from parquet_variant.errors import VariantError, check_count
from parquet_variant.files.parquet.format import columns
from parquet_variant.files.parquet.format.arrow_schema import only_leaf
from parquet_variant.files.parquet.format.files import OpenFile, Source, locate, open_file
from parquet_variant.files.parquet.format.footer import SchemaNode
from parquet_variant.files.parquet.validation import rules
from parquet_variant.files.parquet.validation.engine_rules import engine_rules, name_traits, schema_traits
from parquet_variant.files.parquet.validation.rules import Violation, Violations
from parquet_variant.inference.statistics import order_key
from parquet_variant.io.parallel import in_order, thread_count
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record, Report, counted
from parquet_variant.types.forms import list_elements


class EngineNote(Report, Record):
    """An engine that cannot read some of the files, or reads them differently."""

    engine: str
    why: str
    source: str
    files: int
    example: str

    def __str__(self) -> str:
        return f"{self.engine}: {self.why} ({counted(self.files, 'file')}, such as {self.example}; {self.source})"


class ValidationReport(Report, Record, frozen=False):
    """The result of a validation.

    Parameters
    ----------
    files, rows
        Number of files and rows that were checked.
    violations
        Violations of the specification, in order of files.
    omitted
        Number of violations beyond the limit.
    engines
        Engines that cannot read the files, with the reason. These notes are not violations.
    """

    files: int = 0
    rows: int = 0
    violations: list[Violation] = field(default_factory=list)
    omitted: int = 0
    engines: list[EngineNote] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether the files have no violations."""
        return not self.violations

    def to_dict(self) -> dict[str, object]:
        """Return the report as a dictionary."""
        return {"files": self.files, "rows": self.rows, "ok": self.ok, **asdict(self)}

    def __repr__(self) -> str:
        notes = f"; notes on {counted(len(self.engines), 'engine')}" if self.engines else ""
        return f"<ValidationReport {self._verdict()}{notes}>"

    def _verdict(self) -> str:
        count = len(self.violations) + self.omitted
        verdict = counted(count, "violation") if count else "valid"
        return f"{counted(self.files, 'file')}, {counted(self.rows, 'row')}: {verdict}"

    def __str__(self) -> str:
        lines = [self._verdict()]
        lines += [str(violation) for violation in self.violations]
        lines += [f"… and {self.omitted:,} more"] if self.omitted else []
        return "\n".join([*lines, *(str(note) for note in self.engines)])


def validate(
    source: Source,
    *,
    column: str | None = None,
    filesystem: fs.FileSystem | None = None,
    limit: int = 1000,
    threads: int | None = None,
    unannotated: bool = False,  # Whether unshredded Variants need no annotation, as in Delta tables.
) -> ValidationReport:
    """Check files, including every value, against the specification of shredding and encoding; see `Table.validate`."""
    check_count("limit", limit)
    report = ValidationReport()
    traits: dict[str, set[str]] = {}  # by file
    names, lacking = set[str](), dict[str, list[str]]()  # Variant columns; the columns of files without one
    workers = thread_count(threads)
    for parquet_source in locate(source, filesystem):
        with open_file(parquet_source) as file:
            variants = [variant for variant in columns.find_variants(file.schema) if column in (None, variant.name)]
            if not variants:
                lacking[file.name] = file.column_names
            report.files += 1
            report.rows += file.facts.rows()
            for variant in variants:
                names.add(variant.name)
                violations = Violations(file.name, variant.name, limit)
                is_readable = rules.check_schema(variant, violations, unannotated=unannotated)
                value_traits = _check(file, variant, violations, workers) if is_readable else []
                traits.setdefault(file.name, {"parquet"}).update(value_traits, schema_traits(variant))
                report.violations += violations.violations
                report.omitted += violations.count - len(violations.violations)
    for name, file_columns in lacking.items():
        if not names or not names.isdisjoint(file_columns):
            raise columns.no_variant_column(file_columns, name, column)
    for rule in engine_rules():
        # A column without the annotation is a struct by its declaration.
        always = rule.result != "struct"
        files = [
            name for name, of_file in traits.items() if rule.matches(of_file) and (always or "annotated" in of_file)
        ]
        if files and rule.result != "reads":
            engine = f"{rule.engine} {rule.versions}"
            report.engines.append(EngineNote(engine, rule.effect, rule.evidence, len(files), files[0]))
    return report


def _check(file: OpenFile, variant: columns.VariantColumn, violations: Violations, threads: int) -> list[str]:
    """Check the values of a column of a file, and return the traits of its names that matter to engines."""
    traits: list[str] = []
    # A map is recognized only if its keys are read too.
    top = file.schema.child(variant.path[0]) if variant.repeated else variant.node
    assert top is not None
    leaves = [leaf.leaf for leaf in top.leaves() if leaf.leaf is not None]

    def check(number: int) -> tuple[Violations, pa.StructArray | None]:
        first_row = file.facts.rows(range(number))
        part = Violations(violations.file, violations.column, violations.limit, number, first_row)
        thread_file = file.for_one_thread()
        try:
            storage = _storage(thread_file.read_leaves([number], leaves), variant)
        except VariantError as error:
            part.add(error.reason, error.message, error.path)
            return part, None
        check_storage = rules.check_draft_values if variant.layout.startswith("draft") else rules.check_values
        check_storage(storage, part)
        for group in columns.shredded_groups(variant):
            for leaf in (group.typed, group.residual):
                if leaf is not None and leaf.is_leaf:
                    _check_statistics(thread_file, leaf, number, str(group.path), part)
        return part, storage

    for part, storage in in_order(check, file.facts.groups, threads):
        violations.merge(part)
        if storage is not None and not variant.layout.startswith("draft"):
            traits += name_traits(storage)
    return traits


def _storage(table: pa.Table, variant: columns.VariantColumn) -> pa.StructArray:
    """Return the Variants of a row group; those in lists and maps are flattened, so rows are values."""
    if not variant.repeated:
        return nested_array(table, variant.path)
    array = table.column(0).combine_chunks()
    names = list(variant.path[1:])
    while names:
        if pa.types.is_struct(array.type):
            array = array.flatten()[[child.name for child in array.type].index(names.pop(0))]
        elif pa.types.is_map(array.type):
            array, names = array.items, names[2:]
        else:
            array, names = list_elements(array), names[2:]
    return array


def _check_statistics(file: OpenFile, leaf: SchemaNode, row_group: int, path: str, violations: Violations) -> None:
    """Report statistics of a leaf column that contradict its values."""
    statistics = file.facts.statistics(leaf, row_group)
    values = only_leaf(one_chunk(file.read_leaves([row_group], [leaf.leaf] if leaf.leaf is not None else []).column(0)))
    values = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
    present = len(values) - values.null_count
    if statistics.nulls is not None and (counted_values := statistics.values - statistics.nulls) != present:
        message = f"{leaf.dotted}: the statistics count {counted_values} values, but the column has {present}"
        violations.add("wrong-statistics", message, path)
    if statistics.lower is None or statistics.upper is None or not present:
        return
    if pa.types.is_floating(values.type):
        values = values.filter(pc.invert(pc.fill_null(pc.is_nan(values), True)))
    if pa.types.is_decimal32(values.type) or pa.types.is_decimal64(values.type):
        values = values.cast(pa.decimal128(values.type.precision, values.type.scale))  # Arrow compares only these
    try:
        extremes = pc.min_max(values.storage if values.type == pa.uuid() else values)
    except pa.ArrowNotImplementedError:  # a type from the Arrow schema of the file may have no order
        return
    lower, upper = (extremes[name].cast(values.type) for name in ("min", "max"))
    if not lower.is_valid:
        return
    if order_key(statistics.lower) > order_key(lower) or order_key(statistics.upper) < order_key(upper):
        is_text = pa.types.is_string(lower.type) or pa.types.is_large_string(lower.type)
        low, high = (order_key(bound).decode(errors="replace") if is_text else bound for bound in (lower, upper))
        message = (
            f"{leaf.dotted}: the bounds in the statistics are {statistics.lower} and {statistics.upper}, "
            f"but the values are from {low} to {high}"
        )
        violations.add("wrong-statistics", message, path)
