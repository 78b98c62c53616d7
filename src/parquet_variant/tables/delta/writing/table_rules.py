"""The rules of a Delta table: constraints, invariants, generated columns and defaults, from its metadata.

Leaves applying rules to rows to `tables.rules`.
"""

from __future__ import annotations

import json
from typing import Any

from parquet_variant.errors import DeltaError
from parquet_variant.tables.delta.protocol.actions import Metadata, Protocol
from parquet_variant.tables.delta.protocol.column_metadata import DEFAULT, GENERATION, INVARIANT
from parquet_variant.tables.delta.protocol.features import supports
from parquet_variant.tables.delta.protocol.schema import parse_schema
from parquet_variant.tables.delta.protocol.table_properties import CONSTRAINT
from parquet_variant.tables.rules import Rules
from parquet_variant.tables.schema import StructType


def rules_of(protocol: Protocol, metadata: Metadata) -> Rules:
    """Return the rules that a writer of a table must obey."""
    schema = parse_schema(metadata.schema_string)
    checks: list[tuple[str, str]] = []
    if supports(protocol, "checkConstraints"):
        checks += [(key, text) for key, text in metadata.configuration.items() if key.startswith(CONSTRAINT)]
    if supports(protocol, "invariants"):
        checks += [
            (f"of column {f.name}", _invariant(f.metadata[INVARIANT])) for f in schema.fields if INVARIANT in f.metadata
        ]
        _refuse_nested(schema, INVARIANT, "an invariant")
    generated: tuple[tuple[str, str], ...] = ()
    if supports(protocol, "generatedColumns"):
        generated = _expressions(schema, GENERATION)
        _refuse_nested(schema, GENERATION, "a generation expression")
    defaults = _expressions(schema, DEFAULT) if supports(protocol, "allowColumnDefaults") else ()
    return Rules(tuple(checks), generated, defaults)


def _expressions(schema: StructType, key: str) -> tuple[tuple[str, str], ...]:
    return tuple((f.name, str(f.metadata[key])) for f in schema.fields if key in f.metadata)


def _refuse_nested(schema: StructType, key: str, description: str) -> None:
    for f in schema.fields:
        if isinstance(f.type, StructType):
            for field in f.type.fields:
                if key in field.metadata:
                    raise DeltaError(
                        f"column {f.name}.{field.name} has {description}, which is not supported inside structs",
                        reason="unsupported-feature",
                    )
            _refuse_nested(f.type, key, description)


def _invariant(text: Any) -> str:
    try:
        return str(json.loads(text)["expression"]["expression"])
    except (ValueError, KeyError, TypeError):
        raise DeltaError(f"the invariant {text!r} cannot be parsed", reason="unsupported-feature") from None
