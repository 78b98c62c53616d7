"""Functions of Variants in SQL give for each row what the scalar reference gives for its value, in every source."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

pytest.importorskip("sqlglot", reason="sqlglot is not installed")
pytest.importorskip("duckdb", reason="DuckDB is not installed")

import parquet_variant as pv
from parquet_variant import Variant
from parquet_variant.encoding.cast.values import cast_variant
from parquet_variant.encoding.schema_of import schema_of
from parquet_variant.ops.columns.sort_keys import sort_key
from parquet_variant.query.containment import contains
from parquet_variant.query.path_dialect import with_steps
from parquet_variant.types import DECIMAL_TYPES, INSTANT_TYPES, INTEGERS, LOCAL_TYPES
from parquet_variant.types.path import VariantPath

ROWS = 30
CALLS = 25  # of each source, of about 130
Reference = Callable[[Any], Any]  # The value of a row (None for SQL NULL) -> the result.
UTC = dt.UTC


def _arrow(value: Any, kind: pa.DataType) -> Variant:
    return pv.cast_to_variant(pa.array([value], kind))[0]


SCALARS: list[Any] = [
    None, True, False, 0, 1, -1, 127, 128, -32_769, 2**31, 2**53 + 1, -(2**63), 2**63 - 1, 10**25,
    _arrow(7, pa.int32()),
    _arrow(7, pa.int16()), 0.0, -0.0, 1.0, 1.5, -2.5e300, 5e-324, float("nan"), float("inf"), 0.1,
    _arrow(0.1, pa.float32()), Decimal("1.00"), Decimal("1.50"), Decimal("-0.001"), Decimal("12345678901234.5"),
    Decimal("1e-30"), "", "a", "A", "1", " 1.5 ", "true", "it's", 'q"\\', "é\U0001f600", "\x00", "x" * 70, "2024-02-29",
    "2024-02-29 12:00:00", "[1]", "{}", b"", b"a\xff", dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.time(1, 2, 3, 4),
    dt.datetime(2024, 2, 29, 12, 30, 1, 5, UTC), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    dt.datetime(2024, 2, 29), uuid.UUID(int=5), _arrow(1_000_000_001, pa.timestamp("ns", "UTC")),
    _arrow(-1, pa.timestamp("ns")),
]  # fmt: skip
KEYS = ["a", "A", "a.b", "", "it's", 'q"t', "é", "*", "[0]", "$", "tab\t", "back\\slash", "`", "x y", "1", "select"]
_SAFE_JSON = [value for value in SCALARS if isinstance(value, (bool, int, float, str, Decimal)) or value is None]


def _value(rng: random.Random, scalars: list[Any], depth: int = 0) -> Any:
    kind = rng.random()
    if depth > 2 or kind < 0.6:
        return rng.choice(scalars)
    if kind < 0.8:
        return [_value(rng, scalars, depth + 1) for _ in range(rng.randrange(4))]
    return {key: _value(rng, scalars, depth + 1) for key in rng.sample(KEYS, rng.randrange(4))}


def _row(rng: random.Random, number: int, scalars: list[Any]) -> Any:
    """Return an object with some fields that have mostly one type; sometimes any other value, or SQL NULL."""
    if rng.random() < 0.08:
        return _value(rng, scalars)
    row = {key: _value(rng, scalars) for key in rng.sample(KEYS, 3)}
    row |= {
        "n": number, "s": rng.choice(["x", "y", "", "1"]), "m": rng.choice([Decimal("1.50"), Decimal("2.25"), 3]),
        "b": rng.random() < 0.5, "l": [{"n": rng.randrange(3)}, {"n": 1}][: rng.randrange(3)],
        "i": [1, 2, 3][: number % 4],
        "o": {"p": rng.randrange(9), "q": rng.choice(["u", None])},
    }  # fmt: skip
    for key in list(row):
        if rng.random() < 0.12:
            del row[key]
        elif rng.random() < 0.12:
            row[key] = _value(rng, scalars)
    return row


# ---- the reference: functions of one value


def _shown(value: Variant | None) -> list[str | None]:
    return [None, None] if value is None else [value.to_json(), str(schema_of(value))]


def _keys(value: Variant | None, *, otherwise: Any) -> Any:
    return None if value is None else value.keys() if value.type == "object" else otherwise


def _length(value: Variant | None, kinds: Iterable[str], otherwise: Any = None) -> Any:
    return None if value is None else len(value) if value.type in kinds else otherwise


def _has_type(value: Variant | None, kinds: Iterable[str]) -> bool | None:
    return None if value is None else value.type in set(kinds)


def _is_integer(value: Variant | None) -> bool | None:
    if value is None or value.type not in DECIMAL_TYPES:
        return _has_type(value, INTEGERS)
    number = value.to_python()
    return bool(number == number.to_integral_value())


def _cast(value: Variant | None, kind: pa.DataType) -> Any:
    return None if value is None else pa.scalar(cast_variant(value, kind, safe=False), kind).as_py()


TEXT = pa.string()
EXACT = (*INTEGERS, *DECIMAL_TYPES)
_DOUBLES = ((*EXACT, "float", "double"), pa.float64())
TYPES = {
    "boolean": (["boolean"], pa.bool_()), "decimal": (EXACT, pa.decimal128(38, 0)), "real": _DOUBLES,
    "number": (EXACT, pa.decimal128(38, 0)), "double": _DOUBLES, "char": (["string"], TEXT),
    "varchar": (["string"], TEXT), "string": (["string"], TEXT), "binary": (["binary"], pa.binary()),
    "date": (["date"], pa.date32()), "time": (["time"], pa.time64("us")),
    **dict.fromkeys(("timestamp_ltz", "timestamp_tz"), (INSTANT_TYPES, pa.timestamp("us", "UTC"))),
    "timestamp_ntz": (LOCAL_TYPES, pa.timestamp("us")),
}  # fmt: skip
CASTS = {
    "boolean": pa.bool_(), "tinyint": pa.int8(), "smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "decimal(9,2)": pa.decimal128(9, 2), "string": TEXT,
    "binary": pa.binary(), "date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"), "array<string>": pa.list_(TEXT), "array<int>": pa.list_(pa.int32()),
    "struct<a: int, q: string>": pa.struct({"a": pa.int32(), "q": TEXT}), "map<string, string>": pa.map_(TEXT, TEXT),
}  # fmt: skip
# Functions of a Variant and perhaps a path -> the result for the value at the path.
OF_VALUE: dict[str, Reference] = {
    "to_json": lambda v: _shown(v)[0],
    "schema_of_variant": lambda v: _shown(v)[1],
    "is_variant_null": lambda v: v is not None and v.type == "null",
    "is_null_value": lambda v: v is not None and v.type == "null",
    "is_valid_variant": lambda v: None if v is None else True,
    "variant_type": lambda v: None if v is None else str(v.type),
    "variant_typeof": lambda v: None if v is None else str(v.type),
    "variant_keys": partial(_keys, otherwise=[]),
    "object_keys": partial(_keys, otherwise=None),
    "json_keys": partial(_keys, otherwise=None),
    "variant_array_length": partial(_length, kinds=["array"], otherwise=0),
    "array_size": partial(_length, kinds=["array"]),
    "cardinality": partial(_length, kinds=["array", "object"]),
    "variant_comparator": lambda v: None if v is None else sort_key(v),
    "variant_exists": lambda v: v is not None,
    "is_integer": _is_integer,
    "as_integer": lambda v: _cast(v, pa.int64()) if _is_integer(v) else None,
    **{f"is_{end}": partial(_has_type, kinds=[end]) for end in ("array", "object")},
    **{f"is_{end}": partial(_has_type, kinds=kinds) for end, (kinds, _) in TYPES.items()},
    **{
        f"as_{end}": lambda v, kinds=kinds, kind=kind: _cast(v, kind) if _has_type(v, kinds) else None
        for end, (kinds, kind) in TYPES.items()
    },
}
WITHOUT_PATH = {"to_json", "is_valid_variant", "typeof"} | {
    name for name in OF_VALUE if name.startswith(("is_", "as_"))
}
NEEDLES = {"1": 1, "'a'": "a", "true": True, "1.5::double": 1.5, "[1]": [1], "{'n': 1}": {"n": 1}, "[]": [], "'x'": "x"}


def _at(value: Variant | None, path: VariantPath) -> Variant | None:
    return None if value is None else value.get(path)


class Calls:
    """Random calls: the SQL of each, and the function that gives its result for the value of a row."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def path(self) -> VariantPath:
        first = self.rng.choice([*KEYS, *"nsmblio"])
        further = self.rng.choice(
            [(), (), (), (0,), (1,), ("n",), ("p",), (0, "n"), ("gone",), (self.rng.choice(KEYS),)]
        )
        return VariantPath((first, *further) if self.rng.random() < 0.95 else ())

    def quoted(self, path: VariantPath) -> str:
        return "'" + self.rng.choice([str(path), path.shorthand]).replace("'", "''") + "'"

    def variant(self, path: VariantPath) -> str:
        forms = [
            with_steps("v", path.segments),
            f"variant_get(v, {self.quoted(path)})",
            f"get_path(v, {self.quoted(path)})",
        ]
        forms += [f"variant_extract(v, {self.quoted(path)})", f"try_variant_get(v, {self.quoted(path)}, 'variant')"]
        if path.segments and isinstance(path.segments[-1], int):
            inner, index = with_steps("v", path.segments[:-1]), path.segments[-1]
            forms += [f"variant_extract({inner}, {index + 1})", f"get({inner}, {index})"]
        return self.rng.choice(forms)

    def of_value(self, name: str) -> tuple[str, Reference]:
        path, work = self.path(), OF_VALUE[name]
        takes_path = name not in WITHOUT_PATH and (name == "variant_exists" or self.rng.random() < 0.5)
        call = f"{name}(v, {self.quoted(path)})" if takes_path else f"{name}({self.variant(path)})"
        return call, lambda value: work(_at(value, path))

    def cast(self, name: str) -> tuple[str, Reference]:
        path, kind = self.path(), CASTS[name]
        call = self.rng.choice(
            [f"{self.variant(path)}::{name}", f"try_variant_get(v, {self.quoted(path)}, '{name}')",
             f"TRY_CAST({self.variant(path)} AS {name})"]
        )  # fmt: skip
        return call, lambda value: _cast(_at(value, path), kind)

    def text(self) -> tuple[str, Reference]:
        path = self.path()
        return f"variant_extract_string(v, {self.quoted(path)})", lambda value: _cast(_at(value, path), TEXT)

    def contained(self, needle: str) -> tuple[str, Reference]:
        path, literal = self.path(), Variant.from_python(NEEDLES[needle])
        return (
            f"variant_contains({self.variant(path)}, {needle})",
            lambda value: None if (inner := _at(value, path)) is None else contains(inner, literal),
        )

    def edit(self, name: str) -> tuple[str, Reference]:
        """Return a call that changes the whole value: an error gives NULL."""
        path, new, literal = self.path(), self.path(), self.rng.choice(sorted(NEEDLES))
        steps = VariantPath(path.segments or ("a",))
        at, switch = self.quoted(steps), self.rng.random() < 0.5
        by_path = self.rng.random() < 0.5

        def other(value: Any) -> Variant | None:
            return _at(value, new) if by_path else Variant.from_python(NEEDLES[literal])

        shown = self.variant(new) if by_path else literal
        calls: dict[str, tuple[str, Callable[[Any], Any]]] = {
            "variant_set": (f"{at}, {shown}, {switch}", lambda v: pv.variant_set(v, steps, other(v), switch)),
            "variant_insert": (f"{at}, {shown}", lambda v: pv.variant_insert(v, steps, other(v))),
            "variant_array_append": (f"{at}, {shown}", lambda v: pv.variant_array_append(v, steps, other(v))),
            "variant_delete": (f"{at}, '$.n'", lambda v: pv.variant_delete(v, steps, "$.n")),
        }
        arguments, work = calls[name]

        def changed(value: Any) -> Any:
            if value is None or (name != "variant_delete" and other(value) is None):
                return _shown(None)
            try:
                return _shown(work(value))
            except pv.VariantError:
                return _shown(None)

        call = f"try_{name}(v, {arguments})"
        return f"[to_json({call}), schema_of_variant({call})]", changed

    def built(self) -> list[tuple[str, Reference]]:
        path, other = self.path(), self.path()
        x, y = self.variant(path), self.variant(other)

        def of(make: Callable[[Any, Any], Any]) -> Reference:
            return lambda v: _shown(Variant.from_python(make(_at(v, path), _at(v, other))))

        calls = {
            f"to_variant_object([{x}, {y}])": of(lambda a, b: [a, b]),
            f"to_variant_object({{'p': {x}, 'Q q': [{y}]}})": of(lambda a, b: {"p": a, "Q q": [b]}),
            f"to_variant_object(MAP {{'p': {x}}})": of(lambda a, b: {"p": a}),
            f"variant_from_arrays(['p', ''], [{x}, {y}])": of(lambda a, b: {"p": a, "": b}),
            f"variant_from_entries([{{'key': 'p', 'value': {x}}}])": of(lambda a, b: {"p": a}),
            f"variant_strip_nulls({x})": lambda v: _stripped(_at(v, path), True),
            f"variant_strip_nulls({x}, false)": lambda v: _stripped(_at(v, path), False),
        }
        shown = [(f"[to_json({call}), schema_of_variant({call})]", work) for call, work in calls.items()]
        return [
            *shown,
            (f"to_json(parse_json(to_json({x})))", lambda v: _reparsed(_at(v, path))),
            (f"variant_type(try_parse_json({x}::string), '$[0]')", lambda v: _parsed_type(_at(v, path))),
            (f"[to_json({x}), schema_of_variant({x})]", lambda v: _shown(_at(v, path))),
            (f"variant_comparator(variant_normalize({x}))", lambda v: OF_VALUE["variant_comparator"](_at(v, path))),
            ("variant_type(v, ['$.n', 's'])", lambda v: [OF_VALUE["variant_type"](_at(v, VariantPath((key,))))
                                                         for key in "ns"]),
            (f"typeof({x})", lambda v: "VARIANT"),
        ]  # fmt: skip

    def compared(self) -> list[tuple[str, Reference]]:
        path, other = self.path(), self.path()
        x, y = self.variant(path), self.variant(other)
        literal = self.rng.choice(["1", "'a'", "true", "1.5", "-1", "''", "127", "1e300"])
        key = sort_key(Variant.from_python(eval(literal) if literal != "true" else True))

        def of(work: Callable[[bytes | None, bytes | None], Any], second: Any = None) -> Reference:
            def result(value: Any) -> Any:
                a, b = _at(value, path), _at(value, other)
                return work(None if a is None else sort_key(a), key if second else None if b is None else sort_key(b))

            return result

        def less(a: Any, b: Any) -> Any:
            return None if a is None or b is None or a[0] != b[0] else a < b

        def equal(a: Any, b: Any) -> Any:
            return None if a is None or b is None else a == b

        def equal_class(a: Any, b: Any) -> Any:
            return None if a is None or b is None or a[0] != b[0] else a == b

        return [
            (f"{x} < {literal}", of(less, True)), (f"{x} = {literal}", of(equal_class, True)),
            (f"{x} IS NOT DISTINCT FROM {literal}", of(lambda a, b: a == b, True)),
            (f"{x} < {y}", of(less)), (f"{x} = {y}", of(equal)), (f"{x} IS DISTINCT FROM {y}", of(lambda a, b: a != b)),
            (f"{x} IS NULL", lambda v: _at(v, path) is None),
        ]  # fmt: skip

    def all(self) -> dict[str, Reference]:
        calls = [self.of_value(name) for name in OF_VALUE]
        calls += [self.cast(name) for name in CASTS]
        calls += [self.contained(needle) for needle in NEEDLES]
        calls += [self.edit(f"variant_{name}") for name in ("set", "set", "insert", "array_append", "delete")]
        calls += [self.text(), *self.built(), *self.compared()]
        return dict(calls)


