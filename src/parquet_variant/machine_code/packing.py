"""Laying out the arguments of calls by code that is made for a signature.

Owns that code: one expression in place of a loop over the parameters, which would take longer than many a kernel.
Leaves what the words are, and what is wrong with an argument, to `signatures`.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import numpy as np

from parquet_variant.machine_code.signatures import ArrayType, RecordType, Signature, Type, array_words

_NOTHING = ctypes.c_int64()
# The address of an array that may be written, in a seventh of the time that the array interface takes.
_NAMES = {
    "array": array,
    "array_words": array_words,
    "address": ctypes.addressof,
    "cells": ctypes.c_char.from_buffer,
    "nowhere": ctypes.addressof(_NOTHING),
    "ndarray": np.ndarray,
}


def packer(signature: Signature) -> Callable[[tuple[Any, ...]], array[int]]:
    """What does the same as `Signature.pack`, which is asked where an argument is none of the usual kind."""
    names: dict[str, Any] = {**_NAMES, "checked": signature.pack}
    checks: list[str] = []
    words: list[str] = []
    for number, (_, kind) in enumerate(signature.parameters):
        _add(f"a{number}", kind, names, checks, words)
    targets = "".join(f"a{number}, " for number in range(len(signature.parameters)))
    layout = "".join(f"{word}, " for word in [*words, *map(str, signature.result_words)])
    source = f"""
def pack(arguments):
    try:
        {targets or "()"} = arguments
        if {" and ".join(checks) or "True"}:
            return array("q", ({layout}))
    except (TypeError, ValueError, OverflowError):
        pass
    return checked(arguments)
"""
    exec(source, names)
    pack: Callable[[tuple[Any, ...]], array[int]] = names["pack"]
    return pack


def _add(value: str, kind: Type, names: dict[str, Any], checks: list[str], words: list[str]) -> None:
    """Add the words of a value, what must hold for it, and what these name."""
    name = f"k{len(names)}"
    if isinstance(kind, RecordType):
        names[name] = kind.record
        checks.append(f"type({value}) is {name}")
        for field, each in kind.fields:
            _add(f"{value}.{field}", each, names, checks, words)
    elif isinstance(kind, tuple):
        checks.append(f"type({value}) is tuple and len({value}) == {len(kind)}")
        for number, each in enumerate(kind):
            _add(f"{value}[{number}]", each, names, checks, words)
    elif not isinstance(kind, ArrayType):
        words.append(value if kind is int else f"bool({value})")
    elif kind.read_only:
        names[name] = kind
        words.append(f"*array_words({name}, {value}, '')")
    else:
        names[name] = kind.numpy
        checks.append(f"type({value}) is ndarray and {value}.dtype is {name} and {value}.ndim == {kind.dimensions}")
        words.append(f"address(cells({value})) if {value}.size else nowhere")
        words.append(f"len({value})" if kind.dimensions == 1 else f"*{value}.shape")


def unpacker(signature: Signature) -> Callable[[array[int]], Any]:
    """What gives the result of a call from its words, when it is done."""
    if signature.result is None:
        return lambda words: None
    expression = _result(signature.result, count(-len(signature.result_words)))
    unpack: Callable[[array[int]], Any] = eval(f"lambda words: {expression}", {})
    return unpack


def _result(kind: Type, places: Iterator[int]) -> str:
    if isinstance(kind, tuple):
        return f"({''.join(f'{_result(each, places)}, ' for each in kind)})"
    word = f"words[{next(places)}]"
    return word if kind is int else f"bool({word})"
