r"""JSON text to a Variant, strictly by RFC 8259.

Owns the grammar, the rules below and the error messages; `kernels` implements the same rules. Leaves the canonical
bytes to `walk`.

**Numbers.** The type of a number depends only on its text:

=========================================  =======================================================================
Text                                       Variant
=========================================  =======================================================================
no fraction, no exponent, within int64     narrowest of int8, int16, int32, int64 (``-0`` is int8 0)
no fraction, no exponent, up to 38 digits  decimal16 of scale 0
fraction, no exponent, up to 38 digits     decimal: unscaled = all digits, scale = digits after the point, both as
and scale up to 38, ``floats="decimal"``   written (``1.50`` is 150 scale 2, ``1.0`` is 10 scale 1, ``0.00`` and
                                           ``-0.00`` are 0 scale 2)
any other                                  double: what Python's ``float()`` gives; ``1e400`` is Infinity and
                                           ``1e-400`` is 0.0, as in Spark and Python
=========================================  =======================================================================

*Digits* are counted without the leading zeros of the number (``0.001`` has one digit), but with trailing zeros; zero
has one digit. A decimal is decimal4, decimal8 or decimal16 if both its digits *and* its scale are at most 9, 18 or 38
(Spark treats a decimal4 of scale 10 as malformed). With ``floats="double"`` every number with a fraction is a double;
integers are as above. Spark 4.3 follows the same rules.

**Other rules.** Of duplicate keys, compared after unescaping, the last value is used. Strings must be UTF-8. A byte
order mark, NaN, Infinity, comments and whitespace other than space, tab, LF and CR are errors. Depth counts open
containers:
``max_depth=1`` accepts ``[1]`` and rejects ``[[1]]``.

**Reasons** of a `JsonError`: ``unexpected-end``, ``unexpected-byte`` (also words such as ``nul`` and ``NaN``),
``bad-number``, ``bad-escape``, ``lone-surrogate``, ``control-character``, ``bad-utf8``, ``byte-order-mark``,
``trailing-data``, ``duplicate-key``, ``depth``, ``too-large``. The offset is the position of the first invalid byte; of
the backslash for escapes and surrogates; of the opening quote for duplicate keys; and the length of the text if it ends
too early.
"""

from __future__ import annotations

import re
from typing import Literal, NoReturn

from parquet_variant.encoding import scalars
from parquet_variant.encoding.variant import Variant
from parquet_variant.encoding.walk import Node, encode_value, put
from parquet_variant.errors import JsonError, check_choice, check_count
from parquet_variant.support.records import Record
from parquet_variant.types import VariantType

MAX_SIZE = 128 << 20
MAX_DEPTH_OPTION = 1_000_000
_MAX_SIZE_OPTION = 1 << 62

_BLANKS = re.compile(rb"[ \t\n\r]*")
_LITERAL_TEXT = re.compile(rb'[^"\\\x00-\x1f]*')
_DIGITS = re.compile(rb"[0-9]*")
_HEX4 = re.compile(rb"[0-9A-Fa-f]{4}")
_WORD = re.compile(rb"[A-Za-z]{1,10}")
_WORDS = {
    b"null": scalars.Scalar(VariantType.NULL, None),
    b"true": scalars.Scalar(VariantType.BOOLEAN, True),
    b"false": scalars.Scalar(VariantType.BOOLEAN, False),
}
_ESCAPES = {
    ord('"'): '"', ord("\\"): "\\", ord("/"): "/", ord("b"): "\b", ord("f"): "\f", ord("n"): "\n", ord("r"): "\r",
    ord("t"): "\t",
}  # fmt: skip
_OPENERS = frozenset(b"[{")
_EXPONENT = frozenset(b"eE")
_SIGNS = frozenset(b"+-")
_CUT_OFF_ESCAPE = re.compile(rb"\\(?:u[0-9A-Fa-f]{0,3})?")
_REPLACEMENT = "\ufffd"
_BOM = b"\xef\xbb\xbf"


class JsonOptions(Record):
    """The options of reading JSON text, as in `ops.parse_json`. Raises `VariantError` (``bad-option``)."""

    floats: Literal["decimal", "double"] = "decimal"
    on_duplicate_key: Literal["last", "error"] = "last"
    on_lone_surrogate: Literal["error", "replace"] = "error"
    max_depth: int = 1000
    max_size: int = MAX_SIZE

    def __post_init__(self) -> None:
        check_choice("floats", self.floats, ("decimal", "double"))
        check_choice("on_duplicate_key", self.on_duplicate_key, ("last", "error"))
        check_choice("on_lone_surrogate", self.on_lone_surrogate, ("error", "replace"))
        check_count("max_depth", self.max_depth, 0, MAX_DEPTH_OPTION)
        check_count("max_size", self.max_size, 1, _MAX_SIZE_OPTION)


