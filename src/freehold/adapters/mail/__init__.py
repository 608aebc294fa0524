"""Transports of mail: SMTP, three providers' HTTP interfaces, and a Maildir.

*Invariants*: one call is one attempt; what a provider may have accepted is UNKNOWN, never TRANSIENT.
*Not here*: what is done about an end (`domain.sending`), when (`application.reporting`).
"""
