"""Translate a kernel to LLVM bitcode with Numba, for no particular CPU.

Owns the target (code that this process does not run), the entry point of a kernel, linking a kernel with all functions
that it calls, and the checks of the checked mode, which call the functions of `checks`: verifying an address before an
access, the place in the source that a report names, and noting exceptions of kernels. Leaves optimizing and machine
code to `objects`.

The target is registered with Numba's extension interface (`numba.core.target_extension`), as Numba's targets for GPUs
are: Numba finds overloads and intrinsics for it by its class, and Numba's own target and its contexts are not changed.
Kernels compile without object mode, without reference counts (see `kernels.native_vectors`) and with NumPy's error
model. docs/internals/kernels.md lists the private parts of Numba that this module uses.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils, cpu, typing
from numba.core.callconv import CPUCallConv
from numba.core.codegen import AOTCPUCodegen, CPUCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.descriptors import TargetDescriptor
from numba.core.lowering import Lower
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys
from numba.core.target_extension import CPU, dispatcher_registry, jit_registry, target_registry
from numba.core.typed_passes import BaseNativeLowering, InlineOverloads, NativeLowering, NopythonRewrites
from numba.core.untyped_passes import (
    DeadBranchPrune,
    InlineClosureLikes,
    LiteralUnroll,
    RewriteSemanticConstants,
    WithLifting,
)
from numba.np import arrayobj

from parquet_variant.kernels.machine_code.checks import is_checking
from parquet_variant.kernels.machine_code.signatures import ArrayType, RecordType
from parquet_variant.support.records import cached_property

_INT64, _BYTES = ir.IntType(64), ir.IntType(8).as_pointer()


class _NotingCallConv(CPUCallConv):
    """How functions return exceptions: those that kernels do not raise themselves are noted."""

    def return_user_exc(self, builder: Any, exc: Any, *arguments: Any, **where: Any) -> None:
        if exc is not None and exc is not MemoryError:
            name = self.context.insert_const_string(builder.module, exc.__name__)
            place = self.context.insert_const_string(builder.module, self.context.place)
            kind = ir.FunctionType(ir.VoidType(), [_BYTES, _BYTES])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, "pv_note_exception"), [name, place])
        super().return_user_exc(builder, exc, *arguments, **where)


class CheckedContext(cpu.CPUContext):
    """A context for code generation that knows the place in the source."""

    place = ""

    @property
    def call_conv(self) -> Any:
        """How functions are called, and return exceptions."""
        return _NotingCallConv(self)


class _Lower(Lower):
    def notify_loc(self, loc: Any) -> None:
        """Remember the place of the next statement."""
        self.context.place = f"{loc.filename}:{loc.line}"


@register_pass(mutates_CFG=True, analysis_only=False)
class CheckedLowering(BaseNativeLowering):
    """The pass that generates code, and remembers the place of each statement."""

    _name = "checked_lowering"

    @property
    def lowering_class(self) -> Any:
        """The class that generates code."""
        return _Lower


def check_access(context: Any, builder: Any, access: int, address: Any, size: Any) -> None:
    """Verify an access to memory in checked mode; the function raises if it is refused."""
    if not is_checking():
        return
    latest = builder.module.globals.get("pv_latest")
    if latest is None:
        latest = ir.GlobalVariable(builder.module, ir.ArrayType(_INT64, 2), "pv_latest")
    start, stop = (
        builder.load(builder.gep(latest, [ir.Constant(_INT64, 0), ir.Constant(_INT64, bound)])) for bound in range(2)
    )
    end = builder.add(address, size)
    outside = builder.or_(builder.icmp_signed("<", address, start), builder.icmp_signed(">", end, stop))
    with builder.if_then(outside):
        kind = ir.FunctionType(_INT64, [_INT64, _INT64, _INT64, _BYTES])
        check = cgutils.get_or_insert_function(builder.module, kind, "pv_check")
        place = context.insert_const_string(builder.module, context.place)
        refused = builder.call(check, [ir.Constant(_INT64, access), address, size, place])
        with builder.if_then(builder.icmp_signed("!=", refused, ir.Constant(_INT64, 0)), likely=False):
            context.call_conv.return_user_exc(builder, MemoryError, ("bad address",))


def note_list(builder: Any, address: Any, size: int) -> None:
    """Register the list of the blocks of a call in checked mode; forget it if the size is 0."""
    if is_checking():
        kind = ir.FunctionType(ir.VoidType(), [_INT64, _INT64])
        note = cgutils.get_or_insert_function(builder.module, kind, "pv_note_list")
        builder.call(note, [address, ir.Constant(_INT64, size)])


@contextmanager
def _compiling() -> Iterator[Any]:
    """Hold the lock of Numba's compiler, without garbage collection (a tenth faster); yield its context."""
    with global_compiler_lock:
        collects = gc.isenabled()
        gc.disable()
        try:
            yield TARGET.target_context
        finally:
            if collects:
                gc.enable()


