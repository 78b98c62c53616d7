"""Conversion of documents whose rows are in an array inside them (``{"items": [...]}``) to lines, block by block.

The array is found by the names on its path, in bounded memory. `values_at` applies the remainder of a path to parsed
values. `json_splitters` finds the end of strings, and the parser checks that the elements are valid JSON.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import JsonError
from parquet_variant.ingestion.formats.json_splitters import (
    CLOSING,
    COLON,
    COMMA,
    DEPTH_STEP,
    LINE_END,
    OPENING,
    RECORD_SEPARATOR,
    SPACE,
    WHITESPACE,
    Splitter,
)
from parquet_variant.path import VariantPath, Wildcard

_KEYS_SHOWN = 8
_SHOWN_BYTES = 40


class WrappedSplitter(Splitter):
    r"""Convert the blocks of documents to lines with one element of the arrays at a path each.

    Parameters
    ----------
    names
        The keys on the path to the array; empty if the document is the array.
    is_sequence
        The text is a JSON text sequence (RFC 7464), in which a record separator precedes every document.

    Examples
    --------
    >>> splitter = WrappedSplitter(["a", "items"])
    >>> splitter.feed(b'{"n": 2, "a": {"items": [{"x": 1}, [')
    b'{"x": 1}\n'
    >>> splitter.feed(b'2]]}}\n{"a": {"items": null}}'), splitter.finish()
    (b'[2]\n', b'')
    """

    colons = True

    def __init__(self, names: Sequence[str], is_sequence: bool = False) -> None:
        super().__init__()
        self._names = list(names)
        self._is_sequence = is_sequence
        # The number of open containers on the path: the document, one object per name, the array.
        self._matched = 0
        self._key: str | None = None
        self._found = False
        self._keys_seen: dict[str, None] = {}

    def feed(self, block: bytes) -> bytes:
        """Return the elements that this block completes, each followed by a newline.

        Raises `JsonError` for a value that is not an array, brackets that do not match, and text outside documents,
        after the elements before it were returned.
        """
        self.raise_pending_error()
        lines: list[bytes] = []
        try:
            if self._is_sequence:
                first, *records = block.split(RECORD_SEPARATOR)
                self._feed(first, lines)
                for record in records:
                    self._check_complete("a document")
                    self._feed(record, lines)
            else:
                self._feed(block, lines)
        except JsonError as error:
            self.error = error
        return b"\n".join([*lines, b""])

    def _feed(self, block: bytes, lines: list[bytes]) -> None:
        data, marks, kinds = self.scan(self.scannable(block))
        data[marks[kinds == LINE_END]] = SPACE
        steps = DEPTH_STEP[kinds]
        depths = self.depth + np.cumsum(steps) - steps
        near = np.flatnonzero((depths <= len(self._names) + 1) & (kinds != LINE_END))
        text, start = data.data, 0
        for position, kind, depth in zip(
            marks[near].tolist(), kinds[near].tolist(), depths[near].tolist(), strict=True
        ):
            if depth != self._matched:
                continue
            piece = (bytes(self.text) + text[start:position]).strip(WHITESPACE)
            in_rows = depth == len(self._names) + 1
            if depth == 0 and kind in (COMMA, COLON):
                raise _text_between(piece)
            if kind == OPENING:
                if not self._open(piece, data[position] == ord("["), in_rows):
                    continue
            elif kind == CLOSING:
                self._close(piece, data[position] == ord("]"), in_rows)
            if in_rows and kind in (CLOSING, COMMA):
                if piece or kind == COMMA:
                    self.elements += 1
                    lines.append(piece or b",")
            elif in_rows:
                continue  # inside an element
            elif kind == COMMA:
                self._check_value(piece)
                self._key = None
            elif kind == COLON:
                self._key = _key(piece)
                self._keys_seen.setdefault(self._key)
            self.text.clear()
            start = position + 1
        if len(marks):
            self.depth = int(depths[-1] + steps[-1])
        if self.depth <= self._matched or self._matched == len(self._names) + 1:
            self.text += text[start:]
        else:
            self.text.clear()  # a value that contains no rows

    def finish(self) -> bytes:
        """Check the end of the text. Raises `JsonError` if a document is truncated, or none contains the array."""
        self.raise_pending_error()
        self._check_complete("the last document")
        if not self._found:
            keys = ", ".join(map(repr, list(self._keys_seen)[:_KEYS_SHOWN])) or "none"
            raise JsonError(
                f"no document contains an array at {self._path}: change root=; the keys in the documents are {keys}",
                reason="no-rows",
            )
        return b""

    def _check_complete(self, document: str) -> None:
        if self.depth or self.unfinished():
            raise JsonError(f"{document} is truncated, or followed by other text: fix the file", reason="truncated")

    @property
    def _path(self) -> VariantPath:
        return VariantPath(tuple(self._names))

    def _open(self, piece: bytes, is_array: bool, in_rows: bool) -> bool:
        """Count the container that is opened if it is on the path to the rows, and return whether it is."""
        if in_rows:
            return False
        level = self._matched
        if level == 0 and piece:
            raise _text_between(piece)
        if level and self._key != self._names[level - 1]:
            return False
        if is_array != (level == len(self._names)):
            if level == 0:
                expected, actual = ("object", "array") if is_array else ("array", "object")
                raise JsonError(f"a document is an {actual}, not an {expected}: change root=", reason="not-an-array")
            raise self._not_an_array("an array" if is_array else "an object")
        self._matched += 1
        self._found |= is_array
        return True

    def _close(self, piece: bytes, is_array: bool, in_rows: bool) -> None:
        if self._matched == 0 or is_array != in_rows:
            raise JsonError("a bracket is closed that was not opened: fix the file", reason="malformed")
        if not in_rows:
            self._check_value(piece)
        self._matched -= 1
        self._key = None

    def _check_value(self, piece: bytes) -> None:
        """Raise `JsonError` for a number or string in the place of the array; null means no rows."""
        if self._matched and self._key == self._names[self._matched - 1]:
            if piece == b"null":
                self._found = True
            elif piece:
                raise self._not_an_array(repr(piece[:_SHOWN_BYTES]))

    def _not_an_array(self, value: str) -> JsonError:
        return JsonError(
            f"{self._path} does not lead to an array in every document: found {value} at "
            f"{VariantPath(tuple(self._names[: self._matched]))}; change root=",
            reason="not-an-array",
        )


def _text_between(piece: bytes) -> JsonError:
    return JsonError(f"unexpected text between documents: {piece[:_SHOWN_BYTES]!r}", reason="trailing-text")


def values_at(array: VariantArray, path: VariantPath) -> tuple[VariantArray, npt.NDArray[np.int64]]:
    """Return the values at a path, with one row per element for every ``[*]``, and the row that each comes from.

    A row without a value at the path gives no row.

    >>> values, rows = values_at(VariantArray.from_pylist([{"a": [1, 2]}, {"b": 3}]), VariantPath.parse("$.a[*]"))
    >>> values.to_pylist(), rows.tolist()
    ([1, 2], [0, 0])
    """
    from parquet_variant.ops.variant_explode import variant_explode
    from parquet_variant.ops.variant_get import variant_get

    rows = np.arange(len(array))
    segments: list[str | int] = []
    for segment in (*path.segments, None):
        if segment is not None and not isinstance(segment, Wildcard):
            segments.append(segment)
            continue
        if segments:
            array = variant_get(array, VariantPath(tuple(segments)), "variant")
            segments = []
        if segment is not None:
            table = variant_explode(array)
            elements = table.filter(table["key"].is_null())
            array = VariantArray(elements["value"].combine_chunks())
            rows = rows[elements["row"].to_numpy()]
    present = ~np.asarray(array.is_null())
    return (array, rows) if present.all() else (array.filter(present), rows[present])


def _key(text: bytes) -> str:
    try:
        key = json.loads(text)
    except ValueError:
        key = None
    if not isinstance(key, str):
        raise JsonError(f"a key in a document is not a string: {text[:_SHOWN_BYTES]!r}", reason="malformed")
    return key
