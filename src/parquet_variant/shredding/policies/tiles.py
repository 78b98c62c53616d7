"""`TilesPolicy`: what is frequent in a stretch of rows, stretch by stretch.

Owns the tiles, the itemsets and their report. Leaves types to `column_types`.

Source: D. Durner, V. Leis, T. Neumann, "JSON Tiles: Fast Analytics on Semi-Structured Data" (SIGMOD 2021): rows are cut
into tiles; in each, the paths with their types that occur together in at least 60 % of its rows are materialised. The
paper also moves rows between tiles; here the order of rows is the user's. A Parquet file has one schema, so the file's
is the union of its tiles' choices, and `tiles` says which tile (or row group) asked for what.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import numpy.typing as npt

from parquet_variant.array.tapes import array_tapes
from parquet_variant.path import VariantPath
from parquet_variant.schema.shredding_schema import ShreddingSchema
from parquet_variant.shredding.estimate import predict
from parquet_variant.shredding.policies.column_types import best_column
from parquet_variant.shredding.policies.decision import (
    InferenceResult,
    check_constants,
    decisions_for,
    schema_of_leaves,
)
from parquet_variant.shredding.profile import Profile
from parquet_variant.shredding.profile_path import PathProfile

if TYPE_CHECKING:
    from parquet_variant.array.variant_array import VariantArray
    from parquet_variant.kernels.tapes.tape import Tape

_ARRAY, _OBJECT = 21, 22
# Node kinds that are one type for this purpose, as in `column_types`: booleans, and exact numbers.
_KIND_GROUPS = np.arange(_OBJECT + 1)
_KIND_GROUPS[2] = 1
_KIND_GROUPS[[4, 5, 6, 8, 9, 10]] = 3


@dataclass(frozen=True, slots=True)
class Itemset:
    """Paths that occur together, each with its most frequent type.

    Parameters
    ----------
    paths
        The paths, in the order in which they were joined.
    share
        Share of the tile's rows that have all of them.
    """

    paths: tuple[VariantPath, ...]
    share: float


@dataclass(frozen=True, slots=True)
class Tile:
    """What a stretch of rows asks for.

    Parameters
    ----------
    first_row, rows
        The stretch.
    schema
        What would be shredded were it alone.
    itemsets
        Its frequent itemsets, the largest first; each path is in one of them.
    """

    first_row: int
    rows: int
    schema: ShreddingSchema
    itemsets: tuple[Itemset, ...]


@dataclass(frozen=True, slots=True)
class TilesResult(InferenceResult):
    """What `TilesPolicy` gives: an `InferenceResult` with its tiles."""

    tiles: tuple[Tile, ...] = ()


@dataclass(frozen=True, slots=True)
class TilesPolicy:
    """What is frequent in a tile.

    A profile does not know which paths occur together: given one, the policy takes it as one tile, without itemsets.

    Parameters
    ----------
    tile_rows
        Rows of a tile. For the report by row group, the rows of a row group.
    min_share
        A path with a type is materialised if it is in this share of the tile's rows.
    max_columns
        Most leaves of the union; those that most rows ask for are kept.

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
        """The schema for data of this profile, as one tile."""
        leaves = self._frequent(profile)
        return self._result(profile, [Tile(0, profile.rows, schema_of_leaves(leaves), ())], [leaves])

    def choose_rows(self, array: VariantArray) -> TilesResult:
        """The schema for the tiles of an array, and what each of them asks for."""
        profile, tiles, chosen = Profile(), [], []
        for start in range(0, len(array), self.tile_rows):
            part = array[start : start + self.tile_rows]
            tapes = list(array_tapes(part, start))
            alone = Profile()
            for tape in tapes:
                alone = alone.merge(Profile.of_tape(tape))
            leaves = self._frequent(alone)
            itemsets = _itemsets(tapes, list(leaves), alone, self.min_share)
            tiles.append(Tile(start, len(part), schema_of_leaves(leaves), itemsets))
            chosen.append(leaves)
            profile = profile.merge(alone)
        return self._result(profile, tiles, chosen)

    def _frequent(self, profile: Profile) -> dict[VariantPath, ShreddingSchema]:
        """Leaves whose most frequent type is in enough of the rows."""
        least = self.min_share * (profile.rows - profile.null_rows)
        leaves: dict[VariantPath, ShreddingSchema] = {}
        stack = [profile.root] if profile.root is not None else []
        while stack:
            node = stack.pop()
            column = best_column(node)
            # Inside arrays a row has several values: rows count, of the share that has the type.
            if column is None or node.rows * column.typed / node.count < least:
                continue
            if column.arrow is not None:
                leaves[node.path] = ShreddingSchema.primitive(column.arrow)
            else:
                stack.extend(node.fields if column.name == "object" else [node.element] if node.element else [])
        return leaves

    def _result(
        self, profile: Profile, tiles: list[Tile], chosen: Sequence[dict[VariantPath, ShreddingSchema]]
    ) -> TilesResult:
        rows: dict[VariantPath, int] = {}
        times: dict[VariantPath, int] = {}
        for tile, leaves in zip(tiles, chosen, strict=True):
            for path in leaves:
                rows[path] = rows.get(path, 0) + tile.rows
                times[path] = times.get(path, 0) + 1
        order = sorted(rows, key=lambda path: (-rows[path], str(path)))
        union: dict[VariantPath, ShreddingSchema] = {}
        for path in order[: self.max_columns]:
            # The type is that of all the data; two tiles may have chosen two.
            path_profile = profile.get(path)
            column = best_column(path_profile) if path_profile is not None else None
            if column is not None and column.arrow is not None:
                union[path] = ShreddingSchema.primitive(column.arrow)

        def why(path: VariantPath) -> str | None:
            return f"frequent in {times[path]:,} of {len(tiles):,} tiles" if path in times else None

        schema = schema_of_leaves(union)
        decisions = decisions_for(profile, schema, chosen="on the way", left="frequent in no tile", why=why)
        return TilesResult(schema, decisions, self, profile.rows, predict(profile, schema), tiles=tuple(tiles))


