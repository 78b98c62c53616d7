"""The result of publishing a table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PublishResult:
    """The result of publishing a table.

    Parameters
    ----------
    format
        The format of the published table: ``"iceberg"``, ``"delta"`` or ``"ducklake"``.
    table
        The published table: its name in the catalog, its path or URI, or the DuckLake catalog.
    version
        The version of the published table: an Iceberg snapshot id, a Delta version, or a DuckLake snapshot.
    files_added, files_removed
        Numbers of data files that the published table got and lost.
    vectors_written
        Number of files whose deleted rows were translated.
    committed
        False if the published table had the files and columns of the source already.
    """

    format: str
    table: str
    version: str
    files_added: int = 0
    files_removed: int = 0
    vectors_written: int = 0
    committed: bool = True
