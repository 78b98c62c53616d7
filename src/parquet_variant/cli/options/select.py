"""What ``--select`` is given: ``name=$.path:type``.

Owns the name and what it is where none is given. Leaves the rest of the notation to `parquet.selection`.
"""

from __future__ import annotations

import re

_NAMED = re.compile(r"([^$=\[\]]*[^$=\[\]\s])\s*=\s*(.*)", re.DOTALL)


def read_selects(texts: list[str]) -> dict[str, str]:
    """Read all ``--select`` options of a command, as a mapping that `parquet.scan` takes.

    Without a name, a path is called by its last key, and an ordinary column by its own name. Raises `PathError` for a
    path that cannot be read, and for a name that is given twice.

    >>> read_selects(["mag=$.properties.mag:double", "$.id", "$['a=b'][0]:struct<x: int>", "day"])
    {'mag': '$.properties.mag:double', 'id': '$.id', 'a=b': "$['a=b'][0]:struct<x: int>", 'day': 'day'}
    """
    from parquet_variant.errors import PathError
    from parquet_variant.query.selection import read_selection

    selects: dict[str, str] = {}
    for text in texts:
        if named := _NAMED.fullmatch(text):
            name, path = named[1].strip(), named[2]
        else:
            path = text.strip()
            (selected,) = read_selection([path]) if not path.startswith("$") else read_selection({"value": path})
            keys = (
                [segment for segment in selected.path.segments if isinstance(segment, str)] if selected.path else [path]
            )
            name = keys[-1] if keys else "value"
        if name in selects:
            raise PathError(f"two --select options are called {name!r}: name one of them, as in 'other={path}'")
        selects[name] = path
    return selects
