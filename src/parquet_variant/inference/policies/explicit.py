"""What the user says about paths: a schema, types of paths with the most frequent other paths, or queried paths first.

`ShreddingSchema` reads the notations of schemas, `columns` chooses the types of other paths.

Source of hints: ClickHouse's ``JSON(max_dynamic_paths=N, path Type, SKIP path, SKIP REGEXP 'pattern')``. ClickHouse
does not store a skipped path; here it is only not shredded, because no data may be lost.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, ClassVar

import pyarrow as pa

from parquet_variant.errors import PathError, VariantError, check_mapping, strings_of
from parquet_variant.inference.columns import ColumnType, typed_leaves
from parquet_variant.inference.policies.auto import AutoPolicy, MapRules, map_reason
from parquet_variant.inference.policies.decision import (
    InferenceResult,
    Policy,
    check_constants,
    result_of,
)
from parquet_variant.inference.profile import PathProfile, Profile
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.storage_shape import MAX_PHYSICAL_DEPTH, path_depth, too_deep
from parquet_variant.layouts.type_grammar import parse_ddl_with_strings
from parquet_variant.support.records import Record
from parquet_variant.types.path import WILDCARD, VariantPath, is_within

# A path as queries write it: in quotes, from the root.
_QUOTED_PATH = re.compile(r"""'(\$(?:[^']|'')*)'|"(\$[^"]*)\"""")


class WorkloadPolicy(Record):
    """Shred queried paths first.

    Parameters
    ----------
    weights
        How often (or at what cost) paths are queried. An index stands for every element. Paths that are not in the data
        are ignored; a path of an object or array includes all paths below it, in the order of frequency.
    max_columns
        Maximum number of leaves.
    fallback
        The policy for the rest of the budget; None to shred only queried paths.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> from parquet_variant.inference.infer import infer
    >>> rows = pv.parse_json(['{"a": 1, "b": {"c": "x"}}', '{"a": 2, "b": {"d": "y"}}'])
    >>> log = ["SELECT variant_get(v, '$.b.d', 'string') FROM t", "SELECT variant_get(v, '$.b.d') FROM t"]
    >>> infer(rows, WorkloadPolicy.of_queries(log, max_columns=1)).schema.to_ddl()
    'b struct<d: string>'
    """

    name: ClassVar[str] = "workload"  # What `infer` takes.
    weights: Mapping[str, float] | tuple[tuple[str, float], ...]
    max_columns: int = 300
    fallback: Policy | None = field(default_factory=AutoPolicy)

    def __post_init__(self) -> None:
        check_constants(self)
        weights: dict[str, float] = {}
        check_mapping("weights", {} if isinstance(self.weights, tuple) else self.weights)
        for path, weight in dict(self.weights).items():
            segments = VariantPath.parse(path).segments
            name = str(VariantPath(tuple(segment if isinstance(segment, str) else WILDCARD for segment in segments)))
            weights[name] = weights.get(name, 0.0) + float(weight)
        object.__setattr__(self, "weights", tuple(sorted(weights.items(), key=lambda item: (-item[1], item[0]))))

    @classmethod
    def of_queries(cls, queries: Iterable[str], **options: Any) -> WorkloadPolicy:
        """Weight paths by the number of SQL statements that contain them in quotes: ``variant_get(v, '$.a.b', 'int')``.

        Parameters
        ----------
        queries
            SQL statements; those without paths are ignored.
        **options
            ``max_columns`` and ``fallback``.
        """
        seen: Counter[str] = Counter()
        for query in strings_of("queries", queries):
            for text in {match[1] or match[2] for match in _QUOTED_PATH.finditer(query)}:
                try:
                    seen[str(VariantPath.parse(text.replace("''", "'")))] += 1
                except PathError:
                    continue  # a string that looks like a path
        return cls(dict(seen), **options)

    @classmethod
    def of_schema(cls, schema: ShreddingSchema, **options: Any) -> WorkloadPolicy:
        """Weight the leaves of an earlier schema equally, so that they are kept if the data still has them.

        Parameters
        ----------
        schema
            The earlier schema.
        **options
            ``max_columns`` and ``fallback``.
        """
        return cls({str(path): 1.0 for path, _ in ShreddingSchema.of(schema).leaves()}, **options)

    def choose(self, profile: Profile) -> InferenceResult:
        """Return the schema for data with this profile, and the reasons."""
        leaves: dict[VariantPath, ShreddingSchema] = {}
        reasons: dict[VariantPath, str] = {}

        def add(path: VariantPath, leaf: ShreddingSchema, reason: str) -> None:
            if path in leaves or any(is_within(path, taken) or is_within(taken, path) for taken in leaves):
                return
            if len(leaves) < self.max_columns:
                leaves[path], reasons[path] = leaf, reason
            else:
                reasons[path] = f"{reason}, over the budget of {self.max_columns} columns"

        for queried, weight in dict(self.weights).items():
            leaves_below = typed_leaves(profile.get(queried))
            for path, _, leaf in sorted(leaves_below, key=lambda item: (-item[1].count, str(item[0]))):
                add(path, leaf, f"queried, weight {weight:g}")
        if self.fallback is not None:
            other = self.fallback.choose(profile)
            order = {decision.path: decision.row_share for decision in other.decisions}
            for path, leaf in sorted(other.schema.leaves(), key=lambda item: (-order.get(item[0], 0), str(item[0]))):
                add(path, leaf, f"chosen by {self.fallback.name}")
        return result_of(
            self, profile, leaves, reasons, outside_reason="neither queried nor chosen by the other policy"
        )


