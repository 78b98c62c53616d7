"""Contracts in files: recognises the format, and names the file in errors."""

from __future__ import annotations

import re

from parquet_variant.contracts.contract import Contract
from parquet_variant.errors import VariantError, VariantFileError
from parquet_variant.io.filesystems import filesystem_of, write_errors

_ODCS = re.compile(r"""(?m)^[\s{]*["']?(apiVersion|kind)["']?\s*:""")


def load_contract(path: str) -> Contract:
    """Read the contract of a file. Raises `VariantError` with the file for a contract that is not valid."""
    try:
        filesystem, place = filesystem_of(path)
        with filesystem.open_input_stream(place) as stream:
            text = stream.read().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = "it does not exist" if isinstance(error, FileNotFoundError) else str(error)
        raise VariantFileError(f"cannot read the contract {path}: {why}", file=path) from None
    try:
        return read_contract(text)
    except VariantError as error:
        raise error.at(file=path) from None


def read_contract(text: str) -> Contract:
    """Read a contract from YAML, JSON Schema or an ODCS document."""
    if _ODCS.search(text):
        return Contract.from_odcs(text)
    return Contract.from_json_schema(text) if text.lstrip().startswith("{") else Contract.from_yaml(text)


def save_contract(contract: Contract, path: str) -> None:
    """Write a contract as YAML."""
    filesystem, place = filesystem_of(path)
    with write_errors(path), filesystem.open_output_stream(place) as stream:
        stream.write(f"{contract.to_yaml()}\n".encode())
