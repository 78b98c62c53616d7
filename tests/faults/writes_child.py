"""Writes in every format while calls of the operating system fail: the process of `test_failing_calls`.

Arguments: the library with the failing calls, a directory, the format, and the random seed. Prints a line per operation
with the number of calls that failed, and one line that begins with "WRONG" per fault that was found.
"""

from __future__ import annotations

import ctypes
import errno
import multiprocessing
import os
import random
import shutil
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import parquet_variant as pv
from iceberg.rest_server import rest_catalog
from parquet_variant.tables.iceberg.catalogs.opening import open_catalog

MODES = ("once", "full", "lost")
# The errors of the calls by mode: those of a disk, of a mount, of permissions and limits, and of a repeated request.
ERRORS = {
    "once": ("EIO", "EACCES", "EROFS", "EDQUOT", "ENOENT", "EMFILE", "ESTALE", "ENAMETOOLONG", "ETIMEDOUT"),
    "full": ("ENOSPC", "EDQUOT", "EROFS", "EACCES"),
    "lost": ("EIO", "ETIMEDOUT", "ESTALE", "EEXIST", "ENOENT"),
}
REASONS = {
    "cannot-read", "cannot-write", "cannot-open", "cannot-create", "commit-failed", "unreadable", "no-connection",
    "missing-file", "unknown-outcome", "not-erased",
}  # fmt: skip
# Reasons of a call that says that a file of a log, or its directory, does not exist.
GONE = {"broken-log", "not-a-table"}
# Random calls of each operation and mode that fail, and the last ones, which are those around the commit.
RANDOM_CALLS, LAST_CALLS = (8 if os.environ.get("FUZZ_SECONDS") else 1), 3
# Operations on partitioned tables and those of a REST catalog, which differ little from the others.
OPERATIONS = 2
_MISSING = {"no-such-file", "not-a-table", "no-such-table", "not-found", "no-files"}


def rows(*values: str) -> dict[str, Any]:
    return {"k": list(values), "v": pv.from_python([{"s": value} for value in values])}


def _serve(root: Path, address: Any) -> None:
    with rest_catalog(root) as (uri, _):
        address.send(uri)
        threading.Event().wait()


def started_catalog(root: Path) -> str:
    """Start a REST catalog in a process of its own, where no call fails, and return its address."""
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    fork.Process(target=_serve, args=(root, there), daemon=True).start()
    return str(here.recv())


