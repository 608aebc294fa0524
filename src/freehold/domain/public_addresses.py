"""Which addresses an outgoing call may reach: those of the public internet, and what is allowed.

*Invariants*: an address is judged as the one that it leads to, so that an IPv4 address is the same
in every IPv6 form of it; what no registry calls public is not public.
*Not here*: names and URLs (`webhook_urls`), looking names up (`adapters.webhook`).

An operator's own NAT64 prefix cannot be known here; a network that has one routes private IPv4
addresses behind it only if it was set up so (RFC 6052 section 3.1 forbids it for the well-known one).
"""

from __future__ import annotations

from collections.abc import Collection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# Source: IANA IPv4 and IPv6 Special-Purpose Address Registries (RFC 6890 and its updates).
_NOT_PUBLIC_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network; Linux connects 0.0.0.0 to itself
        "10.0.0.0/8",
        "100.64.0.0/10",  # shared by carriers; Alibaba's metadata are in it
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's own services in every virtual machine, metadata among them
        "169.254.0.0/16",  # link-local; metadata of most clouds
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments; Oracle's metadata are in it
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # relays of 6to4
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
_GLOBAL_V6 = IPv6Network("2000::/3")  # all that IANA has given out as global unicast
_NOT_PUBLIC_V6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4 (retired by RFC 7526), which leads to the IPv4 address in it
        "3fff::/20",  # documentation
    )
)
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")  # RFC 6052; 64:ff9b:1::/48 is for local use and stays refused


def is_public(address: Address) -> bool:
    """Tell whether anybody on the internet may have this address."""
    there = _leads_to(address)
    if isinstance(there, IPv4Address):
        return not _within(there, _NOT_PUBLIC_V4)
    return there in _GLOBAL_V6 and not _within(there, _NOT_PUBLIC_V6)


def is_allowed(address: Address, allow: Collection[Network]) -> bool:
    """Tell whether an address, or the one that it leads to, is in one of the networks."""
    return _within(address, allow) or _within(_leads_to(address), allow)


def _leads_to(address: Address) -> Address:
    """Return the IPv4 address that the system or a NAT64 gateway makes of it, or itself."""
    if isinstance(address, IPv6Address) and _within(address, (_MAPPED, _NAT64)):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def _within(address: Address, networks: Collection[Network]) -> bool:
    return any(address in network for network in networks)
