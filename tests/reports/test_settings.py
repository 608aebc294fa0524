"""What `[report]` and `[summary]` become, and what is refused, in one sentence and without a secret."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from freehold.domain.errors import UsageError
from freehold.domain.reports import ReportPolicy
from freehold.domain.retries import RetryPolicy
from freehold.settings import Settings, load_settings
from freehold.settings.sources import read_settings, settings_of
from freehold.settings.values_report import (
    MaildirSettings,
    ReportSettings,
    Secret,
    SmtpSettings,
    SummarySettings,
)

LEAST = '[report]\nsender = "r@x.example"\nmaildir = { path = "mails" }\n'
SMTP = '[report]\nsender = "r@x.example"\n[report.smtp]\nhost = "mx"\n'
SECRET = "s3cret-s3cret"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(text: str, **environ: str) -> Settings:
    Path("freehold.toml").write_text(text, encoding="utf-8")
    return load_settings(None, environ)


def report(text: str, **environ: str) -> ReportSettings:
    found = read(text, **environ).report
    assert found is not None
    return found


def complaint(text: str, **environ: str) -> str:
    with pytest.raises(UsageError) as caught:
        read(text, **environ)
    assert SECRET not in str(caught.value)
    return str(caught.value).replace("freehold.toml: ", "")


def test_reports_are_off_until_their_table_is_there() -> None:
    assert read("").report is None


def test_the_least_table_has_the_defaults_of_the_domain() -> None:
    assert report(LEAST) == ReportSettings(
        policy=ReportPolicy(sender="r@x.example"), transport=MaildirSettings("mails")
    )


def test_every_key_of_the_policy_is_read() -> None:
    found = report(
        LEAST.replace("maildir", "senders = 3\nmaildir")
        + """zone = "Europe/Berlin"
