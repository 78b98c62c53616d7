"""The columns of a shredded storage as the address tables that kernels read.

Owns walking a storage struct of the final layout, of any Arrow form and with any part missing, beside its schema.
Leaves reading the columns to `kernels.shredding.unshred`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from parquet_variant import arrow_compute as pc
from parquet_variant.array.parts import binary_parts, valid_bytes
from parquet_variant.kernels.arrow_buffers import to_numpy
from parquet_variant.kernels.shredding.schema_table import S_END, S_PARENT, S_WIDTH, SchemaTable
from parquet_variant.kernels.shredding.unshred import (
    I_GROUP_VALID,
    I_SLOTS,
    I_TYPED_DATA,
    I_TYPED_OFFSETS,
    I_TYPED_VALID,
    I_VALUE_DATA,
    I_VALUE_OFFSETS,
    I_VALUE_VALID,
    INPUT_COLUMNS,
)

_NONE_VALID = -1


class TypedInputs:
    """The address table of a storage of the final layout, under its schema: ``int64[schema nodes, INPUT_COLUMNS]``."""

    def __init__(self, storage: pa.StructArray, table: SchemaTable) -> None:
        self._table = table
        self._kept: list[Any] = []
        self.addresses = np.zeros((len(table.nodes), INPUT_COLUMNS), np.int64)
        self.addresses[:, (I_VALUE_VALID, I_TYPED_VALID)] = _NONE_VALID
        self._group(0, storage, optional=False)

    def _address(self, array: npt.NDArray[Any]) -> int:
        self._kept.append(array)
        return int(array.ctypes.data)

    def _valid(self, array: pa.Array) -> int:
        if array.null_count == len(array):
            return _NONE_VALID if len(array) else 0
        valid = valid_bytes(array)
        return self._address(valid) if len(valid) else 0

    def _group(self, s: int, group: pa.StructArray, *, optional: bool = True) -> None:
        names = {field.name: i for i, field in enumerate(group.type)}
        if optional:
            self.addresses[s, I_GROUP_VALID] = self._valid(group)
        if "value" in names:
            value = group.field(names["value"])
            self.addresses[s, I_VALUE_VALID] = self._valid(value)
            if self.addresses[s, I_VALUE_VALID] != _NONE_VALID:
                parts = binary_parts(value)
                self._kept.append(parts.owner)
                self.addresses[s, I_VALUE_OFFSETS] = self._address(parts.offsets)
                self.addresses[s, I_VALUE_DATA] = parts.address
        if "typed_value" in names and self._table.schemas[s].kind != "variant":
            self._typed(s, group.field(names["typed_value"]))

    def _typed(self, s: int, typed: pa.Array) -> None:
        self.addresses[s, I_TYPED_VALID] = self._valid(typed)
        schema = self._table.schemas[s]
        if schema.kind == "object":
            fields = {field.name: i for i, field in enumerate(typed.type)}
            for child in range(s + 1, int(self._table.nodes[s, S_END])):
                if self._table.nodes[child, S_PARENT] == s:
                    self._group(child, typed.field(fields[self._table.names[child]]))
        elif schema.kind == "array":
            if not (pa.types.is_list(typed.type) or pa.types.is_large_list(typed.type)):
                typed = typed.cast(pa.large_list(typed.type.value_field))
            self.addresses[s, I_TYPED_OFFSETS] = self._address(to_numpy(typed.offsets).astype(np.int64))
            self._group(s + 1, typed.values)
        elif self.addresses[s, I_TYPED_VALID] != _NONE_VALID:
            self._primitive(s, typed, schema.type)

    def _primitive(self, s: int, typed: pa.Array, target: pa.DataType | None) -> None:
        if self._table.nodes[s, S_WIDTH] == 0:
            parts = binary_parts(typed)
            self._kept.append(parts.owner)
            self.addresses[s, I_TYPED_OFFSETS] = self._address(parts.offsets)
            self.addresses[s, I_TYPED_DATA] = parts.address
            return
        if pa.types.is_dictionary(typed.type) or pa.types.is_run_end_encoded(typed.type):
            typed = typed.cast(typed.type.value_type)
        if isinstance(typed.type, pa.BaseExtensionType):
            typed = typed.storage
        elif typed.type != target and not pa.types.is_fixed_size_binary(typed.type):
            typed = pc.cast(typed, target)
        self._kept.append(typed)
        data = typed.buffers()[1]
        if pa.types.is_boolean(typed.type):
            bits = np.frombuffer(data, np.uint8)
            slots = np.unpackbits(bits, count=typed.offset + len(typed), bitorder="little")[typed.offset :]
            self.addresses[s, I_SLOTS] = self._address(slots)
        else:
            self.addresses[s, I_SLOTS] = data.address + typed.offset * int(self._table.nodes[s, S_WIDTH])