def _itemsets(tapes: list[Tape], paths: list[VariantPath], profile: Profile, min_share: float) -> tuple[Itemset, ...]:
    """Cover the frequent paths with itemsets: join the most frequent ones while enough rows have all of them."""
    path_profiles = [profile.get(path) for path in paths]
    items = [each for each in path_profiles if each is not None]
    rows = [_rows_with(tape, items) for tape in tapes]
    table = np.concatenate(rows) if rows else np.zeros((0, len(items)), bool)
    live = max(profile.rows - profile.null_rows, 1)
    left = sorted(range(len(items)), key=lambda item: (-int(table[:, item].sum()), str(paths[item])))
    itemsets = []
    while left:
        together = np.ones(len(table), bool)
        joined: list[int] = []
        for item in left:
            both = together & table[:, item]
            if not joined or np.count_nonzero(both) >= min_share * live:
                together = both
                joined.append(item)
        left = [item for item in left if item not in joined]
        share = float(np.count_nonzero(together) / live)
        itemsets.append(Itemset(tuple(paths[item] for item in joined), share))
    return tuple(sorted(itemsets, key=lambda itemset: -len(itemset.paths)))


def _rows_with(tape: Tape, items: list[PathProfile]) -> npt.NDArray[np.bool_]:
    """Which rows have which items: a path with its most frequent type."""
    from parquet_variant.shredding.profile_merge import path_hashes

    table = np.zeros((tape.rows, len(items)), bool)
    hashes = path_hashes(tape)
    number = {int(hashed): path for path, hashed in enumerate(hashes)}
    rows = np.repeat(np.arange(tape.rows), np.diff(tape.row_start))
    paths = (tape.nodes[:, 0] >> 16) & 0xFFFFFFFF
    kinds = _KIND_GROUPS[tape.nodes[:, 0] & 0xFF]
    for item, profile in enumerate(items):
        path = number.get(profile.hashed)
        if path is not None:
            here = paths == path
            counts = np.bincount(kinds[here], minlength=1)
            if counts[1:].any():
                table[rows[here & (kinds == 1 + int(np.argmax(counts[1:])))], item] = True
    return table
