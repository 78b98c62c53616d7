"""The `variant` command: its subcommands, and how failures are reported.

Owns the entry point and the exit codes: 0 success, 1 a problem with the data, 2 wrong usage. Leaves the subcommands to
the modules in `commands`. Only Typer is imported here; heavier modules are imported when a command runs, so that
``--help`` is quick.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

from parquet_variant.cli import output
from parquet_variant.support.lazy_names import optional_libraries

# The module of each command, in the order of the help: writing, reading, maintenance of files and of tables. A module
# has a function of the command's name.
_MODULES = {
    "ingest": "ingest",
    **dict.fromkeys(("query", "sql-view", "schema", "cat"), "query"),
    "infer": "ingest",
    **dict.fromkeys(("explore", "inspect"), "inspect"),
    **dict.fromkeys(("diff", "contract", "check"), "quality"),
    "validate": "inspect",
    "compat": "quality",
    "rewrite": "files",
    **dict.fromkeys(("delete", "erase", "update", "merge"), "tables"),
    "optimize": "files",
    **dict.fromkeys(("vacuum", "history", "loads", "restore"), "tables"),
    **dict.fromkeys(("annotate", "publish"), "files"),
    **dict.fromkeys(("warmup", "doctor"), "inspect"),
}
COMMANDS = tuple(_MODULES)
# Commands whose work is done when they print: output that fails is a warning.
_CHANGES = frozenset(
    ("ingest", "explore", "rewrite", "delete", "erase", "update", "merge", "optimize", "vacuum", "restore", "publish")
).union(("annotate", "table", "warmup"))
_MAX_OPTIONS = 20  # An unknown option is answered with the names of at most this many options.
_OF_OTHER_TOOLS = {"export": "query PATH SQL -o out.csv", "sql": "query PATH SQL", "head": "cat PATH"}
# `variant table set`: group -> commands of Delta tables.
GROUPS = {"table": ("set",)}


def main(arguments: list[str] | None = None) -> int:
    """Run one `variant` command (default: that of this process), and return the exit code.

    The code is 0 for success, 1 for a problem with the data, and 2 for wrong usage.

    >>> main(["inspect", "no-such.parquet"])
    1
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    as_json = "--json" in words
    if not words or (len(words) == 1 and words[0] in GROUPS):
        words.append("--help")
    try:
        import typer
    except ImportError:
        problem = "the command line needs the extra cli: run pip install 'parquet-variant[cli]'"
        return output.report_failure(problem, output.USAGE_PROBLEM, as_json=as_json)
    usage_error: Any = typer.BadParameter.__base__
    try:
        with optional_libraries("this command"):
            # Only the named command is built if the others are not needed.
            is_known = words[0] in COMMANDS and "_VARIANT_COMPLETE" not in os.environ
            commands = (words[0],) if is_known else COMMANDS
            code = build(commands)(words, prog_name="variant", standalone_mode=False)
        if code == output.INTERRUPTED:  # Typer returns this for Ctrl-C
            raise KeyboardInterrupt
        sys.stdout.flush()
    except output.OutputError as error:
        problem = f"standard output cannot be written: {error.strerror}"
        if words[0] not in _CHANGES:
            return output.report_failure(problem, output.DATA_PROBLEM, as_json=as_json)
        output.report_warning(f"{problem}; the command itself has succeeded")
        return 0
    except typer.Exit as stop:
        return int(stop.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        return output.report_failure("interrupted", output.INTERRUPTED, as_json=as_json)
    except usage_error as error:
        context, message = getattr(error, "ctx", None), error.format_message()
        if context is not None and getattr(getattr(error, "param", None), "nargs", 1) == -1:
            # A single word where SRC... and DEST are required: Click reports SRC as missing.
            named: list[Any] = [param for param in context.command.params if param.param_type_name == "argument"]
            if len(named) > 1:
                message = f"write {' '.join(argument.human_readable_name for argument in named)}"
        command = getattr(context, "command_path", "variant")
        message = message.replace("a valid float range", "a number").replace("a valid int range", "an integer")
        if meant := _OF_OTHER_TOOLS.get(words[0]):
            message = f"No such command '{words[0]}': use variant {meant}"
        options = [] if context is None else [name for param in context.command.params for name in param.opts[:1]]
        if message.startswith(("No such option: --delimiter", "No such option: --header")) and "--parse" in options:
            message = "options of CSV are written --parse 'delimiter=;' and --parse header=false"
        if message.startswith(("No such option", "Got")) and "Possible" not in message and len(options) <= _MAX_OPTIONS:
            message += f": choose from {', '.join(name for name in options if name.startswith('-'))}"
        return output.report_failure(f"{message} (see {command} --help)", output.USAGE_PROBLEM, as_json=as_json)
    except output.ReaderLeftError:
        # Python flushes again at exit, which would fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())  # type: ignore[union-attr]
        return 0
    except Exception as error:
        if debug:
            raise
        return output.report_failure(error, output.DATA_PROBLEM, as_json=as_json)
    return int(code or 0)


def build(commands: tuple[str, ...] = COMMANDS) -> Any:
    """Build the Typer application of some commands, as a Click command."""
    import typer

    app = typer.Typer(
        name="variant",
        help="Variant data in Parquet: JSON in, shredded columns, queries by path, JSON out.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        # Rich would double the CPU time of `--help`.
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="Exit codes: 0 success, 1 a problem with the data, 2 wrong usage.",
    )

    @app.callback()
    def options(
        version: bool = typer.Option(False, "--version", help="Print the version.", is_eager=True, callback=_version),
        # Removed from the words by `main`, which needs it also for invalid usage.
        debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error; allowed anywhere."),
    ) -> None:
        pass

    for name in commands:
        app.command(name=name)(_command(name))
    for group, names in GROUPS.items() if commands is COMMANDS else ():
        inner = typer.Typer(name=group, help="Change a Delta table.", no_args_is_help=True)
        inner.callback()(lambda: None)  # without it, Typer turns a group of one command into that command
        for name in names:
            inner.command(name=name)(_command(f"{group}-{name}"))
        app.add_typer(inner)
    return typer.main.get_command(app)


def _command(name: str) -> Any:
    from parquet_variant.cli.options.common import flat

    module = import_module(f"parquet_variant.cli.commands.{_MODULES.get(name, 'tables')}")
    return flat(getattr(module, name.replace("-", "_")))


def _version(is_requested: bool) -> None:
    if is_requested:
        import typer

        from parquet_variant._version import __version__

        typer.echo(f"parquet-variant {__version__}")
        raise typer.Exit
