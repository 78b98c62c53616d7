"""CSV: its options, which are detected from the first rows, and its rows as columns of strings or as JSON lines.

`pyarrow.csv` parses the rows. This module divides blocks of text at the ends of rows, and refuses rows that `pyarrow`
would read as other rows: those with a quote that is not closed, or text in another encoding. `table_sources` gives
types to the columns, for SQL and for tables with a JSON column.
"""

from __future__ import annotations

import csv as csv_module
import io
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import field, replace
from typing import Any

import pyarrow as pa
from pyarrow import csv

from parquet_variant.arrays.parts import one_chunk
from parquet_variant.errors import JsonError, VariantFileError, bad_option, strings_of
from parquet_variant.support.lazy_names import arrow_compute as pc
from parquet_variant.support.records import Record

# The largest line, value or row.
MAX_LINE_BYTES = 256 << 20
_NAMES = re.compile(r"\.(csv|tsv)(\.\w+)?$", re.IGNORECASE)
# Numbers as JSON writes them. A field with a leading zero, such as a postal code, remains a string, because the zero
# would be lost, and so does one with more digits than a decimal.
_NUMBER = r"^-?(0|[1-9][0-9]{0,37})(\.[0-9]+)?([eE][+-]?[0-9]+)?$"
_BOOLEAN = r"^(?i:true|false)$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T].*)?$"
# Characters that JSON strings must escape.
_TO_ESCAPE = r'["\\\x00-\x1f]'
# An invalid JSON line that stands for a row that could not be converted.
_REFUSED = "\x01"
# The options are detected from this much text; the first delimiter is preferred.
_SNIFFED_BYTES = 64 << 10
_DELIMITERS = ",\t;|"
BOM = b"\xef\xbb\xbf"


def is_csv(path: Any) -> bool:
    """Return whether a path names a CSV or TSV file, perhaps compressed, by its extension."""
    return isinstance(path, (str, os.PathLike)) and _NAMES.search(os.fspath(path)) is not None


class CsvOptions(Record):
    r"""Options of CSV, with the names that ``pyarrow.csv`` uses.

    `delimiter`, `quote_char`: one ASCII character each. None: detected from the first rows; the delimiter of ``.tsv``
      files is a tab.
    `header`: the first row contains the names of the columns. Without a header, or a name, they are ``_c0``, ``_c1``,
      …, as in Spark. None: there is one unless the first row has the types of the other rows, and not all are strings.
    `null_values`: unquoted fields that mean null; by default only the empty field.
    `infer_types`: whether the columns next to a JSON column get the types of all their values; otherwise they are
      strings.
    `types`: these types, by column, once they are inferred.

    >>> CsvOptions().detected(b"id;price\n1;2,5\n", "a.csv").delimiter
    ';'
    >>> CsvOptions().detected(b"1,x\n2,y\n", "a.csv").header
    False
    """

    delimiter: str | None = None
    quote_char: str | None = None
    header: bool | None = None
    null_values: tuple[str, ...] = ("",)
    infer_types: bool = False
    types: tuple[tuple[str, pa.DataType], ...] = ()

    def __post_init__(self) -> None:
        for name in ("delimiter", "quote_char"):
            if (character := getattr(self, name)) is None:
                continue
            if not isinstance(character, str) or len(character.encode()) != 1 or character in "\r\n":
                raise bad_option(f"{name} is {character!r}: it must be one ASCII character")
        for name in ("header", "infer_types"):
            if not isinstance(value := getattr(self, name), bool) and not (name == "header" and value is None):
                raise bad_option(f"{name} is {value!r}: use True or False")
        object.__setattr__(self, "null_values", strings_of("null_values", self.null_values))

    def detected(self, head: bytes, name: str) -> CsvOptions:
        """Return the options, completed with the delimiter, quote and header of the first bytes of a text."""
        text = head[:_SNIFFED_BYTES]
        if len(head) > len(text):  # the last row may be incomplete
            text = text[: text.rfind(b"\n") + 1] or text
        sample = text.decode("utf-8", "replace")
        delimiter, quote = self.delimiter, self.quote_char
        if delimiter is None and (match := _NAMES.search(name)) and match[1].lower() == "tsv":
            delimiter = "\t"
        if quote is None:
            edge = re.escape(delimiter or _DELIMITERS)
            is_single = re.search(rf"(?m)(^|[{edge}])'[^'\n]*'([{edge}\r]|$)", sample)
            quote = "'" if is_single and not re.search(rf'(?m)(^|[{edge}])"', sample) else '"'
        if delimiter is None:
            # The delimiter by which most rows have equally many fields, and of these the one with most fields.
            scores = {}
            for name in _DELIMITERS.replace(quote, ""):
                rows = _sample_rows(sample, name, quote)
                fields, count = Counter(map(len, rows)).most_common(1)[0] if rows else (1, 0)
                scores[name] = (count / len(rows), fields) if fields > 1 else (0.0, 0)
            delimiter = max(scores, key=lambda name: scores[name])
        header = _has_header(_sample_rows(sample, delimiter, quote)) if self.header is None else self.header
        return replace(self, delimiter=delimiter, quote_char=quote, header=header)


