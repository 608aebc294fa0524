"""The reference of the commands is the commands' own help."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_script_writes() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "write_cli_reference.py"))
    written = (ROOT / "docs" / "reference" / "cli.md").read_text()
    assert script["reference"]() == written, "run scripts/write_cli_reference.py"


def test_every_command_has_an_example() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "write_cli_reference.py"))
    import typer.main

    tree = typer.main.get_command(script["command_tree"]())
    bare = [" ".join(path) for path, one in script["leaves"](tree, ()) if "xample" not in one.help]
    assert bare == []


def test_links_between_pages_lead_somewhere() -> None:
    import re

    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    lost = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text())
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert lost == []


def test_every_command_has_its_line_in_the_contents() -> None:
    import typer.main

    from freehold.entrypoints.cli.contents import PANELS
    from freehold.entrypoints.cli.main import command_tree

    tree = typer.main.get_group(command_tree())
    lines = {name: line for panel in PANELS.values() for name, line in panel.items()}
    assert list(lines) == tree.list_commands(typer.Context(tree))
    assert max(map(len, lines.values())) <= 62, "a line of 80 columns"
