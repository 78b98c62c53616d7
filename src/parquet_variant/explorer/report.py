"""`ExploreReport`: everything that the page shows, as one JSON document.

Owns putting together what footers and a sample say of each path, and the document's form, which ``page/*.js`` reads.
Leaves both to `footers` and `sample`, and drawing to the page.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from parquet_variant.errors import without_secrets
from parquet_variant.explorer.footers import Footers, Leaf
from parquet_variant.explorer.sample import PathSample, Sample
from parquet_variant.path import VariantPath

# Paths on the page: the heaviest ones; a page of 3 MB holds so many with their examples.
_PATHS = 12_000


@dataclass(slots=True)
class ExploreReport:
    """What is known of a table, or of JSON before it becomes one.

    Parameters
    ----------
    source
        The path, as it was given.
    kind
        ``"parquet"``, ``"delta"``, ``"vortex"`` or ``"json"``.
    column
        The Variant column; ``"v"`` for JSON.
    rows, bytes
        Of the whole table; an estimate for JSON.
    footers
        What footers say; None where there are none.
    sample
        What the sample says.
    versions
        Of a Delta table, newest first: version, time, operation, figures.
    before
        Another report to compare with.
    """

    source: str
    kind: str
    column: str
    rows: int
    bytes: int
    footers: Footers | None
    sample: Sample
    versions: list[dict[str, Any]] = field(default_factory=list)
    types: dict[VariantPath, str] = field(default_factory=dict)
    before: ExploreReport | None = None

    def to_dict(self) -> dict[str, Any]:
        """The document: tables by column, so that it compresses well."""
        paths = _ordered(self._paths())
        document: dict[str, Any] = {
            "source": without_secrets(self.source),
            "kind": self.kind,
            "column": self.column,
            "rows": self.rows,
            "bytes": self.bytes,
            "sample": {
                "rows": self.sample.rows, "text": self.sample.text_bytes, "ddl": self.sample.ddl,
                "unshredded": self.sample.unshredded_bytes, "shredded": self.sample.shredded_bytes,
                "ratio": self.sample.residual_ratio,
            },
            "paths": self._path_table(paths),
            "versions": self.versions,
        }  # fmt: skip
        if self.footers is not None:
            document["footers"] = _footer_table(self.footers, paths)
        if self.before is not None:
            document["before"] = self.before.to_dict() | {"before": None}
        return document

    def _paths(self) -> list[VariantPath]:
        """Every path that is typed or was seen; of too many, those with most bytes, and what is above them."""
        sizes: dict[VariantPath, int] = {VariantPath(): 0}
        for path, known in self.sample.paths.items():
            sizes[path] = known.bytes
        shapes = self.footers.shapes if self.footers is not None else []
        for path in [path for shape in shapes for path in shape.kinds] + list(self.types):
            sizes.setdefault(path, 0)
        if len(sizes) <= _PATHS:
            return list(sizes)
        typed = {path for shape in shapes for path in shape.kinds}
        kept: dict[VariantPath, None] = {}
        for path in sorted(sizes, key=lambda path: (path not in typed, -sizes[path])):
            if len(kept) >= _PATHS:
                break
            kept |= dict.fromkeys(VariantPath(path.segments[:size]) for size in range(len(path) + 1))
        return list(kept)

    def _path_table(self, paths: list[VariantPath]) -> dict[str, list[Any]]:
        number = {path: at for at, path in enumerate(paths)}
        kinds: dict[VariantPath, str] = dict(self.types)
        for shape in reversed(self.footers.shapes if self.footers is not None else []):
            kinds |= shape.kinds
        scale = self.rows / self.sample.rows if self.sample.rows else 0.0
        rows: list[dict[str, Any]] = []
        for path in paths:
            known = self.sample.paths.get(path) or _NOTHING
            row = {
                "parent": number[path.parent] if path.segments else -1,
                # JSON has no other null than this: it stands for the elements of an array.
                "key": (path.segments[-1] if isinstance(path.segments[-1], str) else None) if path.segments else "$",
                "kind": kinds.get(path),
                "column": known.column,
                "share": round(known.row_share, 5),
                "count": round(known.count * scale),
                "kinds": {kind: round(count * scale) for kind, count in known.kinds.items()},
                "distinct": known.distinct,
                "lower": known.lower,
                "upper": known.upper,
                "encoded": round(known.bytes * scale),
                "typed": None if known.typed_bytes is None else round(known.typed_bytes * scale),
                "reason": known.reason,
                "chosen": int(known.chosen),
                "examples": known.examples,
            }
            rows.append(row)
        return {name: [row[name] for row in rows] for name in rows[0]}  # there is always the root


_NOTHING = PathSample(0, 0.0, {}, None, 0, None, None, 0)


def _ordered(paths: list[VariantPath]) -> list[VariantPath]:
    """Parents before children, the keys of an object in their order."""
    return sorted(paths, key=lambda path: tuple((not isinstance(each, str), str(each)) for each in path.segments))


def _footer_table(footers: Footers, paths: list[VariantPath]) -> dict[str, Any]:
    at = {path: number for number, path in enumerate(paths)}
    return {
        "files": [{"name": name, "bytes": size, "shape": shape} for name, size, shape in footers.files],
        "groups": {"file": [file for file, _ in footers.groups], "rows": [rows for _, rows in footers.groups]},
        "shapes": [
            {
                "layout": shape.layout,
                "typed": {at[path]: leaf for path, leaf in shape.typed.items() if path in at},
                "residual": {at[path]: leaf for path, leaf in shape.residual.items() if path in at},
                "groups": [at[path] for path in shape.kinds if path in at],
                "metadata": shape.metadata,
            }
            for shape in footers.shapes
        ],
        "leaves": [_leaf(leaf) for leaf in footers.leaves],
        "otherColumns": footers.other_columns,
        "otherBytes": footers.other_bytes,
        "createdBy": footers.created_by,
        "skippedFiles": footers.skipped_files,
        "skippedBytes": footers.skipped_bytes,
    }


def _leaf(leaf: Leaf) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": leaf.name, "bytes": leaf.by_group, "plain": leaf.plain, "states": "".join(map(str, leaf.states)),
        "values": leaf.values, "nulls": leaf.nulls,
    }  # fmt: skip
    if leaf.name.rpartition(".")[2] not in ("value", "metadata") and any(each is not None for each in leaf.lower):
        document |= {"lower": leaf.lower, "upper": leaf.upper}
    return document
