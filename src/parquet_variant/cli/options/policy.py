"""Which policy chooses what to shred, and its constants: ``--policy``, ``--set`` and ``--queries``.

Owns reading the options. Leaves what the constants mean, and their names, to the policies.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parquet_variant.shredding.policies.decision import Policy


def read_policy(name: str, settings: list[str] | None = None, queries: str | None = None) -> Policy:
    """Make a policy.

    `settings`: ``constant=value``; the value is JSON, or text as it stands. A constant of a constant is written with a
      dot: ``maps.keys=100``.
    `queries`: a file of SQL, a query a line or ended by ``;``, from which the workload policy takes its weights.
    Raises `VariantError` for a name, constant or value that does not fit, and a file that cannot be read.

    >>> read_policy("auto", ["min_row_share=0.05", "maps.keys=100"])
    AutoPolicy(min_row_share=0.05, least_columns=10, min_type_share=0.3, ..., maps=MapRules(keys=100, ...))
    >>> read_policy("hints", ['skip=["$.debug"]']).skip
    ('$.debug',)
    """
    from parquet_variant.errors import VariantError
    from parquet_variant.shredding.infer import POLICIES, policy_named

    options = dict(_setting(text) for text in settings or [])
    if name not in POLICIES or not (options or queries):
        return policy_named(name)
    kind: Any = getattr(import_module(f"parquet_variant.shredding.policies.{name}"), POLICIES[name])
    known = [each.name for each in fields(kind) if each.init and not each.name.startswith("_")]
    if unknown := sorted({key.partition(".")[0] for key in options} - set(known)):
        raise VariantError(
            f"the policy {name} has no constant {unknown[0]!r}: use {', '.join(known)}", reason="bad-policy"
        )
    plain = {key: value for key, value in options.items() if "." not in key}
    try:
        if queries is not None:
            if not hasattr(kind, "of_queries"):
                raise VariantError("--queries is for --policy workload", reason="bad-policy")
            policy = kind.of_queries(_queries(queries), **plain)
        else:
            policy = kind(**plain)
        for key, value in options.items():
            outer, dot, inner = key.partition(".")
            if dot:
                policy = replace(policy, **{outer: _with(getattr(policy, outer), inner, value)})
    except (TypeError, ValueError) as error:
        if isinstance(error, VariantError):
            raise
        raise VariantError(f"the policy {name} does not take {options}: {error}", reason="bad-policy") from None
    return policy


def _setting(text: str) -> tuple[str, Any]:
    from parquet_variant.errors import VariantError

    key, equals, value = text.partition("=")
    if not equals:
        raise VariantError(f"--set is {text!r}: write it as 'constant=value'", reason="bad-policy")
    try:
        return key.strip(), json.loads(value)
    except ValueError:
        return key.strip(), value


def _with(outer: Any, name: str, value: Any) -> Any:
    if not is_dataclass(outer) or isinstance(outer, type):
        raise TypeError(f"there is no constant {name!r} in {outer!r}")
    return replace(outer, **{name: value})


def _queries(path: str) -> list[str]:
    from parquet_variant.errors import VariantFileError

    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = (
            getattr(error, "strerror", None) or "it is not UTF-8"
        )  # the whole error spells the path, and secrets in it
        raise VariantFileError(f"the queries in {path} cannot be read: {why}", file=path) from None
    return [query for line in text.splitlines() for query in line.split(";") if query.strip()]
