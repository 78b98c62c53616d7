"""From LLVM's language to objects for each CPU level.

Owns what LLVM is told about a level, its optimizer's settings, and `build_object`, which keeps what it makes.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import llvmlite.binding as llvm

from parquet_variant.machine_code.building.fingerprints import fingerprint
from parquet_variant.machine_code.cache import find_object, keep_object
from parquet_variant.machine_code.functions import Kernel
from parquet_variant.machine_code.levels import AARCH64, X86_64, X86_64_V3

# Triple, CPU and features; "host" is what benchmarks compare with.
TARGETS = {
    X86_64: ("x86_64-unknown-linux-gnu", "x86-64"),
    X86_64_V3: ("x86_64-unknown-linux-gnu", "x86-64-v3"),
    AARCH64: ("aarch64-unknown-linux-gnu", "generic"),
}


def new_target_machine(level: str) -> Any:
    """LLVM's idea of a CPU level; ``host`` is this CPU with all that it can."""
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
    machine = _target_machine(level)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    if any(variable.name.startswith("numba.dynamic.globals") for variable in module.global_variables):
        raise ValueError("machine code with addresses of this process: a kernel uses a global that is no constant")
    return machine.emit_object(module)


def build_objects(kernel: Kernel, levels: tuple[str, ...]) -> list[bytes]:
    """The objects of a kernel, one a CPU level: those that were kept, and the others made now and kept."""
    made: bytes | None = None
    objects = []
    for level in levels:
        key = fingerprint(kernel, level)
        machine_code = find_object(key)
        if machine_code is None:
            # Numba takes half a second to import: not where all objects were kept.
            from parquet_variant.machine_code.building.frontend import bitcode

            made = made or bitcode(kernel)
            machine_code = _emit(llvm.parse_bitcode(made), level)
            keep_object(key, machine_code)
        objects.append(machine_code)
    return objects


def object_of_string(name: str, text: str, level: str) -> bytes:
    """An object that holds one string under a name."""
    content = text.encode("ascii")
    assembly = f'@{name} = constant [{len(content)} x i8] c"{text}"'
    return _emit(llvm.parse_assembly(assembly), level)
