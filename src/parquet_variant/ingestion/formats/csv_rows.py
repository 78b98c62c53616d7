"""CSV as JSON lines: a row is an object, its fields what they are written as: numbers, true and false, null, text.

Owns where a row ends and which JSON a field is. Leaves fields and quotes to ``pyarrow.csv``.
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

from parquet_variant import arrow_compute as pc
from parquet_variant.array.parts import one_chunk
from parquet_variant.errors import JsonError, VariantFileError
from parquet_variant.ingestion.formats.layout import CsvOptions
from parquet_variant.ingestion.splits import MAX_LINE_BYTES

# As JSON writes numbers: what begins with a zero, such as a postal code, is text, or it would not come back.
_NUMBER = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
_BOOLEAN = r"^(?i:true|false)$"
# What JSON does not have in strings as it is.
_TO_ESCAPE = r'["\\\x00-\x1f]'
# A line that no parser takes, in the place of a row that is refused.
_REFUSED = "\x01"


@dataclass(frozen=True, slots=True)
class RowText:
    """Rows as JSON lines; for each row that is none, its line, its own text and why."""

    data: bytes  # The lines.
    refused: dict[int, tuple[bytes, JsonError]] = field(default_factory=dict)  # By the number of the line in ``data``.


class CsvRows:
    r"""Turn the blocks of a CSV file into JSON lines.

    >>> rows = CsvRows(CsvOptions(delimiter=";"))
    >>> [text.data for text in rows.read(iter([b'id;name\n1;"a;', b'b"\n2;\n']))]
    [b'{"id":1,"name":"a;b"}\n{"id":2,"name":null}\n']
    """

    def __init__(self, options: CsvOptions) -> None:
        self._options = options
        self._names: list[str] | None = None
        quote, delimiter = (re.escape(each).encode() for each in (options.quote_char, options.delimiter))
        # A quote counts at the beginning of a field only, as in pyarrow. Groups: the text ends in quotes, or in a row.
        field = b"(?:Q(?:[^Q]++|QQ)*+(?:Q|(\\Z)))?+[^D\r\n]*+".replace(b"Q", quote).replace(b"D", delimiter)
        self._row = re.compile(b"(?:%b%b)*+%b(?:\r\n?|\n|(\\Z))" % (field, delimiter, field))

    def read(self, blocks: Iterator[bytes]) -> Iterator[RowText]:
        """The rows that each block completes; one with a quote that is not closed is refused.

        Raises `JsonError` for a header that cannot be; `VariantFileError` for a row over 256 MiB.
        """
        begun, fresh = b"", bytearray()
        for block in blocks:
            fresh += block
            if len(fresh) < len(begun):
                continue  # a long row is not looked through again for every block
            whole, begun = self._cut(begun + fresh)
            fresh.clear()
            if len(begun) > MAX_LINE_BYTES:
                raise VariantFileError(
                    f"a row is over {MAX_LINE_BYTES >> 20} MiB: is a quote not closed?", reason="line-too-long"
                )
            yield from self._rows(whole)
        whole, begun = self._cut(begun + fresh)
        yield from self._rows(whole)
        last = self._row.match(begun)
        if last is None or (last[1] is None and last[2] is None):
            yield from self._rows(begun)
            return
        error = JsonError("the last row has a quote that is not closed", reason="truncated")
        if self._names is None:
            raise error
        yield RowText(_REFUSED.encode() + b"\n", {0: (begun, error)})

    def _cut(self, text: bytes) -> tuple[bytes, bytes]:
        """The rows that end in a text, and the one that is begun."""
        end = max((row.end() for row in self._row.finditer(text) if row.lastindex is None), default=0)
        return text[:end], text[end:]

    def _rows(self, text: bytes) -> Iterator[RowText]:
        if self._names is None:
            text = text.lstrip(b"\r\n")
            if not text:
                return
            text = self._read_header(text)
        if text.strip(b"\r\n"):
            yield self._as_json(text)

    def _read_header(self, text: bytes) -> bytes:
        """Take the names of the columns, and give the text without them."""
        header = self._row.match(text)
        assert header is not None
        # With names of its own, so that the header is a row like others; pyarrow reads no line without its end.
        first = self._table(header[0].rstrip(b"\r\n") + b"\n", None, [])
        if not self._options.header:
            self._names = [f"_c{at}" for at in range(first.num_columns)]
            return text
        self._names = ["" if value.as_py() is None else value.as_py() for value in (each[0] for each in first.columns)]
        if len(set(self._names)) < len(self._names):
            twice = next(name for name in self._names if self._names.count(name) > 1)
            raise JsonError(f"the header names {twice!r} twice: rename one, or read it with header=False")
        return text[header.end() :]

    def _as_json(self, text: bytes) -> RowText:
        assert self._names is not None
        bad: list[csv.InvalidRow] = []
        rows: list[str | tuple[bytes, JsonError]] = []
        text, not_utf8 = self._without_bad_text(text)
        if text:
            table = self._table(text, self._names, bad)
            parts: list[Any] = []
            for name, column in zip(self._names, table.columns, strict=True):
                parts += [("," if parts else "{") + json.dumps(name, ensure_ascii=False) + ":", _as_json(column)]
            rows = pc.binary_join_element_wise(*parts, "}", "").to_pylist() if table.num_rows else []
        for row in sorted(bad, key=lambda each: each.number):
            # Numbers count from 1, and the rows that are refused too.
            words = f"{row.actual_columns} fields where the header has {row.expected_columns}"
            rows.insert(row.number - 1, (row.text.encode(), JsonError(words, reason="field-count")))
        for at, own in not_utf8.items():
            rows.insert(at, (own, JsonError("the row is not UTF-8", reason="bad-utf8")))
        refused = {at: row for at, row in enumerate(rows) if isinstance(row, tuple)}
        texts = [_REFUSED if isinstance(row, tuple) else row for row in rows]
        return RowText("\n".join([*texts, ""]).encode(), refused)

    def _without_bad_text(self, text: bytes) -> tuple[bytes, dict[int, bytes]]:
        """The rows that are UTF-8, and the others by their number."""
        try:
            text.decode()
        except UnicodeDecodeError:
            rows = [row[0] for row in self._row.finditer(text) if row[0].strip(b"\r\n")]
            bad = {at: row for at, row in enumerate(rows) if row.decode(errors="replace").encode() != row}
            return b"".join(row for at, row in enumerate(rows) if at not in bad), bad
        return text, {}

    def _table(self, text: bytes, names: list[str] | None, bad: list[csv.InvalidRow]) -> pa.Table:
        def refuse(row: csv.InvalidRow) -> str:
            bad.append(row)
            return "skip"

        options = self._options
        read = {"use_threads": False, "block_size": max(len(text) + 1, 1 << 10)}
        parse = csv.ParseOptions(
            delimiter=options.delimiter,
            quote_char=options.quote_char,
            newlines_in_values=True,
            invalid_row_handler=refuse,
        )
        try:
            if names is None:
                table = csv.read_csv(
                    io.BytesIO(text), csv.ReadOptions(autogenerate_column_names=True, **read), parse_options=parse
                )
                names, bad[:] = table.column_names, []
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
            raise JsonError(f"this is no CSV: {error}", reason="malformed") from None


def _as_json(column: pa.ChunkedArray) -> pa.Array:
    """The fields of a column as JSON text, without nulls."""
    text = one_chunk(column)
    plain = pc.or_(pc.match_substring_regex(text, _NUMBER), pc.match_substring_regex(text, _BOOLEAN))
    awkward = pc.match_substring_regex(text, _TO_ESCAPE)
    if pc.any(awkward).as_py():
        escaped = [json.dumps(each, ensure_ascii=False)[1:-1] for each in text.filter(awkward).to_pylist()]
        text = pc.replace_with_mask(text, pc.fill_null(awkward, False), pa.array(escaped, pa.string()))
    quoted = pc.binary_join_element_wise('"', text, '"', "")
    return pc.fill_null(pc.if_else(plain, pc.utf8_lower(text), quoted), "null")
