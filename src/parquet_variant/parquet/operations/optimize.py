"""`optimize`: a directory's small files put together, and shredded anew where that pays.

Owns which files are rewritten, under which schema, and putting the new ones in the place of the old. Leaves judging the
old schema to `shredding.drift`, staging to `staging`, what runs the tasks to `threads` and `spark`, and tables with a
log to `delta`.
"""

from __future__ import annotations

import os
import posixpath
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Unpack

import pyarrow as pa
from pyarrow import fs

from parquet_variant.array.parts import empty_table
from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import VariantFileError
from parquet_variant.io.engine import Engine, Progress, ThreadEngine
from parquet_variant.io.filesystems import filesystem_of, has_delta_log
from parquet_variant.io.staging import COMPACTED, StagedFile, Staging, open_staging
from parquet_variant.keywords import with_keywords
from parquet_variant.parquet.format.columns import choose_column
from parquet_variant.parquet.format.files import ParquetSource, locate, open_file
from parquet_variant.parquet.operations.rewrite import NewForm, profile_task
from parquet_variant.parquet.reading.read import row_group_arrays
from parquet_variant.parquet.reading.read_table import tagged_table
from parquet_variant.parquet.report_text import rewritten
from parquet_variant.parquet.writing.nested import Place, map_variants
from parquet_variant.parquet.writing.options import FileKeywords, WriterOptions
from parquet_variant.parquet.writing.writer import VariantWriter
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.drift import DriftReport, find_drift
from parquet_variant.shredding.policies.decision import Policy
from parquet_variant.shredding.profile import Profile

# Of tables too: see `delta.writing`.
DEFAULT_FILE_BYTES = 256 << 20


@dataclass(frozen=True, repr=False)
class OptimizeResult:
    """What a rewrite did.

    Parameters
    ----------
    files_removed, files_added, bytes_removed, bytes_added
        Counts; all zero if there was nothing to do.
    schema
        What the new files shred.
    drift
        How the data had drifted from the old schema; None if the schema was given.
    """

    files_removed: int = 0
    files_added: int = 0
    bytes_removed: int = 0
    bytes_added: int = 0
    schema: ShreddingSchema | None = None
    drift: DriftReport | None = None

    def __repr__(self) -> str:
        drift = "" if self.drift is None else f"; {self.drift!r}"
        return f"<OptimizeResult {rewritten(self)}{drift}>"


@dataclass(frozen=True, slots=True)
class _ShreddedFile:
    """A file: what it shreds, its rows, and the rest of its schema, which files must share to become one."""

    source: ParquetSource
    schema: ShreddingSchema
    rows: int
    others: str

    @property
    def folder(self) -> str:
        return posixpath.dirname(self.source.path)


@with_keywords(FileKeywords, WriterOptions)
def optimize(
    path: str | os.PathLike[str],
    *,
    file_bytes: int = DEFAULT_FILE_BYTES,
    reshred: bool = False,
    schema: ShreddingSchema | str | None = None,
    policy: str | Policy | None = None,
    min_saving: float = 0.02,
    column: str | None = None,
    dry_run: bool = False,
    threads: int | None = None,
    progress: Progress | None = None,
    engine: Engine | None = None,
    **write: Unpack[FileKeywords],
) -> OptimizeResult:
    """Put the small files of a directory together, and shred files anew where that pays; no row changes.

    The new files are written aside and then moved in, before the old ones are removed. A directory has no log: a reader
    that lists it between the two sees rows twice. A Delta table has one commit instead (`delta.optimize`).

    Parameters
    ----------
    path
        A directory of Parquet files; those of a subdirectory stay in it.
    file_bytes
        About how large a file may become; files of at least three quarters of it stay as they are, unless they are
        shredded anew.
    reshred
        Rewrite every file that has another schema than `policy` chooses, whether it pays or not.
    schema
        What to shred, as an object or DDL: every file that has another schema is rewritten. By default the schema of
        most rows, with the changes that `find_drift` finds if these pay.
    policy
        Chooses the schema that fits the data; see `infer_shredding_schema`.
    min_saving
        Share of the encoded bytes that shredding anew must take off the residual to pay.
    column
        The Variant column, if there are several.
    dry_run
        Only judge the schema; write nothing.
    threads, progress
        As for `ingest`.
    engine
        What runs the tasks; by default threads of this process.
    **write
        Options of `VariantWriter`.

    Raises
    ------
    VariantFileError
        For a path that is no directory of Parquet files, or a Delta table.

    Examples
    --------
    >>> import tempfile, parquet_variant as pv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, text in (("1", '{"n": 1}'), ("2", '{"n": 1, "s": "new"}')):
    ...         _ = pv.parquet.write(f"{folder}/{name}.parquet", pv.parse_json([text] * 100), schema="n bigint")
    ...     result = pv.parquet.optimize(folder)
    >>> result.files_removed, result.files_added, result.schema.to_ddl()
    (2, 1, 'n bigint, s string')
    """
    engine = engine or ThreadEngine(threads, progress)
    WriterOptions.of(write)  # Before anything is read, not in a task.
    root = os.fspath(path).rstrip("/")
    _check_directory(root)
    sources = locate(root)
    files = [_look(source, column) for source in sources]
    drift = None
    if schema is None:
        profile = engine.reduce("profile", partial(profile_task, column=column), sources, Profile.merge)
        most = _most(files)
        drift = find_drift(most, profile, policy, min_saving=min_saving)
        schema = drift.to_shred(most, reshred=reshred)
        anew = reshred or drift.pays
    else:
        schema = ShreddingSchema.of(schema)
        anew = True
    packs = _packs(files, file_bytes, schema if anew else None)
    if dry_run or not packs:
        return OptimizeResult(schema=schema, drift=drift)
    opened = open_staging(root, "append")
    assert opened is not None
    staging = opened.begin()
    base = filesystem_of(root)[1].rstrip("/")
    old = [each.source for pack in packs for each in pack]
    try:
        work = partial(_rewrite, staging=staging, schema=schema, column=column, root=base, write=write)
        results = engine.run("optimize", work, [[each.source for each in pack] for pack in packs])
        before, after = sum(each.rows for pack in packs for each in pack), sum(rows for _, rows, _ in results)
        if before != after:
            raise VariantFileError(
                f"{before:,} rows became {after:,}: the files changed while they were read; try again",
                reason="files-changed",
                file=root,
            )
        replaced = [each.path[len(base) :].strip("/") for each in old]
        staging.commit([file for file, _, _ in results], marker=False, replaced=replaced)
    except BaseException:
        staging.abort()
        raise
    added = sum(size for _, _, size in results)
    return OptimizeResult(len(old), len(results), sum(each.size for each in old), added, schema, drift)


