"""The page of the explorer: one HTML document with style, scripts and data inside.

Owns assembling the parts so that data is never interpreted as markup. Leaves the figures to `explorer.report`.
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
    """Return one self-contained HTML document.

    The data is compressed and encoded as base64, so that no string in it can end a script or begin a tag.

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
    """Return the page in a frame, for notebooks."""
    inner = html.escape(page(document), quote=True)
    return f'<iframe srcdoc="{inner}" style="width:100%;height:760px;border:0" sandbox="allow-scripts"></iframe>'
