"""`ExploreReport`: the contents of the page, as one JSON document.

Owns combining the figures of footers and of the sample by path, and the form of the document, which ``page/*.js``
reads. Leaves the figures to `footers` and `sample`, and drawing to the page.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from parquet_variant.errors import without_secrets
from parquet_variant.quality.explorer.footers import Footers, Leaf
from parquet_variant.quality.explorer.sample import PathSample, Sample
from parquet_variant.types.path import VariantPath, depth_first, outer_paths

# Largest number of paths on the page, with examples: about 3 MB.
_MAX_PATHS = 12_000


@dataclass(slots=True)
class ExploreReport:
    """Figures of a table, or of JSON before it is ingested."""

    source: str  # The path, as the user wrote it.
    kind: str  # ``"parquet"``, ``"delta"``, ``"iceberg"``, ``"vortex"`` or ``"json"``.
    column: str  # The Variant column; ``"v"`` for JSON.
    # Rows and bytes of the whole table; an estimate for JSON.
    rows: int
    bytes: int
    footers: Footers | None  # The figures of footers; None without Parquet files.
    sample: Sample  # The figures of the sample.
    # The versions of a table, newest first: version, time, operation, figures.
    versions: list[dict[str, Any]] = field(default_factory=list)
    types: dict[VariantPath, str] = field(default_factory=dict)
    before: ExploreReport | None = None  # Another report to compare with.
    table: Any = None  # The snapshot of an Iceberg table, over which SQL runs.
    catalog: str | None = None  # The name of the catalog of an Iceberg table, for commands; None without a catalog.

    def to_dict(self) -> dict[str, Any]:
        """Return the document, with tables by column so that it compresses well."""
        paths = sorted(self._paths(), key=depth_first)
        document: dict[str, Any] = {
            "source": without_secrets(self.source),
            "kind": self.kind,
            "column": self.column,
            "rows": self.rows,
            "bytes": self.bytes,
            "sample": {
                "rows": self.sample.rows, "text": self.sample.text_bytes, "ddl": self.sample.ddl,
                "unshredded": self.sample.unshredded_bytes, "shredded": self.sample.shredded_bytes,
                "ratio": self.sample.residual_ratio, "slow": self.sample.slow_paths,
            },
            "paths": self._path_table(paths),
            "versions": self.versions,
            "catalog": self.catalog,
        }  # fmt: skip
        if self.footers is not None:
            document["footers"] = _footer_table(self.footers, paths)
        if self.before is not None:
            document["before"] = self.before.to_dict() | {"before": None}
        return document

    def _paths(self) -> list[VariantPath]:
        """Return every path that is typed or in the sample; of too many, the largest and their parents."""
        sizes: dict[VariantPath, int] = {VariantPath(): 0}
        for path, of_sample in self.sample.paths.items():
            sizes[path] = of_sample.bytes
        shapes = self.footers.shapes if self.footers is not None else []
        for path in [path for shape in shapes for path in shape.kinds] + list(self.types):
            sizes.setdefault(path, 0)
        if len(sizes) <= _MAX_PATHS:
            return list(sizes)
        typed = {path for shape in shapes for path in shape.kinds}
        largest: dict[VariantPath, None] = {}
        for path in sorted(sizes, key=lambda path: (path not in typed, -sizes[path])):
            if len(largest) >= _MAX_PATHS:
                break
            largest |= dict.fromkeys([*outer_paths(path), path])
        return list(largest)

    def _path_table(self, paths: list[VariantPath]) -> dict[str, list[Any]]:
        number = {path.segments: at for at, path in enumerate(paths)}
        kinds: dict[VariantPath, str] = dict(self.types)
        for shape in reversed(self.footers.shapes if self.footers is not None else []):
            kinds |= shape.kinds
        scale = self.rows / self.sample.rows if self.sample.rows else 0.0
        samples = [self.sample.paths.get(path) or _NOT_SAMPLED for path in paths]
        return {
            "parent": [number[path.segments[:-1]] if path.segments else -1 for path in paths],
            # null stands for the elements of an array: no key of JSON is null.
            "key": [_key(path) for path in paths],
            "kind": [kinds.get(path) for path in paths],
            "column": [sample.column for sample in samples],
            "share": [round(sample.row_share, 5) for sample in samples],
            "count": [round(sample.count * scale) for sample in samples],
            "kinds": [{kind: round(count * scale) for kind, count in sample.kinds.items()} for sample in samples],
            "distinct": [sample.distinct for sample in samples],
            "lower": [sample.int_range[0] for sample in samples],
            "upper": [sample.int_range[1] for sample in samples],
            "encoded": [round(sample.bytes * scale) for sample in samples],
            "typed": [None if sample.typed_bytes is None else round(sample.typed_bytes * scale) for sample in samples],
            "reason": [sample.reason for sample in samples],
            "chosen": [int(sample.is_typed) for sample in samples],
            "examples": [sample.examples for sample in samples],
        }


def _key(path: VariantPath) -> str | None:
    if not path.segments:
        return "$"
    return path.segments[-1] if isinstance(path.segments[-1], str) else None


_NOT_SAMPLED = PathSample(0, 0.0, {}, None, 0, (None, None), 0)


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
        "slow": footers.slow_paths,
    }


def _leaf(leaf: Leaf) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": leaf.name, "bytes": leaf.by_group, "plain": leaf.plain, "states": "".join(map(str, leaf.states)),
        "values": leaf.values, "nulls": leaf.nulls,
    }  # fmt: skip
    if leaf.name.rpartition(".")[2] not in ("value", "metadata") and any(bound is not None for bound in leaf.lower):
        document |= {"lower": leaf.lower, "upper": leaf.upper}
    return document
