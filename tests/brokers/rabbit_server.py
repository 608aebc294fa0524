"""A private RabbitMQ of one node, for tests that kill and wipe it.

Invariants: everything listens on loopback only, on free ports, Erlang's own name server included;
the node has its own name and data folder; only processes started here are stopped, by pid; when the
test run itself is killed, a watcher ends them. As root it runs as Debian's user `rabbitmq`, so that
a file that the server alone may read is no secret between the two.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import trustme

SBIN = Path("/usr/lib/rabbitmq/bin")
START_SECONDS = 60.0
STOP_SECONDS = 60.0
POLL_SECONDS = 0.02
VHOST = "holds"
USER, PASSWORD = "holder", "s3cret/@:pass"
LOGIN = "holder:s3cret%2F%40%3Apass"  # as it stands in a URL
READER = "reader:s3cret%2F%40%3Apass"  # may take, and neither make nor publish
USER_OF = "user:s3cret%2F%40%3Apass"  # may take and publish, and make nothing
FULL_AT = 2  # messages, in queues whose name begins with "full"

# When this process is gone (the pipe closes) it ends both and removes their folder; when told
# "done" it does nothing.
_WATCHER = """
read -r word && exit
kill -KILL "$1" "$2" 2>/dev/null
while kill -0 "$1" 2>/dev/null; do sleep 0.1; done
rm -rf "$3"
"""


def _definitions() -> str:
    """Return users, hosts and policies, so that no command line of Erlang has to set them up."""

    def may(user: str, vhost: str, make: str = ".*", write: str = ".*") -> dict[str, str]:
        return {"user": user, "vhost": vhost, "configure": make, "write": write, "read": ".*"}

    users = {USER: PASSWORD, "reader": PASSWORD, "user": PASSWORD, "guest": "guest"}
    return json.dumps(
        {
            "users": [
                {"name": name, "password": word, "tags": ["administrator"], "limits": {}}
                for name, word in users.items()
            ],
            "vhosts": [{"name": VHOST}, {"name": "/"}],
            "permissions": [
                may(USER, VHOST),
                may("reader", VHOST, "^$", "^$"),
                may("user", VHOST, "^$"),
                may("guest", "/"),
            ],
            "policies": [
                {
                    "vhost": VHOST,
                    "name": "full",
                    "pattern": "^full",
                    "apply-to": "queues",
                    "definition": {"max-length": FULL_AT},
                }
            ],
        }
    )


@dataclass
class RabbitServer:
    """One server; starts at `start`, keeps ports and data over restarts.

    Attributes:
        settings: more lines of rabbitmq.conf.
        managed: run the management plugin, which makes the start slower.
    """

    settings: str = ""
    managed: bool = False
    port: int = field(init=False)
    tls_port: int = field(init=False)
    monitor_port: int = field(init=False)
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="freehold-rabbit-")))
    _ports: dict[str, str] = field(init=False)
    _node: subprocess.Popen[bytes] | None = None
    _names: subprocess.Popen[bytes] | None = None
    _watcher: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        if not SBIN.joinpath("rabbitmq-server").exists():
            raise RuntimeError("RabbitMQ is missing: run make setup")
        self.port, self.tls_port = _find_free_port(), _find_free_port()
        self.monitor_port = _find_free_port()
        authority = trustme.CA()
        issued = authority.issue_cert("127.0.0.1")
        issued.cert_chain_pems[0].write_to_path(self.folder / "cert.pem")
        issued.private_key_pem.write_to_path(self.folder / "key.pem")
        authority.cert_pem.write_to_path(self.ca_file)
        self._ports = {
            "ERL_EPMD_PORT": str(_find_free_port()),
            "RABBITMQ_DIST_PORT": str(_find_free_port()),
        }

    @property
    def url(self) -> str:
        """Return the URL of a user with all rights in a virtual host of its own."""
        return self.url_of(LOGIN)

    def url_of(self, login: str, vhost: str = VHOST) -> str:
        """Return the URL of another user or virtual host."""
        return f"amqp://{login}@127.0.0.1:{self.port}/{vhost}"

    @property
    def tls_url(self) -> str:
        """Return the URL of the same user over TLS."""
        return f"amqps://{LOGIN}@127.0.0.1:{self.tls_port}/{VHOST}"

    @property
    def ca_file(self) -> str:
        """Return the certificate that vouches for the server."""
        return str(self.folder / "ca.pem")

    @property
    def monitor(self) -> str:
        """Return the URL of the management interface."""
        return f"http://{LOGIN}@127.0.0.1:{self.monitor_port}"

    @property
    def pid(self) -> int:
        """Return the pid of the running node."""
        assert self._node is not None
        return self._node.pid

    # ------------------------------------------------------------------------------- life cycle

    def start(self) -> RabbitServer:
        """Start, and return when it takes connections; does nothing while it runs."""
        if self._node is not None and self._node.poll() is None:
            return self
        self._write_files()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            path = self.folder / "ready"
            path.unlink(missing_ok=True)
            ready.bind(str(path))
            self._own()
            self._spawn()
            self._wait_until_ready(ready)
        return self

    def _write_files(self) -> None:
        self.folder.joinpath("definitions.json").write_text(_definitions())
        self.folder.joinpath("env.conf").write_text("")
        plugins = "rabbitmq_management" if self.managed else ""
        self.folder.joinpath("plugins").write_text(f"[{plugins}].")
        self.folder.joinpath("rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{self.port}\n"
            f"listeners.ssl.1 = 127.0.0.1:{self.tls_port}\n"
            f"ssl_options.cacertfile = {self.ca_file}\n"
            f"ssl_options.certfile = {self.folder / 'cert.pem'}\n"
            f"ssl_options.keyfile = {self.folder / 'key.pem'}\n"
            f"load_definitions = {self.folder / 'definitions.json'}\n"
            "vm_memory_high_watermark.absolute = 2GB\ndisk_free_limit.absolute = 1MB\n"
            + (
                f"management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {self.monitor_port}\n"
                if self.managed
                else ""
            )
            + self.settings
        )

    def _own(self) -> None:
        """Give the folder to the user that the server runs as."""
        if os.geteuid() == 0:
            for path in (self.folder, *self.folder.rglob("*")):
                shutil.chown(path, "rabbitmq", "rabbitmq")

    def _spawn(self) -> None:
        self._names = self._run(["epmd"])
        with self.folder.joinpath("log").open("wb") as output:
            self._node = self._run([str(SBIN / "rabbitmq-server")], output.fileno())
        told = [str(self._node.pid), str(self._names.pid), str(self.folder)]
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", _WATCHER, "watcher", *told],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def _run(self, command: list[str], output: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        user = pwd.getpwnam("rabbitmq").pw_uid if os.geteuid() == 0 else None
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            user=user,
            group=None if user is None else pwd.getpwnam("rabbitmq").pw_gid,
            extra_groups=None if user is None else [],
        )

    def _environment(self) -> dict[str, str]:
        at = {
            f"RABBITMQ_{key}": str(self.folder / name)
            for key, name in {
                "MNESIA_BASE": "data",
                "LOG_BASE": "logs",
                "ENABLED_PLUGINS_FILE": "plugins",
                "CONFIG_FILE": "rabbitmq",
                "CONF_ENV_FILE": "env.conf",
            }.items()
        }
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),  # holds the cookie
            "LANG": "C.UTF-8",
            "RABBITMQ_NODENAME": f"freehold-{self.port}@localhost",
            "RABBITMQ_LOGS": "-",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            # With it the node replaces the shell that starts it, and says here when it is up.
            "NOTIFY_SOCKET": str(self.folder / "ready"),
            **self._ports,
            **at,
        }

    def _wait_until_ready(self, ready: socket.socket) -> None:
        assert self._node is not None
        ready.settimeout(START_SECONDS)
        try:
            while b"READY=1" not in ready.recv(4096):
                pass
        except TimeoutError:
            raise RuntimeError(f"RabbitMQ did not start:\n{self.log[-2000:]}") from None

    @property
    def log(self) -> str:
        """Return what the server wrote since its last start."""
        return self.folder.joinpath("log").read_text(errors="replace")

    def kill9(self) -> None:
        """Kill it without a word."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Let it end in order."""
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        for process, how in ((self._node, number), (self._names, signal.SIGKILL)):
            if process is not None:
                process.send_signal(how)
                process.wait(STOP_SECONDS)
        self._node = self._names = None
        if self._watcher is not None:
            self._watcher.communicate(b"done\n")
            self._watcher = None

    def wait_until_kept(self, queue: str) -> None:
        """Wait until a quorum queue outlives a kill.

        RabbitMQ 3.10 writes the name of a new one down a second later, and makes one anew, empty
        and for ever without a leader, that it does not find there after a kill.
        """
        word, longer = f"{VHOST}_{queue}".encode(), f"{VHOST}_{queue}.dead".encode()
        give_up_at = time.monotonic() + START_SECONDS
        while time.monotonic() < give_up_at:
            for names in self.folder.glob("data/*/quorum/*/names.dets"):
                if word in names.read_bytes().replace(longer, b""):
                    return
            time.sleep(POLL_SECONDS)
        raise RuntimeError(f"the queue {queue} was never written down")

    def restart(self, *, wiped: bool = False) -> None:
        """Start it again on its ports; with its data, or with none."""
        self.kill9()
        if wiped:
            shutil.rmtree(self.folder / "data", ignore_errors=True)
        self.start()

    def remove(self) -> None:
        """Stop it and delete all it had."""
        self.kill9()
        shutil.rmtree(self.folder, ignore_errors=True)

    def command(self, *words: str) -> str:
        """Run `rabbitmqctl`, which takes a second or two."""
        done = self._run([str(SBIN / "rabbitmqctl"), "--quiet", *words], subprocess.PIPE)
        output, _ = done.communicate(timeout=START_SECONDS)
        assert done.returncode == 0, output.decode(errors="replace")
        return output.decode()


def _find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
