"""Checks of the daily report: can mails leave, does somebody get them, and is anything in clear.

*Invariants*: nothing is sent; no address is named.
*Not here*: how reports stand (`application.status`), the table of tenants (`tenants`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from freehold.application.doctor.findings import Code, Finding, fine, refuse, warn
from freehold.domain.inventory import Tenant
from freehold.domain.reports import ReportPolicy
from freehold.domain.rules import Rule

TENANTS_LOOKED_AT = 1_000
NAMED = 3  # tenants in one sentence


@dataclass(frozen=True, slots=True)
class ReportSetting:
    """What the checks look at.

    Attributes:
        transport: its name in the settings.
        trouble: why nothing can be sent, in a sentence; None where all is well.
        in_clear: whether mails travel unencrypted.
        asks_model: whether a language model writes paragraphs.
        key_in_clear: whether its key travels unencrypted to another host.
        tenants: the first ones by id; None where they cannot be read.
    """

    policy: ReportPolicy
    transport: str
    trouble: str | None
    in_clear: bool
    asks_model: bool
    key_in_clear: bool
    tenants: Sequence[Tenant] | None


def report_findings(setting: ReportSetting, rules: Sequence[Rule]) -> Iterator[Finding]:
    """Look at transport, recipients, rules and options."""
    found = [*_transport(setting), *_options(setting), *_rules(rules)]
    if setting.tenants is not None:
        found += _recipients(setting.tenants)
    yield from found
    if not found:
        read = (
            ""
            if setting.tenants is None
            else ", and every tenant of `freehold tenant list` has a recipient"
        )
        sentence = f"Reports can be sent by {setting.transport}{read}."
        yield fine(Code.REPORTS, None, "report", sentence)


def _transport(setting: ReportSetting) -> Iterator[Finding]:
    place = f"report.{setting.transport}"
    if setting.trouble is not None:
        yield refuse(
            Code.REPORT_TRANSPORT,
            None,
            place,
            f"No report can be sent: {setting.trouble.rstrip('.')}; mend [{place}].",
        )
    if setting.in_clear:
        yield warn(
            Code.REPORT_IN_CLEAR,
            None,
            f"{place}.security",
            "Mails travel to the server in clear, where anybody on the way can read and change "
            'them: set security = "starttls".',
        )


def _options(setting: ReportSetting) -> Iterator[Finding]:
    unsubscribe = setting.policy.unsubscribe
    if unsubscribe is not None and not unsubscribe.startswith("https:"):
        yield warn(
            Code.REPORT_UNSUBSCRIBE,
            None,
            "report.unsubscribe",
            "Without an https address no mail program offers to unsubscribe with one click, which "
            "large mail providers ask for.",
        )
    if setting.key_in_clear:
        yield warn(
            Code.REPORT_IN_CLEAR,
            None,
            "summary.url",
            "The key of the language model travels in clear, where anybody on the way can read it: "
            "write an https address, or run the model on this host.",
        )
    if setting.asks_model and setting.policy.hour == 0:
        yield warn(
            Code.REPORT_SUMMARY,
            None,
            "report.hour",
            "At hour 0 a report leaves as soon as its facts are frozen, so that no paragraph of "
            "the language model is ever ready: set report.hour to 1 or later.",
        )


def _rules(rules: Sequence[Rule]) -> Iterator[Finding]:
    for rule in rules:
        if rule.tenant.column is None and rule.tenant.constant is None:
            yield warn(
                Code.REPORT_NOBODY,
                rule,
                "tenant",
                f"Holds of rule {rule.name} belong to nobody, so that no report about them is "
                'sent: name the tenant column, or tenant = { constant = "..." }.',
            )


def _recipients(tenants: Sequence[Tenant]) -> Iterator[Finding]:
    active = [one for one in tenants if one.active]
    without = [one.id for one in active if not one.recipients]
    if not active:
        yield warn(
            Code.REPORT_RECIPIENTS,
            None,
            "tenant",
            "There is no active tenant, so that nobody gets a report: `freehold tenant add`, or "
            "map your own table in [tenants].",
        )
    elif without:
        named = ", ".join(without[:NAMED]) + (", ..." if len(without) > NAMED else "")
        some = "1 tenant has" if len(without) == 1 else f"{len(without):,} tenants have"
        first = f" of the first {len(tenants):,}" if len(tenants) == TENANTS_LOOKED_AT else ""
        yield warn(
            Code.REPORT_RECIPIENTS,
            None,
            "tenant",
            f"{some} no recipient{first} ({named}), so that their reports are not sent: `freehold "
            "tenant set ID --recipient ADDRESS --by NAME`.",
        )
