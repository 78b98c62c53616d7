"""Methods of `Table` that report, compare, check and publish the rows, or rewrite files.

Owns the parameters and their description. Leaves the work to the functions of the formats and of higher layers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

from parquet_variant.errors import VariantFileError, without_secrets
from parquet_variant.files.parquet.writing.conform import FileKeywords
from parquet_variant.io.parallel import Progress
from parquet_variant.layouts.shredding_schema import ShreddingSchema
from parquet_variant.support.lazy_names import registered_method
from parquet_variant.support.options import AnyLayout, ContractLevel, FileMode, OnConflict
from parquet_variant.types.path import VariantPath

if TYPE_CHECKING:
    from parquet_variant.inference.contracts.contract import Contract
    from parquet_variant.inference.profile import Profile
from parquet_variant.tables.table.base import OpenOptions, TableBase


class RewriteKeywords(FileKeywords, total=False):
    """The keywords of `FileKeywords`, and those of Vortex files."""

    compact: bool


class ReportingMethods(TableBase):
    """The methods that report, compare, check, publish and rewrite."""

    def data_files(self) -> list[str]:
        """Return the paths or URIs of the files that hold the rows: of the version, for Delta and Iceberg.

        Raises
        ------
        TableError
            ``"outside-table"`` if a file is outside of a Delta table that was opened without `allow_outside`.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"n": [1]}, format="delta")
        ...     [file.rpartition("/")[2][:5] for file in pv.open(folder).data_files()]
        ['part-']
        """
        return self._run("data_files")

    def inspect(self, *, column: str | None = None) -> Any:
        """Report the content of the files: rows, row groups, columns and paths; only footers are read.

        Parameters
        ----------
        column
            Only this Variant column.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(f"{folder}/a.parquet", pv.parse_json(['{"a": 1}', '{"a": "x"}']), schema="a bigint")
        ...     report = pv.open(folder).inspect()
        >>> [(path.path, path.typed_share, path.residual_share) for path in report.columns[0].paths]
        [('$', None, 0.0), ("$['a']", 0.5, 0.5)]
        """
        return table_of_files(self)._run("inspect", column=column)

    def validate(self, *, column: str | None = None, limit: int = 1000, threads: int | None = None) -> Any:
        """Check files, including every value, against the specification of shredding and encoding.

        Parameters
        ----------
        column
            The Variant column to check (default: all).
        limit
            Maximum number of violations per column of a file; further ones are counted.
        threads
            Number of row groups that are checked at the same time (default: one per CPU).

        Returns
        -------
        ValidationReport
            With file, row group, row, path and reason of every violation.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(f"{folder}/a.parquet", pv.parse_json(['{"a": 1}']))
        ...     pv.open(folder).validate().violations
        []
        """
        options = {"column": column, "limit": limit, "threads": threads, "unannotated": self.format == "delta"}
        return table_of_files(self)._run("validate", **options)

    def profile(self, **options: Any) -> Profile:
        """Profile the paths: types, shares, ranges and lengths; see `pv.profile`."""
        return self._run("profile", **options)

    def diff(
        self,
        other: Any,
        *,
        factor: float = 3.0,
        min_change: float = 0.05,
        min_share: float = 0.0,
        ignore: Sequence[str | VariantPath] = (),
        values: bool = True,
        sample_bytes: int | None = None,
        threads: int | None = None,
    ) -> Any:
        """Compare with newer data by path: paths that appeared or vanished, types, nulls, ranges and lengths.

        Small data is read as a whole. Of larger shredded files and tables, footers and residual columns prove most
        figures, and a bounded sample has the others; of other large files, a sample is read. Each finding says which.

        Parameters
        ----------
        other
            The newer data: an open table of any format, such as the same table at another version or in another
            partition, or anything that `pv.open` accepts.
        factor
            Factor by which a range, the number of distinct values, or the mean length of strings or arrays must differ.
            Of n values, a factor of ``factor * (1 + 10 / n)`` is needed.
        min_change
            Difference of a share (of nulls, of missing values, of a type) that is reported, from 0 to 1, if it is also
            larger than chance explains.
        min_share
            Paths and types on one side only are not reported if their share is smaller; by default all are.
        ignore
            Paths that are not compared, with the paths below them.
        values
            If false, the result has no values of the data: example rows have numbers only, and ranges no bounds.
        sample_bytes
            Bytes to read of each data set that is larger, without its footers. By default, data up to 8 MiB (64 MiB of
            JSON) is read as a whole, else 4 MiB or 0.8 % of the bytes, at most 8 MiB.
        threads
            Number of threads that parse JSON (default: one per CPU).

        Returns
        -------
        DataDiff
            The findings, with figures of both sides and example rows.

        Raises
        ------
        VariantFileError
            For a source that does not exist, has no rows, or has no such partition or version.
        JsonError
            For an invalid line if ``on_error`` is ``"fail"``.

        Examples
        --------
        >>> import parquet_variant as pv
        >>> old = pv.parse_json(['{"id": 1, "tags": ["a"]}'] * 100)
        >>> new = pv.parse_json(['{"id": "x1", "tags": {"a": true}, "note": null}'] * 100)
        >>> for finding in pv.open(old).diff(new).findings:
        ...     print(finding)
        array-to-object  $.tags: array -> object (100 values), with 2 paths below it [values]
        type  $.id: integer -> string (100 values) [values]
        appeared  $.note: is in 100% of its parents (100 values), as null [values]
        """
        limits = {"factor": factor, "min_change": min_change, "min_share": min_share, "ignore": ignore}
        options = {"values": values, "sample_bytes": sample_bytes, "threads": threads}
        return registered_method("Table.diff")(self, other, **options, **limits)

    def contract(
        self, level: ContractLevel = "normal", *, name: str | None = None, threads: int | None = None
    ) -> Contract:
        """Infer a contract that the rows satisfy.

        Rules come from a summary (of a sample, if the data is large), and those that any row breaks are removed.

        Parameters
        ----------
        level
            ``"loose"``: types and nulls. ``"normal"``: also required fields, enumerations, forms of strings such as
            timestamps, and numbers that are not negative. ``"strict"``: also exact ranges and lengths, the share of
            rows with a field, patterns, and no other fields.
        name
            The name of the contract.
        threads
            Number of worker threads (default: one per CPU).

        Examples
        --------
        >>> import parquet_variant as pv
        >>> print(pv.open(pv.parse_json(['{"id": 1, "tag": "a"}', '{"id": 2}'])).contract())
        version: 1
        paths:
          $:
            type: object
            required: true
          $.id:
            type: integer
            required: true
            min: 0
          $.tag:
            type: string
        """
        return self._run("contract", level, name=name, threads=threads)

    def check(self, contract: Any, *, values: bool = True, examples: int = 5, threads: int | None = None) -> Any:
        """Check the rows against a contract.

        Rules that footers or statistics prove are decided without reading the values.

        Parameters
        ----------
        contract
            A `Contract`, a file (YAML, JSON Schema or ODCS), or a mapping of paths to rules.
        values
            Whether examples contain values. False is for confidential data.
        examples
            Number of examples per rule.
        threads
            Number of worker threads (default: one per CPU).

        Returns
        -------
        ContractReport
            The violations; an empty report is true.

        Examples
        --------
        >>> import parquet_variant as pv
        >>> quakes = pv.open("examples/usgs_earthquakes.ndjson")
        >>> report = quakes.check({"$.properties.mag": {"type": "number", "max": 5}})
        >>> bool(report)
        False
        >>> print(report.violations[0])
        $.properties.mag max: expected at most 5; 35 values in 2.05% of rows
        """
        return self._run("check", contract, values=values, examples=examples, threads=threads)

    def compat(
        self,
        engines: Collection[str] | Literal["all"] | None = None,
        *,
        require: Mapping[str, str] | None = None,
        timeout: float = 120,
        pythons: Iterable[str | os.PathLike[str]] = (),
        progress: Callable[[str, int, int], None] | None = None,
    ) -> Any:
        """Try the engines that are installed here on a copy of the data, and compare values; or predict from rules.

        Of a directory of files, the first 64 MiB are tried; an Iceberg table is read in place. A prediction runs
        nothing and reads only footers and the metadata of tables.

        Parameters
        ----------
        engines
            Names of engines; by default all engines that read this kind of data. ``"all"`` predicts what all engines
            and versions with rules do.
        require
            Versions of engines to predict for, such as ``{"spark": "4.0", "duckdb": "1.4"}``.
        timeout
            Seconds after which an engine is stopped.
        pythons
            Python executables of other environments, in which engines are looked for first.
        progress
            Called with the engine, the number of finished engines, and the number of engines.

        Returns
        -------
        CompatReport
            One result per engine; predictions have one per range of versions.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(f"{folder}/a.parquet", {"v": pv.parse_json(['{"a": 1}'])})
        ...     report = pv.open(f"{folder}/a.parquet").compat(["pyarrow"])
        ...     predicted = pv.open(f"{folder}/a.parquet").compat(require={"pyarrow": "21", "spark": "4.3"})
        >>> report.engines[0].verdict
        'struct'
        >>> [(result.engine, result.verdict) for result in predicted.engines]
        [('pyarrow 21', 'refuses'), ('spark 4.3', 'reads')]
        """
        return self._run("compat", engines, require=require, timeout=timeout, pythons=pythons, progress=progress)

    def explore(self, *, compare: Any = None) -> Any:
        """Inspect the data on one page: footers, the metadata of a table, and at most 20,000 rows or 8 MiB.

        Parameters
        ----------
        compare
            Another source to compare with, such as an earlier state.

        Returns
        -------
        Exploration
            Displayed by notebooks; `Exploration.save` writes one self-contained HTML page.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(f"{folder}/a.parquet", pv.parse_json(['{"a": 1}', '{"a": "x"}']), schema="a bigint")
        ...     page = pv.open(folder).explore()
        ...     page.save(f"{folder}/a.html").stat().st_size > 10_000
        True
        >>> page.to_dict()["paths"]["kinds"][1]
        {'int64': 1, 'string': 1}
        """
        return self._run("explore", compare=compare)

    def publish(self, format: str, *, to: Any = None, catalog: Any = None) -> Any:
        """Write the metadata of another table format over the data files, which are not copied.

        Vortex files, which table formats cannot hold, are converted to Parquet files with shredded Variants, each once.
        A repeated call adds and removes only what changed since, in one commit; a call without changes does nothing.
        The published table is a copy for readers: change the source, and publish again.

        Parameters
        ----------
        format
            The format to publish: ``"iceberg"``, ``"delta"`` or ``"ducklake"``.
        to
            Where the published table is: another directory, ``namespace.table`` of `catalog` for Iceberg, or for
            DuckLake the file of its catalog (default: ``TABLE.ducklake``), with ``#schema.table`` for another name than
            that of the directory. By default, Delta and Iceberg share the table's directory; tables of Vortex files
            share the directory ``TABLE.published`` with the converted files.
        catalog
            The catalog of a published Iceberg table (default: that of `pv.open`).

        Returns
        -------
        PublishResult

        Raises
        ------
        TableError
            ``"cannot-publish"`` for what the format cannot express, by name; ``"table-exists"`` or ``"exists"`` for a
            table that was not published; ``"changed-copy"`` if others changed the published table; ``"conflict"``.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(folder, {"v": pv.parse_json(['{"n": 1}', '{"n": 2}'])}, format="delta")
        ...     pv.open(folder).publish("iceberg").files_added
        ...     pv.open(folder, format="iceberg").scan({"n": "$.n:int"}).to_arrow().to_pydict()
        1
        {'n': [1, 2]}
        """
        return self._run("publish", format, to=to, **({} if catalog is None else {"catalog": catalog}))

    def rewrite(
        self,
        dest: Any,
        *,
        format: Any = None,
        layout: AnyLayout | None = None,
        schema: ShreddingSchema | str | None = None,
        column: str | None = None,
        on_conflict: OnConflict = "error",
        mode: FileMode = "error",
        threads: int | None = None,
        progress: Progress | None = None,
        **files: Unpack[RewriteKeywords],
    ) -> list[Any]:
        """Rewrite files to another layout, schema, format or annotation.

        Parameters
        ----------
        dest
            The new file, or directory for several files.
        format
            ``"parquet"`` or ``"vortex"`` (default: by the name of the destination).
        layout
            Of Parquet: ``"final"``, ``"unshredded"``, ``"draft-paths"`` or ``"draft-object"``; of Vortex: ``"auto"``,
            ``"variant"`` or ``"struct"``. By default the layout is kept.
        schema
            Shredding schema or its DDL; ``"infer"`` chooses one.
        column
            The Variant column, if there are several.
        on_conflict
            As for `read`.
        mode
            What to do if the destination exists: ``"error"`` or ``"overwrite"``.
        threads, progress
            Number of files that are written at the same time (default: one per CPU); True to show the progress, or a
            function that is called with the step, the files that are done and the number of files.
        **files
            Options of `VariantWriter`; for Vortex, ``compact``.

        Returns
        -------
        list of FileInfo or VortexFileInfo
            One entry per file.

        Examples
        --------
        >>> import tempfile, parquet_variant as pv
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = pv.write(f"{folder}/a.parquet", pv.parse_json(['{"a": 1}']))
        ...     _ = pv.open(f"{folder}/a.parquet").rewrite(f"{folder}/b.parquet", schema="a bigint")
        ...     pv.open(f"{folder}/b.parquet").paths()
        {'$.a': 'bigint'}
        """
        options: dict[str, Any] = {"format": format, "layout": layout, "schema": schema, "column": column, **files}
        options |= {"threads": threads, "progress": progress}
        action = None if on_conflict == "error" else on_conflict
        return self._run("rewrite", self._absolute(dest), on_conflict=action, mode=mode, **options)


def table_of_files(table: ReportingMethods) -> ReportingMethods:
    """Return the data files of a Delta or Iceberg table as a table of Parquet files; other tables as they are.

    Raises `VariantFileError` for a table without files, and as `Table.data_files`.
    """
    if table.format not in ("delta", "iceberg"):
        return table
    files, name = table.data_files(), without_secrets(table.uri)
    if not files:
        raise VariantFileError(f"the {table.format.title()} table {name} has no files", reason="no-files", file=name)
    opened: ReportingMethods = registered_method("Table.parquet")(files, OpenOptions(column=table.options.column))
    return opened
