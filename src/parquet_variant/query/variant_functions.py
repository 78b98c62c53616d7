"""Functions over Variants in SQL: what the engine of a query calls, and under which names users know them.

Also the functions by path for Spark's sessions and DuckDB's connections, which call Python with Arrow columns. Leaves
how a Variant enters and leaves these engines to the engine's module.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import field, replace
from functools import partial
from itertools import count
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.arrays.value_positions import ValuePositions
from parquet_variant.arrays.variant_array import VariantArray, plain_storage
from parquet_variant.errors import JsonError, VariantError
from parquet_variant.kernels.arrow_buffers import from_numpy, to_numpy
from parquet_variant.kernels.operations import get
from parquet_variant.layouts.storage_shape import DDL_NAMES
from parquet_variant.ops.columns.arguments import as_variant_array
from parquet_variant.ops.columns.slot_casts import FailedCasts
from parquet_variant.ops.columns.sort_keys import CLASS_NAMES, class_codes, equal_forms, sort_keys
from parquet_variant.ops.conversions import cast_to_variant, to_json
from parquet_variant.ops.parse_json import parse_json
from parquet_variant.ops.validate import sound_rows
from parquet_variant.ops.value_edits import (
    strip_nulls,
    variant_array_append,
    variant_delete,
    variant_insert,
    variant_normalize,
    variant_set,
)
from parquet_variant.ops.value_types import is_variant_null, schema_of_variant, schema_of_variant_agg, variant_type
from parquet_variant.ops.variant_explode import variant_explode
from parquet_variant.ops.variant_get import variant_get
from parquet_variant.query.containment import contains_each
from parquet_variant.query.duckdb_engine import engine_type, function_types
from parquet_variant.query.selection import Selected, arrow_type, cast_warnings
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.options import Errors
from parquet_variant.support.records import Record, shortened
from parquet_variant.types import BasicType
from parquet_variant.types.path import VariantPath
from parquet_variant.types.targets import VARIANT_STORAGE

VARIANT = "STRUCT(metadata BLOB, value BLOB)"  # DuckDB's type for Variants on their way through it
_SHOWN_CHARACTERS = 60
_METADATA_BYTES = 1024
_CASTS = {"": "double", "number": "double"} | {name: name for name in ("boolean", "date", "timestamp", "timestamp_ntz")}
_PLURALS = {"binary": "binary values", "timestamp_ntz": "timestamps without time zone"}
_ENTRIES = f"STRUCT(pos INTEGER, key VARCHAR, value {VARIANT})[]"


class VariantFunction(Record):
    """A function that the engine calls with Arrow arrays."""

    work: Callable[..., pa.Array]
    result: str  # DuckDB's type.
    takes_context: bool = False  # Whether the last argument is a `CallContext`.


def column_of(argument: Any) -> VariantArray:
    """Return an argument of the engine as a `VariantArray`; a column of nulls alone has no type."""
    column = one_chunk(argument)
    if pa.types.is_null(column.type):
        column = pa.nulls(len(column), VARIANT_STORAGE)
    return as_variant_array(VariantArray(column))


def _parse_strings(strings: Any, errors: Errors) -> pa.Array:
    """Parse the text of rows that have no numbers for the user: an error shows the text."""
    column = one_chunk(strings)
    column = column if pa.types.is_binary(column.type) else column.cast(pa.string())
    try:
        return plain_storage(parse_json(column, errors=errors))
    except JsonError as error:
        if error.row is None:
            raise
        text = column[error.row].cast(pa.binary()).as_py().decode(errors="replace")
        problem = f"{error.message}, in {shortened(text, _SHOWN_CHARACTERS)!r}"
        raise JsonError(problem, reason=error.reason, offset=error.offset) from None


def _aggregates(lists: Any, of_values: Callable[[VariantArray], Any]) -> list[Any]:
    """Return the aggregate of each list of Variants; None for a list that is null."""
    column = one_chunk(lists)
    elements = (column[row].values for row in range(len(column)))
    return [None if values is None else of_values(column_of(values)) for values in elements]


def _entries(argument: Any) -> pa.Array:
    """Return the elements or fields of each value as a list."""
    column = column_of(argument)
    table = variant_explode(column)
    counts = np.bincount(to_numpy(one_chunk(table["row"])).astype(np.int64), minlength=len(column))
    storage = one_chunk(table["value"])
    if (names := storage.field("metadata")).nbytes > _METADATA_BYTES * max(len(names.dictionary), 1) + 4 * len(names):
        # Entries share the metadata of their row, and the engine copies it for each: it gets that of the entry alone.
        storage = one_chunk(variant_get(VariantArray(storage), VariantPath(), VARIANT_STORAGE))
    value = plain_storage(VariantArray(storage))
    arrays = [one_chunk(table["pos"]).cast(pa.int32()), one_chunk(table["key"]).cast(pa.string()), value]
    entries = pa.StructArray.from_arrays(arrays, ["pos", "key", "value"])
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32()), entries)


def keys_of_objects(values: VariantArray, *, otherwise_empty: bool) -> pa.ListArray:
    """Return the keys of each object; for other values an empty list or null, and null for SQL NULL.

    Raises `MalformedVariantError` if an object is malformed.

    >>> import parquet_variant as pv
    >>> values = pv.parse_json(['{"a": 1, "b": 2}', "[1]", None, "{}"])
    >>> keys_of_objects(values, otherwise_empty=True).to_pylist()
    [['a', 'b'], [], None, []]
    """
    positions = ValuePositions.of_storage(values.to_unshredded().storage)
    positions.spans()  # raises for truncated values, which would count as scalars below
    offsets, is_object, ids, fields = positions.fields()
    numbers = fields.dictionaries.name_numbers(fields.metas, ids)
    names = fields.dictionaries.distinct_names.take(from_numpy(numbers))
    has_keys = positions.starts != get.ABSENT if otherwise_empty else is_object
    return pa.ListArray.from_arrays(from_numpy(offsets.astype(np.int32)), names, mask=from_numpy(~has_keys))


def field_names(values: VariantArray) -> set[str]:
    """Return the names of the fields of all objects.

    >>> import parquet_variant as pv
    >>> sorted(field_names(pv.parse_json(['{"b": {"x": 1}}', "[1]", None, '{"a": 1, "b": 2}'])))
    ['a', 'b']
    """
    return set(keys_of_objects(values, otherwise_empty=True).values.unique().to_pylist())


def sizes_of(values: VariantArray, *kinds: BasicType, otherwise: int | None = None) -> pa.Int64Array:
    """Return the number of children of each array or object; `otherwise` for other values, and null for SQL NULL.

    Raises `MalformedVariantError` if a value is malformed.

    >>> import parquet_variant as pv
    >>> values = pv.parse_json(["[1, 2]", '{"a": 1}', "5", None])
    >>> sizes_of(values, BasicType.ARRAY, BasicType.OBJECT).to_pylist()
    [2, 1, None, None]
    >>> sizes_of(values, BasicType.ARRAY, otherwise=0).to_pylist()
    [2, 0, 0, None]
    """
    positions = ValuePositions.of_storage(values.to_unshredded().storage)
    positions.spans()
    counts = np.maximum.reduce([positions.child_counts(kind) for kind in kinds])
    is_other = counts < 0
    if otherwise is None:
        return from_numpy(counts, is_other)
    return from_numpy(np.where(is_other, otherwise, counts), positions.starts == get.ABSENT)


def _of_variant(work: Callable[..., Any], result: str) -> VariantFunction:
    """Return a function of a Variant, perhaps another argument, and constants."""
    return VariantFunction(lambda v, *arguments: work(column_of(v), *arguments), result)


def _strings(work: Callable[[VariantArray], Any]) -> VariantFunction:
    return _of_variant(lambda v: work(v).cast(pa.string()), "VARCHAR")


def _edit(work: Callable[..., Any]) -> VariantFunction:
    """Return a function that changes a Variant; its last constant says what an error gives.

    `work`: takes the Variant, the new value if there is one, and constants.
    """

    def edited(values: VariantArray, *arguments: Any) -> pa.Array:
        columns = [column_of(other) if isinstance(other, (pa.Array, pa.ChunkedArray)) else other for other in arguments]
        return plain_storage(work(values, *columns[:-1], errors=columns[-1]))

    return _of_variant(edited, VARIANT)


def _is_valid(values: VariantArray) -> pa.BooleanArray:
    storage = values.to_unshredded().storage
    return pa.array(sound_rows(storage), mask=~storage.is_valid().to_numpy(zero_copy_only=False))


def _objects(keys: Any, values: Any) -> pa.Array:
    """Return an object for each row from a list of names and an array of values."""
    rows: list[dict[str, Any] | None] = []
    for names, array in zip(one_chunk(keys).to_pylist(), column_of(values), strict=True):
        if names is None or array is None:
            rows.append(None)
            continue
        elements = list(array)
        if len(names) != len(elements) or None in names or len(set(names)) < len(names):
            raise VariantError(
                f"variant_from_arrays: {len(names)} names for {len(elements)} values, or a name is repeated or NULL",
                reason="bad-argument",
            )
        rows.append(dict(zip(names, elements, strict=True)))
    return plain_storage(VariantArray.from_pylist(rows))


class CallContext(Record):
    """The options of the calls of a query, and what they found."""

    errors: Errors = "null"  # Whether a failed cast is NULL or an error.
    zone: str = "UTC"  # The session time zone of casts.
    # How many values of each class were compared, for each Variant and the classes that it is compared with.
    classes: dict[tuple[str, tuple[str, ...]], Counter[str]] = field(default_factory=dict)
    failed: dict[str, FailedCasts] = field(default_factory=dict)  # The numbers of failed casts, by their text.

    def counting(self, column: Selected) -> Selected:
        """Return a column whose failed casts are counted here."""
        return column if column.failed is None else replace(column, failed=self.failed.setdefault(column.as_sql(), []))

    def add(self, contexts: Iterable[CallContext]) -> None:
        """Add what the calls of other tasks found."""
        for context in contexts:
            for key, counts in context.classes.items():
                self.classes.setdefault(key, Counter()).update(counts)
            for text, failed in context.failed.items():
                self.failed.setdefault(text, []).extend(failed)

    def take_warnings(self) -> list[str]:
        """Return warnings about Variants that were not all compared or cast, or have several types; forget them."""
        warnings = {}
        for (text, compared), counts in self.classes.items():
            uncompared = {name: number for name, number in sorted(counts.items()) if number and name not in compared}
            cast = f"write a cast, such as {text}::{_CASTS.get('/'.join(compared), 'string')}"
            if compared == ("string",) and "number" in uncompared:
                cast += f", or epoch_ms({text}) for milliseconds since 1970"
            parts = [f"{n:,} {_PLURALS.get(name, f'{name}s') if n > 1 else name}" for name, n in uncompared.items()]
            shown = " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))
            if compared and uncompared:
                was, kinds = "was" if sum(uncompared.values()) == 1 else "were", " or ".join(compared)
                warnings[text, compared] = f"{shown} at {text} {was} not compared with a {kinds}: {cast}"
            elif len(uncompared) > 1:
                warnings[text, ()] = f"values of several types at {text} ({shown}) were compared: {cast}"
        self.classes.clear()
        failures = (text for cast, failed in self.failed.items() for text in cast_warnings(failed, cast))
        return [*warnings.values(), *failures]


def _value_at(
    values: VariantArray, path: str, type_name: str | None, tries: bool, text: str | None, context: CallContext
) -> pa.Array:
    """Return the values at a path, cast to a type, or Variants; `text`: the cast, if failures are counted."""
    failed = None if text is None else context.failed.setdefault(text, [])
    selected = Selected("", VariantPath.parse(path), arrow_type(type_name), failed=failed)
    return selected.values_in(values.storage, safe=context.errors == "raise" and not tries, zone=context.zone)


def _sort_keys(values: VariantArray, *constants: Any) -> pa.Array:
    """Return the sort keys of the values, and count the values of each class.

    `constants`: the text of the Variant, the classes, whether values of other classes have keys, and the context; or
      only the context, without counting.
    """
    keys = sort_keys(values)
    if len(constants) == 1:
        return keys
    text, classes, of_all, context = constants
    counts = context.classes.setdefault((text, tuple(classes)), Counter())
    codes = class_codes(keys)
    for code, number in zip(*np.unique(codes[codes > 0], return_counts=True), strict=True):
        counts[CLASS_NAMES[int(code)]] += int(number)
    if of_all:
        return keys
    compared = [code for code, name in CLASS_NAMES.items() if name in classes]
    return pc.if_else(from_numpy(np.isin(codes, compared)), keys, pa.scalar(None, keys.type))


FUNCTIONS: dict[str, VariantFunction] = {
    "to_json": _strings(to_json),
    "schema_of_variant": _strings(schema_of_variant),
    "variant_type": _strings(variant_type),
    "is_variant_null": _of_variant(is_variant_null, "BOOLEAN"),
    "is_valid_variant": _of_variant(_is_valid, "BOOLEAN"),
    "variant_keys": _of_variant(partial(keys_of_objects, otherwise_empty=True), "VARCHAR[]"),
    "object_keys": _of_variant(partial(keys_of_objects, otherwise_empty=False), "VARCHAR[]"),
    "variant_array_length": _of_variant(lambda v: sizes_of(v, BasicType.ARRAY, otherwise=0), "BIGINT"),
    "array_size": _of_variant(lambda v: sizes_of(v, BasicType.ARRAY), "BIGINT"),
    "cardinality": _of_variant(lambda v: sizes_of(v, BasicType.ARRAY, BasicType.OBJECT), "BIGINT"),
    "variant_contains": _of_variant(lambda v, needle: contains_each(v, column_of(needle)), "BOOLEAN"),
    "variant_normalize": _of_variant(lambda v: plain_storage(cast(VariantArray, variant_normalize(v))), VARIANT),
    "variant_form": _of_variant(lambda v: plain_storage(equal_forms(v)), VARIANT),
    "variant_of": _of_variant(plain_storage, VARIANT),
    "variant_cast": VariantFunction(lambda values: plain_storage(cast_to_variant(one_chunk(values))), VARIANT),
    "variant_set": _edit(lambda v, value, path, create, **o: variant_set(v, path, value, create, **o)),
    "variant_insert": _edit(lambda v, value, path, **o: variant_insert(v, path, value, **o)),
    "variant_array_append": _edit(lambda v, value, path, **o: variant_array_append(v, path, value, **o)),
    "variant_delete": _edit(variant_delete),
    "variant_strip_nulls": _edit(strip_nulls),
    "variant_get": replace(_of_variant(_value_at, VARIANT), takes_context=True),
    "variant_from_arrays": VariantFunction(_objects, VARIANT),
    "parse_json": VariantFunction(partial(_parse_strings, errors="raise"), VARIANT),
    "try_parse_json": VariantFunction(partial(_parse_strings, errors="null"), VARIANT),
    "sort_key": replace(_of_variant(_sort_keys, "BLOB"), takes_context=True),
    "variant_explode": VariantFunction(_entries, _ENTRIES),
    "variant_group_array": VariantFunction(
        lambda lists: plain_storage(VariantArray.from_pylist(_aggregates(lists, list))), VARIANT
    ),
    "schema_of_variant_agg": VariantFunction(
        lambda lists: pa.array(_aggregates(lists, schema_of_variant_agg), pa.string()), "VARCHAR"
    ),
}
# Functions that change a Variant, each with the parameters after it: paths, a value, or a constant.
EDITS = {
    "variant_set": ("path", "value", "create_if_missing"), "variant_insert": ("path", "value"),
    "variant_array_append": ("path", "value"), "variant_delete": ("path", "…"),
    "variant_strip_nulls": ("include_arrays",),
}  # fmt: skip
BUILDERS = ("to_variant_object", "variant_from_arrays", "variant_from_entries")
_GETTERS = ("variant_get", "try_variant_get", "variant_extract", "variant_extract_string", "variant_exists")
EDIT_NAMES = frozenset([*EDITS, *(f"try_{name}" for name in EDITS if name != "variant_strip_nulls")])
# The names that users write -> the function; each takes a Variant, and a path into it as an optional second argument.
OF_ONE_VARIANT = {
    **{name: name for name in ("is_variant_null", "is_valid_variant", "schema_of_variant", "variant_type")},
    **{name: name for name in ("variant_keys", "object_keys", "variant_array_length", "array_size", "cardinality")},
    "variant_normalize": "variant_normalize", "is_null_value": "is_variant_null", "variant_typeof": "variant_type",
    "json_object_keys": "object_keys", "json_keys": "object_keys", "array_length": "array_size",
    "json_array_length": "variant_array_length", "size": "cardinality", "variant_comparator": "sort_key",
}  # fmt: skip
PARSERS = frozenset(["parse_json", "try_parse_json"])
RETURN_VARIANTS = frozenset([*PARSERS, *EDIT_NAMES, *BUILDERS])
# Aggregates that the engine lacks, or has only for its own VARIANT, with the number of their arguments.
AGGREGATES = {"variant_group_array": 1, "variant_group_object": 2, "schema_of_variant_agg": 1}
# Functions in FROM -> the columns of the result.
EXPLODES = {
    "variant_explode": ("pos", "key", "value"),
    "variant_explode_outer": ("pos", "key", "value"),
    "flatten": ("index", "key", "value"),
}


# Functions of other engines, and the function that does this here, where their names differ much.
_OF_OTHER_ENGINES = {
    **dict.fromkeys(("posexplode", "jsonb_each", "json_array_elements", "jsonb_array_elements"), "variant_explode"),
    "percentile": "quantile_cont",
    "percentile_approx": "approx_quantile",
    "object_construct": "struct_pack",
    "try_to_number": "try_cast",
    "stack": "unnest",
}


def unknown_function(name: str) -> str | None:
    """Return the message for a function that does not exist, with the most similar name; None for a known function."""
    from difflib import get_close_matches

    names = {*OF_ONE_VARIANT, *AGGREGATES, *EXPLODES, *RETURN_VARIANTS, *_GETTERS}
    names |= {"to_json", "variant_contains", "get_path", "typeof"}
    # DuckDB's syntax.
    names |= {"coalesce", "nullif", "ifnull", "nvl", "if", "iff", "try", "unnest", "grouping", "exists"}
    if (built_in := function_types()).keys() | names >= {name.lower()}:
        takes_variant = name.lower() in (FUNCTIONS.keys() & names) - built_in.keys()
        return f"{name} takes a Variant, such as v:a or parse_json(text)" if takes_variant else None
    close = get_close_matches(name.lower(), names, 1, 0.7) or get_close_matches(name.lower(), built_in, 1, 0.6)
    similar = _OF_OTHER_ENGINES.get(name.lower(), next(iter(close), None))
    return f"unknown function {name}" + (f": did you mean {similar}?" if similar else "")


_CALL = re.compile(r"_pv_(\w+?)__([0-9a-f]*)__", re.IGNORECASE)
_NUMBERS = count(1)


def call_name(function: str, constants: tuple[Any, ...]) -> str:
    """Return a name for a call that has everything that `register_calls` needs.

    >>> call_name("variant_delete", ("$.a",))
    '_pv_variant_delete__5b22242e61225d__'
    """
    return f"_pv_{function}__{json.dumps(constants).encode().hex()}__"


def register_calls(connection: Any, text: str, failures: list[Exception], context: CallContext | None = None) -> str:
    """Register the functions that a text calls by their `call_name`, and return the text with their names.

    `failures`: receives the errors of the functions.
    """
    names = {}
    for match in {match[0].lower(): match for match in _CALL.finditer(text)}.values():
        name, constants = match[1].lower(), json.loads(bytes.fromhex(match[2]))
        function = FUNCTIONS[name]
        result: Any = function.result
        if name == "variant_get":
            result = Selected("", VariantPath.parse(constants[0]), arrow_type(constants[1])).output or result
        names[match[0].lower()] = fresh = f"_variant_call_{next(_NUMBERS)}"  # queries share DuckDB's functions
        arguments = [*constants, context or CallContext()] if function.takes_context else constants
        call = _recorded(function.work, arguments, failures)
        returned = connection.sqltype(result) if isinstance(result, str) else engine_type(connection, result)
        connection.create_function(fresh, call, None, returned, type="arrow", null_handling="special")
    return _CALL.sub(lambda match: names[match[0].lower()], text)


def _recorded(work: Callable[..., pa.Array], arguments: list[Any], failures: list[Exception]) -> Callable[..., Any]:
    def recorded(*columns: Any) -> pa.Array:
        try:
            return work(*columns, *arguments)
        except Exception as error:  # of which DuckDB passes on only the text
            failures.append(error)
            raise

    return recorded


# Suffix of the name of a getter -> its return type: a function of an engine has one return type for all arguments.
GETTER_TYPES: dict[str, pa.DataType] = {
    name: DDL_NAMES.get(name, pa.decimal128(38, 9))
    for name in (
        "boolean", "int", "bigint", "float", "double", "decimal", "string", "binary", "date", "timestamp",
        "timestamp_ntz",
    )
}  # fmt: skip
# What an error is, by the prefix of the name.
_PREFIXES: dict[str, Errors] = {"": "raise", "try_": "null"}
# The work over Arrow columns, and the type of its result; None for Variants.
EngineFunction: TypeAlias = "tuple[Callable[..., pa.Array], pa.DataType | None]"


class VariantColumns(Record):
    """How an engine's columns of Variants are read and made: `kind` is the Arrow type of those that `make` returns."""

    read: Callable[[pa.Array], VariantArray]
    make: Callable[[VariantArray], pa.Array]
    kind: pa.DataType

    def functions(self, zone: str) -> dict[str, EngineFunction]:
        """Return the functions by name; casts use a session time zone."""
        parse: Callable[..., Any] = parse_json
        functions: dict[str, EngineFunction] = {
            "parse_json": (lambda text: self.make(parse(text)), None),
            "try_parse_json": (lambda text: self.make(parse(text, errors="null")), None),
            "to_json": (lambda values: to_json(self.read(values)), pa.string()),
            "schema_of_variant": (lambda values: schema_of_variant(self.read(values)).cast(pa.string()), pa.string()),
            "is_variant_null": (lambda values: is_variant_null(self.read(values)), pa.bool_()),
            "canonical": (lambda values: sort_keys(self.read(values)), pa.binary()),
            "variant_strip_nulls": (lambda values: self.make(strip_nulls(self.read(values))), None),
            "variant_delete": (lambda values, paths: self._by_path(paths, None, variant_delete, values), None),
        }
        for prefix, errors in _PREFIXES.items():
            for edit in (variant_set, variant_insert, variant_array_append):
                functions[f"{prefix}{edit.__name__}"] = self._edit(edit, errors), None
            functions[f"{prefix}variant_get"] = self._getter(None, zone, errors), None
            for suffix, kind in GETTER_TYPES.items():
                functions[f"{prefix}variant_get_{suffix}"] = self._getter(kind, zone, errors), kind
        return functions

    def _getter(self, kind: pa.DataType | None, zone: str, errors: Errors) -> Callable[[pa.Array, pa.Array], pa.Array]:
        """Return a function ``(variants, paths) -> values``."""
        get = partial(variant_get, type="variant" if kind is None else kind, zone=zone, errors=errors)
        return lambda values, paths: self._by_path(paths, kind, get, values)

    def _edit(self, edit: Callable[..., Any], errors: Errors) -> Callable[[pa.Array, pa.Array, pa.Array], pa.Array]:
        """Return a function ``(variants, paths, new values) -> changed variants``; all values are Variants."""
        return lambda values, paths, new: self._by_path(paths, None, partial(edit, errors=errors), values, new)

    def _by_path(
        self, paths: pa.Array, kind: pa.DataType | None, work: Callable[..., Any], values: pa.Array, *inputs: pa.Array
    ) -> pa.Array:
        """Return what `work` gives for the rows of each path, in the order of the rows; NULL where the path is NULL."""
        columns = list(map(self.read, (values, *inputs)))

        def of_path(path: str, first: VariantArray, *arguments: VariantArray) -> pa.Array:
            result = work(first, path, *arguments)
            return self.make(result) if kind is None else result

        paths = one_chunk(paths)
        distinct = paths.unique()
        if len(distinct) == 1 and distinct[0].is_valid:
            return of_path(distinct[0].as_py(), *columns)
        order = [np.flatnonzero(to_numpy(paths.is_null()))]
        parts = [pa.nulls(len(order[0]), self.kind if kind is None else kind)]
        for path in distinct.drop_null().to_pylist():
            rows = np.flatnonzero(to_numpy(pc.equal(paths, path).fill_null(False)))
            order.append(rows)
            parts.append(of_path(path, *(column.take(rows) for column in columns)))
        return pa.concat_arrays(parts).take(from_numpy(np.argsort(np.concatenate(order))))
