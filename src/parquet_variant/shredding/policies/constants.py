"""The constants of a policy: what each may be.

Owns the check, by name and default. Leaves what the constants mean to the policies.
"""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

from parquet_variant.errors import VariantError

_SHARES = ("share", "filled", "alike", "common")


def check_constants(policy: Any) -> None:
    """Refuse a share that is not from 0 to 1, and a count that is negative or no whole number.

    Raises `VariantError` with reason ``"bad-policy"``.

    >>> from parquet_variant.shredding.policies.auto import AutoPolicy
    >>> AutoPolicy(min_row_share=2)
    Traceback (most recent call last):
    parquet_variant.errors.VariantError: min_row_share is 2: give a share from 0 to 1, such as 0.15
    """
    for each in fields(policy):
        if isinstance(each.default, bool) or not isinstance(each.default, int | float):
            continue
        value = getattr(policy, each.name)
        number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if each.name.endswith(_SHARES):
            if not number or not 0 <= value <= 1:
                raise _bad(f"{each.name} is {value!r}: give a share from 0 to 1, such as {each.default}")
        elif not number or value < 0 or (isinstance(each.default, int) and value != int(value)):
            raise _bad(f"{each.name} is {value!r}: give a number from 0 on, such as {each.default}")


def _bad(message: str) -> VariantError:
    return VariantError(message, reason="bad-policy")
