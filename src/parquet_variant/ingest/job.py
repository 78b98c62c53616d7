"""The steps of an ingest, the same on every engine: plan, infer, write, commit; nothing is left when one fails.

Owns the order of the steps and the options. Leaves running the tasks to the engine (`parquet.ingest`: threads; `spark`:
Spark jobs), what a task does to `ingest_task`, and the choice of the schema to `shredding`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from math import ceil
from typing import Any, Protocol, TypeAlias, get_args

import pyarrow.fs as pafs

from parquet_variant.errors import VariantError, VariantFileError
from parquet_variant.ingest.result import IngestResult
from parquet_variant.ingest.sources import Format, Split, codec_of, expand_sources, plan_splits, split_size
from parquet_variant.ingest.task import (
    IngestOptions,
    OnError,
    ProfiledSplits,
    WrittenSplits,
    pack_splits,
    profile_splits,
    write_splits,
)
from parquet_variant.io.engine import Engine
from parquet_variant.io.filesystems import filesystem_of
from parquet_variant.io.staging import BAD_RECORDS, Mode, Staging, open_staging
from parquet_variant.kernels.json_batch import JsonOptions
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.infer import InferenceResult, infer
from parquet_variant.shredding.profile import Profile

__all__ = ["Destination", "Sources", "Work", "run_ingest", "run_profile"]

Sources: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"
_LARGEST_SPLIT = 128 << 20
_SMALLEST_SPLIT = 4 << 20
# What inference reads unless told otherwise: this much text, and of a large input an eighth. Parsing is what it costs.
# So much is read where the job is planned: a Spark job for it would take longer.
_SAMPLE_BYTES = 8 << 20
_LEAST_SHARE = 1 / 8
# Bytes of text to a byte of a compressed file, roughly.
_PACKED = 10


# What a task does: number of the task, of the attempt, and its splits.
Work: TypeAlias = Callable[[int, int, list[Split]], WrittenSplits]


class Destination(Protocol):
    """What the tasks write into, and what makes it visible."""

    dest: str

    def work(self, schema: ShreddingSchema, options: IngestOptions) -> Work:
        """What every task does; can be pickled."""

    def commit(self, written: Sequence[WrittenSplits]) -> list[str]:
        """Make what the tasks wrote visible; the data files' paths below `dest`."""

    def abort(self) -> None:
        """Leave everything as it was."""


def run_ingest(
    engine: Engine,
    sources: Sources,
    dest: str | os.PathLike[str] | Callable[[], Destination | None],
    *,
    schema: ShreddingSchema | str | None = None,
    policy: Any = None,
    sample: float | None = None,
    column: str = "v",
    on_error: OnError = "fail",
    mode: Mode = "error",
    input_format: Format = "auto",
    split_bytes: int | None = None,
    parse: Mapping[str, Any] | None = None,
    write: Mapping[str, Any] | None = None,
) -> IngestResult:
    """Read JSON files and write them into a directory (see `parquet.ingest`), or into what `dest` opens.

    A destination that opens as None is left alone: the mode is ``"ignore"`` and there is data.
    """
    if isinstance(schema, str):
        schema = ShreddingSchema.from_ddl(schema)
    files = expand_sources(sources)
    options = _options(column, on_error, input_format, 1.0 if sample is None else sample, parse, write)
    destination = dest() if callable(dest) else _open_directory(os.fspath(dest), mode)
    if destination is None:
        return IngestResult("" if callable(dest) else os.fspath(dest), (), 0, 0, None, 0, 0, None)
    tasks = _plan(engine, files, split_bytes, input_format)
    inference = None
    try:
        if schema is None:
            text = _text_bytes(files)
            if sample is None:
                options = replace(options, sample=max(_LEAST_SHARE, min(1.0, _SAMPLE_BYTES / max(text, 1))))
            profiler = engine.local if round(options.sample * text) <= _SAMPLE_BYTES else engine
            inference = infer(_profile_tasks(profiler, tasks, options), policy)
            schema = inference.schema
        written = engine.run("write", destination.work(schema, options), tasks)
        if not any(part.rows or part.bad for part in written):
            raise _no_value(files)
        committed = destination.commit(written)
    except BaseException:
        destination.abort()
        raise
    return _result(destination.dest, committed, written, schema, inference)


def run_profile(
    engine: Engine,
    sources: Sources,
    *,
    sample: float = 1.0,
    on_error: OnError = "fail",
    input_format: Format = "auto",
    split_bytes: int | None = None,
    parse: Mapping[str, Any] | None = None,
) -> Profile:
    """Profile JSON files, as `run_ingest` would (see `parquet.profile`)."""
    options = _options("v", on_error, input_format, sample, parse, None)
    files = expand_sources(sources)
    profile = _profile_tasks(engine, _plan(engine, files, split_bytes, input_format), options)
    if not profile.rows:
        raise _no_value(files)
    return profile


