"""Objects for each CPU level from LLVM bitcode.

Owns the LLVM options of a level, the settings of the optimizer, and `build_objects`, which uses the cache.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import llvmlite.binding as llvm

from parquet_variant.kernels.machine_code.building.fingerprints import fingerprint
from parquet_variant.kernels.machine_code.cache import find_object, keep_object
from parquet_variant.kernels.machine_code.functions import Kernel
from parquet_variant.kernels.machine_code.levels import AARCH64, X86_64, X86_64_V3

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
