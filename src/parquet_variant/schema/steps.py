"""A place in a schema as text, for messages and reports. Owns only that; paths that select values are `path`'s."""

from __future__ import annotations

import re

from parquet_variant.schema.shredding_schema import Steps

__all__ = ["render_steps"]

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def render_steps(steps: Steps) -> str:
    """Write a place; every element of an array is ``[*]``.

    Examples
    --------
    >>> render_steps(("a", None, "x.y"))
    "$.a[*]['x.y']"
    """
    parts = []
    for step in steps:
        if step is None:
            parts.append("[*]")
        elif _PLAIN_NAME.match(step):
            parts.append(f".{step}")
        else:
            parts.append("['" + step.replace("\\", "\\\\").replace("'", "\\'") + "']")
    return "$" + "".join(parts)
