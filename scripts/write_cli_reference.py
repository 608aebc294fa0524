"""Write docs/reference/cli.md from the commands' own help.

Run: .venv/bin/python scripts/write_cli_reference.py docs/reference/cli.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from freehold.entrypoints.cli.main import command_tree

HEAD = """\
# Commands and exit codes

This page is written by `scripts/write_cli_reference.py` from the commands' own help; a test compares them.

`--json` and `--config FILE` may stand anywhere in a call. Data goes to stdout, everything else to stderr.
Colour appears on a terminal only, and never with `NO_COLOR` set.

## Exit codes

| code | meaning |
|---|---|
| 0 | done, or nothing was due; a drain after SIGTERM too |
| 1 | unexpected: a mistake of ours; nothing is lost, `FREEHOLD_TRACEBACK=1` shows where |
| 2 | usage or configuration, or an unknown key, tenant or rule |
| 3 | a check ran and found something: `doctor`, `audit`, `status --check`, `db check`, a dry run of an import |
| 4 | work is left over: `--limit` or `--deadline` was used up, an import rejected lines |
| 5 | the database cannot be reached, or is locked |
| 6 | refused by the state of things: attach not confirmed, a rule paused or frozen by a guard, tables or rights missing, wrong count, a hold in the way or lapsed, a ledger in use that is to be dropped |
| 130 | interrupted |

## Commands
"""


def leaves(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Walk the tree; yield each command that does something with its words."""
    children = getattr(command, "commands", None)
    if not children:
        yield path, command
        return
    for name in sorted(children):
        yield from leaves(children[name], (*path, name))


def section(path: tuple[str, ...], command: Any) -> str:
    """Write one command."""
    lines = [f"### freehold {' '.join(path)}", "", (command.help or "").strip(), ""]
    rows = [row for parameter in command.params if (row := parameter_row(parameter))]
    if rows:
        lines += ["| argument | meaning |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def parameter_row(parameter: Any) -> str:
    """Write one parameter; the ubiquitous help option is left out."""
    if "--help" in parameter.opts:
        return ""
    names = parameter.name.upper()
    if parameter.param_type_name == "option":
        names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    return f"| {names} | {(getattr(parameter, 'help', None) or '').replace('|', '/')} |"


def reference() -> str:
    """Return the whole page."""
    root = typer.main.get_command(command_tree())
    return HEAD + "\n" + "\n".join(section(path, one) for path, one in leaves(root, ()))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference())
