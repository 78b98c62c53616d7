"""`annotate`: copy files with another footer, which names the groups that are Variants.

Owns the choice of the groups and the copies, which replace the files. Leaves footers to `format.footer`, and staging to
`io.staging`.
"""

from __future__ import annotations

import os
import posixpath
import shutil
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa
from pyarrow import fs

from parquet_variant.errors import VariantFileError, bad_option, strings_of
from parquet_variant.files.parquet.format import footer as footers
from parquet_variant.files.parquet.format.columns import find_variants
from parquet_variant.files.parquet.format.files import Source, locate
from parquet_variant.io.filesystems import filesystem_of, info_of, path_text, read_errors, write_errors
from parquet_variant.io.staging import COMPACTED, StagedFile, atomic_file, check_target, staged_job
from parquet_variant.io.temporaries import open_temporary

_COPY_BYTES = 4 << 20
Paths: TypeAlias = Collection[tuple[str, ...]]


class FooterChange(NamedTuple):
    """The footer of a file, and the one that a copy of the file gets."""

    name: str
    before: bytes
    after: bytes
    columns: Paths  # The groups with the annotation in the copy.

    @classmethod
    def plan(cls, source: Any, name: str, choose: Callable[[footers.SchemaNode], Paths]) -> FooterChange:
        """Return the change for an open file; `choose` returns the groups of its schema that are annotated."""
        footer = footers.footer_bytes(source, name)
        columns = choose(footers.parse_schema(footer, name))
        return cls(name, footer, footers.annotate_footer(footer, columns, name), columns)

    def copy(self, source: pa.NativeFile, target: Any) -> int:
        """Write the copy to an open stream; return its size."""
        length = source.size() - footers.TAIL - len(self.before)
        shutil.copyfileobj(source.get_stream(0, length), target, _COPY_BYTES)
        if target.tell() != length:
            problem = "the file became shorter while it was copied: try again"
            raise VariantFileError(problem, reason="changed", file=self.name)
        target.write(self.after + len(self.after).to_bytes(4, "little") + footers.MAGIC)
        return length + len(self.after) + footers.TAIL


def annotate(
    source: Source, columns: Collection[str] | None = None, *, filesystem: fs.FileSystem | None = None
) -> tuple[str, ...]:
    """Set which columns of Parquet files have the VARIANT(1) annotation; nothing else in the files changes.

    See `Table.annotate`.
    """

    def choose(root: footers.SchemaNode) -> Paths:
        if columns is None:
            return {column.path for column in find_variants(root) if column.layout in ("unshredded", "final")}
        dotted = {node.dotted: node.path for node in root.walk() if node.physical is None and node.path}
        return {dotted.get(column, (column,)) for column in strings_of("columns", columns)}

    if not isinstance(source, str | os.PathLike):
        marked = [_annotate_file(file.path, choose, filesystem) for file in locate(source, filesystem)]
    elif info_of(*filesystem_of(source, filesystem)).type != fs.FileType.Directory:
        marked = [_annotate_file(source, choose, filesystem)]
    elif filesystem is not None:
        raise bad_option("filesystem= is not supported by annotate for a directory: pass a URI instead")
    else:
        marked = _annotate_directory(path_text(source).rstrip("/"), choose)
    return tuple(sorted({".".join(path) for paths in marked for path in paths}))


def _annotate_file(
    path: str | os.PathLike[str], choose: Callable[[footers.SchemaNode], Paths], filesystem: fs.FileSystem | None
) -> Paths:
    """Replace a file by a copy with another footer."""
    system, name = filesystem_of(path, filesystem)
    check_target(system, name, "overwrite")
    with read_errors(name), system.open_input_file(name) as source:
        change = FooterChange.plan(source, name, choose)
        if change.before != change.after:
            with atomic_file(name, system) as staged, open_temporary(system, str(staged), name) as stream:
                change.copy(source, stream)
    return change.columns


def _annotate_directory(root: str, choose: Callable[[footers.SchemaNode], Paths]) -> list[Paths]:
    """Replace the files of a directory by copies with another footer, all of them or none."""
    system, base = filesystem_of(root)
    marked: list[Paths] = []
    copies: dict[str, StagedFile] = {}  # By the name of the file that the copy replaces.
    with staged_job(root, "append") as staging:
        for task, file in enumerate(locate(root)):
            with read_errors(file.path), system.open_input_file(file.path) as source:
                change = FooterChange.plan(source, file.path, choose)
                marked.append(change.columns)
                if change.before != change.after:
                    name = posixpath.relpath(file.path, base)
                    new = posixpath.join(posixpath.dirname(name), staging.file_name(task, prefix=COMPACTED))
                    copies[name] = StagedFile(staging.attempt(task), new)
                    path = filesystem_of(copies[name].path)[1]
                    with write_errors(path):
                        system.create_dir(posixpath.dirname(path), recursive=True)
                        with open_temporary(system, path, file.path) as stream:
                            change.copy(source, stream)
        staging.commit(copies.values(), marker=False, replaced=copies)
    return marked
