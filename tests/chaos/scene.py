"""One database with services and hosts over it, and what happens to them by the dice.

*Invariants*: while anything runs, this process has no connection open (a child inherits SQLite's
locks with it) and one thread.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from freehold import holds
from freehold.adapters.system import Onwards
from freehold.bootstrap import open_telemetry
from freehold.domain.pauses import Role
from freehold.entrypoints.cli.main import command_tree, main
from freehold.entrypoints.service import Service
from freehold.settings import load_settings
from freehold.testing.backdoor import BackDoor
from freehold.testing.crash import KillAt, StopAt
from freehold.testing.forking import fork
from freehold.testing.own_table import disguise
from freehold.testing.tables import RESTOCK, StandardTable
from tests.chaos.hosts import TENANTS, Hotel, Shop, on_stop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Literal, Self

    from freehold.domain.rules import Rule
    from freehold.ports.system import Checkpoint
    from freehold.testing.forking import Child, Wire

    Kind = Literal["shop", "hotel"]

MODES = ("direct", "window", "reservation", "handler")
SERVICES = 2
HOSTS = 3
CHILD_SECONDS = 120
REACHES_MAX = (
    300  # boundaries that a service may pass before one that kills or stops it; rather few
)
STOPPED_SECONDS = {"sqlite": 0.15, "postgres": 1.6}  # longer than a lease, and than idle below
BETWEEN_SECONDS = (0.02, 0.3)
SETTINGS = """
[database]
url = "{url}"
idle_in_transaction = "1s"

[loops]
lease = "1s"
sweep = "300ms"
poll = "200ms"
heartbeat = "200ms"
"""
SHOP = """
[[rules]]
name = "reservation"
table = "reservation"
key = ["id"]
tenant = {{ column = "tenant" }}
held = [{{ status = "held" }}]
due = {{ column = "hold_until", {due} }}
fence = ["token"]
expire = {{ set = {{ status = "expired", released_at = {{ now = true }} }} }}
confirmed = [{{ status = "confirmed" }}]
cancelled = [{{ status = "cancelled" }}]
also = [{{ sql = "{restock}", rows = "1", lock_by = ":stock_id" }}]
carry = ["stock_id", "quantity"]
"""
HOTEL = """
[holds]
also = [{ sql = "update stock set free = free + 1 where id = cast(:unit_id as integer)", rows = "1", lock_by = ":unit_id" }]
"""
# A kill counts as an attempt where a handler may be to blame, and here they are many.
RULE = """
mode = "{mode}"
when = "{when}"
batch = 40
attach_limit = 1000000
retry = {{ delays = [{delays}] }}
"""
HANDLER = """
handler = "chaos_hooks:note"
handler_timeout = "600ms"
"""
HOOKS = """
import time


def note(batch):
    for hold in batch.holds:
        batch.connection.execute(
            f"insert into noted values ({hold.key}, '{hold.columns['TOKEN']}')"
        )
    time.sleep(0.002 * len(batch.holds))
