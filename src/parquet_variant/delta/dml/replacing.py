"""New rows in the place of old ones: of those that meet a condition, or of whole partitions.

Owns the public operations. Leaves deleting to `delete`, and the commit to `committing`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa

from parquet_variant.delta.data.file_partitions import partition_keys
from parquet_variant.delta.dml.changing import ChangePlan, plan_change
from parquet_variant.delta.dml.committing import Change, ChangeResult, run_change
from parquet_variant.delta.dml.delete import TARGET, delete_from_file, matching_files, read_condition, reads_of
from parquet_variant.delta.log.snapshot import Snapshot, snapshot
from parquet_variant.delta.writing.identity import IdentityValues
from parquet_variant.errors import DeltaError
from parquet_variant.io.engine import ThreadEngine
from parquet_variant.tables.expressions import is_true, needed_table
from parquet_variant.tables.row_input import all_rows


def replace_where(
    table: str | os.PathLike[str] | Snapshot,
    data: Any,
    where: str,
    *,
    zone: str = "UTC",
    storage_options: Mapping[str, str] | None = None,
    threads: int | None = 1,
    **options: Any,
) -> ChangeResult:
    """Put rows in the place of those for which a condition is true, in one commit.

    Parameters
    ----------
    table
        Path, URL or snapshot.
    data
        As for `append`; the condition must be true for every row.
    where
        SQL, as for `delete`.
    zone, storage_options, threads, **options
        As for `delete`.

    Returns
    -------
    ChangeResult

    Raises
    ------
    DeltaError
        ``"outside-condition"`` for a new row for which the condition is not true; and as `delete`.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pv.delta.write(folder, {"day": [1, 1, 2], "n": [1, 2, 3]})
    ...     _ = pv.delta.replace_where(folder, {"day": [1], "n": [9]}, "day = 1")
    ...     sorted(pv.delta.read_table(folder)["n"].to_pylist())
    [3, 9]
    """
    tables = all_rows(data)
    current = snapshot(table, storage_options=storage_options)

    def plan(newest: Snapshot) -> Change:
        condition = read_condition(newest, where, zone)
        assert condition is not None
        changes = plan_change(newest, options)
        identity = IdentityValues(newest)
        new = [changes.write.with_generated_columns(each) for each in identity.of(tables)]
        for each in new:
            rows = needed_table(changes.write.completed(each), condition.columns[TARGET])
            good = is_true(condition, TARGET, rows, zone)
            if not good.all():
                raise DeltaError(
                    f"the condition {where} is not true for every new row", reason="outside-condition",
                    row=int((~good).argmax()),
                )  # fmt: skip
        opened = matching_files(newest, condition, zone)
        work = partial(delete_from_file, changes, condition, zone)
        done = ThreadEngine(threads, None).run("replace", work, newest.to_adds(opened))
        return replace(
            _insertion(newest, new, identity, changes),
            opened=opened,
            files=done,
            reads=reads_of(newest, condition, zone),
            parameters={"predicate": where},
        )

    return run_change(current, "WRITE", plan)


def replace_partitions(
    table: str | os.PathLike[str] | Snapshot,
    data: Any,
    *,
    storage_options: Mapping[str, str] | None = None,
    threads: int | None = 1,
    **options: Any,
) -> ChangeResult:
    """Put rows in the place of all rows of their partitions, in one commit; other partitions stay.

    Parameters
    ----------
    table
        Path, URL or snapshot of a table with partition columns.
    data
        As for `append`.
    storage_options, threads, **options
        As for `delete`.

    Returns
    -------
    ChangeResult

    Raises
    ------
    DeltaError
        ``"not-partitioned"``; and as `delete`.
    """
    tables = all_rows(data)
    current = snapshot(table, storage_options=storage_options)
    if not current.partition_columns:
        raise DeltaError("the table has no partition columns: use overwrite", reason="not-partitioned")

    def plan(newest: Snapshot) -> Change:
        changes = plan_change(newest, options)
        identity = IdentityValues(newest)
        new = [changes.write.with_generated_columns(each) for each in identity.of(tables)]
        insertion = _insertion(newest, new, identity, changes)
        fields = newest.partition_fields
        taken = {tuple(add.partition_values[field.physical_name] for field in fields) for add in insertion.adds}

        def touched(files: pa.Table) -> pa.Table:
            return files.filter(pa.array([key in taken for key in partition_keys(files, fields)], pa.bool_()))

        opened = touched(newest.files)
        work = partial(delete_from_file, changes, None, "UTC")
        done = ThreadEngine(threads, None).run("replace", work, newest.to_adds(opened))
        return replace(
            insertion,
            opened=opened,
            files=done,
            reads=lambda added: len(touched(added)) > 0,
            parameters={"mode": "Overwrite"},
        )

    return run_change(current, "WRITE", plan)


def _insertion(newest: Snapshot, rows: list[pa.Table], identity: IdentityValues, changes: ChangePlan) -> Change:
    """The change that only adds rows, which have what values it gave."""
    adds = changes.write.write_files(iter(rows))
    told = changes.write.write_changes({"insert": pa.concat_tables(rows)}) if changes.change_data else ()
    inserted = sum(len(each) for each in rows)
    return Change(newest.files.slice(0, 0), (), None, adds, told, inserted, metadata=identity.metadata)
