"""Standard input where a file is asked for: ``-``.

Owns keeping what is piped in until the command ends, since a schema is inferred before the rows are written. Leaves
what is in it to whoever reads files.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["with_stdin"]


@contextmanager
def with_stdin(sources: list[str]) -> Iterator[list[str]]:
    """The sources with a file in the place of ``-``, private and gone at the end.

    Raises
    ------
    VariantFileError
        If standard input is a terminal, or named twice.

    Examples
    --------
    >>> with with_stdin(["a.ndjson"]) as sources:
    ...     sources
    ['a.ndjson']
    """
    from parquet_variant.errors import VariantFileError

    if "-" not in sources:
        yield sources
        return
    if sources.count("-") > 1:
        raise VariantFileError("- is named twice: standard input can be read once", reason="bad-option")
    if sys.stdin is None or sys.stdin.isatty():
        raise VariantFileError("- is standard input, and nothing is piped into it", reason="no-rows")
    with tempfile.TemporaryDirectory(prefix="variant-") as folder:
        file = Path(folder) / "stdin"
        with file.open("wb") as target:
            shutil.copyfileobj(sys.stdin.buffer, target, 1 << 20)
        yield [str(file) if source == "-" else source for source in sources]
