"""Draw the README's picture: one frame of a real run of the demonstration, as SVG.

Run: .venv/bin/python scripts/draw_demo.py docs/images/demo.svg
"""

from __future__ import annotations

import io
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

from freehold.adapters.system import SystemClock
from freehold.entrypoints.demo.screen import draw, look
from freehold.entrypoints.demo.stage import Stage

SECONDS = 14.0

# The library's own template loads a font from elsewhere; a picture of ours must not.
FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g></g></svg>
"""


def main() -> None:
    """Run the demonstration for a while and save its last frame."""
    target = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage.set_up(Path(folder) / "demo")
        try:
            stage.run(SECONDS)
            frame = draw(look(stage.database), SystemClock().wall(), 16, "freehold status")
        finally:
            stage.clear_up()
        console = Console(record=True, width=104, file=io.StringIO(), force_terminal=True)
        console.print(frame)
    target.parent.mkdir(parents=True, exist_ok=True)
    svg = console.export_svg(title="freehold demo", theme=MONOKAI, code_format=FORMAT)
    target.write_text(svg)


if __name__ == "__main__":
    main()
