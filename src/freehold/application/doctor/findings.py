"""What doctor can find; docs/reference/doctor.md has a heading for each code."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from freehold.domain.rules import Rule


class Severity(StrEnum):
    """How bad it is: a refused rule must not run, a warning is a risk that somebody may take."""

    REFUSE = "refuse"
    WARN = "warn"
    OK = "ok"


class Code(StrEnum):
    """What was looked at; the name of a finding in JSON and in the documentation."""

    SERVER_VERSION = "server-version"
    CLOCK_SKEW = "clock-skew"
    SYNCHRONOUS_COMMIT = "synchronous-commit"
    POOLER = "pooler"
    SUPERUSER = "superuser"
    BYPASS_ROW_SECURITY = "bypass-row-security"
    ENGINE_VERSION = "engine-version"
    JOURNAL_MODE = "journal-mode"
    FILE_MODE = "file-mode"
    DIRECTORY = "directory"
    NETWORK_FILE_SYSTEM = "network-file-system"
    TABLE_MISSING = "table-missing"
    NOT_A_TABLE = "not-a-table"
    COLUMN_MISSING = "column-missing"
    KEY_NOT_UNIQUE = "key-not-unique"
    KEY_NULLABLE = "key-nullable"
    KEY_WITHOUT_TYPE = "key-without-type"
    DUE_TYPE = "due-type"
    DUE_UNIT = "due-unit"
    DUE_ZONE = "due-zone"
    LITERAL = "literal"
    TOO_LONG = "too-long"
    NULL_REFUSED = "null-refused"
    ACTION_KEEPS_HELD = "action-keeps-held"
    CHANGE = "change"
    RIGHT_MISSING = "right-missing"
    RIGHT_UNNEEDED = "right-unneeded"
    ROW_SECURITY = "row-security"
    TRIGGERS = "triggers"
    COMPANION = "companion"
    COMPANION_PARAMETER = "companion-parameter"
    COMPANION_ORDER = "companion-order"
    HANDLER = "handler"
    HANDLER_LOCK = "handler-lock"
    DUE_INDEX = "due-index"
    EQUAL_DUES = "equal-dues"
    TENANT_INDEX = "tenant-index"
    FULL_SCAN = "full-scan"
    WEAK_FENCE = "weak-fence"
    ZONE_GUESS = "zone-guess"
    EMPTY_DUE = "empty-due"
    UNREADABLE_DUE = "unreadable-due"
    DUE_SPELLING = "due-spelling"
    OVERLAP = "overlap"
    STOPPED = "stopped"
    REPORT_TRANSPORT = "report-transport"
    REPORT_IN_CLEAR = "report-in-clear"
    REPORT_RECIPIENTS = "report-recipients"
    REPORT_NOBODY = "report-nobody"
    REPORT_UNSUBSCRIBE = "report-unsubscribe"
    REPORT_SUMMARY = "report-summary"
    REPORTS = "reports"
    TARGET = "target"
    TARGETS = "targets"
    BROKER_AWAY = "broker-away"
    BROKER_UNFIT = "broker-unfit"
    BROKER_VERSION = "broker-version"
    BROKER_QUEUE = "broker-queue"
    BROKER_DEAD_LETTERS = "broker-dead-letters"
    BROKER_SYNC = "broker-sync"
    BROKER_REPLICAS = "broker-replicas"
    BROKER_ACCOUNT = "broker-account"
    BROKER_IN_CLEAR = "broker-in-clear"
    BROKER_UNASKED = "broker-unasked"
    BROKER = "broker"
    UNREAD = "unread"
    FITS = "fits"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found.

    Attributes:
        rule: the rule that it is about; None for the database as a whole.
        place: where exactly, for a person: a column, a companion, the file.
        sentence: what is wrong and what to do next.
        mend: SQL that would mend it, to be copied; None where SQL cannot.
        detail: lines that show it, such as a plan.
    """

    severity: Severity
    code: Code
    rule: str | None
    place: str
    sentence: str
    mend: str | None = None
    detail: str | None = None


def refuse(
    code: Code, rule: Rule | None, place: str, sentence: str, mend: str | None = None
) -> Finding:
    """Find something that forbids the rule to run."""
    return Finding(Severity.REFUSE, code, _name(rule), place, sentence, mend or None)


def warn(
    code: Code,
    rule: Rule | None,
    place: str,
    sentence: str,
    mend: str | None = None,
    detail: str | None = None,
) -> Finding:
    """Find a risk."""
    return Finding(Severity.WARN, code, _name(rule), place, sentence, mend or None, detail)


def fine(code: Code, rule: Rule | None, place: str, sentence: str) -> Finding:
    """Find something worth saying that is as it should be."""
    return Finding(Severity.OK, code, _name(rule), place, sentence)


def _name(rule: Rule | None) -> str | None:
    return None if rule is None else rule.name
