"""The keys of `[tenants]`: a table of the customer's that names the tenants."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated

from pydantic import Field

from freehold.domain.tenant_mapping import TenantMapping
from freehold.settings.notation import Finding
from freehold.settings.shape import Alternative, Name, Shape, Span, Table, written

EVERY_LEAST = timedelta(seconds=10)
_EVERY = written(TenantMapping.__dataclass_fields__["every"].default)


class TenantsShape(Shape):
    """The customer's own table of tenants; absent: tenants are only those that people add."""

    table: Table = Field(
        description="The table of the tenants; each part is an exact name, in quotes or not.",
        examples=["public.properties"],
    )
    id: Name = Field(
        description="The unique column whose text the holds name their tenant by.",
        examples=["id"],
    )
    name: Name | None = Field(None, description="The column with what people call the tenant.")
    zone: Name | None = Field(
        None, description="The column with its time zone, such as Europe/Berlin."
    )
    report_hour: Name | None = Field(
        None, description="The column with the local hour of its daily report, 0 to 23."
    )
    recipients: Name | None = Field(
        None,
        description="The column with the mail addresses of its daily report: a text with commas, "
        "semicolons or blanks between them, a JSON array, or an array.",
        examples=["report_emails"],
    )
    locale: Name | None = Field(None, description="The column with its language, such as de-AT.")
    active: Annotated[list[Alternative], Field(min_length=1)] | None = Field(
        None,
        description="What a row of a tenant in business looks like, as in held; absent: every row "
        "is one.",
        examples=[[{"status": ["live", "trial"]}]],
    )
    every: Span = Field(
        _EVERY, description="How often the table is read, by the role report. At least 10s."
    )


def tenants_findings(tenants: TenantsShape | None) -> Iterator[Finding]:
    """Yield what does not fit together."""
    if tenants is not None and tenants.every < EVERY_LEAST:
        yield Finding("tenants.every", "must be at least 10s: each time the whole table is read.")
