"""The command line: builds the command tree, and turns every error into a sentence and a code.

*Invariants*: a user's mistake never shows a traceback; data goes to stdout, all else to stderr.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from freehold import __version__
from freehold.domain.errors import ExitCode, FreeholdError, RuleRefused, UsageError
from freehold.entrypoints.cli.contents import InOrder, arrange
from freehold.entrypoints.cli.context import Invocation
from freehold.entrypoints.cli.sentences import harmless, sentence

app = typer.Typer(
    name="freehold",
    cls=InOrder,
    help="Free lapsed holds: on time, once, never the wrong one.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

# Each module adds its commands with `register(app)`; heavy imports stay inside the commands.
COMMAND_MODULES = (
    "audit",
    "attach",
    "brokers",
    "config",
    "database",
    "demo",
    "doctor",
    "events",
    "hold",
    "guard",
    "init",
    "loops",
    "pause",
    "plan",
    "prune",
    "report",
    "review",
    "schedule",
    "status",
    "tenant",
    "unit",
    "why",
)


_NO_NUMBER = "Input should be a valid integer, unable to parse string as an integer"
_SAY_NUMBER = "it must be a whole number"


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"freehold {__version__}")
        raise typer.Exit


@app.callback()
def everything(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="The settings file; freehold.toml by default."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print data as JSON.")] = False,
    _version_wanted: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Free lapsed holds: on time, once, never the wrong one."""
    context.obj = Invocation(config=config, json=json)


def main() -> None:
    """Run the command line and exit with its documented code."""
    sys.exit(_run(hoisted(sys.argv[1:])))


@cache
def command_tree() -> typer.Typer:
    """Return the program with all its commands."""
    for name in COMMAND_MODULES:
        import_module(f"freehold.entrypoints.cli.{name}").register(app)
    arrange(app)
    return app


def hoisted(arguments: list[str]) -> list[str]:
    """Move `--json` and `--config FILE` to the front: they may stand anywhere in a call."""
    front: list[str] = []
    rest: list[str] = []
    left = iter(arguments)
    for one in left:
        if one == "--":
            return [*front, *rest, one, *left]
        if one == "--json" or one.startswith("--config="):
            front.append(one)
        elif one in ("--config", "-c"):
            front += [one, *([value] if (value := next(left, None)) is not None else [])]
        else:
            rest.append(one)
    return [*front, *rest]


def _run(arguments: list[str]) -> int:
    try:
        _require_text(arguments)
        code = command_tree()(arguments, standalone_mode=False)
    except FreeholdError as error:
        typer.echo(f"freehold: {harmless(sentence(error))}", err=True)
        return int(ExitCode.REFUSED if isinstance(error, RuleRefused) else error.exit_code)
    except typer.Abort:
        return int(ExitCode.INTERRUPTED)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the last resort, which names the error
        return _other(error)
    return int(code or 0)


def _require_text(arguments: list[str]) -> None:
    """Refuse bytes that are no UTF-8: no name or reason in a database can hold them."""
    for place, one in enumerate(arguments, 1):
        if one.encode(errors="replace").decode() != one:
            raise UsageError(f"Argument {place} is no UTF-8 text; write it in UTF-8.")


def _other(error: Exception) -> int:
    """Say a usage error in a sentence; anything else is a bug of ours, and says so."""
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):
        where = getattr(getattr(error, "ctx", None), "command_path", "freehold")
        text = error.format_message().strip().replace("\n", " ").replace(_NO_NUMBER, _SAY_NUMBER)
        if not text:  # a group without a command has shown its help
            return int(error.exit_code)
        stop = "" if text.endswith((".", "?", "!")) else "."
        typer.echo(f"freehold: {text}{stop} `{where} --help` shows what there is.", err=True)
        return int(error.exit_code)
    if os.environ.get("FREEHOLD_TRACEBACK"):
        raise error
    typer.echo(
        f"freehold: unexpected {type(error).__name__}; nothing was lost. "
        "Set FREEHOLD_TRACEBACK=1 and run again to see where.",
        err=True,
    )
    return int(ExitCode.UNEXPECTED)