def _text_bytes(files: list[str]) -> int:
    """Bytes of text in the files, an estimate where they are compressed."""
    return sum(split_size(Split(file)) * (_PACKED if codec_of(file) else 1) for file in files)


def _options(
    column: str,
    on_error: OnError,
    input_format: Format,
    sample: float,
    parse: Mapping[str, Any] | None,
    write: Mapping[str, Any] | None,
) -> IngestOptions:
    if not 0 < sample <= 1:
        raise VariantError(f"sample is {sample}: give a share above 0 and up to 1", reason="bad-option")
    for name, given, allowed in (("on_error", on_error, OnError), ("input_format", input_format, Format)):
        if given not in get_args(allowed):
            raise VariantError(f"{name} is {given!r}: use {' or '.join(get_args(allowed))}", reason="bad-option")
    known = [each.name for each in fields(JsonOptions)]
    if unknown := sorted(set(parse or {}) - set(known)):
        raise VariantError(f"there is no parse option {unknown[0]!r}: use {', '.join(known)}", reason="bad-option")
    return IngestOptions(column, on_error, input_format, sample=sample, parse=parse or {}, write=write or {})


def _profile_tasks(engine: Engine, tasks: list[list[Split]], options: IngestOptions) -> Profile:
    return engine.reduce("infer the schema", partial(_profile, options), tasks, _merge).profile


def _no_value(files: list[str]) -> VariantFileError:
    named = ", ".join(files[:3]) + (", …" if len(files) > 3 else "")
    return VariantFileError(f"no JSON value in {named}: name files that hold some", reason="no-rows")


class _Directory:
    """A directory of Parquet files."""

    def __init__(self, staging: Staging) -> None:
        self.dest = staging.dest
        self._staging = staging
        filesystem, path = filesystem_of(self.dest)
        self._made_here = filesystem.get_file_info(path).type == pafs.FileType.NotFound

    def work(self, schema: ShreddingSchema, options: IngestOptions) -> Work:
        self._staging = self._staging.begin()
        return partial(_write, schema, options, self._staging)

    def commit(self, written: Sequence[WrittenSplits]) -> list[str]:
        root = self.dest.rstrip("/") + "/"
        names = self._staging.commit(file for part in written for file in part.files)
        return [name.removeprefix(root) for name in names if not name.startswith(f"{root}{BAD_RECORDS}/")]

    def abort(self) -> None:
        self._staging.abort()
        if self._made_here:
            filesystem, path = filesystem_of(self.dest)
            with suppress(OSError):
                if not filesystem.get_file_info(pafs.FileSelector(path)):
                    filesystem.delete_dir(path)


def _open_directory(dest: str, mode: Mode) -> _Directory | None:
    staging = open_staging(dest, mode)
    return None if staging is None else _Directory(staging)


def _plan(engine: Engine, files: list[str], split_bytes: int | None, input_format: Format) -> list[list[Split]]:
    if split_bytes is None:
        share = ceil(sum(split_size(Split(file)) for file in files) / engine.parallelism)
        split_bytes = min(max(share, _SMALLEST_SPLIT), _LARGEST_SPLIT)
    return pack_splits(plan_splits(files, split_bytes, input_format), split_bytes)


def _result(
    dest: str,
    files: Sequence[str],
    written: Sequence[WrittenSplits],
    schema: ShreddingSchema,
    inference: InferenceResult | None,
) -> IngestResult:
    bad = sum(part.bad for part in written)
    return IngestResult(
        dest=dest,
        files=tuple(files),
        rows=sum(part.rows for part in written),
        bad_records=bad,
        bad_records_path=f"{dest.rstrip('/')}/{BAD_RECORDS}" if bad else None,
        bytes_read=sum(part.text_bytes for part in written),
        bytes_written=sum(part.file_bytes for part in written),
        schema=schema,
        inference=inference,
    )


# Functions of this module, not closures: Spark pickles them by name.
def _profile(options: IngestOptions, task: int, attempt: int, splits: list[Split]) -> ProfiledSplits:
    return profile_splits(splits, options)


def _merge(left: ProfiledSplits, right: ProfiledSplits) -> ProfiledSplits:
    return left.merge(right)


def _write(
    schema: ShreddingSchema | None,
    options: IngestOptions,
    staging: Staging,
    task: int,
    attempt: int,
    splits: list[Split],
) -> WrittenSplits:
    return write_splits(splits, schema, options, staging, task, attempt)
