"""The select list and the clauses of one SELECT: output names, stars, grouping, ordering and DISTINCT.

Owns what output columns are called, what a star stands for, and how clauses treat Variants. Leaves single expressions
to `values`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from sqlglot import exp

from parquet_variant.query.duckdb_engine import function_types
from parquet_variant.query.kinds import Kind, is_variant
from parquet_variant.query.path_dialect import steps_of
from parquet_variant.query.sql_dialect import SqlError, written
from parquet_variant.query.sql_terms import read_term
from parquet_variant.sql_query.rewriting.comparisons import comparable, key_of
from parquet_variant.sql_query.rewriting.rewriters import QueryRewriter
from parquet_variant.sql_query.rewriting.scopes import (
    OutputColumn,
    Scope,
    check_distinct,
    numbered_keys,
    unique_names,
)
from parquet_variant.sql_query.rewriting.values import ExpressionRewriter
from parquet_variant.types.path import VariantPath

_GROUPING_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)


class Item(NamedTuple):
    """An expression of the select list."""

    node: exp.Expr  # As it was read.
    value: exp.Expr  # Rewritten.
    kind: Kind


class SelectList(ExpressionRewriter):
    """Rewrites the select list and the clauses of one SELECT."""

    def __init__(self, rewriter: QueryRewriter, scope: Scope, *, is_result: bool = False) -> None:
        super().__init__(rewriter, scope)
        self.is_result = is_result
        self.stars: list[tuple[exp.Expr, str | None, set[str]]] = []
        self.items: dict[int, Item] = {}  # By the position of the output, counted from 0.
        self.item_of_alias: dict[str, Item] = {}
        self.grouped: list[tuple[exp.Expr, exp.Expr]] = []  # Rewritten Variants that GROUP BY names, and their keys.
        self.has_grouping_sets = False

    # ---- the select list

    def select_list(self, node: exp.Select) -> list[OutputColumn] | None:
        """Rewrite the select list, and return its outputs; None if only the engine knows them."""
        outputs: list[OutputColumn] | None = []
        items = []
        names: list[str] = []
        for item in chain.from_iterable(map(self._fields, node.expressions)):
            star = self._star(item)
            if star is not None:
                items.append(item)
                names += [output.name for output in star if output.name] if isinstance(star, list) else []
                outputs = None if outputs is None or star is False else outputs + list(star)  # type: ignore[arg-type]
                continue
            text = written(item, self.engine)
            inner = item.this if isinstance(item, exp.Alias) else item
            name = self._name(item, inner, text)
            value, kind = self._item(inner)
            default = name if name is not None else inner.name if isinstance(inner, exp.Column) else None
            if default is not None:  # repeated names are numbered, as DuckDB does for a subquery
                unique = unique_names([*names, default])[-1]
                name = unique if unique != default else name
                names.append(unique)
            item_of_list = Item(inner, value, kind)
            if outputs is not None:
                self.items[len(outputs)] = item_of_list
            if name is not None:
                self.item_of_alias.setdefault(name.lower(), item_of_list)
                first = self.scope.aliases.setdefault(name.lower(), OutputColumn(name, kind))
                if first.name != name:
                    self.scope.twins[name.lower()] = (first.name or "", name)
                value = exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))
            items.append(value)
            if inner.find(exp.Columns):
                outputs = None
            if outputs is not None:
                shown = name if name is not None else inner.name if isinstance(inner, exp.Column) else None
                common, place = (self.common_type(inner), self.stored_path(inner)) if is_variant(kind) else (None, None)
                static_type = self.static_type(value.this if isinstance(value, exp.Alias) else value)
                outputs.append(OutputColumn(shown, kind, common=common, type=static_type, place=place))
        node.set("expressions", items)
        return outputs

    def _item(self, node: exp.Expr) -> tuple[exp.Expr, Kind]:
        """Rewrite an expression of the select list; in the result, a path has the type that all its values have."""
        value, kind = self.expression(node)
        if self.is_result and kind is not None and (typed := self._typed_item(node)) is not None:
            self.done[id(node)] = self.done[id(typed)] = (node, typed, None)
            return typed, None
        return value, kind

    def _typed_item(self, node: exp.Expr) -> exp.Expr | None:
        extreme = type(node) if isinstance(node, (exp.Min, exp.Max)) else None
        typed = self.typed(node.this if extreme is not None else node)
        return typed if typed is None or extreme is None else extreme(this=typed, count=node.args.get("count"))

    def _name(self, item: exp.Expr, inner: exp.Expr, text: str) -> str | None:
        """Return the name of an output: alias, last key of the path, or text; None for the engine's own name."""
        if isinstance(item, exp.Alias):
            return item.alias
        if inner.find(exp.Column, exp.JSONExtract) is None and not any(map(_names_window, inner.find_all(exp.Window))):
            return None
        term = read_term(inner, self.is_variant, self.engine)
        if term is None and isinstance(inner, exp.Column):
            hit = self.scope.resolve(inner)
            return hit.fields[-1] if hit is not None and hit.fields else None  # DuckDB calls a.b by its field
        if term is None:
            return text
        if not isinstance(term.column, exp.Column):
            return term.key or text
        return term.key or (term.column.name if term.key is None else text)  # no engine has a column named ""

    # ---- clauses

    def clause(self, node: exp.Expr, outputs: Sequence[OutputColumn] | None) -> None:
        """Rewrite WHERE, GROUP BY, ORDER BY and the like; numbers and aliases in them name outputs."""
        if isinstance(node, exp.Window):  # of WINDOW
            self.children(node, convert=self.by_key if self.engine == "duckdb" else None)
            return
        prefers_alias = isinstance(node, (exp.Order, exp.Having, exp.Qualify, exp.Sort, exp.Distinct))
        self.in_having = isinstance(node, exp.Having)
        if isinstance(node.args.get("on"), exp.Tuple):
            node = node.args["on"]
        self._number_twins(node, outputs or ())
        self._expand_all(node)
        outputs_by_name: set[int] = set()
        for parent, child in list(_keys_of(node)):
            inner = child.this if isinstance(child, exp.Ordered) else child
            self.has_grouping_sets |= isinstance(node, exp.Group) and parent is not node
            if child is not inner and inner.name.isdecimal() and int(inner.name) - 1 not in self.items:
                column = numbered_variant(int(inner.name), outputs or ())  # of a star
                child.set("this", column or inner)
                inner = child.this
            item = self._named_item(node, inner, prefers_alias)
            if item is not None and item.kind is not None:
                new = self._compared(node, item.node)
            elif item is not None or (prefers_alias and self._alias(inner) is not None):
                outputs_by_name.add(id(inner))
                continue
            else:
                new = self._compared(node, inner)
            if child is inner:
                _replace(parent, child, new)
            else:
                child.set("this", new)
        self._use_group(node, outputs_by_name)

    def _compared(self, node: exp.Expr, inner: exp.Expr) -> exp.Expr:
        """Rewrite a key of GROUP BY, ORDER BY or DISTINCT ON, or a condition."""
        if isinstance(node, exp.Group) and isinstance(inner, exp.Paren):
            inner = inner.unnest()
        keys = isinstance(node, (exp.Group, exp.Order, exp.Sort, exp.Distinct, exp.Tuple, exp.Cluster))
        if not keys or self.engine != "duckdb":
            return self.value(inner)
        key = comparable(self, inner)
        if isinstance(node, exp.Group) and is_variant(self.expression(inner)[1]):
            self.grouped.append((self.expression(inner)[0], key))
        return key

    def _named_item(self, node: exp.Expr, key: exp.Expr, prefers_alias: bool) -> Item | None:
        """Return the item of the select list that a key names by its number or alias."""
        if not isinstance(node, (exp.Order, exp.Group, exp.Sort, exp.Distinct, exp.Tuple)):
            return None
        if isinstance(key, exp.Literal) and key.name.isdecimal():
            return self.items.get(int(key.name) - 1)
        if not isinstance(key, exp.Column) or self._alias(key) is None:
            return None
        if not prefers_alias and self.scope.resolve(key) is not None:
            return None
        return self.item_of_alias.get(key.name.lower())

    def _expand_all(self, node: exp.Expr) -> None:
        """Write the keys of GROUP BY ALL and ORDER BY ALL where one of them is a Variant."""
        if not isinstance(node, (exp.Order, exp.Group)):
            return
        keys = [child.this if isinstance(child, exp.Ordered) else child for child in node.expressions]
        is_all = node.args.get("all") or any(isinstance(key, exp.Var) and key.name.upper() == "ALL" for key in keys)
        if not is_all or (all(item.kind is None for item in self.items.values()) and not self._star_has_variants()):
            return
        if self._star_has_variants():
            raise SqlError(f"{node.key.upper()} BY ALL with a star that has a Variant: list the columns")
        is_group = isinstance(node, exp.Group)
        keys_of_all = [item for item in self.items.values() if not (is_group and has_aggregate(item.node))]
        new = [item.node if item.kind is not None else item.value.copy() for item in keys_of_all]
        for key in new:
            self.done.setdefault(id(key), (key, key, None))
        node.set("all", None)
        node.set("expressions", new if is_group else [exp.Ordered(this=key) for key in new])

    def _star_has_variants(self) -> bool:
        return any(
            column.kind is not None
            for _, table, left_out in self.stars
            for relation in self.scope.visible()
            if relation.alias.lower() == (table or relation.alias).lower()
            for column in relation.columns
            if (column.name or "").lower() not in left_out
        )

    def _use_group(self, node: exp.Expr, outputs_by_name: set[int]) -> None:
        """Take a value of the group in place of a Variant of GROUP BY that is outside of aggregates.

        `outputs_by_name`: the ids of expressions that name an output, which is not such a Variant.
        """
        if not self.grouped:
            return
        if not isinstance(node, exp.Group):
            self._take_any(node, outputs_by_name)
            return
        for item in self.items.values():
            self._take_any(item.value, outputs_by_name)
        for item in self.items.values():
            for variant, key in self.grouped:
                if item.value == variant and not isinstance(item.value.parent, exp.Anonymous):
                    item.value.replace(self._of_group(variant, key))

    def _take_any(self, tree: exp.Expr, outputs_by_name: set[int]) -> None:
        keys = [key for _, key in self.grouped]
        for part in list(tree.walk()):
            key = next((key for variant, key in self.grouped if variant == part), None)
            if part is tree or key is None or id(part) in outputs_by_name or part.parent is None:
                continue
            if part.parent not in keys and not any(map(_is_aggregate, _outer_parts(part, tree))):
                part.replace(self._of_group(part, key))

    def _of_group(self, variant: exp.Expr, key: exp.Expr) -> exp.Expr:
        """Return a value of the group; NULL for the group of nulls, in which Variant nulls are, too."""
        value = exp.Anonymous(this="arg_min", expressions=[variant.copy(), key_of(self, variant)])
        if not self.has_grouping_sets:
            return value
        is_grouped = exp.EQ(this=exp.Grouping(expressions=[key.copy()]), expression=exp.Literal.number(0))
        return exp.Case(ifs=[exp.If(this=is_grouped, true=value)])

    def distinct(self, node: exp.Select, outputs: Sequence[OutputColumn] | None) -> None:
        """Rewrite SELECT DISTINCT with Variants among the outputs as DISTINCT ON their sort keys."""
        if all(output.kind is None for output in outputs or ()):
            return
        if self.engine != "duckdb" or self._star_has_variants() or len(self.items) != len(node.expressions):
            name = next(output.name or "an output" for output in outputs or () if output.kind is not None)
            raise SqlError(
                f"DISTINCT compares values, and {name} is a Variant: list the columns, or cast it, as in ::string"
            )
        keys = [comparable(self, item.node).copy() for item in self.items.values()]
        node.args["distinct"].set("on", exp.Tuple(expressions=keys))

    def _number_twins(self, node: exp.Expr, outputs: Sequence[OutputColumn]) -> None:
        """Write the number of an output whose name the engine, which ignores case, would take for another output."""
        if not self.scope.twins or not isinstance(node, (exp.Order, exp.Group)):
            return
        names = [output.name for output in outputs]
        for child in node.expressions:
            key = child.this if isinstance(child, exp.Ordered) else child
            is_name = isinstance(key, exp.Column) and len(key.parts) == 1
            if is_name and key.name.lower() in self.scope.twins and names.count(key.name) == 1:
                key.replace(exp.Literal.number(names.index(key.name) + 1))

    # ---- stars

    def _fields(self, item: exp.Expr) -> list[exp.Expr]:
        """Return the items that ``v:a.*`` stands for: the known fields of objects; other items as is."""
        path = item.expression if isinstance(item, exp.JSONExtract) else None
        if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) and item.table:  # v.*
            tables = {relation.alias.lower() for relation in self.scope.visible()}
            column = exp.column(item.args["table"].copy())
            if item.table.lower() in tables or not self.is_variant(column):
                return [item]
            path = exp.JSONPath(expressions=[exp.JSONPathRoot(), exp.JSONPathWildcard()])
            text = f"{item.table}.*"
            item = exp.JSONExtract(this=column, expression=path, variant_extract=True)
            item.meta["text"] = text
        if not isinstance(path, exp.JSONPath) or not isinstance(path.expressions[-1], exp.JSONPathWildcard):
            return [item]
        steps = path.expressions[:-1]
        hit = self.scope.resolve(item.this) if isinstance(item.this, exp.Column) else None
        use = None if hit is None or hit.fields else hit.relation.use
        text = written(item, self.engine)
        if hit is None or use is None:
            raise SqlError(f"{text} needs a Variant column of a table in FROM: list the fields instead")
        above = exp.JSONExtract(this=item.this, expression=exp.JSONPath(expressions=steps), variant_extract=True)
        fields = use.table.fields_at(hit.column.name or "", VariantPath(steps_of(above)))
        if not fields.names:
            raise SqlError(f"{text}: no object with fields is known at this path; list the fields instead")
        keys, warning = fields.selected(text.removesuffix(".*"))
        if warning is not None:
            self.rewriter.add_warning(warning)
        paths = [
            exp.JSONExtract(
                this=item.this.copy(),
                expression=exp.JSONPath(expressions=[*(step.copy() for step in steps), exp.JSONPathKey(this=key)]),
                variant_extract=True,
            )
            for key in keys
        ]
        names = numbered_keys(keys)
        return [
            path if names[key] == key or not key else exp.alias_(path, names[key], quoted=True)
            for key, path in zip(keys, paths, strict=True)
        ]

    def _star(self, item: exp.Expr) -> list[OutputColumn] | bool | None:
        """Return the outputs of ``*`` or ``t.*``; False if they are not known; None for any other expression."""
        star = item.this if isinstance(item, exp.Column) else item
        if not isinstance(star, exp.Star):
            return None
        table = item.table if isinstance(item, exp.Column) else None
        visible = self.scope.visible()
        relations = [relation for relation in visible if relation.alias.lower() == (table or relation.alias).lower()]
        if table and not relations:
            before = item.args.get("db")
            if before is not None and self.is_variant(exp.column(before.copy())):
                raise SqlError(f"{before.name} is a Variant: its fields are written {before.name}:{table}.*")
            raise SqlError(f"unknown table {table}: FROM has {', '.join(relation.alias for relation in visible)}")
        left_out = {_excluded_name(column).lower() for column in star.args.get("except_") or ()}
        replaced = {alias.alias.lower(): alias for alias in star.args.get("replace") or ()}
        outputs: list[OutputColumn] = []
        for relation in relations:
            for name in {*left_out, *replaced}:
                check_distinct(name, [column.name or "" for column in relation.columns])
            for column in relation.columns:
                name = column.name or ""
                if column.struct_path:  # the star gives the struct
                    continue
                if relation.use is not None and name.lower() not in left_out:
                    path = VariantPath() if column.is_variant else None
                    relation.use.needed[name] = relation.use.table.needs(name, path)
                if name.lower() not in left_out:
                    outputs.append(column)
        for alias, replacement in replaced.items():
            value, kind = self.expression(replacement.this)
            replacement.set("this", value)
            outputs = [OutputColumn(o.name, kind) if (o.name or "").lower() == alias else o for o in outputs]
        excluded = [
            column for column in star.args.get("except_") or () if self._is_read(_excluded_name(column), relations)
        ]
        star.set("except_", excluded)
        self.stars.append((star, table, left_out))
        return outputs if not any(relation.is_open for relation in relations) else False

    def _is_read(self, name: str, relations: list[Any]) -> bool:
        """Return whether an excluded column has to be named: one of a table is not read at all."""
        holders = [relation for relation in relations if relation.find(name) is not None]
        return not holders or any(relation.use is None for relation in holders)

    def finish_stars(self) -> None:
        """Order the columns of each table as the table has them, and exclude the columns of paths from stars."""
        for relation in self.scope.relations:
            use = relation.use
            if use is not None:
                for name in use.named:
                    check_distinct(name, list(use.needed))
                order = {name: place for place, name in enumerate(use.table.order)}
                use.needed = dict(sorted(use.needed.items(), key=lambda item: order.get(item[0], len(order))))
        for star, table, left_out in self.stars:
            hidden = list(star.args.get("except_") or ())
            for relation in self.scope.relations:
                if (
                    relation.use is None
                    or not relation.is_visible
                    or relation.alias.lower() != (table or relation.alias).lower()
                ):
                    continue
                shown = {
                    column.name
                    for column in relation.columns
                    if not column.struct_path and (column.name or "").lower() not in left_out
                }
                hidden += [exp.to_identifier(name, quoted=True) for name in relation.use.needed if name not in shown]
            star.set("except_", hidden or None)


