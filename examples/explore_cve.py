"""Explore CVE records before writing a table: print their most frequent paths and write a page.

Run: python examples/explore_cve.py cve_v5.ndjson.zst cve.html
"""

from __future__ import annotations

import sys

import parquet_variant as pv


def main(source: str, page: str) -> None:
    """Print the most frequent paths that a schema would type, and write the page."""
    report = pv.open(source).explore()
    paths = report.to_dict()["paths"]
    order = sorted(range(len(paths["key"])), key=lambda index: -paths["encoded"][index])
    for index in [index for index in order if paths["chosen"][index] and paths["distinct"][index]][:10]:
        print(f"{paths['key'][index] or '[*]'}: {paths['column'][index]}, in {paths['share'][index]:.0%} of the rows")
    print(f"all paths are in {report.save(page)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
