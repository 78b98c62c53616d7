"""Documents whose rows lie in an array inside them (``{"items": [...]}``), as JSON lines, block by block.

Owns finding that array by its names, in bounded memory, and the rest of a path in values that were parsed. Leaves where
a string ends to `json_splitters`, and whether an element is valid JSON to the parser.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from parquet_variant.array.variant_array import VariantArray
from parquet_variant.errors import JsonError
from parquet_variant.ingestion.formats.json_splitters import SPACE, WHITESPACE, Splitter
from parquet_variant.path import VariantPath, Wildcard

_KEYS_NAMED = 8


class WrappedSplitter(Splitter):
    r"""Turn the blocks of documents into lines, one element of the arrays at a path each.

    `names` are the keys that lead to the array; none if the document is the array.

    >>> splitter = WrappedSplitter(["a", "items"])
    >>> splitter.feed(b'{"n": 2, "a": {"items": [{"x": 1}, [')
    b'{"x": 1}\n'
    >>> splitter.feed(b'2]]}}\n{"a": {"items": null}}'), splitter.finish()
    (b'[2]\n', b'')
    """

    colons = True

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self._names = list(names)
        # Containers that are open and lead to the rows: the document, an object a name, the array itself.
        self._matched = 0
        self._key: str | None = None
        self._found = False
        self._met: dict[str, None] = {}

    def feed(self, block: bytes) -> bytes:
        """Give the elements that this block completes, each ended by a newline.

        Raises `JsonError` for what is no array, brackets that do not fit, and text outside of documents; once the
        elements before it were given.
        """
        self.refuse()
        lines: list[bytes] = []
        try:
            self._feed(block, lines)
        except JsonError as error:
            self.error = error
        return b"\n".join([*lines, b""])

    def _feed(self, block: bytes, lines: list[bytes]) -> None:
        data, marks, kinds = self.scan(self.whole(block))
        data[marks[kinds == 4]] = SPACE
        steps = np.array([0, 1, -1, 0, 0, 0], np.int64)[kinds]
        before = self.depth + np.cumsum(steps) - steps
        near = np.flatnonzero((before <= len(self._names) + 1) & (kinds != 4))
        text, start = data.data, 0
        for at, kind, depth in zip(marks[near].tolist(), kinds[near].tolist(), before[near].tolist(), strict=True):
            if depth != self._matched:
                continue
            piece = (bytes(self.text) + text[start:at]).strip(WHITESPACE)
            in_rows = depth == len(self._names) + 1
            if depth == 0 and kind in (3, 5):
                raise JsonError(f"text stands between documents: {piece[:40]!r}", reason="trailing-text")
            if kind == 1:
                if not self._opens(piece, data[at] == ord("["), in_rows):
                    continue
            elif kind == 2:
                self._closes(piece, data[at] == ord("]"), in_rows)
            if in_rows and kind in (2, 3):
                if piece or kind == 3:
                    self.elements += 1
                    lines.append(piece or b",")
            elif in_rows:
                continue  # inside an element
            elif kind == 3:
                self._check_value(piece)
                self._key = None
            elif kind == 5:
                self._key = _key(piece)
                self._met.setdefault(self._key)
            self.text.clear()
            start = at + 1
        if len(marks):
            self.depth = int(before[-1] + steps[-1])
        if self.depth <= self._matched or self._matched == len(self._names) + 1:
            self.text += text[start:]
        else:
            self.text.clear()  # a value that no row is in

    def finish(self) -> bytes:
        """Say that the text is at its end. Raises `JsonError` if a document is cut off, or none has the array."""
        self.refuse()
        if self.depth or self.rest():
            raise JsonError("the last document is cut off, or followed by something", reason="truncated")
        if not self._found:
            keys = ", ".join(map(repr, list(self._met)[:_KEYS_NAMED])) or "none"
            raise JsonError(f"no document has an array at {self._path}; keys on the way: {keys}", reason="no-rows")
        return b""

    @property
    def _path(self) -> VariantPath:
        return VariantPath(tuple(self._names))

    def _opens(self, piece: bytes, is_array: bool, in_rows: bool) -> bool:
        """Whether the container that is opened leads to the rows."""
        if in_rows:
            return False
        level = self._matched
        if level == 0 and piece:
            raise JsonError(f"text stands between documents: {piece[:40]!r}", reason="trailing-text")
        if level and self._key != self._names[level - 1]:
            return False
        if is_array != (level == len(self._names)):
            if level == 0:
                kind = "array" if is_array is False else "object"
                raise JsonError(f"a document is no {kind}: change root", reason="not-an-array")
            raise JsonError(f"{self._path} is no array in a document", reason="not-an-array")
        self._matched += 1
        self._found |= is_array
        return True

    def _closes(self, piece: bytes, is_array: bool, in_rows: bool) -> None:
        if self._matched == 0 or is_array != in_rows:
            raise JsonError("a bracket is closed that was not opened", reason="malformed")
        if not in_rows:
            self._check_value(piece)
        self._matched -= 1
        self._key = None

    def _check_value(self, piece: bytes) -> None:
        """Refuse a number or text where the array should be; null is no rows."""
        if self._matched and self._key == self._names[self._matched - 1]:
            if piece == b"null":
                self._found = True
            elif piece:
                raise JsonError(f"{self._path} is no array in a document, but {piece[:40]!r}", reason="not-an-array")


def values_at(array: VariantArray, path: VariantPath) -> tuple[VariantArray, npt.NDArray[np.int64]]:
    """The values at a path, every ``[*]`` a row for each element, and the row that each comes from.

    What has nothing at the path gives no row.

    >>> values, rows = values_at(VariantArray.from_pylist([{"a": [1, 2]}, {"b": 3}]), VariantPath.parse("$.a[*]"))
    >>> values.to_pylist(), rows.tolist()
    ([1, 2], [0, 0])
    """
    from parquet_variant.functions.variant_explode import exploded
    from parquet_variant.functions.variant_get import variant_get

    rows = np.arange(len(array))
    inside: list[str | int] = []
    for segment in (*path.segments, None):
        if segment is not None and not isinstance(segment, Wildcard):
            inside.append(segment)
            continue
        if inside:
            array = variant_get(array, VariantPath(tuple(inside)), "variant")
            inside = []
        if segment is not None:
            table = exploded(array, outer=False)
            elements = table.filter(table["key"].is_null())
            array = VariantArray(elements["value"].combine_chunks())
            rows = rows[elements["row"].to_numpy()]
    there = ~np.asarray(array.is_null())
    return (array, rows) if there.all() else (array.filter(there), rows[there])


def _key(text: bytes) -> str:
    try:
        key = json.loads(text)
    except ValueError:
        key = None
    if not isinstance(key, str):
        raise JsonError(f"a key of a document is no string: {text[:40]!r}", reason="malformed")
    return key
