"""Conversion of XML to JSON lines: an element becomes an object, as with Spark's ``singleVariantColumn``.

Attributes and children become fields, repeated names become arrays, and text becomes a number, a boolean or a string.
``xml.etree`` parses the XML; it does not resolve external entities.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

from parquet_variant.errors import JsonError
from parquet_variant.ingestion.formats.csv_rows import RowText
from parquet_variant.ingestion.formats.layout import XmlOptions

_UNQUOTED = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false")
_ROWS_PER_TEXT = 1000
_MAX_DEPTH = 200


def xml_rows(blocks: Iterator[bytes], options: XmlOptions) -> Iterator[RowText]:
    r"""Yield the rows of an XML document, up to a thousand at a time.

    `blocks`: the document, in the encoding that its declaration names.
    `options`: the names of rows, attributes and values.
    Raises `JsonError` for invalid XML, or a document without any row element.

    >>> text = b'<all><a id="1"><n>2.50</n><n>x</n></a></all>'
    >>> [rows.data for rows in xml_rows(iter([text]), XmlOptions(row_tag="a"))]
    [b'{"_id":1,"n":[2.50,"x"]}\n']
    """
    parser: Any = ElementTree.XMLPullParser(["start", "end"])
    open_rows, depth, any_row = 0, 0, False
    lines: list[str] = []
    ancestors: list[ElementTree.Element] = []
    parse_error: JsonError | None = None
    try:
        for block in _blocks_and_end(blocks):
            if block is None:
                parser.close()
            else:
                parser.feed(block)
            for event, element in parser.read_events():
                is_row = _local_name(element.tag) == options.row_tag
                if event == "start":
                    ancestors.append(element)
                    depth += 1
                    open_rows += is_row
                    if depth > _MAX_DEPTH:
                        raise JsonError(f"elements are nested more than {_MAX_DEPTH} levels deep", reason="too-deep")
                    continue
                ancestors.pop()
                depth -= 1
                open_rows -= is_row
                if is_row and not open_rows:
                    any_row = True
                    lines.append(_to_json(element, options))
                if not open_rows and ancestors:
                    ancestors[-1].remove(element)  # frees the memory of elements that were read
            if len(lines) >= _ROWS_PER_TEXT:
                yield RowText("".join(f"{line}\n" for line in lines).encode())
                lines = []
    except ElementTree.ParseError as error:
        parse_error = JsonError(f"invalid XML: {error}", reason="malformed")
    except JsonError as error:
        parse_error = error
    if lines:
        yield RowText("".join(f"{line}\n" for line in lines).encode())
    if parse_error is not None:
        raise parse_error
    if not any_row:
        raise JsonError(f"the document has no element {options.row_tag!r}: change row_tag=", reason="no-rows")


def _blocks_and_end(blocks: Iterator[bytes]) -> Iterator[bytes | None]:
    """Yield the blocks and then None."""
    yield from blocks
    yield None


def _local_name(tag: object) -> str:
    """Return the name of an element without its namespace."""
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _to_json(element: ElementTree.Element, options: XmlOptions) -> str:
    fields: dict[str, list[str]] = {}
    for name, value in element.attrib.items():
        fields.setdefault(options.attribute_prefix + _local_name(name), []).append(_scalar(value))
    texts = [element.text, *(child.tail for child in element)]
    for child in element:
        fields.setdefault(_local_name(child.tag), []).append(_to_json(child, options))
    scalars = [_scalar(text) for text in texts if text and text.strip()]
    if not fields:
        return scalars[0] if scalars else "null"
    if scalars:
        fields.setdefault(options.value_tag, []).extend(scalars)
    pairs = (
        f"{json.dumps(name, ensure_ascii=False)}:{values[0] if len(values) == 1 else '[' + ','.join(values) + ']'}"
        for name, values in fields.items()
    )
    return "{" + ",".join(pairs) + "}"


def _scalar(text: str) -> str:
    text = text.strip()
    return text if _UNQUOTED.fullmatch(text) else json.dumps(text, ensure_ascii=False)
