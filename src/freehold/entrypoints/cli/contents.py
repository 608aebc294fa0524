"""The table of contents of `freehold --help`: commands in the order in which one meets them.

*Invariants*: every command is named once (a test compares), in one line of 80 columns.
"""

from __future__ import annotations

import typer
from typer.core import TyperGroup

PANELS = {
    "Begin": {
        "demo": "Watch holds lapse in a shop's own table and be released.",
        "init": "Write a commented freehold.toml to start from.",
        "config": "Show and check the settings.",
        "doctor": "Check rules, rights, indexes and clocks; change nothing.",
        "db": "Make, upgrade, check and drop the ledger's own tables.",
        "plan": "Show what would be released now; change nothing.",
        "attach": "Confirm what a rule's first scan found overdue.",
    },
    "Release": {
        "run": "Run the service, or until nothing is due.",
        "scan": "Scan once for due holds, and write operations.",
        "work": "Release what is ready now, then end.",
        "dispatch": "Name ready operations to the broker, then end.",
        "relay": "Tell the targets of what happened, then end.",
        "sweep": "Take back ended leases, and close what is settled.",
        "schedule": "Show and pause the schedules of rules.",
    },
    "Look": {
        "status": "Show what waits, how late it is and what failed.",
        "why": "Say what happened to one hold, or why it is not released.",
        "audit": "Check every promise against ledger and tables.",
    },
    "Act": {
        "review": "See, try again or discard what used up its attempts.",
        "guard": "See and release what froze releases.",
        "pause": "Pause a role, a rule or a tenant; list what is paused.",
        "resume": "End a pause.",
        "prune": "Remove records, attempts, events, mails and runs by age.",
    },
    "Tell": {
        "events": "See events and targets; pause, retry, discard and replay.",
    },
    "Report": {
        "report": "See, build, send and resolve the daily reports.",
    },
    "Built-in holds": {
        "tenant": "Add, change and list whom units belong to.",
        "unit": "Add and list what can be held: rooms, seats, pitches.",
        "hold": "Grant, renew, confirm, cancel, look at and import holds.",
    },
}
_ORDER = [name for lines in PANELS.values() for name in lines]


class InOrder(TyperGroup):
    """Lists commands in the order of the panels; one that stands in none comes last."""

    def list_commands(self, ctx: object) -> list[str]:
        """Return the commands' names in order."""
        return [name for name in _ORDER if name in self.commands] + [
            name for name in self.commands if name not in _ORDER
        ]


def arrange(app: typer.Typer) -> None:
    """Give each command its panel and its line."""
    for panel, lines in PANELS.items():
        for command in app.registered_commands:
            name = command.name or getattr(command.callback, "__name__", "")
            if name in lines:
                command.rich_help_panel, command.short_help = panel, lines[name]
        for group in app.registered_groups:
            if isinstance(group.name, str) and group.name in lines:
                group.rich_help_panel, group.short_help = panel, lines[group.name]