@cache
def _dispatcher(compiled: Any) -> Dispatcher:
    options = {**_OPTIONS, **compiled.targetoptions}
    return Dispatcher(compiled.py_func, targetoptions=options, pipeline_class=_Compiler)


@cache
def type_of(compiled: Any) -> Any:
    """Return the Numba type of a kernel, helper or intrinsic, for compiling its caller."""
    if hasattr(compiled, "maker"):  # an intrinsic
        made = getattr(import_module(compiled.maker), compiled.__qualname__)
        TARGET.typing_context.refresh()
        return TARGET.typing_context.resolve_value_type(made)
    return _dispatcher(compiled)._numba_type_


def _type(kind: Any) -> Any:
    if isinstance(kind, tuple):
        return types.Tuple([_type(part) for part in kind])
    if isinstance(kind, RecordType):
        return types.BaseTuple.from_types([_type(part) for _, part in kind.fields], kind.record)
    if isinstance(kind, ArrayType):
        dtype = types.boolean if kind.dtype == "bool" else getattr(types, kind.dtype)
        return types.Array(dtype, kind.dimensions, "C", readonly=kind.read_only)
    return {int: types.int64, bool: types.boolean, None: types.none}[kind]


def _returns(returned: Any, declared: Any) -> bool:
    """Return whether a result has the declared type; an integer may have any width."""
    if isinstance(declared, tuple):
        return (
            isinstance(returned, types.BaseTuple)
            and len(returned) == len(declared)
            and all(map(_returns, returned, declared))
        )
    return isinstance(returned, types.Integer) if declared is int else returned == _type(declared)


def array_value(context: Any, builder: Any, kind: Any, address: Any, shape: list[Any]) -> Any:
    """Return an array over the memory at an address."""
    array = arrayobj.make_array(kind)(context, builder)
    item = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    strides = [context.get_constant(types.intp, item)]
    for extent in shape[:0:-1]:
        strides.insert(0, builder.mul(extent, strides[0]))
    data = builder.inttoptr(address, context.get_data_type(kind.dtype).as_pointer())
    arrayobj.populate_array(array, data=data, shape=shape, strides=strides, itemsize=strides[-1], meminfo=None)
    return array._getvalue()


