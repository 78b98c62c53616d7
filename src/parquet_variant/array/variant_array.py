"""`VariantArray`: a column of Variants over Arrow storage, unshredded or shredded.

Owns the storage struct, element access and the Arrow C interface. Leaves layouts to `schema`, batch work to `kernels`,
the public operations to `functions`, and other libraries to `interop`, which is loaded when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.capsules import array_capsules, import_variant, in_offsets, stream_capsule, variant_field
from parquet_variant.array.parts import metadata_array, metadata_parts, one_chunk, storage_of, variants_of
from parquet_variant.array.soundness import refuse_unsound
from parquet_variant.choices import Layout
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import MalformedVariantError, SchemaError
from parquet_variant.fork_safety import cached_property
from parquet_variant.kernels.arrow_buffers import from_numpy, to_numpy
from parquet_variant.lazy_names import registered_method
from parquet_variant.path import VariantPath
from parquet_variant.schema.layout import check_fields, detect_layout
from parquet_variant.schema.path_steps import ArrowGroup
from parquet_variant.schema.shredding_schema import ShreddingSchema


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
        If the struct is not a Variant storage, or its buffers point outside of one another (``bad-arrow``).

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
                f"a Variant column is an Arrow array, not a {type(storage).__name__}; to make one of JSON text use "
                "parse_json, of Python values from_python",
                reason="not-a-variant",
            )
        if isinstance(storage.type, pa.BaseExtensionType):
            storage = storage.storage
        if not pa.types.is_struct(storage.type):
            raise SchemaError(
                f"a Variant column is a struct of metadata and value, not {storage.type}; to make one of JSON text use "
                "parse_json, of other values cast_to_variant",
                reason="not-a-variant",
            )
        layout = detect_layout(storage.type)
        check_fields(ArrowGroup(storage.type), layout)
        refuse_unsound(storage)
        storage = _with_dictionary(in_offsets(storage))
        self._storage = _with_values(storage) if layout == "unshredded" else storage
        self.__dict__.update(layout=layout, fits_files=False)

    layout: Layout
    """``"unshredded"``, ``"final"``, ``"draft-paths"`` or ``"draft-object"``."""

    fits_files: bool
    """Whether the storage is known to have the shape that files need."""

    def _over(self, storage: pa.StructArray) -> VariantArray:
        """The array over rows of this one's storage: what was checked is not checked again."""
        made = VariantArray.__new__(VariantArray)
        made._storage = storage
        made.__dict__.update(layout=self.layout, fits_files=self.fits_files)
        return made

    # -- made from something else

    @classmethod
    def from_storage(cls, storage: pa.StructArray) -> VariantArray:
        """The array over a storage struct; the same as the constructor."""
        return cls(storage)

    @classmethod
    def from_variants(cls, values: Iterable[Variant | None]) -> VariantArray:
        """The array of some values, bytes as they are; None is SQL NULL."""
        refuse_one_value(values)
        try:
            rows = [None if v is None else {"metadata": v.metadata, "value": v.value} for v in values]
        except AttributeError:
            raise SchemaError("a value is no Variant: Python values become Variants with from_python") from None
        empty = {"metadata": Variant.from_python(None).metadata, "value": b""}
        metadata = pa.array([(row or empty)["metadata"] for row in rows], pa.binary()).dictionary_encode()
        value = pa.array([(row or empty)["value"] for row in rows], pa.binary())
        return cls(storage_of(metadata, value, pa.array([row is None for row in rows], pa.bool_())))

    @classmethod
    def from_pylist(cls, values: Iterable[Any]) -> VariantArray:
        """The array of some Python objects; None is SQL NULL (``Variant.from_python(None)`` is a Variant null)."""
        refuse_one_value(values)
        return cls.from_variants(v if v is None or isinstance(v, Variant) else Variant.from_python(v) for v in values)

    @classmethod
    def concat(cls, arrays: Iterable[VariantArray]) -> VariantArray:
        """The arrays one after the other; they must have the same storage type."""
        return trusted_array(pa.concat_arrays([array.storage for array in alike(arrays)]))

    # -- what it is

    @property
    def storage(self) -> pa.StructArray:
        """The Arrow struct itself."""
        return self._storage

    @property
    def is_shredded(self) -> bool:
        """Whether some of the values may be in typed columns."""
        return self.layout != "unshredded"

    @cached_property
    def schema(self) -> ShreddingSchema | None:
        """What is shredded; None for an unshredded array."""
        return ShreddingSchema.from_storage(self._storage.type) if self.is_shredded else None

    @property
    def null_count(self) -> int:
        """Number of SQL NULL rows (a Variant null is a value)."""
        return int(self._storage.null_count)

    def is_null(self) -> pa.BooleanArray:
        """Which rows are SQL NULL."""
        return self._storage.is_null()

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers."""
        return int(self._storage.nbytes)

    def __len__(self) -> int:
        return len(self._storage)

    # -- elements

    @overload
    def __getitem__(self, index: int) -> Variant | None: ...
    @overload
    def __getitem__(self, index: slice | str | Sequence[Any] | pa.Array | npt.NDArray[Any]) -> VariantArray: ...
    def __getitem__(self, index: Any) -> Variant | VariantArray | None:
        """One value (None for SQL NULL); the rows of a slice, mask or indices; or the field of that name of every row.

        Raises
        ------
        IndexError
            If there is no such row, or a mask has another length.

        Examples
        --------
        >>> import parquet_variant as pv
        >>> events = pv.parse_json(['{"id": 1}', '{"id": "two"}', "[]"])
        >>> events["id"].to_pylist(), events[[2, 0]].to_pylist(), events[[True, False, False]].to_pylist()
        ([1, 'two', None], [[], {'id': 1}], [{'id': 1}])
        """
        if isinstance(index, str):
            values: VariantArray = registered_method("VariantArray.field")(self, VariantPath((index,)), "variant")
            return values
        if not isinstance(index, (int, np.integer, slice)):
            return self._rows(index)
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                return self.take(np.arange(start, stop, step))
            return self._over(self._storage.slice(start, max(stop - start, 0)))
        row = int(index) + len(self) if index < 0 else int(index)
        if not 0 <= row < len(self):
            raise IndexError(f"row {index} of {len(self)}")
        if not self._storage[row].is_valid:
            return None
        one = self._over(self._storage.slice(row, 1)).to_unshredded()._storage
        # Never .as_py() on the struct: it would copy every child.
        return next(variants_of(one))

    def _rows(self, index: Any) -> VariantArray:
        """The rows of a mask, or at indices, which may count from the end."""
        picked = _picked(index, pa.int64() if isinstance(index, Sequence) and not index else None)
        if pa.types.is_boolean(picked.type):
            return self.filter(picked)
        if not pa.types.is_integer(picked.type) or picked.null_count:
            raise IndexError(f"rows are chosen by integers or a mask, not by {picked.type}")
        rows = to_numpy(picked.cast(pa.int64()))
        rows = np.where(rows < 0, rows + len(self), rows)
        if len(rows) and (rows.min() < 0 or rows.max() >= len(self)):
            raise IndexError(f"a row of {index!r} is not among {len(self)}")
        return self.take(rows)

    def __iter__(self) -> Iterator[Variant | None]:
        return variants_of(self.to_unshredded()._storage)

    def take(self, indices: Any) -> VariantArray:
        """The rows at some indices, in their order."""
        return self._over(self._storage.take(_picked(indices, pa.int64())))

    def filter(self, mask: Any) -> VariantArray:
        """The rows where the mask is true."""
        picked = _picked(mask, pa.bool_())
        if len(picked) != len(self):
            raise IndexError(f"a mask of {len(picked)} for {len(self)} rows")
        return self._over(self._storage.filter(picked))

    def to_pylist(self) -> list[Any]:
        """Python objects; None for SQL NULL and for Variant null."""
        objects: list[Any] = registered_method("VariantArray.to_pylist")(self)
        return objects

    def to_numpy(self) -> npt.NDArray[Any]:
        """An object array of `Variant`; None for SQL NULL."""
        values = np.empty(len(self), object)
        values[:] = list(self)
        return values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self.to_numpy() if dtype is None else self.to_numpy().astype(dtype)

    def to_pandas(self, name: str | None = None) -> Any:
        """A pandas series of dtype ``variant``, with a ``.variant`` accessor; see `interop.pandas`."""
        return registered_method("VariantArray.to_pandas")(self, name)

    @classmethod
    def from_pandas(cls, series: Any) -> VariantArray:
        """The Variants of a pandas series: of dtype ``variant`` as they are, of any other its Python values."""
        array: VariantArray = registered_method("VariantArray.from_pandas")(series)
        return array

    def to_polars(self, name: str = "") -> Any:
        """A polars series with a ``.variant`` namespace; `from_arrow` is the way back."""
        return registered_method("VariantArray.to_polars")(self, name)

    def to_duckdb(self, connection: Any, name: str, column: str = "v") -> Any:
        """A relation of DuckDB with one VARIANT column, registered under a name; `from_arrow` is the way back."""
        return registered_method("VariantArray.to_duckdb")(self, connection, name, column)

    def to_unshredded(self) -> VariantArray:
        """The same values without typed columns; the array itself if there are none.

        Raises
        ------
        ConflictError
            If the columns contradict each other.
        """
        if not self.is_shredded:
            return self
        from parquet_variant.array.storages import unshredded_storage

        return trusted_array(unshredded_storage(self._storage, self.layout))

    # -- comparison and text

    def equals(self, other: VariantArray) -> bool:
        """Whether both hold equal values by meaning, row by row, whatever the layout."""
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __eq__(self, other: object) -> bool:
        return self.equals(other) if isinstance(other, VariantArray) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(_in_short(value, 60) for value in self[:3])
        more = ", …" if len(self) > 3 else ""
        return f"<VariantArray {self.layout}, {len(self)} rows: [{shown}{more}]>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{row}</td><td><code>{escape(_in_short(value, 200))}</code></td></tr>"
            for row, value in enumerate(self[:10])
        )
        schema = "" if self.schema is None else f"; typed: <code>{escape(self.schema.to_ddl())}</code>"
        more = f"<p>… {len(self) - 10:,} more</p>" if len(self) > 10 else ""
        return f"<p>VariantArray: {len(self):,} rows, {self.layout}{schema}</p><table>{rows}</table>{more}"

    def __reduce__(self) -> tuple[Any, ...]:
        return VariantArray, (self._storage,)

    # -- Arrow's PyCapsule interface

    @property
    def arrow_field(self) -> pa.Field:
        """The field that a table needs for this column: the storage type, with the extension's name as metadata."""
        return variant_field(self._storage.type)

    def __arrow_c_schema__(self) -> Any:
        return self.arrow_field.__arrow_c_schema__()

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return array_capsules(self._storage, requested_schema)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return stream_capsule([self._storage], self._storage.type, requested_schema)

    @classmethod
    def from_arrow(cls, obj: Any, column: str | None = None) -> VariantArray:
        """The Variant column that an object of any Arrow library holds.

        Parameters
        ----------
        obj
            Anything with ``__arrow_c_array__`` or ``__arrow_c_stream__``: an array, a series, a stream of chunks, a
            table. The storage may have any form that the constructor takes.
        column
            The column, if the object is a table. None: the object is the column, or a table with one Variant column.

        Raises
        ------
        SchemaError
            If it holds no Arrow data (``not-arrow``), no such column or not one Variant column (``not-a-variant``).

        Examples
        --------
        >>> array = VariantArray.from_pylist([{"a": 1}, None])
        >>> VariantArray.from_arrow(pa.table({"id": [1, 2], "v": array.storage})).equals(array)
        True
        """
        return cls.concat(cls(storage) for storage in import_variant(obj, column))


