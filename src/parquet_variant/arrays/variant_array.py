"""`VariantArray`: a column of Variants over Arrow storage, unshredded or shredded.

Owns the storage struct, element access and the Arrow C interface. Leaves layouts to `schema`, and batch work to
`kernels`. Methods that need a higher layer (`functions`, `interop`) call functions that the root package registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, TypeVar, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant.arrays.capsules import array_capsules, import_variant, in_offsets, stream_capsule, variant_field
from parquet_variant.arrays.parts import (
    joined_storages,
    metadata_array,
    metadata_parts,
    one_chunk,
    refuse_unsound,
    storage_of_variants,
    stored_columns,
    variants_of,
    with_columns,
)
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import MalformedVariantError, SchemaError
from parquet_variant.kernels.arrow_buffers import from_numpy, to_numpy
from parquet_variant.layouts.layout import detect_layout
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.storages import ArrowGroup, check_fields
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.lazy_names import registered_method
from parquet_variant.support.options import Layout
from parquet_variant.support.records import cached_property
from parquet_variant.types.forms import in_form
from parquet_variant.types.targets import VARIANT_STORAGE

Value = TypeVar("Value")


class VariantArray:
    """A column of Variants.

    Parameters
    ----------
    storage
        An Arrow struct with ``metadata`` and ``value``, and ``typed_value`` where it is shredded (or the groups of one
        of the two draft layouts). Children are found by name. Binary children may be plain, large or views; metadata
        may be dictionary- or run-end-encoded.

    Raises
    ------
    SchemaError
        If the struct is not a Variant storage, or its buffers point outside the data (``bad-arrow``).

    Examples
    --------
    >>> import parquet_variant as pv
    >>> array = pv.VariantArray.from_pylist([{"a": 1}, None, "x"])
    >>> len(array), array.null_count, array.is_shredded
    (3, 1, False)
    >>> array[0]["a"].to_python(), array[1]
    (1, None)
    """

    __slots__ = ("__dict__", "_storage")

    def __init__(self, storage: pa.StructArray) -> None:
        storage = one_chunk(storage)
        if not isinstance(storage, pa.Array):
            raise SchemaError(
                f"a Variant column is an Arrow array, not a {type(storage).__name__}: use parse_json for JSON text, or "
                "from_python for Python values",
                reason="not-a-variant",
            )
        if isinstance(storage.type, pa.BaseExtensionType):
            storage = storage.storage
        if not pa.types.is_struct(storage.type):
            raise SchemaError(
                f"a Variant column is a struct of metadata and value, not {storage.type}: use parse_json for JSON "
                "text, or cast_to_variant for other values",
                reason="not-a-variant",
            )
        layout = detect_layout(storage.type)
        check_fields(ArrowGroup(storage.type), layout)
        refuse_unsound(storage)
        for field in storage.type:
            if field.name in ("metadata", "value", "untyped_value") and pa.types.is_null(field.type):
                raise SchemaError(f"{field.name!r} has the type null instead of binary", reason="not-binary", path="$")
        storage = _with_dictionary(in_offsets(storage))
        self._storage = _with_variant_nulls(storage) if layout == "unshredded" else storage
        self.__dict__.update(layout=layout, fits_files=False, is_checked=False)

    layout: Layout
    """``"unshredded"``, ``"final"``, ``"draft-paths"`` or ``"draft-object"``."""

    fits_files: bool
    """Whether the storage is known to have the shape that files need."""

    is_checked: bool
    """Whether the typed columns are known to hold only what their types allow, such as strings that are UTF-8."""

    def _with_storage(self, storage: pa.StructArray) -> VariantArray:
        """Return an array over rows of this array's storage, without checking it again."""
        return _made(storage, self.layout, self.fits_files, self.is_checked)

    @classmethod
    def from_variants(cls, values: Iterable[Variant | None]) -> VariantArray:
        """Return the array of `Variant` values with their bytes unchanged; None is SQL NULL."""
        refuse_one_value(values)
        try:
            storage = storage_of_variants(values)
        except AttributeError:
            raise SchemaError("a value is not a Variant: use from_python for Python values") from None
        return cls(storage)

    @classmethod
    def from_pylist(cls, values: Iterable[Any]) -> VariantArray:
        """Return the array of Python objects; None is SQL NULL (``Variant.from_python(None)`` is a Variant null)."""
        refuse_one_value(values)
        return cls.from_variants(v if v is None or isinstance(v, Variant) else Variant.from_python(v) for v in values)

    @classmethod
    def concat(cls, arrays: Iterable[VariantArray]) -> VariantArray:
        """Return the concatenation of arrays, which must be unshredded or have the same storage type."""
        arrays = tuple(arrays)
        if len(arrays) > 1 and all(isinstance(array, VariantArray) and not array.is_shredded for array in arrays):
            return trusted_array(joined_storages([array.storage for array in arrays]))
        return trusted_array(pa.concat_arrays([array.storage for array in checked_arrays(arrays)]))

    @property
    def storage(self) -> pa.StructArray:
        """The Arrow struct."""
        return self._storage

    @property
    def is_shredded(self) -> bool:
        """Whether values may be stored in typed columns."""
        return self.layout != "unshredded"

    @cached_property
    def schema(self) -> ShreddingSchema | None:
        """The shredding schema; None for an unshredded array."""
        return ShreddingSchema.from_storage(self._storage.type) if self.is_shredded else None

    @property
    def null_count(self) -> int:
        """The number of SQL NULL rows (a Variant null is a value)."""
        return int(self._storage.null_count)

    def is_null(self) -> pa.BooleanArray:
        """Return the mask of SQL NULL rows."""
        return self._storage.is_null()

    @property
    def nbytes(self) -> int:
        """The number of bytes of the buffers."""
        return int(self._storage.nbytes)

    def __len__(self) -> int:
        return len(self._storage)

    @overload
    def __getitem__(self, index: int) -> Variant | None: ...
    @overload
    def __getitem__(self, index: slice | str | Sequence[Any] | pa.Array | npt.NDArray[Any]) -> VariantArray: ...
    def __getitem__(self, index: Any) -> Variant | VariantArray | None:
        """Return one value (None for SQL NULL); the rows of a slice, a mask or indices; or a field of every row, by
        name or path (``"$.a.b"``).

        A name that no object has gives nulls, and a warning if a similar name exists.

        Raises
        ------
        IndexError
            If a row does not exist, or a mask has another length.

        Examples
        --------
        >>> import parquet_variant as pv
        >>> events = pv.parse_json(['{"id": 1}', '{"id": "two"}', "[]"])
        >>> events["id"].to_pylist(), events[[2, 0]].to_pylist(), events[[True, False, False]].to_pylist()
        ([1, 'two', None], [[], {'id': 1}], [{'id': 1}])
        """
        if isinstance(index, str):
            values: VariantArray = registered_method("VariantArray.field")(self, index)
            return values
        if not isinstance(index, (int, np.integer, slice)):
            picked = _selection(index, pa.int64() if isinstance(index, Sequence) and not index else None)
            if pa.types.is_boolean(picked.type):
                return self.filter(picked)
            if not pa.types.is_integer(picked.type) or picked.null_count:
                raise IndexError(f"rows are selected by integers or a mask, not by {picked.type}")
            rows = to_numpy(picked.cast(pa.int64()))
            rows = np.where(rows < 0, rows + len(self), rows)
            if len(rows) and (rows.min() < 0 or rows.max() >= len(self)):
                raise IndexError(f"an index of {index!r} is out of range for {len(self)} rows")
            return self.take(rows)
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                return self.take(np.arange(start, stop, step))
            return self._with_storage(self._storage.slice(start, max(stop - start, 0)))
        row = int(index) + len(self) if index < 0 else int(index)
        if not 0 <= row < len(self):
            raise IndexError(f"row {index} is out of range for {len(self)} rows")
        if not self._storage[row].is_valid:
            return None
        one = self._with_storage(self._storage.slice(row, 1)).to_unshredded()._storage
        # Not .as_py() on the struct, which would copy every child.
        return next(variants_of(one))

    def __iter__(self) -> Iterator[Variant | None]:
        return variants_of(self.to_unshredded()._storage)

    def take(self, indices: Any) -> VariantArray:
        """Return the rows at indices, in the order of the indices."""
        return self._with_storage(self._storage.take(_selection(indices, pa.int64())))

    def filter(self, mask: Any) -> VariantArray:
        """Return the rows where the mask is true."""
        picked = _selection(mask, pa.bool_())
        if len(picked) != len(self):
            raise IndexError(f"the mask has {len(picked)} entries for {len(self)} rows")
        return self._with_storage(self._storage.filter(picked))

    def to_pylist(self) -> list[Any]:
        """Return Python objects; None for SQL NULL and for Variant null."""
        objects: list[Any] = registered_method("VariantArray.to_pylist")(self)
        return objects

    def to_numpy(self) -> npt.NDArray[Any]:
        """Return an object array of `Variant`; None for SQL NULL."""
        values = np.empty(len(self), object)
        values[:] = list(self)
        return values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self.to_numpy() if dtype is None else self.to_numpy().astype(dtype)

    def to_arrow(self) -> pa.StructArray:
        """Return the storage as a pyarrow array, without copying; `from_arrow` converts it back."""
        return self._storage

    def to_pandas(self, name: str | None = None) -> Any:
        """Return a pandas series of dtype ``variant``, with a ``.variant`` accessor; see `ops.interop.pandas`."""
        return registered_method("VariantArray.to_pandas")(self, name)

    @classmethod
    def from_pandas(cls, series: Any) -> VariantArray:
        """Return the Variants of a pandas series of dtype ``variant``, or the Python values of any other series as
        Variants.
        """
        array: VariantArray = registered_method("VariantArray.from_pandas")(series)
        return array

    def to_polars(self, name: str = "") -> Any:
        """Return a polars series with a ``.variant`` namespace; `from_arrow` converts it back."""
        return registered_method("VariantArray.to_polars")(self, name)

    def to_unshredded(self) -> VariantArray:
        """Return the same values without typed columns; the array itself if it is unshredded.

        Raises
        ------
        ConflictError
            If columns of a value conflict.
        """
        if not self.is_shredded:
            return self
        from parquet_variant.arrays.storages import unshredded_storage

        return trusted_array(unshredded_storage(self._storage, self.layout))

    def equals(self, other: VariantArray) -> bool:
        """Return whether both arrays have equal values by meaning, row by row, in any layout."""
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __eq__(self, other: object) -> bool:
        return self.equals(other) if isinstance(other, VariantArray) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        values = ", ".join(_preview(value, 60) for value in self[:3])
        more = ", …" if len(self) > 3 else ""
        return f"<VariantArray {self.layout}, {len(self)} rows: [{values}{more}]>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{row}</td><td><code>{escape(_preview(value, 200))}</code></td></tr>"
            for row, value in enumerate(self[:10])
        )
        schema = "" if self.schema is None else f"; typed: <code>{escape(self.schema.to_ddl())}</code>"
        more = f"<p>… {len(self) - 10:,} more</p>" if len(self) > 10 else ""
        return f"<p>VariantArray: {len(self):,} rows, {self.layout}{schema}</p><table>{rows}</table>{more}"

    def __reduce__(self) -> tuple[Any, ...]:
        return VariantArray, (self._storage,)

    @property
    def arrow_field(self) -> pa.Field:
        """The field of this column for a table: the storage type, with the extension's name as metadata."""
        return variant_field(self._storage.type)

    def __arrow_c_schema__(self) -> Any:
        return self.arrow_field.__arrow_c_schema__()

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return array_capsules(self._storage, requested_schema)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return stream_capsule([self._storage], self._storage.type, requested_schema)

    @classmethod
    def from_arrow(cls, obj: Any, column: str | None = None) -> VariantArray:
        """Return the Variant column of an object of any Arrow library.

        Parameters
        ----------
        obj
            Anything with ``__arrow_c_array__`` or ``__arrow_c_stream__``: an array, a series, a stream of chunks, a
            table. The storage may have any form that the constructor accepts. JSON text of the type ``arrow.json`` is
            parsed.
        column
            The column, if the object is a table. None: the object is the column, or a table with one Variant column.

        Raises
        ------
        SchemaError
            If the object is not Arrow data (``not-arrow``), if the column does not exist, or there is not exactly one
            Variant column (``not-a-variant``).

        Examples
        --------
        >>> array = VariantArray.from_pylist([{"a": 1}, None])
        >>> VariantArray.from_arrow(pa.table({"id": [1, 2], "v": array.storage})).equals(array)
        True
        """
        return cls.concat(cls(storage) for storage in import_variant(obj, column))


