"""Functions over Variants, aggregates, and points in time.

Owns what each of them becomes for the engine. Leaves sort keys to `comparisons`, aggregates that return one of their
arguments to `expressions`, and the functions themselves to `variant_functions`.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from sqlglot import exp

from parquet_variant.query.path_dialect import steps_of, with_steps
from parquet_variant.query.rewriting.comparisons import COMPARISONS, ComparisonRewriter
from parquet_variant.query.rewriting.values import Value, VariantTerm, value_of
from parquet_variant.query.sql_dialect import SqlError, parse_sql
from parquet_variant.query.sql_pushdown import class_of_type, literal_value
from parquet_variant.query.variant_functions import AGGREGATES, EDITS, FUNCTIONS, OF_ONE_VARIANT, PARSERS, TRIES
from parquet_variant.types import DECIMAL_TYPES, INTEGERS, VariantType
from parquet_variant.types.targets import VARIANT_STORAGE

_EXTRACTS = frozenset(["variant_extract", "variant_extract_string", "get_path", "get"])
_OTHER_FUNCTIONS = _EXTRACTS | {"variant_contains", "variant_exists", "to_json", "typeof"}
_SIZES = frozenset(["array_size", "variant_array_length", "cardinality"])
# Classes of types that have one name, whatever the width of the values.
_TYPE_NAMES = {"boolean": "boolean", "string": "string", "date": "date"}

_EXTREMES = {"min": "arg_min", "max": "arg_max"}
_OF_KEYS = frozenset(["approx_count_distinct", "entropy", "grouping", "grouping_id"])  # depend on equality alone
_LISTS = frozenset(["list", "array_agg"])

_TIME_PARTS = """
    year month day hour minute second millisecond microsecond quarter week weekofyear dayofmonth dayofweek dayofyear
    weekday isodow isoyear yearweek century decade millennium era epoch dayname monthname last_day
