"""Texts that become dates, timestamps, UUIDs or binary, where that was asked for and the text comes back unchanged.

Owns which paths are meant, and the condition: `to_json` of the value is the text, byte for byte; any other text stays
one. Leaves values to the tape, and what is shredded to the policies.
"""

from __future__ import annotations

import fnmatch
import re
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from parquet_variant.errors import PathError, VariantError, check_mapping
from parquet_variant.kernels.memory import copy_spans
from parquet_variant.kernels.tapes.tape import DROPPED, PATH, Tape
from parquet_variant.types import PrimitiveId

Int64s = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
# What was found: for each rule how many texts became typed, and how many stayed text.
Counts = Counter[tuple[str, str, bool]]

_EVERYWHERE = "any path"
# A step of a pattern: `.name`, `..name`, `[*]` or `['name']`; names may have `*` and `?`.
_STEP = re.compile(r"""(\.\.?)([^.\[\]'"]+)|\[\*\]|\['((?:[^'\\]|\\.)*)'\]""")
_ELEMENT = "\0[*]"
_MICROSECONDS = 1_000_000


@dataclass(frozen=True, slots=True)
class TypedText:
    """What became of the texts at a path or pattern."""

    # The path or pattern as it was given, and the type.
    path: str
    type: str
    # How many texts have the type now; how many stayed text, since `to_json` would write the value in another way.
    typed: int
    left: int

    def __str__(self) -> str:
        stayed = f"; {self.left:,} stayed text: to_json would write them otherwise" if self.left else ""
        return f"{self.typed:,} texts at {self.path} are {self.type}{stayed}"

    @classmethod
    def of_counts(cls, counts: Counts) -> tuple[TypedText, ...]:
        """What the counts of all tasks say, in the order of the rules."""
        rules = dict.fromkeys((path, kind) for path, kind, _ in sorted(counts))
        return tuple(cls(*rule, counts[*rule, True], counts[*rule, False]) for rule in rules)


@dataclass(frozen=True, slots=True)
class TextTypes:
    """Which texts become which type.

    Parameters
    ----------
    types
        Paths or patterns (``$.created_at``, ``$..*_id``, ``$.items[*].at``), each with ``date``, ``timestamp``,
        ``timestamp_ntz``, ``uuid`` or ``binary`` (base64). The first that fits a path counts.
    detect_timestamps
        Whether all other texts that are dates or timestamps become such.

    Raises
    ------
    VariantError
        With reason ``"bad-option"`` for another type.
    PathError
        For what is no pattern.

    Examples
    --------
    >>> rules = TextTypes({"$..*_id": "uuid"}, detect_timestamps=True)
    >>> bool(rules), bool(TextTypes())
    (True, False)
    """

    types: Mapping[str, str] = field(default_factory=dict)
    detect_timestamps: bool = False

    def __post_init__(self) -> None:
        check_mapping("types", self.types)
        for path, kind in self.types.items():
            _pattern(path)
            if str(kind).lower() not in _READERS:
                why = " (to_json writes decimals as numbers, not as text)" if "decimal" in str(kind).lower() else ""
                raise VariantError(
                    f"types has {kind!r} for {path}: a text can be {', '.join(_READERS)}{why}", reason="bad-option"
                )

    def __bool__(self) -> bool:
        return bool(self.types) or self.detect_timestamps

    def apply(self, tape: Tape) -> tuple[Tape, Counts]:
        """The tape with what is typed now, and counts; the nodes of the tape that is given are changed.

        >>> from parquet_variant.functions.parse_json import parse_json
        >>> array = parse_json(['{"at": "2026-01-31"}', '{"at": "2026-02-30"}'], types={"$.at": "date"})
        >>> [each["at"].type.value for each in array], [each.to_json() for each in array]
        (['date', 'string'], ['{"at":"2026-01-31"}', '{"at":"2026-02-30"}'])
        """
        counts: Counts = Counter()
        if not self or not len(tape.nodes):
            return tape, counts
        tags = tape.nodes[:, 0]
        texts = np.flatnonzero(((tags & 0xFF) == PrimitiveId.STRING) & (tags & DROPPED == 0))
        rules = self._rules(tape)
        rule = np.array([-1 if each is None else each for each in rules], np.int64)[(tags[texts] >> 16) & 0xFFFFFFFF]
        kept: list[object] = []
        for number, (path, kind) in enumerate(self.types.items()):
            if len(chosen := texts[rule == number]):
                typed = _typed(tape.nodes, chosen, kind.lower(), kept)
                counts[path, kind.lower(), True] += typed
                counts[path, kind.lower(), False] += len(chosen) - typed
        if self.detect_timestamps:
            rest = texts[rule == -1]
            for kind in ("date", "timestamp", "timestamp_ntz"):
                if typed := _typed(tape.nodes, rest, kind, kept):
                    counts[_EVERYWHERE, kind, True] += typed
                rest = rest[tape.nodes[rest, 0] & 0xFF == PrimitiveId.STRING]
        return (replace(tape, owners=(*tape.owners, *kept)) if kept else tape), counts

    def _rules(self, tape: Tape) -> list[int | None]:
        """For each path of the tape, which of the types is meant."""
        patterns = [_pattern(path) for path in self.types]
        keys = tape.key_list
        spelled: list[str] = []
        rules: list[int | None] = []
        for number, (parent, key) in enumerate(tape.paths[:, [PATH.PARENT, PATH.KEY]].tolist()):
            step = _ELEMENT if key < 0 else f"\0.{keys[key].decode('utf-8', 'replace')}"
            spelled.append(spelled[parent] + step if number else "")
            rules.append(next((at for at, each in enumerate(patterns) if each.fullmatch(spelled[number])), None))
        return rules


