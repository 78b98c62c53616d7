"""The select list and the clauses of one SELECT: output names, stars, grouping, ordering and DISTINCT.

Owns what output columns are called, what a star stands for, and how clauses treat Variants. Leaves single expressions
to `expressions`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from sqlglot import exp

from parquet_variant.query.duckdb_engine import function_types
from parquet_variant.query.path_dialect import path_node, steps_of
from parquet_variant.query.rewriting.expressions import ExpressionRewriter
from parquet_variant.query.rewriting.scopes import OutputColumn, Outputs, Relation, Scope, check_distinct, unique_names
from parquet_variant.query.rewriting.values import QueryContext, Value, VariantTerm
from parquet_variant.query.selection import distinct_names
from parquet_variant.query.sql_dialect import SqlError, from_template
from parquet_variant.query.variant_functions import AGGREGATES
from parquet_variant.types.path import VariantPath
from parquet_variant.types.targets import VARIANT_STORAGE

_GROUPING_SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
_CLAUSES_OF_KEYS = (exp.Group, exp.Order, exp.Sort, exp.Distinct, exp.Cluster)


class SelectList(ExpressionRewriter):
    """Rewrites the select list and the clauses of one SELECT."""

    def __init__(self, context: QueryContext, scope: Scope, *, is_result: bool = False) -> None:
        super().__init__(context, scope)
        self.is_result = is_result
        self.stars: list[tuple[exp.Expr, str | None, set[str]]] = []
        self.items: dict[int, Value] = {}  # By the position of the output, counted from 0.
        self.item_of_alias: dict[str, Value] = {}
        self.grouped: list[tuple[exp.Expr, exp.Expr]] = []  # Rewritten Variants that GROUP BY names, and their keys.
        self.outputs: list[OutputColumn] | None = []  # None if only the engine knows them.

    def select_list(self, node: exp.Select) -> list[exp.Expr]:
        """Rewrite the select list, and collect its outputs."""
        items = []
        names: list[str] = []
        for item in chain.from_iterable(map(self._fields, node.expressions)):
            if (star := self._star(item)) is not None:
                rewritten, columns = star
                items.append(rewritten)
                names += [output.name for output in columns or () if output.name]
                self.outputs = None if self.outputs is None or columns is None else [*self.outputs, *columns]
                continue
            inner = item.this if isinstance(item, exp.Alias) else item
            value = self.expression(inner)
            name = self._name(item, inner, value)
            if self.is_result and (typed := value.typed()) is not None:  # a path has the type of all its values
                value = inner.meta["value"] = typed
            shown = name if name is not None else inner.name if isinstance(inner, exp.Column) else None
            if shown is not None:  # repeated names are numbered, as DuckDB does for a subquery
                unique = unique_names([*names, shown])[-1]
                name, shown = unique if unique != shown else name, unique
                names.append(unique)
            if self.outputs is not None:
                self.items[len(self.outputs)] = value
            rewritten = value.sql
            if name is not None:
                self.item_of_alias.setdefault(name.lower(), value)
                first = self.scope.aliases.setdefault(name.lower(), OutputColumn(name, value.type))
                if first.name != name:
                    self.scope.twins[name.lower()] = (first.name or "", name)
                rewritten = exp.Alias(this=rewritten, alias=exp.to_identifier(name, quoted=True))
            items.append(rewritten)
            if inner.find(exp.Columns):
                self.outputs = None
            if self.outputs is not None:
                typed = None if value.kind is None else value.typed()
                common = None if typed is None else typed.type
                self.outputs.append(OutputColumn(shown, value.type, common=common, place=value.place))
        return items

    def _name(self, item: exp.Expr, inner: exp.Expr, value: Value) -> str | None:
        """Return the name of an output: alias, last key of the path, or text; None for the engine's own name."""
        if isinstance(item, exp.Alias):
            return item.alias
        names_window = any(window.args.get("alias") is not None for window in inner.find_all(exp.Window))
        if inner.find(exp.Column, exp.JSONExtract) is None and not names_window:
            return None  # the engine would show the definition of a window
        if value.term is None and value.kind is None and isinstance(inner, exp.Column):
            hit = self.scope.resolve(inner)
            return hit.fields[-1] if hit is not None and hit.fields else None  # DuckDB calls a.b by its field
        key = None if value.term is None else value.term.key
        root = value.root.source if value.root is not None else inner.unnest()
        is_column = isinstance(root, exp.Column) and (value.term is not None or value.kind is not None)
        return key or (root.name if key is None and is_column else self.text(item))  # no engine has a column named ""

    def parsed_column(self, node: exp.Expr, name: str) -> Value | None:
        """See `ExpressionRewriter.parsed_column`.

        A column of FROM is parsed by its scan, once for all paths. The engine calls the function in a query that groups
        by the text, because the Variants of a column would not be those of a group.
        """
        text = node.expressions[0].unnest()
        hit = self.resolve(text)
        if hit is None or hit.fields or hit.ambiguous or self.engine != "duckdb" or _is_grouped(text):
            return None
        use, place = hit.relation.use, hit.column.place
        if use is None or place is None or not any(relation is hit.relation for relation in self.scope.relations):
            return None
        if (names := use.table.parsed(place.column, name)) is None:
            return None
        place = replace(place, column=names[0])
        parsed = replace(hit, column=OutputColumn(names[0], VARIANT_STORAGE, place=place), malformed=names[1])
        make = partial(self.table_column, parsed, use, VariantTerm())
        return Value(node, make, VARIANT_STORAGE, column=parsed, place=place)

    def clause(self, node: exp.Expr) -> exp.Expr:
        """Rewrite WHERE, GROUP BY, ORDER BY and the like; numbers and aliases in them name outputs."""
        if isinstance(node, exp.Window):  # of WINDOW
            return self.rebuild(node, self.by_key if self.engine == "duckdb" else None)
        self.in_having = isinstance(node, exp.Having)
        if isinstance(node, exp.Distinct):
            on = node.args.get("on")
            return exp.Distinct(on=self._keys_of(node, on)) if isinstance(on, exp.Tuple) else self.rebuild(node)
        node = self._without_all(node) if isinstance(node, (exp.Order, exp.Group)) else node
        return self._keys_of(node, node)

    def _keys_of(self, clause: exp.Expr, node: exp.Expr) -> exp.Expr:
        """Rewrite the keys of a clause, also those inside ROLLUP, CUBE and GROUPING SETS."""

        def rewritten(part: Any) -> Any:
            if isinstance(part, list):
                return [rewritten(element) for element in part]
            if not isinstance(part, exp.Expr) or isinstance(part, exp.Var):
                return part
            if isinstance(part, _GROUPING_SETS):
                return self._keys_of(clause, part)
            if isinstance(node, _GROUPING_SETS) and isinstance(part, (exp.Tuple, exp.Paren)):
                return self._keys_of(clause, part)
            if isinstance(part, exp.Ordered):
                return self.rebuild(part, this=self._key(clause, part.this, is_ordered=True))
            return self._key(clause, part)

        return type(node)(**{key: rewritten(part) for key, part in node.args.items()})

    def _key(self, clause: exp.Expr, key: exp.Expr, *, is_ordered: bool = False) -> exp.Expr:
        """Rewrite a key of GROUP BY, ORDER BY or DISTINCT ON, or a condition."""
        outputs = self.outputs or ()
        names = [output.name for output in outputs]
        is_name = isinstance(key, exp.Column) and len(key.parts) == 1
        is_twin = is_name and key.name.lower() in self.scope.twins and names.count(key.name) == 1
        if is_twin and isinstance(clause, (exp.Order, exp.Group)):  # the engine ignores the case of names
            return exp.Literal.number(names.index(key.name) + 1)
        is_number = isinstance(key, exp.Literal) and key.name.isdecimal()
        if is_ordered and is_number and int(key.name) - 1 not in self.items:
            key = numbered_variant(int(key.name), outputs) or key  # of a star
        prefers_alias = isinstance(clause, (exp.Order, exp.Having, exp.Qualify, exp.Sort, exp.Distinct))
        item = None
        if isinstance(clause, _CLAUSES_OF_KEYS[:4]):
            if isinstance(key, exp.Literal) and is_number:
                item = self.items.get(int(key.name) - 1)
            elif self.alias(key) is not None and (prefers_alias or self.resolve(key) is None):
                item = self.item_of_alias.get(key.name.lower())
        if item is not None and item.kind is not None:
            key = item.source
        elif item is not None or (prefers_alias and self.alias(key) is not None):
            return key.copy()
        return self._compared(clause, key)

    def _compared(self, clause: exp.Expr, key: exp.Expr) -> exp.Expr:
        key = key.unnest() if isinstance(clause, exp.Group) else key
        if not isinstance(clause, _CLAUSES_OF_KEYS) or self.engine != "duckdb":
            return self.of_group(self.plain(key))
        rewritten = self.comparable(key)
        if not isinstance(clause, exp.Group):
            return self.of_group(rewritten)
        if self.expression(key).is_variant:
            self.grouped.append((self.expression(key).sql, rewritten.copy()))
        return rewritten

    def _without_all(self, node: exp.Expr) -> exp.Expr:
        """Write numbers of outputs in place of ALL in GROUP BY and ORDER BY where one of the outputs is a Variant."""
        keys = [child.this if isinstance(child, exp.Ordered) else child for child in node.expressions]
        is_all = node.args.get("all") or any(isinstance(key, exp.Var) and key.name.upper() == "ALL" for key in keys)
        if not is_all or all(output.kind is None for output in self.outputs or ()):
            return node
        numbers = [exp.Literal.number(number) for number in range(1, len(self.outputs or ()) + 1)]
        if isinstance(node, exp.Order):
            return exp.Order(expressions=[exp.Ordered(**node.expressions[0].args | {"this": n}) for n in numbers])
        if self._star_has_variants():
            raise SqlError("GROUP BY ALL with a star that has a Variant: list the columns")
        for at, value in reversed(self.items.items()):
            if any(map(_is_aggregate, value.source.walk(prune=lambda part: isinstance(part, exp.Query)))):
                del numbers[at]
        return exp.Group(expressions=numbers)

    def of_group(self, tree: exp.Expr) -> exp.Expr:
        """Take a value of the group in place of a Variant of GROUP BY that is outside of aggregates."""
        for variant, key in self.grouped:
            if tree == key:
                return tree
            if tree == variant:
                # NULL for the group of nulls, in which Variant nulls are, too, and where a grouping set lacks the key.
                template = "CASE WHEN grouping(_0) = 0 THEN arg_min(_1, _2) END"
                return from_template(template, [key, variant, self.key_of(variant)])
        if self.grouped and not _is_aggregate(tree):
            for child in list(tree.iter_expressions()):
                if (new := self.of_group(child)) is not child:
                    child.replace(new)
        return tree

    def _star_has_variants(self) -> bool:
        return any(
            column.kind is not None
            for _, table, left_out in self.stars
            for relation in self._relations(table)
            for column in relation.columns
            if (column.name or "").lower() not in left_out
        )

    def distinct(self, node: exp.Select, items: list[exp.Expr]) -> exp.Distinct | None:
        """Return SELECT DISTINCT with Variants among the outputs as DISTINCT ON their sort keys; None without any.

        `items`: the rewritten select list, in which Variant nulls become NULL, since they are equal to it.
        """
        if all(output.kind is None for output in self.outputs or ()):
            return None
        if self.engine != "duckdb" or self._star_has_variants() or len(self.items) != len(node.expressions):
            name = next(output.name or "an output" for output in self.outputs or () if output.kind is not None)
            raise SqlError(
                f"DISTINCT compares values, and {name} is a Variant: list the columns, or cast it, as in ::string"
            )
        keys = [item.sql if item.kind is None else self.comparable(item.source) for item in self.items.values()]
        for item, value, key in zip(items, self.items.values(), keys, strict=True):
            if value.is_variant and isinstance(item, exp.Alias):
                item.set("this", without_variant_null(item.this, key))
        return exp.Distinct(on=exp.Tuple(expressions=keys))

    def _fields(self, item: exp.Expr) -> list[exp.Expr]:
        """Return the items that ``v:a.*`` stands for: the known fields of objects; other items as is."""
        variant, steps = item.this, []
        path = item.expression if isinstance(item, exp.JSONExtract) else None
        if isinstance(path, exp.JSONPath) and isinstance(path.expressions[-1], exp.JSONPathWildcard):
            steps, text = path.expressions[1:-1], self.text(item)
        elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star) and item.table:  # v.*
            variant, text = exp.column(item.args["table"].copy()), f"{item.table}.*"
            if self._relations(item.table) or not self.expression(variant).is_variant:
                return [item]
        else:
            return [item]
        hit = self.scope.resolve(variant) if isinstance(variant, exp.Column) else None
        use = None if hit is None or hit.fields else hit.relation.use
        if hit is None or use is None:
            raise SqlError(f"{text} needs a Variant column of a table in FROM: list the fields instead")

        def path_with(*further: exp.Expr) -> exp.JSONExtract:
            return path_node(variant.copy(), [*(step.copy() for step in steps), *further])

        fields = use.table.fields_at(hit.column.name or "", VariantPath(steps_of(path_with())))
        if not fields.names:
            raise SqlError(f"{text}: no object with fields is known at this path; list the fields instead")
        keys, warning = fields.selected(text.removesuffix(".*"))
        self.context.warnings += [] if warning is None else [warning]
        paths = [path_with(exp.JSONPathKey(this=key)) for key in keys]
        return [
            path if name == key or not key else exp.alias_(path, name, quoted=True)
            for key, name, path in zip(keys, distinct_names(keys), paths, strict=True)
        ]

    def _relations(self, table: str | None) -> list[Relation]:
        """Return the relations whose columns ``*`` or ``table.*`` stands for."""
        visible = self.scope.visible()
        return [relation for relation in visible if relation.alias.lower() == (table or relation.alias).lower()]

    def _star(self, item: exp.Expr) -> tuple[exp.Expr, list[OutputColumn] | None] | None:
        """Return ``*`` or ``t.*`` with its outputs, None if they are not known; None for any other expression."""
        if not isinstance(item.this if isinstance(item, exp.Column) else item, exp.Star):
            return None
        rewritten = item.copy()
        star = rewritten.this if isinstance(rewritten, exp.Column) else rewritten
        table = item.table if isinstance(item, exp.Column) else None
        relations = self._relations(table)
        if table and not relations:
            before = item.args.get("db")
            if before is not None and self.expression(exp.column(before.copy())).is_variant:
                raise SqlError(f"{before.name} is a Variant: its fields are written {before.name}:{table}.*")
            names = ", ".join(relation.alias for relation in self.scope.visible())
            raise SqlError(f"unknown table {table}: FROM has {names}")
        left_out = {column.name.lower() for column in star.args.get("except_") or ()}
        replaced = {alias.alias.lower(): alias for alias in star.args.get("replace") or ()}
        outputs: list[OutputColumn] = []
        for relation in relations:
            for name in {*left_out, *replaced}:
                check_distinct(name, [column.name or "" for column in relation.columns])
            for column in relation.columns:
                name = column.name or ""
                if column.struct_path or name.lower() in left_out:  # the star gives the struct
                    continue
                outputs.append(column)
                if relation.use is not None:
                    path = VariantPath() if column.is_variant else None
                    relation.use.needed[name] = relation.use.table.needs(name, path)
        for alias, replacement in replaced.items():
            value = self.expression(replacement.this)
            replacement.set("this", value.sql)
            outputs = [OutputColumn(o.name, value.type) if (o.name or "").lower() == alias else o for o in outputs]
        # An excluded column of a table is not read at all.
        uses = {name: [relation.use for relation in relations if relation.find(name)] for name in left_out}
        excluded = star.args.get("except_") or ()
        star.set("except_", [column for column in excluded if None in (uses[column.name.lower()] or [None])])
        self.stars.append((star, table, left_out))
        return rewritten, None if any(relation.is_open for relation in relations) else outputs

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
            for relation in self._relations(table):
                shown = {
                    column.name
                    for column in relation.columns
                    if not column.struct_path and (column.name or "").lower() not in left_out
                }
                if relation.use is not None and not relation.use.needed:  # the engine would show one without a name
                    raise SqlError(f"EXCLUDE leaves no column of {relation.alias}: leave the star out")
                needed = [] if relation.use is None else relation.use.needed
                hidden += [exp.to_identifier(name, quoted=True) for name in needed if name not in shown]
            star.set("except_", hidden or None)