def trusted_array(storage: pa.StructArray, *, fits_files: bool = False) -> VariantArray:
    """The array over a storage that kernels have just made: its buffers are not looked at again.

    `storage`: a storage whose values are there in every row that is. Whatever comes from outside goes to the
      constructor.
    `fits_files`: whether it has the shape that files need, as what kernels make of nodes has.
    """
    made = VariantArray.__new__(VariantArray)
    made._storage = _with_dictionary(storage)
    made.__dict__.update(layout=detect_layout(storage.type), fits_files=fits_files)
    return made


def alike(arrays: Iterable[VariantArray]) -> tuple[VariantArray, ...]:
    """Arrays that can be joined. Raises `SchemaError` if their storage types differ, or there are none."""
    arrays = tuple(arrays)
    for array in arrays:
        if not isinstance(array, VariantArray):
            raise SchemaError(f"one of the arrays is a {type(array).__name__}: give VariantArrays")
    kinds = 1 if len(arrays) == 1 else len({array.storage.type for array in arrays})  # a large type takes long to hash
    if kinds != 1:
        raise SchemaError(
            f"arrays of a column have one storage type, not {kinds}: unshred or shred them alike first",
            reason="different-storage",
        )
    return arrays


def _picked(rows: Any, kind: pa.DataType | None) -> pa.Array:
    """What rows are chosen by, as an Arrow array. Raises `IndexError` if it cannot be one."""
    try:
        return pa.array(rows, kind)
    except (pa.ArrowException, TypeError, AttributeError, OverflowError):
        raise IndexError(f"rows are chosen by integers or a mask, not by a {type(rows).__name__}") from None