def _check_directory(root: str) -> None:
    filesystem, path = filesystem_of(root)
    if filesystem.get_file_info(path).type != fs.FileType.Directory:
        raise VariantFileError(
            f"{root} is no directory: name a directory of Parquet files, or a Delta table",
            reason="not-found",
            file=root,
        )
    if has_delta_log(root):
        raise VariantFileError(f"{root} is a Delta table: use pv.delta.optimize", reason="delta-table", file=root)


def _look(source: ParquetSource, column: str | None) -> _ShreddedFile:
    with open_file(source) as file:
        chosen = choose_column(file.schema, column, file.name)
        table = empty_table(file.arrow_schema)
        others = [str(field) for field in table.schema if field.name != chosen.path[0]]
        array = next(array for _, array in row_group_arrays(file, chosen))
        schema = array.schema if array.schema is not None else ShreddingSchema.variant()
        return _ShreddedFile(source, schema, file.metadata.num_rows, f"{table.schema.names} {others}")


def _most(files: Sequence[_ShreddedFile]) -> ShreddingSchema:
    rows: Counter[str] = Counter()
    for each in files:
        rows[each.schema.to_json()] += each.rows
    most = max(rows, key=lambda text: (rows[text], text))
    return ShreddingSchema.from_json(most)


def _packs(
    files: Sequence[_ShreddedFile], file_bytes: int, schema: ShreddingSchema | None
) -> list[list[_ShreddedFile]]:
    """The files that become one each; a file alone only if it is shredded anew."""
    packs = pack_files(
        [((each.folder, each.others), each.source.size) for each in files],
        file_bytes,
        [schema is not None and each.schema != schema for each in files],
    )
    return [[files[at] for at in pack] for pack in packs]


def pack_files(files: Sequence[tuple[Hashable, int]], file_bytes: int, anew: Sequence[bool]) -> list[list[int]]:
    """The numbers of the files that become one each: small ones, and those that are to be made anew; alone only these.

    `files`: what files must share to become one, and their sizes.
    """
    packs: list[list[int]] = []
    filled: dict[Hashable, tuple[list[int], int]] = {}
    for number, (key, size) in enumerate(files):
        if anew[number] or size < file_bytes * 3 // 4:
            pack, total = filled.get(key, ([], 0))
            if not pack or total + size > file_bytes:
                pack, total = [], 0
                packs.append(pack)
            pack.append(number)
            filled[key] = pack, total + size
    return [pack for pack in packs if len(pack) > 1 or anew[pack[0]]]


def _rewrite(
    task: int,
    attempt: int,
    sources: list[ParquetSource],
    *,
    staging: Staging,
    schema: ShreddingSchema,
    column: str | None,
    root: str,
    write: FileKeywords,
) -> tuple[StagedFile, int, int]:
    """One new file: where it is staged, its rows and bytes."""
    folder = posixpath.relpath(posixpath.dirname(sources[0].path), root)
    name = staging.file_name(task, prefix=COMPACTED)
    staged = StagedFile(staging.attempt(task, attempt), name if folder == "." else f"{folder}/{name}")
    form = NewForm("final", schema, column, "error")
    with VariantWriter(staged.path, **write) as writer:
        for source in sources:
            with open_file(source) as file:
                main = choose_column(file.schema, column, file.name).path

                def shredded(array: pa.StructArray, place: Place, main: Place = main) -> pa.StructArray:
                    return form.of(VariantArray(array), is_main=True) if place == main else array

                for group in range(file.metadata.num_row_groups):
                    writer.write_batch(map_variants(tagged_table(file, [group]), shredded))
    assert writer.info is not None
    return staged, writer.info.rows, writer.info.bytes