def numbered_variant(number: int, outputs: Outputs) -> exp.Column | None:
    """Return the name of the output that a number in ORDER BY stands for, if it is a Variant.

    The engine would order a Variant by its bytes. Raises `SqlError` if other outputs have the same name.
    """
    output = outputs[number - 1] if outputs and 0 < number <= len(outputs) else None
    if output is None or not output.is_variant:
        return None
    if output.name is None or [other.name for other in outputs or ()].count(output.name) > 1:
        raise SqlError(f"ORDER BY {number} is a Variant without a name of its own: name it, as in v:a AS a")
    return exp.column(exp.to_identifier(output.name, quoted=True))


def without_variant_null(variant: exp.Expr, key: exp.Expr) -> exp.Expr:
    """Return a Variant with NULL in place of Variant null, whose sort key is NULL."""
    return from_template("CASE WHEN _1 IS NOT NULL THEN _0 END", [variant, key])


def _is_grouped(column: exp.Expr) -> bool:
    """Return whether the query around a column may group by this column itself, also by a number or alias."""
    select = column.find_ancestor(exp.Select)
    group = None if select is None else select.args.get("group")
    if select is None or group is None:
        return False
    keys = [key for key in group.find_all(exp.Column) if not isinstance(key.parent, exp.Anonymous)]
    items = [item.unalias() for item in select.expressions]
    return any(isinstance(part, exp.Column) and part.name.lower() == column.name.lower() for part in (*keys, *items))


def _is_aggregate(node: exp.Expr) -> bool:
    if isinstance(node.parent, exp.Window) and node.parent.this is node:
        return False
    node = node.this if isinstance(node, (exp.Filter, exp.WithinGroup)) else node
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    return isinstance(node, exp.AggFunc) or name in AGGREGATES or function_types().get(name) == "aggregate"