def _reparsed(value: Variant | None) -> str | None:
    return None if value is None else pv.parse_json(value.to_json()).to_json()


def _parsed_type(value: Variant | None) -> str | None:
    text = _cast(value, TEXT)
    parsed = None if text is None else pv.parse_json(text, errors="null")
    element = _at(parsed, VariantPath((0,)))
    return None if element is None else str(element.type)


def _stripped(value: Variant | None, arrays: bool) -> list[str | None]:
    if value is None:
        return _shown(None)
    return _shown(pv.strip_nulls(value, arrays))


# ---- the sources


TYPED = (
    "n bigint, s string, m decimal(9,2), b boolean, i array<bigint>, o struct<p: int, q: string>, "
    "l array<struct<n: bigint>>, a timestamp, `it's` double, `` string, A variant"
)


def _sources(rng: random.Random, folder: Path) -> dict[str, tuple[Any, pv.VariantArray]]:
    """Return each source of rows with its values, in which shredding may have replaced a type by another one."""
    values = pv.VariantArray.from_pylist(
        [None if rng.random() < 0.05 else _row(rng, number, SCALARS) for number in range(ROWS)]
    )
    found: dict[str, tuple[Any, pv.VariantArray]] = {"memory": (pa.table({"v": values}), values)}
    for name, schema in (("plain", None), ("inferred", "infer"), ("typed", TYPED)):
        path = folder / f"{name}.parquet"
        pv.write(path, {"v": values}, schema=schema)
        found[name] = str(path), pv.open(path).read()
    of_json = pv.VariantArray.from_pylist([_row(rng, number, _SAFE_JSON) for number in range(ROWS)])
    texts = [text or "null" for text in pv.to_json(of_json).to_pylist()]
    (folder / "rows.ndjson").write_text("".join(f"{text}\n" for text in texts))
    return found | {"json": (str(folder / "rows.ndjson"), pv.parse_json(texts))}


