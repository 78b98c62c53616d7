"""What ``--schema``, ``--policy`` with its constants, and ``--select`` are given.

Owns telling a schema's DDL from a file of DDL or JSON and a Parquet file, and the notation ``name=$.path:type`` of
selections. Leaves schemas to `ShreddingSchema`, the constants' meaning to the policies, paths to `query.selection`.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parquet_variant.schema.shredding_schema import ShreddingSchema
    from parquet_variant.shredding.policies.decision import Policy

_SUFFIXES = (".ddl", ".json", ".parquet", ".sql", ".txt")


def read_schema(schema: str | None) -> ShreddingSchema | None:
    """Read what ``--schema`` was given; None stays None.

    Raises `VariantError` for text that is no schema, and for a file that holds none.

    >>> read_schema("mag double, place string").to_ddl()
    'mag double, place string'
    """
    from parquet_variant.errors import SchemaError
    from parquet_variant.schema.shredding_schema import ShreddingSchema

    if schema is None:
        return None
    text = schema
    if os.path.isfile(schema):  # noqa: PTH113 - unlike Path.is_file it takes a text too long for a file name
        raw = Path(schema).read_bytes()
        if raw.startswith(b"PAR1"):
            return ShreddingSchema.from_parquet(schema).limited_to()
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise SchemaError(f"{schema} is no schema: give DDL or JSON text, or a Parquet file", file=schema) from None
    elif schema.endswith(_SUFFIXES):
        raise SchemaError(f"there is no schema file {schema}: check the path, or give DDL such as 'mag double'")
    text = text.strip()
    return ShreddingSchema.from_json(text) if text.startswith("{") else ShreddingSchema.from_ddl(text)


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
    kind: Any = POLICIES[name]
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
        # The whole error spells the path, and secrets in it.
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise VariantFileError(f"the queries in {path} cannot be read: {why}", file=path) from None
    return [query for line in text.splitlines() for query in line.split(";") if query.strip()]


_NAMED = re.compile(r"([^$=\[\]]*[^$=\[\]\s])\s*=\s*(.*)", re.DOTALL)


def read_selects(texts: list[str]) -> dict[str, str]:
    """Read all ``--select`` options of a command, as a mapping that `parquet.scan` takes.

    Without a name, a path is called by its last key, and an ordinary column by its own name. Raises `PathError` for a
    path that cannot be read, and for a name that is given twice.

    >>> read_selects(["mag=$.properties.mag:double", "$.id", "$['a=b'][0]:struct<x: int>", "day"])
    {'mag': '$.properties.mag:double', 'id': '$.id', 'a=b': "$['a=b'][0]:struct<x: int>", 'day': 'day'}
    """
    from parquet_variant.errors import PathError
    from parquet_variant.query.selection import read_selection

    selects: dict[str, str] = {}
    for text in texts:
        if named := _NAMED.fullmatch(text):
            name, path = named[1].strip(), named[2]
        else:
            path = text.strip()
            (selected,) = read_selection([path]) if not path.startswith("$") else read_selection({"value": path})
            keys = (
                [segment for segment in selected.path.segments if isinstance(segment, str)] if selected.path else [path]
            )
            name = keys[-1] if keys else "value"
        if name in selects:
            raise PathError(f"two --select options are called {name!r}: name one of them, as in 'other={path}'")
        selects[name] = path
    return selects
