"""CVE records explored before anything is written: what is in them, what a schema would type, as a page.

Run: python examples/explore_cve.py cve_v5.ndjson.zst cve.html
"""

from __future__ import annotations

import sys

import parquet_variant as pv


def main(source: str, page: str) -> None:
    """Print the paths that most rows have, and write the page."""
    found = pv.explore(source)
    paths = found.to_dict()["paths"]
    order = sorted(range(len(paths["key"])), key=lambda at: -paths["encoded"][at])
    for at in [at for at in order if paths["chosen"][at] and paths["distinct"][at]][:10]:
        print(f"{paths['key'][at] or '[*]'}: {paths['column'][at]}, in {paths['share'][at]:.0%} of the rows")
    print(f"the rest is in {found.save(page)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
