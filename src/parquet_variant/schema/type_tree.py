"""What a spelling or a storage struct says, before it is a `ShreddingSchema`.

Owns that plain form, so that the modules that read one need not know the class whose methods call them.
"""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa

# None: an untyped variant. An Arrow type: a typed column. A list of one: an array of it. A dict: an object's fields.
TypeTree: TypeAlias = "pa.DataType | list[TypeTree] | dict[str, TypeTree] | None"

# Two Arrow structs a level: deeper than any Parquet reader goes, shallow enough for recursion everywhere.
MAX_DEPTH = 200
