"""The values that options accept, shared by the library and the command line.

Owns the names of the values, and imports nothing that is slow to load. Leaves their meaning to the operations that
accept them.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

# What to do if the destination holds data. A single file cannot be appended to.
Mode: TypeAlias = Literal["error", "append", "overwrite", "ignore"]
FileMode: TypeAlias = Literal["error", "overwrite"]
# Of tables also ``"replace"``: a new definition that keeps the history.
TableMode: TypeAlias = Literal[Mode, "replace"]
# The format of the input, what to do with a line that is not JSON, and the format of the output.
SchemaOf: TypeAlias = Literal["table", "file"]
InputFormat: TypeAlias = Literal["auto", "ndjson", "array", "documents", "csv"]
OnError: TypeAlias = Literal["fail", "quarantine", "null"]
OnInexact: TypeAlias = Literal["report", "fail"]
# What to do with rows that break a contract.
OnViolation: TypeAlias = Literal["fail", "quarantine", "warn"]
# How strict a contract is that is inferred from data.
ContractLevel: TypeAlias = Literal["loose", "normal", "strict"]
# The forms of a contract in a file, and of the report of a check.
ContractFormat: TypeAlias = Literal["yaml", "json-schema", "odcs", "soda"]
ReportFormat: TypeAlias = Literal["text", "json", "junit", "github"]
OutputFormat: TypeAlias = Literal["parquet", "delta", "iceberg", "vortex"]
PublishFormat: TypeAlias = Literal["iceberg", "delta", "ducklake"]
# How Variants are stored in columns of Parquet and Vortex files, and what to do if typed and untyped columns conflict.
Layout: TypeAlias = Literal["unshredded", "final", "draft-paths", "draft-object"]
VortexLayout: TypeAlias = Literal["auto", "variant", "struct"]
AnyLayout: TypeAlias = Literal[Layout, VortexLayout]
OnConflict: TypeAlias = Literal["error", "typed"]
# What to do with a value that cannot be cast to the type of a path.
Errors: TypeAlias = Literal["null", "raise"]
SqlEngine: TypeAlias = Literal["duckdb", "spark"]
# The order of a list of paths.
SortBy: TypeAlias = Literal["path", "saved", "residual", "typed", "missing"]
PathOrder: TypeAlias = Literal["file", "path", "bytes", "residual", "typed", "missing"]

# How much time the compression of Parquet files may take: points of the frontier of speed and size.
Effort: TypeAlias = Literal["fast", "balanced", "small"]

# The default codec of Parquet files.
DEFAULT_COMPRESSION = "zstd"
