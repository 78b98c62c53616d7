"""`Contract`: the rules for the paths of a Variant column.

Owns the collection of rules, their files, and how contracts are named in arguments. `path_rules` has the rules of one
path, and `yaml_format` and `standards` the formats.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from parquet_variant.errors import VariantError, VariantFileError
from parquet_variant.inference.contracts import standards, yaml_format
from parquet_variant.inference.contracts.path_rules import ANY, PathRules, bad_contract, checked_path, checked_rules
from parquet_variant.io.filesystems import filesystem_of, write_errors
from parquet_variant.support.lazy_names import registered_method
from parquet_variant.support.records import Printed, Record
from parquet_variant.types.path import WILDCARD, VariantPath, outer_paths


class Contract(Printed, Record):
    """The rules that the values of a Variant column satisfy, by path.

    Parameters
    ----------
    paths
        The rules of each path, such as ``{"$.id": {"type": "integer", "required": True}}``. ``[*]`` stands for every
        element of an array.
    name, description
        Text for readers.

    Examples
    --------
    >>> import parquet_variant as pv
    >>> contract = pv.Contract({"$.id": {"type": "integer", "required": True}, "$.tag": {"values": ["a", "b"]}})
    >>> print(contract.to_yaml())
    version: 1
    paths:
      $.id:
        type: integer
        required: true
      $.tag:
        values: [a, b]
    >>> pv.Contract.from_yaml(contract.to_yaml()) == contract
    True
    """

    paths: Mapping[Any, Any] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.paths, Mapping):
            raise bad_contract(f"paths is a {type(self.paths).__name__}: give a mapping of paths to rules")
        for name in ("name", "description"):
            if not isinstance(text := getattr(self, name), str | None):
                raise bad_contract(f"{name} is {text!r}: write text")
        paths: dict[VariantPath, PathRules] = {}
        for name, value in self.paths.items():
            path = checked_path(name)
            try:
                rules = checked_rules(path, value)
            except VariantError as error:
                raise error.at(path=path.shorthand) from None
            if path in paths:
                raise bad_contract("the path occurs twice: keep one of the two", path=path.shorthand)
            paths[path] = rules
        # Without paths that have no rules and lead to others; parents before children, and elements before fields.
        parents = {outer for path in paths for outer in outer_paths(path)} | {VariantPath()}
        named = [path for path, rules in paths.items() if rules != ANY or path not in parents]
        named.sort(key=lambda path: [(segment is not WILDCARD, str(segment)) for segment in path.segments])
        object.__setattr__(self, "paths", {path: paths[path] for path in named})

    @classmethod
    def of(cls, contract: Contract | str | os.PathLike[str] | Mapping[str, Any]) -> Contract:
        """Return a contract from an object, a file (YAML, JSON Schema or ODCS), or a mapping of paths to rules.

        Raises
        ------
        VariantError
            For a contract that is not valid, with its file and line.
        VariantFileError
            For a file that cannot be read.
        """
        if isinstance(contract, Contract):
            return contract
        if isinstance(contract, Mapping):
            return cls(contract)
        if isinstance(contract, str | os.PathLike):
            return cls.load(contract)
        raise bad_contract(f"the contract is of type {type(contract).__name__}: give a Contract, a file or a mapping")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Contract:
        """Read a contract from a file: YAML, a JSON Schema, or an Open Data Contract Standard document.

        Parameters
        ----------
        path
            The file or its URI.

        Raises
        ------
        VariantError
            For a file that is not a contract, with the line, or with the keyword that cannot be expressed.
        VariantFileError
            For a file that cannot be read.
        """
        name = os.fspath(path)
        try:
            filesystem, place = filesystem_of(name)
            with filesystem.open_input_stream(place) as stream:
                text = stream.read().decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = "it does not exist" if isinstance(error, FileNotFoundError) else str(error)
            raise VariantFileError(f"cannot read the contract {name}: {why}", file=name) from None
        try:
            if standards.ODCS_LINE.search(text):
                return cls.from_odcs(text)
            return cls.from_json_schema(text) if text.lstrip().startswith("{") else cls.from_yaml(text)
        except VariantError as error:
            raise error.at(file=name) from None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the contract as YAML.

        Parameters
        ----------
        path
            The file or its URI.
        """
        filesystem, place = filesystem_of(path)
        with write_errors(os.fspath(path)), filesystem.open_output_stream(place) as stream:
            stream.write(f"{self.to_yaml()}\n".encode())

    @classmethod
    def from_yaml(cls, text: str) -> Contract:
        """Read a contract from YAML.

        Parameters
        ----------
        text
            The YAML, as `to_yaml` writes it.

        Raises
        ------
        VariantError
            For text that is not a contract, with the line.
        """
        return cls(**yaml_format.from_yaml(text))

    def to_yaml(self) -> str:
        """Return the contract as YAML, which `from_yaml` reads.

        Returns
        -------
        str
            One entry per path, with the rules that are set.
        """
        return yaml_format.to_yaml(self.paths, self._header)

    @classmethod
    def from_json_schema(cls, schema: Mapping[str, Any] | str) -> Contract:
        """Read a contract from a JSON Schema (draft 2020-12 or 7).

        Parameters
        ----------
        schema
            The schema, as an object or as text.

        Raises
        ------
        VariantError
            For a keyword that a contract cannot express, such as ``oneOf``, with its place in the schema.

        Examples
        --------
        >>> schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
        >>> {str(path): rules.rules() for path, rules in Contract.from_json_schema(schema).paths.items()}
        {'$': {'types': ('object',)}, "$['id']": {'types': ('integer',), 'required': True}}
        """
        return cls(**standards.from_json_schema(schema))

    def to_json_schema(self) -> dict[str, Any]:
        """Return the contract as a JSON Schema (draft 2020-12).

        Returns
        -------
        dict
            The schema. Rules without a keyword (`presence`, bounds of dates) are under ``x-variant``.
        """
        return standards.to_json_schema(self.paths, self._header)

    @classmethod
    def from_odcs(cls, document: str, *, schema: str | None = None, column: str | None = None) -> Contract:
        """Read a contract from a document of the Open Data Contract Standard, version 3.

        Parameters
        ----------
        document
            The YAML of the document.
        schema
            The name of the schema object, if the document has several.
        column
            The property that is the Variant column; by default the properties of the schema object are the fields of
            the Variant.

        Raises
        ------
        VariantError
            For a rule that a contract cannot express, with its place.
        """
        return cls(**standards.from_odcs(document, schema, column))

    def to_odcs(self) -> str:
        """Return the contract as YAML of the Open Data Contract Standard, version 3.

        Returns
        -------
        str
            The document. Rules that the standard does not have are custom properties named ``variant.…``.

        Raises
        ------
        VariantError
            For rules on the elements of a top-level array, which the standard does not have.
        """
        return standards.to_odcs(self.paths, self._header)

    def to_pandera(self) -> Any:
        """Return the contract as a schema of pandera for a pandas frame with a column per path, such as ``user.id``.

        Returns
        -------
        pandera.DataFrameSchema
            Its ``metadata["not expressed"]`` lists the rules that it does not check, such as those of elements.

        Examples
        --------
        >>> contract = Contract({"$.id": {"type": "integer", "required": True, "min": 0}})
        >>> schema = contract.to_pandera()  # doctest: +SKIP
        >>> frame = table.scan({name: f"$.{name}" for name in schema.columns}).to_pandas()  # doctest: +SKIP
        >>> schema.validate(frame)  # doctest: +SKIP
        """
        return registered_method("Contract.to_pandera")(self)

    def to_soda(self) -> str:
        """Return the contract as a data contract of Soda 4 for a table with a column per path, such as a typed view.

        Returns
        -------
        str
            YAML. Comments list the rules that Soda does not check, such as types and those of elements. The dataset is
            the name of the contract, in ``duckdb/main/`` if that names no data source and schema.

        Examples
        --------
        >>> print(Contract({"$.id": {"type": "integer", "min": 0}}, name="orders").to_soda())
        # not expressed: $.id type
        dataset: duckdb/main/orders
        columns:
          - name: id
            checks:
              - invalid:
                  valid_min: 0
        """
        return str(registered_method("Contract.to_soda")(self))

    @property
    def _header(self) -> dict[str, str]:
        return {name: text for name in ("name", "description") if (text := getattr(self, name)) is not None}

    def rules(self, path: str | VariantPath) -> PathRules:
        """Return the rules of a path; a path that the contract does not name has none.

        Parameters
        ----------
        path
            The path.
        """
        return self.paths.get(VariantPath.parse(path), ANY)

    def __repr__(self) -> str:
        named = "" if self.name is None else f" {self.name}"
        return f"<Contract{named}: rules for {len(self.paths):,} {'path' if len(self.paths) == 1 else 'paths'}>"

    def __str__(self) -> str:
        """Return the contract as YAML."""
        return self.to_yaml()

    def __iter__(self) -> Iterator[VariantPath]:
        return iter(self.paths)

    def __len__(self) -> int:
        return len(self.paths)
