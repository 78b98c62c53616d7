"""`TilesPolicy`: paths that are frequent in ranges of rows (tiles).

Owns the tiles, the itemsets and their report. `columns` chooses types.

Source: D. Durner, V. Leis, T. Neumann, "JSON Tiles: Fast Analytics on Semi-Structured Data" (SIGMOD 2021): rows are
divided into tiles; in each tile, the paths that occur with their types together in at least 60 % of the rows are
materialized. The paper also moves rows between tiles; here the order of rows is the user's. A Parquet file has one
schema, so the schema of the file is the union of the choices of its tiles, and `tiles` reports which tile (or row
group) chose which paths.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import reduce
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from parquet_variant.arrays.tapes import array_tapes
from parquet_variant.inference.columns import ColumnType, best_column, typed_leaves
from parquet_variant.inference.path_profile import PathProfile
from parquet_variant.inference.path_table import TapePaths
from parquet_variant.inference.policies.decision import InferenceResult, check_constants, result_of, schema_of_leaves
from parquet_variant.inference.profile import Profile
from parquet_variant.kernels.tapes.tape import Tape, path_ids
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.types.path import VariantPath

if TYPE_CHECKING:
    from parquet_variant.arrays.variant_array import VariantArray

_ARRAY, _OBJECT = 21, 22
# Node kinds that count as one type, as in `columns`: booleans, and exact numbers.
_KIND_GROUPS = np.arange(_OBJECT + 1)
_KIND_GROUPS[2] = 1
_KIND_GROUPS[[4, 5, 6, 8, 9, 10]] = 3


@dataclass(frozen=True, slots=True)
class Itemset:
    """Paths that occur together, each with its most frequent type, in the order in which they were joined.

    `share`: share of the tile's rows that have all of them.
    """

    paths: tuple[VariantPath, ...]
    share: float


@dataclass(frozen=True, slots=True)
class Tile:
    """The schema for one range of rows alone, and its frequent itemsets, largest first. Each path is in one itemset."""

    first_row: int
    rows: int
    schema: ShreddingSchema
    itemsets: tuple[Itemset, ...]


@dataclass(frozen=True, slots=True)
class TilesResult(InferenceResult):
    """The result of `TilesPolicy`: an `InferenceResult` with its tiles."""

    tiles: tuple[Tile, ...] = ()


@dataclass(frozen=True, slots=True)
class TilesPolicy:
    """Shred paths that are frequent in a tile.

    A profile has no information about which paths occur together, so it is one tile, without itemsets.

    Parameters
    ----------
    tile_rows
        Rows of a tile. For the report by row group, the rows of a row group.
    min_share
        Minimum share of the rows of a tile that have a path with its type.
    max_columns
        Maximum number of leaves of the union; those chosen for most rows are kept.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> rows = pv.parse_json(['{"i": 1, "t": "push"}'] * 4 + ['{"i": 2, "geo": {"lat": 1.5}}'] * 4)
    >>> result = TilesPolicy(tile_rows=4).choose_rows(rows)
    >>> result.schema.to_ddl()
    'geo struct<lat: decimal(2,1)>, i bigint, t string'
    >>> [tile.schema.to_ddl() for tile in result.tiles]
    ['i bigint, t string', 'geo struct<lat: decimal(2,1)>, i bigint']
    """

    name: ClassVar[str] = "tiles"  # What `infer` takes.
    tile_rows: int = 4096
    min_share: float = 0.6
    max_columns: int = 300

    def __post_init__(self) -> None:
        check_constants(self)

    def choose(self, profile: Profile) -> TilesResult:
        """Return the schema for data with this profile, as one tile."""
        leaves = self._frequent_leaves(profile)
        return self._result(profile, [Tile(0, profile.rows, schema_of_leaves(leaves), ())], [leaves])

    def choose_rows(self, array: VariantArray) -> TilesResult:
        """Return the schema for the tiles of an array, and the choice of each tile."""
        profile, tiles, leaves_of_tiles = Profile(), [], []
        for start in range(0, len(array), self.tile_rows):
            part = array[start : start + self.tile_rows]
            tapes = list(array_tapes(part, start))
            tile_profile = reduce(Profile.merge, map(Profile.of_tape, tapes), Profile())
            leaves = self._frequent_leaves(tile_profile)
            itemsets = _itemsets(tapes, list(leaves), tile_profile, self.min_share)
            tiles.append(Tile(start, len(part), schema_of_leaves(leaves), itemsets))
            leaves_of_tiles.append(leaves)
            profile = profile.merge(tile_profile)
        return self._result(profile, tiles, leaves_of_tiles)

    def _frequent_leaves(self, profile: Profile) -> dict[VariantPath, ShreddingSchema]:
        """Return the leaves whose most frequent type is in enough of the rows."""
        min_rows = self.min_share * (profile.rows - profile.null_rows)

        def is_rare(path_profile: PathProfile, column: ColumnType | None) -> bool:
            # Inside arrays a row has several values, so rows are counted, times the share of values of the type.
            return column is None or path_profile.rows * column.typed / path_profile.count < min_rows

        return {path: leaf for path, _, leaf in typed_leaves(profile.root, is_rare)}

    def _result(
        self, profile: Profile, tiles: list[Tile], leaves_of_tiles: Sequence[dict[VariantPath, ShreddingSchema]]
    ) -> TilesResult:
        rows: Counter[VariantPath] = Counter()
        times: Counter[VariantPath] = Counter()
        for tile, leaves in zip(tiles, leaves_of_tiles, strict=True):
            rows.update(dict.fromkeys(leaves, tile.rows))
            times.update(leaves.keys())
        order = sorted(rows, key=lambda path: (-rows[path], str(path)))
        union: dict[VariantPath, ShreddingSchema] = {}
        for path in order[: self.max_columns]:
            # The type is that of all data, because tiles may have chosen different types.
            path_profile = profile.get(path)
            column = best_column(path_profile) if path_profile is not None else None
            if column is not None and column.arrow is not None:
                union[path] = ShreddingSchema.primitive(column.arrow)

        reasons = {path: f"frequent in {count:,} of {len(tiles):,} tiles" for path, count in times.items()}
        schema = schema_of_leaves(union) if union else None
        result = result_of(self, profile, schema, reasons, outside_reason="not frequent in any tile")
        parts = {part.name: getattr(result, part.name) for part in fields(result)}
        return TilesResult(**parts, tiles=tuple(tiles))


def _itemsets(tapes: list[Tape], paths: list[VariantPath], profile: Profile, min_share: float) -> tuple[Itemset, ...]:
    """Cover the frequent paths with itemsets: join the most frequent ones while enough rows have all of them."""
    path_profiles = [profile.get(path) for path in paths]
    items = [path_profile for path_profile in path_profiles if path_profile is not None]
    rows = [_rows_with(tape, items) for tape in tapes]
    table = np.concatenate(rows) if rows else np.zeros((0, len(items)), bool)
    live = max(profile.rows - profile.null_rows, 1)
    remaining = sorted(range(len(items)), key=lambda item: (-int(table[:, item].sum()), str(paths[item])))
    itemsets = []
    while remaining:
        together = np.ones(len(table), bool)
        joined: list[int] = []
        for item in remaining:
            both = together & table[:, item]
            if not joined or np.count_nonzero(both) >= min_share * live:
                together = both
                joined.append(item)
        remaining = [item for item in remaining if item not in joined]
        share = float(np.count_nonzero(together) / live)
        itemsets.append(Itemset(tuple(paths[item] for item in joined), share))
    return tuple(sorted(itemsets, key=lambda itemset: -len(itemset.paths)))


def _rows_with(tape: Tape, items: list[PathProfile]) -> npt.NDArray[np.bool_]:
    """Return a mask of rows by item; an item is a path with its most frequent type."""
    table = np.zeros((tape.rows, len(items)), bool)
    hashes = TapePaths.of(tape).hashes
    number = {int(hashed): path for path, hashed in enumerate(hashes)}
    rows = np.repeat(np.arange(tape.rows), np.diff(tape.row_start))
    paths = path_ids(tape.nodes[:, 0])
    kinds = _KIND_GROUPS[tape.nodes[:, 0] & 0xFF]
    for item, profile in enumerate(items):
        path = number.get(profile.hashed)
        if path is not None:
            at_path = paths == path
            counts = np.bincount(kinds[at_path], minlength=1)
            if counts[1:].any():
                table[rows[at_path & (kinds == 1 + int(np.argmax(counts[1:])))], item] = True
    return table
