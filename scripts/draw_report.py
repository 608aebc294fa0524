"""Draw daily reports as pictures, to look at them: a busy, a calm and a bad day, phone and desktop.

Run: .venv/bin/python scripts/draw_report.py FOLDER [NAME ...]      (needs Chromium on the path)
The README's picture, docs/images/report.png, is `busy-top.png`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from freehold.adapters.rendering import MimeRenderer
from freehold.domain.facts import Facts, LateFacts, ReleasedItem, RuleFacts
from freehold.domain.reports import ReportPolicy

DAY = date(2026, 3, 14)
START = datetime(2026, 3, 13, 23, tzinfo=UTC)
POLICY = ReportPolicy(
    "reports@harbour.example",
    link="https://harbour.example/holds?day={date}",
    unsubscribe="https://harbour.example/stop/{token}",
)
SIZES = {"phone": (390, 2200), "desktop": (900, 2000), "top": (720, 920)}
SUMMARY = (
    "The day was busier than the one before: 1,284 holds ran out and 911 units came free again. "
    "Nearly all of them were released within a minute."
)
CALM = Facts(
    tenant="harbour",
    tenant_name="Harbour Hotel & Marina",
    report_date=DAY,
    start_at=START,
    end_at=START + timedelta(days=1),
    zone="Europe/Berlin",
    tz_version="2026a",
    watermark_at=START + timedelta(days=1),
    frozen_at=START + timedelta(days=1, minutes=1),
    day_before_count=41,
    week_before_count=0,
)
ROOMS = RuleFacts(
    rule="rooms",
    released_count=1_204,
    unit_count=860,
    skipped={"renewed": 310, "confirmed": 1_022, "cancelled": 18, "gone": 2},
    retried_count=7,
    lag_p50_seconds=1.0,
    lag_p95_seconds=3.0,
    lag_max_seconds=74.2,
    promise_seconds=60.0,
    within_promise_count=1_201,
)
BERTHS = RuleFacts(
    rule="berths",
    released_count=80,
    unit_count=51,
    skipped={"confirmed": 12},
    lag_p50_seconds=0.3,
    lag_p95_seconds=1.0,
    lag_max_seconds=2.6,
    promise_seconds=60.0,
    within_promise_count=80,
)


def items(count: int, names: tuple[str, ...]) -> tuple[ReleasedItem, ...]:
    """Return released holds, a few minutes apart."""
    return tuple(
        ReleasedItem(
            rule="berths" if number % 7 == 3 else "rooms",  # noqa: PLR2004 - now and then
            hold_key=f"{48_210 + number}",
            unit=names[number % len(names)],
            due_at=START + timedelta(minutes=4 * number + 2),
            released_at=START + timedelta(minutes=4 * number + 2, seconds=1 + number % 4),
            lag_seconds=1.0 + number % 4 + 0.2,
        )
        for number in range(count)
    )


BUSY = replace(
    CALM,
    rules=(BERTHS, ROOMS),
    items=items(200, ("Room 204, sea view", "Room 117", "Berth C-12", "Suite Amrum", "Room 009")),
    day_before_count=1_190,
    week_before_count=1_341,
)
BAD = replace(
    BUSY,
    rules=(
        BERTHS,
        replace(ROOMS, dead_count=3, oldest_due_at=START + timedelta(hours=17, minutes=22)),
    ),
    late=(LateFacts(None, 2, 0), LateFacts(date(2026, 3, 12), 4, 1)),
)
LONG = replace(
    BAD,
    tenant_name="Ferienwohnungsverwaltungsgesellschaft Nordfriesische Inseln und Halligen mbH & Co. KG, "
    "Zweigstelle Westerland",
    rules=(replace(ROOMS, rule="x" * 150), replace(BERTHS, rule="מעגנים")),
    items=items(
        12, ("Donaudampfschifffahrtskapitänskajüte" * 3, "חדר 12", "Room 👨‍👩‍👧‍👦", "<b>&'\"")
    ),
)
REPORTS = {
    "busy": (BUSY, "en", SUMMARY),
    "calm": (CALM, "en", None),
    "bad": (BAD, "en", None),
    "long": (LONG, "en", None),
    "german": (BAD, "de", None),
    "french": (BUSY, "fr-CA", None),
}


def main() -> None:
    """Draw what is asked for, or all."""
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or REPORTS:
        facts, locale, summary = REPORTS[name]
        rendered = MimeRenderer(POLICY).render(facts, locale, summary)
        (target / f"{name}.txt").write_text(rendered.text)
        (target / f"{name}.eml").write_bytes(rendered.body)
        for size in SIZES:
            for dark in (False, True):
                draw(rendered.html, target / f"{name}-{size}{'-dark' * dark}.png", size, dark=dark)


def draw(html: str, picture: Path, size: str, *, dark: bool) -> None:
    """Have a browser draw one page; dark is what its own setting would make of it."""
    if dark:
        html = html.replace("(prefers-color-scheme: dark)", "all")
    width, height = SIZES[size]
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        # A window is never narrower than 500 px, a frame is.
        page.write_text(
            f'<body style="margin:0"><iframe style="border:0;width:{width}px;height:{height}px" '
            f'srcdoc="{html.replace("&", "&amp;").replace(chr(34), "&quot;")}"></iframe>'
        )
        subprocess.run(  # noqa: S603 - our own page, and no shell
            [  # noqa: S607 - found on the path
                "chromium",
                "--headless",
                "--no-sandbox",
                "--hide-scrollbars",
                f"--user-data-dir={folder}",
                f"--window-size={max(width, 500)},{height}",
                f"--screenshot={picture.resolve()}",
                page.as_uri(),
            ],
            check=True,
            capture_output=True,
        )


if __name__ == "__main__":
    main()