class Place:
    """A table of a format, with three files and a file of somebody else.

    `kind`: the format, or the kind of a catalog of Iceberg; with "by k" after it if the table is partitioned.
    """

    def __init__(self, root: Path, kind: str) -> None:
        format, _, self.partition_by = kind.partition(" by ")
        self.root, self.format, self.path = root, "iceberg" if format in ("sql", "rest") else format, str(root / "t")
        self.made, self.has_server = root.with_name("made"), format == "rest"
        self.catalog: dict[str, Any] = {}
        self.earlier: Any = None  # The version before the newest one; None for directories.
        if format == "sql":
            self.path = "db.t"
            self.catalog = {
                "catalog": {"type": "sql", "uri": f"sqlite:///{root}/c.db", "warehouse": f"file://{root}/w"}
            }
        if format == "rest":
            self.path, self.catalog = "db.t", {"catalog": {"type": "rest", "uri": started_catalog(root / "w")}}

    @property
    def is_directory(self) -> bool:
        return self.format in ("parquet", "vortex")

    def make(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True)
        json = pa.table({"k": ["in"], "v": ['{"s": "in"}']})
        pq.write_table(json, self.root.with_name("in.parquet"))
        if self.catalog:
            pv.create_namespace("db", **self.catalog)
            with suppress(pv.VariantError):
                open_catalog(**self.catalog).drop(("db", "t"))
        parts: dict[str, Any] = {"partition_by": self.partition_by} if self.partition_by else {}
        for number, value in enumerate(("a", "b", "c")):
            if not self.is_directory:
                options = {"mode": "append"} if number else parts
                pv.write(self.path, rows(value, "other"), format=self.format, **options, **self.catalog)
                continue
            folders = (
                {f"k={k}/": {"v": rows(k)["v"]} for k in (value, "other")} if parts else {"": rows(value, "other")}
            )
            for folder, data in folders.items():
                pv.write(f"{self.path}/{folder}{number}.{self.format}", data, format=self.format)
        if not self.is_directory:
            self.earlier = self.open().history()[1]["version"]
        (self.root / "foreign.txt").write_text("x")
        shutil.rmtree(self.made, ignore_errors=True)
        shutil.copytree(self.root, self.made)

    def restore(self) -> None:
        """Restore what `make` made; a copy of files is ten times as fast as the writes."""
        if self.has_server:
            self.make()
        else:
            shutil.rmtree(self.root)
            shutil.copytree(self.made, self.root)

    def open(self) -> Any:
        return pv.open(self.path, **self.catalog)

    def ingest(self, mode: str) -> None:
        source = self.root.with_name("in.parquet")
        pv.ingest(source, self.path, format=self.format, mode=mode, json_column="v", threads=1, **self.catalog)

    def seen(self) -> list[tuple[str, str]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            keys, values = self.open().to_arrow(["k"])["k"].to_pylist(), self.open().read("v").to_pylist()
        return sorted(zip(keys, (value["s"] for value in values), strict=True))

    def published(self) -> list[str] | None:
        try:
            table = pv.open(self.root / "published", format="iceberg")
            return sorted(value["s"] for value in table.read("v").to_pylist())
        except pv.VariantError as error:
            if error.reason not in _MISSING:
                raise
            return None

    def files(self) -> set[Path]:
        """The files, without those that `publish` has copied, which it uses when it is repeated."""
        copies = self.root / "published"
        return {path for path in self.root.rglob("*") if path.is_file() and copies not in path.parents}

    def state(self) -> tuple[Any, Any, Any]:
        return self.seen(), self.published(), self.open().schema.names


def _merge(place: Place) -> None:
    merge = place.open().merge(rows("b", "new"), "target.k = source.k")
    merge.when_matched_update({"v": "source.v"}).when_not_matched_insert_all().execute()


DIRECTORIES: dict[str, Callable[[Place], object]] = {
    "append": lambda place: place.open().append(rows("new")),
    "overwrite": lambda place: place.open().overwrite(rows("new")),
    "ingest, append": lambda place: place.ingest("append"),
    "ingest, overwrite": lambda place: place.ingest("overwrite"),
    "optimize": lambda place: place.open().optimize(column="v"),
    "publish": lambda place: place.open().publish("iceberg", to=place.root / "published"),
}
TABLES: dict[str, Callable[[Place], object]] = {
    **{name: DIRECTORIES[name] for name in ("append", "overwrite", "ingest, append", "ingest, overwrite")},
    "delete": lambda place: place.open().delete("k = 'b'"),
    "update": lambda place: place.open().update({"v:s": "'new'"}, "k = 'b'"),
    "merge": _merge,
    "optimize": lambda place: place.open().optimize(),
    "add columns": lambda place: place.open().add_columns("n bigint"),
    "annotate": lambda place: place.open().annotate([]),
    "restore": lambda place: (place.open().history(), place.open().restore(place.earlier)),
    "erase": lambda place: place.open().erase("k = 'b'"),
}
DELTA = {
    "vacuum": lambda place: place.open().vacuum(retention=timedelta(days=7)),
    "publish": DIRECTORIES["publish"],
}
ICEBERG = {"expire": lambda place: place.open().expire_snapshots(older_than="2999-01-01")}


def operations(format: str) -> dict[str, Callable[[Place], object]]:
    format, _, partition_by = format.partition(" by ")
    if format in ("parquet", "vortex"):
        annotate = {"annotate": lambda place: place.open().annotate()} if format == "parquet" else {}
        works = DIRECTORIES | annotate
        # An append takes the partition columns from paths only.
        return {name: work for name, work in works.items() if not (partition_by and name == "ingest, append")}
    return TABLES | (DELTA if format == "delta" else ICEBERG)


def attempt(
    library: Any, place: Place, work: Callable[[Place], object], call: int, mode: str, code: str
) -> tuple[int, Any, str]:
    """Run an operation while a call fails; return the number of calls, the error, and the call that failed."""
    error: BaseException | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library.start_failing(str(place.root).encode(), call, MODES.index(mode), getattr(errno, code))
        try:
            work(place)
        except Exception as caught:
            error = caught
        calls = library.stop_failing()
    return calls, error, library.first_failed().decode()


def problem_of(
    place: Place, work: Callable[[Place], object], error: Any, code: str, old: Any, new: Any, files: set[Path]
) -> str:
    """Return what is wrong after an operation that a failing call may have ended; empty if nothing is.

    `code`: the error of the call. `files`: those that there were before it.
    """
    seen = place.state()
    if not (place.root / "foreign.txt").exists():
        return "a file of somebody else was removed"
    if seen not in (old, new):
        return f"neither the old rows nor the new ones: {seen}"
    if error is None:
        return "" if seen == new else "no error, and the old rows"
    if not isinstance(error, pv.VariantError) or error.reason not in (REASONS | GONE if code == "ENOENT" else REASONS):
        return f"the error is {error!r}"
    if seen == new != old:
        return "" if error.reason in ("unknown-outcome", "not-erased") else "committed, and the error says otherwise"
    if seen == old != new and error.reason != "unknown-outcome" and (left := place.files() - files):
        return f"not committed, and files are left: {left}"
    try:
        work(place)
    except pv.VariantError as again:
        # An erase does not overlook files that a commit may yet name: its error says to force it without a writer.
        if (error.reason, again.reason) != ("unknown-outcome", "writer-active"):
            return f"repeated: {again!r}"
        place.open().erase("k = 'b'", force=True)
    return "" if place.state() == new else f"repeated: {place.state()}"


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    library.start_failing.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_int]
    library.first_failed.restype = ctypes.c_char_p
    place, chooser = Place(Path(sys.argv[2]) / "place", sys.argv[3]), random.Random(sys.argv[4])
    works = list(operations(sys.argv[3]).items())
    remaining = len(works)
    if place.partition_by or sys.argv[3] == "rest":
        chooser.shuffle(works)
        remaining = OPERATIONS
    place.make()
    for name, work in works:
        place.restore()
        old = place.state()
        calls, error, _ = attempt(library, place, work, 0, "once", "EIO")
        assert error is None, (name, error)
        if not calls:  # the catalog does it without the disk
            continue
        remaining -= 1
        new, failures = place.state(), 0
        for mode in MODES:
            last = range(max(1, calls - LAST_CALLS + 1), calls + 1)
            for call in sorted({*chooser.sample(range(1, calls + 1), min(RANDOM_CALLS, calls)), *last}):
                place.restore()
                files = place.files()
                code = chooser.choice(ERRORS[mode])
                _, error, failed = attempt(library, place, work, call, mode, code)
                failures += bool(failed)
                if problem := problem_of(place, work, error, code, old, new, files):
                    print(f"WRONG {name}, {mode} {code}, call {call} of {calls} ({failed}): {problem}")
        print(f"{name}: {failures} failures")
        if not remaining:
            break


if __name__ == "__main__":
    main()
