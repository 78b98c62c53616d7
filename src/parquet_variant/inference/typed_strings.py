"""Strings of JSON that become dates, timestamps, UUIDs, binary or numbers while they are read.

Owns which paths are typed, the types, and the suggestion of types for a profile. Without ``!``, a string is typed only
if `to_json` writes the value back as the same string. With ``!`` every string in the form of the type is typed, so
`to_json` writes the canonical form: ``"2026-01-02T00:00:00Z"`` becomes ``"2026-01-02 00:00:00+00:00"``, and ``"12"``
becomes ``12``. Numbers and strings with numbers become timestamps if the type says what they count since 1970.
`kernels.json.string_forms` defines the forms, and the policies decide what is shredded.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Mapping
from dataclasses import field, replace
from functools import lru_cache
from itertools import pairwise
from shlex import quote

import numpy as np
import numpy.typing as npt

from parquet_variant.errors import PathError, VariantError, check_mapping
from parquet_variant.inference.path_table import INT_MAX, INT_MIN
from parquet_variant.inference.profile import FORM_COLUMNS, FORMS, PathProfile, Profile, StringCounts
from parquet_variant.kernels.arrow_buffers import Int64s
from parquet_variant.kernels.memory import address_of, copy_spans
from parquet_variant.kernels.tapes.tape import DROPPED, PATH, Tape, path_ids
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.layouts.type_grammar import parse_ddl_with_strings
from parquet_variant.support.records import Record
from parquet_variant.types import INTEGER_IDS, INTEGERS, TYPES, PrimitiveId
from parquet_variant.types.path import VariantPath, Wildcard, depth_first, parse_pattern

# Takes the place of all types: each path whose strings all have the form of one type gets that type.
AUTO = "auto!"
# The types of columns that JSON has only as strings.
TYPES_OF_STRINGS = ("date", "timestamp", "timestamp_ntz", "uuid")
_EVERYWHERE = "any path"
_ELEMENT = "\0[*]"


class TypedStrings(Record):
    """Counts of the strings at a path or pattern that was to be typed; of epochs, also of the numbers there.

    `untyped`: values without the form of the type, or that `to_json` would not write back unchanged.
    """

    path: str
    type: str
    typed: int
    untyped: int

    def __str__(self) -> str:
        total, noun = self.typed + self.untyped, "values" if self.type in _EPOCHS else "strings"
        if not self.untyped:
            return f"all {total:,} {noun} at {self.path} were typed as {self.type}"
        counts = f"{self.typed:,} of {total:,} {noun} at {self.path} were typed as {self.type}"
        if self.type.endswith("!"):
            return f"{counts}: the others are not in the form of that type"
        hint = f"; {self.type}! accepts more forms" if self.type in ("timestamp", "timestamp_ntz", "uuid") else ""
        return f"{counts}: the format of the others would not be reproduced exactly{hint}"

    @classmethod
    def of_counts(cls, counts: StringCounts) -> tuple[TypedStrings, ...]:
        """Return the counts of all tasks, in the order of paths."""
        rules = dict.fromkeys((path, kind) for path, kind, _ in sorted(counts))
        return tuple(cls(*rule, counts[*rule, True], counts[*rule, False]) for rule in rules)


class TypeSuggestion(Record):
    """A path at which all strings are written in the form of another type, both in the notation of ``types=``.

    Or at which all values are integers that count the time since 1970, by their size and the name of the path.

    >>> print(TypeSuggestion("$['a b']", "uuid!", 2))
    all 2 strings at $['a b'] are UUIDs: type them with --type '$["a b"]:uuid!'
    """

    path: str
    type: str
    strings: int

    @property
    def counts_time(self) -> bool:
        """Whether the values are numbers that count the time since 1970; ``auto!`` does not type them."""
        return self.type in _EPOCHS

    def __str__(self) -> str:
        kind = self.type.removesuffix("!")
        noun = {"uuid": "UUID", "bigint": "integer", "timestamp_ntz": "timestamp"}.get(kind, kind)
        # Keys in double quotes need no escapes inside the single quotes of a shell.
        path = self.path if '"' in self.path or "\\" in self.path else self.path.replace("'", '"')
        option = f"--type {quote(f'{path}:{self.type}')}"
        if self.counts_time:
            unit = {6: "seconds", 3: "milliseconds", 0: "microseconds"}[_EPOCHS[self.type]]
            values = "the only number" if self.strings == 1 else f"all {self.strings:,} numbers"
            counts = "counts" if self.strings == 1 else "count"
            return f"{values} at {self.path} {counts} {unit} since 1970: for timestamps use {option}"
        if self.strings == 1:
            return f"the only string at {self.path} is a {noun}: type it with {option}"
        return f"all {self.strings:,} strings at {self.path} are {noun}s: type them with {option}"


def suggest_types(profile: Profile) -> tuple[TypeSuggestion, ...]:
    """Return the paths of a profile whose strings all have the form of one type, with the types to use.

    >>> import parquet_variant as pv
    >>> from parquet_variant.inference.profile import Profile
    >>> rows = ['{"at": "2026-01-02T00:00:00Z", "n": "12", "zip": "01234"}', '{"at": "2026-01-03T10:30:00+02:00"}']
    >>> for suggestion in suggest_types(Profile.of_array(pv.parse_json(rows))):
    ...     print(suggestion)
    all 2 strings at $.at are timestamps: type them with --type '$.at:timestamp!'
    the only string at $.n is a number: type it with --type '$.n:number!'
    """
    table = profile.table
    strings = table.kinds[:, PrimitiveId.STRING]
    forms = table.counts[:, list(FORM_COLUMNS.values())].max(axis=1, initial=0)
    suggestions: dict[VariantPath, TypeSuggestion] = {}
    for number in np.flatnonzero((strings > 0) & (forms == strings)).tolist():
        path = (of_path := PathProfile(profile, number)).path
        if (form := of_path.string_form) is not None and path.segments:
            kind = form if form == "date" else f"{form}!"
            suggestions[path] = TypeSuggestion(path.shorthand, kind, int(strings[number]))
    return tuple(suggestions[path] for path in sorted(suggestions, key=depth_first))


def suggest_epochs(profile: Profile) -> tuple[TypeSuggestion, ...]:
    """Return the paths whose values are integers that count the time since 1970, with the types to use.

    >>> import parquet_variant as pv
    >>> rows = pv.parse_json(['{"created_at": 1767225600, "id": 1767225600}', '{"created_at": 1767225601}'])
    >>> print(*suggest_epochs(Profile.of_array(rows)))
    all 2 numbers at $.created_at count seconds since 1970: for timestamps use --type '$.created_at:timestamp_s!'
    """
    table, suggestions = profile.table, dict[VariantPath, TypeSuggestion]()
    counts = table.kinds[:, list(INTEGER_IDS)].sum(axis=1)
    is_counted = (counts > 0) & (counts == table.value_counts - table.kinds[:, PrimitiveId.NULL])
    smallest, largest = table.counts[:, INT_MIN], table.counts[:, INT_MAX]
    for kind, digits in _EPOCHS.items():  # A number is of these years in one unit at most.
        unit = 10 ** (6 - digits)
        is_time = is_counted & (smallest >= _FIRST_SECOND * unit) & (largest < _LAST_SECOND * unit)
        for number in np.flatnonzero(is_time).tolist():
            path = PathProfile(profile, number).path
            if path.segments and isinstance(name := path.segments[-1], str) and _TIME_NAME.search(name):
                suggestions[path] = TypeSuggestion(path.shorthand, kind, int(counts[number]))
    return tuple(suggestions[path] for path in sorted(suggestions, key=depth_first))


def schema_and_types(schema: ShreddingSchema | str | None) -> tuple[ShreddingSchema | None, dict[str, str]]:
    """Return the schema that a user passed, and the types of strings in its DDL (``at timestamp!``).

    >>> schema_and_types("at timestamp!, id bigint")
    (<ShreddingSchema at timestamp, id bigint>, {'$.at': 'timestamp!'})
    """
    types: dict[str, str] = {}
    if isinstance(schema, str):
        tree, types_of_ddl = parse_ddl_with_strings(schema)
        schema = ShreddingSchema.from_tree(tree)
        types = {VariantPath.parse(path).shorthand: kind for path, kind in types_of_ddl.items()}
    return None if schema is None else ShreddingSchema.of(schema), types


class StringTypes(Record):
    """The types of strings by path.

    `types`: paths or patterns (``$.created_at``, ``$..*_id``, ``$.items[*].at``) and types as for `pv.ingest`, or
      ``string`` to keep strings. The first pattern that matches a path applies.
    `detect_timestamps`: whether all other strings that are dates or timestamps are typed, if `to_json` writes them back
      unchanged.
    `auto`: whether other paths get the types of `suggest_types`; see `resolved`.
    Raises `VariantError` for an unknown type (``bad-option``), `PathError` for an invalid pattern.

    >>> bool(StringTypes({"$..*_id": "uuid"}, detect_timestamps=True)), bool(StringTypes())
    (True, False)
    """

    types: Mapping[str, str] = field(default_factory=dict)
    detect_timestamps: bool = False
    auto: bool = False

    def __post_init__(self) -> None:
        check_mapping("types", self.types)
        types = {path: _BIGINTS.get(str(kind).lower(), kind) for path, kind in self.types.items()}
        object.__setattr__(self, "types", types)
        for path, kind in self.types.items():
            _pattern(path)
            if str(kind).lower() not in _TYPE_NAMES:
                is_number = str(kind).lower().startswith(("decimal", "numeric", "double", "float"))
                numbers = "number! for strings with numbers, whose type is that of their digits"
                remedy = numbers if is_number else ", ".join(_TYPE_NAMES)
                raise VariantError(f"types= has {kind!r} for {path}: use {remedy}", reason="bad-option")

    def __bool__(self) -> bool:
        return bool(self.types) or self.detect_timestamps or self.auto

    @classmethod
    def of(cls, types: Mapping[str, str] | str | None, detect_timestamps: bool = False) -> StringTypes:
        """Return the types that a user passed: a mapping, in which the key ``"auto!"`` is allowed, or ``"auto!"``.

        >>> StringTypes.of("auto!").auto, StringTypes.of({"auto!": "", "$.zip": "string"}).types
        (True, {'$.zip': 'string'})
        """
        if types is None or (isinstance(types, str) and types == AUTO):
            return cls({}, detect_timestamps, types is not None)
        check_mapping("types", types)
        assert not isinstance(types, str)
        return cls({path: kind for path, kind in types.items() if path != AUTO}, detect_timestamps, AUTO in types)

    def with_types(self, types: Mapping[str, str]) -> StringTypes:
        """Return the types with further ones for paths that have none yet."""
        return replace(self, types={**self.types, **types, **self.types}) if types.keys() - self.types.keys() else self

    def resolved(self, profile: Profile) -> StringTypes:
        """Return the types with those that a profile suggests instead of ``auto``; explicit types come first.

        `profile`: the profile of values that were read with these types.
        """
        if not self.auto:
            return self
        suggested = {suggestion.path: suggestion.type for suggestion in suggest_types(profile)}
        return replace(self.with_types(suggested), auto=False)

    def apply(self, tape: Tape) -> tuple[Tape, StringCounts]:
        """Return the tape with typed strings, and counts; the nodes of the given tape are changed.

        >>> from parquet_variant.ops.parse_json import parse_json
        >>> array = parse_json(['{"at": "2026-01-31"}', '{"at": "2026-02-30"}'], types={"$.at": "date"})
        >>> [value["at"].type.value for value in array], [value.to_json() for value in array]
        (['date', 'string'], ['{"at":"2026-01-31"}', '{"at":"2026-02-30"}'])
        >>> parse_json('{"at": "2026-01-31T01:30:00+01:00"}', types={"$.at": "timestamp!"}).to_json()
        '{"at":"2026-01-31 00:30:00+00:00"}'
        """
        counts: StringCounts = Counter()
        if not self or not len(tape.nodes):
            return tape, counts
        tags = tape.nodes[:, 0]
        strings = np.flatnonzero(((tags & 0xFF) == PrimitiveId.STRING) & (tags & DROPPED == 0))
        rule_of_path = np.array([-1 if rule is None else rule for rule in self._rules(tape)], np.int64)
        rules = rule_of_path[path_ids(tags[strings])]
        buffers: list[object] = []
        for number, (path, type_name) in enumerate(self.types.items()):
            kind = type_name.lower()
            selected = strings[rules == number]
            if kind in _EPOCHS:
                numbers = np.flatnonzero(np.isin(tags & 0xFF, _NUMBERS) & (tags & DROPPED == 0))
                selected = np.append(selected, numbers[rule_of_path[path_ids(tags[numbers])] == number])
            if kind != _STRING and len(selected):
                typed = _type_strings(tape.nodes, selected, kind, buffers)
                counts[path, kind, True] += typed
                counts[path, kind, False] += len(selected) - typed
        if self.detect_timestamps:
            remaining = strings[rules == -1]
            for kind in ("date", "timestamp", "timestamp_ntz"):
                if typed := _type_strings(tape.nodes, remaining, kind, buffers):
                    counts[_EVERYWHERE, kind, True] += typed
                remaining = remaining[tape.nodes[remaining, 0] & 0xFF == PrimitiveId.STRING]
        return (replace(tape, owners=(*tape.owners, *buffers)) if buffers else tape), counts

    def _rules(self, tape: Tape) -> list[int | None]:
        """Return for each path of the tape the number of the first type whose pattern matches."""
        patterns = [_pattern(path) for path in self.types]
        keys = tape.key_list
        steps: list[str] = []
        rules: list[int | None] = []
        for number, (parent, key) in enumerate(tape.paths[:, [PATH.PARENT, PATH.KEY]].tolist()):
            step = _ELEMENT if key < 0 else f"\0.{keys[key].decode('utf-8', 'replace')}"
            steps.append(steps[parent] + step if number else "")
            matches = (rule for rule, pattern in enumerate(patterns) if pattern.fullmatch(steps[number]))
            rules.append(next(matches, None))
        return rules


@lru_cache(maxsize=256)
def _pattern(path: str) -> re.Pattern[str]:
    """Return a regular expression over the steps of a path, each of which begins with a NUL."""
    try:
        steps = parse_pattern(path)
    except PathError as error:
        raise PathError(f"types= {error.message}", reason=error.reason, offset=error.offset) from None
    parts = []
    for name, is_glob, any_depth in steps:
        if any_depth:
            parts.append(r"(?:\x00[^\x00]*)*")
        if isinstance(name, Wildcard):
            parts.append(re.escape(_ELEMENT))
        elif is_glob:
            wildcards = {"*": r"[^\x00]*", "?": r"[^\x00]"}
            characters = (wildcards.get(character) or re.escape(character) for character in str(name))
            parts.append(r"\x00\." + "".join(characters))
        else:
            parts.append(re.escape(f"\0.{name}"))
    return re.compile("".join(parts), re.DOTALL)


def _type_strings(nodes: Int64s, strings: npt.NDArray[np.intp], kind: str, buffers: list[object]) -> int:
    """Type strings (for epochs also numbers), and return how many fit; `buffers` receives what holds their bytes."""
    from parquet_variant.kernels.json.string_forms import type_strings

    if kind == _BINARY:
        return _type_base64(nodes, strings, buffers)
    if kind in _EPOCHS:
        return _type_epochs(nodes, strings, _EPOCHS[kind], buffers)
    if not kind.endswith("!"):
        strings = _in_json_spelling(nodes, strings, kind)
    form = kind.removesuffix("!")
    uuids = np.empty((len(strings) if form == "uuid" else 0, 16), np.uint8)
    buffers.append(uuids)
    return type_strings(nodes, strings, FORMS.index(form), address_of(uuids))


def _in_json_spelling(nodes: Int64s, strings: npt.NDArray[np.intp], kind: str) -> npt.NDArray[np.intp]:
    """Return the strings that `to_json` writes back unchanged if they have the form of a type."""
    zone = np.frombuffer(b"+00:00" if kind == "timestamp" else b"", np.uint8)
    sizes = nodes[strings, 2]
    unchanged = [strings[:0]]
    for size in {"date": (10,), "uuid": (36,)}.get(kind, _TIMESTAMP_LENGTHS):
        end, size = size, size + len(zone)
        selected = strings[sizes == size]
        data = np.empty((len(selected), size), np.uint8)
        copy_spans(nodes[selected, 1].copy(), nodes[selected, 2].copy(), address_of(data))
        if kind == "uuid":
            is_unchanged = ((data < ord("A")) | (data > ord("F"))).all(axis=1)
        else:
            is_unchanged = (data[:, end:] == zone).all(axis=1)
            if kind != "date":
                is_unchanged &= (data[:, 10] == ord(" ")) & (data[:, 16] == ord(":"))
            if end > _TIMESTAMP_LENGTHS[0]:  # to_json omits trailing zeros
                is_unchanged &= (data[:, 19] == ord(".")) & (data[:, end - 1] != ord("0"))
        unchanged.append(selected[is_unchanged])
    return np.concatenate(unchanged)


def _type_epochs(nodes: Int64s, values: npt.NDArray[np.intp], places: int, buffers: list[object]) -> int:
    """Type numbers and strings of numbers that count since 1970; `places`: those of a unit in microseconds."""
    from parquet_variant.kernels.json.string_forms import MAX_MICROS, MIN_MICROS

    before = nodes[values].copy()
    _type_strings(nodes, values[(before[:, 0] & 0xFF) == PrimitiveId.STRING], "number!", buffers)
    tags, counts = nodes[values, 0], nodes[values, 1]
    shifts = places - ((tags >> 8) & 0xFF)  # decimal places between the number and microseconds
    factors, divisors = 10 ** np.clip(shifts, 0, 18), 10 ** np.clip(-shifts, 0, 18)
    largest = np.iinfo(np.int64).max // factors
    fits = np.isin(tags & 0xFF, _NUMBERS) & (counts <= largest) & (counts >= -largest)
    micros, remainders = np.divmod(np.where(fits, counts, 0) * factors, divisors)
    fits &= (remainders == 0) & (micros >= MIN_MICROS) & (micros <= MAX_MICROS)
    typed, untyped = values[fits], values[~fits]
    nodes[typed, 0] = tags[fits] & ~np.int64(0xFFFF) | int(PrimitiveId.TIMESTAMP)
    nodes[typed, 1] = micros[fits]
    nodes[untyped] = before[~fits]
    return len(typed)


def _string_bytes(nodes: Int64s, strings: npt.NDArray[np.intp]) -> list[bytes]:
    """Return the bytes of strings."""
    stops = np.cumsum(nodes[strings, 2])
    data = np.empty(int(stops[-1]) if len(stops) else 0, np.uint8)
    copy_spans(nodes[strings, 1].copy(), nodes[strings, 2].copy(), address_of(data))
    text = data.tobytes()
    return [text[start:stop] for start, stop in pairwise([0, *stops.tolist()])]


def _type_base64(nodes: Int64s, strings: npt.NDArray[np.intp], buffers: list[object]) -> int:
    strings = strings[nodes[strings, 2] % 4 == 0]
    decoded = list(map(decoded_base64, _string_bytes(nodes, strings)))
    typed = strings[np.array([value is not None for value in decoded], np.bool_)]
    values = [value for value in decoded if value is not None]
    buffer = np.frombuffer(b"".join(values) or b"\0", np.uint8)
    buffers.append(buffer)
    sizes = np.array([len(value) for value in values], np.int64)
    nodes[typed, 0] = nodes[typed, 0] & ~np.int64(0xFF) | int(PrimitiveId.BINARY)
    nodes[typed, 1] = address_of(buffer) + np.cumsum(sizes) - sizes
    nodes[typed, 2] = sizes
    return len(typed)


def decoded_base64(text: bytes) -> bytes | None:
    """Return the bytes of canonical base64; None for other text."""
    try:
        value = b64decode(text, validate=True)
    except ValueError:
        return None
    return value if b64encode(value) == text else None


# Lengths of timestamps without a zone: without fraction, and with one to six digits.
_TIMESTAMP_LENGTHS = (19, *range(21, 27))
_BINARY, _STRING = "binary", "string"
# Types of numbers since 1970, and the decimal places of their unit in microseconds.
_EPOCHS = {"timestamp_s!": 6, "timestamp_ms!": 3, "timestamp_us!": 0}
# Names of fields whose integers may count the time, if they are of the years 2000 to 2099.
_TIME_WORDS = "ts|time|timestamp|at|date|created|updated|modified|epoch"
_TIME_NAME = re.compile(rf"(?i:(^|_)({_TIME_WORDS})(_?(s|ms|us))?$)|(Time|At|Date)$")
_FIRST_SECOND, _LAST_SECOND = 946_684_800, 4_102_444_800
# Numbers whose digits are in the first payload of a node.
_NUMBERS = [*INTEGER_IDS, PrimitiveId.DECIMAL4, PrimitiveId.DECIMAL8]
_TYPE_NAMES = (*FORMS[:4], _BINARY, *(f"{form}!" for form in FORMS), *_EPOCHS, _STRING)
_BIGINTS = {f"{name}!": "bigint!" for kind in INTEGERS for name in TYPES[kind].ddl}  # Integers have one type in nodes.
