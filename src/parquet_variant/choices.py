"""The words that options are chosen from, once for the library and for the command line, which imports little.

Owns the words. Leaves what they mean to the operations that take them.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

# If a destination holds data; and of one file, which takes no more rows.
Mode: TypeAlias = Literal["error", "append", "overwrite", "ignore"]
FileMode: TypeAlias = Literal["error", "overwrite"]
# How JSON text is laid out, what becomes of a line that is no JSON, and what is written.
InputFormat: TypeAlias = Literal["auto", "ndjson", "array", "documents", "csv", "xml"]
OnError: TypeAlias = Literal["fail", "quarantine", "null"]
OutputFormat: TypeAlias = Literal["parquet", "delta", "vortex"]
# How Variants lie in columns of Parquet and of Vortex, and what becomes of one that contradicts itself.
Layout: TypeAlias = Literal["unshredded", "final", "draft-paths", "draft-object"]
VortexLayout: TypeAlias = Literal["auto", "variant", "struct", "columnar"]
OnConflict: TypeAlias = Literal["error", "typed"]
SqlEngine: TypeAlias = Literal["duckdb", "spark"]
# The order of a list of paths.
SortBy: TypeAlias = Literal["path", "saved", "residual", "typed", "missing"]

# The codec of Parquet files that nobody chose one for.
DEFAULT_COMPRESSION = "zstd"
