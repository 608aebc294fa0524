"""Who may come to NATS, and how: users, rights, TLS, several servers, and a server that is mute."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest
import trustme

from freehold.adapters.nats import NatsFacts, NatsQueue, NatsTarget, address, link
from freehold.adapters.nats import queue as adapter
from freehold.adapters.nats.topology import dead_stream, events_stream, hints_stream
from freehold.domain.errors import QueueAway, QueueUnfit, TargetAway, UsageError
from freehold.ports.queue import Disposition
from freehold.settings import load_settings
from freehold.testing.contracts.queue import message, take
from freehold.testing.contracts.targets import parcel
from tests.brokers.nats_server import NatsServer
from tests.unit.test_settings import LEAST

if TYPE_CHECKING:
    from collections.abc import Iterator

PASSWORD = "s3cret/@:pass"
PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "nats.md").read_text()
WRITTEN = "s3cret%2F%40%3Apass"  # in a URL
RIGHTS = """
authorization { users: [
  { user: all, password: "s3cret/@:pass" }
  { user: reader, password: "s3cret/@:pass", permissions: {
      publish: ["$JS.API.STREAM.INFO.>", "$JS.API.CONSUMER.INFO.>"], subscribe: ["_INBOX.>"] } }
  { user: deaf, password: "s3cret/@:pass", permissions: { publish: { deny: ["$JS.ACK.>"] } } }
  { user: least, password: "s3cret/@:pass", THE_PAGE }
] }
"""


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def guarded(
    authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NatsServer]:
    """A server with users and TLS."""
    folder = tmp_path_factory.mktemp("certificates")
    issued = authority.issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(folder / "cert")
    issued.private_key_pem.write_to_path(folder / "key")
    authority.cert_pem.write_to_path(folder / "ca")
    tls = f'tls {{ cert_file: "{folder / "cert"}", key_file: "{folder / "key"}" }}'
    (page,) = re.findall(r"```text\n(permissions: .*?)```", PAGE, re.DOTALL)
    rights = RIGHTS.replace("THE_PAGE", page.replace("freehold", "given"))
    server = NatsServer(settings=f"{rights}\n{tls}")
    yield server.start()
    server.remove()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> str:
    authority.cert_pem.write_to_path(tmp_path / "ca")
    return str(tmp_path / "ca")


def url_of(server: NatsServer, login: str = f"all:{WRITTEN}", scheme: str = "tls") -> str:
    return f"{scheme}://{login}@127.0.0.1:{server.port}"


def depth(url: str, name: str, ca_file: str | None = None) -> int | None:
    queue = NatsQueue(url=url, name=name, ca_file=ca_file)
    try:
        return queue.depth()
    finally:
        queue.close()


def test_a_user_with_a_password_over_tls_is_let_in(
    guarded: NatsServer, ca_file: str, stream: str
) -> None:
    assert depth(url_of(guarded), stream, ca_file) == 0
    assert depth(url_of(guarded, scheme="nats"), stream, ca_file) == 0  # the server demands it


def test_a_certificate_that_nobody_vouches_for_is_refused(
    guarded: NatsServer, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "CLOSE_SECONDS", 0.1)
    with pytest.raises(QueueUnfit, match="not trusted: see ca_file"):
        depth(url_of(guarded), stream)


def test_a_wrong_password_is_told_without_it(
    guarded: NatsServer, ca_file: str, stream: str
) -> None:
    with pytest.raises(QueueUnfit, match="refuses this user") as told:
        depth(url_of(guarded, "all:wr0ng"), stream, ca_file)
    assert "wr0ng" not in str(told.value)
    with pytest.raises(QueueUnfit, match="refuses this user"):
        depth(url_of(guarded, "no-token"), stream, ca_file)


def test_a_missing_right_is_told_at_once(guarded: NatsServer, ca_file: str, stream: str) -> None:
    with pytest.raises(QueueUnfit, match=r"does not let us: permissions violation.*stream\.create"):
        depth(url_of(guarded, f"reader:{WRITTEN}"), stream, ca_file)


def test_a_missing_right_to_acknowledge_is_told_by_the_next_receive(
    guarded: NatsServer, ca_file: str, stream: str
) -> None:
    queue = NatsQueue(url=url_of(guarded, f"deaf:{WRITTEN}"), name=stream, ca_file=ca_file)
    queue.publish([message(1)])
    queue.settle(take(queue, 1), Disposition.ACK)
    with pytest.raises(QueueUnfit, match=r"does not let us: permissions violation.*js\.ack"):
        queue.receive(1, 0)
    assert list(queue.receive(1, 0)) == []
    queue.close()


def test_the_rights_of_the_page_are_enough_once_all_is_made(
    guarded: NatsServer, ca_file: str
) -> None:
    assert depth(url_of(guarded), "given", ca_file) == 0
    queue = NatsQueue(url=url_of(guarded, f"least:{WRITTEN}"), name="given", ca_file=ca_file)
    assert queue.publish([message(1), message(2)]) == [True, True]
    first, second = take(queue, 2)
    queue.settle([first], Disposition.ACK)
    queue.settle([second], Disposition.DEAD_LETTER)
    assert queue.depth() == 0
    queue.close()
    facts = NatsFacts(url=url_of(guarded), name="given", ca_file=ca_file).read()
    assert (facts.user, facts.dead_count, facts.waiting_count) == ("all", 1, 0)


def test_a_missing_right_keeps_a_target_away(
    guarded: NatsServer, ca_file: str, stream: str
) -> None:
    target = NatsTarget(
        url=url_of(guarded, f"reader:{WRITTEN}"), subject="ev", stream=stream, ca_file=ca_file
    )
    with pytest.raises(TargetAway, match="does not let us"):
        target.deliver([parcel(1)])
    target.close()


def test_whom_tls_is_demanded_of_gets_no_password_without(stream: str) -> None:
    """Whoever answers in the server's place and offers no TLS must not hear the password."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        queue = NatsQueue(url=f"tls://all:{WRITTEN}@127.0.0.1:{port}", name=stream)
        mute.settimeout(20)
        heard: list[bytes] = []

        def play() -> None:
            with mute.accept()[0] as peer:
                peer.sendall(b'INFO {"server_id":"X","version":"2.15.1","headers":true}\r\n')
                while more := peer.recv(4096):
                    heard.append(more)

        playing = Thread(target=play)
        playing.start()
        with pytest.raises(QueueUnfit, match="offers no TLS"):
            queue.depth()
        queue.close()
        playing.join(20)
    assert b"".join(heard) == b""


