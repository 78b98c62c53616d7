"""The library of kernels as users get it: without Numba, without a place to write, from a zip file, or damaged."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import parquet_variant
from parquet_variant.kernels.machine_code.library import X86_64, levels_here, levels_of_wheel

PACKAGE = Path(parquet_variant.__file__).parent
CODE = """
import sys
{before}
import parquet_variant as pv
from parquet_variant.kernels.machine_code.entry_points import machine_code
rows = pv.parse_json(['{{"a": [1, 2.5], "b": "x"}}', "3"])
shredded = pv.shred_variant(rows, "a array<bigint>, b string")
assert pv.to_json(pv.unshred_variant(shredded)).to_pylist() == ['{{"a":[1,2.5],"b":"x"}}', "3"]
{after}
print(machine_code().mode, machine_code().level, *sorted({{"numba", "llvmlite"}} & set(sys.modules)))
"""
# Compiles in a second; the tests of all kernels run compiled on first use, too (`.ci/run`).
SMALL_CODE = """
{before}
import numpy as np
from parquet_variant.kernels.machine_code.entry_points import machine_code
from parquet_variant.kernels.pages.levels import optional_levels
levels = np.zeros(3, np.uint8)
assert optional_levels(np.zeros(0, np.uint8), 0, 0, 0, 0, levels) == 3 and levels.tolist() == [1, 1, 1]
print(machine_code().mode){after}
"""

pytestmark = pytest.mark.skipif(not levels_here(), reason="no libraries of kernels are built on this platform")
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with libraries of all levels of this machine, and nothing else."""
    pytest.importorskip("numba", reason="the libraries are built here, which needs Numba")
    from parquet_variant.kernels.machine_code.building import build
    from parquet_variant.kernels.machine_code.library import FOLDER

    root = tmp_path_factory.mktemp("installed")
    copied = root / "parquet_variant"
    shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__", "libraries"))
    build(levels_of_wheel(), copied.joinpath(*FOLDER.split("/")), processes=1)
    return copied


@pytest.fixture
def own(package: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(package, tmp_path / "parquet_variant"))


def _run(
    root: Path, *, before: str = "", after: str = "", code: str = CODE, **env: str
) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT") if name in os.environ}
    return subprocess.run(
        [sys.executable, "-B", "-c", code.format(before=before, after=after)],
        env={**kept, "PYTHONPATH": str(root), **env},
        capture_output=True,
        text=True,
        check=False,
        cwd=root if root.is_dir() else root.parent,
    )


def _told(run: subprocess.CompletedProcess[str]) -> str:
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


NO_NUMBA = """
import importlib.util
sys.modules["numba"] = sys.modules["llvmlite"] = None
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in ("numba", "llvmlite") else find(name, *rest)
"""


