"""Stop a tenant's report to one recipient, and start it again, with an entry in the action log.

*Not here*: leaving unsubscribed recipients out of a new mail (`application.reporting.mailing`).
"""

from __future__ import annotations

from dataclasses import dataclass

from freehold.domain.addresses import read_address, sort_out
from freehold.domain.errors import UsageError
from freehold.ports.ledger import Act, Ledger, Transaction
from freehold.ports.unsubscribed import Link


@dataclass(frozen=True, slots=True)
class Changed:
    """What became of one subscription.

    Attributes:
        is_new: it was not so before.
        is_recipient: the address is among the tenant's recipients now.
        stopped_count: mails that were waiting and will not be sent.
    """

    tenant: str
    recipient: str
    is_new: bool
    is_recipient: bool
    stopped_count: int = 0


def unsubscribe(ledger: Ledger, tenant: str, recipient: str, by: str, reason: str) -> Changed:
    """Send the recipient no more reports of the tenant, those that wait included.

    What a sender has in hand just now is not stopped.

    Again: changes nothing, and no second entry in the action log.

    Raises:
        UsageError: there is no such tenant, or that is no address.
    """
    address = _address(recipient)
    with ledger.transaction() as tx:
        is_recipient = _is_recipient(tx, tenant, address)
        is_new = tx.unsubscribed.add(tenant, address, by, reason)
        stopped_count = tx.unsubscribed.stop(tenant, address)
        if is_new:
            after = f"{address} unsubscribed; {stopped_count} waiting mails stopped"
            tx.actions.record(Act(by, "tenant unsubscribe", tenant, reason, None, after))
    return Changed(tenant, address, is_new, is_recipient, stopped_count)


def resubscribe(ledger: Ledger, tenant: str, recipient: str, by: str, reason: str) -> Changed:
    """Send the recipient reports again, from the next one on.

    Again: changes nothing, and no second entry in the action log.

    Raises:
        UsageError: there is no such tenant, or that is no address.
    """
    address = _address(recipient)
    with ledger.transaction() as tx:
        is_recipient = _is_recipient(tx, tenant, address)
        is_new = tx.unsubscribed.remove(tenant, address)
        if is_new:
            before = f"{address} unsubscribed"
            tx.actions.record(Act(by, "tenant resubscribe", tenant, reason, before, None))
    return Changed(tenant, address, is_new, is_recipient)


def named_by(ledger: Ledger, token: str) -> Link:
    """Return whom the token of a link names.

    Raises:
        UsageError: no mail ever carried it.
    """
    with ledger.transaction() as tx:
        link = tx.unsubscribed.find_link(token.strip())
    if link is None:
        raise UsageError(
            "No mail carried this token; take it whole from the unsubscribe link of a report."
        )
    return link


def _address(text: str) -> str:
    try:
        return read_address(text.strip())
    except ValueError as error:
        raise UsageError(f"The recipient {error}.") from None


def _is_recipient(tx: Transaction, tenant: str, address: str) -> bool:
    found = next(iter(tx.tenants.read([tenant])), None)
    if found is None:
        raise UsageError(
            f"There is no tenant {tenant!r}; `freehold tenant list` shows those there are."
        )
    return address in sort_out(found.recipients)[0]
