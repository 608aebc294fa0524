"""`freehold relay` while a target cannot be reached: the reason is told, and what happens next."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from tests.e2e.inprocess import Program
from tests.e2e.shop import make_shop

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TARGET = '\n[[targets]]\nname = "bus"\nkind = "nats"\nurl = "nats://f:s3cret@127.0.0.1:{port}"\n'


def test_it_says_why_a_target_cannot_be_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    freehold = Program(tmp_path, monkeypatch, capsys)
    with socket.socket() as deaf:  # bound, so that nobody else takes the port, and not listening
        deaf.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{deaf.getsockname()[1]}"
        more = TARGET.format(port=deaf.getsockname()[1])
        make_shop(tmp_path, f"sqlite:///{tmp_path / 'freehold.db'}", due_count=1, more=more)
        for words in (("db", "upgrade"), ("scan",), ("work",)):
            assert freehold(*words).code == 0
        said = freehold("relay")
    assert said.code == 5
    assert f"NATS at {place} cannot be reached (Connection refused); it takes nothing" in said.err
    assert "s3cret" not in said.out + said.err
