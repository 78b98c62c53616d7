"""What is run later (objects of kernels, a wrapper of Java) is kept where nobody else can put it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from parquet_variant.kernels.machine_code.library import find_object, keep_object, own_temporary


@pytest.fixture(autouse=True)
def homeless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(Path, "home", no_home)
    for name in ("PARQUET_VARIANT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)


def test_it_is_this_users_alone() -> None:
    assert own_temporary().stat().st_mode & 0o777 == 0o700
    keep_object("abc", b"object")
    assert find_object("abc") == b"object"


def _open_to_all(place: Path) -> None:
    place.mkdir()
    place.chmod(0o777)


def _link(place: Path) -> None:
    elsewhere = place.with_name("elsewhere")
    elsewhere.mkdir(mode=0o700)
    place.symlink_to(elsewhere)


@pytest.mark.parametrize("make", [_open_to_all, _link, Path.touch])
def test_what_another_may_have_put_there_is_not_used(make: Callable[[Path], None]) -> None:
    place = own_temporary()
    place.rmdir()
    make(place)
    with pytest.raises(PermissionError):
        own_temporary()
    keep_object("abc", b"object")
    assert find_object("abc") is None
