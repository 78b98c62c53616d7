"""The page of the explorer: one HTML document with style, scripts and data inside.

Owns assembling the parts so that data is never interpreted as markup. Leaves the figures to `quality.explorer.report`.
"""

from __future__ import annotations

import base64
import html
import json
import zlib
from importlib.resources import files
from string import Template
from typing import Any

_SCRIPTS = ("document.js", "model.js", "grid.js", "views.js", "live.js", "main.js")
_DIFF_SCRIPTS = ("document.js", "grid.js", "views.js", "diff.js")


def page(document: dict[str, Any]) -> str:
    """Return the report of a table, or the differences of two data sets, as one self-contained HTML document.

    >>> "<b>" in page({"source": "<b>"})
    False
    """
    parts, is_diff = files(__name__), "findings" in document
    title = f"{document['before']['name']} → {document['after']['name']}" if is_diff else document["source"]
    # The data is compressed and encoded as base64, so that no string in it can end a script or begin a tag.

    def text_of(name: str) -> str:
        return parts.joinpath(name).read_text("utf-8")

    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Template(text_of("frame.html")).substitute(
        title=html.escape(f"{title} – parquet-variant"),
        style=text_of("style.css"),
        body=text_of("diff.html" if is_diff else "index.html"),
        script="\n".join(map(text_of, _DIFF_SCRIPTS if is_diff else _SCRIPTS)),
        data=base64.b64encode(zlib.compress(text.encode("utf-8", "surrogatepass"))).decode(),
    )
