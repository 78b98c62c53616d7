"""Rows of any supported form as one Arrow table with marked Variant columns, and tables in other forms.

Owns the supported forms of input: columns by name, Arrow tables and batches, data frames of pandas and polars,
relations of DuckDB, and any object that exports an Arrow stream; and the methods of tabular results (`ArrowResult`).
Leaves requirements of files and tables to their writers, and columns of Variants to `ops.interop.pandas` and
`ops.interop.polars`.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import pyarrow as pa

from parquet_variant.arrays import capsules
from parquet_variant.arrays.chunked_array import ChunkedVariantArray, variant_table
from parquet_variant.arrays.parts import one_chunk
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import SchemaError, VariantFileError
from parquet_variant.ops.conversions import cast_to_variant
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.types import forms
from parquet_variant.types.targets import VARIANT_STORAGE


def table_of(data: Any) -> pa.Table:
    """Return data as an Arrow table.

    The data is a mapping from names to columns (a `VariantArray`, an Arrow array, or anything that ``pyarrow.array``
    accepts); a pyarrow table or record batch; a data frame of pandas or polars; any object with ``__arrow_c_stream__``;
    or a `VariantArray`, which becomes the column ``v``. Raises `SchemaError` or `VariantFileError` for anything else,
    and for columns of different lengths.
    """
    if isinstance(data, VariantArray | ChunkedVariantArray):
        data = {"v": data}
    if isinstance(data, ArrowResult):
        data = data.with_variants()
    if is_list_of_objects(data):
        data = {"v": VariantArray.from_pylist(data)}
    try:
        table = _table_of(data)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, OverflowError) as error:
        raise SchemaError(
            f"cannot convert a column to Arrow data: {'; '.join(map(str, error.args))}", reason="bad-data"
        ) from None
    if not table.num_columns:
        raise VariantFileError("the data has no columns", reason="no-columns")
    _refuse_duplicates(table.column_names)
    columns = [_stored_column(field, column) for field, column in zip(table.schema, table.columns, strict=True)]
    fields = pa.schema([field for field, _ in columns], table.schema.metadata)
    return pa.table([column for _, column in columns], schema=fields)


def rows_of(data: Any) -> pa.Table:
    """Return data as `table_of` does, with Variants in place of JSON text of the type ``arrow.json``, at any depth.

    Raises `JsonError` also for text that is not JSON, with its row.
    """
    return with_json_as_variants(table_of(data))


def with_json_as_variants(table: pa.Table, unchanged: Container[str] = ()) -> pa.Table:
    """Return a table as `rows_of` does, with some columns as they are."""
    fields = [field if field.name in unchanged else _without_json(field) for field in table.schema]
    for index, (field, new) in enumerate(zip(table.schema, fields, strict=True)):
        if new.type != field.type:
            table = table.set_column(index, new, forms.chunks_in_form(table.column(index), new.type, _json_as_variants))
    return table


def with_variant_columns(data: Any, names: Sequence[str]) -> pa.Table:
    """Return data as a table in which the values of some columns, such as dicts of pandas, are Variants."""
    data = _frame_by_name(data)
    rows = data if isinstance(data, Mapping) else table_of(data)
    columns = list(rows) if isinstance(rows, Mapping) else rows.column_names
    if missing := [name for name in names if name not in columns]:
        problem = f"variant_columns names {missing[0]!r}, which does not exist: the columns are {', '.join(columns)}"
        raise SchemaError(problem, reason="no-such-column")
    if isinstance(rows, Mapping):  # Python values first: as Arrow structs, all dicts of a column would have all keys.
        rows = table_of({**rows, **{name: _python_as_variants(rows[name]) for name in names}})
    for name in names:
        variants = variant_table({name: cast_to_variant(rows.column(name))})
        rows = rows.set_column(columns.index(name), variants.schema.field(0), variants.column(0))
    return rows


def with_nested_as_variants(data: Any, variants: Callable[[], Collection[str]] | None = None) -> pa.Table:
    """Return data as a table in which the columns of Python values of several types are Variants.

    With `variants`, only the columns with these names, and their dicts, lists and structs too; the function is not
    called for data without such values.
    """
    data = _frame_by_name(data)
    rows = data if isinstance(data, Mapping) else table_of(data)
    columns = rows if isinstance(rows, Mapping) else dict(zip(rows.column_names, rows.columns, strict=True))
    names = [name for name, column in columns.items() if _needs_variants({name: column}, variants is not None)]
    variant_names = variants() if names and variants is not None else names
    return with_variant_columns(rows, [name for name in names if name in variant_names])


def _needs_variants(column: Mapping[str, Any], is_nested: bool) -> bool:
    """Return whether a column has Python values of several types or, with `is_nested`, dicts, lists and structs."""
    try:
        kind = variant_table(column).schema.field(0).type
    except SchemaError:
        return True
    return is_nested and pa.types.is_nested(kind) and not capsules.is_storage(kind)


def _frame_by_name(data: Any) -> Any:
    """Return a pandas data frame without the index as series and Variants by name; other data as it is."""
    if (pandas := sys.modules.get("pandas")) is None or not isinstance(data, pandas.DataFrame):
        return data
    _refuse_duplicates(list(map(str, data.columns)))
    return {str(n): VariantArray.from_pandas(s) if str(s.dtype) == "variant" else s for n, s in data.items()}


def _python_as_variants(column: Any) -> Any:
    """Return a list, or a series or NumPy array of Python objects, as Variants; other columns as they are."""
    if isinstance(column, list | tuple):
        return VariantArray.from_pylist(column)
    return VariantArray.from_pandas(column) if str(getattr(column, "dtype", None)) == "object" else column


def _refuse_duplicates(names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise VariantFileError("duplicate column names: rename one of the columns", reason="several-columns")


def _without_json(field: pa.Field) -> pa.Field:
    if forms.is_json_type(field.type):
        return pa.field(field.name, VARIANT_STORAGE, field.nullable, capsules.EXTENSION_METADATA)
    return field.with_type(forms.with_fields(field.type, _without_json))


def _json_as_variants(array: pa.Array, target: pa.DataType) -> pa.Array | None:
    return capsules.plain_metadata(VariantArray.from_arrow(array).storage) if forms.is_json_type(array.type) else None


def is_rows(data: Any) -> bool:
    """Return whether data is a table, and not an iterable of tables such as a reader of record batches."""
    is_table = isinstance(data, pa.Table | pa.RecordBatch | Mapping) or hasattr(data, "__arrow_c_stream__")
    is_table = is_table or is_list_of_objects(data) or _is_lazy(data)
    return is_table and not isinstance(data, pa.RecordBatchReader)


def is_list_of_objects(data: Any) -> bool:
    """Return whether data is a list of rows, not of batches: no value of the first object is an array."""
    if not (isinstance(data, list) and data and all(isinstance(row, Mapping) for row in data)):
        return False
    of_rows = (str, bytes, list, tuple, Mapping)
    return not any(hasattr(value, "__len__") and not isinstance(value, of_rows) for value in data[0].values())


def _is_lazy(data: Any) -> bool:
    """Return whether data is a lazy frame of polars."""
    return hasattr(data, "collect") and hasattr(data, "collect_schema")


def _table_of(data: Any) -> pa.Table:
    data = data.collect() if _is_lazy(data) else _frame_by_name(data)
    if isinstance(data, pa.RecordBatch | pa.Table):
        return data if isinstance(data, pa.Table) else pa.Table.from_batches([data])
    if isinstance(data, Mapping):
        sizes = {name: len(column) for name, column in data.items() if hasattr(column, "__len__")}
        if len(set(sizes.values())) > 1:
            lengths = ", ".join(f"{name} {size}" for name, size in sizes.items())
            raise VariantFileError(f"columns have different lengths: {lengths}", reason="lengths-differ")
        return variant_table(data)
    if hasattr(data, "__arrow_c_stream__") and not isinstance(data, VariantArray | ChunkedVariantArray):
        capsules.refuse_objects(data)
        # Another library's Variants may lack metadata in null rows, which `from_arrow` adds.
        table = pa.table(data)
        named = {field.name for field in table.schema if capsules.is_variant_field(field)}
        columns = zip(table.column_names, table.columns, strict=True)
        return variant_table({name: VariantArray.from_arrow(c) if name in named else c for name, c in columns})
    raise SchemaError(
        f"cannot use a {type(data).__name__} as rows: give columns by name, an Arrow table, or a data frame of pandas "
        "or polars",
        reason="bad-data",
    )


def _stored_column(field: pa.Field, column: pa.ChunkedArray) -> tuple[pa.Field, pa.ChunkedArray]:
    """Return a column and its field with marked Variants, without views and run ends, which file writers refuse."""
    marked = capsules.with_extension(field)  # Spark's marks, nested ones too
    if marked is not field:
        field, column = marked, forms.chunks_in_form(column, marked.type, _with_extension)
    if any(_is_exported(kind) for kind, _ in forms.nested_types(field.type)):
        field = capsules.with_marks(field, _is_exported)
    kind, column = forms.plain_form(field.type, stored=True), forms.without_null_entries(column)
    if kind == field.type:
        return field, column
    if capsules.is_variant_field(field):
        column = variant_table({field.name: VariantArray.from_arrow(column)}).column(0)
    else:
        column = forms.chunks_in_form(column, kind)
    return field.with_type(column.type), column


def _is_exported(kind: pa.DataType) -> bool:
    """Return whether a type is that of a `VariantArray`, whose mark pyarrow drops; others have plain metadata."""
    at = kind.get_field_index("metadata") if pa.types.is_struct(kind) else -1
    return at >= 0 and kind.field(at).type == pa.dictionary(pa.int32(), pa.binary()) and capsules.is_storage(kind)


def _with_extension(array: pa.Array, target: pa.DataType) -> pa.Array | None:
    """Return a Variant from Spark in the marked type; its children may be null where the struct is null."""
    if not capsules.is_marked_by_spark(array.type):
        return None
    mask = array.is_null() if array.null_count else None
    array = capsules.with_metadata(array)
    children = [array.field(number) for number in range(array.type.num_fields)]
    children = [child.fill_null(pa.scalar(b"", child.type)) if child.null_count else child for child in children]
    return pa.StructArray.from_arrays(children, fields=list(target), mask=mask)


class ArrowResult(ABC):
    """A table that can be read as pyarrow, polars, pandas or Python objects."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """Return the rows as a pyarrow table."""

    def with_variants(self) -> pa.Table:
        """Return the rows for tables and queries: a result that shows Variants as JSON has them as Variants here."""
        return self.to_arrow()

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""

    @property
    def column_names(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema.names)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_polars(self) -> Any:
        """Return the rows as a polars data frame; Variant columns have a ``.variant`` namespace."""
        with optional_libraries("to_polars"):
            from parquet_variant.ops.interop.polars import data_frame
        return data_frame(self.to_arrow())

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame; Variant columns have the dtype ``variant``."""
        table = self.to_arrow()
        variants = [field.name for field in table.schema if _holds_variants(field)]
        with optional_libraries("to_pandas"):
            frame = table.drop_columns(variants).to_pandas()
        for number, field in enumerate(table.schema):
            if capsules.is_variant_field(field):
                frame.insert(number, field.name, VariantArray.from_arrow(table, field.name).to_pandas(field.name))
            elif field.name in variants:
                frame.insert(number, field.name, _python_values(table.column(number), field))
        return frame

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as dicts; Variants are Python objects."""
        table = self.to_arrow()
        columns = [_python_values(column, field) for field, column in zip(table.schema, table.columns, strict=True)]
        return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _holds_variants(field: pa.Field) -> bool:
    children = map(field.type.field, range(field.type.num_fields))
    return capsules.is_variant_field(field) or any(map(_holds_variants, children))


def _python_values(column: pa.Array | pa.ChunkedArray, field: pa.Field) -> list[Any]:
    """Return the values of a column as Python objects, in which Variants are objects too, at any depth."""
    types, kind = pa.types, field.type
    if capsules.is_variant_field(field):
        return VariantArray.from_arrow(column).to_pylist()
    if not _holds_variants(field):
        return list(column.to_pylist())
    array = one_chunk(column)
    if types.is_struct(kind):
        children = [_python_values(child, part) for child, part in zip(array.flatten(), kind, strict=True)]
        values: Iterable[Any] = (dict(zip(kind.names, row, strict=True)) for row in zip(*children, strict=True))
    elif types.is_map(kind):
        keys, items = forms.entry_lists(array)
        entries = zip(keys.to_pylist(), _python_values(items, pa.field("", pa.list_(kind.item_field))), strict=True)
        values = (list(zip(keys or (), of_keys or (), strict=True)) for keys, of_keys in entries)
    else:
        elements = iter(_python_values(array.flatten(), kind.value_field))
        values = (list(islice(elements, size)) for size in pc.list_value_length(array).fill_null(0).to_pylist())
    return [value if is_valid else None for value, is_valid in zip(values, array.is_valid().to_pylist(), strict=True)]
