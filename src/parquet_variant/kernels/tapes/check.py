"""Check the values of a tape against the rules of their paths, in one pass over its nodes.

Owns the rules that a node decides by itself: its kind, its range, its length. Nodes whose rules need more than that
(patterns, enumerations, wide decimals) are returned as undecided. `contracts` makes the tables and decides the rest.
"""

from __future__ import annotations

from parquet_variant.kernels.json.string_forms import string_form
from parquet_variant.kernels.machine_code.functions import helper, kernel, numbered
from parquet_variant.kernels.machine_code.signatures import Int64s, Int64Table
from parquet_variant.kernels.memory import KIND, equal, load_u8
from parquet_variant.kernels.native_vectors import Memory, export_table, new_table, reserve_rows
from parquet_variant.kernels.tapes.tape import DROPPED, path_of

# Columns of the rules table, one row per rule set. KINDS is a bit set of the allowed kinds; NUMBERS is set if numbers
# have bounds. CHOICES to CHOICES_END are the rows of the allowed strings, if any, in the choices table.
RULE = numbered(
    "KINDS WHOLE NULLABLE NUMBERS LENGTH_MIN LENGTH_MAX FORM CHOICES CHOICES_END UNDECIDED_STRINGS UNDECIDED_OTHERS"
)
# Results. NONE and UNDECIDED are not violations: an undecided node has to be checked by its value.
RESULT = numbered(
    "NONE UNDECIDED TYPE NULLABLE MIN MAX MIN_LENGTH MAX_LENGTH MIN_ITEMS MAX_ITEMS FORMAT EXTRA_FIELDS VALUES"
)
# Columns of the table of inclusive bounds: the lower bounds of unscaled values of 64 bits by scale, of doubles in the
# order of `_ordered_bits`, of times in the units of their kinds, and of elements of arrays; then the upper bounds.
SCALES = 19
DOUBLES, DAYS, MICROS, NANOS, ITEMS, BOUNDS = range(SCALES, SCALES + 6)
# The first column of the bounds of each kind; -1 for kinds without bounds.
_FIRST_BOUND = tuple(
    {
        **dict.fromkeys((KIND.INT8, KIND.INT16, KIND.INT32, KIND.INT64, KIND.DECIMAL4, KIND.DECIMAL8), 0),
        **dict.fromkeys((KIND.TIMESTAMP, KIND.TIMESTAMP_NTZ), MICROS),
        **dict.fromkeys((KIND.TIMESTAMP_NANOS, KIND.TIMESTAMP_NTZ_NANOS), NANOS),
        KIND.DOUBLE: DOUBLES, KIND.DATE: DAYS, KIND.ARRAY: ITEMS,
    }.get(kind, -1)
    for kind in KIND
)  # fmt: skip
# In `rule_of_path`: a path without rules, and a path that must not exist.
NO_RULES, FORBIDDEN = -1, -2

_LARGEST = 2**63 - 1
_EXPONENT_BIAS, _FRACTION_BITS, _SPECIAL = 1023, 52, 0x7FF


@helper
def _ordered_bits(bits: int) -> int:
    """Return a number with the order of the double that has these bits; NaN is outside the infinities."""
    return bits ^ ((bits >> 63) & _LARGEST)


@helper
def _is_whole_double(bits: int) -> bool:
    """Return whether a double has no fraction."""
    exponent = (bits >> _FRACTION_BITS) & _SPECIAL
    if exponent == _SPECIAL:
        return False
    if exponent >= _EXPONENT_BIAS + _FRACTION_BITS:
        return True
    if exponent < _EXPONENT_BIAS:
        return bits << 1 == 0
    return bits & ((1 << (_EXPONENT_BIAS + _FRACTION_BITS - exponent)) - 1) == 0


@helper
def _is_whole_decimal(unscaled: int, scale: int) -> bool:
    """Return whether a decimal of 64 bits has no fraction."""
    for _ in range(scale):
        if unscaled % 10 != 0:
            return False
        unscaled //= 10
    return True


@helper
def _characters(address: int, size: int) -> int:
    """Return the number of characters of a string in UTF-8."""
    count = 0
    for i in range(size):
        count += load_u8(address + i) & 0xC0 != 0x80
    return count


@helper
def _check_string(address: int, size: int, rules: Int64Table, rule: int) -> int:
    """Return the rule on length that a string breaks, or NONE."""
    shortest, longest = rules[rule, RULE.LENGTH_MIN], rules[rule, RULE.LENGTH_MAX]
    # A character takes one to four bytes, so that the number of bytes usually decides.
    if size < shortest or (size < 4 * shortest and _characters(address, size) < shortest):
        return RESULT.MIN_LENGTH
    if size > longest and _characters(address, size) > longest:
        return RESULT.MAX_LENGTH
    return RESULT.NONE