def parse_json(text: str | bytes, options: JsonOptions | None = None) -> Variant:
    """Return the canonical Variant of a JSON text; bytes must be UTF-8.

    Raises `JsonError` with the byte offset and the reason of the fault.

    >>> parse_json('{"b": 1.50, "a": [true, 1e3]}').to_python()
    {'a': [True, 1000.0], 'b': Decimal('1.50')}
    >>> parse_json("[1,]")
    Traceback (most recent call last):
    parquet_variant.errors.JsonError: unexpected ']': expected a value (byte offset 3)
    """
    options = options or JsonOptions()
    replace = options.on_lone_surrogate == "replace"
    data = _utf8(text, replace) if isinstance(text, str) else bytes(memoryview(text))
    if len(data) > options.max_size:
        message = f"the text has {len(data)} bytes, more than max_size={options.max_size}"
        raise JsonError(message, reason="too-large", offset=0)
    return Variant(*_Reader(data, options).document())


def _utf8(text: str, replace: bool) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as err:
        if replace:
            # Each is replaced: a high and a low surrogate next to each other in a str are still two lone surrogates.
            return re.sub("[\ud800-\udfff]", _REPLACEMENT, text).encode()
        offset = len(text[: err.start].encode())
        message = "the text has a lone surrogate: use on_lone_surrogate='replace' to replace it"
        raise JsonError(message, reason="lone-surrogate", offset=offset) from None


def _closer(container: list[Node] | dict[str, Node]) -> int:
    return ord("}" if isinstance(container, dict) else "]")


