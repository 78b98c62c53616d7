"""`Table`: a data set of any format, as `pv.open` returns it."""

from __future__ import annotations

from typing import Any

from parquet_variant.tables.table.changing import ChangingMethods
from parquet_variant.tables.table.maintaining import MaintenanceMethods


class Table(ChangingMethods, MaintenanceMethods):
    """Files, a table or rows in memory with Variant columns; made by `pv.open`.

    The methods are the same for all formats. A method that a format does not have raises `VariantError` with the reason
    ``unsupported-operation``, which names the formats that have it.
    """

    def __repr__(self) -> str:
        options = self._options
        parts = {"version": options.version, "at": options.at, "branch": options.branch, "tag": options.tag}
        pinned = "".join(f", {name} {value}" for name, value in parts.items() if value is not None)
        return f"<{type(self).__name__} {self._name}{pinned}>"

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(f"<tr><td>{escape(f.name)}</td><td>{escape(str(f.type))}</td></tr>" for f in self.schema)
        return f"<p>{escape(repr(self))}</p><table><tr><th>column</th><th>type</th></tr>{rows}</table>"

    @property
    def version(self) -> Any:
        """The version of a Delta table, or the snapshot id of an Iceberg table; None for other formats."""
        return None

    @property
    def snapshot(self) -> Any:
        """The metadata of a Delta or Iceberg table at its version; unsupported for other formats."""
        raise self._unsupported("snapshot", ("delta", "iceberg"))

    @property
    def properties(self) -> Any:
        """The properties of a Delta or Iceberg table; unsupported for other formats."""
        raise self._unsupported("properties", ("delta", "iceberg"))