"""
OWN_TABLES = """
create table mark (number text primary key);
create table noted (id integer not null, token text not null, primary key (id, token));
"""


@dataclass
class Scene:
    """Services and hosts; `seed` names what the dice will do to them."""

    url: str
    folder: Path
    kind: Kind
    mode: str
    seed: int
    services: list[Child] = field(default_factory=list)
    hosts: list[Child] = field(default_factory=list)
    host_count: int = 0
    deaths: Counter[str] = field(default_factory=Counter)
    stopped_at: dict[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.dice = random.Random(f"{self.seed} {self}")
        self.sqlite = self.url.startswith("sqlite")
        self.until = 0.0
        self.ended_at = datetime.now(UTC)

    def __str__(self) -> str:
        where = "SQLite" if self.url.startswith("sqlite") else "PostgreSQL"
        return f"{self.kind} in mode {self.mode} on {where}"

    @property
    def rule(self) -> Rule:
        """The rule, as the installation reads it."""
        return load_settings(self.folder / "freehold.toml", {}).rules[0]

    # ------------------------------------------------------------------------------- set up

    def prepare(self) -> None:
        """Make tables, ledger and settings."""
        self.folder.mkdir()
        (self.folder / "freehold.toml").write_text(self._settings())
        token = "token" if self.kind == "shop" else "hold_token"
        (self.folder / "chaos_hooks.py").write_text(HOOKS.replace("TOKEN", token))
        with BackDoor(self.url) as door:
            if self.kind == "shop":
                StandardTable(door).create()
            elif self.sqlite:
                door.execute("pragma journal_mode = wal")
            door.script(OWN_TABLES)
        assert self.call("db", "upgrade") == 0
        if self.kind == "hotel":
            with BackDoor(self.url) as door:
                self._furnish(door)
                self._warm_up(door)

    def _settings(self) -> str:
        handled = self.mode == "handler"
        due = 'kind = "naive", zone = "UTC"' if self.sqlite else 'kind = "timestamptz"'
        text = SETTINGS.format(url=self.url)
        text += HOTEL if self.kind == "hotel" else SHOP.format(due=due, restock=RESTOCK.sql)
        text += RULE.format(
            mode="reservation" if handled else self.mode,
            when="1s" if self.mode == "window" else "precise",
            delays=", ".join(['"100ms"'] * 30),
        )
        return text + (HANDLER if handled else "")

    def _furnish(self, door: BackDoor) -> None:
        disguise(door)
        at = "'2031-01-01 00:00:00.000000'"
        over = "" if self.sqlite else "overriding system value"
        for tenant in TENANTS:
            door.execute(
                f"insert into {{s}}tenant (id, name, created_at, changed_at)"
                f" values ('{tenant}', '{tenant}', {at}, {at})"
            )
        for unit in range(1, 1 + 2 * len(TENANTS)):
            tenant = TENANTS[unit % len(TENANTS)]
            door.execute(
                f"insert into {{s}}unit (id, tenant, name, created_at, changed_at) {over}"
                f" values ({unit}, '{tenant}', 'room {unit}', {at}, {at})"
            )
            door.execute("insert into stock values (:unit, 0)", unit=unit)

    def _warm_up(self, door: BackDoor) -> None:
        """Load what a hold needs once for all hosts: the first would do it with a lock in hand."""
        door.execute("begin immediate" if self.sqlite else "begin")
        for unit in (1, 1):
            with suppress(holds.HoldTaken):
                holds.hold(
                    door.connection,
                    tenant=TENANTS[1],
                    unit=unit,
                    window=timedelta(seconds=1),
                    rule=self.rule,
                )
        door.execute("rollback")

    # ------------------------------------------------------------------------------- run

    def __enter__(self) -> Self:
        self.services = [self._serve() for _ in range(SERVICES)]
        self.hosts = [self._host() for _ in range(HOSTS)]
        return self

    def __exit__(self, *_: object) -> None:
        for child in (*self.hosts, *self.services):
            child.__exit__(None, None, None)

    def _serve(self) -> Child:
        nth = int(REACHES_MAX ** self.dice.random())
        fate = self.dice.choice((KillAt, StopAt, None))
        checkpoint = Onwards() if fate is None else fate(nth)
        return _spawn(partial(self._service, checkpoint))

    def _service(self, checkpoint: Checkpoint, wire: Wire) -> None:
        """Be a service, in a child that was forked."""
        self._step_in("service.log")
        settings = load_settings(self.folder / "freehold.toml", {})
        service = Service(settings, checkpoint, open_telemetry(settings))
        on_stop(service.ask_to_stop)
        service.run([Role.SCAN, Role.WORK])

    def _step_in(self, log: str) -> None:
        os.chdir(self.folder)
        sys.stdout = sys.stderr = (self.folder / log).open("a", buffering=1)

    def _host(self) -> Child:
        self.host_count += 1
        make = Shop if self.kind == "shop" else Hotel
        dice = random.Random(self.dice.random())
        host = make(self.url, self.folder, self.host_count, dice, self.rule)
        return _spawn(host.run)

    def disturb(self) -> None:
        """Let go on what was stopped long enough, replace what died, and now and then strike."""
        self._look_after(self.services)
        self._look_after(self.hosts)
        if time.monotonic() < self.until:
            return
        self.until = time.monotonic() + self.dice.uniform(*BETWEEN_SECONDS)
        victims = self.dice.choice((self.services, self.services, self.services, self.hosts))
        victim = self.dice.choice(victims)
        match self.dice.randrange(6):
            case 0:
                victim.kill()
            case 1:
                os.kill(victim.pid, signal.SIGSTOP)
            case 2 if victims is self.services:
                os.kill(victim.pid, signal.SIGTERM)

    def _look_after(self, children: list[Child]) -> None:
        for place, child in enumerate(children):
            options = os.WEXITED | os.WSTOPPED | os.WNOHANG | os.WNOWAIT
            found = os.waitid(os.P_PID, child.pid, options)
            if found is None:
                continue
            if found.si_code == os.CLD_STOPPED:
                self._perhaps_resume(child)
            else:
                who = "service" if children is self.services else "host"
                children[place] = self._serve() if children is self.services else self._host()
                self.deaths[f"{who} killed" if self.bury(child) else f"{who} ended"] += 1

    def _perhaps_resume(self, child: Child) -> None:
        now = time.monotonic()
        most = STOPPED_SECONDS["sqlite" if self.sqlite else "postgres"]
        until = self.stopped_at.setdefault(child.pid, now + self.dice.uniform(0, most))
        if now >= until:
            del self.stopped_at[child.pid]
            child.resume()

    @staticmethod
    def bury(child: Child) -> bool:
        """Take a dead child's leave; tell whether it was killed. It may not have failed."""
        with child:
            return child.end().was_killed

    def end(self) -> None:
        """Let the hosts finish, and kill the services."""
        self.ended_at = datetime.now(UTC)
        for host in self.hosts:
            os.kill(host.pid, signal.SIGTERM)
            host.resume()
        for service in self.services:
            service.kill()
        children = [*self.hosts, *self.services]
        self.hosts, self.services = [], []
        for child in children:
            self.bury(child)

    def call(self, *words: str) -> int:
        """Run a command in a child of its own; return its exit code."""
        with fork(partial(self._command, words)) as child:
            code = child.end().value
        assert isinstance(code, int)
        return code

    def _command(self, words: tuple[str, ...], wire: Wire) -> int:
        self._step_in("commands.log")
        os.environ["FREEHOLD_TRACEBACK"] = "1"
        sys.argv = ["freehold", *words]
        try:
            main()
        except SystemExit as ended:
            return int(ended.code or 0)
        return 0


def _spawn(function: Callable[[Wire], object]) -> Child:
    """Start a child that a SIGTERM does not reach before `on_stop`."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    try:
        return fork(function, CHILD_SECONDS)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])


def warm_up() -> None:
    """Import what every child needs, once."""
    command_tree()
