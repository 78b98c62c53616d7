"""XML as JSON lines: an element is an object, as Spark's ``singleVariantColumn`` reads it.

Owns which JSON an element is: attributes and children are fields, names that come again arrays, text is a number, a
boolean or text. Leaves XML to ``xml.etree``, which resolves no external entities.
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

_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false")
_ROWS = 1000
_DEEPEST = 200


def xml_rows(blocks: Iterator[bytes], options: XmlOptions) -> Iterator[RowText]:
    r"""The rows of a document, some at a time.

    `blocks`: its text; the encoding is what the document says.
    `options`: how it is read.
    Raises `JsonError` for what is no XML, or has none of the elements that are rows.

    >>> text = b'<all><a id="1"><n>2.50</n><n>x</n></a></all>'
    >>> [rows.data for rows in xml_rows(iter([text]), XmlOptions(row_tag="a"))]
    [b'{"_id":1,"n":[2.50,"x"]}\n']
    """
    parser: Any = ElementTree.XMLPullParser(["start", "end"])
    open_rows, depth, any_row = 0, 0, False
    lines: list[str] = []
    above: list[ElementTree.Element] = []
    fault: JsonError | None = None
    try:
        for block in _with_end(blocks):
            if block is None:
                parser.close()
            else:
                parser.feed(block)
            for event, element in parser.read_events():
                is_row = _name(element.tag) == options.row_tag
                if event == "start":
                    above.append(element)
                    depth += 1
                    open_rows += is_row
                    if depth > _DEEPEST:
                        raise JsonError(f"elements are nested more than {_DEEPEST} deep", reason="too-deep")
                    continue
                above.pop()
                depth -= 1
                open_rows -= is_row
                if is_row and not open_rows:
                    any_row = True
                    lines.append(_json(element, options))
                if not open_rows and above:
                    above[-1].remove(element)  # what was read is let go
            if len(lines) >= _ROWS:
                yield RowText("".join(f"{line}\n" for line in lines).encode())
                lines = []
    except ElementTree.ParseError as error:
        fault = JsonError(f"this is no XML: {error}", reason="malformed")
    except JsonError as error:
        fault = error
    if lines:
        yield RowText("".join(f"{line}\n" for line in lines).encode())
    if fault is not None:
        raise fault
    if not any_row:
        raise JsonError(f"there is no element {options.row_tag!r}: change row_tag", reason="no-rows")


def _with_end(blocks: Iterator[bytes]) -> Iterator[bytes | None]:
    yield from blocks
    yield None


def _name(tag: object) -> str:
    """An element's name without its namespace."""
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _json(element: ElementTree.Element, options: XmlOptions) -> str:
    fields: dict[str, list[str]] = {}
    for name, value in element.attrib.items():
        fields.setdefault(options.attribute_prefix + _name(name), []).append(_scalar(value))
    texts = [element.text, *(child.tail for child in element)]
    for child in element:
        fields.setdefault(_name(child.tag), []).append(_json(child, options))
    written = [_scalar(text) for text in texts if text and text.strip()]
    if not fields:
        return written[0] if written else "null"
    if written:
        fields.setdefault(options.value_tag, []).extend(written)
    pairs = (
        f"{json.dumps(name, ensure_ascii=False)}:{values[0] if len(values) == 1 else '[' + ','.join(values) + ']'}"
        for name, values in fields.items()
    )
    return "{" + ",".join(pairs) + "}"


def _scalar(text: str) -> str:
    text = text.strip()
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)
