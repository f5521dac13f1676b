"""Keys and files for plain OpenSSH, checked by the real `ssh`."""

from __future__ import annotations

import getpass
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from gpucourse.errors import MissingError, UnreachableError
from gpucourse.model.node import Inventory, Node
from gpucourse.remote.keys import ensure_client_key, known_hosts, make_other_key_error, parse_pinned_keys, ssh_config
from tests.parts import need
from tests.waiting import STUCK_S


def node(number: int) -> Node:
    return Node(
        name=f"node{number}",
        role="head" if number == 0 else "worker",
        address="127.0.0.1",
        port=2200 + number,
        private_address="127.0.0.1",
        user=getpass.getuser(),
        gpus=0,
        instance_type="test",
        python="python3",
        mode="local",
        host_key="ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJEiGD3qDvJWcNAUXrGkMnXrNtvqDCxhHDWcBXCxvdRD",
    )


def test_ensure_client_key_makes_a_key_once(tmp_path: Path) -> None:
    key = tmp_path / "with space" / "id"
    public = ensure_client_key(key)
    assert public.startswith("ssh-ed25519 AAAA")
    assert key.stat().st_mode & 0o777 == 0o600
    assert key.with_name("id.pub").read_text() == public + "\n"
    old_bytes = key.read_bytes()
    key.chmod(0o644)
    key.with_name("id.pub").unlink()
    assert ensure_client_key(key) == public
    assert key.read_bytes() == old_bytes
    assert key.stat().st_mode & 0o777 == 0o600
    assert key.with_name("id.pub").read_text() == public + "\n"


def test_ensure_client_key_gives_all_callers_the_same_key(tmp_path: Path) -> None:
    barrier = threading.Barrier(8)

    def ask(_number: int) -> str:
        barrier.wait(STUCK_S)
        return ensure_client_key(tmp_path / "keys" / "id")

    with ThreadPoolExecutor(8) as pool:
        (public,) = {*pool.map(ask, range(8))}
    assert (tmp_path / "keys" / "id.pub").read_text() == public + "\n"


@pytest.mark.parametrize(
    "content", [b"", b"not a key", b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n"]
)
def test_ensure_client_key_names_a_damaged_key_and_keeps_it(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "id").write_bytes(content)
    with pytest.raises(MissingError, match="id cannot be used"):
        ensure_client_key(tmp_path / "id")
    assert (tmp_path / "id").read_bytes() == content


def test_known_hosts_has_a_line_for_each_machine_of_a_pool() -> None:
    pool = replace(node(0), other_host_keys=("ssh-ed25519 BBBB",))
    lines = known_hosts(Inventory(stack="02-hosts", nodes=(pool,))).splitlines()
    assert lines == [f"[127.0.0.1]:2200 {pool.host_key}", "[127.0.0.1]:2200 ssh-ed25519 BBBB"]


ODD_FOLDERS = [
    "with space",
    'quo"te',
    "per%cent %h %%",
    "ha#sh # x",
    "ünï",
    "$(id)",
]


@pytest.mark.parametrize("odd", ODD_FOLDERS)
def test_ssh_config_works_in_any_folder(tmp_path: Path, odd: str) -> None:
    ssh = need("ssh")
    folder = tmp_path / odd
    folder.mkdir()
    inventory = Inventory(stack="m3", nodes=(node(0), node(1)))
    config = folder / "ssh_config"
    config.write_text(ssh_config(inventory, folder / "id", folder / "known_hosts"))
    for alias in ("node1", "gpucourse-m3-node1"):
        output = subprocess.run([ssh, "-F", str(config), "-G", alias], capture_output=True, text=True, check=True).stdout
        options = dict(line.split(" ", 1) for line in output.splitlines() if " " in line)
        assert (options["hostname"], options["port"], options["user"]) == ("127.0.0.1", "2201", getpass.getuser())
        assert options["identitiesonly"] == "yes"
        assert options["stricthostkeychecking"] in {"yes", "true"}


NODE = Node(
    name="node0", role="head", address="127.0.0.1", port=2200, private_address="127.0.0.1", user="me", gpus=0,
    instance_type="simulated", python="python3", mode="local", host_key="ssh-ed25519 QUJD", other_host_keys=("ssh-rsa REVG",),
)  # fmt: skip


def test_parse_pinned_keys_returns_all_of_a_node_and_needs_one() -> None:
    assert parse_pinned_keys(NODE) == [("ssh-ed25519", "QUJD"), ("ssh-rsa", "REVG")]
    with pytest.raises(UnreachableError, match="no host key is on record"):
        parse_pinned_keys(replace(NODE, host_key=""))


def test_make_other_key_error_names_the_key_on_record() -> None:
    error = make_other_key_error(NODE, "ssh-ed25519 SHA256:x")
    assert "127.0.0.1:2200 shows a different host key (ssh-ed25519 SHA256:x) from the one on record (SHA256:" in error.what
    assert "an unreadable key" in make_other_key_error(replace(NODE, host_key="ssh-ed25519 Q"), "x").what
