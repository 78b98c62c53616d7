"""The message templates of all errors and warnings in the sources, in one text that can be reviewed as a whole.

Run ``python -m tests.errors.messages --update`` to write ``messages.txt``, and ``--style`` to list the messages that
break a rule of the style guide. Expressions inside a template stand in braces.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "src"
SNAPSHOT = Path(__file__).with_name("messages.txt")
UPDATE = "python -m tests.errors.messages --update"
# Arguments of errors that are not part of the message.
_LOCATION = {"reason", "file", "row", "path", "offset", "name", "obj", "stacklevel", "category"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Message:
    """One message template."""

    error: str
    reason: str
    text: str

    def __str__(self) -> str:
        return f"{self.error}{f' [{self.reason}]' if self.reason else ''}: {self.text}"


def modules() -> dict[str, ast.Module]:
    """Return the syntax tree of each module by its name."""
    trees = {}
    for path in sorted(SOURCES.rglob("*.py")):
        parts = path.relative_to(SOURCES).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        trees[name] = ast.parse(path.read_text("utf-8"))
    return trees


def error_makers(trees: dict[str, ast.Module]) -> set[str]:
    """Return the names of functions that make or raise errors, by their return types."""
    return {
        node.name
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, _FUNCTIONS) and node.returns is not None
        if re.search(r"(Error|Exception|NoReturn)\b", ast.unparse(node.returns))
    }


def messages_of(tree: ast.Module, makers: set[str]) -> list[Message]:
    """Return the messages of one module in the order of the source, each once."""
    found: dict[Message, None] = {}
    for scope in [tree, *(node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS))]:
        texts = _assigned_texts(scope)
        for call, is_raised in _calls(scope):
            name = _name(call.func)
            last = name.rpartition(".")[2]
            is_error = is_raised or last.endswith(("Error", "Warning")) or last in makers or last == "warn"
            if not is_error:
                continue
            reason = next(
                (ast.unparse(keyword.value).strip("'\"") for keyword in call.keywords if keyword.arg == "reason"), ""
            )
            arguments = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg not in _LOCATION)]
            for argument in arguments:
                for text in _templates(argument, texts):
                    if " " in text:
                        found[Message(name, reason, text)] = None
    return list(found)


def _calls(scope: ast.AST) -> Iterator[tuple[ast.Call, bool]]:
    """Yield the calls of a scope without those of functions inside it, and whether each is what ``raise`` raises."""
    waiting: list[tuple[ast.AST, bool]] = [(child, False) for child in reversed(list(ast.iter_child_nodes(scope)))]
    while waiting:
        node, is_raised = waiting.pop()
        if isinstance(node, _FUNCTIONS):
            continue
        if isinstance(node, ast.Call):
            yield node, is_raised
        raised = node.exc if isinstance(node, ast.Raise) else None
        waiting.extend((child, child is raised) for child in reversed(list(ast.iter_child_nodes(node))))


def _assigned_texts(scope: ast.AST) -> dict[str, list[ast.expr]]:
    """Return the values that are assigned to each name in a scope."""
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(scope):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    values.setdefault(target.id, []).append(node.value)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and isinstance(node.target, ast.Name) and node.value:
            values.setdefault(node.target.id, []).append(node.value)
    return values


def _name(function: ast.expr) -> str:
    text = ast.unparse(function)
    return text if text.count(".") <= 1 else text.rpartition(".")[2]


def _templates(node: ast.expr, texts: dict[str, list[ast.expr]], depth: int = 0) -> Iterator[str]:
    """Yield the texts that an argument may be: both branches of a condition, and what was assigned to a name."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(map(_part, node.values))
    elif isinstance(node, ast.IfExp):
        yield from _templates(node.body, texts, depth)
        yield from _templates(node.orelse, texts, depth)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left = list(_templates(node.left, texts, depth)) or [f"{{{ast.unparse(node.left)}}}"]
        right = list(_templates(node.right, texts, depth)) or [f"{{{ast.unparse(node.right)}}}"]
        yield from (f"{start}{end}" for start in left for end in right)
    elif isinstance(node, ast.Name) and depth < 3:
        for value in texts.get(node.id, ()):
            yield from _templates(value, texts, depth + 1)


def _part(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.FormattedValue)
    conversion = "" if node.conversion < 0 else f"!{chr(node.conversion)}"
    spec = "" if node.format_spec is None else f":{ast.unparse(node.format_spec)[2:-1]}"
    return f"{{{ast.unparse(node.value)}{conversion}{spec}}}"


@cache
def all_messages() -> dict[str, list[Message]]:
    """Return the messages of all modules that have any."""
    trees = modules()
    makers = error_makers(trees)
    return {name: messages for name, tree in trees.items() if (messages := messages_of(tree, makers))}


def snapshot_text() -> str:
    """Return the text of the snapshot."""
    lines = [f"Messages of errors and warnings. Generated: run {UPDATE}."]
    for module, messages in all_messages().items():
        lines += ["", module]
        lines += ["  " + str(message).replace("\n", "\\n") for message in messages]
    return "\n".join(lines) + "\n"


# What the style guide asks not to write in a message, and the rule.
_STYLE = {
    r"\.$": "ends with a full stop",
    r"\b(?:is|are|was|were) no (?!longer|more)\w": "'is no X': write 'is not an X'",
    r"\bthere (?:is|are) no\b": "'there is no X': write 'X does not exist' or 'unknown X'",
    r"\b(?:told|tells|anew|mend|beside)\b": "a word that the style guide replaces",
    r"\b(?:what is no|that is none|that are none|that there is not|so many|what becomes of)\b": "a private idiom",
    r"\b(?:colour|behaviour|serialis|recognis|normalis|initialis|optimis|neighbour|catalogue)\w*": "British spelling",
}


def style_faults() -> list[str]:
    """Return one line per message that breaks a rule of the style guide."""
    return [
        f"{module}: {message.text!r}: {rule}"
        for module, messages in all_messages().items()
        for message in messages
        for pattern, rule in _STYLE.items()
        if re.search(pattern, message.text)
    ]


if __name__ == "__main__":
    if sys.argv[1:] == ["--update"]:
        SNAPSHOT.write_text(snapshot_text(), "utf-8")
    elif sys.argv[1:] == ["--style"]:
        print(*style_faults(), sep="\n")
    else:
        raise SystemExit(f"usage: {UPDATE} (or --style)")
