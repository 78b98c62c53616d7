"""`infer`: a shredding schema for a profile, chosen by a named policy, with the reasons; and `find_drift`.

Drift is the difference between the schema of a table and new data, and whether re-shredding pays. Owns finding the
policy, and the comparison. `policies` decides, `profile` profiles, and `parquet`, `tables` and `spark` rewrite files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any, Literal, TypeAlias

from parquet_variant.arrays.variant_array import VariantArray
from parquet_variant.errors import VariantError, check_number
from parquet_variant.inference.columns import bytes_saved, typed_share
from parquet_variant.inference.policies.auto import AutoPolicy
from parquet_variant.inference.policies.decision import InferenceResult, Policy
from parquet_variant.inference.policies.explicit import ExplicitPolicy, HintsPolicy, WorkloadPolicy
from parquet_variant.inference.policies.spark import SparkPolicy
from parquet_variant.inference.profile import PathProfile, Profile
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.records import Record
from parquet_variant.types.path import WILDCARD, VariantPath

# The classes of the policies by name.
POLICIES: dict[str, type[Any]] = {
    "auto": AutoPolicy,
    "spark": SparkPolicy,
    "explicit": ExplicitPolicy,
    "hints": HintsPolicy,
    "workload": WorkloadPolicy,
}


def policy_named(name: str) -> Policy:
    """Return a policy with its default constants.

    Raises `VariantError` for an unknown policy, and for one that has required arguments.

    >>> policy_named("auto").max_columns
    300
    """
    if name not in POLICIES:
        raise VariantError(f"unknown policy {name!r}: use {', '.join(POLICIES)}", reason="bad-policy")
    try:
        policy: Policy = POLICIES[name]()
    except TypeError:
        problem = f"policy {name!r} has required arguments: pass a {POLICIES[name].__name__} object"
        raise VariantError(problem, reason="bad-policy") from None
    return policy


def infer(
    data: Profile | VariantArray, policy: str | Policy | None = None, *, threads: int | None = 1
) -> InferenceResult:
    """Infer a shredding schema.

    `data`: a profile, or an array to profile; the policy ``spark`` uses only its first rows.
    `policy`: a policy, or the name of a policy with default constants (default: ``"auto"``).
    `threads`: number of threads that profile an array; None for one per CPU of this process.
    Raises `VariantError` for an unknown policy (``bad-policy``), `MalformedVariantError` for an array with malformed
    bytes.

    >>> import parquet_variant as pv
    >>> result = infer(pv.parse_json(['{"id": %d, "name": "row %d"}' % (n, n) for n in range(200)]))
    >>> result.schema.to_ddl()
    'id bigint, name string'
    >>> result.decision("$.id").reason
    'all bigint'
    """
    chosen_policy = policy_named(policy or "auto") if policy is None or isinstance(policy, str) else policy
    if not isinstance(data, Profile) and isinstance(chosen_policy, SparkPolicy):
        return chosen_policy.choose_rows(data)
    if not (hasattr(chosen_policy, "choose") and hasattr(chosen_policy, "name")):  # NumPy's arrays can choose
        problem = f"policy is a {type(chosen_policy).__name__}: pass a name ({', '.join(POLICIES)}) or a policy object"
        raise VariantError(problem, reason="bad-policy")
    return chosen_policy.choose(data if isinstance(data, Profile) else Profile.of_array(data, threads=threads))


Change = Literal["hot", "shifted", "dead"]

# A type has shifted if another type would hold at least this share more of the values.
_SHIFTED = 0.1


class Drift(Record):
    """A path at which the schema and the data differ; `before` and `after` are its nodes by DDL name or None.

    `change`: ``"hot"``: frequent but not shredded; ``"shifted"``: shredded as another type than the data has;
      ``"dead"``: shredded but no longer in the data.
    `typed_before`, `typed_after`: share of the path's values that are typed under either schema.
    `bytes_saved`: estimate of the bytes that would leave the residual; negative if bytes would be added.
    """

    path: VariantPath
    change: Change
    before: str | None = None
    after: str | None = None
    row_share: float = 0.0
    typed_before: float = 0.0
    typed_after: float = 0.0
    bytes_saved: int = 0

    def __str__(self) -> str:
        nodes = f"{self.before or 'not shredded'} -> {self.after or 'not shredded'}"
        shares = f"typed {self.typed_before:.1%} -> {self.typed_after:.1%}"
        saved = f", saves {self.bytes_saved:,} bytes" if self.bytes_saved > 0 else ""
        return f"{self.change}  {self.path.shorthand}: {nodes}, in {self.row_share:.1%} of rows, {shares}{saved}"


class SchemaOrigin(Record):
    """The files whose schema the data is compared with, of all files, and the time of the oldest of them if known."""

    rows: int
    total_rows: int
    since: datetime | None = None

    def __str__(self) -> str:
        since = "" if self.since is None else f", in use since {self.since:%Y-%m-%d %H:%M:%S} UTC"
        return f"compared with the schema of {self.rows:,} of {self.total_rows:,} rows{since}"


class DriftReport(Record):
    """The differences between a schema and new data, those that save most first, and the recommended schema.

    `schema`: the schema that fits the new data, by the policy.
    `merged`: the existing schema with only the changes that pay. Dead columns are kept unless ``drop_dead`` is set,
      because older rows may have them.
    `pays`: whether re-shredding with `merged` saves at least `min_saving` of the bytes.
    `saved_share`, `saved_bytes`, `encoded_bytes`: estimates before compression, of what leaves the residual and of all.
    """

    schema: ShreddingSchema
    merged: ShreddingSchema
    drifts: tuple[Drift, ...]
    pays: bool
    saved_share: float
    saved_bytes: int = 0
    encoded_bytes: int = 0
    origin: SchemaOrigin | None = None

    def to_shred(self, existing: ShreddingSchema, *, reshred: bool) -> ShreddingSchema:
        """Return the schema for new files: `merged` if it pays, else `existing`; `schema` if `reshred` is set."""
        return self.schema if reshred else self.merged if self.pays else existing

    def to_dict(self) -> dict[str, object]:
        """Return the report as plain values, with schemas as DDL."""
        since = None if self.origin is None or self.origin.since is None else self.origin.since.isoformat()
        return {
            **{name: getattr(self, name) for name in ("pays", "saved_share", "saved_bytes", "encoded_bytes")},
            "schema": self.schema.to_ddl(),
            "merged": self.merged.to_ddl(),
            "origin": None if self.origin is None else asdict(self.origin) | {"since": since},
            "drifts": [asdict(drift) | {"path": str(drift.path)} for drift in self.drifts],
        }

    def __repr__(self) -> str:
        return f"<DriftReport {self._verdict()}>"

    def _verdict(self) -> str:
        if not self.drifts:
            return "no drift: the schema fits the data"
        verdict = "pays" if self.pays else "does not pay"
        sizes = f"{self.saved_bytes:,} of {self.encoded_bytes:,}"
        return f"re-shredding {verdict}: it saves {self.saved_share:.1%} of the encoded bytes ({sizes})"

    def __str__(self) -> str:
        origin = [] if self.origin is None else [str(self.origin)]
        return "\n".join([self._verdict(), *origin, *map(str, self.drifts)])


def find_drift(
    schema: ShreddingSchema,
    profile: Profile,
    policy: str | Policy | None = None,
    *,
    min_saving: float = 0.02,
    drop_dead: bool = False,
) -> DriftReport:
    """Compare an existing schema with the profile of new data, for which `policy` chooses a better one (default: auto).

    `min_saving`: share of the encoded bytes that must leave the residual for re-shredding to pay.
    `drop_dead`: whether `DriftReport.merged` omits columns that the new data lacks.

    >>> import parquet_variant as pv
    >>> rows = ['{"id": "a-%d", "kind": "new kind", "seen": "2026-11-20"}' % n for n in range(50)]
    >>> table = ShreddingSchema.from_ddl("id bigint, kind string, old double")
    >>> report = find_drift(table, Profile.of_array(pv.parse_json(rows)))
    >>> for drift in report.drifts:
    ...     print(drift)
    hot  $.seen: not shredded -> string, in 100.0% of rows, typed 0.0% -> 100.0%, saves 680 bytes
    shifted  $.id: bigint -> string, in 100.0% of rows, typed 0.0% -> 100.0%, saves 240 bytes
    dead  $.old: double -> not shredded, in 0.0% of rows, typed 0.0% -> 0.0%
    >>> report.pays, report.merged.to_ddl()
    (True, 'id string, kind string, old double, seen string')
    """
    check_number("min_saving", min_saving)
    fitting = infer(profile, policy).schema
    drifts: list[Drift] = []

    def merge(
        path_profile: PathProfile | None, old: ShreddingSchema, new: ShreddingSchema | None, path: VariantPath
    ) -> ShreddingSchema | None:
        """Return the old node with the changes that pay, and record the differences."""
        if path_profile is None:
            drifts.append(Drift(path, "dead", before=old.type_name))
            return None if drop_dead else old
        if new is None:
            return old  # rarer than the policy requires, but still in the data
        if old.kind == new.kind == "object":
            fields: dict[str, ShreddingSchema | None] = {}
            before, after = dict(old.fields), dict(new.fields)
            for name in sorted({*before, *after}):
                child = path_profile.field(name)
                if name in before:
                    fields[name] = merge(child, before[name], after.get(name), path / name)
                elif child is not None:
                    drifts.append(_drift(child, path / name, "hot", None, after[name]))
                    fields[name] = after[name]
            kept_fields = {name: node for name, node in fields.items() if node is not None}
            return ShreddingSchema.object(kept_fields) if kept_fields else None
        if old.element is not None and new.element is not None:
            element = merge(path_profile.element, old.element, new.element, path / WILDCARD)
            return ShreddingSchema.array(element) if element is not None else None
        if typed_share(path_profile, new) - typed_share(path_profile, old) < _SHIFTED:
            return old  # another type that is not better
        drifts.append(_drift(path_profile, path, "shifted", old, new))
        return new

    merged = merge(profile.root, schema, fitting, VariantPath())
    drifts.sort(key=lambda drift: (-drift.bytes_saved, -drift.row_share, str(drift.path)))
    total = profile.root.encoded_bytes if profile.root is not None else 0
    saved = sum(max(drift.bytes_saved, 0) for drift in drifts)
    share = saved / total if total else 0.0
    return DriftReport(
        fitting, merged or ShreddingSchema.variant(), tuple(drifts),
        pays=share >= min_saving, saved_share=share, saved_bytes=saved, encoded_bytes=total,
    )  # fmt: skip


# Schema, rows, and time of the last change of a file, if it is known.
ShreddedRows: TypeAlias = tuple[ShreddingSchema, int, datetime | None]


def find_drift_of_files(
    files: Sequence[ShreddedRows], profile: Profile, policy: str | Policy | None, min_saving: float
) -> tuple[DriftReport, ShreddingSchema]:
    """Return the drift of the values in files from the schema of most rows, and this schema; see `find_drift`."""
    rows: Counter[str] = Counter()
    for schema, count, _ in files:
        rows[schema.to_json()] += count
    text = max(rows, key=lambda text: (rows[text], text))
    times = [time for schema, _, time in files if time is not None and schema.to_json() == text]
    origin = SchemaOrigin(rows[text], rows.total(), min(times, default=None))
    common = ShreddingSchema.from_json(text)
    return replace(find_drift(common, profile, policy, min_saving=min_saving), origin=origin), common


def _drift(
    path_profile: PathProfile, path: VariantPath, change: Change, old: ShreddingSchema | None, new: ShreddingSchema
) -> Drift:
    return Drift(
        path,
        change,
        before=None if old is None else old.type_name,
        after=new.type_name,
        row_share=path_profile.row_share,
        typed_before=typed_share(path_profile, old),
        typed_after=typed_share(path_profile, new),
        bytes_saved=_saved_below(path_profile, new) - _saved_below(path_profile, old),
    )


def _saved_below(path_profile: PathProfile | None, node: ShreddingSchema | None) -> int:
    """Bytes that a node and those below it take off the residual."""
    if path_profile is None or node is None:
        return 0
    if node.type is not None:
        return max(bytes_saved(path_profile, node), round(typed_share(path_profile, node) * path_profile.scalar_bytes))
    fields = sum(_saved_below(path_profile.field(name), child) for name, child in node.fields)
    return fields + _saved_below(path_profile.element, node.element)
