"""`compress`: convert the JSON columns of a Vortex file to Variant columns, as the compressor of the RFC does.

Owns the public operation. `logical.json_columns` converts columns, and `writer` writes files.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any, overload

from parquet_variant.errors import JsonError, VariantError, VariantFileError
from parquet_variant.files.vortex.files.library import OpenVortexFile, open_file
from parquet_variant.files.vortex.files.reader import choose_variant, json_texts, read_table
from parquet_variant.files.vortex.files.writer import VortexFileInfo, write
from parquet_variant.files.vortex.logical.encodings import AnyVariant
from parquet_variant.files.vortex.logical.json_columns import JsonColumn, compress_json, json_errors
from parquet_variant.inference.policies.decision import Policy
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.choices import FileMode, VortexLayout


@overload
def compress(
    source: Any, dest: None = ..., *, json: Collection[str] = ..., policy: str | Policy | ShreddingSchema = ...
) -> AnyVariant: ...
@overload
def compress(
    source: Any,
    dest: str | os.PathLike[str],
    *,
    json: Collection[str] = ...,
    policy: str | Policy | ShreddingSchema = ...,
    layout: VortexLayout = ...,
    exact: bool = ...,
    mode: FileMode = ...,
) -> VortexFileInfo: ...
@overload
def compress(
    source: Any,
    dest: None = ...,
    *,
    json: Collection[str] = ...,
    policy: str | Policy | ShreddingSchema = ...,
    exact: bool,
) -> AnyVariant | JsonColumn: ...
def compress(
    source: Any,
    dest: str | os.PathLike[str] | None = None,
    *,
    json: Collection[str] = (),
    policy: str | Policy | ShreddingSchema = "auto",
    layout: VortexLayout = "auto",
    exact: bool = False,
    mode: FileMode = "error",
) -> AnyVariant | JsonColumn | VortexFileInfo:
    """Convert the JSON columns of a Vortex file to Variant columns, shredded by a policy.

    Columns of the type ``vortex.json`` (in Arrow ``arrow.json``) are JSON columns.

    Parameters
    ----------
    source
        A Vortex file; or, without `dest`, also a column of JSON text, as for `compress_json`.
    dest
        The Vortex file to write; by default the Variant column of the only JSON column is returned.
    json
        Names of string columns that hold JSON as well.
    policy
        A shredding policy, by name or as an instance, or a shredding schema.
    layout, mode
        As for `write`.
    exact
        Keep each text byte for byte; without `dest`, the result is then a `JsonColumn`.

    Returns
    -------
    VariantArray, JsonColumn or VortexFileInfo
        The column, or the file that was written.

    Raises
    ------
    VariantFileError
        If the file has no JSON column (``no-such-column``), and as for `read_table` and `write`.
    JsonError
        For text that is not valid JSON, with its row.

    Examples
    --------
    >>> import tempfile, pyarrow as pa, vortex
    >>> texts = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}', None]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     vortex.io.write(pa.table({"doc": texts}), f"{folder}/j.vortex")
    ...     compress(f"{folder}/j.vortex"), compress(f"{folder}/j.vortex", f"{folder}/v.vortex").layouts
    (<VariantArray final, 2 rows: [{"a":1}, NULL]>, {'doc': 'struct'})
    """
    if not isinstance(source, (str, os.PathLike)):
        if dest is not None:
            raise VariantError(
                "dest= needs a Vortex file as the source: write a column with write", reason="bad-option"
            )
        return compress_json(source, policy, exact=exact)
    file = open_file(source)
    names = _json_columns(file, json)
    if dest is None:
        name = names[0] if len(names) == 1 else choose_variant(file, None, json=True)
        with json_errors(name, file.path):
            return compress_json(json_texts(file, name), policy, exact=exact)
    schema = None
    if isinstance(policy, ShreddingSchema):
        schema, policy = dict.fromkeys(names, policy), "auto"
    table = read_table(source)
    try:
        return write(dest, table, schema=schema, layout=layout, json=json, policy=policy, exact=exact, mode=mode)
    except JsonError as error:
        raise error.at(file=file.path) from None


def _json_columns(file: OpenVortexFile, json: Collection[str]) -> list[str]:
    """Return the names of the columns of JSON text, with those that the caller names."""
    names = list(dict.fromkeys([*file.json_columns, *json]))
    if unknown := [name for name in names if name not in file.schema.names]:
        raise VariantFileError(
            f"json= names the column {unknown[0]!r}, which does not exist: the columns are "
            f"{', '.join(file.schema.names)}",
            file=file.path,
            reason="no-such-column",
        )
    if not names:
        raise VariantFileError(
            f"the file has no column of the type vortex.json: name string columns that hold JSON with json= (its "
            f"columns are {', '.join(file.schema.names)})",
            file=file.path,
            reason="no-such-column",
        )
    return names