@helper
def _is_choice(address: int, size: int, choices: Int64Table, start: int, stop: int) -> bool:
    """Return whether a string is one of the allowed strings."""
    for choice in range(start, stop):
        if choices[choice, 1] == size and equal(choices[choice, 0], address, size):
            return True
    return False


@helper
def _check_value(kind: int, scale: int, a: int, b: int, rules: Int64Table, rule: int, bounds: Int64Table) -> int:
    """Return the first rule on range or length that a value of an allowed kind breaks, UNDECIDED, or NONE."""
    if kind == KIND.STRING:
        return _check_string(a, b, rules, rule)
    if kind == KIND.FLOAT or kind == KIND.DECIMAL16 or scale >= SCALES:
        decided = rules[rule, RULE.NUMBERS] == 0 and rules[rule, RULE.WHOLE] == 0
        return RESULT.NONE if decided else RESULT.UNDECIDED
    if rules[rule, RULE.WHOLE] != 0 and KIND.INT8 <= kind <= KIND.DECIMAL8:
        is_integer = _is_whole_double(a) if kind == KIND.DOUBLE else scale == 0 or _is_whole_decimal(a, scale)
        if not is_integer:
            return RESULT.TYPE
    if _FIRST_BOUND[kind] < 0:
        return RESULT.NONE
    bound, value = _FIRST_BOUND[kind] + scale, _ordered_bits(a) if kind == KIND.DOUBLE else a
    if value < bounds[rule, bound]:
        return RESULT.MIN_ITEMS if kind == KIND.ARRAY else RESULT.MIN
    if value > bounds[rule, BOUNDS + bound]:
        return RESULT.MAX_ITEMS if kind == KIND.ARRAY else RESULT.MAX
    return RESULT.NONE


@kernel
def check_nodes(
    memory: Memory,
    nodes: Int64Table,
    row_start: Int64s,
    rule_of_path: Int64s,
    rules: Int64Table,
    bounds: Int64Table,
    choices: Int64Table,
    kinds: Int64Table,
) -> tuple[int, int, int]:
    """Check every node of a tape; return a table of ``(row, node, result)`` for `adopt`.

    A node is in the table once for each rule that it breaks, and once as UNDECIDED if its value has to be checked.
    Repeated fields, which are not part of the value, are skipped.

    `rule_of_path`: the row of `rules` for each path, NO_RULES or FORBIDDEN.
    `rules`: the columns named by RULE.
    `bounds`: the bounds of values, as described above.
    `choices`: the addresses and sizes of allowed strings.
    `kinds`: one row per row of `rules`; the number of values of each kind is added.
    """
    table = new_table(memory, 64, 3)
    count = 0
    for row in range(len(row_start) - 1):
        node, stop = row_start[row], row_start[row + 1]
        while node < stop:
            tag = nodes[node, 0]
            rule = rule_of_path[path_of(tag)]
            if tag & DROPPED != 0:
                node = nodes[node, 3]
                continue
            if rule == NO_RULES:
                node += 1
                continue
            of_value, of_form, of_choice, pending = RESULT.NONE, RESULT.NONE, RESULT.NONE, RESULT.NONE
            step = node + 1
            if rule == FORBIDDEN:
                of_value = RESULT.EXTRA_FIELDS
                step = nodes[node, 3]
            else:
                kind, a, b = tag & 0xFF, nodes[node, 1], nodes[node, 2]
                kinds[rule, kind] += 1
                if kind == KIND.NULL:
                    of_value = RESULT.NONE if rules[rule, RULE.NULLABLE] != 0 else RESULT.NULLABLE
                elif (rules[rule, RULE.KINDS] >> kind) & 1 == 0:
                    of_value = RESULT.TYPE
                else:
                    of_value = _check_value(kind, (tag >> 8) & 0xFF, a, b, rules, rule, bounds)
                    if kind == KIND.STRING and rules[rule, RULE.FORM] >= 0:
                        form, _, _, _, _ = string_form(a, b)
                        of_form = RESULT.NONE if form == rules[rule, RULE.FORM] else RESULT.FORMAT
                    if kind == KIND.STRING:
                        start, end = rules[rule, RULE.CHOICES], rules[rule, RULE.CHOICES_END]
                        if start < end and not _is_choice(a, b, choices, start, end):
                            of_choice = RESULT.VALUES
                        if rules[rule, RULE.UNDECIDED_STRINGS] != 0:
                            pending = RESULT.UNDECIDED
                    elif rules[rule, RULE.UNDECIDED_OTHERS] != 0 and of_value != RESULT.TYPE:
                        pending = RESULT.UNDECIDED
                    if of_value == RESULT.UNDECIDED:
                        of_value, pending = RESULT.NONE, RESULT.UNDECIDED
            for result in (of_value, of_form, of_choice, pending):
                if result != RESULT.NONE:
                    table = reserve_rows(table, count + 1)
                    table[count, 0], table[count, 1], table[count, 2] = row, node, result
                    count += 1
            node = step
    return export_table(table, count)