def test_users_need_no_numba_no_home_and_no_place_to_write(package: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in package.rglob("*")}
    for path in (package, *package.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        run = _run(package.parent, before=NO_NUMBA, HOME="/nonexistent", TMPDIR="/nonexistent")
    finally:
        for path in (package, *package.rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)
    assert _told(run).startswith(f"built {levels_here()[0]}")
    assert {path: path.stat().st_mtime_ns for path in package.rglob("*")} == before


def test_numba_is_not_imported_where_a_library_fits(package: Path) -> None:
    assert _told(_run(package.parent)) == f"built {levels_here()[0]}"


def test_a_package_in_a_zip_file_works_and_writes_nothing(package: Path, tmp_path: Path) -> None:
    archive = tmp_path / "wheel.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in package.rglob("*"):
            file.write(path, path.relative_to(package.parent))
    run = _run(archive, HOME="/nonexistent", TMPDIR="/nonexistent")
    assert _told(run) == f"built {levels_here()[0]}"
    assert [path.name for path in tmp_path.iterdir()] == ["wheel.zip"]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_that_are_forked_or_spawned_have_kernels(package: Path, method: str, tmp_path: Path) -> None:
    script = tmp_path / "many.py"
    script.write_text(
        "import multiprocessing\n"
        "import parquet_variant as pv\n"
        "def work(number):\n"
        "    return pv.to_json(pv.parse_json([str(number)])).to_pylist()[0]\n"
        "if __name__ == '__main__':\n"
        "    assert work(7) == '7'\n"
        f"    with multiprocessing.get_context({method!r}).Pool(3) as pool:\n"
        "        assert pool.map(work, range(30)) == [str(n) for n in range(30)]\n"
    )
    env = {**os.environ, "PYTHONPATH": str(package.parent), "PARQUET_VARIANT_KERNELS": "built"}
    run = subprocess.run([sys.executable, "-W", "ignore", script], env=env, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def _change_a_kernel(package: Path) -> None:
    with package.joinpath("kernels", "native_vectors.py").open("a") as file:
        file.write("\n# changed\n")


def _add_a_kernel(package: Path) -> None:
    package.joinpath("kernels", "new_kernels.py").write_text("NEW = 1\n")


def _truncate(package: Path) -> None:
    for path in package.rglob("*.so"):
        os.truncate(path, path.stat().st_size // 2)


def _damage_the_table(package: Path) -> None:
    (path,) = package.rglob("kernels.json")
    path.write_text(path.read_text()[:100])


def _empty_the_table(package: Path) -> None:
    (path,) = package.rglob("kernels.json")
    path.write_text("[]")


def _library_of_another_version(package: Path) -> None:
    for library in package.rglob("*.so"):
        library.rename(library.with_name(library.name.replace(library.stem[-16:], "0" * 16)))


def _no_library(package: Path) -> None:
    for path in package.rglob("libraries"):
        shutil.rmtree(path)


def _not_a_library(package: Path) -> None:
    for path in package.rglob("*.so"):
        path.write_bytes(bytes(path.stat().st_size))


# Damage -> the reason of the error, and a word of its message.
DAMAGE = {
    _change_a_kernel: ("other-kernels", "sources"),
    _add_a_kernel: ("other-kernels", "sources"),
    _truncate: ("no-kernels", "truncated"),
    _damage_the_table: ("no-kernels", "table"),
    _empty_the_table: ("no-kernels", "table"),
    _library_of_another_version: ("no-kernels", "loaded"),
    _no_library: ("no-kernels", "built kernels"),
    _not_a_library: ("no-kernels", "loaded"),
}
TELL = "import parquet_variant.errors as e; sys.excepthook = lambda k, v, t: print(f'{v.reason}: {v}', file=sys.stderr)"


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__.strip("_"))
def test_a_library_that_does_not_fit_is_refused(own: Path, damage: Callable[[Path], None]) -> None:
    damage(own)
    reason, word = DAMAGE[damage]
    required = _run(own.parent, before=TELL, PARQUET_VARIANT_KERNELS="built")
    without_numba = _run(own.parent, before=f"{NO_NUMBA}\n{TELL}")
    for run in (required, without_numba):
        assert run.returncode == 1
        assert run.stderr.startswith(f"{reason}: "), run.stderr
        assert word in run.stderr
    assert "pip install 'parquet-variant[jit]'" in without_numba.stderr


def test_numba_takes_over_where_no_library_fits(own: Path) -> None:
    _no_library(own)
    cache = os.environ.get("PARQUET_VARIANT_CACHE", "")
    run = _run(own.parent, code=SMALL_CODE, PARQUET_VARIANT_CACHE=cache, HOME=str(Path.home()))
    assert _told(run) == "jit"
    assert "RuntimeWarning: kernels are compiled on first use" in run.stderr


def test_an_unknown_way_is_refused(package: Path) -> None:
    run = _run(package.parent, before=TELL, PARQUET_VARIANT_KERNELS="numba")
    assert run.stderr.startswith("bad-option: ")
    assert "PARQUET_VARIANT_KERNELS='numba'" in run.stderr


@pytest.mark.skipif(X86_64 not in levels_of_wheel(), reason="one level only")
def test_a_cpu_without_avx2_gets_the_baseline(package: Path) -> None:
    before = (
        "import parquet_variant.kernels.machine_code.library as l; l.cpu_flags = lambda: frozenset({'sse4_2', 'avx'})"
    )
    assert _told(_run(package.parent, before=before)) == "built x86-64"


def test_a_library_takes_nothing_but_memory_from_the_process(package: Path) -> None:
    if shutil.which("nm") is None:
        pytest.skip("no nm here")
    for library in package.rglob("*.so"):
        expected = subprocess.run(["nm", "-D", "-u", library], capture_output=True, text=True, check=True).stdout
        assert {line.split()[-1] for line in expected.splitlines()} <= {
            *("malloc", "calloc", "realloc", "free"),
            *("memcpy", "memmove", "memset", "memcmp", "bcmp"),
        }


def test_all_libraries_together_are_small(package: Path) -> None:
    assert sum(path.stat().st_size for path in package.rglob("*.so")) < 4 << 20
    assert sum(path.stat().st_size for path in package.rglob("*") if path.is_file()) < 15 << 20


def test_the_build_hook_needs_no_other_package_before_it_names_them() -> None:
    pytest.importorskip("hatchling")
    program = (
        "import sys\n"
        "sys.modules |= dict.fromkeys(('numpy', 'pyarrow', 'numba', 'llvmlite'))\n"
        "import hatch_build\n"
        "print(hatch_build.KernelsHook('.', {}, None, None, '.', 'wheel').dependencies())"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=PACKAGE.parents[1], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert "numba" in run.stdout or not levels_of_wheel()
