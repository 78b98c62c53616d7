"""One local file that appears under its name only when it is complete.

Owns the temporary name and its removal after an error. Leaves directories, which many tasks write, to `staging`.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from parquet_variant.io.filesystems import write_errors


@contextmanager
def atomic_file(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path next to `target`, which replaces `target` if the block succeeds, and is removed if not.

    Errors of the file system inside the block are raised as `VariantFileError`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_file(f"{folder}/a.txt") as staged:
    ...         _ = staged.write_text("complete")
    ...     Path(f"{folder}/a.txt").read_text(), len(os.listdir(folder))
    ('complete', 1)
    """
    path = Path(target)
    staged = path.with_name(f".{path.name[:100]}.{uuid.uuid4().hex[:12]}.tmp")
    with write_errors(path):
        try:
            yield staged
            descriptor = os.open(staged, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            staged.replace(path)
        finally:
            staged.unlink(missing_ok=True)