class _Entry:
    """Writes the entry point of a kernel, which reads its arguments from words and writes the result behind them."""

    def __init__(self, context: Any, builder: Any, words: Any) -> None:
        self.context, self.builder, self.words, self.place = context, builder, words, 0

    def _next(self) -> Any:
        address = self.builder.gep(self.words, [ir.Constant(ir.IntType(32), self.place)])
        self.place += 1
        return address

    def argument(self, kind: Any) -> Any:
        if isinstance(kind, types.BaseTuple):
            return (
                cgutils.pack_array(self.builder, [self.argument(part) for part in kind])
                if isinstance(kind, types.UniTuple | types.NamedUniTuple)
                else self.context.make_tuple(self.builder, kind, [self.argument(part) for part in kind])
            )
        word = self.builder.load(self._next())
        if isinstance(kind, types.Array):
            return array_value(
                self.context, self.builder, kind, word, [self.builder.load(self._next()) for _ in range(kind.ndim)]
            )
        return self.builder.trunc(word, ir.IntType(1)) if kind == types.boolean else word

    def result(self, kind: Any, value: Any) -> None:
        if isinstance(kind, types.BaseTuple):
            for number, part in enumerate(kind):
                self.result(part, self.builder.extract_value(value, number))
        elif kind != types.none:
            self.builder.store(self.context.cast(self.builder, value, kind, types.int64), self._next())


def _call(context: Any, builder: Any, compiled: Any, arguments: list[Any]) -> tuple[Any, Any]:
    """Call a compiled function of another module; return its status and result."""
    description = compiled.fndesc
    function_type = context.call_conv.get_function_type(description.restype, description.argtypes)
    callee = ir.Function(builder.module, function_type, description.llvm_func_name)
    status, value = context.call_conv.call_function(
        builder, callee, description.restype, description.argtypes, arguments
    )
    return status, value


def _entry_module(context: Any, kernel: Any, compiled: Any, release: Any) -> Any:
    """Return a module with the entry point of a kernel, which calls the compiled function; with a function to release
    memory, the first argument is the owner of the memory, which is released when the function has ended.
    """
    module = context.create_module(kernel.symbol)
    entry = ir.Function(module, ir.FunctionType(ir.IntType(32), [_INT64.as_pointer()]), kernel.symbol)
    builder = ir.IRBuilder(entry.append_basic_block())
    words = _Entry(context, builder, entry.args[0])
    description = compiled.fndesc
    owner = []
    if release is not None:
        # An empty list of `kernels.native_vectors`, which is on the stack of the entry point.
        pair = builder.alloca(_INT64, 2)
        owner.append(builder.ptrtoint(pair, _INT64))
        for place in range(2):
            builder.store(owner[0], builder.gep(pair, [ir.Constant(ir.IntType(32), place)]))
        note_list(builder, owner[0], 16)
    arguments = [words.argument(kind) for kind in description.argtypes[len(owner) :]]
    status, value = _call(context, builder, compiled, owner + arguments)
    if release is not None:
        _call(context, builder, release, owner)
        note_list(builder, owner[0], 0)
    with builder.if_then(status.is_error, likely=False):
        builder.ret(ir.Constant(ir.IntType(32), 1))
    words.result(description.restype, value)
    builder.ret(ir.Constant(ir.IntType(32), 0))
    return llvm.parse_assembly(str(module))


# Messages of exceptions, which contain a path of the build machine; the caller raises its own message.
_MESSAGE = re.compile(r"(@\.const\.picklebuf\.\w+ = [^{]*\{[^}]*\}) \{[^}]*\}")


def _compiled(function: Any, parameters: tuple[Any, ...]) -> Any:
    """Return what Numba made of a function for parameters of some types."""
    dispatcher = _dispatcher(function)
    dispatcher.compile(parameters)
    return dispatcher.overloads[parameters]


def bitcode(kernel: Any) -> bytes:
    """Return unoptimized LLVM bitcode of a kernel and of all functions that it calls; only the entry point is exported.

    Raises `TypeError` if the result does not have the declared type, and `numba.core.errors.NumbaError` if Numba cannot
    compile the kernel.
    """
    signature = kernel.signature
    owner = () if signature.owner is None else (types.int64,)
    parameters = (*owner, *(_type(kind) for _, kind in signature.parameters))
    with _compiling() as context:
        compiled = _compiled(kernel, parameters)
        release = None if signature.owner is None else _compiled(signature.owner.release, owner)
        returned = compiled.signature.return_type
        if not _returns(returned, signature.result):
            raise TypeError(f"{kernel!r} returns {returned}, but declares {signature}")
        libraries: dict[Library, None] = {}
        compiled.library.closure(libraries)
        if release is not None:
            release.library.closure(libraries)
        module = _entry_module(context, kernel, compiled, release)
        for library in libraries:
            module.link_in(library._final_module, preserve=True)
    for function in module.functions:
        if not function.is_declaration and function.name != kernel.symbol:
            function.linkage = "internal"
    for variable in module.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    text = _MESSAGE.sub(r"\1 zeroinitializer", str(module))
    return llvm.parse_assembly(text).as_bitcode()