def trusted_array(storage: pa.StructArray, *, fits_files: bool = False, is_checked: bool = False) -> VariantArray:
    """Return the array over a storage that kernels have just made, without checking its buffers again.

    `storage`: a storage in which every valid row has a value. Storages from outside must use the constructor.
    `fits_files`: whether the storage has the shape that files require, as storages made from nodes have.
    `is_checked`: whether the typed columns hold only what their types allow, as `shred_variant` makes them.
    """
    storage = storage if fits_files else _with_dictionary(storage)
    return _made(storage, detect_layout(storage.type), fits_files, is_checked)


def _made(storage: pa.StructArray, layout: Layout, fits_files: bool, is_checked: bool) -> VariantArray:
    made = VariantArray.__new__(VariantArray)
    made._storage = storage
    made.__dict__.update(layout=layout, fits_files=fits_files, is_checked=is_checked)
    return made


def remembered(array: VariantArray, name: str, make: Callable[[pa.StructArray], Value]) -> Value:
    """Return an object that a higher layer makes of the storage of an array: made on first use, then kept with it."""
    objects: dict[str, Value] = array.__dict__.setdefault("_remembered", {})
    return objects[name] if name in objects else objects.setdefault(name, make(array.storage))


def checked_arrays(arrays: Iterable[VariantArray]) -> tuple[VariantArray, ...]:
    """Return arrays that can be concatenated. Raises `SchemaError` for no arrays, or if their storage types differ."""
    arrays = tuple(arrays)
    for array in arrays:
        if not isinstance(array, VariantArray):
            raise SchemaError(f"expected VariantArrays, got a {type(array).__name__}")
    # Hashing a large type is slow.
    kinds = 1 if len(arrays) == 1 else len({array.storage.type for array in arrays})
    if kinds != 1:
        message = f"cannot concatenate arrays of {kinds} storage types: unshred them, or shred them by one schema first"
        raise SchemaError(message, reason="different-storage")
    return arrays


