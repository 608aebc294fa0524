from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.domain.webhook_urls import URL_LENGTH_MAX, WebhookUrl, read_webhook_url

PORTS = (443, 8443)


@pytest.mark.parametrize(
    ("text", "host", "port", "path", "authority"),
    [
        ("https://a.example", "a.example", 443, "/", "a.example"),
        ("https://A.Example/Hook?Key=K", "a.example", 443, "/Hook?Key=K", "a.example"),
        ("HTTPS://a.example:443/x", "a.example", 443, "/x", "a.example"),
        ("https://a.example:8443/", "a.example", 8443, "/", "a.example:8443"),
        ("https://a.example?x=1", "a.example", 443, "/?x=1", "a.example"),
        ("https://xn--mnchen-3ya.example/", "xn--mnchen-3ya.example", 443, "/", None),
        ("https://my_host.a-b.example/", "my_host.a-b.example", 443, "/", None),
        ("https://8.8.8.8/", "8.8.8.8", 443, "/", "8.8.8.8"),
        ("https://[2606:4700::1]:8443/x", "2606:4700::1", 8443, "/x", "[2606:4700::1]:8443"),
        ("https://10.0.0.1.nip.io/", "10.0.0.1.nip.io", 443, "/", None),  # judged by its address
    ],
)
def test_read(text: str, host: str, port: int, path: str, authority: str | None) -> None:
    read = read_webhook_url(text, PORTS)
    assert read == WebhookUrl(is_secure=True, host=host, port=port, path=path)
    assert authority is None or read.authority == authority


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "https"),
        ("a.example", "https"),
        ("http://a.example/", "https"),
        ("ftp://a.example/", "https"),
        ("file:///etc/passwd", "https"),
        ("//a.example/", "https"),
        ("https:a.example", "host"),
        ("https://", "host"),
        ("https:///x", "host"),
        ("https://a.example./", "dot"),
        ("https://.a.example/", "host"),
        ("https://a..example/", "host"),
        ("https://-a.example/", "host"),
        (f"https://{'a' * 64}.example/", "host"),
        (f"https://{'a.' * 130}example/", "host"),
        ("https://user@a.example/", "user"),
        ("https://user:pass@a.example/", "user"),
        ("https://a.example:443@169.254.169.254/", "user"),
        ("https://@a.example/", "user"),
        ("https://a.example\\@b.example/", "ASCII"),
        ("https://a.example/#x", "fragment"),
        ("https://a.example/#", "fragment"),
        ("https://a.example:22/", "ports 443, 8443"),
        ("https://a.example:80/", "ports"),
        ("https://a.example:0/", "ports"),
        ("https://a.example:99999/", "port"),
        ("https://a.example:x/", "port"),
        ("https://a.example:\uff14\uff14\uff13/", "ASCII"),
        ("https://münchen.example/", "ASCII"),
        ("https://①②⑦.⓪.⓪.①/", "ASCII"),
        ("https://a。example/", "ASCII"),
        ("https://a.example/a b", "ASCII"),
        ("https://a.exa\tmple/", "ASCII"),
        ("https://a.example/\r\nX: y", "ASCII"),
        (" https://a.example/", "ASCII"),
        ("https://a.example/\x00", "ASCII"),
        ("https://%61.example/", "host"),
        ("https://2130706433/", "IPv4"),
        ("https://0x7f000001/", "IPv4"),
        ("https://0x7f.1/", "IPv4"),
        ("https://0x/", "IPv4"),
        ("https://017700000001/", "IPv4"),
        ("https://0177.0.0.1/", "IPv4"),
        ("https://127.1/", "IPv4"),
        ("https://127.0.0.01/", "IPv4"),
        ("https://1.2.3.4.5/", "IPv4"),
        ("https://a.example.1/", "IPv4"),
        ("https://256.1.1.1/", "IPv4"),
        ("https://[::1/", "host"),
        ("https://[1.2.3.4]/", "host|IPv6"),
        ("https://[zz::1]/", "host|IPv6"),
        ("https://[fe80::1%25eth0]/", "zone|host|IPv6"),
        ("https://[fe80::1%eth0]/", "zone|host|IPv6"),
        ("https://[v1.x]/", "host|IPv6"),
        ("https://[::1]x/", "host|port"),
        (f"https://a.example/{'x' * URL_LENGTH_MAX}", "at most"),
    ],
)
def test_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_webhook_url(text, PORTS)


def test_http_only_where_it_was_asked_for() -> None:
    read = read_webhook_url("http://10.0.0.1:8080/x", (8080,), insecure=True)
    assert (read.is_secure, read.scheme, read.authority) == (False, "http", "10.0.0.1:8080")
    assert read_webhook_url("http://a.example/", (80,), insecure=True).authority == "a.example"
    assert read_webhook_url("https://a.example/", (443,), insecure=True).is_secure


def test_a_path_is_in_no_repr() -> None:
    assert "canary" not in repr(read_webhook_url("https://a.example/canary?k=canary", PORTS))


def what_is_said(text: str) -> str:
    """Return why a URL is refused; one that is read means the same when it is read again."""
    try:
        read = read_webhook_url(text, PORTS)
    except ValueError as refused:
        return str(refused)
    assert read_webhook_url(f"{read.scheme}://{read.authority}{read.path}", PORTS) == read
    return ""


@given(st.text(min_size=12, max_size=40))
def test_whatever_the_text_it_is_read_or_refused_and_not_repeated(text: str) -> None:
    for whole in (text, f"https://{text}", f"https://a.example/{text}", f"https://[{text}]/"):
        assert text not in what_is_said(whole)