class HintsPolicy(Record):
    """Shred paths with types of the user, and the most frequent other paths.

    Parameters
    ----------
    types
        DDL or Arrow types by path. ``"timestamp!"`` also types strings while JSON is parsed (docs/json.md).
    max_columns
        Maximum number of shredded paths that are not in `types`.
    skip
        Paths that are not shredded, with all paths below them.
    skip_regexp
        Regular expressions; a path is not shredded if one matches in its dotted form (``a.b``, ``a.[*].b``).
    maps
        Which objects are maps; paths in maps are shredded only if they are in `types`.

    Raises
    ------
    VariantError
        For an invalid regular expression (``bad-policy``).
    PathError, SchemaError
        For an invalid path or type.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> from parquet_variant.inference.infer import infer
    >>> rows = pv.parse_json(['{"a": 1, "b": {"c": 2, "d": 3}, "x_1": 4}'])
    >>> policy = HintsPolicy({"$.a": "decimal(9,2)"}, skip=["$.b.d"], skip_regexp=["^x_"])
    >>> infer(rows, policy).schema.to_ddl()
    'a decimal(9,2), b struct<c: bigint>'
    """

    name: ClassVar[str] = "hints"  # What `infer` takes.
    types: Mapping[str, str | pa.DataType] | tuple[tuple[str, str | pa.DataType], ...] = ()
    max_columns: int = 1024
    skip: Iterable[str] = ()
    skip_regexp: Iterable[str] = ()
    maps: MapRules = field(default_factory=MapRules)
    string_types: dict[str, str] = field(init=False, repr=False, compare=False, default_factory=dict)
    _hinted: dict[VariantPath, ShreddingSchema] = field(init=False, repr=False, compare=False, default_factory=dict)
    _skipped: tuple[VariantPath, ...] = field(init=False, repr=False, compare=False, default=())
    _patterns: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        check_constants(self)
        check_mapping("types", {} if isinstance(self.types, tuple) else self.types)
        types = tuple(dict(self.types).items())
        object.__setattr__(self, "types", types)
        object.__setattr__(self, "skip", strings_of("skip", self.skip))
        object.__setattr__(self, "skip_regexp", strings_of("skip_regexp", self.skip_regexp))
        for path, hint in types:
            parsed = VariantPath.parse(path)
            if isinstance(hint, str):
                tree, types_of_hint = parse_ddl_with_strings(hint)
                self._hinted[parsed] = ShreddingSchema.from_tree(tree)
                for place, kind in types_of_hint.items():
                    of_string = VariantPath(parsed.segments + VariantPath.parse(place).segments)
                    self.string_types[of_string.shorthand] = kind
            else:
                self._hinted[parsed] = ShreddingSchema.from_arrow(hint)
        for hinted, schema in self._hinted.items():
            deepest = max((path for path, _ in schema.leaves()), key=path_depth)
            leaf = VariantPath(hinted.segments + deepest.segments)
            if path_depth(leaf) > MAX_PHYSICAL_DEPTH:
                raise too_deep(leaf)
        object.__setattr__(self, "_skipped", tuple(map(VariantPath.parse, self.skip)))
        try:
            object.__setattr__(self, "_patterns", tuple(map(re.compile, self.skip_regexp)))
        except re.error as error:
            problem = f"invalid regular expression {error.pattern!r} in skip_regexp: {error}"
            raise VariantError(problem, reason="bad-policy") from None

    def choose(self, profile: Profile) -> InferenceResult:
        """Return the schema for data with this profile, and the reasons."""
        reasons: dict[VariantPath, str] = dict.fromkeys(self._hinted, "hint")
        leaves = dict(self._hinted)

        def is_left_out(path_profile: PathProfile, column: ColumnType | None) -> bool:
            path = path_profile.path
            if path in leaves:
                return True
            dotted = ".".join(segment if isinstance(segment, str) else "[*]" for segment in path.segments)
            skips = [f"SKIP {outer}" for outer in self._skipped if is_within(path, outer)]
            skips += [f"SKIP REGEXP {p.pattern!r}" for p in self._patterns if dotted and p.search(dotted)]
            reason = skips[0] if skips else "only Variant nulls" if column is None else None
            if reason is None and column is not None and column.name == "object":
                reason = map_reason(path_profile, self.maps)
            if reason is not None:
                reasons[path] = reason
            return reason is not None

        candidates = list(typed_leaves(profile.root, is_left_out))
        ranked = sorted(candidates, key=lambda item: (-item[1].rows, -item[1].count, str(item[0])))
        for place, (path, _, leaf) in enumerate(ranked):
            if place < self.max_columns:
                leaves[path] = leaf
                reasons[path] = f"number {place + 1:,} by frequency"
            else:
                reasons[path] = f"number {place + 1:,} by frequency, over max_columns={self.max_columns:,}"
        return result_of(self, profile, leaves, reasons, outside_reason="nothing below it is shredded")


