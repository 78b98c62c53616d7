"""How kernels are written, and what is made of one."""

from __future__ import annotations

import gc
from typing import Annotated, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
import pytest

from parquet_variant.errors import VariantError
from parquet_variant.kernels.machine_code.functions import Kernel, helper, kernel
from parquet_variant.kernels.machine_code.library import X86_64
from parquet_variant.kernels.machine_code.signatures import ArrayType, Bools, Int64s, Int64Table

ReadOnlyInt64s = Annotated[npt.NDArray[np.int64], ArrayType("int64", read_only=True)]

pytestmark = pytest.mark.usefixtures("compiled_here")


class _Rows(NamedTuple):
    sizes: Int64s
    table: Int64Table
    first: int
    owner: object


def test_what_goes_in_and_comes_out() -> None:
    @kernel
    def everything(
        number: int, flag: bool, pair: tuple[int, bool], vector: ReadOnlyInt64s, table: Int64Table, flags: Bools
    ) -> tuple[int, tuple[bool, tuple[int, int]]]:
        total = number
        for value in vector:
            total += value
        for row in range(table.shape[0]):
            for column in range(table.shape[1]):
                table[row, column] = 10 * row + column
        for i in range(len(flags)):
            flags[i] = not flags[i]
        return total, (flag and pair[1], (pair[0], len(vector)))

    vector = np.arange(5)
    vector.flags.writeable = False
    table, flags = np.zeros((2, 3), np.int64), np.array([True, False])
    assert everything(2**62, True, (-7, True), vector, table, flags) == (2**62 + 10, (True, (-7, 5)))
    assert table.tolist() == [[0, 1, 2], [10, 11, 12]]
    assert flags.tolist() == [False, True]
    assert everything(np.int64(1), np.True_, (0, False), vector[:0], table[:0], flags[:0]) == (1, (False, (0, 0)))


class Pair(NamedTuple):
    """Something of which a kernel takes two fields."""

    vector: Int64s
    number: int
    owner: object = None


class Same(NamedTuple):
    left: int
    right: int


def test_named_tuples_go_in_field_by_field() -> None:
    @helper
    def swapped(pair):
        return Same(pair.right, pair.left)

    @kernel
    def sums(pair: Pair, same: Same) -> tuple[int, int]:
        return pair.vector[0] + pair.number, swapped(same).left - same.left

    assert sums(Pair(np.array([1]), 2, object()), Same(3, 5)) == (3, 2)
    assert (
        str(sums.signature)
        == "(pair: Pair(vector: int64[:], number: int), same: Same(left: int, right: int)) -> (int, int)"
    )
    with pytest.raises(TypeError, match=r"pair must be Pair\(.*\), not tuple"):
        sums((np.array([1]), 2), Same(3, 5))
    with pytest.raises(TypeError, match=r"pair\.vector must be int64"):
        sums(Pair(np.array([1], np.int32), 2), Same(3, 5))


@kernel
def first(vector: Int64s) -> int:
    return vector[0]


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        (np.zeros(3, np.int32), r"vector must be int64\[:\], not int32\[1d\]"),
        (np.zeros((3, 3), np.int64), r"not int64\[2d\]"),
        (np.zeros(6, np.int64)[::2], "not strided int64"),
        (np.frombuffer(bytes(8), np.int64), "not read-only int64"),
        ([1, 2], "not list"),
        (None, "not NoneType"),
    ],
)
def test_an_argument_of_another_type_is_refused(argument: object, expected: str) -> None:
    with pytest.raises(TypeError, match=expected):
        first(argument)


def test_a_wrong_number_of_arguments_is_refused() -> None:
    with pytest.raises(TypeError, match=r"2 arguments for \(vector: int64\[:\]\) -> int"):
        first(np.zeros(3, np.int64), 1)


def test_numbers_that_are_not_integers_are_refused() -> None:
    @kernel
    def same(number: int) -> int:
        return number

    assert same(-(2**63)) == -(2**63)
    for number, error in ((1.5, TypeError), (2**63, VariantError), (None, TypeError), ("1", TypeError)):
        with pytest.raises(error):
            same(number)


def test_every_kind_of_argument_and_result_comes_through() -> None:
    @kernel
    def expected(
        rows: _Rows, pair: tuple[int, bool], fixed: ReadOnlyInt64s, flags: Bools
    ) -> tuple[int, bool, tuple[int, int]]:
        rows.sizes[0] = len(fixed)
        return rows.sizes[0] + rows.first + pair[0], pair[1], (len(flags), rows.table.shape[1])

    fixed = np.arange(5)
    fixed.flags.writeable = False
    rows = _Rows(np.zeros(2, np.int64), np.zeros((0, 3), np.int64), 10, owner=None)
    assert expected(rows, (100, True), fixed, np.zeros(0, np.bool_)) == (115, True, (0, 3))
    assert rows.sizes.tolist() == [5, 0]
    with pytest.raises(TypeError, match="rows must be _Rows"):
        expected(tuple(rows), (100, True), fixed, np.zeros(0, np.bool_))
    with pytest.raises(TypeError, match=r"pair must be \(int, bool\)"):
        expected(rows, (100,), fixed, np.zeros(0, np.bool_))
    with pytest.raises(TypeError, match=r"sizes must be int64\[:\], not read-only int64\[1d\]"):
        expected(_Rows(fixed, *rows[1:]), (100, True), fixed, np.zeros(0, np.bool_))


