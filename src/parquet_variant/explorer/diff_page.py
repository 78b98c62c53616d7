"""The page of the differences of two data sets, in the style of the explorer.

Owns writing the page. Leaves the differences to `quality.diff`, and the document to `page`.
"""

from __future__ import annotations

import os
from pathlib import Path

from parquet_variant.explorer.page import diff_page
from parquet_variant.io.temporaries import atomic_file
from parquet_variant.quality.diff import DataDiff


def save_diff(differences: DataDiff, file: str | os.PathLike[str]) -> Path:
    """Write differences as one self-contained HTML page, which appears only when it is complete.

    >>> import tempfile, parquet_variant as pv
    >>> differences = pv.diff(pv.parse_json(["1"]), pv.parse_json(['"x"']))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_diff(differences, f"{folder}/diff.html").stat().st_size > 10_000
    True
    """
    target = Path(file)
    with atomic_file(target) as staged:
        staged.write_bytes(diff_page(differences.to_dict()).encode())
    return target