@lru_cache(maxsize=256)
def _pattern(path: str) -> re.Pattern[str]:
    """A regular expression over the steps of a path, each of which begins with a NUL."""
    if not path.startswith("$"):
        raise PathError(f"types has {path!r}: a path begins with $, such as $.created_at or $..*_id", offset=0)
    at, parts = 1, []
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise PathError(f"types has {path!r}: write .name, ..name, [*] or ['name']", offset=at)
        dots, name, quoted = step.groups()
        if dots == "..":
            parts.append(r"(?:\x00[^\x00]*)*")
        if quoted is not None:
            parts.append(re.escape("\0." + re.sub(r"\\(.)", r"\1", quoted)))
        elif name is not None:
            glob = fnmatch.translate(name).removeprefix("(?s:").removesuffix(r")\Z").removesuffix(r")\z")
            parts.append(r"\x00\." + glob.replace(".*", r"[^\x00]*"))
        else:
            parts.append(re.escape(_ELEMENT))
        at = step.end()
    return re.compile("".join(parts), re.DOTALL)


def _typed(nodes: Int64s, texts: npt.NDArray[np.intp], kind: str, kept: list[object]) -> int:
    """Give the texts that are such values their type; how many those are."""
    lengths, read = _READERS[kind]
    sizes = nodes[texts, 2]
    typed = 0
    for size in np.unique(sizes).tolist():
        if lengths is None or size in lengths:
            some = texts[sizes == size]
            data = np.empty((len(some), max(size, 1)), np.uint8)
            copy_spans(nodes[some, 1].copy(), nodes[some, 2].copy(), data.ctypes.data)
            typed += read(nodes, some, data[:, :size], kept)
    return typed


def _put(nodes: Int64s, which: npt.NDArray[np.intp], kind: PrimitiveId, values: Int64s, sizes: Int64s | int = 0) -> int:
    nodes[which, 0] = nodes[which, 0] & ~np.int64(0xFF) | int(kind)
    nodes[which, 1] = values
    nodes[which, 2] = sizes
    return len(which)


def _matches(data: Bytes, shape: str) -> npt.NDArray[np.bool_]:
    """Which texts have a shape: ``9`` is a digit, any other character itself."""
    good = np.ones(len(data), np.bool_)
    for column, expected in zip(data.T, shape, strict=True):
        good &= (column - ord("0") < 10) if expected == "9" else (column == ord(expected))
    return good


def _number(data: Bytes, start: int, stop: int) -> Int64s:
    number = np.zeros(len(data), np.int64)
    for column in data.T[start:stop]:
        number = number * 10 + (column - ord("0"))
    return number