def _sample_rows(sample: str, delimiter: str, quote: str) -> list[list[str]]:
    with suppress(csv_module.Error):
        return [row for row in csv_module.reader(io.StringIO(sample, ""), delimiter=delimiter, quotechar=quote) if row]
    return []


def _has_header(rows: list[list[str]]) -> bool:
    def type_of(value: str) -> str:
        names = {"number": _NUMBER, "boolean": _BOOLEAN, "date": _DATE}
        return next((name for name, form in names.items() if re.search(form, value)), "string" if value else "null")

    if not rows:
        return True
    first, *data_rows = ([type_of(value) for value in row] for row in rows)
    if not data_rows:
        return all(name == "string" for name in first)
    is_typed = False
    for index, name in enumerate(first):
        column = {row[index] for row in data_rows if index < len(row)} - {"null"}
        if len(column) == 1 and column != {"string"}:
            if name not in (*column, "null"):
                return True
            is_typed |= name != "null"
    return not is_typed


class CsvRows(Record):
    """Consecutive rows of a CSV file as columns of strings, and the text and error of refused rows by their number."""

    table: pa.Table
    refused: dict[int, tuple[bytes, JsonError]] = field(default_factory=dict)

    def __len__(self) -> int:
        return int(self.table.num_rows) + len(self.refused)

    def json_lines(self) -> bytes:
        r"""Return one JSON object per row: fields that are numbers or booleans without quotes, nulls as ``null``.

        >>> rows = CsvReader(CsvOptions(), "a.csv").read(iter([b'id;name\n1;"a;', b'b"\n2;\n']))
        >>> [part.json_lines() for part in rows]
        [b'{"id":1,"name":"a;b"}\n{"id":2,"name":null}\n']
        """
        parts: list[Any] = []
        for name, column in zip(self.table.column_names, self.table.columns, strict=True):
            text = one_chunk(column)
            unquoted = pc.or_(pc.match_substring_regex(text, _NUMBER), pc.match_substring_regex(text, _BOOLEAN))
            must_escape = pc.match_substring_regex(text, _TO_ESCAPE)
            if pc.any(must_escape).as_py():
                escaped = [
                    json.dumps(value, ensure_ascii=False)[1:-1] for value in text.filter(must_escape).to_pylist()
                ]
                text = pc.replace_with_mask(text, pc.fill_null(must_escape, False), pa.array(escaped, pa.string()))
            quoted = pc.binary_join_element_wise('"', text, '"', "")
            fields = pc.fill_null(pc.if_else(unquoted, pc.utf8_lower(text), quoted), "null")
            parts += [("," if parts else "{") + json.dumps(name, ensure_ascii=False) + ":", fields]
        lines = pc.binary_join_element_wise(*parts, "}", "").to_pylist() if self.table.num_rows else []
        for index in sorted(self.refused):
            lines.insert(index, _REFUSED)
        return "\n".join([*lines, ""]).encode()