hour = 0
locale = "de-AT"
empty = "skip"
catch_up = 5
close_delay = "30s"
on_unknown = "resend"
items = 20
reply_to = "desk@x.example"
link = "https://x.example/{tenant}/{date}"
unsubscribe = "mailto:out@x.example?subject={token}"
retry = { delays = ["1s"], jitter = 0.0 }
"""
    )
    assert found.policy == ReportPolicy(
        sender="r@x.example",
        zone="Europe/Berlin",
        hour=0,
        locale="de-AT",
        empty="skip",
        catch_up=5,
        close_delay=timedelta(seconds=30),
        on_unknown="resend",
        items_max=20,
        reply_to="desk@x.example",
        link="https://x.example/{tenant}/{date}",
        unsubscribe="mailto:out@x.example?subject={token}",
    )
    assert found.senders == 3
    assert found.retry == RetryPolicy((timedelta(seconds=1),), 0.0)


@pytest.mark.parametrize(("security", "port"), [("starttls", 587), ("tls", 465), ("none", 25)])
def test_a_mail_server_s_port_follows_its_security(security: str, port: int) -> None:
    transport = report(f'{SMTP}security = "{security}"').transport
    assert isinstance(transport, SmtpSettings)
    assert (transport.security, transport.port) == (security, port)


def test_one_of_several_transports_is_chosen_by_name() -> None:
    text = f'{SMTP}[report.maildir]\npath = "mails"\n'
    assert complaint(text).startswith("report.transport is missing, and there are several tables")
    chosen = text.replace("[report.smtp]", 'transport = "maildir"\n[report.smtp]')
    assert isinstance(report(chosen).transport, MaildirSettings)


def test_secrets_come_from_the_environment_and_are_never_shown() -> None:
    text = f'{SMTP}user = "u"\n[summary]\nurl = "http://localhost:1/v1"\nmodel = "m"\n'
    environ = {"FREEHOLD_REPORT__SMTP__PASSWORD": SECRET, "FREEHOLD_SUMMARY__KEY": SECRET}
    found = report(text, **environ)
    assert isinstance(found.transport, SmtpSettings)
    assert found.transport.password.read() == SECRET
    assert found.summary is not None
    assert found.summary.key.read() == SECRET
    assert SECRET not in repr(found)
    shown = {one.name: one for one in settings_of(*read_settings(None, environ))}
    assert shown["report.smtp.password"].value == "***"
    assert shown["report.smtp.password"].origin == "FREEHOLD_REPORT__SMTP__PASSWORD"
    assert shown["summary.key"].value == "***"
    assert SECRET not in repr(shown)


def test_secrets_come_from_files_which_are_read_when_needed(folder: Path) -> None:
    text = '[report]\nsender = "r@x.example"\n[report.resend]\nkey_file = "key"\n'
    key = report(text).transport.key  # type: ignore[union-attr] # the text names Resend
    with pytest.raises(UsageError, match=r"report\.resend\.key_file cannot be read \(No such file"):
        key.read()
    (folder / "key").write_text(f"{SECRET}\n", encoding="utf-8")
    assert key.read() == SECRET
    given = report(text.replace("key_file", "url").replace('"key"', '"https://x.example"'),
                   FREEHOLD_REPORT__RESEND__KEY_FILE="key")  # fmt: skip
    assert given.transport.key.read() == SECRET  # type: ignore[union-attr] # as above


def test_the_environment_sets_numbers_and_can_turn_reports_on() -> None:
    found = report(
        "",
        FREEHOLD_REPORT__SENDER="r@x.example",
        FREEHOLD_REPORT__HOUR="5",
        FREEHOLD_REPORT__RETRY__JITTER="0.5",
        FREEHOLD_REPORT__MAILDIR__PATH="mails",
    )
    assert (found.policy.hour, found.retry.jitter) == (5, 0.5)


def test_a_summary_has_its_prices_and_bounds() -> None:
    found = report(
        LEAST + '[summary]\nurl = "https://x.example/v1"\nmodel = "m"\ninput_price = 0.5\n'
        'output_price = 2\ncurrency = "EUR"\nattempts = 1\ntimeout = "5s"\n'
    ).summary
    assert found == SummarySettings(
        url="https://x.example/v1",
        model="m",
        key=Secret("summary.key"),
        input_price=0.5,
        output_price=2.0,
        currency="EUR",
        attempts=1,
        timeout=timedelta(seconds=5),
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[report]", 'report.sender is missing; add sender = "reports@example.com".'),
        (
            LEAST + 'from = "x"',
            "report.from is unknown; write sender.",
        ),
        (
            LEAST.replace("r@x", "R <r@x>"),
            "report.sender must be one mail address without a name, such as desk@example.com.",
        ),
        (LEAST + "hour = 24", "report.hour must be at most 23."),
        (
            LEAST + 'zone = "Berlin"',
            (
                "report.zone is wrong: time zone 'Berlin' is not known: use a name such as "
                "Europe/Berlin or UTC."
            ),
        ),
        (LEAST + 'locale = "d e"', "report.locale must be a name such as en, de-AT or pt-BR."),
        (LEAST + 'link = "ftp://x"', "report.link must begin with http: or https:."),
        (LEAST + 'link = "https:///x"', "report.link names no host."),
        (
            LEAST + 'link = "https://x/{guest}"',
            "report.link has a placeholder {guest} that is not filled; known: {tenant}, {date}.",
        ),
        (
            LEAST + 'unsubscribe = "http://x/"',
            "report.unsubscribe must begin with mailto: or https:.",
        ),
        (
            LEAST + 'unsubscribe = "mailto:a@x\\nBcc: b@x"',
            "report.unsubscribe has a blank or a letter that a URL writes in percent form.",
        ),
        (
            '[report]\nsender = "r@x.example"\ntransport = "smtp"\nmaildir = { path = "m" }',
            'report.transport is "smtp", but there is no table [report.smtp]; add it.',
        ),
        (
            '[report]\nsender = "r@x.example"\n[report.postmark]',
            (
                "report.postmark.token is missing; set FREEHOLD_REPORT__POSTMARK__TOKEN, or name a "
                "file with token_file."
            ),
        ),
        (
            f'[report]\nsender = "r@x.example"\nresend = {{ key = "{SECRET}", key_file = "f" }}',
            "report.resend.key and key_file are both set; keep one of them.",
        ),
        (
            SMTP + f'password = "{SECRET}"',
            "report.smtp.user is missing, and there is a password; add user, or take it away.",
        ),
        (
            SMTP + f'user = "u"\npassword = "{SECRET}"\nsecurity = "none"',
            (
                'report.smtp.security is "none", which would send the password in clear; write '
                '"starttls".'
            ),
        ),
        (
            '[summary]\nurl = "https://x/v1"\nmodel = "m"',
            "summary is a part of the daily report, which is off; add [report].",
        ),
        (
            LEAST + f'[summary]\nurl = "https://u:{SECRET}@x/v1"\nmodel = "m"',
            "summary.url holds a user or a password, which would be shown; take it out.",
        ),
        (
            LEAST + f'[summary]\nurl = "https://x/v1?key={SECRET}"\nmodel = "m"',
            "summary.url has a part behind ? or #, which would be shown and cannot stay; take it out.",
        ),
        (
            LEAST + '[summary]\nurl = "https://x/v1"\nmodel = "m"\ninput_price = 1.0',
            "summary.output_price is missing; costs are computed from both prices.",
        ),
    ],
)
def test_mistakes(text: str, expected: str) -> None:
    assert complaint(text) == expected


def test_a_report_that_names_no_transport_is_told_of_the_trial_one() -> None:
    said = complaint('[report]\nsender = "r@x.example"')
    assert 'for a trial, maildir = { path = "mails" } writes mails into a folder' in said


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        (
            "FREEHOLD_REPORT__SMTP__PASWORD",
            "did you mean FREEHOLD_REPORT__SMTP__PASSWORD?",
        ),
        ("FREEHOLD_REPORT__SNTP__HOST", "did you mean FREEHOLD_REPORT__SMTP?"),
        ("FREEHOLD_REPORT__SMTP", "names no setting; "),
        ("FREEHOLD_LOGS__LEVEL__MORE", "there is no table in [logs]."),
        ("FREEHOLD_REPORT_HOUR", "did you mean FREEHOLD_REPORT__HOUR?"),
    ],
)
def test_variables_that_name_nothing(variable: str, expected: str) -> None:
    assert expected in complaint(SMTP, **{variable: SECRET})