def is_one_value(values: Any) -> bool:
    """Whether something is one value and not a column of them, though Python could take it apart."""
    one = (str, bytes, bytearray, memoryview, Mapping, set, frozenset, Variant, np.generic)
    many = ("__iter__", "__getitem__", "__array__", "__arrow_c_array__", "__arrow_c_stream__")
    is_one = isinstance(values, one) or (isinstance(values, np.ndarray) and not values.ndim)
    return is_one or not any(hasattr(values, name) for name in many)


def refuse_one_value(values: Any) -> None:
    """Refuse one value where a column of them is wanted. Raises `SchemaError` with reason ``one-value``."""
    if is_one_value(values):
        raise SchemaError(
            f"expected a column of values, found one {type(values).__name__}: put it into a list, or make one Variant "
            "with Variant.from_python",
            reason="one-value",
        )


def _in_short(value: Variant | None, characters: int) -> str:
    """A value for one line."""
    try:
        return "NULL" if value is None else value.preview(characters)
    except MalformedVariantError as error:
        return f"(malformed: {error})"


def _with_values(storage: pa.StructArray) -> pa.StructArray:
    """An unshredded storage with a Variant null in rows that are there without a value."""
    value = storage.field("value")
    if value.null_count == 0 or not pc.any(pc.and_(storage.is_valid(), value.is_null())).as_py():
        return storage
    fields = [storage.field("metadata"), value.fill_null(b"\x00")]
    return pa.StructArray.from_arrays(fields, names=["metadata", "value"], mask=storage.is_null())


def _with_dictionary(storage: pa.StructArray) -> pa.StructArray:
    """A storage whose dictionary of metadata has entries, and no nulls among them, which pyarrow does not join.

    Engines write none for null rows alone, and index it.
    """
    at = storage.type.get_field_index("metadata")
    if at < 0 or not len(storage) or not pa.types.is_dictionary(storage.type.field(at).type):
        return storage
    metadata = storage.field(at)
    if len(metadata.dictionary) and not metadata.dictionary.null_count:
        return storage
    if len(metadata.dictionary):
        parts = metadata_parts(metadata)
        indices = from_numpy(parts.indices, parts.indices < 0).cast(metadata.indices.type)
        column = metadata_array(indices, parts.dictionary.cast(metadata.dictionary.type))
    else:
        column = metadata_array(pa.array([0] * len(storage), metadata.indices.type), metadata.dictionary)
    children = [column if number == at else storage.field(number) for number in range(storage.type.num_fields)]
    return pa.StructArray.from_arrays(children, fields=list(storage.type), mask=storage.is_null())
