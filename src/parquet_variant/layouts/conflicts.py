"""What happens when a shredded value contradicts itself.

Owns the two policies, the reasons and their wording. Leaves finding the contradictions to the layouts.

===========================  ===============================================================================
reason                       meaning
===========================  ===============================================================================
``both-set``                 two columns that exclude each other are set
``non-object-value``         fields are shredded, and the residual is not an object
``shredded-field-in-value``  the residual of an object has a field that has a column of its own
``object-in-value``          the residual is a whole object where objects are shredded
``array-in-value``           the residual is a whole array where arrays are shredded
``array-size``               the residual of an array has another number of elements (draft ``paths``)
===========================  ===============================================================================
"""

from __future__ import annotations

from typing import get_args

from parquet_variant.choices import OnConflict
from parquet_variant.encoding.variant import Variant
from parquet_variant.errors import ConflictError, check_choice
from parquet_variant.layouts.trees import Tree, fields_of_object
from parquet_variant.path import VariantPath
from parquet_variant.types import VariantType

_MESSAGES = {
    "both-set": "two columns are set that exclude each other",
    "non-object-value": "fields are shredded, but the value beside them is not an object",
    "shredded-field-in-value": "the value beside the shredded fields has one of them too",
    "object-in-value": "an object is stored in the value column, though objects are shredded here",
    "array-in-value": "an array is stored in the value column, though arrays are shredded here",
    "array-size": "the value beside the shredded array is not an array of that size",
}


class Policy:
    """How to go on when a conflict is met.

    ``"error"``: raise `ConflictError`; ``"typed"``: the typed columns are right, as the specification says for engines
    that choose to go on; a value that has no typed column set is taken as it is.
    """

    def __init__(self, on_conflict: OnConflict) -> None:
        check_choice("on_conflict", on_conflict, get_args(OnConflict))
        self.goes_on = on_conflict == "typed"

    def meet(self, reason: str, path: VariantPath) -> None:
        """Raise `ConflictError`, or return to go on with what is typed."""
        if not self.goes_on:
            raise ConflictError(
                f"{_MESSAGES[reason]}; on_conflict='typed' goes on with the typed columns",
                reason=reason,
                path=str(path),
            )

    def fields_left(self, residual: Variant | None, path: VariantPath) -> dict[str, Tree]:
        """The fields beside the shredded ones, of a residual that must be an object if there is one."""
        if residual is not None and residual.type != VariantType.OBJECT:
            self.meet("non-object-value", path)
            return {}
        return {} if residual is None else {**fields_of_object(residual)}