class CsvReader:
    """Reads the rows of a CSV file from blocks of its text; the first block decides what the options leave open."""

    def __init__(self, options: CsvOptions, name: str) -> None:
        self.options, self._file = options, name
        self.names: list[str] = []

    def read(self, blocks: Iterator[bytes]) -> Iterator[CsvRows]:
        """Yield the rows that each block completes; a last row with an unclosed quote is refused."""
        first = bytearray(next(blocks, b""))
        options = self.options
        if None in (options.delimiter, options.quote_char, options.header):
            while len(first) < _SNIFFED_BYTES and (block := next(blocks, b"")):
                first += block
        self.options = options = options.detected(bytes(first), self._file)
        self._quote = str(options.quote_char).encode()
        quote, delimiter = re.escape(self._quote), re.escape(str(options.delimiter)).encode()
        # As in pyarrow, a quote has a meaning only at the start of a field. The groups of a field match if text follows
        # its closing quote, or if the text ends inside quotes; the last group matches if the text ends inside a row.
        quoted = b"Q(?:[^Q]++|QQ)*+(?:Q([^D\r\n]*[^D\r\n \t])?+(?:(?!D)[ \t])*+|(\\Z))"
        field = b"(?:%b|(?!Q)[^D\r\n]*+)" % quoted
        self._row = re.compile(
            (b"(?:%bD)*+%b(?:\r\n?|\n|(\\Z))" % (field, field)).replace(b"Q", quote).replace(b"D", delimiter)
        )
        partial_row, unread = b"", first
        for block in blocks:
            if len(unread) >= len(partial_row):  # so that a long row is not scanned again for every block
                rows, partial_row = self._complete_rows(partial_row + unread)
                unread.clear()
                if len(partial_row) > MAX_LINE_BYTES:
                    problem = f"a row is larger than {MAX_LINE_BYTES >> 20} MiB: check for a quote that is not closed"
                    raise VariantFileError(problem, reason="line-too-long")
                yield from self._rows_of(rows)
            unread += block
        rows, partial_row = self._complete_rows(partial_row + unread)
        yield from self._rows_of(rows)
        last = self._row.match(partial_row)
        if last is None or (last[2] is None and last[4] is None):
            yield from self._rows_of(partial_row)
            return
        error = JsonError("the row has a quote that is not closed", reason="truncated")
        if not self.names:
            raise error
        yield CsvRows(self.empty_table, {0: (partial_row, error)})

    @property
    def empty_table(self) -> pa.Table:
        """The columns without rows, once the header was read."""
        return pa.table([pa.array([], pa.string())] * len(self.names), self.names)

    def _complete_rows(self, text: bytes) -> tuple[bytes, bytes]:
        """Return the rows that end in a text, and the start of the next row."""
        end = 0 if self._quote in text else text.rfind(b"\n") + 1
        if not end:
            rows = self._row.finditer(text)
            end = max((row.end() for row in rows if row[2] is row[4] is row[5] is None), default=0)
        return text[:end], text[end:]

    def _rows_of(self, text: bytes) -> Iterator[CsvRows]:
        if not self.names and (text := text.lstrip(b"\r\n")):
            text = self._read_header(text)
        if not text.strip(b"\r\n"):
            return
        text, refused = self._without_refused(text)
        invalid: list[csv.InvalidRow] = []
        table = self._table(text, self.names, invalid)
        total = table.num_rows + len(invalid) + len(refused)
        positions = [position for position in range(total) if position not in refused] if invalid else []
        for row in invalid:
            message = f"the row has {row.actual_columns} fields, and the header has {row.expected_columns}"
            # Row numbers start at 1 and include the invalid rows.
            refused[positions[row.number - 1]] = row.text.encode(), JsonError(message, reason="field-count")
        yield CsvRows(table, refused)

    def _read_header(self, text: bytes) -> bytes:
        """Read the names of the columns, and return the text after the header."""
        header = self._row.match(text)
        assert header is not None
        # Generated names, so that pyarrow parses the header as a row. It does not read a row without a line end.
        first_row = self._table(header[0].rstrip(b"\r\n") + b"\n", None, [])
        if not self.options.header:
            self.names = [f"_c{index}" for index in range(first_row.num_columns)]
            return text
        values = [column[0].as_py() for column in first_row.columns]
        self.names = [value or f"_c{index}" for index, value in enumerate(values)]
        if len(set(self.names)) < len(self.names):
            duplicate = next(name for name in self.names if self.names.count(name) > 1)
            raise JsonError(
                f"the header contains the column {duplicate!r} twice: rename one of the two, or read the file with "
                "the parse option header=false"
            )
        return text[header.end() :]

    def _without_refused(self, text: bytes) -> tuple[bytes, dict[int, tuple[bytes, JsonError]]]:
        """Return the rows that are UTF-8 with valid quotes, and the other rows by their number."""
        try:
            text.decode()
            if self._quote not in text:
                return text, {}
        except UnicodeDecodeError:
            pass
        refused: dict[int, tuple[bytes, JsonError]] = {}
        valid = []
        for number, row in enumerate(row for row in self._row.finditer(text) if row[0].strip(b"\r\n")):
            if row[1] is not None or row[3] is not None:
                message = "text follows a closing quote: a quote is not closed or not doubled"
                refused[number] = row[0], JsonError(message, reason="malformed")
            elif row[0].decode(errors="replace").encode() != row[0]:
                refused[number] = row[0], JsonError("the row is not UTF-8: convert the file", reason="bad-utf8")
            else:
                valid.append(row[0])
        return (b"".join(valid), refused) if refused else (text, refused)

    def _table(self, text: bytes, names: list[str] | None, invalid: list[csv.InvalidRow]) -> pa.Table:
        """Parse rows as columns of strings; invalid rows are skipped and appended to `invalid`."""

        def skip(row: csv.InvalidRow) -> str:
            invalid.append(row)
            return "skip"

        read = {"use_threads": False, "block_size": max(len(BOM) + len(text) + 1, 1 << 10)}
        parse = csv.ParseOptions(
            delimiter=self.options.delimiter,
            quote_char=self.options.quote_char,
            newlines_in_values=True,
            invalid_row_handler=skip,
        )
        try:
            if names is None:
                generated = csv.ReadOptions(autogenerate_column_names=True, **read)
                names, invalid[:] = csv.read_csv(io.BytesIO(text), generated, parse).column_names, []
            elif not text.strip(b"\r\n"):
                return self.empty_table
            return csv.read_csv(
                io.BytesIO(BOM + text),  # pyarrow removes one byte order mark, which may be a value
                csv.ReadOptions(column_names=names, **read),
                parse_options=parse,
                convert_options=csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()),
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                    null_values=list(self.options.null_values),
                ),
            )
        except (pa.ArrowInvalid, pa.ArrowKeyError) as error:
            raise JsonError(f"invalid CSV: {error}", reason="malformed") from None
