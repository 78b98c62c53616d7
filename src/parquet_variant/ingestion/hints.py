"""Hints about options that suit the data of an ingest better, from the profile of the input."""

from __future__ import annotations

import re
from collections.abc import Iterator

from parquet_variant.inference.profile import Profile
from parquet_variant.inference.profile_path import PathProfile
from parquet_variant.ingestion.request import TextOptions
from parquet_variant.path import VariantPath
from parquet_variant.types import VariantType

# The rows of a document are in an array if it has at least this many elements per document.
_MIN_ELEMENTS = 2
_MAX_DEPTH = 3
_SIMPLE_KEY = re.compile(r"\['([A-Za-z_][A-Za-z0-9_]*)'\]")


def root_hints(profile: Profile, text: TextOptions, files: int) -> Iterator[str]:
    """Yield a hint to use ``root`` if every file is one document whose rows are in an array.

    `profile`: the profile of the rows without ``root``.
    `text`: the options with which the text was read.
    `files`: the number of files.
    """
    root = profile.root
    if (
        root is not None
        and text.layout.root is not None
        and root.element_count
        and set(root.types) == {VariantType.ARRAY}
    ):
        path = text.layout.root.shorthand
        yield (
            f"the value at {path} is an array, and each row is such an array: for one row per element, use "
            f"root='{path}[*]'"
        )
    if root is None or text.layout.root is not None or text.json_column is not None or profile.rows > files:
        return
    largest = max(_arrays_of_objects(root, _MAX_DEPTH), key=lambda array: array.element_count, default=None)
    if largest is not None and largest.element_count >= _MIN_ELEMENTS * profile.rows:
        path = dotted(largest.path)
        yield (
            f"the input is {profile.rows:,} {'document' if profile.rows == 1 else 'documents'} with "
            f"{largest.element_count:,} objects in the array {path}: to ingest these objects as rows, use "
            f"root='{path}[*]'"
        )


def dotted(path: VariantPath) -> str:
    """Return a path with a dot before each key that needs no quotes.

    >>> dotted(VariantPath(("a", "b c")))
    "$.a['b c']"
    """
    return _SIMPLE_KEY.sub(r".\1", str(path))


def _arrays_of_objects(path: PathProfile, depth: int) -> Iterator[PathProfile]:
    """Yield the paths of arrays that contain objects, up to a depth, not inside other arrays."""
    element = path.element
    if element is not None and 2 * element.types.get(VariantType.OBJECT, 0) >= element.count:
        yield path
    if depth:
        for field in path.fields:
            yield from _arrays_of_objects(field, depth - 1)
