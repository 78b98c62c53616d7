"""The tables that are published, in one form: Iceberg's schema and metrics, whatever their format is.

Owns `Source`, which a module for each format implements, names of deletion vectors, what changed since the last
publication, and its result. Which metadata is written for a source is decided by the modules of the targets.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import count
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from parquet_variant.errors import TableError
from parquet_variant.inference.statistics import ValueBounds
from parquet_variant.support.records import Record
from parquet_variant.tables.file_metrics import ColumnMetrics
from parquet_variant.tables.iceberg.locations import normal_location
from parquet_variant.tables.iceberg.metadata.manifests import DataFile
from parquet_variant.tables.iceberg.metadata.schema import Schema, arrow_array, from_bytes
from parquet_variant.tables.iceberg.writing.write import can_promote
from parquet_variant.tables.partitions import partition_texts
from parquet_variant.tables.pruning import bounds_from_bytes
from parquet_variant.tables.schema import VARIANT, Field, Place, PrimitiveType, TableType

Rows = npt.NDArray[np.uint64]
Entry = TypeVar("Entry")
# In the summary of an Iceberg snapshot: the version of the source.
PUBLISHED_VERSION = "parquet-variant.published-version"
_NAMESPACE = uuid.UUID("6f2d3a52-3a0b-4d0c-9d3e-0a6b3f7f8f11")


class ListedFile(Record):
    """A data file of a source, without its metrics."""

    location: str  # The absolute location.
    size: int  # Bytes of the file.
    vector_key: str | None = None  # Identifies the deleted rows, without reading them; None without deleted rows.
    modified: int | None = None  # Time of the last change in milliseconds, of files that may be replaced.

    @property
    def vector_id(self) -> uuid.UUID:
        """The id of a translated deletion vector: the same for the same deleted rows of the same file."""
        return uuid.uuid5(_NAMESPACE, f"{self.location}\0{self.vector_key}")


class SourceColumns(Record):
    """The columns of a source."""

    schema: Schema  # The columns with field ids.
    # The names in data files of fields that are stored under another name, by field id.
    stored_names: Mapping[int, str] = field(default_factory=dict)
    files_lack_ids: bool = False  # Whether data files may lack field ids, so that columns are found by name.
    partition_by: tuple[str, ...] = ()  # Names of the columns whose values partition the files.

    def stored_name(self, f: Field) -> str:
        """Return the name of a field in data files."""
        return self.stored_names.get(f.id, f.name)

    @property
    def partition_fields(self) -> list[Field]:
        """The columns whose values partition the files."""
        return [f for name in self.partition_by for f in self.schema.fields if f.name == name]

    def partition_texts(self, file: DataFile) -> list[tuple[Field, str | None]]:
        """Return these columns with their values in a file as text."""
        values = [(f, f.type, raw) for f, raw in zip(self.partition_fields, file.partition, strict=True)]
        return [
            (f, partition_texts(arrow_array([raw], kind))[0])
            for f, kind, raw in values
            if isinstance(kind, PrimitiveType)
        ]


# Returns the field id of a field by its place and type.
TakeId: TypeAlias = Callable[[Place, TableType], int]


def field_ids(former: Schema | None, last_id: int) -> TakeId:
    """Return field ids for columns without ids: those of an earlier publication, else new ones after the last id."""
    numbered, numbers = {} if former is None else dict(former.by_id.values()), count(last_id + 1)

    def take(place: Place, kind: TableType) -> int:  # Only the outermost level of the type matters.
        before = numbered.get(place)
        return before.id if before is not None and is_promotion(before.type, kind) else next(numbers)

    return take


def is_promotion(before: TableType, after: TableType) -> bool:
    """Return whether files with one type can be read as another one (specification, "Schema Evolution").

    >>> is_promotion(PrimitiveType("integer"), PrimitiveType("long"))
    True
    """
    if not isinstance(before, PrimitiveType) or not isinstance(after, PrimitiveType):
        return type(before) is type(after)
    return before == after or can_promote(before, after)


class PublishedFile(NamedTuple, Generic[Entry]):
    """A data file of the published table."""

    entry: Entry  # The file as the target describes it.
    size: int
    time: int | None  # When the file was published, in milliseconds.
    vector: str | None  # The name of its deletion vector; None if it has none.


class Difference(Generic[Entry], Record, frozen=False):
    """What must change for the published table to have the files of the source."""

    added: list[ListedFile] = field(default_factory=list)
    removed: list[Entry] = field(default_factory=list)
    replaced: list[Entry] = field(default_factory=list)  # Of added files that keep their deletion vector.
    vectors_changed: list[tuple[Entry, ListedFile]] = field(default_factory=list)


def difference_from(
    published: dict[str, PublishedFile[Entry]],
    files: Iterable[ListedFile],
    vector_of: Callable[[ListedFile], str],
    *,
    everything: bool = False,
) -> Difference[Entry]:
    """Return what changed since the last publication.

    `published`: the files of the published table by normal location, which are removed from the mapping.
    `vector_of`: returns the name of the translated deletion vector of a file.
    `everything`: whether all files are added again.
    """
    made: Difference[Entry] = Difference()
    for file in files:
        former = published.pop(normal_location(file.location), None)
        if former is None:
            made.added.append(file)
            continue
        has_same_vector = former.vector == (None if file.vector_key is None else vector_of(file))
        # A file that changed after the publication is another one under the same name.
        is_newer = None not in (file.modified, former.time) and (file.modified or 0) >= (former.time or 0)
        if everything or file.size != former.size or is_newer:
            made.added.append(file)
            (made.replaced if has_same_vector else made.removed).append(former.entry)
        elif not has_same_vector:
            made.vectors_changed.append((former.entry, file))
    made.removed += [former.entry for former in published.values()]
    return made


class Source(ABC):
    """A table whose files are published in another format."""

    format: str  # "delta", "iceberg", "parquet" or "vortex".
    location: str  # The absolute location of the table: the directory of its data files.
    version: str  # The version of the table as text; empty if the format has no versions.
    options: Mapping[str, str]

    @property
    def default_name(self) -> str:
        """The location whose last part names the table where the user gave no name."""
        return self.location

    @property
    def renames(self) -> bool:
        """Whether files may hold a column under another name than it has now, or a dropped column under its name."""
        return False

    @property
    def widened(self) -> Mapping[int, Sequence[str]]:
        """The types that widened columns had, oldest first, by field id, as Delta names them."""
        return {}

    @abstractmethod
    def columns(self, former: Schema | None, last_id: int) -> SourceColumns:
        """Return the columns.

        `former`: the columns of the earlier publication, whose field ids are kept.
        `last_id`: the highest field id that is taken.
        Raises `TableError`: reason ``"cannot-publish"`` for a column that the target cannot express.
        """

    @abstractmethod
    def listed(self) -> Iterator[ListedFile]:
        """Yield the data files of the table.

        Raises `TableError`: reason ``"cannot-publish"`` for a file that other formats cannot express.
        """

    @abstractmethod
    def described(self, columns: SourceColumns, files: Collection[ListedFile]) -> Iterator[DataFile]:
        """Yield files with partition values and metrics, by the field ids of the columns."""

    @abstractmethod
    def deleted_rows(self, file: ListedFile) -> Rows:
        """Return the ascending positions of the deleted rows of a file."""


def column_metrics(file: DataFile, f: Field) -> ColumnMetrics:
    """Return the metrics of a leaf column; bounds are unknown if one is missing, or if they are damaged (inverted)."""
    nulls, data = file.null_value_counts.get(f.id), (file.lower_bounds.get(f.id), file.upper_bounds.get(f.id))
    if not isinstance(f.type, PrimitiveType) or None in data:
        return ColumnMetrics(nulls)
    try:
        if f.type == VARIANT:
            lower, upper = (bounds_from_bytes(bound or b"") for bound in data)
            return ColumnMetrics(nulls, paths={p: ValueBounds(lower[p], upper[p]) for p in lower if p in upper})
        low, high = (from_bytes(bound, f.type) for bound in data)
        if low is None or high is None or low > high:
            return ColumnMetrics(nulls)
        return ColumnMetrics(nulls, *arrow_array([low, high], f.type))
    except (TableError, OverflowError, ValueError):
        return ColumnMetrics(nulls)


class PublishResult(Record):
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


def cannot_publish(problem: str) -> TableError:
    """Return the error for what another format cannot express; `publish` adds the location of the table."""
    return TableError(f"cannot publish: {problem}", reason="cannot-publish")
