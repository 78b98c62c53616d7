"""The page of the explorer: one HTML document with its style, its scripts and its data inside.

Owns how the parts become one text in which nothing of the data is ever markup. Leaves the figures to `explorer.report`.
"""

from __future__ import annotations

import base64
import html
import json
import zlib
from importlib.resources import files
from string import Template
from typing import Any

_SCRIPTS = ("model.js", "grid.js", "views.js", "live.js", "main.js")


def page(document: dict[str, Any]) -> str:
    """One HTML document that needs nothing else: no network, no other file.

    The document is compressed and in base64, so that no text in data can end a script or begin a tag.

    >>> "<b>" in page({"source": "<b>"})
    False
    """
    parts = files(__name__)
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return Template(parts.joinpath("index.html").read_text("utf-8")).substitute(
        title=html.escape(f"{document['source']} – parquet-variant"),
        style=parts.joinpath("style.css").read_text("utf-8"),
        script="\n".join(parts.joinpath(name).read_text("utf-8") for name in _SCRIPTS),
        data=base64.b64encode(zlib.compress(text.encode("utf-8", "surrogatepass"), 9)).decode(),
    )


def page_frame(document: dict[str, Any]) -> str:
    """The page in a frame, for notebooks."""
    inner = html.escape(page(document), quote=True)
    return f'<iframe srcdoc="{inner}" style="width:100%;height:760px;border:0" sandbox="allow-scripts"></iframe>'
