"""What ``--select`` is given: ``name=$.path:type``.

Owns this small notation. Leaves the path to `VariantPath` and the type's name to the extraction.
"""

from __future__ import annotations

from parquet_variant.errors import PathError

__all__ = ["read_selects"]


def read_selects(texts: list[str]) -> dict[str, tuple[str, str | None]]:
    """Read all ``--select`` options of a command as ``{name: (path, type)}``; no type is None.

    The name may be left out: it is then the last key of the path.

    Raises
    ------
    PathError
        For text without a path, and for a name that is given twice.

    Examples
    --------
    >>> read_selects(["mag=$.properties.mag:double", "$.id"])
    {'mag': ('$.properties.mag', 'double'), 'id': ('$.id', None)}
    >>> read_selects(["$['a:b'][0]:struct<x: int>"])
    {'a:b': ("$['a:b'][0]", 'struct<x: int>')}
    """
    selects: dict[str, tuple[str, str | None]] = {}
    for text in texts:
        name, path, kind = _read_select(text)
        if name in selects:
            raise PathError(f"two --select options are called {name!r}: name one of them, as in 'other={path}'")
        selects[name] = (path, kind)
    return selects


def _read_select(text: str) -> tuple[str, str, str | None]:
    from parquet_variant.path import VariantPath

    name, found, rest = text.partition("$")
    name = name.strip()
    if not found or (name and not name.endswith("=")):
        raise PathError(f"--select is {text!r}: write it as 'name=$.path:type', such as 'mag=$.properties.mag:double'")
    end = _end_of_path(rest)
    path, kind = f"${rest[:end]}".strip(), rest[end + 1 :].strip()
    name = name[:-1].strip()
    if not name:
        keys = [segment for segment in VariantPath.parse(path).segments if isinstance(segment, str)]
        name = keys[-1] if keys else "value"
    return name, path, kind or None


def _end_of_path(text: str) -> int:
    """Index of the first colon that is not inside brackets."""
    quote = ""
    depth = 0
    for index, char in enumerate(text):
        if quote:
            quote = "" if char == quote and text[index - 1] != "\\" else quote
        elif char in "'\"" and depth:
            quote = char
        elif char in "[]":
            depth += 1 if char == "[" else -1
        elif char == ":" and not depth:
            return index
    return len(text)