class _Reader:
    """Parser of one text; ``at`` is the position of the next byte."""

    def __init__(self, data: bytes, options: JsonOptions) -> None:
        self.data = data
        self.at = 0
        self.decimals = options.floats == "decimal"
        self.unique_keys = options.on_duplicate_key == "error"
        self.replace = options.on_lone_surrogate == "replace"
        self.max_depth = options.max_depth

    def fail(self, message: str, reason: str, at: int | None = None) -> NoReturn:
        raise JsonError(message, reason=reason, offset=self.at if at is None else at)

    def unexpected(self, expected: str, reason: str = "unexpected-byte") -> NoReturn:
        """Raise the error for the next byte."""
        if self.at >= len(self.data):
            self.fail(f"unexpected end of the text: expected {expected}", "unexpected-end")
        word = _WORD.match(self.data, self.at)
        byte = self.data[self.at]
        token = repr(word[0].decode() if word else chr(byte)) if 0x20 <= byte < 0x7F else f"byte 0x{byte:02X}"
        if word and word[0] in (b"NaN", b"Infinity"):
            expected += "; JSON has no NaN and no infinity: write null or a string"
        self.fail(f"unexpected {token}: expected {expected}", reason)

    def blanks(self) -> int:
        """Skip whitespace and return the next byte; -1 at the end of the text."""
        blanks = _BLANKS.match(self.data, self.at)
        assert blanks is not None
        self.at = blanks.end()
        return self.byte()

    def byte(self) -> int:
        return self.data[self.at] if self.at < len(self.data) else -1

    def document(self) -> tuple[bytes, bytes]:
        if self.data.startswith(_BOM):
            self.fail("the text starts with a byte order mark: remove it", "byte-order-mark")
        root: list[Node] = []
        open_containers: list[list[Node] | dict[str, Node]] = []
        key = ""
        while True:
            byte = self.blanks()
            parent = open_containers[-1] if open_containers else root
            if byte in _OPENERS:
                if len(open_containers) >= self.max_depth:
                    self.fail(f"the text is nested deeper than max_depth={self.max_depth}: increase max_depth", "depth")
                self.at += 1
                container: list[Node] | dict[str, Node] = [] if byte == ord("[") else {}
                put(parent, key, container)
                open_containers.append(container)
                if self.blanks() != _closer(container):
                    if isinstance(container, dict):
                        key = self.key("a key or '}'", container)
                    continue
            else:
                put(parent, key, scalars.encode_scalar(*self.scalar(byte)))
            while True:
                byte = self.blanks()
                if not open_containers:
                    if byte >= 0:
                        self.unexpected("the end of the text", "trailing-data")
                    return encode_value(root[0])
                container = open_containers[-1]
                if byte != _closer(container):
                    break
                self.at += 1
                open_containers.pop()
            if byte != ord(","):
                self.unexpected(f"',' or '{chr(_closer(container))}'")
            self.at += 1
            if isinstance(container, dict):
                self.blanks()
                key = self.key("a key", container)

    def key(self, expected: str, fields: dict[str, Node]) -> str:
        start = self.at
        if self.byte() != ord('"'):
            self.unexpected(expected)
        name = self.string()
        if self.unique_keys and name in fields:
            self.fail(
                f"key {name[:80]!r} occurs twice in an object: use on_duplicate_key='last' to keep the last value",
                "duplicate-key",
                start,
            )
        if self.blanks() != ord(":"):
            self.unexpected("':'")
        self.at += 1
        return name

    def scalar(self, byte: int) -> scalars.Scalar:
        if byte == ord('"'):
            return scalars.Scalar(VariantType.STRING, self.string())
        if byte == ord("-") or ord("0") <= byte <= ord("9"):
            return self.number()
        for word, scalar in _WORDS.items():
            if self.data.startswith(word, self.at):
                self.at += len(word)
                return scalar
        return self.unexpected("a value")

    def string(self) -> str:
        """Read the string whose opening quote is the next byte."""
        self.at += 1
        parts: list[str] = []
        while True:
            literal = _LITERAL_TEXT.match(self.data, self.at)
            assert literal is not None
            try:
                parts.append(literal[0].decode())
            except UnicodeDecodeError as err:
                self.fail(f"the string is not UTF-8: {err.reason}", "bad-utf8", self.at + err.start)
            self.at = literal.end()
            match self.byte():
                case 0x22:
                    self.at += 1
                    return "".join(parts)
                case 0x5C:
                    parts.append(self.escape())
                case -1:
                    self.unexpected("the closing '\"' of a string")
                case control:
                    if control in b"\n\r":
                        problem = "the line ends inside a string: it is cut off, or a line break is not written as \\n"
                    else:
                        problem = f"control character 0x{control:02X} in a string: expected the escape \\u{control:04x}"
                    self.fail(problem, "control-character")

    def escape(self) -> str:
        start = self.at
        self.at += 1
        letter = self.byte()
        if letter in _ESCAPES:
            self.at += 1
            return _ESCAPES[letter]
        if letter != ord("u"):
            self.bad_escape(start, 'one of "\\/bfnrtu after the backslash')
        self.at += 1
        unit = self.hex4(start)
        if not 0xD800 <= unit < 0xE000:
            return chr(unit)
        if unit < 0xDC00 and self.data.startswith(b"\\u", self.at):
            second = self.at
            self.at += 2
            low = self.hex4(second)
            if 0xDC00 <= low < 0xE000:
                return chr(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00))
            self.at = second  # the second escape is read on its own
        if not self.replace:
            self.fail(f"lone surrogate \\u{unit:04x}: expected a surrogate pair", "lone-surrogate", start)
        return _REPLACEMENT

    def hex4(self, start: int) -> int:
        digits = _HEX4.match(self.data, self.at)
        if digits is None:
            self.bad_escape(start, "four hexadecimal digits after \\u")
        self.at += 4
        return int(digits[0], 16)

    def bad_escape(self, start: int, expected: str) -> NoReturn:
        if _CUT_OFF_ESCAPE.fullmatch(self.data, start) is None:
            self.fail(f"unknown escape: expected {expected}", "bad-escape", start)
        self.at = len(self.data)
        self.unexpected(expected)

    def digits(self) -> bytes:
        """Read one digit or more."""
        digits = _DIGITS.match(self.data, self.at)
        assert digits is not None
        self.at = digits.end()
        if not digits[0]:
            self.unexpected("a digit", "bad-number")
        return digits[0]

    def number(self) -> scalars.Scalar:
        start = self.at
        if self.byte() == ord("-"):
            self.at += 1
        leading_zero = self.byte() == ord("0")
        integer = self.digits()
        if leading_zero and len(integer) > 1:
            self.at -= len(integer) - 1
            self.fail("a number has a leading zero: expected '.', an exponent or the end of the number", "bad-number")
        fraction = b""
        if self.byte() == ord("."):
            self.at += 1
            fraction = self.digits()
        has_exponent = self.byte() in _EXPONENT
        if has_exponent:
            self.at += 1
            if self.byte() in _SIGNS:
                self.at += 1
            self.digits()
        is_exact = not has_exponent and (not fraction or self.decimals)
        significant = (integer + fraction).lstrip(b"0")
        if not is_exact or len(significant) > scalars.MAX_DIGITS or len(fraction) > scalars.MAX_SCALE:
            return scalars.Scalar(VariantType.DOUBLE, float(self.data[start : self.at]))
        unscaled = int(significant or b"0") * (-1 if self.data[start] == ord("-") else 1)
        return scalars.narrowest_decimal(unscaled, len(fraction)) if fraction else scalars.narrowest_integer(unscaled)
