"""DuckLake catalogs in DuckDB files: the tables of the specification (version 1.0), and a connection to one of them.

Owns creating and opening a catalog, and types, columns and statistics as its tables have them: as text. The rows of
published tables are written by `ducklake_target`.
"""

from __future__ import annotations

import math
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from parquet_variant.errors import TableError, VariantError, first_line
from parquet_variant.support.lazy_names import optional_libraries
from parquet_variant.tables import schema as shared
from parquet_variant.tables.iceberg.metadata.manifests import DataFile
from parquet_variant.tables.iceberg.metadata.schema import Schema, parse_type, type_name
from parquet_variant.tables.publishing.source import SourceColumns, cannot_publish, column_metrics
from parquet_variant.tables.storage import open_storage
from parquet_variant.types import INTEGERS, TYPE_OF_ARROW, VariantType
from parquet_variant.types.path import VariantPath, quoted

_NAMES = {row.iceberg: row.ducklake for row in TYPE_OF_ARROW.values() if row.iceberg and row.ducklake}
_NAMES["variant"] = "variant"
_ICEBERG_NAMES = {name: iceberg for iceberg, name in _NAMES.items()}
_WITH_PARTS: dict[str, shared.TableType] = {
    "struct": shared.StructType(()),
    "list": shared.ArrayType(shared.VOID),
    "map": shared.MapType(shared.VOID, shared.VOID),
}
_NOT_BOUNDED = {"binary", "fixed", "uuid", "time", "timestamp_ns"}
# DuckDB's names of the types of values at a path. Integers of a path are of one type, whatever their width.
_VARIANT_NAMES = {
    **dict.fromkeys(INTEGERS, "int64"),
    VariantType.STRING: "varchar",
    VariantType.DOUBLE: "float64",
    VariantType.FLOAT: "float32",
    VariantType.DATE: "date",
}


class ColumnRow(NamedTuple):
    """A column of the catalog: the members of ``ducklake_column`` that say what it is."""

    column_id: int
    column_order: int
    column_name: str
    column_type: str
    nulls_allowed: bool
    parent_column: int | None


def column_rows(schema: Schema) -> list[ColumnRow]:
    """Return the columns of a schema, parents before their parts.

    Raises `TableError`: reason ``"cannot-publish"`` for a type that DuckLake lacks.
    """
    made: list[ColumnRow] = []
    ids: dict[shared.Place, int] = {}
    for place, f in shared.walk_fields(schema.struct):
        if not isinstance(f.type, shared.PrimitiveType):
            kind = next((name for name, other in _WITH_PARTS.items() if type(f.type) is type(other)), None)
        else:
            kind = f.type.name if f.type.family == "decimal" else _NAMES.get(type_name(f.type))
        if kind is None:
            raise cannot_publish(f"column {'.'.join(place)} is {type_name(f.type)}, which DuckLake lacks")
        ids[place], parent = f.id, ids.get(place[:-1])
        made.append(ColumnRow(f.id, len(made) + 1, f.name, kind, f.nullable or parent is not None, parent))
    return made


def schema_of_rows(rows: list[ColumnRow]) -> Schema:
    """Return the schema of the columns of a catalog."""

    def field(row: ColumnRow) -> shared.Field:
        fields = [field(part) for part in rows if part.parent_column == row.column_id]
        kind = _WITH_PARTS.get(row.column_type)
        if kind is None:
            kind = parse_type(_ICEBERG_NAMES.get(row.column_type, row.column_type))
        return shared.Field(row.column_name, shared.with_parts(kind, fields), row.nulls_allowed, field_id=row.column_id)

    return Schema(0, shared.StructType(tuple(field(row) for row in rows if row.parent_column is None)))


def mapping_rows(columns: SourceColumns, partition_ids: set[int]) -> Iterator[tuple[int, str, int, int | None, bool]]:
    """Yield the name mapping of a schema: number, name in files, field id, number of the parent, is in directories."""
    numbers: dict[shared.Place, int] = {}
    lists: set[shared.Place] = set()
    for number, (place, f) in enumerate(shared.walk_fields(columns.schema.struct)):
        numbers[place], above = number, place[:-1]
        lists |= {place} if isinstance(f.type, shared.ArrayType) else set()
        name = "list" if above in lists else columns.stored_name(f)
        yield number, name, f.id, numbers.get(above), not above and f.id in partition_ids


