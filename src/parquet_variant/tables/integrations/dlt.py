"""A destination of dlt, whose tables are Delta or Iceberg tables with Variant columns, and resources with one Variant.

Owns which columns are Variants, and what a load package writes once. dlt plans, extracts and normalizes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from parquet_variant.arrays.chunked_array import variant_table
from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.ops.conversions import cast_to_variant, from_python
from parquet_variant.ops.parse_json import parse_json
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.tables.creating import write
from parquet_variant.tables.opening import format_of_table
from parquet_variant.tables.opening import open as open_table
from parquet_variant.types.path import quoted


def destination(path: str | os.PathLike[str], *, format: Literal["delta", "iceberg"] = "delta", **options: Any) -> Any:
    """Return a destination for ``dlt.pipeline``: a table of Variants below a directory for each table of the pipeline.

    Nested data of a row stays in its column, which is a Variant, with the other values of that column. Write
    dispositions: ``append``; ``replace``; and ``merge`` by the primary key, where the last row of a key counts. New
    columns are added. A file of a load package is written once, however often dlt tries.

    Parameters
    ----------
    path
        The directory or URI.
    format
        ``"delta"`` or ``"iceberg"``.
    **options
        Options of `Table.append`.

    Examples
    --------
    >>> import dlt, parquet_variant.tables.integrations.dlt as variant_dlt  # doctest: +SKIP
    >>> pipeline = dlt.pipeline("shop", destination=variant_dlt.destination("lake"))  # doctest: +SKIP
    >>> pipeline.run([{"id": 1, "cart": [{"sku": "a"}]}], table_name="orders")  # doctest: +SKIP
    """
    with optional_libraries("the destination of dlt"):
        import dlt

    def load_variants(items: str, table: Mapping[str, Any]) -> None:
        load_file(items, table, f"{os.fspath(path)}/{table['name']}", format, options)

    return dlt.destination(
        load_variants, batch_size=0, loader_file_format="parquet", name="variant", naming_convention="direct",
        max_table_nesting=0, loader_parallelism_strategy="table-sequential",
    )  # fmt: skip


def one_variant(resource: Any, keep: Collection[str] = (), *, column: str = "data", arrow: bool = False) -> Any:
    """Return a resource of dlt whose rows have some of their fields as columns, and all others in one Variant.

    dlt makes a new column, such as ``n__v_text``, of a field whose type changes; inside of a Variant it may.

    Parameters
    ----------
    resource
        The resource, with rows that are dicts.
    keep
        Names of the fields that stay columns, such as the primary key.
    column
        Name of the Variant column.
    arrow
        Whether dlt gets Arrow tables with a Variant, which its destination ``filesystem`` writes to Parquet files,
        instead of JSON text. `Table.annotate` annotates these files.
    """

    def wrapped(row: Mapping[str, Any]) -> dict[str, Any]:
        kept_columns = {name: row[name] for name in keep if name in row}
        return {**kept_columns, column: {name: value for name, value in row.items() if name not in kept_columns}}

    def as_arrow(page: Any, _: Any = None) -> pa.Table:
        rows = [wrapped(row) for row in (page if isinstance(page, list) else [page])]
        key_columns = {name: [row.get(name) for row in rows] for name in keep}
        return variant_table({**key_columns, column: from_python([row[column] for row in rows])})

    if arrow:
        return resource.add_step(as_arrow)
    resource.apply_hints(columns={column: {"data_type": "json"}})
    return resource.add_map(wrapped)


def load_file(file: str, table: Mapping[str, Any], path: str, format: Any, options: Mapping[str, Any]) -> None:
    """Write a file of a load package, unless the table has recorded it."""
    *_, package, _, name = Path(file).parts
    columns = {column: hint for column, hint in table["columns"].items() if not column.startswith("_dlt_")}
    rows = _read_rows(file, columns)
    disposition = table.get("write_disposition", "append")
    # dlt's names are unique: TABLE.FILE.RETRY.FORMAT in a package, whose name is a time in seconds.
    batch = f"dlt {name.split('.')[1]}", int(float(package) * 1000)
    if format_of_table(path) is None:
        write(path, rows, format=format, batch=batch, **options)
        return
    target = open_table(path)
    if disposition == "replace":
        target.overwrite(rows.slice(0, 0), batch=("dlt replace", batch[1]))
    keys = [column for column, hint in columns.items() if hint.get("primary_key") or hint.get("merge_key")]
    if disposition != "merge" or not keys:
        target.append(rows, schema_mode="merge", batch=batch, **options)
        return
    target.append(rows.slice(0, 0), schema_mode="merge")  # adds the columns that are new
    last = {tuple(key.values()): number for number, key in enumerate(rows.select(keys).to_pylist())}
    condition = " AND ".join(f"target.{quoted(key)} = source.{quoted(key)}" for key in keys)
    merge = open_table(path).merge(rows.take(list(last.values())), condition, batch=batch)
    merge.when_matched_update_all().when_not_matched_insert_all().execute()


def _read_rows(file: str, columns: Mapping[str, Any]) -> pa.Table:
    """Return rows of a file of dlt; JSON columns become Variants, with scalars from columns such as ``cart▶v_text``."""
    rows = pq.read_table(file, columns=list(columns))
    made: dict[str, Any] = {}
    for name, hint in columns.items():
        base = re.split("__v_|▶v_", name)[0]
        if hint.get("data_type") == "json":
            is_text = not pa.types.is_struct(rows[name].type)
            made[name] = parse_json(rows[name]) if is_text else VariantArray.from_arrow(rows, column=name)
        elif base != name and columns.get(base, {}).get("data_type") == "json":
            is_present = made[base].storage.is_valid().to_numpy(zero_copy_only=False)
            indices = np.arange(len(rows)) + np.where(is_present, 0, len(rows))
            made[base] = VariantArray.concat([made[base], cast_to_variant(rows[name])]).take(indices)
        else:
            made[name] = rows[name]
    return variant_table(made)