def test_functions_give_what_they_give_for_each_value(tmp_path: Path) -> None:
    rng = random.Random(seed := 7)
    for source, (table, values) in _sources(rng, tmp_path).items():
        calls = dict(rng.sample(list(Calls(rng).all().items()), CALLS))
        columns = ", ".join(f"{call} AS c{number}" for number, call in enumerate(calls))
        answer = pv.sql(f"SELECT {columns} FROM t", t=table).to_arrow()
        for (call, work), column in zip(calls.items(), answer.columns, strict=True):
            for found, value in zip(column.to_pylist(), values, strict=True):
                assert repr(found) == repr(work(value)), f"{source}, seed {seed}: {call} of {value!r}"


# ---- aggregates


def _groups(values: Iterable[Any]) -> dict[bytes | None, list[Any]]:
    """Return the values of `$.p` of each different value of `$.g`."""
    groups: dict[bytes | None, list[Any]] = {}
    for value in values:
        group, inner = (_at(value, VariantPath((key,))) for key in ("g", "p"))
        groups.setdefault(None if group is None else sort_key(group), []).append(inner)
    return groups


def _extreme(values: list[Any], which: Callable[..., Any]) -> bytes | None:
    keys = [key for value in values if value is not None and (key := sort_key(value)) is not None]
    return which(keys, default=None)


