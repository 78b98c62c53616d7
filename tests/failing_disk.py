"""A local disk that fails: the n-th call of the system, once, or every call that writes from the n-th one on."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

# A full disk or a directory that may not be changed refuses these, but still removes files.
_WRITES = ("link", "fsync", "open for writing", "mkdir", "replace")
_WRITE_MODES = frozenset("wxa+")


class FailingDisk:
    """Counts the calls of the system, and lets some of them fail.

    `number`: the first call that fails; 0 for none.
    `stays_full`: whether all later calls that write fail too.
    """

    def __init__(self, number: int = 0, *, stays_full: bool = False) -> None:
        self.number, self.stays_full = number, stays_full
        self.calls, self.failed = 0, ""

    def count(self, name: str) -> None:
        """Count a call; raise the error of a disk if it fails."""
        self.calls += 1
        is_later = self.stays_full and 0 < self.number < self.calls and name in _WRITES
        if self.calls == self.number or is_later:
            self.failed = self.failed or name
            raise OSError(errno.ENOSPC if self.stays_full else errno.EIO, "the disk fails")

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Route the calls of the operating system through this disk."""

        def fail_before(owner: object, name: str) -> None:
            original = getattr(owner, name)

            def call(*arguments, **options):
                self.count(_name_of_call(name, arguments, options))
                return original(*arguments, **options)

            patch.setattr(owner, name, call)

        for name in ("link", "fsync", "scandir", "open"):
            fail_before(os, name)
        for name in ("open", "mkdir", "unlink", "replace"):
            fail_before(Path, name)
        link = os.link

        def linked(*arguments):
            link(*arguments)
            self.count("the answer of link")

        patch.setattr(os, "link", linked)


def _name_of_call(name: str, arguments: tuple[object, ...], options: dict[str, object]) -> str:
    if name != "open":
        return name
    mode = options.get("mode", arguments[1] if len(arguments) > 1 else "r")
    return "open for writing" if isinstance(mode, str) and _WRITE_MODES & set(mode) else "open"
