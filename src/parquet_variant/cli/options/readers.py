"""Reading the values of ``--schema``, ``--policy`` with its constants, and ``--select``.

Owns recognising a schema as DDL, a file of DDL or JSON, or a Parquet file, and the notation ``name=$.path:type``.
Leaves schemas to `ShreddingSchema`, the meaning of constants to the policies, and paths to `query.selection`.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from parquet_variant.inference.policies.decision import Policy
    from parquet_variant.layouts.shredding_schema import ShreddingSchema

_SUFFIXES = (".ddl", ".json", ".parquet", ".sql", ".txt")


def read_schema(schema: str | None) -> ShreddingSchema | None:
    """Read the value of ``--schema``; None is returned unchanged.

    Raises `VariantError` for text or a file that is not a schema.

    >>> read_schema("mag double, place string").to_ddl()
    'mag double, place string'
    """
    from parquet_variant.errors import SchemaError
    from parquet_variant.layouts.shredding_schema import ShreddingSchema

    if schema is None:
        return None
    if os.path.isdir(schema):  # noqa: PTH112 - as below
        from parquet_variant.sql_query.binding import bind_table

        table = bind_table(schema, schema)
        if len(table.columns.variants) != 1:
            raise SchemaError(
                f"{schema} has {len(table.columns.variants)} Variant columns: give a Parquet file or DDL", file=schema
            )
        return table.schema_of(table.columns.variants[0]).limited_to()
    text = schema
    if os.path.isfile(schema):  # noqa: PTH113 - unlike Path.is_file it accepts text that is too long for a file name
        raw = Path(schema).read_bytes()
        if raw.startswith(b"PAR1"):
            return ShreddingSchema.from_parquet(schema).limited_to()
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            raise SchemaError(f"{schema} is not a schema: give DDL, JSON, or a Parquet file", file=schema) from None
    elif schema.endswith(_SUFFIXES):
        raise SchemaError(f"schema file {schema} does not exist: check the path, or give DDL such as 'mag double'")
    text = text.strip()
    return ShreddingSchema.from_json(text) if text.startswith("{") else ShreddingSchema.from_ddl(text)


def read_schema_or_ddl(schema: str | None) -> ShreddingSchema | str | None:
    """Read the value of ``--schema`` of a command that parses JSON: DDL stays text, so that ``!`` can type strings.

    >>> read_schema_or_ddl("at timestamp!, mag double")
    'at timestamp!, mag double'
    """
    text = None if schema is None or os.path.exists(schema) else schema  # noqa: PTH110 - as in `read_schema`
    if text is None or text.endswith(_SUFFIXES) or text.strip().startswith("{"):
        return read_schema(schema)
    return text


def read_policy(name: str, settings: list[str] | None = None, queries: str | None = None) -> Policy:
    """Create a policy.

    `settings`: ``constant=value`` with a value in JSON, or else a string. A nested constant is written with a dot:
      ``maps.keys=100``.
    `queries`: a file of SQL queries, one per line or ended by ``;``, from which the workload policy takes its weights.
    Raises `VariantError` for an invalid name, constant or value, and a file that cannot be read.

    >>> read_policy("auto", ["min_row_share=0.05", "maps.keys=100"])
    AutoPolicy(min_row_share=0.05, least_columns=10, min_type_share=0.3, ..., maps=MapRules(keys=100, ...))
    >>> read_policy("hints", ['skip=["$.debug"]']).skip
    ('$.debug',)
    """
    from parquet_variant.errors import VariantError
    from parquet_variant.inference.infer import POLICIES, policy_named

    options = dict(_setting(text) for text in settings or [])
    if name not in POLICIES or not (options or queries):
        return policy_named(name)
    kind: Any = POLICIES[name]
    constants = [field.name for field in fields(kind) if field.init and not field.name.startswith("_")]
    if unknown := sorted({key.partition(".")[0] for key in options} - set(constants)):
        raise VariantError(
            f"unknown constant {unknown[0]!r} of the policy {name}: use {', '.join(constants)}", reason="bad-policy"
        )
    top_level = {key: value for key, value in options.items() if "." not in key}
    try:
        if queries is not None:
            if not hasattr(kind, "of_queries"):
                raise VariantError("--queries needs --policy workload", reason="bad-policy")
            policy = kind.of_queries(_queries(queries), **top_level)
        else:
            policy = kind(**top_level)
        for key, value in options.items():
            outer, dot, inner = key.partition(".")
            if dot:
                policy = replace(policy, **{outer: _with_option(getattr(policy, outer), inner, value)})
    except (TypeError, ValueError) as error:
        if isinstance(error, VariantError):
            raise
        raise VariantError(f"invalid constants {options} of the policy {name}: {error}", reason="bad-policy") from None
    return policy


def _setting(text: str) -> tuple[str, Any]:
    from parquet_variant.errors import VariantError

    key, equals, value = text.partition("=")
    if not equals:
        raise VariantError(f"invalid --set {text!r}: write constant=value", reason="bad-policy")
    try:
        return key.strip(), json.loads(value)
    except ValueError:
        return key.strip(), value


def _with_option(outer: Any, name: str, value: Any) -> Any:
    if not is_dataclass(outer) or isinstance(outer, type):
        raise TypeError(f"unknown constant {name!r} in {outer!r}")
    return replace(outer, **{name: value})


def _queries(path: str) -> list[str]:
    from parquet_variant.errors import VariantFileError

    try:
        text = Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        # The text of the error has the path, which can have secrets.
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise VariantFileError(f"cannot read the queries in {path}: {why}", file=path) from None
    return [query for line in text.splitlines() for query in line.split(";") if query.strip()]


_NAMED = re.compile(r"([^$=\[\]]*[^$=\[\]\s])\s*=\s*(.*)", re.DOTALL)


def read_selects(texts: list[str]) -> dict[str, str]:
    """Read all ``--select`` options of a command, as the mapping for `Table.scan`.

    Without a name, a path is named by its last key, and an ordinary column keeps its name. Raises `PathError` for an
    invalid path, and for a repeated name.

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
            raise PathError(f"two --select options have the name {name!r}: rename one, as in 'other={path}'")
        selects[name] = path
    return selects