def _days(data: Bytes, good: npt.NDArray[np.bool_]) -> Int64s:
    """Days since 1970 of texts that begin with a date; ``good`` loses those whose date there is not."""
    year, month, day = _number(data, 0, 4), _number(data, 5, 7), _number(data, 8, 10)
    good &= (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    months = (np.where(good, year, 1970) - 1970) * 12 + np.where(good, month, 1) - 1
    first = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    following = (months + 1).astype("M8[M]").astype("M8[D]").astype(np.int64)
    days = first + day - 1
    good &= days < following
    return days


def _read_dates(nodes: Int64s, texts: npt.NDArray[np.intp], data: Bytes, kept: list[object]) -> int:
    good = _matches(data, "9999-99-99")
    days = _days(data, good)
    return _put(nodes, texts[good], PrimitiveId.DATE, days[good])


def _read_timestamps(
    nodes: Int64s, texts: npt.NDArray[np.intp], data: Bytes, kept: list[object], *, zone: str, kind: PrimitiveId
) -> int:
    digits = data.shape[1] - len("9999-99-99 99:99:99.") - len(zone)
    shape = "9999-99-99 99:99:99" + ("." + "9" * digits if digits > 0 else "") + "#" * len(zone)
    good = np.ones(len(data), np.bool_)
    if zone:
        good &= (data[:, -len(zone) :] == np.frombuffer(zone.encode(), np.uint8)).all(axis=1)
    good &= _matches(data[:, : len(shape) - len(zone)], shape[: len(shape) - len(zone)])
    days = _days(data, good)
    hour, minute, second = _number(data, 11, 13), _number(data, 14, 16), _number(data, 17, 19)
    good &= (hour < 24) & (minute < 60) & (second < 60)
    micros = np.zeros(len(data), np.int64)
    if digits > 0:
        micros = _number(data, 20, 20 + digits) * 10 ** (6 - digits)
        good &= data[:, 19 + digits] != ord("0")  # which to_json leaves out
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    return _put(nodes, texts[good], kind, (seconds * _MICROSECONDS + micros)[good])


def _read_uuids(nodes: Int64s, texts: npt.NDArray[np.intp], data: Bytes, kept: list[object]) -> int:
    dashes = [8, 13, 18, 23]
    hexes = np.delete(data, dashes, axis=1)
    digit, letter = hexes - ord("0"), hexes - ord("a")
    good = (data[:, dashes] == ord("-")).all(axis=1) & ((digit < 10) | (letter < 6)).all(axis=1)
    nibbles = np.where(digit < 10, digit, letter + 10)[good]
    values = np.ascontiguousarray(nibbles[:, ::2] << 4 | nibbles[:, 1::2])
    kept.append(values)
    return _put(nodes, texts[good], PrimitiveId.UUID, values.ctypes.data + 16 * np.arange(len(values)), 16)


def _read_base64(nodes: Int64s, texts: npt.NDArray[np.intp], data: Bytes, kept: list[object]) -> int:
    if data.shape[1] % 4:
        return 0
    decoded = [_decoded(row.tobytes()) for row in data]
    good = np.array([each is not None for each in decoded], np.bool_)
    values = [each for each in decoded if each is not None]
    buffer = np.frombuffer(b"".join(values) or b"\0", np.uint8)
    kept.append(buffer)
    sizes = np.array([len(each) for each in values], np.int64)
    starts = buffer.ctypes.data + np.cumsum(sizes) - sizes
    return _put(nodes, texts[good], PrimitiveId.BINARY, starts, sizes)


def _decoded(text: bytes) -> bytes | None:
    try:
        value = b64decode(text, validate=True)
    except ValueError:
        return None
    return value if b64encode(value) == text else None


_NTZ_LENGTHS = (19, *range(21, 27))
_UTC_LENGTHS = tuple(length + len("+00:00") for length in _NTZ_LENGTHS)
_Reader = Callable[[Int64s, "npt.NDArray[np.intp]", Bytes, list[object]], int]
# The lengths that such texts have, and how they are read.
_READERS: dict[str, tuple[tuple[int, ...] | None, _Reader]] = {
    "date": ((10,), _read_dates),
    "timestamp": (
        tuple(length + 6 for length in _NTZ_LENGTHS),
        partial(_read_timestamps, zone="+00:00", kind=PrimitiveId.TIMESTAMP),
    ),
    "timestamp_ntz": (_NTZ_LENGTHS, partial(_read_timestamps, zone="", kind=PrimitiveId.TIMESTAMP_NTZ)),
    "uuid": ((36,), _read_uuids),
    "binary": (None, _read_base64),
}
