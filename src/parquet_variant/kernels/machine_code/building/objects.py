"""Objects for each CPU level from LLVM bitcode.

Owns the LLVM options of a level, the settings of the optimizer, and `build_objects`, which uses the cache; and the
fingerprints that name objects in the cache: hashes of the code, of all functions that it calls, of their constants, and
of the compilers. Changing comments, docstrings, annotations or names of local variables recompiles nothing.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from parquet_variant.kernels.machine_code.checks import is_checking
from parquet_variant.kernels.machine_code.functions import Helper, Intrinsic, Kernel
from parquet_variant.kernels.machine_code.library import AARCH64, X86_64, X86_64_V3, find_object, keep_object

# Triple and CPU of each level; benchmarks compare with "host".
TARGETS = {
    X86_64: ("x86_64-unknown-linux-gnu", "x86-64"),
    X86_64_V3: ("x86_64-unknown-linux-gnu", "x86-64-v3"),
    AARCH64: ("aarch64-unknown-linux-gnu", "generic"),
}


def new_target_machine(level: str) -> Any:
    """Return LLVM's target machine of a CPU level; ``host`` is this CPU with all its features."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    if level == "host":
        triple, cpu = llvm.get_process_triple(), llvm.get_host_cpu_name()
        features = llvm.get_host_cpu_features().flatten()
    else:
        (triple, cpu), features = TARGETS[level], ""
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(cpu=cpu, features=features, opt=3, reloc="pic", codemodel="small")


_target_machine = cache(new_target_machine)


def _emit(module: Any, level: str) -> bytes:
    """Optimize a module and return its object."""
    machine = _target_machine(level)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    if any(variable.name.startswith("numba.dynamic.globals") for variable in module.global_variables):
        raise ValueError(
            "the machine code contains addresses of this process: a kernel uses a global that is not a constant"
        )
    return machine.emit_object(module)


def build_objects(kernel: Kernel, levels: tuple[str, ...]) -> list[bytes]:
    """Return the objects of a kernel, one per CPU level, from the cache or compiled now."""
    made: bytes | None = None
    objects = []
    for level in levels:
        key = fingerprint(kernel, level)
        machine_code = find_object(key)
        if machine_code is None:
            # Importing Numba takes half a second, and is avoided if all objects are in the cache.
            from parquet_variant.kernels.machine_code.building.frontend import bitcode

            made = made or bitcode(kernel)
            machine_code = _emit(llvm.parse_bitcode(made), level)
            keep_object(key, machine_code)
        objects.append(machine_code)
    return objects


def object_of_string(name: str, text: str, level: str) -> bytes:
    """Return an object that holds one string under a symbol."""
    content = text.encode("ascii")
    assembly = f'@{name} = constant [{len(content)} x i8] c"{text}"'
    return _emit(llvm.parse_assembly(assembly), level)


def _statements(path: Path) -> bytes:
    """Return the statements of a module without comments, docstrings and layout."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [part for part in node.body if not _is_text(part)] or [ast.Pass()]
    return ast.dump(tree).encode()


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


@cache
def _compilers() -> str:
    """Return the versions of the compilers, and a hash of the modules here that drive them."""
    digest = hashlib.sha256()
    for name in ("frontend", "objects"):
        digest.update(_statements(Path(__file__).with_name(f"{name}.py")))
    versions = [f"{name} {version(name)}" for name in ("numba", "llvmlite")]
    checked = "checked " if is_checking() else ""
    return f"{checked}python {sys.version_info[:2]} {versions} {digest.hexdigest()}"


@cache
def _instructions(module: str) -> str:
    """Return the hash of the module with the instructions of an intrinsic."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ImportError(f"no module {module}, which has the instructions of an intrinsic")
    return hashlib.sha256(_statements(Path(spec.origin))).hexdigest()


def _constant(value: Any) -> str:
    """Return the text of a constant; equal constants have the same text, whatever the order of a set."""
    if isinstance(value, frozenset):
        return f"frozenset({sorted(map(_constant, value))})"
    return repr(value)


def _code(code: CodeType) -> Iterator[str]:
    """Yield the code of a function."""
    # Parameters may be passed by name; the names of other variables change nothing.
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    yield f"{code.co_name} {parameters} {code.co_names} {code.co_code.hex()}"
    for constant in code.co_consts[1:] if code.co_consts and isinstance(code.co_consts[0], str) else code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code(constant)
        else:
            yield _constant(constant)


def _value(value: Any, seen: set[str]) -> Iterator[str]:
    """Yield the value of a name that a kernel uses."""
    if isinstance(value, Intrinsic):
        yield f"{value!r} {_instructions(value.maker)}"
    elif isinstance(value, Helper | Kernel):
        yield from _function(value, seen)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    elif isinstance(value, type) and issubclass(value, tuple):
        yield f"{value!r} {getattr(value, '_fields', ())}"
    elif isinstance(value, ModuleType):
        yield value.__name__
    else:
        yield repr(value)


def _function(compiled: Helper | Kernel, seen: set[str]) -> Iterator[str]:
    """Yield the code of a function and of all functions that it calls."""
    name = repr(compiled)
    yield name
    if name in seen:
        return
    seen.add(name)
    function = compiled.py_func
    yield f"{compiled.targetoptions}"
    yield from _code(function.__code__)
    for global_name in function.__code__.co_names:
        if global_name in function.__globals__:
            yield global_name
            yield from _value(function.__globals__[global_name], seen)
    for cell in function.__closure__ or ():
        yield from _value(cell.cell_contents, seen)


def fingerprint(kernel: Kernel, level: str) -> str:
    """Return the hash of a kernel's object for a CPU level."""
    digest = hashlib.sha256(f"{_compilers()}\n{level}\n{kernel.symbol} {kernel.signature}\n".encode())
    functions = [kernel] if kernel.signature.owner is None else [kernel, kernel.signature.owner.release]
    for part in chain.from_iterable(_function(function, set()) for function in functions):
        digest.update(part.encode())
        digest.update(b"\n")
    return digest.hexdigest()
