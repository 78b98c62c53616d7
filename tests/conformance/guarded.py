"""Runs every kernel over bytes that end where readable memory ends; `test_kernel_corpus` starts it as its own process.

Each value, metadata and text lies at the very end of a page that is followed by one that may not be touched, so that a
read past its end kills the process instead of going unnoticed. Prints a line for each outcome.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import mmap
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import parquet_variant as pv
from chosen_steps import chosen_cases
from parquet_variant.inference.profile import Profile
from parquet_variant.ops.validate import sound_rows

_PAGE = mmap.PAGESIZE
_PROT_NONE = 0
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_SCHEMAS = ["struct<a bigint, b string, c array<int>>", "array<struct<a variant>>", "string", "decimal(20, 2)"]


class Guarded:
    """Memory before a page that may not be touched.

    Parameters
    ----------
    pages
        Readable pages.
    """

    def __init__(self, pages: int) -> None:
        self.size = pages * _PAGE
        self.map = mmap.mmap(-1, self.size + _PAGE)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        if _LIBC.mprotect(self.address + self.size, _PAGE, _PROT_NONE):
            raise OSError(ctypes.get_errno(), "mprotect")

    def buffer(self, data: bytes) -> pa.Buffer:
        """The bytes, copied so that they end at the guard."""
        at = self.address + self.size - len(data)
        ctypes.memmove(at, data, len(data))
        return pa.foreign_buffer(at, len(data), self)

    def over_read(self) -> int:
        """Read the first byte behind the end."""
        return ctypes.string_at(self.address + self.size, 1)[0]


_POOL = [Guarded(256) for _ in range(3)]


def binary(data: bytes, kind: pa.DataType, guard: Guarded) -> pa.Array:
    """A binary array of one value that ends at the guard."""
    if len(data) > guard.size:
        guard = Guarded(len(data) // _PAGE + 1)
    offsets = pa.py_buffer(np.array([0, len(data)], np.int32))
    return pa.Array.from_buffers(kind, 1, [None, offsets, guard.buffer(data)])


def column(value: pv.Variant) -> pv.VariantArray:
    """An unshredded array of one value."""
    dictionary = binary(value.metadata, pa.binary(), _POOL[0])
    metadata = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), dictionary, safe=False)
    return pv.VariantArray(
        pa.StructArray.from_arrays([metadata, binary(value.value, pa.binary(), _POOL[1])], ["metadata", "value"])
    )


def residuals(value: pv.Variant) -> list[pv.VariantArray]:
    """Shredded arrays that have the value as their residual, at the top and inside a field."""
    metadata = column(value).storage.field("metadata")
    data = column(value).storage.field("value")
    typed = pa.array([None], pa.int64())
    top = pa.StructArray.from_arrays([metadata, data, typed], ["metadata", "value", "typed_value"])
    field = pa.StructArray.from_arrays([data, typed], ["value", "typed_value"])
    fields = pa.StructArray.from_arrays([field], ["a"])
    none = pa.array([None], pa.binary())
    inside = pa.StructArray.from_arrays([metadata, none, fields], ["metadata", "value", "typed_value"])
    both = pa.StructArray.from_arrays([metadata, data, fields], ["metadata", "value", "typed_value"])
    return [pv.VariantArray(storage) for storage in (top, inside, both)]


KERNELS: dict[str, Callable[[pv.Variant], Any]] = {
    "to_json": lambda v: pv.to_json(column(v)),
    "profile": lambda v: Profile.of_array(column(v)),
    "sound": lambda v: sound_rows(column(v).storage),
    "validate": lambda v: pv.validate(column(v)),
    "explode": lambda v: pv.variant_explode(column(v), outer=True),
    "normalize": lambda v: pv.variant_normalize(column(v)),
    "strip": lambda v: pv.strip_nulls(column(v)),
    "set": lambda v: pv.variant_set(column(v), "$.a", 1),
    "append": lambda v: pv.variant_array_append(column(v), "$", 1),
    "set value": lambda v: pv.variant_set(pv.parse_json(["{}"]), "$.x", column(v)),
    "delete": lambda v: pv.variant_delete(column(v), "$[0]", "$.a"),
    "equals": lambda v: pv.equals(column(v), pv.variant_normalize(v)),
    "variant_type": lambda v: pv.variant_type(column(v)),
    "is_variant_null": lambda v: pv.is_variant_null(column(v), "$.a"),
    **{f"shred {ddl}": lambda v, ddl=ddl: pv.shred_variant(column(v), ddl) for ddl in _SCHEMAS},
    **{
        f"get {path} {kind}": lambda v, path=path, kind=kind: pv.variant_get(column(v), path, kind)
        for path in ("$", "$.a", "$[0]", "$[1].a", "$[*]", "$.b[*]")
        for kind in ("variant", "string", "int", "array<string>", "struct<a: int>", "map<string, variant>")
    },
    **{f"unshred {n}": lambda v, n=n: pv.unshred_variant(residuals(v)[n]) for n in range(3)},
    **{f"unshred typed {n}": lambda v, n=n: pv.unshred_variant(residuals(v)[n], on_conflict="typed") for n in range(3)},
}  # fmt: skip


def run(value: pv.Variant) -> dict[str, str]:
    """What every kernel makes of a value: ``ok``, or the reason of the error."""
    found = {}
    for name, kernel in KERNELS.items():
        try:
            kernel(value)
            found[name] = "ok"
        except pv.VariantError as error:
            found[name] = error.reason
    return found


def run_text(text: bytes) -> str:
    """What the JSON parser makes of a text."""
    try:
        pv.parse_json(binary(text, pa.binary(), _POOL[2]))
    except pv.VariantError as error:
        return error.reason
    return "ok"


def main(command: str, *files: str) -> None:
    """``prove`` reads behind the end; ``values`` and ``texts`` print outcomes by file."""
    faulthandler.enable(all_threads=False)
    if command == "prove":
        print(_POOL[0].over_read())
    for name in files:
        path = Path(name)
        print(path.name, end=" ", flush=True)  # names the file that kills the process
        if command == "texts":
            print(json.dumps(run_text(path.read_bytes())))
            continue
        if path.suffix == ".bin":
            value = pv.Variant.from_bytes(path.read_bytes())
        else:
            value = pv.Variant(path.with_suffix(".metadata").read_bytes(), path.read_bytes())
        found = run(value)
        # Cuts and changed bytes of small values as well.
        for at in chosen_cases(range(min(len(value.value), 24)), 6):
            run_some(pv.Variant(value.metadata, value.value[:at]))
            for byte in (0xFF, value.value[at] ^ 1):
                run_some(pv.Variant(value.metadata, value.value[:at] + bytes([byte]) + value.value[at + 1 :]))
        for at in chosen_cases(range(min(len(value.metadata), 8)), 2):
            run_some(pv.Variant(value.metadata[:at], value.value))
            changed = value.metadata[:at] + b"\xff" + value.metadata[at + 1 :]
            run_some(pv.Variant(changed, value.value))
        print(json.dumps(found))


_SOME = ["to_json", "profile", "sound", "normalize", "shred " + _SCHEMAS[0], "get $.a string", "get $[0] variant"]


def run_some(value: pv.Variant) -> None:
    """The kernels that look at most bytes, without their outcomes."""
    for name in _SOME:
        try:
            KERNELS[name](value)
        except pv.VariantError:
            continue


if __name__ == "__main__":
    main(*sys.argv[1:])