AGGREGATES: dict[str, Callable[[list[Any]], Any]] = {
    "count(*)": len,
    "count({})": lambda values: sum(value is not None for value in values),
    "count(DISTINCT {})": lambda values: len({sort_key(value) for value in values if value is not None} - {None}),
    "variant_comparator(min({}))": partial(_extreme, which=min),
    "variant_comparator(max({}))": partial(_extreme, which=max),
    "to_json(variant_group_array({}))": lambda values: Variant.from_python(values).to_json(),
    "schema_of_variant_agg({})": lambda values: pv.schema_of_variant_agg(pv.VariantArray.from_pylist(values)),
    "count({}::double)": lambda values: sum(_cast(value, pa.float64()) is not None for value in values),
}


def test_aggregates_give_what_their_values_give(tmp_path: Path) -> None:
    rng = random.Random(5)
    scalars = [value for value in SCALARS if value == value and value not in (float("inf"), -2.5e300)]
    rows = [{"g": rng.choice(SCALARS), "p": _value(rng, scalars)} for _ in range(200)]
    for number in range(0, 200, 9):
        del rows[number][rng.choice("gp")]
    values = pv.VariantArray.from_pylist(rows)
    pv.write(tmp_path / "t.parquet", {"v": values}, schema="g string, p bigint")
    for table in (values, str(tmp_path / "t.parquet")):
        expected = _groups(pv.open(table).read())
        columns = ", ".join(f"{call.format('v:p')} AS c{number}" for number, call in enumerate(AGGREGATES))
        answer = pv.sql(f"SELECT variant_comparator(v:g) AS g, {columns} FROM t GROUP BY v:g", t=table).to_pylist()
        assert {row["g"] for row in answer} == expected.keys()
        for row in answer:
            for number, (call, work) in enumerate(AGGREGATES.items()):
                assert row[f"c{number}"] == work(expected[row["g"]]), call