def _selection(rows: Any, kind: pa.DataType | None) -> pa.Array:
    """Return the selection of rows as an Arrow array. Raises `IndexError` if it is not one."""
    try:
        return pa.array(rows, kind)
    except (pa.ArrowException, TypeError, AttributeError, OverflowError):
        raise IndexError(f"rows are selected by integers or a mask, not by a {type(rows).__name__}") from None


def is_one_value(values: Any) -> bool:
    """Return whether an object is one value and not a column of values, even if Python can iterate over it."""
    scalars = (str, bytes, bytearray, memoryview, Mapping, set, frozenset, Variant, np.generic)
    methods = ("__iter__", "__getitem__", "__array__", "__arrow_c_array__", "__arrow_c_stream__")
    is_scalar = isinstance(values, scalars) or (isinstance(values, np.ndarray) and not values.ndim)
    return is_scalar or not any(hasattr(values, name) for name in methods)


def refuse_one_value(values: Any) -> None:
    """Raise `SchemaError` (``one-value``) for one value where a column of values is expected."""
    if is_one_value(values):
        raise SchemaError(
            f"expected a column of values, got one {type(values).__name__}: put it into a list, or use "
            "Variant.from_python for one Variant",
            reason="one-value",
        )


def plain_storage(array: VariantArray) -> pa.StructArray:
    """Return the values as ``VARIANT_STORAGE``, the same type for Variants of all data."""
    storage = array.to_unshredded().storage
    plain = []
    for column in (storage.field("metadata"), storage.field("value")):
        if pa.types.is_dictionary(column.type) and len(column.dictionary) == 1 and not column.null_count:
            column = pa.repeat(column.dictionary[0], len(column))  # a file usually has one metadata
        plain.append(column if column.type == pa.binary() else column.cast(pa.binary()))
    nulls = storage.is_null() if storage.null_count else None
    return pa.StructArray.from_arrays(plain, fields=list(VARIANT_STORAGE), mask=nulls)