def test_annotations_must_be_there_and_be_known() -> None:
    @kernel
    def bare(left, right: int):
        return left

    @kernel
    def text(name: str) -> None: ...

    with pytest.raises(TypeError, match=r"test_compiling.bare needs annotations for: left, return"):
        bare(1, 2)
    with pytest.raises(TypeError, match=r"name of kernel .*text is annotated as <class 'str'>"):
        text("x")


def test_a_result_of_another_type_than_declared_is_refused() -> None:
    @kernel
    def wrong(number: int) -> bool:
        return number + 1

    with pytest.raises(TypeError, match=r"wrong.* returns int64, but declares \(number: int\) -> bool"):
        wrong(1)


def test_helpers_are_for_kernels_only() -> None:
    @helper
    def twice(number):
        return 2 * number

    @helper(inline=True)
    def more(number):
        return number + 1

    @kernel
    def four_times(number: int) -> int:
        return more(twice(twice(number)))

    assert four_times(3) == 13
    for item in (twice, more):
        with pytest.raises(TypeError, match="cannot be called from Python"):
            item(3)


def test_numba_as_its_user_knows_it_is_left_alone() -> None:
    @numba.njit
    def before(pair):
        return len(pair)

    assert before((1, 2)) == 2
    typing_context = numba.core.registry.cpu_target.typing_context

    @kernel
    def length(pair: tuple[int, int]) -> int:
        return len(pair)

    assert length((3, 4)) == 2
    assert numba.core.registry.cpu_target.typing_context is typing_context

    @numba.njit
    def after(triple):
        return len(triple) + sum(triple)

    assert after((1, 2, 3)) == 9


@pytest.mark.parametrize("collects", [True, False])
def test_the_garbage_collector_is_left_as_it_was(collects: bool) -> None:
    @kernel
    def divided(left: int, right: int) -> int:
        return left // right

    @kernel
    def does_not_compile(number: int) -> int:
        return number.nothing

    before = gc.isenabled()
    try:
        (gc.enable if collects else gc.disable)()
        assert divided(7, 2) == 3
        with pytest.raises(numba.TypingError, match="nothing"):
            does_not_compile(1)
        assert gc.isenabled() == collects
    finally:
        (gc.enable if before else gc.disable)()


def _fingerprint(compiled: Kernel, level: str = X86_64) -> str:
    from parquet_variant.kernels.machine_code.objects import fingerprint

    return fingerprint(compiled, level)


def _made(name: str = "scaled") -> Kernel:
    def scaled(number: int) -> int:
        return 3 * number

    scaled.__qualname__ = name
    made = kernel(scaled)
    assert isinstance(made, Kernel)
    return made


def test_objects_are_distinguished_by_all_that_they_are_made_of() -> None:
    same = _fingerprint(_made())
    assert same == _fingerprint(_made())
    others = [_fingerprint(_made("other")), _fingerprint(_made(), "aarch64")]
    assert len({same, *others}) == 3


def test_an_object_is_made_of_the_modules_that_its_kernel_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    from parquet_variant.kernels.int128 import digits_of
    from parquet_variant.kernels.machine_code import objects
    from parquet_variant.kernels.pages.levels import optional_levels
    from parquet_variant.kernels.pages.values import rehash_bytes

    kernels = [made for made in (optional_levels, rehash_bytes, digits_of) if isinstance(made, Kernel)]
    before, source = list(map(_fingerprint, kernels)), objects.source_of

    def changed(module: str) -> tuple[str, frozenset[str]]:
        content, imported = source(module)
        return ("changed" if module.endswith(".pages.levels") else content), imported

    monkeypatch.setattr(objects, "source_of", changed)
    objects.hash_of_sources.cache_clear()
    after = list(map(_fingerprint, kernels))
    objects.hash_of_sources.cache_clear()
    assert [one == other for one, other in zip(before, after, strict=True)] == [False, False, True]


@pytest.mark.machine_code
def test_nothing_of_the_machine_that_builds_is_in_the_code() -> None:
    from parquet_variant.kernels.json.scan import line_ends
    from parquet_variant.kernels.machine_code.objects import build_objects

    (content,) = build_objects(line_ends, (X86_64,))
    assert b"pv_json_scan_line_ends" in content
    for expected in (b"ownership.py", b"MemoryError", b"builtins"):
        assert expected not in content
