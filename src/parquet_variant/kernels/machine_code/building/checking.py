"""The checks in the machine code of the checked mode, which call the functions of `checks`.

Owns verifying an address before an access, the place in the source that a report names, and noting exceptions of
kernels, such as that for an index outside of an array. Adds nothing to the code of other modes.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, cpu
from numba.core.callconv import CPUCallConv
from numba.core.compiler_machinery import register_pass
from numba.core.lowering import Lower
from numba.core.typed_passes import BaseNativeLowering

from parquet_variant.kernels.machine_code.checks import is_checking

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
