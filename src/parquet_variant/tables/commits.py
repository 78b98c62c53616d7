"""The steps of a commit, for every format and catalog: what is undone before it, and what never is after it.

Owns the rule that files which a committed version may name are not removed, and that steps after a commit do not fail
it. Leaves the swap of a version, and what is written before it, to the formats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from parquet_variant.errors import TableError, VariantError
from parquet_variant.support.records import Record


class CommitResult(Record):
    """The result of a commit.

    Parameters
    ----------
    version
        The version that contains the change: the id of an Iceberg snapshot, or None for a table without any.
    committed
        False if nothing was committed, because the same batch had been committed before.
    """

    version: Any
    committed: bool = True

    @property
    def snapshot_id(self) -> int | None:
        """The id of the snapshot of an Iceberg table."""
        return None if self.version is None else int(self.version)


_Base = TypeVar("_Base", bound=Any)
_Result = TypeVar("_Result")
_RETRIES = 20
UNKNOWN_OUTCOME = "unknown-outcome"


def is_uncommitted(error: BaseException) -> bool:
    """Return whether a commit that failed with this error has certainly not happened, so that its files may go."""
    return isinstance(error, VariantError) and error.reason != UNKNOWN_OUTCOME


def best_effort(step: Callable[[], object]) -> None:
    """Run a step that must not fail what is done already, such as removing files that nothing names."""
    with suppress(Exception):
        step()


class CommitSteps:
    """The state of one commit: whether a version may name its files."""

    def __init__(self, table: str) -> None:
        self._table = table
        self.may_have_happened = False

    def swap(self, step: Callable[[], _Result], landed: Callable[[], _Result | None] | None = None) -> _Result:
        """Run the step that makes the commit visible; after it has succeeded, nothing is undone.

        The result of the step is false if another commit came first. `landed`: called if the step failed; returns its
        result if the commit is visible nevertheless, else None.
        Raises `TableError`: reason ``"unknown-outcome"`` if the error does not say what happened; and as the step.
        """
        self.may_have_happened = True
        try:
            result = step()
        except VariantError as error:
            try:
                landed_result = None if landed is None else landed()
            except Exception:
                raise self._unknown(error) from error
            if landed_result is not None:
                return landed_result
            self.may_have_happened = not is_uncommitted(error)
            raise
        except Exception as error:
            raise self._unknown(error) from error
        self.may_have_happened = bool(result)
        return result

    def _unknown(self, error: Exception) -> TableError:
        line = error.message if isinstance(error, VariantError) else f"{type(error).__name__}: {error}"
        return TableError(
            f"it is unknown if the table was changed ({line}): read its history before you try again",
            reason=UNKNOWN_OUTCOME,
            file=self._table,
        )


@contextmanager
def commit_steps(table: str, discard: Callable[[], object]) -> Iterator[CommitSteps]:
    """Provide the steps of a commit; if it has certainly not happened when the block fails, `discard` its files."""
    steps = CommitSteps(table)
    try:
        yield steps
    except BaseException:
        if not steps.may_have_happened:
            best_effort(discard)
        raise


def planned_again(
    run: Callable[[_Base], _Result], base: _Base, reload: Callable[[_Base], _Base], table: str
) -> _Result:
    """Return the result of a change, which is planned again on the newest version after a conflict, or if its own ends.

    Raises `TableError`: reason ``"too-many-retries"``; and as `run`.
    """
    conflict = ""
    for _ in range(_RETRIES):
        try:
            return run(base)
        except TableError as error:
            newest = reload(base) if error.reason in ("conflict", "missing-file") else base
            if error.reason != "conflict" and newest.version == base.version:
                raise  # a missing file is not one of a version that another process has removed
            conflict, base = error.message, newest
    problem = (
        f"{_RETRIES} other commits changed the same rows first: try again when fewer writers are active "
        f"(last conflict: {conflict})"
    )
    raise TableError(problem, reason="too-many-retries", file=table)
