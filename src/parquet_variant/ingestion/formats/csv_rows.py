"""Conversion of CSV to JSON lines: a row becomes an object with numbers, booleans, nulls and strings.

This module finds the end of each row and chooses the JSON type of each field. ``pyarrow.csv`` parses fields and quotes.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyarrow import csv

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.errors import JsonError, VariantFileError
from parquet_variant.ingestion.formats.layout import MAX_LINE_BYTES, CsvOptions
from parquet_variant.support import arrow_compute as pc

# Numbers as JSON writes them. A field with a leading zero, such as a postal code, remains a string, because the zero
# would be lost.
_NUMBER = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
_BOOLEAN = r"^(?i:true|false)$"
# Characters that JSON strings must escape.
_TO_ESCAPE = r'["\\\x00-\x1f]'
# An invalid JSON line that stands for a row that could not be converted.
_REFUSED = "\x01"


@dataclass(frozen=True, slots=True)
class RowText:
    """Rows as JSON lines.

    Parameters
    ----------
    data
        The lines.
    refused
        Rows that could not be converted: index of the line in ``data`` -> the original text and the error.
    """

    data: bytes
    refused: dict[int, tuple[bytes, JsonError]] = field(default_factory=dict)


class CsvRows:
    r"""Convert the blocks of a CSV file to JSON lines.

    >>> rows = CsvRows(CsvOptions(delimiter=";"))
    >>> [text.data for text in rows.read(iter([b'id;name\n1;"a;', b'b"\n2;\n']))]
    [b'{"id":1,"name":"a;b"}\n{"id":2,"name":null}\n']
    """

    def __init__(self, options: CsvOptions) -> None:
        self._options = options
        self._names: list[str] | None = None
        quote, delimiter = (re.escape(character).encode() for character in (options.quote_char, options.delimiter))
        # As in pyarrow, a quote has a meaning only at the start of a field. The two groups match if the text ends
        # inside quotes, or inside a row.
        field = b"(?:Q(?:[^Q]++|QQ)*+(?:Q|(\\Z)))?+[^D\r\n]*+".replace(b"Q", quote).replace(b"D", delimiter)
        self._row = re.compile(b"(?:%b%b)*+%b(?:\r\n?|\n|(\\Z))" % (field, delimiter, field))

    def read(self, blocks: Iterator[bytes]) -> Iterator[RowText]:
        """Yield the rows that each block completes; a last row with an unclosed quote is refused.

        Raises `JsonError` for an invalid header, and `VariantFileError` for a row over 256 MiB.
        """
        partial_row, unread = b"", bytearray()
        for block in blocks:
            unread += block
            if len(unread) < len(partial_row):
                continue  # so that a long row is not scanned again for every block
            rows, partial_row = self._complete_rows(partial_row + unread)
            unread.clear()
            if len(partial_row) > MAX_LINE_BYTES:
                raise VariantFileError(
                    f"a row is larger than {MAX_LINE_BYTES >> 20} MiB: check for a quote that is not closed",
                    reason="line-too-long",
                )
            yield from self._converted(rows)
        rows, partial_row = self._complete_rows(partial_row + unread)
        yield from self._converted(rows)
        last = self._row.match(partial_row)
        if last is None or (last[1] is None and last[2] is None):
            yield from self._converted(partial_row)
            return
        error = JsonError("the last row has a quote that is not closed", reason="truncated")
        if self._names is None:
            raise error
        yield RowText(_REFUSED.encode() + b"\n", {0: (partial_row, error)})

    def _complete_rows(self, text: bytes) -> tuple[bytes, bytes]:
        """Return the rows that end in a text, and the start of the next row."""
        end = max((row.end() for row in self._row.finditer(text) if row.lastindex is None), default=0)
        return text[:end], text[end:]

    def _converted(self, text: bytes) -> Iterator[RowText]:
        if self._names is None:
            text = text.lstrip(b"\r\n")
            if not text:
                return
            text = self._read_header(text)
        if text.strip(b"\r\n"):
            yield self._to_json(text)

    def _read_header(self, text: bytes) -> bytes:
        """Read the names of the columns, and return the text after the header."""
        header = self._row.match(text)
        assert header is not None
        # Generated names, so that pyarrow parses the header as a row. It does not read a row without a line end.
        first_row = self._table(header[0].rstrip(b"\r\n") + b"\n", None, [])
        if not self._options.header:
            self._names = [f"_c{index}" for index in range(first_row.num_columns)]
            return text
        values = [column[0].as_py() for column in first_row.columns]
        self._names = ["" if value is None else value for value in values]
        if len(set(self._names)) < len(self._names):
            duplicate = next(name for name in self._names if self._names.count(name) > 1)
            raise JsonError(
                f"the header contains the column {duplicate!r} twice: rename one of the two, or read the file with "
                "header=False"
            )
        return text[header.end() :]

    def _to_json(self, text: bytes) -> RowText:
        assert self._names is not None
        invalid: list[csv.InvalidRow] = []
        rows: list[str | tuple[bytes, JsonError]] = []
        text, not_utf8 = self._without_invalid_utf8(text)
        if text:
            table = self._table(text, self._names, invalid)
            parts: list[Any] = []
            for name, column in zip(self._names, table.columns, strict=True):
                key = json.dumps(name, ensure_ascii=False)
                parts += [("," if parts else "{") + key + ":", _json_fields(column)]
            rows = pc.binary_join_element_wise(*parts, "}", "").to_pylist() if table.num_rows else []
        for row in sorted(invalid, key=lambda row: row.number):
            # Row numbers start at 1 and include the invalid rows.
            message = f"the row has {row.actual_columns} fields, and the header has {row.expected_columns}"
            rows.insert(row.number - 1, (row.text.encode(), JsonError(message, reason="field-count")))
        for index, original in not_utf8.items():
            rows.insert(index, (original, JsonError("the row is not UTF-8", reason="bad-utf8")))
        refused = {index: row for index, row in enumerate(rows) if isinstance(row, tuple)}
        lines = [_REFUSED if isinstance(row, tuple) else row for row in rows]
        return RowText("\n".join([*lines, ""]).encode(), refused)

    def _without_invalid_utf8(self, text: bytes) -> tuple[bytes, dict[int, bytes]]:
        """Return the rows that are UTF-8, and the other rows by their index."""
        try:
            text.decode()
        except UnicodeDecodeError:
            rows = [row[0] for row in self._row.finditer(text) if row[0].strip(b"\r\n")]
            invalid = {index: row for index, row in enumerate(rows) if row.decode(errors="replace").encode() != row}
            return b"".join(row for index, row in enumerate(rows) if index not in invalid), invalid
        return text, {}

    def _table(self, text: bytes, names: list[str] | None, invalid: list[csv.InvalidRow]) -> pa.Table:
        """Parse rows as columns of strings; invalid rows are skipped and appended to `invalid`."""

        def skip(row: csv.InvalidRow) -> str:
            invalid.append(row)
            return "skip"

        options = self._options
        read = {"use_threads": False, "block_size": max(len(text) + 1, 1 << 10)}
        parse = csv.ParseOptions(
            delimiter=options.delimiter,
            quote_char=options.quote_char,
            newlines_in_values=True,
            invalid_row_handler=skip,
        )
        try:
            if names is None:
                table = csv.read_csv(
                    io.BytesIO(text), csv.ReadOptions(autogenerate_column_names=True, **read), parse_options=parse
                )
                names, invalid[:] = table.column_names, []
            return csv.read_csv(
                io.BytesIO(text),
                csv.ReadOptions(column_names=names, **read),
                parse_options=parse,
                convert_options=csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                    null_values=list(options.null_values),
                ),
            )
        except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
            raise JsonError(f"invalid CSV: {error}", reason="malformed") from None


def _json_fields(column: pa.ChunkedArray) -> pa.Array:
    """Return the fields of a column as JSON text, with ``null`` for nulls."""
    text = one_chunk(column)
    unquoted = pc.or_(pc.match_substring_regex(text, _NUMBER), pc.match_substring_regex(text, _BOOLEAN))
    must_escape = pc.match_substring_regex(text, _TO_ESCAPE)
    if pc.any(must_escape).as_py():
        escaped = [json.dumps(value, ensure_ascii=False)[1:-1] for value in text.filter(must_escape).to_pylist()]
        text = pc.replace_with_mask(text, pc.fill_null(must_escape, False), pa.array(escaped, pa.string()))
    quoted = pc.binary_join_element_wise('"', text, '"', "")
    return pc.fill_null(pc.if_else(unquoted, pc.utf8_lower(text), quoted), "null")