def test_a_server_that_says_nothing_is_away(monkeypatch: pytest.MonkeyPatch, stream: str) -> None:
    monkeypatch.setattr(link, "CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        queue = NatsQueue(url=f"nats://127.0.0.1:{mute.getsockname()[1]}", name=stream)
        with pytest.raises(QueueAway, match="no answer in time"):
            queue.publish([message(1)])
        queue.close()


def test_of_several_servers_one_is_enough(
    guarded: NatsServer, ca_file: str, stream: str, nats_server: NatsServer
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    assert depth(f"nats://127.0.0.1:{port}, {nats_server.url}", stream) == 0
    with pytest.raises(QueueAway, match=rf"127.0.0.1:{port} cannot be reached.*refused"):
        depth(f"nats://127.0.0.1:{port},nats://127.0.0.1:{port}", stream)


def test_a_server_without_jetstream_is_unfit(stream: str) -> None:
    server = NatsServer(jetstream=False)
    try:
        with pytest.raises(QueueUnfit, match="has no JetStream here"):
            depth(server.start().url, stream)
    finally:
        server.remove()


@pytest.mark.parametrize(
    "url",
    ["http://h", "nats://", "nats://h:port", "nats://a,h", "nats://a:12/s@h", "nats://a:12#s@h"],
)
def test_what_is_no_url_of_nats_is_a_mistake(url: str) -> None:
    with pytest.raises(UsageError, match="a URL of NATS is"):
        NatsQueue(url=url, name="x")


def test_a_file_without_certificates_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("no certificate")
    with pytest.raises(UsageError, match="cannot be read as certificates"):
        NatsQueue(url="nats://h", name="x", ca_file=str(tmp_path / "ca"))


def test_a_file_of_credentials_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(address, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match="needs one more package"):
        NatsQueue(url="nats://h?credentials=/run/x.creds", name="x")


def test_the_settings_of_the_page_load_and_say_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "freehold.toml").write_text(
        LEAST + "".join(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL))
    )
    settings = load_settings(None, {})
    assert settings.queue is not None
    for made in (hints_stream("freehold", 1), dead_stream("freehold", 1)):
        assert all(f"`{word}`" in PAGE for word in (made["name"], *made["subjects"]))
    made = events_stream("freehold-events", "freehold.events", 1)
    assert made["max_age"] == 7 * 24 * 3600 * 10**9
    assert adapter.ACK_WAIT_SECONDS == 120
    assert f"{dead_stream('x', 1)['max_msgs']:,}" in PAGE