"""
_TIME_FUNCTIONS = frozenset(
    ["date_trunc", "datetrunc", "date_part", "datepart", "date_diff", "datediff", "date_sub", "datesub", "date_add",
     "strftime", "time_bucket", "age", "epoch_ns", "epoch_us", *_TIME_PARTS.split()]
)  # fmt: skip
_TIME_NODES = (exp.Extract, exp.AtTimeZone, exp.TimeToStr, exp.TimeStrToTime, exp.TsOrDsToDate)

_INTEGERS = tuple(INTEGERS)
_DECIMALS = (*_INTEGERS, *DECIMAL_TYPES)
_DOUBLES = (*_DECIMALS, VariantType.FLOAT, VariantType.DOUBLE)
_ZONED = (VariantType.TIMESTAMP, VariantType.TIMESTAMP_NANOS)
_LOCAL = (VariantType.TIMESTAMP_NTZ, VariantType.TIMESTAMP_NTZ_NANOS)
# The end of the name of a test -> the types of its values, and the SQL type of the result; empty for a Variant.
_TYPES: dict[str, tuple[tuple[VariantType, ...], str]] = {
    "array": ((VariantType.ARRAY,), ""),
    "object": ((VariantType.OBJECT,), ""),
    "boolean": ((VariantType.BOOLEAN,), "BOOLEAN"),
    "integer": (_INTEGERS, "BIGINT"),
    "decimal": (_DECIMALS, "DECIMAL(38, 0)"),
    "number": (_DECIMALS, "DECIMAL(38, 0)"),
    "double": (_DOUBLES, "DOUBLE"),
    "real": (_DOUBLES, "DOUBLE"),
    **dict.fromkeys(("char", "varchar", "string"), ((VariantType.STRING,), "TEXT")),
    "binary": ((VariantType.BINARY,), "BLOB"),
    "date": ((VariantType.DATE,), "DATE"),
    "time": ((VariantType.TIME,), "TIME"),
    **dict.fromkeys(("timestamp_ltz", "timestamp_tz"), (_ZONED, "TIMESTAMPTZ")),
    "timestamp_ntz": (_LOCAL, "TIMESTAMPNTZ"),
}
_TYPE_FUNCTIONS = frozenset(f"{start}_{end}" for end in _TYPES for start in ("is", "as"))


class FunctionRewriter(ComparisonRewriter):
    """Rewrites what computes with Variants."""

    def read_function(self, node: exp.Expr, name: str) -> Value | None:
        """Rewrite a comparison, an aggregate or a function over Variants; None for any other expression."""
        if isinstance(node, COMPARISONS):
            compared = self.read_comparison(node)
            return None if compared is None else value_of(node, compared)
        if isinstance(node, exp.Ordered):
            return value_of(node, self.rebuild(node, self.by_key))
        if (aggregate := self._read_aggregate(node, name)) is not None:
            return aggregate
        if name in _TIME_FUNCTIONS or isinstance(node, _TIME_NODES):
            return value_of(node, self.rebuild(node, self.as_moment))
        if (built := self._read_builder(node, name)) is not None:
            return value_of(node, built, VARIANT_STORAGE)
        first = node.expressions[0] if name and node.expressions else node.this
        is_unary = isinstance(node, (exp.Is, exp.ArraySize, exp.JSONExtract, exp.JSONExtractScalar))
        takes_first = name == "nullif" or name in _TYPE_FUNCTIONS or name in OF_ONE_VARIANT or name in _OTHER_FUNCTIONS
        if not (takes_first and node.expressions) and not is_unary:
            return None
        value = self.expression(first)
        if not value.is_variant:
            return None
        if name == "nullif":
            branch = exp.If(this=exp.EQ(this=first.copy(), expression=node.expressions[1].copy()), true=exp.Null())
            return self._synthetic(exp.Case(ifs=[branch], default=first.copy()), node)
        if isinstance(node, exp.Is):
            return self._read_truth(node, value) if isinstance(node.expression, exp.Boolean) else None
        if isinstance(node, exp.ArraySize):
            name = "cardinality" if node.meta.get("function") == "size" else "array_size"
            return self._of_typed_columns(node, value, name) or value_of(node, self.call(name, value.sql))
        if isinstance(node, (exp.JSONExtract, exp.JSONExtractScalar)):
            raise self._arrow_error(node)
        if name in _TYPE_FUNCTIONS:
            return self._read_type_function(node, name, value)
        return self._read_function_of_variant(node, name, value)

    def _arrow_error(self, node: exp.Expr) -> SqlError:
        """Return the error for ``v->'a'->>'b'``, which is JSON's."""
        outer, steps, arrows = node, list[Any](), (exp.JSONExtract, exp.JSONExtractScalar)
        while isinstance(outer.parent, arrows) and outer.parent.this is outer:
            outer = outer.parent
        inner = outer
        while isinstance(inner, arrows) and not inner.args.get("variant_extract"):
            key = inner.expression
            names = [part.this for part in key.expressions[1:]] if isinstance(key, exp.JSONPath) else [key.name]
            inner, steps = inner.this, [*names, *steps]
        if isinstance(inner, exp.JSONExtract):
            inner, steps = inner.this, [*steps_of(inner), *steps]
        cast = "::string" if isinstance(outer, exp.JSONExtractScalar) else ""
        path = with_steps(self.text(inner), steps)
        return SqlError(f"{self.text(outer)}: a path into a Variant is written {path}{cast}")

    def _synthetic(self, tree: exp.Expr, node: exp.Expr) -> Value:
        """Rewrite an expression in the place of another one, with its text."""
        tree.meta["text"] = self.text(node)
        tree.parent = node.parent  # its place decides whether it may be a Variant
        return self.expression(tree)

    def as_moment(self, value: Value) -> exp.Expr:
        """Return a Variant as a point in time: of its only type, unless it is a string, or cast to timestamp."""
        if not value.is_variant:
            raise self.untyped(value)
        typed = value.typed()
        if typed is None or typed.type is None or pa.types.is_string(typed.type):
            return self.expression(exp.cast(value.source.copy(), "TIMESTAMPTZ")).sql
        return typed.sql

    def _read_truth(self, node: exp.Is, value: Value) -> Value:
        """Rewrite ``v:a IS TRUE`` of values of several types, of which only booleans are true or false."""
        typed = value.typed()
        if typed is not None and typed.type is not None and pa.types.is_boolean(typed.type):
            return value_of(node, self.rebuild(node, this=typed.sql))
        same = exp.Paren(this=exp.EQ(this=node.this.copy(), expression=node.expression.copy()))
        is_true = exp.Boolean(this=True)
        return value_of(
            node, exp.Is(this=self.expression(same).sql, expression=is_true, negate=node.args.get("negate"))
        )

    def _read_function_of_variant(self, node: exp.Expr, name: str, value: Value) -> Value:
        """Rewrite a call of a function over a Variant, whose second argument may be a path into it."""
        first, *further = node.expressions
        if name == "variant_contains":
            if len(further) != 1:
                raise SqlError(f"{self.text(node)}: variant_contains takes a Variant and the value to look for")
            needle = self.expression(further[0])
            needle = needle if needle.kind is not None else self.as_variant(needle)
            return value_of(node, self.call(name, value.sql, needle.sql))
        if further and isinstance(further[0], exp.Array):  # several paths
            calls = [exp.Anonymous(this=name, expressions=[first.copy(), path]) for path in further[0].expressions]
            return value_of(node, exp.Array(expressions=[self.expression(call).sql for call in calls]))
        if further:
            path = further[0]
            if len(further) > 1 or not (isinstance(path, exp.Literal) and path.is_string):
                raise SqlError(f"{self.text(node)}: the second argument of {name} is a path in quotes")
            kinds = [exp.Literal.string("string")] if name == "variant_extract_string" else []
            arguments = [first.copy(), exp.Literal.string(path_argument(path.name)), *kinds]
            value = self.expression(exp.Anonymous(this="variant_get", expressions=arguments))
        if name in _EXTRACTS:
            return value
        if name == "variant_exists":
            typed = value.as_typed(False) if value.as_typed is not None else None
            is_null = exp.Is(this=(typed or value).sql, expression=exp.Null())
            return value_of(node, exp.Paren(this=exp.not_(is_null)))
        if name == "typeof":
            return value_of(node, exp.Literal.string("VARIANT"))
        function = OF_ONE_VARIANT.get(name, name)
        if (from_columns := self._of_typed_columns(node, value, function)) is not None:
            return from_columns
        kind = VARIANT_STORAGE if FUNCTIONS[function].returns_variant else None
        return value_of(node, self.call(function, value.sql), kind)

    def _of_typed_columns(self, node: exp.Expr, value: Value, function: str) -> Value | None:
        """Return the result of a function that the typed column of a path knows; None if there is no such column."""
        if function in _SIZES and (elements := self._elements(value)) is not None:
            return value_of(node, exp.cast(exp.Anonymous(this="len", expressions=[elements]), "BIGINT"))
        is_about_type = function in ("variant_type", "is_variant_null") and value.as_typed is not None
        typed = value.as_typed(False) if is_about_type and value.as_typed is not None else None
        if typed is None:
            return None
        if function == "is_variant_null":
            return value_of(node, exp.Boolean(this=False))
        present = exp.not_(exp.Is(this=typed.sql, expression=exp.Null()))
        name = _TYPE_NAMES.get(class_of_type(typed.type) or "")
        if name is None:
            return None
        return value_of(node, exp.Case(ifs=[exp.If(this=present, true=exp.Literal.string(name))]))

    def _elements(self, value: Value) -> exp.Expr | None:
        """Return a typed list with an entry for each element of a path; None if not all values are arrays."""
        hit = None if value.root is None else value.root.column
        use = None if hit is None else hit.relation.use
        if value.term is None or hit is None or use is None or not value.term.path.segments:
            return None
        leaf = use.table.leaf_of_elements(hit.column.name or "", value.term.path)
        if leaf is None:
            return None
        return self.table_column(hit, use, VariantTerm(leaf[0], leaf[1], cast=True))

    # ---- aggregates

    def _read_aggregate(self, node: exp.Expr, name: str) -> Value | None:
        """Rewrite an aggregate over Variants; None for any other expression."""
        parent = node.parent
        counts = isinstance(parent, exp.Anonymous) and parent.name.lower() in ("count", "approx_count_distinct")
        if name in _OF_KEYS or (isinstance(node, exp.Distinct) and counts):
            keys = [
                self.rebuild(part, self.by_key) if isinstance(part, exp.Tuple) else self.parts(part, self.by_key)
                for part in node.expressions
            ]
            return value_of(node, self.rebuild(node, self.by_key, expressions=keys))
        if isinstance(node, (exp.Min, exp.Max)) or (name in _EXTREMES and len(node.expressions) == 1):
            return self._read_extreme(node, name or type(node).__name__.lower())
        if isinstance(node, exp.WithinGroup):
            return self._read_ordered_set(node)
        if name == "mode" or (name in _LISTS and node.expressions and isinstance(node.expressions[0], exp.Distinct)):
            return self._read_by_equality(node, name)
        if name in AGGREGATES and len(node.expressions) == 1:
            value = self.expression(node.expressions[0])
            if value.kind is not None and not value.is_variant:
                return None
            rows = exp.Anonymous(this="list", expressions=[(value if value.is_variant else self.as_variant(value)).sql])
            kind = VARIANT_STORAGE if FUNCTIONS[name].returns_variant else None
            return value_of(node, self.call(name, rows), kind)
        return None

    def _read_extreme(self, node: exp.Expr, name: str) -> Value | None:
        """Rewrite min or max of a Variant: the value, or the first values, in the order of sort keys."""
        argument = node.this if isinstance(node, (exp.Min, exp.Max)) else node.expressions[0]
        if isinstance(argument, exp.Distinct) and len(argument.expressions) == 1:
            argument = argument.expressions[0]
        value = self.expression(argument)
        if not value.is_variant:
            return None
        number: Any = node.args.get("count")
        key = self.call("sort_key", value.sql, constants=(self.text(argument), ()))
        extreme = exp.Anonymous(
            this=_EXTREMES[name], expressions=[value.sql, key, *([number.copy()] if number else [])]
        )
        extreme_class = {"min": exp.Min, "max": exp.Max}[name]

        def as_typed(nulls: bool) -> Value | None:
            typed = value.typed() if nulls else None
            if typed is None:
                return None
            return value_of(node, extreme_class(this=typed.sql, count=number and number.copy()), None, typed.type)

        kind = VARIANT_STORAGE if number is None else pa.list_(VARIANT_STORAGE)
        return Value(node, extreme.copy, kind, origin=value.place or value.origin, as_typed=as_typed)

    def _read_ordered_set(self, node: exp.WithinGroup) -> Value | None:
        """Rewrite ``mode() WITHIN GROUP (ORDER BY v:a)``; other such aggregates interpolate, or return a value."""
        keys = [ordered.this for ordered in node.expression.expressions if isinstance(ordered, exp.Ordered)]
        values = [self.expression(key) for key in keys]
        untyped = [value for value in values if value.is_variant and value.typed() is None]
        if not untyped:
            return None
        if node.this.name.lower() == "mode" and len(keys) == 1:
            return self._synthetic(exp.Anonymous(this="mode", expressions=[keys[0].copy()]), node)
        text = self.text(untyped[0].source)
        raise SqlError(f"{node.this.name} needs values of one type, and {text} is a Variant: write {text}::double")

    def _read_by_equality(self, node: exp.Expr, name: str) -> Value | None:
        """Rewrite an aggregate that compares values for equality: values that are equal get one form."""
        holder = node.expressions[0] if node.expressions and isinstance(node.expressions[0], exp.Distinct) else node
        value = self.expression(holder.expressions[0]) if len(holder.expressions) == 1 else None
        if value is None or not value.is_variant or value.typed() is not None:
            return None
        form = self.call("variant_form", value.sql)
        argument = form if holder is node else self.rebuild(holder, expressions=[form])
        kind = VARIANT_STORAGE if name == "mode" else pa.list_(VARIANT_STORAGE)
        return value_of(node, self.rebuild(node, expressions=[argument]), kind)

    # ---- tests of types

    def _read_type_function(self, node: exp.Expr, name: str, value: Value) -> Value:
        """Rewrite ``is_…(v)`` or ``as_…(v)``."""
        start, end = name.split("_", 1)
        first, *digits = node.expressions
        types, result = _TYPES[end]
        if digits and not (name in ("as_decimal", "as_number") and all(part.is_int for part in digits)):
            raise SqlError(f"{self.text(node)}: {name} takes one Variant")
        if digits:
            result = f"DECIMAL({', '.join(part.name for part in (*digits, exp.Literal.number(0))[:2])})"

        def is_one_of(kinds: tuple[VariantType, ...]) -> exp.In:
            type_name = exp.Anonymous(this="variant_type", expressions=[first.copy()])
            return exp.In(this=type_name, expressions=[exp.Literal.string(str(kind)) for kind in kinds])

        is_type = exp.Paren(this=is_one_of(types))
        if end == "integer":  # an integer that is stored among decimals is a decimal without a fraction
            fraction = exp.Like(this=exp.cast(first.copy(), "TEXT"), expression=exp.Literal.string("%.%"))
            is_whole = exp.and_(is_one_of(tuple(DECIMAL_TYPES)), exp.not_(fraction))
            is_type = exp.Paren(this=exp.or_(is_type, is_whole))
        test = self.expression(is_type).sql
        if start == "is":
            return value_of(node, test)
        if not result:
            return value_of(node, exp.Case(ifs=[exp.If(this=test, true=value.sql)]), VARIANT_STORAGE)
        typed = self.expression(exp.TryCast(this=first.copy(), to=exp.DataType.build(result))).sql
        return value_of(node, exp.Case(ifs=[exp.If(this=test, true=typed)]))

    # ---- functions that return a Variant

    def _read_builder(self, node: exp.Expr, name: str) -> exp.Expr | None:
        """Return the call of a function whose result is a Variant; None for any other expression."""
        arguments = node.expressions
        if name in PARSERS and len(arguments) == 1:
            return self.call(name, _json_bytes(self.text_of(arguments[0])))
        if name.removeprefix("try_") in EDITS and (name in EDITS or name.removeprefix("try_") in TRIES):
            return self._read_edit(node, name)
        if name == "to_variant_object" and len(arguments) == 1:
            return self.variant_of(self.expression(arguments[0])).sql
        if name == "variant_from_arrays" and len(arguments) == 2:
            return self.call(
                name, self.expression(arguments[0]).sql, self.variant_of(self.expression(arguments[1])).sql
            )
        if name != "variant_from_entries" or len(arguments) != 1:
            return None
        fields = [f"list_transform(_rows, lambda _entry: (_entry).{key})" for key in ("key", "value")]
        keys, values = (parse_sql(text, what="expression") for text in fields)
        for part in (keys, values):
            part.expressions[0].replace(self.expression(arguments[0]).sql)
        return self.call("variant_from_arrays", keys, self.as_variant(value_of(node, values)).sql)

    def _read_edit(self, node: exp.Expr, name: str) -> exp.Expr:
        """Rewrite a function that returns a changed Variant; paths and switches are constants."""
        function = name.removeprefix("try_")
        first, *further = node.expressions or [exp.Null()]
        roles = EDITS[function]
        value = self.expression(first)
        usage = SqlError(f"{self.text(node)}: write {name}({', '.join(('variant', *roles))}), with paths in quotes")
        if roles[-1] == "…":
            roles = ("path",) * len(further)
        has_switch = roles[-1:] in (("create_if_missing",), ("include_arrays",))  # optional, and true by default
        if not value.is_variant or not len(roles) - has_switch <= len(further) <= len(roles):
            raise usage
        arguments, constants = [value.sql], []
        for role, part in zip(roles, further, strict=False):
            constant = literal_value(part.unnest())
            if role == "value":
                arguments.append(self.variant_of(self.expression(part)).sql)
            elif isinstance(constant, str if role == "path" else bool):
                constants.append(path_argument(str(constant)) if role == "path" else constant)
            else:
                raise usage
        constants += [True] * (len(roles) - len(further))
        return self.call(function, *arguments, constants=(*constants, "null" if name != function else "raise"))


def _json_bytes(value: exp.Expr) -> exp.Expr:
    """Return JSON as bytes: a binary column as it is, since its cast to text would escape quotes."""
    type_name = exp.Anonymous(this="typeof", expressions=[value.copy()])
    is_binary = exp.EQ(this=type_name, expression=exp.Literal.string("BLOB"))
    text = exp.Anonymous(this="encode", expressions=[exp.cast(value, "TEXT")])
    return exp.Case(ifs=[exp.If(this=is_binary, true=exp.cast(value.copy(), "BLOB"))], default=text)


def path_argument(text: str) -> str:
    """Return a path as ``variant_get`` takes it; ``$.`` may be missing, as in DuckDB: ``a.b``, or `` for the value.

    >>> path_argument("a.b"), path_argument("[0]"), path_argument("")
    ('$.a.b', '$[0]', '$')
    """
    return text if text.startswith("$") else f"${'.' if text and text[0] != '[' else ''}{text}"
