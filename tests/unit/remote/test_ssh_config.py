"""The route of plain ssh to a machine, according to OpenSSH's own client."""

from __future__ import annotations

import getpass
import subprocess
from pathlib import Path

import pytest

from gpucourse.errors import MissingError, UsageError
from gpucourse.remote.keys import ensure_client_key
from gpucourse.remote.ssh_config import find_ssh_route
from tests.parts import need


@pytest.fixture
def home(tmp_path: Path) -> Path:
    need("ssh")
    need("ssh-keygen")
    (tmp_path / ".ssh").mkdir()
    return tmp_path


def public(folder: Path, name: str) -> str:
    return " ".join(ensure_client_key(folder / name).split()[:2])


@pytest.mark.parametrize(
    ("message", "user", "address", "port"),
    [
        ("ada@gpu1", "ada", "gpu1", 22),
        ("gpu1", getpass.getuser(), "gpu1", 22),
        ("ada@gpu1:2222", "ada", "gpu1", 2222),
        ("ada@[fd00::1]:2222", "ada", "fd00::1", 2222),
        ("ada@[fe80::1%eth0]", "ada", "fe80::1%eth0", 22),
        ("192.0.2.7", getpass.getuser(), "192.0.2.7", 22),
    ],
)
def test_find_ssh_route_reads_a_machine(home: Path, message: str, user: str, address: str, port: int) -> None:
    way = find_ssh_route(message, {"HOME": str(home)})
    assert (way.user, way.address, way.port, way.host_keys, way.keys) == (user, address, port, (), ())


@pytest.mark.parametrize(
    "message", ["", "ada@", "gpu 1", "-oProxyCommand=id", "ada@-v", "gpu1:0", "gpu1:70000", "gpu1:x", "gpu1\n", "a@b@c"]
)
def test_find_ssh_route_refuses_what_is_no_machine(home: Path, message: str) -> None:
    with pytest.raises(UsageError):
        find_ssh_route(message, {"HOME": str(home)})


def test_find_ssh_route_follows_the_configuration(home: Path) -> None:
    ensure_client_key(home / ".ssh" / "lab_key")
    (home / ".ssh" / "config").write_text(
        f'Host gpu1\n  HostName 192.0.2.7\n  User ada\n  Port 2222\n  IdentityFile "{home}/.ssh/lab_key"\n'
        "Host gpu2\n  HostName 192.0.2.8\n  ProxyJump jump1,jump2:2200\n"
    )
    first = find_ssh_route("gpu1", {"HOME": str(home)})
    assert (first.user, first.address, first.port) == ("ada", "192.0.2.7", 2222)
    assert first.keys == (home / ".ssh" / "lab_key",)
    assert find_ssh_route("eve@gpu1:22", {"HOME": str(home)}).user == "eve"
    assert find_ssh_route("gpu2", {"HOME": str(home)}).proxy == "ssh -o BatchMode=yes -J jump1 -W [%h]:%p jump2:2200"


@pytest.mark.parametrize("hashed", [False, True])
def test_find_ssh_route_reads_known_hosts(home: Path, hashed: bool) -> None:
    key = public(home, "host_key")
    file = home / ".ssh" / "known_hosts"
    file.write_text(f"# mine\n[gpu1]:2222 {key}\ngpu2,192.0.2.8 {key} a comment\n")
    if hashed:
        subprocess.run([need("ssh-keygen"), "-H", "-f", str(file)], check=True, capture_output=True)
    environ = {"HOME": str(home)}
    assert find_ssh_route("ada@gpu1:2222", environ).host_keys == (key,)
    assert find_ssh_route("ada@gpu1", environ).host_keys == ()
    assert find_ssh_route("gpu2", environ).host_keys == (key,)


def test_find_ssh_route_takes_every_key_of_a_pool_of_machines(home: Path) -> None:
    keys = [public(home, name) for name in ("login1", "login2")]
    rsa = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQC7"
    (home / ".ssh" / "known_hosts").write_text("".join(f"login.uni {key}\n" for key in (rsa, keys[0], keys[1], keys[0])))
    assert find_ssh_route("ada@login.uni", {"HOME": str(home)}).host_keys == tuple(keys)


def test_find_ssh_route_refuses_a_revoked_key(home: Path) -> None:
    (home / ".ssh" / "known_hosts").write_text(f"@revoked gpu1 {public(home, 'host_key')}\n")
    with pytest.raises(UsageError, match="revokes"):
        find_ssh_route("gpu1", {"HOME": str(home)})


def test_find_ssh_route_needs_an_account(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a user ID without an account, for which OpenSSH refuses to run."""
    entries: dict[int, str] = {}
    monkeypatch.setattr("pwd.getpwuid", entries.__getitem__)
    for environ in ({}, {"HOME": str(home)}):
        with pytest.raises(MissingError, match="has no account on this computer"):
            find_ssh_route("gpu1", environ)
