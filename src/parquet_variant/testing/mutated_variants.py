"""The strategy `mutated_variants`: bytes that were a Variant before something happened to them."""

from __future__ import annotations

from typing import Any

from parquet_variant.encoding.variant import Variant
from parquet_variant.testing.lazy import strategies
from parquet_variant.testing.variants import variants


def mutated_variants(*, max_leaves: int = 20, max_changes: int = 4) -> Any:
    """Variants with bytes flipped, overwritten, cut off, repeated or appended; a few are still valid.

    Parameters
    ----------
    max_leaves
        About the most scalars in one value before the change.
    max_changes
        The most changes to one value.

    Examples
    --------
    >>> mutated_variants() is not None
    True
    """
    st = strategies()
    change = st.tuples(
        st.booleans(),
        st.sampled_from(["flip", "set", "cut", "repeat", "append"]),
        st.integers(0, 1 << 16),
        st.integers(0, 255),
    )
    return st.builds(_changed, variants(max_leaves=max_leaves), st.lists(change, min_size=1, max_size=max_changes))


def _changed(variant: Variant, changes: list[tuple[bool, str, int, int]]) -> Variant:
    parts = [bytearray(variant.metadata), bytearray(variant.value)]
    for in_value, what, where, byte in changes:
        part = parts[in_value]
        at = where % len(part) if part else 0
        if what == "append":
            part.append(byte)
        elif not part:
            continue
        elif what == "flip":
            part[at] ^= 1 << byte % 8
        elif what == "set":
            part[at] = byte
        elif what == "cut":
            del part[at:]
        else:
            part[at:at] = part[at:]
    return Variant(bytes(parts[0]), bytes(parts[1]))
