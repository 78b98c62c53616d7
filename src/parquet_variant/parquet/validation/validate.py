"""`validate`: Parquet files with Variant columns against the final specification, and against engines.

Owns going through files, columns and row groups, and whether statistics are true of the data. Leaves the other rules to
`validate_schema` and `validate_values`, and what engines can read to `engines`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

import pyarrow as pa
from pyarrow import fs

from parquet_variant import arrow_compute as pc
from parquet_variant.array.parts import nested_array
from parquet_variant.encoding.cast.forms import list_elements
from parquet_variant.errors import VariantError
from parquet_variant.io.parallel import in_order, thread_count
from parquet_variant.parquet.format.columns import VariantColumn, find_variants, no_variant_column
from parquet_variant.parquet.format.files import OpenFile, Source, locate, open_file
from parquet_variant.parquet.format.footer import SchemaNode
from parquet_variant.parquet.format.statistics import leaf_statistics
from parquet_variant.parquet.report_text import Report, counted
from parquet_variant.parquet.scanning.groups import shredded_groups
from parquet_variant.parquet.validation.engines import EngineNote, FileTraits, engine_notes
from parquet_variant.parquet.validation.validate_schema import check_schema
from parquet_variant.parquet.validation.validate_values import check_values
from parquet_variant.parquet.validation.violations import Violation, Violations
from parquet_variant.shredding.leaf_statistics import order_key


@dataclass(slots=True, repr=False)
class ValidationReport(Report):
    """What a validation found.

    Parameters
    ----------
    files, rows
        How much was checked.
    violations
        What breaks the specification, file by file.
    omitted
        Violations beyond the limit, which are only counted.
    engines
        Which engines will not read the files as they are, and why. No violations.
    """

    files: int = 0
    rows: int = 0
    violations: list[Violation] = field(default_factory=list)
    omitted: int = 0
    engines: list[EngineNote] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing breaks the specification."""
        return not self.violations

    def to_dict(self) -> dict[str, object]:
        """The report for machines."""
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
) -> ValidationReport:
    """Check files against the specification of shredding and encoding, every value included.

    Parameters
    ----------
    source
        A file, directory, glob, URI or list of these.
    column
        Only this Variant column; all by default.
    filesystem
        A pyarrow filesystem.
    limit
        Violations to keep a column of a file; the rest is counted.
    threads
        How many row groups are checked at the same time; by default one for each CPU that this process may use.

    Returns
    -------
    ValidationReport
        With every violation's file, row group, row, path and reason.

    Raises
    ------
    VariantFileError
        If a file is not there or not Parquet, or has no Variant column (of that name).

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.parquet.write(f"{folder}/a.parquet", pv.parse_json(['{"a": 1}']), schema="a bigint")
    ...     pv.parquet.validate(folder).ok
    True
    """
    report = ValidationReport()
    traits, workers = FileTraits(), thread_count(threads)
    for each in locate(source, filesystem):
        with open_file(each) as file:
            variants = [variant for variant in find_variants(file.schema) if column in (None, variant.name)]
            if not variants:
                raise no_variant_column([node.name for node in file.schema.children], file.name, column)
            report.files += 1
            report.rows += file.rows
            for variant in variants:
                violations = Violations(file.name, variant.name, limit)
                traits.add_column(file, variant)
                _check(file, variant, violations, traits, workers)
                report.violations += violations.violations
                report.omitted += violations.count - len(violations.violations)
    report.engines = engine_notes(traits)
    return report


def _check(file: OpenFile, variant: VariantColumn, violations: Violations, traits: FileTraits, threads: int) -> None:
    if not check_schema(variant, violations):
        return
    # A map is one only if its keys are read too.
    top = file.schema.child(variant.path[0]) if variant.repeated else variant.node
    assert top is not None
    leaves = [leaf.leaf for leaf in top.leaves() if leaf.leaf is not None]

    def check(number: int) -> tuple[Violations, pa.StructArray | None]:
        first_row = sum(file.metadata.row_group(before).num_rows for before in range(number))
        part = Violations(violations.file, violations.column, violations.limit, number, first_row)
        own = file.for_one_thread()
        try:
            storage = _storage(own.read_leaves([number], leaves), variant)
        except VariantError as error:
            part.add(error.reason, error.message, error.path)
            return part, None
        check_values(storage, part)
        _check_statistics(own, variant, number, part)
        return part, storage

    for part, storage in in_order(check, range(file.metadata.num_row_groups), threads):
        violations.merge(part)
        if storage is not None:
            traits.add_names(storage)


def _storage(table: pa.Table, variant: VariantColumn) -> pa.StructArray:
    """The Variants of a row group; those in lists and maps one after the other, so that rows count values."""
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


def _check_statistics(file: OpenFile, column: VariantColumn, row_group: int, violations: Violations) -> None:
    """Record every leaf column of a Variant whose null count or bounds its values contradict."""
    for group in shredded_groups(column):
        for leaf in (group.typed, group.residual):
            if leaf is not None and leaf.leaf is not None:
                _check_leaf(file, leaf, row_group, str(group.path), violations)


def _check_leaf(file: OpenFile, leaf: SchemaNode, row_group: int, path: str, violations: Violations) -> None:
    known = leaf_statistics(file.metadata.row_group(row_group).column(leaf.leaf), leaf)
    table = file.read_leaves([row_group], [leaf.leaf] if leaf.leaf is not None else [])
    values = _only_leaf(table.column(0).combine_chunks())
    there = len(values) - values.null_count
    if known.nulls is not None and known.values - known.nulls != there:
        message = f"{leaf.dotted}: statistics count {known.values - known.nulls} values, there are {there}"
        violations.add("wrong-statistics", message, path)
    if known.lower is None or known.upper is None or not there:
        return
    lower, upper = _extremes(values)
    if lower is None or upper is None:
        return
    if order_key(known.lower) > order_key(lower) or order_key(known.upper) < order_key(upper):
        texts = pa.types.is_string(lower.type) or pa.types.is_large_string(lower.type)
        least, most = (order_key(each).decode(errors="replace") if texts else each for each in (lower, upper))
        message = f"{leaf.dotted}: statistics bound it by {known.lower} and {known.upper}, it reaches {least} to {most}"
        violations.add("wrong-statistics", message, path)


def _only_leaf(array: pa.Array) -> pa.Array:
    """The one leaf of a nested column of which only that was read; lists flattened, absent parents null."""
    if isinstance(array, pa.ChunkedArray):
        array = pa.nulls(0, array.type) if not array.num_chunks else array.chunk(0)
    while pa.types.is_nested(array.type):
        if pa.types.is_struct(array.type):
            array = array.flatten()[0]
        elif pa.types.is_map(array.type):
            array = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
        else:
            array = list_elements(array)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _extremes(values: pa.Array) -> tuple[pa.Scalar | None, pa.Scalar | None]:
    if pa.types.is_floating(values.type):
        values = values.filter(pc.invert(pc.fill_null(pc.is_nan(values), True)))
    if values.type == pa.uuid():
        raw = pc.min_max(values.storage)
        return raw["min"].cast(pa.uuid()), raw["max"].cast(pa.uuid())
    if pa.types.is_decimal32(values.type) or pa.types.is_decimal64(values.type):
        values = values.cast(pa.decimal128(values.type.precision, values.type.scale))  # Arrow compares no narrower ones
    if not len(values):
        return None, None
    try:
        extremes = pc.min_max(values)
    except pa.ArrowNotImplementedError:  # what the file's Arrow schema makes of a column may have no order
        return None, None
    return (extremes["min"], extremes["max"]) if extremes["min"].is_valid else (None, None)
