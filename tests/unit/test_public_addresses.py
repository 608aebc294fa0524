from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.domain.public_addresses import is_allowed, is_public

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "169.253.255.255",
    "192.0.1.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a00:1450:4001:81b::200e",
    "2001:4860:4860::8888",
    "64:ff9b::808:808",  # how a network of IPv6 only reaches 8.8.8.8
    "::ffff:8.8.8.8",
]
INSIDE = [
    "0.0.0.0",  # noqa: S104 -- to be refused
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",  # metadata of Alibaba
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",  # metadata of Azure
    "169.254.0.1",
    "169.254.169.254",  # metadata of AWS, Google, Azure and more
    "169.254.170.2",  # credentials of tasks on AWS
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.192",  # metadata of Oracle
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",  # compatible, long retired
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1",  # translated (RFC 2765)
    "64:ff9b::7f00:1",
    "64:ff9b::10.0.0.1",
    "64:ff9b::169.254.169.254",
    "64:ff9b:1::1",
    "64:ff9b:1:ffff::10.0.0.1",
    "100::1",  # discard only
    "2001::1",  # Teredo
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:2::1",  # benchmarks
    "2001:10::1",
    "2001:20::1",
    "2001:db8::1",
    "2002:7f00:1::",  # 6to4 of 127.0.0.1
    "2002:a00:1::1",
    "2002:a9fe:a9fe::1",
    "2002:808:808::1",
    "3fff::1",
    "4000::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",  # metadata of AWS
    "fd20:ce::254",  # metadata of Google
    "fe80::1",
    "fe80::1%1",
    "fec0::1",  # site-local
    "ff02::1",
    "ff0e::1",
]


@pytest.mark.parametrize("text", PUBLIC)
def test_public(text: str) -> None:
    assert is_public(ip_address(text))


@pytest.mark.parametrize("text", INSIDE)
def test_not_public(text: str) -> None:
    assert not is_public(ip_address(text))


@given(st.ip_addresses())
def test_nothing_that_the_standard_library_holds_back_is_public(address: object) -> None:
    judged = ip_address(str(address))
    there = getattr(judged, "ipv4_mapped", None) or judged
    if there not in ip_network("64:ff9b::/96" if there.version == 6 else "0.0.0.0/32"):
        assert there.is_global or not is_public(judged)


@given(st.ip_addresses(v=4))
def test_every_form_of_an_address_is_judged_alike(address: object) -> None:
    plain = ip_address(str(address))
    for form in (f"::ffff:{plain}", f"64:ff9b::{plain}"):
        assert is_public(ip_address(form)) is is_public(plain)
        assert not is_public(ip_address(f"2002:{int(plain) >> 16:x}:{int(plain) & 0xFFFF:x}::1"))


def test_what_is_allowed_is_allowed_in_every_form() -> None:
    allow = [ip_network("10.1.0.0/16"), ip_network("fd12::/16")]
    for text in ("10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::10.1.2.3", "fd12::1"):
        assert is_allowed(ip_address(text), allow)
    for text in ("10.2.0.1", "::ffff:10.2.0.1", "fd13::1", "8.8.8.8", "::1"):
        assert not is_allowed(ip_address(text), allow)
    assert not is_allowed(ip_address("10.1.2.3"), [])
