"""Facts about a file of the host: its mode, its directory, and what it lies on."""

from __future__ import annotations

import os
from pathlib import Path

from freehold.ports.inspection import FileFacts

_MOUNTS = Path("/proc/self/mountinfo")
_ZONE_LINK = Path("/etc/localtime")
_NETWORK = (
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre"),
    *("fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "virtiofs"),
)


def file_facts(path: Path, journal_mode: str) -> FileFacts:
    """Read the facts of one file."""
    place = path.resolve()
    return FileFacts(
        path=str(path),
        mode=place.stat().st_mode & 0o777,
        directory_writable=os.access(place.parent, os.W_OK),
        journal_mode=journal_mode,
        network=network_of(place, _MOUNTS.read_text() if _MOUNTS.exists() else ""),
    )


def network_of(path: Path, mounts: str) -> str | None:
    """Return the kind of network file system below a path, from the kernel's list of mounts.

    Source: proc_pid_mountinfo(5): the mount point is the fifth field, the kind follows ` - `.
    """
    best, kind = "", None
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        point = left.split()[4].replace("\\040", " ")
        if path.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, right.split()[0]
    return kind if kind in _NETWORK else None


def host_zone() -> str | None:
    """Return the host's time zone by name, if it says one."""
    named = os.environ.get("TZ", "").removeprefix(":")
    if named:
        return named
    target = str(_ZONE_LINK.resolve()) if _ZONE_LINK.is_symlink() else ""
    return target.partition("/zoneinfo/")[2] or None
