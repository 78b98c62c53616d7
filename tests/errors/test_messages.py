"""The snapshot of error messages is current, and the generator finds every form of message."""

from __future__ import annotations

import ast

from tests.errors.messages import SNAPSHOT, UPDATE, error_makers, messages_of, snapshot_text, style_faults

_SOURCE = '''
def refuse(message: str) -> SchemaError:
    return SchemaError(message, reason="bad-group")

def read(path, kind):
    """Raises `ValueError` if not a file."""
    if not path:
        raise PathError("no path: give one", reason="bad-path", path="$ a")
    problem = f"cannot read {path!r}" if kind else "cannot read it"
    error = VariantFileError(problem)
    if kind == 1:
        raise error
    if kind == 2:
        raise refuse(f"{kind:>4} is " + "not a group")
    warnings.warn("reading is slow", UserWarning)
    return "not a message"
'''


def test_every_form_of_message_is_found() -> None:
    tree = ast.parse(_SOURCE)
    makers = error_makers({"module": tree})
    assert makers == {"refuse"}
    assert [str(message) for message in messages_of(tree, makers)] == [
        "PathError [bad-path]: no path: give one",
        "VariantFileError: cannot read {path!r}",
        "VariantFileError: cannot read it",
        "refuse: {kind:>4} is not a group",
        "warnings.warn: reading is slow",
    ]


def test_the_snapshot_of_messages_is_current() -> None:
    is_current = SNAPSHOT.read_text("utf-8") == snapshot_text()
    assert is_current, f"messages changed: run {UPDATE} and review the difference"


def test_messages_follow_the_style_guide() -> None:
    assert style_faults() == []
