"""`freehold db restored`: say that the database was put back to an older state."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from freehold.domain.errors import UsageError
from freehold.entrypoints.cli.context import invocation

if TYPE_CHECKING:
    from datetime import datetime

    from freehold.application.restored import Restored


def restored(
    context: typer.Context,
    at: Annotated[
        str, typer.Option("--at", help="When the backup was taken, with an offset or Z.")
    ],
    by: Annotated[str, typer.Option("--by", help="Who you are; kept in the action log.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the action log.")],
) -> None:
    """After a restore from a backup, keep mails that were sent since from being sent again.

    Run it before anything else. Mails that are due by now are written, and every one that waits
    becomes unknown: it is replayed or looked up at its provider, or put before a person. Sending
    stays paused until `freehold resume report`. Exits 6 while a process works.

    Example: freehold db restored --at 2026-05-02T03:00Z --by ann --reason "disk lost"
    """
    from freehold.adapters.system import Onwards, StopRequest
    from freehold.application.restored import restored
    from freehold.bootstrap import open_transport, report_settings
    from freehold.entrypoints.reporting import reporter_of
    from freehold.ports.telemetry import UNHEARD

    if not by.strip() or not reason.strip():
        raise UsageError("--by or --reason is empty: say who you are, and why.")
    instant = _instant(at)
    call = invocation(context)
    settings = call.settings()
    policy = report_settings(settings).policy
    with call.ledger(settings) as ledger:
        reporter = reporter_of(ledger, settings, Onwards(), UNHEARD, StopRequest())
        transport = open_transport(settings)
        try:
            done = restored(ledger, reporter, transport.promise.name, instant, by, reason)
        finally:
            transport.close()
    call.show(asdict(done), lambda: _print(done, policy.on_unknown))


def _instant(text: str) -> datetime:
    from datetime import datetime

    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.utcoffset() is None:
        raise UsageError("--at must be an instant with an offset, such as 2026-05-02T03:00Z.")
    return found


def _print(done: Restored, on_unknown: str) -> None:
    mails = "mail is" if done.doubted_count == 1 else "mails are"
    typer.echo(f"{done.doubted_count} {mails} unknown; sending is paused")
    if done.doubted_count and on_unknown == "resend":
        typer.echo(
            'on_unknown = "resend" sends again what cannot be looked up; set it to "review" first, '
            "if that must not be"
        )
    typer.echo("next: freehold report list, then freehold resume report")
