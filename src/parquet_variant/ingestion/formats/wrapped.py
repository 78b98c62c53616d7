"""Conversion of documents whose rows are in an array inside them (``{"items": [...]}``) to lines, block by block.

The array is found by the names on its path, in bounded memory. `values_at` applies the remainder of a path to parsed
values. `layout` finds the end of strings. The parser checks that the elements are valid JSON, and this module
has it check the text around the array.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.encoding.json_reader import JsonOptions
from parquet_variant.errors import JsonError
from parquet_variant.ingestion.formats import layout
from parquet_variant.ingestion.formats.csv_rows import MAX_LINE_BYTES
from parquet_variant.kernels.memory import KIND
from parquet_variant.kernels.tapes.tape import DROPPED, path_ids
from parquet_variant.types.path import VariantPath, Wildcard

_KEYS_SHOWN = 8
_SHOWN_BYTES = 40
# The rows of a document are held back up to this size, because a later key of the same name replaces them.
HELD_BYTES = 8 << 20


class WrappedSplitter(layout.Splitter):
    r"""Convert the blocks of documents to lines with one element of the arrays at a path each.

    `names`: the keys on the path to the array; empty if the document is the array.
    `is_sequence`: the text is a JSON text sequence (RFC 7464), in which a record separator precedes every document.

    >>> splitter = WrappedSplitter(["a", "items"])
    >>> splitter.feed(b'{"n": 2, "a": {"items": [{"x": 1}, [')
    b''
    >>> splitter.feed(b'2]]}}\n{"a": {"items": null}}'), splitter.finish()
    (b'{"x": 1}\n[2]\n', b'')
    """

    colons = True

    def __init__(self, names: Sequence[str], is_sequence: bool = False) -> None:
        super().__init__()
        self._names = list(names)
        self._is_sequence = is_sequence
        # The number of open containers on the path (the document, one object per name, the array), and the last key.
        self._matched = 0
        self._key: str | None = None
        # Whether the array was found in this document, and whether it, or null instead, was found in any.
        self._has_array = self._found = False
        self._keys_seen: dict[str, None] = {}
        # Whether the open container at each level has the key of the path, and whether the array has a comma.
        self._has_key = [False] * len(self._names)
        self._after_comma = False
        # The rows of the current document that were not returned, and its text without the rows.
        self._held: list[bytes] = []
        self._has_returned = False
        self._outside = bytearray()

    def feed(self, block: bytes) -> bytes:
        """Return the elements of the documents that this block completes, each followed by a newline.

        Elements of large documents are returned earlier. Raises `JsonError` for a value that is not an array, invalid
        JSON outside the array, and text outside documents; `remaining` then returns the elements before it.
        """
        lines: list[bytes] = []
        try:
            first, *records = block.split(layout.RECORD_SEPARATOR) if self._is_sequence else [block]
            self._feed(first, lines)
            for record in records:
                self._check_complete("a document")
                self._feed(record, lines)
        except JsonError:
            self._before_error = b"\n".join([*lines, b""])
            raise
        if sum(map(len, self._held)) > HELD_BYTES:
            self._return_rows(lines)
        return b"\n".join([*lines, b""])

    def _feed(self, block: bytes, lines: list[bytes]) -> None:
        data, marks, kinds = self.scan(self.scannable(block))
        data[marks[kinds == layout.LINE_END]] = layout.SPACE
        steps, of_rows = layout.DEPTH_STEP[kinds], len(self._names) + 1
        depths = self.depth + np.cumsum(steps) - steps
        near = np.flatnonzero((depths <= of_rows) & (kinds != layout.LINE_END))
        text, start = data.data, 0
        outside_start = len(data) if self._matched == of_rows else 0
        for position, kind, depth in zip(
            marks[near].tolist(), kinds[near].tolist(), depths[near].tolist(), strict=True
        ):
            if depth != self._matched and (kind != layout.CLOSING or depth != 1):
                continue
            piece = (bytes(self.text) + text[start:position]).strip(layout.WHITESPACE)
            in_rows, is_array = self._matched == of_rows, text[position] in b"[]"
            if not depth and (piece or kind in (layout.COMMA, layout.COLON)):
                raise JsonError(f"unexpected text between documents: {piece[:_SHOWN_BYTES]!r}", reason="trailing-text")
            if kind == layout.CLOSING and (not depth or (depth == self._matched and is_array != in_rows)):
                raise JsonError("a bracket is closed that was not opened: fix the file", reason="malformed")
            if in_rows and kind in (layout.CLOSING, layout.COMMA):
                if piece or kind == layout.COMMA or self._after_comma:
                    self._held.append(piece or b",")
                self._after_comma = kind == layout.COMMA
            elif in_rows:
                continue  # inside an element
            elif kind == layout.OPENING:
                level = self._matched
                if is_array != (level == len(self._names)) or (level and self._key != self._names[level - 1]):
                    continue  # not on the path
                self._matched += 1
                if is_array:
                    self._outside += text[outside_start : position + 1]
                    outside_start = len(data)
                    self._has_array, self._found, self._after_comma = True, True, False
                else:
                    self._has_key[level] = False
            elif kind == layout.COLON:
                self._read_key(piece)
            if kind == layout.CLOSING:
                outside_start = position if in_rows else outside_start
                self._matched, self._key = max(self._matched - 1, 0), None
                if depth == 1:
                    self._outside += text[outside_start : position + 1]
                    outside_start = position + 1
                    self._end_document(lines)
            elif kind == layout.COMMA:
                self._key = None
            self.text.clear()
            start = position + 1
        self._outside += text[outside_start:]
        if len(self._outside) > MAX_LINE_BYTES:
            raise JsonError(f"the text outside {self._path} has more than {MAX_LINE_BYTES >> 20} MiB: split the file")
        if len(marks):
            self.depth = int(depths[-1] + steps[-1])
        if self.depth <= self._matched or self._matched == of_rows:
            self.text += text[start:]
        else:
            self.text.clear()  # a value that contains no rows

    def _return_rows(self, lines: list[bytes]) -> None:
        lines += self._held
        self.elements += len(self._held)
        self._has_returned |= bool(self._held)
        self._held.clear()

    def _read_key(self, piece: bytes) -> None:
        """Read a key of a container on the path. If it replaces a key on the path, remove the rows of that key."""
        try:
            key = json.loads(piece)
        except ValueError:
            key = None
        if not isinstance(key, str):
            raise JsonError(f"a key in a document is not a string: {piece[:_SHOWN_BYTES]!r}", reason="malformed")
        self._key, level = key, self._matched - 1
        self._keys_seen.setdefault(key)
        if key != self._names[level]:
            return
        if self._has_key[level]:
            if self._has_returned:
                problem = f"a document contains the key {key!r} twice, after rows of the first were read: remove one"
                raise JsonError(problem, reason="duplicate-key")
            self._held.clear()
        self._has_key[level], self._has_array = True, False

    def _end_document(self, lines: list[bytes]) -> None:
        """Return the rows of a document. Raises `JsonError` if its text outside the rows is not JSON with an array."""
        from parquet_variant.kernels.shredding.json_batch import parse_text

        self._return_rows(lines)
        text, has_array = np.frombuffer(bytes(self._outside), np.uint8), self._has_array
        self._has_returned = self._has_array = False
        self._outside.clear()
        ends = np.array([0, len(text)])
        options = JsonOptions(on_lone_surrogate="replace", max_depth=1_000_000, max_size=MAX_LINE_BYTES)
        try:
            tape = parse_text(text, ends[:1], ends[1:], options=options).tape
        except JsonError as error:
            raise JsonError(
                f"a document is not JSON outside {self._path.shorthand}: {error.message}", reason=error.reason
            ) from None
        tags = tape.nodes[:, 0]
        for level in range(0 if has_array else len(self._names) + 1):
            number = tape.find_path(self._names[:level])
            nodes = np.flatnonzero((path_ids(tags) == number) & (tags & DROPPED == 0))
            kind = int(tags[nodes[-1]] & 0xFF) if number is not None and len(nodes) else None
            if kind is None or kind == KIND.NULL:  # no rows
                self._found |= kind is not None
                break
            if kind != (KIND.ARRAY if level == len(self._names) else KIND.OBJECT):
                kind_name = {KIND.ARRAY: "an array", KIND.OBJECT: "an object"}.get(kind, "a scalar")
                raise JsonError(
                    f"{self._path.shorthand} does not lead to an array in every document: found {kind_name} at "
                    f"{VariantPath(tuple(self._names[:level])).shorthand}; change root=, or leave the file out with "
                    "exclude=",
                    reason="not-an-array",
                )
        tape.release()

    def remaining(self) -> bytes:
        """Return the rows before an error, also those that were held back until the end of a document."""
        lines: list[bytes] = []
        self._return_rows(lines)
        return self._before_error + b"\n".join([*lines, b""])

    def finish(self) -> bytes:
        """Check the end of the text. Raises `JsonError` if a document is truncated, or none contains the array."""
        self._check_complete("the last document")
        if not self._found:
            keys = ", ".join(map(repr, list(self._keys_seen)[:_KEYS_SHOWN])) or "none"
            raise JsonError(
                f"no document contains an array at {self._path.shorthand}: change root=, or leave the file out with "
                f"exclude=; the keys in the documents are {keys}",
                reason="no-rows",
            )
        return b""

    def _check_complete(self, document: str) -> None:
        if self.depth or self.unfinished():
            raise JsonError(f"{document} is truncated, or followed by other text: fix the file", reason="truncated")

    @property
    def _path(self) -> VariantPath:
        return VariantPath(tuple(self._names))


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
