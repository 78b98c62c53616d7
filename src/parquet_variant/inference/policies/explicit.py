"""`ExplicitPolicy`: shred what the user says.

Owns accepting a schema in any notation, and its effect on the data. `ShreddingSchema` reads the notations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from parquet_variant.inference.policies.decision import InferenceResult, result_of
from parquet_variant.inference.profile import Profile
from parquet_variant.layouts.shredding_schema import ShreddingSchema


@dataclass(frozen=True, slots=True)
class ExplicitPolicy:
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
