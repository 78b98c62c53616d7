"""Options of an ingest compared with its data: paths that options name, types of the table, and hints and warnings.

A path of an option that no row has is an error before anything is committed, with the most similar path of the data.
`task.Findings` proves it over all rows. Hints and warnings come from a sample. Warnings about partitions are issued
before anything is written, because a table with too many partitions takes long to write and to remove.

A path with different types in the files of a table has no typed column. An append therefore shreds a path as the table
does, and reads strings as dates, timestamps or UUIDs where the table has these; values of other types remain readable
as Variants, and are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantError
from parquet_variant.files.parquet.format.files import ParquetSource, open_file
from parquet_variant.inference.profile import PathProfile, Profile
from parquet_variant.ingestion.request import IngestRequest, TextOptions
from parquet_variant.ingestion.sources.input_files import COMPRESSION_RATIO
from parquet_variant.ingestion.sources.splits import Split
from parquet_variant.ingestion.task import Findings, first_rows
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.similar_paths import similar_path
from parquet_variant.layouts.storage_shape import TypeTree, common_numeric
from parquet_variant.query.selection import read_selection
from parquet_variant.support.report_text import counted
from parquet_variant.types import VariantType
from parquet_variant.types.path import VariantPath, parse_pattern

# The rows of a document are in an array if it has at least this many elements per document.
_MIN_ELEMENTS = 2
_MAX_DEPTH = 3


def root_hints(profile: Profile, text: TextOptions, files: int) -> Iterator[str]:
    """Yield a hint to use ``root`` if every file is one document with the rows in an array; `profile` is without it."""
    root, path = profile.root, text.layout.root
    if root is not None and path is not None and root.element_count and set(root.types) == {VariantType.ARRAY}:
        yield (
            f"the value at {path.shorthand} is an array, and each row is such an array: for one row per element, use "
            f"root='{path.shorthand}[*]'"
        )
    if root is None or path is not None or text.json_column is not None or profile.rows > files:
        return
    largest = max(_arrays_of_objects(root, _MAX_DEPTH), key=lambda array: array.element_count, default=None)
    if largest is not None and largest.element_count >= _MIN_ELEMENTS * profile.rows:
        yield (
            f"the input is {counted(profile.rows, 'document')} with {largest.element_count:,} objects in the array "
            f"{largest.path.shorthand}: to ingest these objects as rows, use root='{largest.path.shorthand}[*]'"
        )


def _arrays_of_objects(path: PathProfile, depth: int) -> Iterator[PathProfile]:
    """Yield the paths of arrays that contain objects, up to a depth, not inside other arrays."""
    element = path.element
    if element is not None and 2 * element.types.get(VariantType.OBJECT, 0) >= element.count:
        yield path
    if depth:
        for field in path.fields:
            yield from _arrays_of_objects(field, depth - 1)


MANY_PARTITIONS = 1000
# The sample: the first lines of some splits, which are spread over the input.
_SAMPLE_SPLITS = 16
_SAMPLE_BYTES = 256 << 10


def partition_warnings(request: IngestRequest, tasks: Sequence[Sequence[Split]]) -> Iterator[str]:
    """Yield warnings about over 1,000 partitions, and about partition columns that are null in all sampled rows."""
    if not request.partition_by or request.partition_by.is_derived:
        return
    splits = [split for task in tasks for split in task]
    step = max(1, len(splits) // _SAMPLE_SPLITS)
    sample_splits = splits[::step]
    arrays = []
    for split in sample_splits:
        try:
            first = first_rows([split], ShreddingSchema.variant(), request.text, _SAMPLE_BYTES)
        except VariantError:
            return  # the task raises the error with its position
        if first is not None:
            arrays.append(first.to_unshredded())
    if not sum(map(len, arrays)):
        return
    sample = VariantArray.concat(arrays)
    rows = len(sample)
    values = request.partition_by.values(sample)
    for column in request.partition_by.columns:
        if values[column.name].null_count == rows:
            yield (
                f"partition_by={column.name}: {column.path} has no value of type {column.type} in {rows:,} sampled "
                "rows, so that these rows are in the null partition; check the path and the type"
            )
    read_bytes = sum(min(_text_bytes(split), _SAMPLE_BYTES) for split in sample_splits)
    total_rows = rows * max(1.0, sum(map(_text_bytes, splits)) / max(read_bytes, 1))
    count, is_estimate = _partition_count(values, total_rows)
    if count > MANY_PARTITIONS:
        about = "about " if is_estimate else ""
        names = ", ".join(request.partition_by.names)
        yield (
            f"partition_by={names} makes {about}{count:,} partitions, each with its own files: partition by a value "
            "with fewer distinct values, such as a date"
        )


def _text_bytes(split: Split) -> int:
    """Return the approximate size of the text of a split."""
    return split.size * (COMPRESSION_RATIO if split.part is None and split.file.codec else 1)


def _partition_count(values: dict[str, pa.Array], total_rows: float) -> tuple[int, bool]:
    """Return the number of partitions of the input, and whether it is an estimate.

    The estimate is Chao's lower bound: the partitions in the sample, and f1 * (f1 - 1) / (2 * (f2 + 1)) others, where
    f1 and f2 are the numbers of partitions with one and with two sampled rows.
    """
    # Numbers as names, because Arrow parses names that start with a dot as paths.
    keys = {str(number): column for number, column in enumerate(values.values())}
    counts = pa.table(keys).group_by(list(keys)).aggregate([([], "count_all")])["count_all"].to_pylist()
    seen = len(counts)
    if total_rows <= sum(counts):
        return seen, False
    once, twice = counts.count(1), counts.count(2)
    unseen = once * (once - 1) / (2 * (twice + 1))
    return round(min(seen + unseen, max(total_rows, seen))), unseen > 0


# The types of a table are those of at most this many files, spread over its files.
_FILES = 16


def table_schema(files: Sequence[ParquetSource], column: str) -> ShreddingSchema | None:
    """Return the types of the paths of a table: at each path those of most rows. None if nothing is shredded."""
    rows: Counter[ShreddingSchema] = Counter()
    for source in files[:: -(-len(files) // _FILES) or 1]:
        try:
            schema = ShreddingSchema.from_parquet(source.path, column, filesystem=source.filesystem)
        except VariantError:
            continue  # a file without the column
        with open_file(source) as file:
            rows[schema] += file.metadata.num_rows
    tree: TypeTree = None
    for schema, _ in rows.most_common():
        other = schema.type_tree()
        tree = other if tree is None else tree if other is None else _kept(tree, other, adds=True)
    return None if tree is None else ShreddingSchema.from_tree(tree)


def keep_types(schema: ShreddingSchema, table: ShreddingSchema) -> ShreddingSchema:
    """Return the schema of new files with the types that the table has; numbers get a type that holds both."""
    return ShreddingSchema.from_tree(_kept(table.type_tree(), schema.type_tree(), adds=False))


def string_types(table: ShreddingSchema) -> dict[str, str]:
    """Return the types of strings, by path, that `StringTypes` has for the types of a table."""
    types: dict[str, str] = {}
    for path, leaf in table.leaves():
        name = leaf.to_ddl() if leaf.kind == "primitive" else ""
        if name in ("date", "timestamp", "timestamp_ntz", "uuid") and path.segments:
            types[path.shorthand] = f"{name}!"
    return types


def _kept(table: TypeTree, new: TypeTree, *, adds: bool) -> TypeTree:
    """Return the types of a table and the paths that only the new schema has; with `adds`, those of the table too."""
    if isinstance(table, dict) and isinstance(new, dict):
        names = {**table, **new} if adds else new
        return {
            name: _kept(table[name], new[name], adds=adds) if name in table and name in new else names[name]
            for name in names
        }
    if isinstance(table, list) and isinstance(new, list):
        return [_kept(table[0], new[0], adds=adds)]
    if isinstance(table, pa.DataType) and isinstance(new, pa.DataType):
        return common_numeric(table, new) or table
    return new if table is None else table


def option_paths(request: IngestRequest) -> dict[VariantPath, str]:
    """Return the paths that the options of an ingest name, without patterns, and the option of each.

    >>> request = IngestRequest.of("a.json", "a", sort_by="$.id", types={"$..at": "date", "$.x.at": "date"})
    >>> [(path.shorthand, option) for path, option in option_paths(request).items()]
    [('$.id', 'sort_by'), ('$.x.at', 'types')]
    """
    named: dict[VariantPath, str] = {}

    def add(option: str, paths: Iterable[VariantPath | None]) -> None:
        for path in paths:
            if path is not None and path.segments:
                named.setdefault(path, option)

    for option in ("sort_by", "bloom_filters"):
        texts = request.write.get(option) or ()
        keys = (texts,) if isinstance(texts, str) else tuple(texts)
        selection = read_selection({f"key{number}": key for number, key in enumerate(keys)})
        add(option, (selected.path for selected in selection))
    if not request.partition_by.is_derived:
        add("partition_by", (column.path for column in request.partition_by.columns))
    add("json_column", request.text.json_paths)
    if request.schema is not None:
        add("schema", (path for path, _ in request.schema.leaves()))
    for steps in map(parse_pattern, request.text.texts.types):
        if not any(step.any_depth or (step.is_glob and set("*?") & set(str(step.name))) for step in steps):
            add("types", [VariantPath(tuple(step.name for step in steps))])
    return named


def check_paths(request: IngestRequest, seen: Findings) -> tuple[str, ...]:
    """Raise `VariantError` for a path of an option that no row has; return hints about a schema with such paths.

    A path of a schema is an error only if the data has a similar path: schemas may list optional fields.
    """
    named = option_paths(request)
    other_paths = set(map(VariantPath, seen.other_paths)) if seen.missing else set()
    hints = []
    for path, option in named.items():
        if path not in seen.missing:
            continue
        nearest = similar_path(path, other_paths)
        if nearest in named:
            nearest = None
        message = f"{option}= names {path.shorthand}, and no row has this path"
        if nearest is not None:
            message += f": did you mean {nearest.shorthand}?"
        if option == "schema" and nearest is None:
            hints.append(message)
            continue
        raise VariantError(message, reason="no-such-path")
    return tuple(hints)


def check_bloom_filters(request: IngestRequest, paths: Iterable[VariantPath]) -> None:
    """Raise `VariantError` for a Bloom filter on a path that no sampled row has, if a sampled path is similar."""
    sampled = set(paths)
    for path, option in option_paths(request).items():
        if option == "bloom_filters" and path not in sampled and (nearest := similar_path(path, sampled)) is not None:
            raise VariantError(
                f"bloom_filters= names {path.shorthand}, and no sampled row has this path: did you mean "
                f"{nearest.shorthand}?",
                reason="no-such-path",
            )
