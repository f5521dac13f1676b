"""The system's own ssh and scp with simulated nodes: who may log in, every byte, every exit code."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parts import need
from tests.ports import take_port
from tests.simulated import SimulatedNodes, make_key, serve_simulated_nodes
from tests.waiting import STUCK_S, until

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedNodes]:
    need("ssh")
    with serve_simulated_nodes(tmp_path_factory.mktemp("ssh"), 2) as lab:
        yield lab


def test_node_has_its_own_home_key_port_and_variables(lab: SimulatedNodes) -> None:
    script = 'echo "$GPUCOURSE_NODE|$GPUCOURSE_STACK_UID|$GPUCOURSE_NODE_UID|$HOME|$SHELL"; pwd; command -v python'
    for name in ("node0", "node1"):
        lines = lab.ssh(name, script).stdout.decode().splitlines()
        node, stack, uid, home, shell = lines[0].split("|")
        assert (node, stack, uid, home) == (name, lab.uid, f"{lab.uid}/{name}", str(lab.home(name)))
        assert os.access(shell, os.X_OK)
        assert lines[1:] == [home, str(Path(lab.node(name).python).parent / "python")]
    assert len({node.port for node in lab.nodes}) == len({node.host_key for node in lab.nodes}) == 2


def test_login_shell_runs_on_a_terminal(lab: SimulatedNodes) -> None:
    """Look for marks that are not in the typed text, because a terminal repeats that until `stty` stops it."""
    script = b"""stty -echo; printf '\\074%s\\076\\n' "$(tty)" "$(command -v python)" "$TERM"; exit 6\n"""
    result = lab.ssh("node0", extra_options=["-tt", "-o", "SetEnv=TERM=vt100"], stdin=script)
    answers = re.findall("<([^<>]*)>", result.stdout.decode(errors="replace"))
    assert result.returncode == 6
    assert answers[0].startswith("/dev/")
    assert answers[1:] == [str(Path(lab.node("node0").python).parent / "python"), "vt100"]


@pytest.mark.parametrize("who", ["another user", "another key", "no key"])
def test_node_refuses_another_user_and_another_key(lab: SimulatedNodes, who: str, tmp_path: Path) -> None:
    options = lab.options("node0", key=make_key(tmp_path / "other") if who == "another key" else None)
    user = "nobody" if who == "another user" else lab.node("node0").user
    auth_options = ["-o", "PubkeyAuthentication=no"] if who == "no key" else []
    words = [need("ssh"), *options, *auth_options, f"{user}@127.0.0.1", "echo in"]
    result = subprocess.run(words, capture_output=True, timeout=STUCK_S, check=False)
    assert (result.returncode, result.stdout) == (255, b"")
    assert b"Permission denied" in result.stderr


def test_node_answers_on_loopback_only(lab: SimulatedNodes) -> None:
    with socket.socket(
        socket.AF_INET, socket.SOCK_DGRAM
    ) as route:  # this sends nothing, but shows which address this machine would use
        try:
            route.connect(("192.0.2.1", 9))
            host_address = route.getsockname()[0]
        except OSError:
            host_address = "127.0.0.3"
    for address in {"127.0.0.2", host_address} - {"127.0.0.1"}:
        with socket.socket() as line:
            line.settimeout(2)
            assert line.connect_ex((address, lab.node("node0").port)) != 0, address


@pytest.mark.parametrize("protocol", ["-O", "-s"])
def test_scp_copies_a_folder_each_way(lab: SimulatedNodes, protocol: str, tmp_path: Path) -> None:
    words = [need("scp"), protocol, "-q", "-p", "-r", *lab.options("node0")]
    remote = f"{lab.address('node0')}:"
    source = tmp_path / "a folder" / "inner"
    source.mkdir(parents=True)
    (source / 'it\'s "odd".bin').write_bytes(os.urandom(2_000_000))
    (source / "run.sh").write_text("#!/bin/sh\n")
    odd = name_that_is_not_utf8(source)
    (source / "run.sh").chmod(0o755)
    shutil.rmtree(lab.home("node0") / "a folder", ignore_errors=True)
    assert run([*words, str(tmp_path / "a folder"), remote]) == (0, b"")
    quoted = f"{remote}'a folder'" if protocol == "-O" else f"{remote}a folder"
    assert run([*words, quoted, str(tmp_path / "back")]) == (0, b"")
    for name in ('it\'s "odd".bin', "run.sh", *odd):
        assert (tmp_path / "back" / "inner" / name).read_bytes() == (source / name).read_bytes()
    assert (tmp_path / "back" / "inner" / "run.sh").stat().st_mode & 0o777 == 0o755
    code, message = run([*words, f"{remote}absent", str(tmp_path)])
    assert code == 1
    assert b"No such file" in message


@pytest.mark.parametrize("way", ["-L", "-R"])
def test_port_is_forwarded_each_way(way: str, lab: SimulatedNodes) -> None:
    """Forward a port of the node to this machine, and one of this machine to the node, as editors and TensorBoard need."""
    port, target = take_port(), lab.node("node1").port
    words = [need("ssh"), *lab.options("node0"), "-N", way, f"{port}:127.0.0.1:{target}", lab.address("node0")]
    tunnel = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    try:
        until(lambda: first_line(port).startswith(b"SSH-2.0-gpucourse"), "the tunnel stands")
    finally:
        tunnel.terminate()
        tunnel.wait(STUCK_S)


def name_that_is_not_utf8(folder: Path) -> list[str]:
    """Return a file with such a name, if the file system allows it."""
    name = os.fsdecode(b"not\xffutf8")
    try:
        (folder / name).write_bytes(b"odd")
    except OSError:
        return []
    return [name]


def first_line(port: int) -> bytes:
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as line:
            return line.recv(255)
    except OSError:
        return b""


def run(words: list[str]) -> tuple[int, bytes]:
    result = subprocess.run(words, capture_output=True, timeout=STUCK_S, check=False)
    return result.returncode, result.stdout + result.stderr