def _preview(value: Variant | None, characters: int) -> str:
    """Return a value as text on one line."""
    try:
        return "NULL" if value is None else value.preview(characters)
    except MalformedVariantError as error:
        return f"(malformed: {error})"


def _with_variant_nulls(storage: pa.StructArray) -> pa.StructArray:
    """Return an unshredded storage with a Variant null in valid rows that have no value."""
    value = storage.field("value")
    if value.null_count == 0 or not pc.any(pc.and_(storage.is_valid(), value.is_null())).as_py():
        return storage
    fields = [storage.field("metadata"), value.fill_null(b"\x00")]
    return pa.StructArray.from_arrays(fields, names=["metadata", "value"], mask=storage.is_null())


def _with_dictionary(storage: pa.StructArray) -> pa.StructArray:
    """Return a storage whose metadata has a dictionary entry and no nulls; engines write none if all rows are null."""
    at = storage.type.get_field_index("metadata")
    if at < 0 or not len(storage) or not pa.types.is_dictionary(storage.type.field(at).type):
        return storage
    metadata = storage.field(at)
    if len(metadata.dictionary) and not metadata.dictionary.null_count:
        return storage
    parts = metadata_parts(metadata)
    missing = (parts.indices < 0) & (len(metadata.dictionary) > 0)
    column = metadata_array(from_numpy(np.maximum(parts.indices, 0), missing), parts.dictionary)
    return with_columns(storage, {**stored_columns(storage), "metadata": in_form(column, metadata.type)})
