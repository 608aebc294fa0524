"""An operation moves only as the domain says: every real move is watched by a trigger."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from freehold.adapters.system import Onwards
from freehold.application.places import FULL_EVERY
from freehold.application.review import Person, Review
from freehold.application.sweep import Sweeper
from freehold.domain.operations import MOVES
from freehold.domain.rules import Condition, Mode, Predicate, Test
from tests.behaviour.till import Till, cart, open_table, put_holds, status

if TYPE_CHECKING:
    from tests.behaviour.place import Place

WATCH = {
    "postgres": """
        create table moves (operation_id bigint, was text, became text);
        grant all on moves to public;
        create function watch() returns trigger language plpgsql security definer as $$ begin
            insert into public.moves values (old.id, old.state,
                case when tg_op = 'UPDATE' then new.state end); return null; end $$;
        create trigger watch after update of state or delete on freehold.operation
            for each row execute function watch()""",
    "sqlite": """
        create table moves (operation_id integer, was text, became text);
        create trigger watch_update after update of state on freehold_operation
            begin insert into moves values (old.id, old.state, new.state); end;
        create trigger watch_delete after delete on freehold_operation
            begin insert into moves values (old.id, old.state, null); end""",
}
REFUSE = {
    "postgres": """
        create function refuse() returns trigger language plpgsql as
            $$ begin raise exception 'row % is refused', new.id; end $$;
        create trigger refuse before update on hold for each row
            when (new.id = 1 and new.status = 'expired') execute function refuse()""",
    "sqlite": """
        create trigger refuse before update on hold when new.id = 1 and new.status = 'expired'
            begin select raise(abort, 'row 1 is refused'); end""",
}
ANN = Person("ann", "to see")


def _watched(place: Place) -> Till:
    open_table(place)
    for text in (WATCH[place.dialect], REFUSE[place.dialect]):
        if place.dialect == "sqlite":
            place.host.connection.executescript(text)
        else:
            place.host.run(text)
    confirmed = Predicate(((Condition("status", Test.EQUALS, ("paid",)),),))
    return Till.open(place, cart(place, confirmed=confirmed))


def _moves(place: Place) -> set[tuple[str, str]]:
    """Return the moves seen; one without a next state ended in its record's outcome."""
    sql = (
        "select m.was, coalesce(m.became, r.outcome) from moves m "
        f"left join {place.prefix}record r on r.operation_id = m.operation_id"
    )
    return {(was, became) for was, became in place.host.run(sql)}


def _live_through(place: Place, till: Till) -> None:
    """Let operations be released, skipped, leased, retried, buried, requeued and closed."""
    put_holds(place, [1, 2, 3])
    till.scanner.scan(till.rule)
    place.host.run("update hold set status = 'paid' where id = 2")
    till.run()
    till.run_again(6)
    review = Review(till.ledger, Onwards())
    review.requeue(till.rule, review.chosen(till.rule), ANN)
    till.run_again(6)
    _lease_and_lose(place, till)
    _release_by_a_window(place, till)
    review.discard(till.rule, review.chosen(till.rule), ANN)
    place.host.run("update hold set status = 'paid' where id = 1")
    Sweeper(till.ledger, Onwards(), till.scanner).sweep([till.rule])


def _release_by_a_window(place: Place, till: Till) -> None:
    put_holds(place, [5], due=place.clock.at - timedelta(seconds=1))
    windowed = replace(till.rule, mode=Mode.WINDOW)
    till.scanner.scan(windowed)
    till.worker.work(windowed)


def _lease_and_lose(place: Place, till: Till) -> None:
    put_holds(place, [4])
    place.advance(FULL_EVERY)
    till.scanner.scan(till.rule)
    with till.ledger.transaction() as tx:
        tx.operations.lease(till.rule.name, 10, None, tx.now + timedelta(seconds=30))
    place.advance(timedelta(seconds=31))
    Sweeper(till.ledger, Onwards(), till.scanner).sweep([till.rule])
    till.run_again(1)


def test_only_the_moves_of_the_domain_happen(place: Place) -> None:
    till = _watched(place)
    _live_through(place, till)

    seen = _moves(place)
    allowed = {(was.value, to.value) for was, nexts in MOVES.items() for to in nexts}
    assert seen <= allowed
    assert seen >= {
        ("ready", "expired"),
        ("ready", "skipped"),
        ("ready", "retrying"),
        ("retrying", "retrying"),
        ("retrying", "dead"),
        ("dead", "ready"),
        ("ready", "leased"),
        ("leased", "ready"),
        ("leased", "closed"),
        ("dead", "discarded"),
        ("discarded", "closed"),
    }
    assert [status(place, number) for number in (1, 2, 3, 4, 5)] == [
        "paid",
        "paid",
        "expired",
        "expired",
        "expired",
    ]