class ExplicitPolicy(Record):
    """Shred what the user says, independent of the data.

    Parameters
    ----------
    schema
        A `ShreddingSchema`, DDL, the JSON form, or an Arrow schema or type.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> from parquet_variant.inference.infer import infer
    >>> result = infer(pv.parse_json(['{"a": 1, "c": 2}', '{"a": "x"}']), ExplicitPolicy("a bigint, b date"))
    >>> for decision in result.decisions:
    ...     print(decision.path, decision.type, decision.typed_share, decision.reason)
    $ object 1.0 given
    $['a'] bigint 0.5 given: 50.0% number, 50.0% string
    $['b'] date 0.0 given, but not in the data
    $['c'] None 0.0 not given
    """

    name: ClassVar[str] = "explicit"  # What `infer` takes.
    schema: ShreddingSchema | str | pa.Schema | pa.DataType

    def resolved(self) -> ShreddingSchema:
        """Return the schema, read from its notation.

        Raises
        ------
        SchemaError
            For an invalid schema, and one with too many Parquet levels (``too-deep``).
        """
        schema = self.schema
        if isinstance(schema, (pa.Schema, pa.DataType)):
            schema = ShreddingSchema.from_arrow(schema)
        elif isinstance(schema, Mapping) or (isinstance(schema, str) and schema.lstrip().startswith("{")):
            schema = ShreddingSchema.from_json(schema)
        return ShreddingSchema.of(schema)

    def choose(self, profile: Profile) -> InferenceResult:
        """Return the given schema, and its effect on data with this profile."""
        return result_of(self, profile, self.resolved(), {}, shredded_reason="given", outside_reason="not given")