def column_statistics(file: DataFile, leaves: list[shared.Field]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of ``file_column_stats``, after the ids of file and table, of the leaf columns that are known."""
    for f in leaves:
        metrics, nans = column_metrics(file, f), file.nan_value_counts.get(f.id)
        bounds = [_text(bound, f.type) for bound in (metrics.lower, metrics.upper)]
        bounds = [None, None] if None in bounds else bounds
        if metrics.nulls is not None or bounds[0] is not None:
            yield f.id, None, file.record_count, metrics.nulls, *bounds, None if nans is None else nans > 0, None


def _text(bound: pa.Scalar | None, kind: shared.TableType) -> str | None:
    """Return a value as DuckDB casts it to text; None if there is no bound of the type."""
    if bound is None or not isinstance(kind, shared.PrimitiveType) or kind.family in _NOT_BOUNDED:
        return None
    try:
        value = bound.as_py()
    except (OverflowError, ValueError):
        return None
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else None
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text.replace("+00:00", "+00") if kind.family == "timestamp" else text


def path_statistics(file: DataFile, f: shared.Field) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of ``file_variant_stats``, after the ids of file and table, of the paths that have bounds."""
    for path, bounds in column_metrics(file, f).paths.items():
        sides = [side for side in (bounds.lower, bounds.upper) if side is not None]
        kinds = {_VARIANT_NAMES.get(side.type) for side in sides}
        kind = kinds.pop()
        if kinds or kind is None or not path.segments:
            continue
        with suppress(VariantError, ValueError, OverflowError):
            values = [side.to_python() for side in sides]
            strings = (repr(value) if isinstance(value, float) else str(value) for value in values)
            yield f.id, path_text(path), kind, None, file.record_count, None, *strings, None, None


def path_text(path: VariantPath) -> str:
    """Return a path as DuckLake spells it.

    >>> path_text(VariantPath.parse("$.o.d"))
    '"o"."d"'
    """
    return ".".join(quoted(str(segment)) for segment in path.segments)


VERSION = "1.0"
# Catalogs are written so that DuckDB 1.5 can open them, too.
_STORAGE_VERSION = "v1.0.0"
_ALIAS = "ducklake_catalog"


class _TableNames(dict[str, str]):
    """The names in SQL of the tables of a catalog, by their names in the specification without the prefix."""

    def __missing__(self, name: str) -> str:
        return f'"{_ALIAS}"."ducklake_{name}"'


class DuckLakeCatalog:
    """An open catalog, inside of one transaction."""

    def __init__(self, connection: Any, path: str) -> None:
        self._connection, self.path = connection, path
        self.files_directory = Path(f"{path}.files")  # The directory of files that belong to the catalog.

    def run(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement, in which `{name}` stands for a table of the catalog, and return its rows."""
        rows: list[tuple[Any, ...]] = self._connection.execute(sql.format_map(_TableNames()), list(values)).fetchall()
        return rows

    def insert(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows into a table, with a value for each of its columns."""
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self._connection.executemany(f'INSERT INTO "{_ALIAS}"."ducklake_{table}" VALUES ({marks})', rows)


@contextmanager
def open_catalog(path: str) -> Iterator[DuckLakeCatalog]:
    """Open a catalog, created if the file does not exist, in a transaction that is committed at the end of the block.

    Raises `TableError`: reason ``"no-connection"`` for a file that is not a catalog, or is in use; ``"cannot-write"``;
    ``"unsupported-version"``.
    """
    if not Path(path).exists():
        _create(path)
    with _transaction(path, path) as catalog:
        _check(catalog)
        yield catalog


@contextmanager
def _transaction(file: str, path: str) -> Iterator[DuckLakeCatalog]:
    """Open a file as the catalog of a path, and commit at the end of the block."""
    with optional_libraries("DuckLake catalogs"):
        import duckdb
    action, reason = "open", "no-connection"
    connection = duckdb.connect()
    try:
        escaped = file.replace("'", "''")
        connection.execute(f"ATTACH '{escaped}' AS {_ALIAS} (STORAGE_VERSION '{_STORAGE_VERSION}')")
        connection.execute("BEGIN")
        action, reason = "write", "cannot-write"
        yield DuckLakeCatalog(connection, path)
        connection.execute("COMMIT")
    except duckdb.Error as error:
        problem = f"cannot {action} the DuckLake catalog {path}: {first_line(error)}"
        raise TableError(problem, reason=reason, file=path) from None
    finally:
        connection.close()


def _check(catalog: DuckLakeCatalog) -> None:
    names = {row[0] for row in catalog.run("SELECT table_name FROM duckdb_tables() WHERE database_name = ?", _ALIAS)}
    if "ducklake_metadata" not in names:
        raise TableError(
            f"{catalog.path} is a DuckDB database that is not a DuckLake catalog: choose another file with to= (--to)",
            reason="exists",
        )
    versions = [row[0] for row in catalog.run("SELECT value FROM {metadata} WHERE key = 'version'")]
    if versions != [VERSION]:
        raise TableError(
            f"the DuckLake catalog {catalog.path} has version {', '.join(versions) or 'none'}: only {VERSION} is "
            "supported",
            reason="unsupported-version",
        )


def _create(path: str) -> None:
    """Create a catalog, unless another process does; a part of a catalog never has its name."""
    with tempfile.TemporaryDirectory(prefix="parquet-variant-") as directory:
        new = Path(directory) / "catalog"
        with _transaction(str(new), path) as catalog:
            catalog.run(Path(__file__).with_suffix(".sql").read_text())
            settings = {
                "version": VERSION,
                "created_by": "parquet-variant",
                "data_path": f"{catalog.files_directory}/",
                "encrypted": "false",
            }
            catalog.insert("metadata", [(name, value, None, None) for name, value in settings.items()])
            catalog.run("INSERT INTO {snapshot} VALUES (0, now(), 0, 1, 0)")
            catalog.insert("snapshot_changes", [(0, 'created_schema:"main"', None, None, None)])
            catalog.insert("schema", [(0, str(uuid.uuid4()), 0, None, "main", "main/", True)])
            catalog.run("COMMIT")
            catalog.run(f"CHECKPOINT {_ALIAS}")
            catalog.run("BEGIN")
        place = Path(path)
        open_storage(str(place.parent)).put_if_absent(place.name, new.read_bytes())
