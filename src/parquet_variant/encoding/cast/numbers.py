"""Numbers from text, and conversions to narrower numbers, as Spark casts them.

Owns the texts of numbers and booleans, and rounding to a narrower type. Leaves types and nulls to `scalars`, and
writing numbers to `json_writer`.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal, DecimalException
from fractions import Fraction

import numpy as np

# The characters that Java's String.trim removes; Spark also removes DEL where it reads bytes itself.
_JAVA_BLANKS = "".join(map(chr, range(0x21)))
BLANKS = _JAVA_BLANKS + "\x7f"

_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_HEX_FLOAT = re.compile(r"[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")
_INFINITE = {
    sign + name: value
    for sign, value in (("", float("inf")), ("+", float("inf")), ("-", float("-inf")))
    for name in ("inf", "infinity")
}
# More digits than any decimal type, so that rounding to a scale is exact before the precision is checked.
_EXACT = Context(prec=400, rounding=ROUND_HALF_UP, Emin=-(10**9), Emax=10**9)
# int() does not accept longer texts, and no target holds such a number.
_MAX_DIGITS = 4000


def text_to_bool(text: str) -> bool | None:
    """Return the boolean of a text, in any case; None if the text is not a boolean.

    >>> text_to_bool(" YES "), text_to_bool("0"), text_to_bool("on")
    (True, False, None)
    """
    word = text.strip(BLANKS).lower()
    return True if word in _TRUE else False if word in _FALSE else None


def text_to_integer(text: str) -> int | None:
    """Return the integer of a text; None for any other text, such as a number with a decimal point.

    >>> text_to_integer(" +12 "), text_to_integer("1.0")
    (12, None)
    """
    word = text.strip(BLANKS)
    if not _INTEGER.fullmatch(word) or len(word.lstrip("+-").lstrip("0")) > _MAX_DIGITS:
        return None
    sign = -1 if word[0] == "-" else 1
    return sign * int(word.lstrip("+-").lstrip("0") or "0")


def text_to_decimal(text: str) -> Decimal | None:
    """Return the exact decimal of a text; None if the text is not a number, or the exponent is out of range.

    >>> text_to_decimal("1.50"), text_to_decimal("1e3"), text_to_decimal("NaN")
    (Decimal('1.50'), Decimal('1E+3'), None)
    """
    word = text.strip(_JAVA_BLANKS)
    if not _DECIMAL.fullmatch(word):
        return None
    try:
        return Decimal(word)
    except DecimalException:
        return None


def text_to_double(text: str) -> float | None:
    """Return the double of a text in Java's grammar: suffixes d and f, hexadecimal, inf and nan in any case.

    >>> text_to_double("1.5d"), text_to_double("-Infinity"), text_to_double("1_0")
    (1.5, -inf, None)
    """
    word = text.strip(_JAVA_BLANKS)
    special = word.lower()
    if special in _INFINITE:
        return _INFINITE[special]
    if special == "nan":
        return float("nan")
    bare = word[:-1] if word[-1:] in ("d", "D", "f", "F") else word
    if _DECIMAL.fullmatch(bare):
        return float(bare)
    if _HEX_FLOAT.fullmatch(bare):
        try:
            return float.fromhex(bare)
        except OverflowError:
            return float("-inf") if bare[0] == "-" else float("inf")
    return None


def text_to_float32(text: str) -> float | None:
    """Return the float (as the equal double) of a text, rounded once."""
    double = text_to_double(text)
    if double is None or not np.isfinite(double):
        return double
    exact = text_to_decimal(text.strip(_JAVA_BLANKS).rstrip("dDfF"))
    # Rounding through the double can be wrong only for a tie between two floats.
    if exact is None or len(exact.as_tuple().digits) <= 15 or double == 0:
        return float(_to_float32(double))
    return nearest_float32(Fraction(exact))


def nearest_float32(exact: Fraction) -> float:
    """Return the float (as the equal double) nearest to a number, ties to even; infinity beyond the largest float.

    >>> nearest_float32(Fraction(2**24 + 1)), nearest_float32(Fraction(10**39))
    (16777216.0, inf)
    """
    try:
        double = exact.numerator / exact.denominator
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")
    near = _to_float32(double)
    if not np.isfinite(near) or Fraction(float(near)) == exact:
        return float(near)
    candidates = [near, np.nextafter(near, np.float32("inf")), np.nextafter(near, np.float32("-inf"))]
    finite = [candidate for candidate in candidates if np.isfinite(candidate)]
    return float(min(finite, key=lambda c: (abs(Fraction(float(c)) - exact), int(c.view(np.uint32)) & 1)))


def _to_float32(double: float) -> np.float32:
    with np.errstate(over="ignore", under="ignore"):
        return np.float32(double)


def integer_of_float(number: float, low: int, high: int) -> int | None:
    """Return a float without its fraction; None for NaN and for values outside ``low`` to ``high``.

    The bounds are compared as doubles, as in Java: 2**63 becomes the largest int64.

    >>> integer_of_float(-1.5, -128, 127), integer_of_float(2.0**63, -(2**63), 2**63 - 1) == 2**63 - 1
    (-1, True)
    """
    if not np.isfinite(number):
        return None
    integer = int(number)
    if float(np.floor(number)) <= float(high) and float(np.ceil(number)) >= float(low):
        return min(max(integer, low), high)
    return None


def round_to_decimal(exact: Decimal, precision: int, scale: int) -> int | None:
    """Return the unscaled integer of a number rounded half up to a scale; None if it has too many digits.

    >>> round_to_decimal(Decimal("99.995"), 5, 2), round_to_decimal(Decimal("1000"), 5, 2)
    (10000, None)
    """
    if exact.is_zero():
        return 0
    if exact.adjusted() >= precision - scale:
        return None
    if exact.adjusted() < -scale - 1:
        return 0
    # Digits far below the last digit of the scale cannot change a tie, so they are reduced to one sticky digit.
    unscaled = int(_drop_trailing_zeros(exact, scale).scaleb(scale, _EXACT).to_integral_value(ROUND_HALF_UP, _EXACT))
    return unscaled if abs(unscaled) < 10**precision else None


def _drop_trailing_zeros(exact: Decimal, scale: int) -> Decimal:
    sign, digits, exponent = exact.as_tuple()
    assert isinstance(exponent, int)
    extra = -exponent - scale - 2
    if extra <= 0:
        return exact
    sticky = int(any(digits[len(digits) - extra :]))
    leading = digits[: max(len(digits) - extra, 0)]
    return Decimal((sign, (*leading, sticky), exponent + extra - 1))
