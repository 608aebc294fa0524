"""Every mistake is one sentence: what, where, what to do, and never a secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from freehold.domain.errors import UsageError
from freehold.settings import load_settings
from tests.unit.test_settings import LEAST

RULE = {
    "name": '"cart"',
    "table": '"carts"',
    "key": '["id"]',
    "held": '[{ status = "held" }]',
    "due": '{ column = "hold_until", kind = "timestamptz" }',
    "expire": '{ set = { status = "expired" } }',
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def complaint(text: str, **environ: str) -> str:
    Path("freehold.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        load_settings(None, environ)
    return str(caught.value)


def of_rule(**changed: str | None) -> str:
    """Return what a rule with changed lines is told, without the place's and rule's common part."""
    lines = [f"{key} = {value}" for key, value in (RULE | changed).items() if value is not None]
    text = complaint("\n".join(["[[rules]]", *lines]))
    return (
        text.replace("freehold.toml: rules[0].", "")
        .replace("? (rule 'cart').", "?")
        .replace(" (rule 'cart')", "")
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("loop = 1", "loop is unknown; did you mean 'loops'?"),
        (
            '[database]\nurk = "postgresql://u:s3cret@h/d"',
            "database.urk is unknown; did you mean 'url'?",
        ),
        ("database = 3", "database must be a table, not a whole number."),
        (
            "[loops]\nlease = 30",
            'loops.lease must be a duration in quotes, such as "30s", not a whole number.',
        ),
        (
            '[loops]\nlease = "soon"',
            "loops.lease is no duration: write 250ms, 30s, 15m, 2h or 1h30m.",
        ),
        ('[loops]\npoll = "0s"', "loops.poll must be longer than 0s."),
        (
            '[loops]\nheartbeat = "30s"',
            "loops.heartbeat must be shorter than loops.lease, or every lease ends.",
        ),
        ("rules = {}", "rules must be a list, not a table."),
        (
            "[database]\nsearch_path = 1",
            "database.search_path must be a text in quotes, not a whole number.",
        ),
    ],
)
def test_the_top_of_the_file(text: str, expected: str) -> None:
    assert complaint(text) == f"freehold.toml: {expected}"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://u:s3cret@h/d", "must begin with sqlite:/// or postgresql://"),
        ("host=h password=s3cret", "must begin with sqlite:/// or postgresql://"),
        ("postgresql+psycopg://u:s3cret@h/d", "write postgresql: without the + and what follows"),
        ("postgresql://u:s3cret@h:port/d", "the port must be a number"),
        ("postgresql://u:12?s3cret@h/d", "has a # or @ behind the host"),
        ("postgresql://u:12#s3cret@h/d", "has a # or @ behind the host"),
        ("postgresql://[s3cret@h/d", "is no URL"),
        ("sqlite://s3cret.db", "three slashes or four"),
        ("sqlite:///", "three slashes or four"),
        ("sqlite:///:memory:", "name a file"),
        ("sqlite:///a.db?mode=s3cret", "takes no options"),
    ],
)
def test_a_bad_url_is_not_repeated(url: str, says: str) -> None:
    for text in (
        complaint(f'[database]\nurl = "{url}"'),
        complaint("", FREEHOLD_DATABASE__URL=url),
    ):
        assert says in text
        assert "s3cret" not in text
        assert "\n" not in text


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"tabel": '"x"'}, "tabel is unknown; did you mean 'table'?"),
        ({"every": '"10s"'}, 'every is unknown; write when = "every 30s".'),
        ({"key": None}, 'key is missing; add key = ["id"].'),
        ({"key": "[]"}, "key is empty; name at least one."),
        ({"key": '["id", "id"]'}, "key names 'id' twice; once is enough."),
        ({"key": '[""]'}, "key[0] is empty; write a name."),
        ({"table": "3"}, "table must be a table's name in quotes, not a whole number."),
        (
            {"tenant": '{ column = "a", constant = "b" }'},
            "tenant has column and constant; keep one of them.",
        ),
        (
            {"due": '{ column = "d", kind = "timestamp" }'},
            (
                "due.kind must be one of timestamptz, naive, date, epoch_s, epoch_ms, iso; "
                "did you mean 'timestamptz'?"
            ),
        ),
        (
            {"due": '{ column = "d", kind = "naive" }'},
            'due.zone is missing: a naive column needs one; add zone = "UTC" or its own.',
        ),
        (
            {"due": '{ column = "d", kind = "date", zone = "Berlin" }'},
            (
                "due.zone is wrong: time zone 'Berlin' is not known: use a name such as Europe/Berlin "
                "or UTC."
            ),
        ),
        (
            {"due": '{ column = "d", kind = "iso", grace = "-1s" }'},
            "due.grace is no duration: write 250ms, 30s, 15m, 2h or 1h30m.",
        ),
        (
            {"mode": '"reservations"'},
            "mode must be one of direct, window, reservation; did you mean 'reservation'?",
        ),
        ({"batch": "0"}, "batch must be at least 1."),
        ({"batch": "10001"}, "batch must be at most 10000."),
        ({"batch": '"5"'}, "batch must be a whole number, not a text."),
        ({"batch": "true"}, "batch must be a whole number, not true or false."),
        ({"retry": "{ jitter = 1.5 }"}, "retry.jitter must be at most 1."),
        ({"retry": "{ jitter = nan }"}, "retry.jitter must be at most 1."),
        ({"retry": '{ delays = ["0s"] }'}, "retry.delays[0] must be longer than 0s."),
        ({"zone": '"UTC"'}, "zone is read with a cron line only; remove it, or set due.zone."),
        (
            {"when": '"often"'},
            "when is no schedule: 'often' is no duration: write 30s, 15m, 2h or 1h30m.",
        ),
        ({"held": "[{}]"}, "held[0] is empty; name at least one."),
        ({"confirmed": "[]"}, "confirmed is empty; name at least one."),
        (
            {"held": "[{ status = [] }]"},
            "held[0].status is an empty list, which nothing matches; name at least one value.",
        ),
        (
            {"held": '[{ status = { is = "nil" } }]'},
            'held[0].status must be { is = "null" } or { is = "not null" }.',
        ),
        (
            {"held": "[{ at = 2020-01-01 }]"},
            (
                "held[0].at must be a text, a number, true or false, not a date or time "
                "(write dates and times as text)."
            ),
        ),
        (
            {"expire": "{ delete = true, set = { status = 1 } }"},
            "expire must be { delete = true } or { set = { ... } }, one of the two.",
        ),
        (
            {"expire": "{}"},
            "expire must be { delete = true } or { set = { ... } }, one of the two.",
        ),
        ({"expire": "{ delete = false }"}, "expire.delete can only be true."),
        ({"expire": "{ set = {} }"}, "expire.set is empty; name at least one."),
        (
            {"expire": "{ set = { status = { now = false } } }"},
            (
                "expire.set.status is no value to set: write a value, { now = true } or "
                "{ null = true }."
            ),
        ),
        (
            {"expire": '{ set = { status = "x", id = 1 } }'},
            "expire.set changes the key column 'id'; a key must stay.",
        ),
        ({"also": "[{ sql = ' -- nothing' }]"}, "also[0].sql is empty."),
        (
            {"also": "[{ sql = 'select 1; select 2' }]"},
            "also[0].sql holds several statements; give each its own entry in also.",
        ),
        (
            {"also": "[{ sql = 'COMMIT' }]"},
            "also[0].sql begins with 'COMMIT', but it runs inside the release.",
        ),
        (
            {"also": "[{ sql = 'select :a, :b', lock_by = ':c' }]"},
            "also[0].lock_by must name a parameter of the sql (:a, :b).",
        ),
        (
            {"also": "[{ sql = 'select 1', rows = 1 }]"},
            'also[0].rows must be a row range in quotes: "1", "0-1", "1-" or "any".',
        ),
        ({"also": "[{ sql = 'select 1', rows = '2-1' }]"}, "also[0].rows ends before it starts."),
        ({"handler": '"shop"'}, "handler must name a function as package.module:function."),
        (
            {"handler": '"shop:f"', "mode": '"direct"'},
            'handler needs mode = "reservation", so that its failures are counted.',
        ),
        (
            {"handler": '"shop:f"', "mode": '"window"'},
            'handler needs mode = "reservation", so that its failures are counted.',
        ),
        (
            {"handler": '"shop:f"', "handler_timeout": '"30s"'},
            "handler_timeout must be shorter than loops.lease.",
        ),
        (
            {"handler_timeout": '"5s"'},
            "handler_timeout limits a handler, and there is none; remove it.",
        ),
    ],
)
def test_a_rule(changed: dict[str, str | None], expected: str) -> None:
    assert of_rule(**changed) == expected


@pytest.mark.parametrize("name", ['"Cart"', '"a b"', '""', f'"{"x" * 65}"'])
def test_rule_names(name: str) -> None:
    assert "must be 1 to 64 of the letters a-z, digits, _ and -" in of_rule(name=name)


@pytest.mark.parametrize("table", ["", "a.b.c", "my table", '"a', 'a"b', '""'])
def test_table_names(table: str) -> None:
    assert of_rule(table=f"'{table}'").startswith("table is no table's name: write name")


@pytest.mark.parametrize(
    "sql", ["select ';'", 'select ";"', "select 1 /* ; */; -- ;", "select $$;$$"]
)
def test_a_semicolon_that_ends_nothing_is_no_second_statement(sql: str) -> None:
    text = LEAST + f"also = [{{ sql = '''{sql}''' }}]"
    Path("freehold.toml").write_text(text, encoding="utf-8")
    assert load_settings(None, {}).rules[0].companions


@pytest.mark.parametrize(
    ("held", "assigned"),
    [
        ('{ status = "held" }', 'status = "held"'),
        ('{ status = "held" }', "at = { now = true }"),
        ('{ status = ["held", "pending"] }', 'status = "pending"'),
        ("{ seats = { lt = 5 } }", "seats = 4"),
        ("{ n = 1 }", 'n = "1"'),
        ("{ n = 1 }", "n = 1.0"),
        ("{ on = true }", 'on = "true"'),
        ('{ at = { is = "null" } }', "at = { null = true }"),
        ('{ at = { is = "not null" } }', "at = { now = true }"),
        ('{ status = "held" }, { kind = "seat" }', 'status = "expired"'),
        ('{ status = "held", kind = "seat" }', 'kind = "seat"'),
    ],
)
def test_an_action_that_leaves_the_row_held(held: str, assigned: str) -> None:
    told = of_rule(held=f"[{held}]", expire=f"{{ set = {{ {assigned} }} }}")
    assert told.startswith("expire.set leaves held[")
    assert "released again" in told


@pytest.mark.parametrize(
    ("held", "assigned"),
    [
        ('{ status = "held", kind = "seat" }', 'status = "expired"'),
        ('{ status = "a" }, { status = "b" }', 'status = "c"'),
        ("{ seats = { lt = 5 } }", "seats = 5"),
        ('{ name = { lt = "b" } }', 'name = "a"'),  # the column's collation decides
        ('{ at = { is = "null" } }', "at = { now = true }"),
        ('{ at = { is = "not null" } }', "at = { null = true }"),
        ("{ on = true }", "on = false"),
        ('{ at = "2020-01-01" }', "at = { now = true }"),
    ],
)
def test_an_action_that_ends_the_hold(held: str, assigned: str) -> None:
    text = LEAST.replace('{ status = "held" }', held).replace('status = "expired"', assigned)
    Path("freehold.toml").write_text(text, encoding="utf-8")
    assert load_settings(None, {}).rules


def test_a_row_that_is_the_hold_can_only_be_deleted() -> None:
    assert of_rule(held=None).startswith("expire.set leaves the row held, because held is absent")


def test_two_rules_of_one_name() -> None:
    assert complaint(LEAST + LEAST) == (
        "freehold.toml: rules[1].name 'cart' is the name of rules[0] too; rename one of them."
    )


def test_several_mistakes_are_one_a_line() -> None:
    lines = complaint('nope = 1\n[loops]\nlease = "x"\n[[rules]]\nname = "a"').splitlines()
    assert len(lines) == 6
    assert all(line.startswith("freehold.toml: ") and line.endswith(".") for line in lines)


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("FREEHOLD_DATABASE__URRL", "s3cret", "did you mean FREEHOLD_DATABASE__URL?"),
        ("FREEHOLD_DATABASE__X", "s3cret", "known are FREEHOLD_DATABASE__URL, "),
        ("FREEHOLD_DATABASES__URL", "s3cret", "did you mean 'database'?"),
        ("FREEHOLD_DATABASE_URL", "s3cret", "did you mean FREEHOLD_DATABASE__URL?"),
        ("FREEHOLD_RULES__0__NAME", "s3cret", "rules come from the file only"),
        ("FREEHOLD_LOOPS__LEASE", "s3cret", "is no duration"),
        ("FREEHOLD_DATABASE__URL_FILE", "missing", "cannot be read: No such file"),
    ],
)
def test_the_environment(variable: str, value: str, expected: str) -> None:
    told = complaint("", **{variable: value})
    assert told.startswith(variable)
    assert expected in told
    assert "s3cret" not in told


def test_one_setting_from_two_variables(folder: Path) -> None:
    (folder / "url").write_text("sqlite:///a.db", encoding="utf-8")
    told = complaint("", FREEHOLD_DATABASE__URL="sqlite:///b.db", FREEHOLD_DATABASE__URL_FILE="url")
    assert told == (
        "FREEHOLD_DATABASE__URL and FREEHOLD_DATABASE__URL_FILE are both set; unset one of them."
    )


def test_files_that_cannot_be_read(folder: Path) -> None:
    (folder / "latin.toml").write_bytes(b'x = "\xe9"')
    (folder / "pyproject.toml").write_text("[tool.other]", encoding="utf-8")
    for name, says in (
        ("missing.toml", "missing.toml does not exist; write it with freehold init."),
        ("latin.toml", "latin.toml is no UTF-8 text; save it as UTF-8."),
        (".", "cannot be read: Is a directory."),
        ("pyproject.toml", "has no [tool.freehold] table; add it, or name another file."),
    ):
        with pytest.raises(UsageError, match=r"\.$") as caught:
            load_settings(folder / name, {})
        assert str(caught.value).endswith(says)


def test_bad_toml_names_the_line() -> None:
    told = complaint('[database]\nurl = "postgresql://u:s3cret@h/d\n')
    assert told.startswith("freehold.toml is no valid TOML: ")
    assert "line 2" in told
    assert "s3cret" not in told


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[holds]\nhold_windw = "1m"', "holds.hold_windw is unknown; did you mean 'hold_window'?"),
        ('[holds]\ntable = "x"', "holds.table is unknown; known here: name, hold_window, "),
        ('[holds]\nhold_window = "0s"', "holds.hold_window must be longer than 0s."),
        ('[holds]\nwhen = "never"', "holds.when is no schedule: "),
        (
            '[holds]\nzone = "UTC"',
            "holds.zone is read with a cron line only; remove it.",
        ),
        ('[holds]\nalso = [{ sql = "" }]', "holds.also[0].sql is empty."),
        (
            '[holds]\nhandler = "x"',
            "holds.handler must name a function as package.module:function.",
        ),
        ("[[holds]]", "holds must be a table, not a list."),
        (
            f'[holds]\nname = "cart"\n{LEAST}',
            (
                "rules[0].name 'cart' is the name of the built-in holds too; rename this rule, or "
                'write name = "..." in [holds].'
            ),
        ),
    ],
)
def test_the_built_in_holds(text: str, expected: str) -> None:
    assert complaint(text).startswith(f"freehold.toml: {expected}")


def test_the_environment_sets_no_holds() -> None:
    assert complaint("", FREEHOLD_HOLDS__NAME="x") == (
        "FREEHOLD_HOLDS__NAME: [holds] comes from the file only; set it in freehold.toml."
    )