def numbered_variant(number: int, outputs: Sequence[OutputColumn]) -> exp.Column | None:
    """Return the name of the output that a number in ORDER BY stands for, if it is a Variant.

    The engine would order a Variant by its bytes. Raises `SqlError` if other outputs have the same name.
    """
    output = outputs[number - 1] if 0 < number <= len(outputs) else None
    if output is None or not output.is_variant:
        return None
    if output.name is None or [other.name for other in outputs].count(output.name) > 1:
        raise SqlError(f"ORDER BY {number} is a Variant without a name of its own: name it, as in v:a AS a")
    return exp.column(exp.to_identifier(output.name, quoted=True))


def has_aggregate(tree: exp.Expr) -> bool:
    """Return whether an expression has an aggregate outside of subqueries."""
    return any(
        _is_aggregate(part) and not any(isinstance(outer, exp.Query) for outer in _outer_parts(part, tree))
        for part in tree.walk()
    )


def _outer_parts(part: exp.Expr, tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the expressions around a part of a tree, up to the tree."""
    while part is not tree and part.parent is not None:
        part = part.parent
        yield part


def _is_aggregate(node: exp.Expr) -> bool:
    if isinstance(node.parent, exp.Window) and node.parent.this is node:
        return False
    is_function = isinstance(node, exp.Anonymous)
    return isinstance(node, exp.AggFunc) or (is_function and function_types().get(node.name.lower()) == "aggregate")


def _names_window(node: exp.Window) -> bool:
    return node.args.get("alias") is not None  # the engine would show the window's definition


def _keys_of(node: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """Yield the expressions of a clause, also those inside ROLLUP, CUBE and GROUPING SETS, each with its parent."""
    for child in node.iter_expressions():
        is_set = isinstance(node, _GROUPING_SETS) and isinstance(child, (exp.Tuple, exp.Paren))
        if is_set:
            yield from ((child, key) for key in child.iter_expressions())
        elif isinstance(child, _GROUPING_SETS):
            yield from _keys_of(child)
        else:
            yield node, child


def _excluded_name(node: exp.Expr) -> str:
    return node.this.name if isinstance(node, exp.Column) else node.name


def _replace(node: exp.Expr, child: exp.Expr, new: exp.Expr) -> None:
    for key, argument in node.args.items():
        if argument is child:
            node.set(key, new)
            return
        if isinstance(argument, list) and any(part is child for part in argument):
            node.set(key, [new if part is child else part for part in argument])
            return