_NAME = "parquet_variant"


class KernelTarget(CPU):
    """The class of the target; what Numba has for CPUs is used for it."""


target_registry[_NAME] = KernelTarget


class Library(CPUCodeLibrary):
    """The unoptimized code of one function."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout

    def add_linking_library(self, library: Any) -> None:
        """Add a library that this one calls, but not that of Numba's runtime."""
        if library is not rtsys.library:
            super().add_linking_library(library)

    def finalize(self) -> None:
        """Do nothing, because `frontend` links libraries."""
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0, because the code does not run in this process."""
        return 0

    def closure(self, libraries: dict[Library, None]) -> None:
        """Add this library and all libraries that it calls."""
        if self not in libraries:
            libraries[self] = None
            for library in self._linking_libraries:
                library.closure(libraries)


class _Codegen(AOTCPUCodegen):
    _library_class = Library

    def set_env(self, env_name: str, env: Any) -> None:
        """Do nothing, because the code does not run in this process."""


class _Target(TargetDescriptor):
    """The contexts of the target."""

    options = cpu.CPUTargetOptions

    @cached_property
    def typing_context(self) -> Any:
        """The context for inferring types."""
        return typing.Context()

    @cached_property
    def target_context(self) -> Any:
        """The context for code generation."""
        context = (CheckedContext if is_checking() else cpu.CPUContext)(self.typing_context, _NAME)
        self.typing_context.refresh()
        context.refresh()
        context._internal_codegen = _Codegen(_NAME)
        return context


TARGET = _Target(_NAME)


# Passes for closures, comprehensions, object mode, array expressions and code that depends on types: unused by kernels.
_UNUSED_PASSES = {
    DeadBranchPrune,
    InlineClosureLikes,
    InlineOverloads,
    LiteralUnroll,
    NopythonRewrites,
    RewriteSemanticConstants,
    WithLifting,
}


class _Compiler(CompilerBase):
    """Numba's compiler without passes that kernels do not need."""

    def define_pipelines(self) -> list[PassManager]:
        pipeline = PassManager("kernel")
        for pass_class, description in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            if pass_class not in _UNUSED_PASSES:
                is_checked = pass_class is NativeLowering and is_checking()
                pipeline.add_pass(CheckedLowering if is_checked else pass_class, description)
        pipeline.finalize()
        return [pipeline]


class Dispatcher(CPUDispatcher):
    """Compiles one function for all numbers, instead of one more for each literal."""

    targetdescr = TARGET

    def get_call_template(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
        """Return what another kernel calls."""
        return super().get_call_template(
            tuple(map(types.unliteral, args)), {k: types.unliteral(v) for k, v in kws.items()}
        )


_OPTIONS = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
    "no_cpython_wrapper": True,
    **({"boundscheck": True} if is_checking() else {}),
}


def _jit(**options: Any) -> Callable[[Callable[..., Any]], CPUDispatcher]:
    """Return the decorator that compiles an overload of Numba for this target."""
    return lambda function: _OverloadDispatcher(function, targetoptions=options)


class _OverloadDispatcher(CPUDispatcher):
    """Compiles an overload, as Numba does for its own target."""

    targetdescr = TARGET


dispatcher_registry[KernelTarget] = Dispatcher
jit_registry[KernelTarget] = _jit
