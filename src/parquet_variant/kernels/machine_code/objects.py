"""Objects for each CPU level from LLVM bitcode.

Owns the LLVM options of a level, the settings of the optimizer, and `build_objects`, which uses the cache; and the
fingerprints that name objects in the cache: hashes of the module of a kernel, of the modules that it imports, and of
the compilers.
"""

from __future__ import annotations

import hashlib
import re
import sys
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from parquet_variant.kernels.machine_code.checks import is_checking
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


def build_objects(kernel: Any, levels: tuple[str, ...]) -> list[bytes]:
    """Return the objects of a kernel, one per CPU level, from the cache or compiled now."""
    made: bytes | None = None
    objects = []
    for level in levels:
        key = fingerprint(kernel, level)
        machine_code = find_object(key)
        if machine_code is None:
            # Importing Numba takes half a second, and is avoided if all objects are in the cache.
            from parquet_variant.kernels.machine_code.frontend import bitcode

            made = made or bitcode(kernel)
            machine_code = _emit(llvm.parse_bitcode(made), level)
            keep_object(key, machine_code)
        objects.append(machine_code)
    return objects


_IMPORT = re.compile(rb"^\s*from (parquet_variant[\w.]*) import", re.MULTILINE)


@cache
def source_of(module: str) -> tuple[str, frozenset[str]]:
    """Return the hash of a module's source, and the modules of this package that it imports."""
    file = getattr(sys.modules.get(module), "__file__", None)  # also that of a script, which has no spec
    if file is None:
        spec = find_spec(module)
        file = None if spec is None else spec.origin
    if file is None:
        raise ImportError(f"no source of module {module}, which has the code of a kernel")
    content = Path(file).read_bytes()
    return hashlib.sha256(content).hexdigest(), frozenset(name.decode() for name in _IMPORT.findall(content))


@cache
def hash_of_sources(module: str) -> str:
    """Return a hash of the sources of a module, of those that it imports, and of the compilers."""
    # Compilers import the instructions of intrinsics by name.
    pending = {module, __name__, f"{__name__.partition('.machine_code')[0]}.intrinsics"}
    hashes: dict[str, str] = {}
    while pending:
        name = pending.pop()
        hashes[name], imported = source_of(name)
        pending |= imported - hashes.keys()
    compilers = (sys.version_info[:2], version("numba"), version("llvmlite"), is_checking())
    return hashlib.sha256(repr((compilers, sorted(hashes.items()))).encode()).hexdigest()


def fingerprint(kernel: Any, level: str) -> str:
    """Return the hash of all that a kernel's object for a CPU level is made of."""
    parts = (level, kernel.symbol, str(kernel.signature), hash_of_sources(kernel.py_func.__module__))
    return hashlib.sha256(repr(parts).encode()).hexdigest()
